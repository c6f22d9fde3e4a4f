"""Any number of stacks in one account and region, and upgrades that move them as a whole.

artifacts/test_translated.py shows names, versions and what is called, of the translated template.
"""

from __future__ import annotations

import json
import re
import string
from importlib import import_module
from typing import Any

import pytest

from sandbox.template import TEMPLATE, read, resources, routes, template

# Secret, or longer than a description has room for: only `Revision` tells that they changed.
BY_REVISION = {"WalletProviders", "ReceiptSender", "SignUp", "EdgeProof", "LambdaLines"}
BY_REVISION |= {"TestWallets"}
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

EDGE = read(TEMPLATE.parent / "operations" / "edge.yaml")
ACL = EDGE["Resources"]["WebAcl"]["Properties"]
DISTRIBUTION = EDGE["Resources"]["Distribution"]["Properties"]["DistributionConfig"]
WALLETS = read(TEMPLATE.parent / "operations" / "test-wallets.yaml")


def test_each_stateful_resource_says_what_becomes_of_it() -> None:
    for name, each in [x for of in (template(), EDGE, WALLETS) for x in of["Resources"].items()]:
        if each["Type"] in STATEFUL:
            assert "DeletionPolicy" in each, name
            assert "UpdateReplacePolicy" in each, name


@pytest.mark.parametrize("kind", ["AWS::DynamoDB::Table", "AWS::KMS::Key"])
def test_data_outlives_its_stack_but_not_a_first_deployment_that_fails(kind: str) -> None:
    kept = [
        each
        for name, each in template()["Resources"].items()
        if each["Type"] == kind and name in resources(kind)
    ]
    kept.append(template()["Resources"]["EncryptionKey"])
    for each in kept:
        assert each["DeletionPolicy"] == "RetainExceptOnCreate"
        assert each["UpdateReplacePolicy"] == "Retain"


def test_an_arn_that_cannot_be_one_is_refused_before_anything_is_created() -> None:
    for name, each in template()["Parameters"].items():
        if name.endswith("Arn"):
            assert each["AllowedPattern"].startswith("^(arn:aws"), name


# --- versions and aliases ---


def test_an_upgrade_is_gradual_and_taken_back_by_the_alarms_on_what_fails() -> None:
    """tests/template/test_bad_releases.py shows that they see each route that fails."""
    shift = template()["Globals"]["Function"]["DeploymentPreference"]
    assert shift["Alarms"] == [
        {"Ref": f"{name}Alarm"}
        for name in ("AnswersFail", "UnforeseenErrors", "RequestsFail", "SessionsFail")
    ]
    assert template()["Parameters"]["TrafficShift"]["Default"].startswith("Canary")


def test_a_changed_parameter_makes_new_versions_through_their_description() -> None:
    """Without it, a deployment that changes a parameter only would leave the alias where it is."""
    everywhere = template()["Globals"]["Function"]
    for name, function in resources("AWS::Serverless::Function").items():
        assert function["VersionDescription"] == everywhere["Description"], name
        assert function["AutoPublishAliasAllProperties"] is True, name
        assert "Description" not in function
        own = {key: value for key, value in function.items() if key not in UNVERSIONED}
        for parameter in parameters_in([own, everywhere]) - BY_REVISION:
            assert f"${{{parameter}}}" in everywhere["Description"]["Fn::Sub"], parameter
    assert "${Revision}" in everywhere["Description"]["Fn::Sub"]


def test_the_description_of_a_version_fits_with_the_longest_parameters() -> None:
    """Lambda allows 256 characters."""
    longest = {
        "Arch": len("x86_64"),
        "CompletionPolicy": len("instructed"),
        "BaseUrl": 90,
        "DomainName": 90,
        "ClientLimit": len("999999"),
        "RetentionDays": len("36500"),
        "SnapStart": len("PublishedVersions"),
        "Revision": 16,
    }
    parameters = template()["Parameters"]
    assert parameters["BaseUrl"]["MaxLength"] == parameters["DomainName"]["MaxLength"] == 90
    assert parameters["Revision"]["AllowedPattern"].endswith("{0,16}$")
    written = template()["Globals"]["Function"]["Description"]["Fn::Sub"]
    assert written == " ".join(f"${{{name}}}" for name in longest)
    assert sum(longest.values()) + len(longest) - 1 <= 256


def parameters_in(value: Any) -> set[str]:
    """Return the parameters that a value depends on, also through conditions."""
    conditions = template()["Conditions"]
    if isinstance(value, list):
        return set().union(*map(parameters_in, value))
    if not isinstance(value, dict):
        return set()
    found: set[str] = set()
    for key, inner in value.items():
        if key in ("DeploymentPreference", "PermissionsBoundary"):  # of roles, not of versions
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


