"""Any number of stacks in one account and region, and upgrades that move them as a whole.

artifacts/test_translated.py shows names, versions and what is called, of the translated template.
"""

from __future__ import annotations

import json
import re
import string
from fnmatch import fnmatchcase
from importlib import import_module
from itertools import pairwise, product
from typing import Any

import pytest

from checkout.client_address import CLIENT_HEADER, proven
from sandbox.template import (
    TEMPLATE,
    Route,
    read,
    resources,
    routes,
    template,
    wallets_of_test_stage,
)

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

[EDGE] = resources("AWS::CloudFront::Distribution").values()
[ACL] = resources("AWS::WAFv2::WebACL").values()


def test_each_stateful_resource_says_what_becomes_of_it() -> None:
    for name, each in template()["Resources"].items():
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
        assert function["AutoPublishAliasAllProperties"] is True
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
        "Edge": len("false"),
        "EdgeSecrets": len("12"),
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
        if each["Type"].startswith(("AWS::CloudFront", "AWS::WAFv2")) or name.endswith("EdgeSecret")
    }
    assert edge == {
        "EdgeSecret": "HasFirstSecret",
        "OtherEdgeSecret": "HasSecondSecret",
        "WebAcl": "HasWebAcl",
        "Distribution": "HasEdge",
        "EdgeClient": "HasUrls",
    }
    assert template()["Parameters"]["Edge"]["Default"] == "false"


def test_the_edge_proves_itself_and_limits_each_address() -> None:
    origins = EDGE["DistributionConfig"]["Origins"]
    assert [each["Id"] for each in origins] == ["api", "pay", "dashboard"]
    [header] = origins[0]["OriginCustomHeaders"]
    assert [each["OriginCustomHeaders"] for each in origins] == [[header]] * 3
    assert header["HeaderName"] == "Edge-Secret"
    # A sample of requests would contain sessions' addresses.
    for each in (ACL, *ACL["Rules"]):
        assert each["VisibilityConfig"]["SampledRequestsEnabled"] is False
    assert [
        rule["Statement"]["RateBasedStatement"]["AggregateKeyType"] for rule in ACL["Rules"]
    ] == [
        "IP",
        "IP",
    ]


def of_the_edge(value: Any, **parameters: str) -> str:
    """Return a value of the template under these parameters. The secrets are `first`, `second`."""
    conditions = template()["Conditions"]

    def holds(condition: Any) -> bool:
        [(kind, inner)] = condition.items()
        if kind == "Condition":
            return holds(conditions[inner])
        if kind == "Fn::Equals":
            return bool(parameters[inner[0]["Ref"]] == inner[1])
        found = list(map(holds, inner))
        return {"Fn::Not": not found[0], "Fn::And": all(found), "Fn::Or": any(found)}[kind]

    [(kind, inner)] = value.items()
    if kind == "Fn::If":
        return of_the_edge(inner[1 if holds(conditions[inner[0]]) else 2], **parameters)
    if kind == "Ref":
        return parameters[inner]
    text = str(inner)
    for name, condition in (
        ("EdgeSecret", "HasFirstSecret"),
        ("OtherEdgeSecret", "HasSecondSecret"),
    ):
        reference = f"{{{{resolve:secretsmanager:${{{name}}}:SecretString}}}}"
        if reference in text:
            assert holds(conditions[condition]), f"{name} does not exist"
        text = text.replace(reference, {"EdgeSecret": "first"}.get(name, "second"))
    return text


def test_the_edges_secret_is_replaced_without_a_moment_in_which_requests_are_refused() -> None:
    """CloudFront and the functions change at some time each: each pair of a step must agree."""
    origin, *_ = EDGE["DistributionConfig"]["Origins"]
    header = origin["OriginCustomHeaders"][0]["HeaderValue"]
    steps = template()["Parameters"]["EdgeSecrets"]["AllowedValues"]
    assert steps == ["1", "12", "21", "2"]
    sent, accepted = [], []
    for step in steps:
        chosen = {"Edge": "true", "EdgeProof": "", "EdgeSecrets": step}
        sent.append(of_the_edge(header, **chosen))
        functions = resources("AWS::Serverless::Function").values()
        every = [each["Environment"]["Variables"].get("EDGE_SECRET") for each in functions]
        [found] = {of_the_edge(each, **chosen) for each in every if each is not None}
        accepted.append(found)
    for before, after in pairwise(range(4)):
        for edge, function in product((before, after), repeat=2):
            assert proven(sent[edge], accepted[function]), (steps[edge], steps[function])
    # At the end, the one that is replaced opens nothing, and it is deleted.
    assert not proven("first", accepted[3])
    assert not proven("second", accepted[0])
    assert not proven(sent[0], accepted[3])
    without = {"Edge": "false", "EdgeProof": "own,other", "EdgeSecrets": "1"}
    assert of_the_edge(every[0] or {}, **without) == "own,other"


