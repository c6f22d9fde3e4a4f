"""Any number of stacks in one account and region, and upgrades that move them as a whole.

tests/artifacts/test_translated.py shows the same of the translated template.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from sandbox.template import TEMPLATE, read, resources, template

STACK = "${AWS::StackName}"
OWN = json.dumps({"Ref": "AWS::StackName"})
NAMED = {
    "AWS::ApiGatewayV2::Api": "Name",
    "AWS::CloudWatch::Dashboard": "DashboardName",
    "AWS::DynamoDB::Table": "TableName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::Serverless::LayerVersion": "LayerName",
    "AWS::WAFv2::WebACL": "Name",
}
# Secret, or longer than a description may be: only `Revision` tells that they changed.
BY_REVISION = {"WalletProviders", "ReceiptSender", "EdgeProof"}
# Properties of the function, and not of its versions.
UNVERSIONED = {
    "Events",
    "EventInvokeConfig",
    "Policies",
    "RecursiveLoop",
    "ReservedConcurrentExecutions",
}
STATEFUL = {
    "AWS::DynamoDB::Table",
    "AWS::KMS::Key",
    "AWS::Logs::LogGroup",
    "AWS::SQS::Queue",
    "AWS::SecretsManager::Secret",
}


def test_every_physical_name_carries_the_stacks() -> None:
    names = {
        (kind, logical): json.dumps(each[key])
        for kind, key in NAMED.items()
        for logical, each in resources(kind).items()
    }
    assert len(names) == 1 + 1 + 5 + 6 + 2 + 1
    assert {each for each, name in names.items() if STACK not in name and name != OWN} == set()


def test_only_known_kinds_of_resources_have_names() -> None:
    """CloudFormation invents the names of all others, with the stack's in them."""
    for logical, each in template()["Resources"].items():
        if each["Type"] not in NAMED:
            named = {key for key in each.get("Properties", {}) if key.endswith("Name")}
            own = {"DomainName", "FunctionName", "MetricName", "PolicyName", "StageName"}
            assert named <= own, logical


def test_the_schedule_has_no_name_because_it_would_be_the_same_in_every_stack() -> None:
    events = resources("AWS::Serverless::Function")["ExpirerFunction"]["Events"]
    assert all(each["Properties"]["OmitName"] is True for each in events.values())


def test_each_stateful_resource_says_what_becomes_of_it() -> None:
    for name, each in template()["Resources"].items():
        if each["Type"] in STATEFUL:
            assert "DeletionPolicy" in each, name
            assert "UpdateReplacePolicy" in each, name


@pytest.mark.parametrize("kind", ["AWS::DynamoDB::Table", "AWS::KMS::Key"])
def test_data_outlives_its_stack_but_not_a_first_deployment_that_fails(kind: str) -> None:
    kept = [each for each in template()["Resources"].values() if each["Type"] == kind]
    kept.append(template()["Resources"]["EncryptionKey"])
    for each in kept:
        assert each["DeletionPolicy"] == "RetainExceptOnCreate"
        assert each["UpdateReplacePolicy"] == "Retain"


def test_an_arn_that_cannot_be_one_is_refused_before_anything_is_created() -> None:
    for name, each in template()["Parameters"].items():
        if name.endswith("Arn"):
            assert each["AllowedPattern"].startswith("^(arn:aws"), name


# --- versions and aliases ---


def test_everything_calls_the_alias() -> None:
    integrations = resources("AWS::ApiGatewayV2::Integration").values()
    mappings = resources("AWS::Lambda::EventSourceMapping").values()
    permissions = resources("AWS::Lambda::Permission").values()
    callers = [each["IntegrationUri"]["Ref"] for each in integrations]
    callers += [each["FunctionName"]["Ref"] for each in (*mappings, *permissions)]
    assert len(callers) == len(integrations) + len(mappings) + len(permissions)
    assert all(each.endswith(".Alias") for each in callers)
    assert template()["Globals"]["Function"]["AutoPublishAlias"] == "live"


def test_a_changed_layer_alone_makes_new_versions() -> None:
    for layer in resources("AWS::Serverless::LayerVersion").values():
        assert layer["PublishLambdaVersion"] is True


def test_an_upgrade_is_gradual_and_taken_back_by_the_alarm_on_5xx() -> None:
    shift = template()["Globals"]["Function"]["DeploymentPreference"]
    assert shift["Alarms"] == [{"Ref": "AnswersFailAlarm"}]
    assert template()["Parameters"]["TrafficShift"]["Default"].startswith("Canary")


