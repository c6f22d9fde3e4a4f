"""Operation of the stack: alarms, dashboard, outputs, stages."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkout import telemetry
from sandbox.template import resources, template
from tests.support.deployment import Deployment

REPOSITORY = Path(__file__).parents[2]
ALARMS = resources("AWS::CloudWatch::Alarm")
CONFIG = tomllib.loads((REPOSITORY / "samconfig.toml").read_text("utf-8"))
STAGES = {name: each for name, each in CONFIG.items() if isinstance(each, dict)}
OURS = "CheckoutSessions"


@pytest.mark.parametrize("name", ALARMS)
def test_each_alarm_says_what_it_means_and_tells_the_topic_of_its_start_and_end(name: str) -> None:
    alarm = ALARMS[name]
    actions = {"Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]}
    assert alarm["AlarmActions"] == alarm["OKActions"] == actions
    assert alarm["AlarmDescription"]
    assert alarm["TreatMissingData"] in ("breaching", "notBreaching")


def test_at_most_eleven_alarms_are_paid_for_and_one_more_with_an_edge() -> None:
    all_of_them = {name: template()["Resources"][name].get("Condition") for name in ALARMS}
    assert all_of_them.pop("DirectAddressAlarm") == "HasProof"
    assert set(all_of_them.values()) == {None}
    assert len(all_of_them) <= 11
    # Each of them would be paid for.
    of_urls = {name for name, alarm in ALARMS.items() if "Metrics" in alarm}
    assert of_urls == {"AnswersFailAlarm", "RequestsRefusedAlarm"}
    assert {ALARMS[name]["Metrics"]["Fn::If"][0] for name in of_urls} == {"HasUrls"}


def goes_off(name: str, *minutes: float | None) -> bool:
    """Return whether an alarm goes off by these averages of its last minutes, None for no value."""
    alarm = ALARMS[name]
    found = [alarm[name] for name in ("Statistic", "Period")]
    if "Metrics" in alarm:  # without functions' URLs
        found = [each["Fn::If"][2] for each in found]
    assert found == ["Average", 60]
    assert len(minutes) == alarm["EvaluationPeriods"]
    exceeds = {"GreaterThanThreshold": float.__gt__, "GreaterThanOrEqualToThreshold": float.__ge__}
    beyond, limit = exceeds[alarm["ComparisonOperator"]], float(alarm["Threshold"])
    missing = alarm["TreatMissingData"] == "breaching"
    found = [missing if each is None else beyond(float(each), limit) for each in minutes]
    return found.count(True) >= int(alarm["DatapointsToAlarm"])


def test_errors_are_a_share_at_each_rate_and_of_more_than_one_minute() -> None:
    # A tenth of a quiet shop's few requests reaches a release that answers nothing but 5xx.
    assert goes_off("AnswersFailAlarm", 0, 1 / 8, 0, 1 / 9, 0)
    # A few of 6 000 a minute are no incident, nor is one bad minute, nor a night without requests.
    assert not goes_off("AnswersFailAlarm", *[5 / 6000] * 5)
    assert not goes_off("AnswersFailAlarm", None, None, 1, None, None)
    # A tenth of the sender's runs are those of a release that can make no attempt.
    assert goes_off("SenderFailsAlarm", 0, 0.1, 0.08, 0, 0.1)
    assert not goes_off("SenderFailsAlarm", 0.01, 0.01, 0, 0.01, 0.01)
    assert not goes_off("SenderFailsAlarm", *[None] * 5)


def test_the_sweeps_alarm_goes_off_while_its_release_is_shifted() -> None:
    """Each minute another tenth: of ten rounds, about five are those of the new release."""
    assert goes_off("SweepStandsStillAlarm", 0, 0, 0, 1, 0, 1, 1, 0, 0, 0)
    assert goes_off("SweepStandsStillAlarm", 0, 0, 0, 0, 0, 0, 0, None, None, None)
    assert not goes_off("SweepStandsStillAlarm", 0, 0, 0, 1, 0, 0, 0, 0, 0, None)
    shifts = template()["Mappings"]["Shifts"]
    gradual = {each["Sweep"] for each in shifts.values() if each["Gradual"] == "true"}
    assert gradual == {"Linear10PercentEvery1Minute"}
    assert shifts["AllAtOnce"]["Sweep"] == "AllAtOnce"


def test_a_scanner_that_comes_and_goes_is_no_alarm_about_refused_requests() -> None:
    assert not goes_off("RequestsRefusedAlarm", *[None] * 10, *[1] * 5)
    assert goes_off("RequestsRefusedAlarm", *[0.1] * 3, *[0.6] * 12)


def test_the_alarms_on_metrics_of_our_own_watch_this_stacks() -> None:
    ours = {alarm["MetricName"]: alarm for alarm in ALARMS.values() if alarm["Namespace"] == OURS}
    assert set(ours) == {
        *(
            "DirectRequests",
            "KeyUnreadable",
            "NeedsAttention",
            "OldestDueEvent",
            "OldestDuePayment",
        ),
        *("SecretsUnreadable", "TablesThrottled"),
    }
    for alarm in ours.values():
        assert alarm["Dimensions"] == [{"Name": "stack", "Value": {"Ref": "AWS::StackName"}}]
        # The product sends no zeros.
        assert alarm["TreatMissingData"] == "notBreaching"
    assert telemetry.NAMESPACE == OURS


def test_a_round_sends_the_metrics_that_alarms_wait_for(
    told: Callable[[], list[dict[str, Any]]],
) -> None:
    telemetry.start("expirer", stack="shop")
    deployed = Deployment()
    deployed.wants_webhooks()
    session = deployed.created()
    approved = deployed.approve(deployed.submit(session).json["interact_url"])
    deployed.come_back(session, approved)
    deployed.world.clock.pass_time(120)
    deployed.sweep()
    [line] = [each for each in told() if "OldestDueEvent" in each]
    assert line["stack"] == "shop"
    [metrics] = line["_aws"]["CloudWatchMetrics"]
    assert metrics["Namespace"] == OURS
    assert metrics["Dimensions"] == [["stack"]]


def test_only_a_silent_sweep_is_an_alarm_by_its_silence() -> None:
    silent = [name for name, each in ALARMS.items() if each["TreatMissingData"] == "breaching"]
    assert silent == ["SweepStandsStillAlarm"]
    # No invocation has no value; an invocation that fails has the value 1.
    alarm = ALARMS["SweepStandsStillAlarm"]
    assert (alarm["MetricName"], alarm["Statistic"]) == ("Errors", "Average")
    assert alarm["Dimensions"] == [{"Name": "FunctionName", "Value": {"Ref": "ExpirerFunction"}}]


def test_each_dead_letter_queue_has_an_alarm() -> None:
    watched = [
        alarm["Dimensions"][0]["Value"]
        for alarm in ALARMS.values()
        if isinstance(alarm["Dimensions"], list)
    ]
    for name in resources("AWS::SQS::Queue"):
        if name.endswith("DeadLetters"):
            assert {"Fn::GetAtt": f"{name}.QueueName"} in watched


def test_the_dashboard_is_json_about_things_of_the_stack() -> None:
    [dashboard] = resources("AWS::CloudWatch::Dashboard").values()
    body = dashboard["DashboardBody"]["Fn::Sub"]
    widgets = json.loads(body)["widgets"]
    assert len({(each["x"], each["y"]) for each in widgets}) == len(widgets)
    named = {each.partition(".")[0] for each in re.findall(r"\$\{([A-Za-z0-9.]+)\}", body)}
    assert "${AWS::StackName}" in body
    assert named <= set(template()["Resources"])
    for function in resources("AWS::Serverless::Function"):
        assert f"${{{function}}}" in body
    for group in set(resources("AWS::Logs::LogGroup")) - {"AccessLogs"}:
        assert f"${{{group}}}" in body


def test_the_stages_differ_in_names_and_choices_only() -> None:
    chosen = ("s3_prefix", "parameter_overrides")
    for command in ("build", "deploy"):
        alike = [
            {name: value for name, value in parameters.items() if name not in chosen}
            for parameters in (stage[command]["parameters"] for stage in STAGES.values())
        ]
        assert all(each == alike[0] for each in alike)
    names = {stage["global"]["parameters"]["stack_name"] for stage in STAGES.values()}
    assert len(names) == len(STAGES) > 1


def test_what_a_stage_chooses_are_parameters_of_the_template() -> None:
    for stage in STAGES.values():
        for choice in stage["deploy"]["parameters"].get("parameter_overrides", "").split():
            name, _, value = choice.partition("=")
            assert value in template()["Parameters"][name].get("AllowedValues", [value]) or (
                int(value) in template()["Parameters"][name]["AllowedValues"]
            )


def test_a_deployment_asks_nothing() -> None:
    assert STAGES["default"]["deploy"]["parameters"]["confirm_changeset"] is False
    assert all("Default" in each for each in template()["Parameters"].values())


def test_the_outputs_have_what_the_setup_command_wants() -> None:
    descriptions = " ".join(each["Description"] for each in template()["Outputs"].values())
    outputs = {"BaseUrl", "DatabaseUrl", "EncryptionKeySecret", "StackKeyArn"}
    assert outputs <= set(template()["Outputs"])
    for setting in ("DATABASE_URL", "DETAILS_KMS_KEY", "ENCRYPTION_KEY_SECRET"):
        assert setting in descriptions


def test_a_domain_wants_a_certificate_and_an_edge_elsewhere_a_web_acl() -> None:
    rules = template()["Rules"]
    assert "DomainName" in str(rules["DomainAndCertificate"]["RuleCondition"])
    assert "CertificateArn" in str(rules["DomainAndCertificate"]["Assertions"])
    assert "us-east-1" in str(rules["EdgeAndWebAcl"]["RuleCondition"])
    assert "EdgeWebAclArn" in str(rules["EdgeAndWebAcl"]["Assertions"])


def test_a_copy_of_the_secret_needs_a_key_for_several_regions() -> None:
    rule = template()["Rules"]["ReplicaAndKey"]
    assert "ReplicaRegion" in str(rule["RuleCondition"])
    assert "MultiRegionKey" in str(rule["Assertions"])
    [key] = resources("AWS::KMS::Key").values()
    assert key["MultiRegion"]["Fn::If"][:2] == ["HasMultiRegionKey", True]
    secret = resources("AWS::SecretsManager::Secret")["EncryptionKey"]
    condition, [replica], _ = secret["ReplicaRegions"]["Fn::If"]
    assert (condition, replica["Region"]) == ("HasReplica", {"Ref": "ReplicaRegion"})
    assert "key/${StackKey}" in replica["KmsKeyId"]["Fn::Sub"]


def test_a_budget_is_notified_of_the_costs_of_this_stack_only_if_it_is_asked_for() -> None:
    parameter = template()["Parameters"]["MonthlyBudget"]
    assert (parameter["Default"], parameter["MinValue"]) == (0, 0)
    budget = template()["Resources"]["Budget"]
    assert budget["Condition"] == "HasBudget"
    described = budget["Properties"]["Budget"]
    assert described["BudgetLimit"] == {"Amount": {"Ref": "MonthlyBudget"}, "Unit": "USD"}
    [tag] = described["CostFilters"]["TagKeyValue"]
    assert tag == {"Fn::Join": ["$", ["aws:cloudformation:stack-name", {"Ref": "AWS::StackName"}]]}
    [notice] = budget["Properties"]["NotificationsWithSubscribers"]
    assert notice["Subscribers"] == [
        {"SubscriptionType": "SNS", "Address": {"Ref": "AlarmTopicArn"}}
    ]
    assert "AlarmTopicArn" in str(template()["Rules"]["BudgetAndTopic"]["Assertions"])
