"""template.yaml as CloudFormation deploys it: translated by AWS's own translator of SAM templates.

The translator comes with SAM, in an environment of its own.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
from functools import cache
from graphlib import TopologicalSorter
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from tests.artifacts.conditions import Decided

ROOT: Final = Path(__file__).parents[2]
STACK: Final = "${AWS::StackName}"
# Names that are not of a thing that the stack makes, or are given by the operator.
NOT_MADE = {
    ("AWS::ApiGatewayV2::DomainName", "DomainName"),
    ("AWS::ApiGatewayV2::ApiMapping", "DomainName"),
    ("AWS::ApiGatewayV2::Stage", "StageName"),
    ("AWS::CloudWatch::Alarm", "MetricName"),
    ("AWS::CodeDeploy::DeploymentGroup", "ApplicationName"),
    ("AWS::CodeDeploy::DeploymentGroup", "DeploymentConfigName"),
    ("AWS::Lambda::Alias", "FunctionName"),
    ("AWS::Lambda::Alias", "Name"),
    ("AWS::Lambda::EventInvokeConfig", "FunctionName"),
    ("AWS::Lambda::EventSourceMapping", "FunctionName"),
    ("AWS::Lambda::Permission", "FunctionName"),
    ("AWS::Lambda::Version", "FunctionName"),
    ("AWS::Logs::MetricFilter", "LogGroupName"),
}
# CloudFormation invents names for all other types that have one.
NAMED = {
    "AWS::ApiGatewayV2::Api": "Name",
    "AWS::CloudWatch::Dashboard": "DashboardName",
    "AWS::DynamoDB::Table": "TableName",
    "AWS::Lambda::LayerVersion": "LayerName",
    "AWS::Logs::LogGroup": "LogGroupName",
}
SWEEPS = 8  # schedules, of which SweepParts=1 makes one

pytestmark = pytest.mark.artifacts


def translated(parameters: str = "", **code: str) -> dict[str, dict[str, Any]]:
    """Return the resources of the product that CloudFormation creates.

    `code` are the artifacts' keys in S3.
    """
    whole = copy.deepcopy(_translated(parameters, tuple(sorted(code.items()))))
    found: dict[str, dict[str, Any]] = whole["Resources"]
    return found


@cache
def _translated(parameters: str, code: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    chosen = dict(each.split("=") for each in parameters.split())
    keys = {"functions": "f1", "CommonLayer": "c1", "PayLayer": "p1", **dict(code)}
    done = subprocess.run(
        [str(ROOT / ".venv-sam" / "bin" / "python"), str(Path(__file__).with_name("translate.py"))],
        input=json.dumps({"parameters": chosen, "keys": keys}),
        env={**os.environ, "AWS_DEFAULT_REGION": "us-east-1"},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def of_type(found: dict[str, dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {name: each["Properties"] for name, each in found.items() if each["Type"] == kind}


@pytest.mark.parametrize("parameters", ["", "TrafficShift=AllAtOnce"])
def test_every_physical_name_carries_the_stacks(parameters: str) -> None:
    found = translated(parameters)
    names = [
        (logical, key, json.dumps(value))
        for logical, each in found.items()
        for key, value in each.get("Properties", {}).items()
        if key.endswith("Name") and (each["Type"], key) not in NOT_MADE
    ]
    stack_ref = json.dumps({"Ref": "AWS::StackName"})
    of_stack = (STACK, '{"Ref": "AWS::StackId"}')  # a vault outlives its stack
    unnamed = [name for name in names if not any(each in name[2] for each in of_stack)]
    assert [name for name in unnamed if name[2] != stack_ref] == []
    assert len(names) > 15
    for kind, key in NAMED.items():
        assert all(key in each for each in of_type(found, kind).values())


def test_each_function_has_a_group_of_its_own_for_its_log_and_the_format_of_all() -> None:
    functions = of_type(translated(), "AWS::Lambda::Function")
    for name, each in functions.items():
        assert each["LoggingConfig"]["LogFormat"] == {"Fn::If": ["HasLambdaLines", "Text", "JSON"]}
        assert each["LoggingConfig"]["LogGroup"]["Ref"].endswith("Logs"), name


def test_schedules_have_no_name_because_it_would_be_the_same_in_every_stack() -> None:
    schedules = of_type(translated(), "AWS::Scheduler::Schedule").values()
    assert len(schedules) == SWEEPS
    assert [each for each in schedules if "Name" in each] == []


def test_everything_calls_the_alias() -> None:
    found = translated()
    aliases = set(of_type(found, "AWS::Lambda::Alias"))
    functions = of_type(found, "AWS::Lambda::Function")
    assert aliases == {f"{name}Aliaslive" for name in functions}
    integrations = of_type(found, "AWS::ApiGatewayV2::Integration").values()
    mappings = of_type(found, "AWS::Lambda::EventSourceMapping").values()
    permissions = of_type(found, "AWS::Lambda::Permission").values()
    schedules = of_type(found, "AWS::Scheduler::Schedule").values()
    callers = [each["IntegrationUri"] for each in integrations]
    callers += [each["FunctionName"] for each in (*mappings, *permissions)]
    callers += [each["Target"]["Arn"] for each in schedules]
    assert len(callers) == 3 + 2 + 3 + SWEEPS
    assert {each["Ref"] for each in callers} <= aliases
    [invoked] = of_type(found, "AWS::Lambda::EventInvokeConfig").values()
    assert invoked["Qualifier"] == "live"


def versions(**code: str) -> set[str]:
    return set(of_type(translated(**code), "AWS::Lambda::Version"))


def test_changed_code_and_a_changed_layer_make_new_versions_of_their_functions() -> None:
    before = versions()
    assert len(before) == 6
    assert not before & versions(functions="f2")
    assert not before & versions(CommonLayer="c2")  # in every function
    [kept] = before & versions(PayLayer="p2")
    assert kept.startswith("ApiFunctionVersion")


def test_an_upgrade_is_gradual_and_taken_back_by_the_alarms_on_what_fails() -> None:
    found = translated()
    groups = of_type(found, "AWS::CodeDeploy::DeploymentGroup")
    assert len(groups) == 6
    everywhere = ("AnswersFail", "UnforeseenErrors", "RequestsFail", "SessionsFail")
    own = {
        **{name: f"{name}FailsAlarm" for name in ("Api", "Pay", "Dashboard")},
        "Expirer": "SweepStandsStillAlarm",
        "WebhookSender": "SenderFailsAlarm",
    }
    for name, group in groups.items():
        alarms = [each["Name"]["Ref"] for each in group["AlarmConfiguration"]["Alarms"]]
        more = [alarm for function, alarm in own.items() if name.startswith(function)]
        assert alarms == [*(f"{each}Alarm" for each in everywhere), *more], name
        # A round a minute: a tenth of five rounds may be none.
        shift = "Linear10PercentEvery1Minute" if name.startswith("Expirer") else "Canary10Percent5M"
        assert shift in json.dumps(group["DeploymentConfigName"]), name
        assert "DEPLOYMENT_STOP_ON_ALARM" in group["AutoRollbackConfiguration"]["Events"]
    for alias in (each for each in found.values() if each["Type"] == "AWS::Lambda::Alias"):
        assert "CodeDeployLambdaAliasUpdate" in alias["UpdatePolicy"]


def test_all_at_once_is_without_codedeploy() -> None:
    found = translated("TrafficShift=AllAtOnce")
    assert not any(each["Type"].startswith("AWS::CodeDeploy") for each in found.values())
    assert len(of_type(found, "AWS::Lambda::Alias")) == 6


def test_the_senders_loop_is_meant() -> None:
    found = of_type(translated(), "AWS::Lambda::Function")
    loops = {name for name, each in found.items() if each.get("RecursiveLoop") == "Allow"}
    assert loops == {"WebhookSenderFunction"}


# --- what waits for what ---


@pytest.mark.parametrize("shift", ["Canary10Percent5Minutes", "AllAtOnce"])
def test_no_two_resources_wait_for_each_other_whatever_is_chosen(shift: str) -> None:
    seen, whole = 0, _translated(f"TrafficShift={shift}", ())
    for domain, address, wallets, boundary in product(
        ("", "pay.example.com"),
        ("", "https://cdn.example"),
        ("false", "true"),
        ("", "arn:aws:iam::aws:policy/boundary"),
    ):
        chosen = {
            "TrafficShift": shift,
            "DomainName": domain,
            "CertificateArn": "arn:certificate",
            "BaseUrl": address,
            "TestWallets": wallets,
            "PermissionsBoundary": boundary,
        }
        found = Decided(whole, chosen)
        assert found.refused() == []
        TopologicalSorter(found.needs()).prepare()  # raises CycleError
        assert not found.missing()
        roles = of_type(found.resources, "AWS::IAM::Role").values()
        bounded = {"Ref": "PermissionsBoundary"} if boundary else None
        assert [each for each in roles if each.get("PermissionsBoundary") != bounded] == []
        seen += 1
    assert seen == 16