def test_an_edge_is_a_stack_of_its_own_in_the_region_of_web_acls_and_certificates() -> None:
    kinds = {each["Type"] for each in template()["Resources"].values()}
    assert not [kind for kind in kinds if kind.startswith(("AWS::CloudFront", "AWS::WAFv2"))]
    assert EDGE["Rules"]["OwnRegion"]["Assertions"][0]["Assert"] == {
        "Fn::Equals": [{"Ref": "AWS::Region"}, "us-east-1"]
    }
    needed = {name for name, each in EDGE["Parameters"].items() if "Default" not in each}
    assert needed == {"HttpApiEndpoint"}
    # Its outputs are values of the stage's parameters.
    assert template()["Parameters"].keys() >= {"BaseUrl", "EdgeProof"}
    assert EDGE["Outputs"].keys() >= {"BaseUrl", "ProofSecret"}


def test_the_edge_proves_itself_and_limits_each_address() -> None:
    [origin] = DISTRIBUTION["Origins"]
    [header] = origin["OriginCustomHeaders"]
    own = {"Fn::Sub": "{{resolve:secretsmanager:${Proof}:SecretString}}"}
    assert header == {
        "HeaderName": "Edge-Secret",
        "HeaderValue": {"Fn::If": ["HasOwnProof", own, {"Ref": "EdgeProof"}]},
    }
    assert EDGE["Conditions"]["HasOwnProof"] == {"Fn::Equals": [{"Ref": "EdgeProof"}, ""]}
    functions = resources("AWS::Serverless::Function").values()
    accepted = [each["Environment"]["Variables"].get("EDGE_SECRET") for each in functions]
    assert [each for each in accepted if each] == [{"Ref": "EdgeProof"}] * 3
    # A sample of requests would contain sessions' addresses.
    for each in (ACL, *ACL["Rules"]):
        assert each["VisibilityConfig"]["SampledRequestsEnabled"] is False
    limits = [rule["Statement"]["RateBasedStatement"] for rule in ACL["Rules"]]
    assert [each["AggregateKeyType"] for each in limits] == ["IP", "IP"]


def test_the_edges_secret_is_there_in_the_region_of_the_stage() -> None:
    secret = EDGE["Resources"]["Proof"]["Properties"]
    copy = [{"Region": {"Ref": "Region"}}]
    assert secret["ReplicaRegions"] == {"Fn::If": ["IsElsewhere", copy, {"Ref": "AWS::NoValue"}]}
    text, _ = EDGE["Outputs"]["ProofSecret"]["Value"]["Fn::Sub"]
    assert text.startswith("arn:${AWS::Partition}:secretsmanager:${Region}:")


def test_the_edge_can_have_the_certificate_before_the_domain_moves_to_it() -> None:
    assert DISTRIBUTION["ViewerCertificate"]["Fn::If"][0] == "HasCertificate"
    assert DISTRIBUTION["Aliases"]["Fn::If"][0] == "HasDomain"


def test_a_secret_of_the_edge_has_no_comma_which_would_make_two_of_it() -> None:
    made = EDGE["Resources"]["Proof"]["Properties"]["GenerateSecretString"]
    # The emulator knows the second only.
    assert made["ExcludePunctuation"] is True
    assert set(made["ExcludeCharacters"]) == set(string.punctuation)


def test_a_merchants_server_has_a_limit_of_its_own_at_the_edge() -> None:
    others, api = (rule["Statement"]["RateBasedStatement"] for rule in ACL["Rules"])
    of_the_api = api["ScopeDownStatement"]
    assert others["ScopeDownStatement"] == {"NotStatement": {"Statement": of_the_api}}
    matches = [each["ByteMatchStatement"] for each in of_the_api["OrStatement"]["Statements"]]
    assert {each["PositionalConstraint"] for each in matches} == {"STARTS_WITH"}
    prefixes = tuple(each["SearchString"] for each in matches)
    routes = [str(each["RouteKey"]) for each in resources("AWS::ApiGatewayV2::Route").values()]
    paths = {route.split(" ")[1] for route in routes if " " in route}
    limited = {path for path in paths if not path.startswith(prefixes)}
    assert limited <= {
        path
        for path in paths
        if path == "/" or path.startswith(("/pay", "/buy", "/dash", "/docs", "/api/{"))
    }
    defaults = {name: each.get("Default") for name, each in EDGE["Parameters"].items()}
    assert (others["Limit"], api["Limit"]) == ({"Ref": "EdgeRequests"}, {"Ref": "EdgeApiRequests"})
    # As many as the throttle of a route lets through: 200 a second, for five minutes.
    assert int(defaults["EdgeApiRequests"]) >= 200 * 300


