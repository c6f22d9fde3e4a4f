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
from expirer.app import scheduled
from sandbox.template import resources, template
from tests.functions.test_expirer import Left
from tests.product import World

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


def test_the_metrics_of_our_own_that_alarms_wait_for_are_told_by_every_round(
    told: Callable[[], list[dict[str, Any]]],
) -> None:
    wanted = {
        alarm["MetricName"]: alarm
        for name, alarm in ALARMS.items()
        if alarm["Namespace"] == OURS
        and name != "SecretsUnreadableAlarm"  # of pay, when it happens
    }
    assert {"OldestDueEvent", "NeedsAttention", "Failed"} <= set(wanted)
    telemetry.start("expirer")
    scheduled(lambda: World().services)({}, Left(75))
    [line] = [each for each in told() if "_aws" in each and "SessionsChecked" in each]
    # What is 0 is not sent, and its alarm takes silence for 0.
    assert {name for name in wanted if name in line} == {"SessionsChecked"}
    zeros = [each for name, each in wanted.items() if name not in line]
    assert {each["TreatMissingData"] for each in zeros} == {"notBreaching"}
    assert all(
        alarm["Dimensions"] == [{"Name": "service", "Value": line["service"]}]
        for alarm in wanted.values()
    )
    [metrics] = line["_aws"]["CloudWatchMetrics"]
    assert metrics["Namespace"] == OURS
    assert ["service"] in metrics["Dimensions"]


def test_only_a_silent_sweep_is_an_alarm_by_its_silence() -> None:
    silent = [name for name, each in ALARMS.items() if each["TreatMissingData"] == "breaching"]
    assert silent == ["SweepStandsStillAlarm"]


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
    assert named <= set(template()["Resources"])
    for function in resources("AWS::Serverless::Function"):
        assert f"${{{function}}}" in body
    for group in resources("AWS::Logs::LogGroup"):
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


def test_a_domain_wants_a_certificate() -> None:
    rule = template()["Rules"]["DomainAndCertificate"]
    assert "DomainName" in str(rule["RuleCondition"])
    assert "CertificateArn" in str(rule["Assertions"])


def test_a_copy_of_the_secret_needs_a_key_for_several_regions() -> None:
    rule = template()["Rules"]["ReplicaAndKey"]
    assert "ReplicaRegion" in str(rule["RuleCondition"])
    assert "MultiRegionKey" in str(rule["Assertions"])
    [key] = resources("AWS::KMS::Key").values()
    assert key["MultiRegion"]["Fn::If"][:2] == ["HasMultiRegionKey", True]
    [secret] = resources("AWS::SecretsManager::Secret").values()
    condition, [replica], _ = secret["ReplicaRegions"]["Fn::If"]
    assert (condition, replica["Region"]) == ("HasReplica", {"Ref": "ReplicaRegion"})
    assert "key/${StackKey}" in replica["KmsKeyId"]["Fn::Sub"]