@pytest.mark.parametrize("name", ["EdgeSecret", "OtherEdgeSecret"])
def test_a_secret_of_the_edge_has_no_comma_which_would_make_two_of_it(name: str) -> None:
    made = resources("AWS::SecretsManager::Secret")[name]["GenerateSecretString"]
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
    defaults = {name: each.get("Default") for name, each in template()["Parameters"].items()}
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


def test_the_web_acl_of_other_regions_is_the_same() -> None:
    other = read(TEMPLATE.parent / "operations" / "web-acl.yaml")
    there, here = (each["Resources"]["WebAcl"]["Properties"] for each in (other, template()))
    assert there == here


def test_the_direct_address_is_closed_where_a_domain_of_its_own_replaces_it() -> None:
    [api] = resources("AWS::ApiGatewayV2::Api").values()
    assert api["DisableExecuteApiEndpoint"] == {"Fn::If": ["ClosesApi", True, False]}
    replaced = [{"Condition": "HasApiDomain"}, {"Condition": "HasUrls"}]
    assert template()["Conditions"]["ClosesApi"] == {"Fn::Or": replaced}


# --- functions' URLs in place of the HTTP API: Edge=urls ---


def served(path: str) -> dict[str, Any]:
    """Return the behavior of the edge that serves a path."""
    config: dict[str, Any] = EDGE["DistributionConfig"]
    for each in config["CacheBehaviors"]:
        if fnmatchcase(path, each["PathPattern"]):
            return dict(each)
    return dict(config["DefaultCacheBehavior"])


@pytest.mark.parametrize("route", routes(), ids=lambda route: str(route.key))
def test_the_edge_sends_each_route_to_the_function_that_the_http_api_sends_it_to(
    route: Route,
) -> None:
    behavior = served(route.key.partition(" ")[2])
    assert f"{behavior['TargetOriginId'].capitalize()}Function" == route.function
    method = route.key.partition(" ")[0]
    read_only = route.key == "ANY /clients/{proxy+}"
    assert read_only or method in {*behavior["AllowedMethods"], "ANY"}


@pytest.mark.parametrize("function", ["Api", "Pay", "Dashboard"])
def test_a_functions_url_is_of_its_alias_and_open_to_the_edge_alone_by_its_secret(
    function: str,
) -> None:
    found = template()["Resources"]
    url = found[f"{function}Url"]
    assert (url["Condition"], url["DependsOn"]) == ("HasUrls", f"{function}FunctionAliaslive")
    # Not AWS_IAM: CloudFront's signature wants a hash of each body from browsers and shops, and
    # the header Authorization, in which keys of the API come.
    assert url["Properties"] == {
        "AuthType": "NONE",
        "Qualifier": "live",
        "TargetFunctionArn": {"Ref": f"{function}Function"},
    }
    alias = {"FunctionName": {"Ref": f"{function}Function.Alias"}, "Principal": "*"}
    assert found[f"{function}UrlPermission"]["Properties"] == alias | {
        "Action": "lambda:InvokeFunctionUrl",
        "FunctionUrlAuthType": "NONE",
    }
    assert found[f"{function}UrlInvocation"]["Properties"] == alias | {
        "Action": "lambda:InvokeFunction",
        "InvokedViaFunctionUrl": True,
    }
    variables = found[f"{function}Function"]["Properties"]["Environment"]["Variables"]
    chosen = {"Edge": "urls", "EdgeProof": "", "EdgeSecrets": "1"}
    assert of_the_edge(variables["EDGE_SECRET"], **chosen) == "first"
    origins = {each["Id"]: each for each in EDGE["DistributionConfig"]["Origins"]}
    condition, url_host, api_host = origins[function.lower()]["DomainName"]["Fn::If"]
    host = {"Fn::Split": ["/", {"Fn::GetAtt": f"{function}Url.FunctionUrl"}]}
    assert (condition, url_host) == ("HasUrls", {"Fn::Select": [2, host]})
    assert "${HttpApi}.execute-api" in api_host["Fn::Sub"]