def test_the_edge_refuses_a_merchants_server_as_the_api_does() -> None:
    """Stripe's libraries take a 429 without JSON for an unknown error, and give up."""
    [of_the_api] = [each for each in ACL["Rules"] if each["Name"] == "api-requests-by-address"]
    answer = of_the_api["Action"]["Block"]["CustomResponse"]
    headers = {each["Name"]: each["Value"] for each in answer["ResponseHeaders"]}
    assert (answer["ResponseCode"], headers["Stripe-Should-Retry"]) == (429, "true")
    assert int(headers["Retry-After"]) == 60
    body = ACL["CustomResponseBodies"][answer["CustomResponseBodyKey"]]
    assert body["ContentType"] == "APPLICATION_JSON"
    error = json.loads(body["Content"])["error"]
    assert (error["type"], error["code"]) == ("rate_limit_error", "rate_limited")
    assert error["message"]


def test_the_direct_address_is_closed_where_a_domain_of_its_own_replaces_it() -> None:
    [api] = resources("AWS::ApiGatewayV2::Api").values()
    assert api["DisableExecuteApiEndpoint"] == {"Fn::If": ["HasDomain", True, False]}


def test_each_function_with_routes_may_be_called_by_the_api_and_by_nobody_else() -> None:
    api = "execute-api:${AWS::Region}:${AWS::AccountId}:${HttpApi}/*"
    assert list(resources("AWS::Lambda::Permission").values()) == [
        {
            "FunctionName": {"Ref": f"{function}.Alias"},
            "Action": "lambda:InvokeFunction",
            "Principal": "apigateway.amazonaws.com",
            "SourceArn": {"Fn::Sub": f"arn:${{AWS::Partition}}:{api}"},
        }
        for function in ("ApiFunction", "PayFunction", "DashboardFunction")
    ]
    assert {route.function for route in routes()} == {
        "ApiFunction",
        "PayFunction",
        "DashboardFunction",
    }


# AWS: "Custom headers that CloudFront can't add to origin requests", and "Restrictions on all edge
# functions". The emulator adds them all.
REFUSED_BY_CLOUDFRONT = re.compile(
    r"(?:x-(?:amz-|amzn-|edge-|accel-|cache$|real-ip$|forwarded-proto$)|if-|proxy-)"
    r"|(?:cache-control|connection|content-length|cookie|expect|host|keep-alive|max-forwards|pragma"
    r"|range|request-range|te|trailer|transfer-encoding|upgrade|via)$",
    re.IGNORECASE,
)


def test_the_edge_adds_no_header_that_cloudfront_refuses_to_add() -> None:
    assert REFUSED_BY_CLOUDFRONT.match("X-Edge-Secret")
    [origin] = DISTRIBUTION["Origins"]
    added = [header["HeaderName"] for header in origin["OriginCustomHeaders"]]
    assert added == ["Edge-Secret"]
    assert not REFUSED_BY_CLOUDFRONT.match(added[0])


# --- roles ---


def test_every_role_has_the_permissions_boundary_if_there_is_one() -> None:
    boundary = {"Fn::If": ["HasBoundary", {"Ref": "PermissionsBoundary"}, {"Ref": "AWS::NoValue"}]}
    for each in (template(), WALLETS):
        named = {"Fn::Equals": [{"Ref": "PermissionsBoundary"}, ""]}
        assert each["Conditions"]["HasBoundary"] == {"Fn::Not": [named]}
        roles = [x for x in each["Resources"].values() if x["Type"] == "AWS::IAM::Role"]
        assert roles
        assert [x["Properties"].get("PermissionsBoundary") for x in roles] == [boundary] * len(
            roles
        )
    # artifacts/test_translated.py shows the roles that SAM adds.
    assert template()["Globals"]["Function"]["PermissionsBoundary"] == boundary


# --- queues ---


def test_no_queue_takes_a_request_without_tls() -> None:
    [policy] = resources("AWS::SQS::QueuePolicy").values()
    assert policy["Queues"] == [{"Ref": name} for name in resources("AWS::SQS::Queue")]
    [statement] = policy["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Principal"]) == ("Deny", "*")
    assert (statement["Action"], statement["Resource"]) == ("sqs:*", "*")
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


# --- the log ---