def test_a_changed_parameter_makes_new_versions_through_their_description() -> None:
    """Without it, a deployment that changes a parameter only would leave the alias where it is."""
    everywhere = template()["Globals"]["Function"]
    for name, function in resources("AWS::Serverless::Function").items():
        assert function["VersionDescription"] == everywhere["Description"], name
        assert function["AutoPublishAliasAllProperties"] is True
        assert "Description" not in function
        own = {key: value for key, value in function.items() if key not in UNVERSIONED}
        for parameter in parameters_in([own, everywhere]) - BY_REVISION:
            assert f"${{{parameter}}}" in everywhere["Description"]["Fn::Sub"], parameter
    assert "${Revision}" in everywhere["Description"]["Fn::Sub"]


def parameters_in(value: Any) -> set[str]:
    """Return the parameters that a value depends on, also through conditions."""
    conditions = template()["Conditions"]
    if isinstance(value, list):
        return set().union(*map(parameters_in, value))
    if not isinstance(value, dict):
        return set()
    found: set[str] = set()
    for key, inner in value.items():
        if key == "DeploymentPreference":
            continue
        if key == "Ref" and inner in template()["Parameters"]:
            found.add(inner)
        elif key == "Fn::Sub":
            text = inner if isinstance(inner, str) else inner[0]
            found |= {name for name in template()["Parameters"] if f"${{{name}}}" in text}
        elif key == "Fn::If":
            found |= parameters_in(conditions[inner[0]]) | parameters_in(inner[1:])
        elif key == "Condition":
            found |= parameters_in(conditions[inner])
        elif key != "Description":
            found |= parameters_in(inner)
    return found


def test_every_choice_of_a_traffic_shift_is_mapped() -> None:
    choices = template()["Parameters"]["TrafficShift"]["AllowedValues"]
    assert set(template()["Mappings"]["Shifts"]) == set(choices)


# --- concurrency ---


def test_nothing_is_reserved_unless_it_is_asked_for() -> None:
    """Accounts with a limit of ten executions can reserve none."""
    reserving = 0
    for function in resources("AWS::Serverless::Function").values():
        if "ReservedConcurrentExecutions" in function:
            condition, reserved, otherwise = function["ReservedConcurrentExecutions"]["Fn::If"]
            assert condition.startswith("Reserves")
            assert template()["Parameters"][reserved["Ref"]]["Default"] == 0
            assert otherwise == {"Ref": "AWS::NoValue"}
            reserving += 1
    assert reserving == 4
    for mapping in resources("AWS::Lambda::EventSourceMapping").values():
        limit = template()["Parameters"][mapping["ScalingConfig"]["MaximumConcurrency"]["Ref"]]
        assert 2 <= limit["Default"] <= 5  # of ten
        assert limit["MinValue"] == 2  # the least that SQS allows


# --- the edge ---


def test_the_edge_is_one_choice() -> None:
    edge = {
        name: each.get("Condition")
        for name, each in template()["Resources"].items()
        if each["Type"].startswith(("AWS::CloudFront", "AWS::WAFv2")) or name == "EdgeSecret"
    }
    assert edge == {"EdgeSecret": "HasEdge", "WebAcl": "HasWebAcl", "Distribution": "HasEdge"}
    assert template()["Parameters"]["Edge"]["Default"] == "false"


def test_the_edge_proves_itself_and_limits_each_address() -> None:
    [distribution] = resources("AWS::CloudFront::Distribution").values()
    [origin] = distribution["DistributionConfig"]["Origins"]
    [header] = origin["OriginCustomHeaders"]
    assert header["HeaderName"] == "X-Edge-Secret"
    assert "${EdgeSecret}" in header["HeaderValue"]["Fn::Sub"]
    [acl] = resources("AWS::WAFv2::WebACL").values()
    [rule] = acl["Rules"]
    assert rule["Statement"]["RateBasedStatement"]["AggregateKeyType"] == "IP"
    # A sample of requests would contain sessions' addresses.
    assert acl["VisibilityConfig"]["SampledRequestsEnabled"] is False
    assert rule["VisibilityConfig"]["SampledRequestsEnabled"] is False


def test_the_web_acl_of_other_regions_is_the_same() -> None:
    other = read(TEMPLATE.parent / "operations" / "web-acl.yaml")
    there, here = (each["Resources"]["WebAcl"]["Properties"] for each in (other, template()))
    assert there == here


def test_the_direct_address_is_closed_where_a_domain_of_its_own_replaces_it() -> None:
    [api] = resources("AWS::ApiGatewayV2::Api").values()
    assert api["DisableExecuteApiEndpoint"] == {"Fn::If": ["HasApiDomain", True, False]}


# --- the access log ---


def test_the_access_log_has_the_route_and_nothing_of_a_session() -> None:
    [stage] = resources("AWS::ApiGatewayV2::Stage").values()
    condition, log, _ = stage["AccessLogSettings"]["Fn::If"]
    assert condition == "HasAccessLog"
    line = json.loads(log["Format"])
    assert set(line.values()) == {
        "$context.requestTime",
        "$context.requestId",
        "$context.routeKey",
        "$context.status",
        "$context.responseLatency",
        "$context.integrationLatency",
        "$context.error.responseType",
    }
