"""Operation of the stack: alarms, dashboard, outputs, stages."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from checkout import telemetry
from sandbox.template import read, resources, template
from tests.support.deployment import Deployment

REPOSITORY = Path(__file__).parents[2]
OPERATIONS = REPOSITORY / "operations"
ALARMS = resources("AWS::CloudWatch::Alarm")
QUEUES = resources("AWS::SQS::Queue").values()
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


def test_at_most_nineteen_alarms_are_paid_for_and_one_more_with_an_edge() -> None:
    all_of_them = {name: template()["Resources"][name].get("Condition") for name in ALARMS}
    assert all_of_them.pop("DirectAddressAlarm") == "HasProof"
    assert len(all_of_them) <= 19
    assert all_of_them.pop("RequestsThrottledAlarm") == "HasAccessLog"  # it counts its lines
    assert set(all_of_them.values()) == {None}
    # Each metric of a formula would be paid for.
    assert not [name for name, alarm in ALARMS.items() if "Metrics" in alarm]


def goes_off(name: str, *minutes: float | None) -> bool:
    """Return whether an alarm goes off by these averages of its last minutes, None for no value."""
    alarm = ALARMS[name]
    found = [alarm[name] for name in ("Statistic", "Period")]
    assert found == ["Average", 60]
    assert len(minutes) == alarm["EvaluationPeriods"]
    exceeds = {"GreaterThanThreshold": float.__gt__, "GreaterThanOrEqualToThreshold": float.__ge__}
    beyond, limit = exceeds[alarm["ComparisonOperator"]], float(alarm["Threshold"])
    missing = alarm["TreatMissingData"] == "breaching"
    found = [missing if each is None else beyond(float(each), limit) for each in minutes]
    return found.count(True) >= int(alarm["DatapointsToAlarm"])


NUMBERS = {
    "a hundred": 100, "half": 0.5, "most": 0.5, "one": 1, "two": 2, "three": 3, "five": 5,
    "ten": 10, "twelve": 12, "fifteen": 15,
}  # fmt: skip
_N = f"({'|'.join(NUMBERS)})"
ABOVE, FROM = "GreaterThanThreshold", "GreaterThanOrEqualToThreshold"
Alarm = dict[str, Any]


def looks(alarm: Alarm) -> int:
    """Return for how many seconds an alarm looks back."""
    return int(alarm["Period"]) * int(alarm["EvaluationPeriods"])


def beyond(alarm: Alarm, limit: float, comparison: str = ABOVE) -> bool:
    return (alarm["Threshold"], alarm["ComparisonOperator"]) == (limit, comparison)


# What a part of an alarm's sentence promises. A number that is in no such part fails the test.
PROMISES: dict[str, Callable[..., bool]] = {
    rf"in {_N} of {_N} minutes": lambda alarm, bad, of: (
        (alarm["DatapointsToAlarm"], looks(alarm)) == (bad, of * 60)
        and alarm["EvaluationPeriods"] == of
    ),
    rf"within {_N} minutes, a ": lambda alarm, minutes: (
        beyond(alarm, 0) and (alarm["DatapointsToAlarm"], looks(alarm)) == (1, minutes * 60)
    ),
    rf"at least {_N}(?: a)? percent": lambda alarm, share: beyond(alarm, share / 100, FROM),
    rf"(?:more than )?{_N} of (?:all requests|its rounds)": beyond,
    rf"for more than {_N} minutes": lambda alarm, minutes: (
        beyond(alarm, minutes * 60) and looks(alarm) <= minutes * 60
    ),
    rf"more than {_N} requests within {_N} minutes": lambda alarm, most, minutes: (
        beyond(alarm, most) and looks(alarm) == minutes * 60
    ),
    rf"more than {_N} requests were": beyond,
    rf"failed {_N} times": lambda alarm, times: (
        {each["RedrivePolicy"]["maxReceiveCount"] for each in QUEUES if "RedrivePolicy" in each}
        == {times}
    ),
    "([45])xx": lambda alarm, kind: alarm["MetricName"] == f"{kind}xx",
    "fail with 503": lambda alarm: True,  # a status
}


@pytest.mark.parametrize("name", ALARMS)
def test_each_number_in_an_alarms_sentence_is_the_alarms_own(name: str) -> None:
    left = ALARMS[name]["AlarmDescription"].lower()
    for pattern, holds in PROMISES.items():
        for said in re.finditer(pattern, left):
            assert holds(ALARMS[name], *(NUMBERS.get(each, each) for each in said.groups())), said
        left = re.sub(pattern, "", left)
    words = f"{'|'.join(NUMBERS)}|four|six|seven|eight|nine|eleven|twenty|thirty|sixty|percent"
    assert re.findall(rf"\b(?:{words}|hundreds?|thousands?)\b|[0-9]+", left) == []


DAY = 86_400
# The least and the most of each number of the stack, in its own unit, and why. A number that has no
# line here fails the test.
BOUNDS = {
    "MessageRetentionPeriod": (2 * DAY, 14 * DAY),  # what fails in a night is there next morning
    "maxReceiveCount": (3, 10),  # a wallet that is away for some minutes loses no clean-up
    "VisibilityTimeout": (180, 900),  # of functions of 30 and 60 s: see test_template.py
    "BatchSize": (1, 5),  # one that fails holds up few others
    "Timeout": (15, 75),
    "OriginReadTimeout": (30, 60),  # the edge waits longer than any function answers
    "MaximumRetryAttempts": (0, 0),  # the next minute's round is the retry
    "MaximumEventAgeInSeconds": (60, 60),
    "MemorySize": (256, 1024),
    "PasswordLength": (40, 64),
    "DeleteAfterDays": (7, 35),  # of the copies here, and of those elsewhere
    "RetentionInDays": (7, 7),  # of the test wallets' logs
    "EvaluationWindowSec": (300, 300),
    "ResponseCode": (429, 429),
    "EvaluationPeriods": (1, 15),
    "DatapointsToAlarm": (1, 12),  # one bad minute is no incident, but each bug is one
    "Period": (60, 3600),
    "Threshold": (0, 600),
    "LogRetentionDays": (14, 365),
    "RetentionDays": (365, 36_500),
    "ClientLimit": (10, 100),
    "EdgeRequests": (1_000, 100_000),
    "EdgeApiRequests": (10_000, 1_000_000),
    "SenderConcurrency": (2, 5),
    "TasksConcurrency": (2, 5),
    "SweepParts": (1, 1),
    "MonthlyBudget": (0, 0),
    **dict.fromkeys(
        [f"{each}Concurrency" for each in ("Api", "Pay", "Dashboard", "Sweep")], (0, 0)
    ),
}


def numbers(within: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield each number below `within`, with the name of its property."""
    if isinstance(within, dict):
        for key, value in within.items():
            yield from numbers(value, name if key == "Fn::If" else key)
    elif isinstance(within, list):
        for value in within:
            yield from numbers(value, name)
    elif isinstance(within, int | float) and not isinstance(within, bool):
        yield name, within