def test_lambda_writes_its_own_lines_unless_the_operator_turns_them_off() -> None:
    """Our lines are the same in both cases; failures and time-outs are above WARN."""
    parameter = template()["Parameters"]["LambdaLines"]
    assert (parameter["Default"], parameter["AllowedValues"]) == ("true", ["true", "false"])
    logging = template()["Globals"]["Function"]["LoggingConfig"]
    nothing = {"Ref": "AWS::NoValue"}
    assert {name: each["Fn::If"] for name, each in logging.items()} == {
        "LogFormat": ["HasLambdaLines", "Text", "JSON"],
        "SystemLogLevel": ["HasLambdaLines", nothing, "WARN"],
        "ApplicationLogLevel": ["HasLambdaLines", nothing, "TRACE"],
    }
    for name, function in resources("AWS::Serverless::Function").items():
        assert set(function["LoggingConfig"]) == {"LogGroup"}, name


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


# --- a test stage ---


def test_nothing_of_a_test_stages_wallets_is_in_the_products_template() -> None:
    assert template()["Parameters"]["TestWallets"]["Default"] == "false"
    condition = {"Fn::Equals": [{"Ref": "TestWallets"}, "true"]}
    assert template()["Conditions"]["HasTestWallets"] == condition
    assert "test-wallets" not in json.dumps(template()["Resources"])
    kinds = sorted(each["Type"] for each in WALLETS["Resources"].values())
    assert kinds == [
        "AWS::ApiGatewayV2::Integration",
        "AWS::ApiGatewayV2::Route",
        "AWS::ApiGatewayV2::Route",
        "AWS::DynamoDB::Table",
        "AWS::IAM::Role",
        "AWS::Lambda::Function",
        "AWS::Lambda::Permission",
        "AWS::Logs::LogGroup",
    ]
    for name in ("HttpApi", "Layers"):  # what they need of the stage
        assert template()["Outputs"][name]["Condition"] == "HasTestWallets"


def test_a_test_stages_wallets_have_a_role_for_their_own_table_and_log_and_nothing_else() -> None:
    of_stage = WALLETS["Resources"]
    [policy] = of_stage["TestWalletsRole"]["Properties"]["Policies"]
    allowed = {
        each["Resource"]["Fn::GetAtt"]: (each["Effect"], each["Action"])
        for each in policy["PolicyDocument"]["Statement"]
    }
    assert allowed == {
        "TestWalletsTable.Arn": ("Allow", ["dynamodb:GetItem", "dynamodb:PutItem"]),
        "TestWalletsLogs.Arn": ("Allow", ["logs:CreateLogStream", "logs:PutLogEvents"]),
    }
    function = of_stage["TestWalletsFunction"]["Properties"]
    assert function["Role"] == {"Fn::GetAtt": "TestWalletsRole.Arn"}
    variables = function["Environment"]["Variables"]
    assert set(variables) == {"TEST_WALLETS", "WALLETS_TABLE"}
    assert variables["WALLETS_TABLE"] == {"Ref": "TestWalletsTable"}
    assert callable(import_module("sandbox.wallets.function").handler)
    assert function["Handler"] == "sandbox.wallets.function.handler"
    assert 15 < function["Timeout"] < 30, "API Gateway's limit"


def test_the_product_and_the_wallets_of_a_test_stage_have_one_address_for_them() -> None:
    everywhere = template()["Globals"]["Function"]["Environment"]["Variables"]
    condition, address, otherwise = everywhere["TEST_WALLETS"]["Fn::If"]
    assert (condition, otherwise) == ("HasTestWallets", "")
    separator, (base, path) = address["Fn::Join"]
    assert (separator, path) == ("", "/test-wallets")
    assert base == everywhere["BASE_URL"] == template()["Outputs"]["BaseUrl"]["Value"]
    found = WALLETS["Resources"]
    own = found["TestWalletsFunction"]["Properties"]["Environment"]["Variables"]["TEST_WALLETS"]
    assert own == {"Fn::Sub": f"${{BaseUrl}}{path}"}
    route = found["TestWalletsRoute"]["Properties"]
    assert route["RouteKey"] == f"ANY {path}/{{proxy+}}"
    page = found["TestWalletsPageRoute"]["Properties"]
    assert page == route | {"RouteKey": f"ANY {path}"}


def test_play_money_leaves_with_its_stack() -> None:
    table = WALLETS["Resources"]["TestWalletsTable"]
    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Delete", "Delete")
    assert table["Properties"]["BillingMode"] == "PAY_PER_REQUEST"
    assert table["Properties"]["KeySchema"] == [{"AttributeName": "id", "KeyType": "HASH"}]