def test_with_urls_the_edge_names_the_client_on_every_way() -> None:
    config = EDGE["DistributionConfig"]
    [function] = resources("AWS::CloudFront::Function").values()
    assert f"headers['{CLIENT_HEADER}'] = {{ value: event.viewer.ip }}" in function["FunctionCode"]
    called = {
        "EventType": "viewer-request",
        "FunctionARN": {"Fn::GetAtt": "EdgeClient.FunctionARN"},
    }
    for each in (*config["CacheBehaviors"], config["DefaultCacheBehavior"]):
        condition, associated, _ = each["FunctionAssociations"]["Fn::If"]
        assert (condition, associated) == ("HasUrls", [called])


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
    origins = EDGE["DistributionConfig"]["Origins"]
    added = [header["HeaderName"] for origin in origins for header in origin["OriginCustomHeaders"]]
    [function] = resources("AWS::CloudFront::Function").values()
    added += re.findall(r"headers\['([^']+)'\] =", function["FunctionCode"])
    assert set(added) == {"Edge-Secret", "edge-client"}
    assert [name for name in added if REFUSED_BY_CLOUDFRONT.match(name)] == []


def test_the_edges_function_has_a_name_of_its_own_in_the_account() -> None:
    """Functions of CloudFront are in no region: the same stack in another one has its own."""
    [function] = resources("AWS::CloudFront::Function").values()
    assert function["Name"] == {"Fn::Sub": "${AWS::StackName}-${AWS::Region}"}


def test_urls_want_a_domain_and_are_not_for_a_test_stage() -> None:
    rule = template()["Rules"]["UrlsAndDomain"]
    assert rule["RuleCondition"] == {"Fn::Equals": [{"Ref": "Edge"}, "urls"]}
    domain, wallets = (each["Assert"] for each in rule["Assertions"])
    assert domain == {"Fn::Not": [{"Fn::Equals": [{"Ref": "DomainName"}, ""]}]}
    assert wallets == {"Fn::Equals": [{"Ref": "TestWallets"}, "false"]}


def test_with_urls_the_alarm_on_refusals_is_on_the_same_share_of_the_functions_requests() -> None:
    found = resources("AWS::CloudWatch::Alarm")["RequestsRefusedAlarm"]
    condition, (share, *parts), nothing = found["Metrics"]["Fn::If"]
    assert (condition, nothing) == ("HasUrls", {"Ref": "AWS::NoValue"})
    assert share["Expression"] == "SUM([a, p, d]) / SUM([ar, pr, dr])"
    asked = {each["Id"]: each["MetricStat"]["Metric"] for each in parts}
    assert {name: each["MetricName"] for name, each in asked.items()} == {
        **dict.fromkeys(("a", "p", "d"), "Url4xxCount"),
        **dict.fromkeys(("ar", "pr", "dr"), "UrlRequestCount"),
    }
    functions = {"a": "ApiFunction", "p": "PayFunction", "d": "DashboardFunction"}
    for name, each in asked.items():
        [dimension] = each["Dimensions"]
        assert dimension == {"Name": "FunctionName", "Value": {"Ref": functions[name[0]]}}
    of_the_api = ("Namespace", "MetricName", "Dimensions", "Statistic", "Period")
    for name in of_the_api:
        assert found[name]["Fn::If"][:2] == ["HasUrls", {"Ref": "AWS::NoValue"}], name


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


def test_nothing_of_a_test_stages_wallets_is_there_unless_it_is_asked_for() -> None:
    assert template()["Parameters"]["TestWallets"]["Default"] == "false"
    condition = {"Fn::Equals": [{"Ref": "TestWallets"}, "true"]}
    assert template()["Conditions"]["HasTestWallets"] == condition
    kinds = sorted(each["Type"] for each in wallets_of_test_stage().values())
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
    named = {name for name in template()["Resources"] if name.startswith("TestWallets")}
    assert named == set(wallets_of_test_stage())


def test_a_test_stages_wallets_have_a_role_for_their_own_table_and_log_and_nothing_else() -> None:
    of_stage = wallets_of_test_stage()
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
    own = wallets_of_test_stage()["TestWalletsFunction"]["Properties"]
    assert own["Environment"]["Variables"]["TEST_WALLETS"] == address
    separator, (base, path) = address["Fn::Join"]
    assert (separator, path) == ("", "/test-wallets")
    assert base == everywhere["BASE_URL"]
    route = wallets_of_test_stage()["TestWalletsRoute"]["Properties"]
    assert route["RouteKey"] == f"ANY {path}/{{proxy+}}"
    page = wallets_of_test_stage()["TestWalletsPageRoute"]["Properties"]
    assert page == route | {"RouteKey": f"ANY {path}"}


def test_play_money_leaves_with_its_stack() -> None:
    table = wallets_of_test_stage()["TestWalletsTable"]
    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Delete", "Delete")
    assert table["Properties"]["BillingMode"] == "PAY_PER_REQUEST"
    assert table["Properties"]["KeySchema"] == [{"AttributeName": "id", "KeyType": "HASH"}]