def test_each_number_of_the_stack_is_within_its_bounds() -> None:
    files = (template(), read(OPERATIONS / "edge.yaml"), read(OPERATIONS / "test-wallets.yaml"))
    parts = [each.get(part, {}) for each in files for part in ("Resources", "Globals")]
    chosen = {
        name: each["Default"]
        for file in files
        for name, each in file["Parameters"].items()
        if "Default" in each
    }
    orders = {"Fn::Select", "Priority"}
    found = [each for each in numbers([*parts, chosen]) if each[0] not in orders]
    assert {name for name, _ in found} == set(BOUNDS)
    out = [each for each in found if not BOUNDS[each[0]][0] <= each[1] <= BOUNDS[each[0]][1]]
    assert out == []


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
            "FailedOnOurSide",
            "KeyUnreadable",
            "NeedsAttention",
            "OldestDueEvent",
            "OldestDuePayment",
        ),
        *("RequestsFailed", "SecretsUnreadable", "SessionsCompleted", "TablesThrottled"),
        "UnforeseenErrors",
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
        if isinstance(alarm.get("Dimensions"), list)
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


def test_the_outputs_have_what_the_functions_have_for_the_setup_command() -> None:
    functions = [
        template()["Globals"]["Function"],
        *resources("AWS::Serverless::Function").values(),
    ]
    settings: dict[str, Any] = {}
    for each in functions:
        settings |= each.get("Environment", {}).get("Variables", {})
    told = {
        name: each["Value"]
        for each in template()["Outputs"].values()
        for name in re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", each["Description"])
    }
    secrets = {"DATABASE_URL", "DETAILS_KMS_KEY", "ENCRYPTION_KEY_SECRET"}
    queues = {"EVENTS_QUEUE_URL": {"Ref": "EventsQueue"}, "TASKS_QUEUE_URL": {"Ref": "TasksQueue"}}
    assert told == {name: settings[name] for name in secrets} | queues
    assert queues.items() <= settings.items()
    assert "BaseUrl" in template()["Outputs"]


def test_a_domain_wants_a_certificate_at_the_api_and_at_an_edge() -> None:
    for file in (template(), read(OPERATIONS / "edge.yaml")):
        rule = file["Rules"]["DomainAndCertificate"]
        assert "DomainName" in str(rule["RuleCondition"])
        assert "CertificateArn" in str(rule["Assertions"])


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


def test_all_tables_are_copied_to_another_vault_each_day_only_if_it_is_named() -> None:
    parameter = template()["Parameters"]["BackupVaultArn"]
    assert parameter["Default"] == ""
    kinds = ("BackupVault", "BackupPlan", "BackupSelection")
    made = {name: each for name, each in template()["Resources"].items() if "Backup" in name}
    assert {each["Condition"] for each in made.values()} == {"HasBackup"}
    assert {each["Type"] for each in made.values()} == {
        "AWS::IAM::Role",
        *(f"AWS::Backup::{kind}" for kind in kinds),
    }
    [rule] = made["BackupPlan"]["Properties"]["BackupPlan"]["BackupPlanRule"]
    [copy] = rule["CopyActions"]
    assert copy["DestinationBackupVaultArn"] == {"Ref": "BackupVaultArn"}
    assert rule["ScheduleExpression"] == "cron(0 3 * * ? *)"
    copied = made["BackupSelection"]["Properties"]["BackupSelection"]["Resources"]
    assert copied == [{"Fn::GetAtt": f"{name}.Arn"} for name in resources("AWS::DynamoDB::Table")]


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
