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
from tests.deployment import Deployment

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


def test_at_most_eight_alarms_are_paid_for() -> None:
    assert len(ALARMS) <= 8


def test_the_alarms_on_metrics_of_our_own_watch_this_stacks() -> None:
    ours = {alarm["MetricName"]: alarm for alarm in ALARMS.values() if alarm["Namespace"] == OURS}
    metrics = {"NeedsAttention", "OldestDueEvent", "OldestDuePayment", "TablesThrottled"}
    assert set(ours) == metrics
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
        alarm["Dimensions"][0]["Value"] for alarm in ALARMS.values() if "Dimensions" in alarm
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
    assert {"BaseUrl", "DatabaseUrl", "EncryptionKeySecret"} <= set(template()["Outputs"])
    for setting in ("DATABASE_URL", "ENCRYPTION_KEY_SECRET"):
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
