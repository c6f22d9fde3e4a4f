"""template.yaml against the code that it deploys."""

from __future__ import annotations

import importlib
import json
import string
from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from checkout.adapters.dynamo.index_keys import DUE_SHARDS
from checkout.settings import Settings
from sandbox.template import read, resources, routes, stack_name, template
from tests.support.protected import (
    APPROVE_WITHIN,
    CLEAN_UP_WITHIN,
    DELIVERY_LEASE,
    DELIVERY_TIMEOUT,
    LAST_CHECK,
    PREPARE_WITHIN,
    RECONCILE_WITHIN,
)

REPOSITORY = Path(__file__).parent.parent.parent
FUNCTIONS = resources("AWS::Serverless::Function")
TABLES = resources("AWS::DynamoDB::Table")
BY_PATH = {
    "": "PayFunction",
    "api": "ApiFunction",
    "buy": "PayFunction",
    "clients": "ApiFunction",
    "dashboard": "DashboardFunction",
    "docs": "ApiFunction",
    "pay": "PayFunction",
    "v1": "ApiFunction",
}
# For developers' machines only; Lambda has the first in the secret and refuses the others.
LOCAL_ONLY = {"ENCRYPTION_KEY", "ALLOW_LOOPBACK_WALLETS", "EXTRA_CA_FILE"}
# Written a second time: a function that lacks one of these decides by its default.
EVERYWHERE = {"BASE_URL", "DATABASE_URL", "RETENTION_DAYS", "TEST_WALLETS"}
QUEUES = {"EVENTS_QUEUE_URL", "TASKS_QUEUE_URL"}
ENVIRONMENTS = {
    "ApiFunction": QUEUES | {"CLIENT_LIMIT", "DETAILS_KMS_KEY", "EDGE_SECRET"},
    "PayFunction": QUEUES
    | {"CLIENT_LIMIT", "COMPLETION_POLICY", "EDGE_SECRET", "ENCRYPTION_KEY_SECRET"}
    | {"RECEIPT_SENDER", "WALLET_PROVIDERS"},
    "DashboardFunction": QUEUES
    | {"DETAILS_KMS_KEY", "RECEIPT_SENDER", "SIGN_UP"}
    | {"CLIENT_LIMIT", "EDGE_SECRET", "ENCRYPTION_KEY_SECRET", "WALLET_PROVIDERS"},
    "ExpirerFunction": QUEUES | {"COMPLETION_POLICY", "ENCRYPTION_KEY_SECRET", "RECEIPT_SENDER"},
    "TasksFunction": {"ENCRYPTION_KEY_SECRET"},
    "WebhookSenderFunction": {"ENCRYPTION_KEY_SECRET", "EVENTS_QUEUE_URL"},
}
# The services through which a function uses the stack's key.
KEEPS = {"dynamodb", "sqs"}
USES_KEY = {name: KEEPS | {"secretsmanager"} for name in ENVIRONMENTS} | {"ApiFunction": KEEPS}


def _environment(function: dict[str, Any]) -> set[str]:
    everywhere = template()["Globals"]["Function"]["Environment"]["Variables"]
    own = function.get("Environment", {}).get("Variables", {})
    return {*everywhere, *own}


def _statements() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, function in FUNCTIONS.items():
        for policy in function["Policies"]:
            for statement in policy["Statement"]:
                yield name, statement


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_handler_imports(name: str) -> None:
    module, _, attribute = FUNCTIONS[name]["Handler"].rpartition(".")
    assert callable(getattr(importlib.import_module(module), attribute))


def test_the_environment_and_the_settings_have_the_same_names() -> None:
    settings = {field.name.upper() for field in fields(Settings)}
    assert set().union(EVERYWHERE, *ENVIRONMENTS.values()) == settings - LOCAL_ONLY


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_has_the_settings_that_it_decides_by(name: str) -> None:
    assert _environment(FUNCTIONS[name]) == EVERYWHERE | ENVIRONMENTS[name]


def test_a_setting_is_the_same_in_every_function() -> None:
    own = [each["Environment"]["Variables"].items() for each in FUNCTIONS.values()]
    found = {(name, json.dumps(value)) for variables in own for name, value in variables}
    assert len(found) == len({name for name, _ in found})


def test_without_a_choice_a_session_is_complete_when_its_money_is_there() -> None:
    policy = template()["Parameters"]["CompletionPolicy"]
    assert policy["Default"] == "received"


def test_no_policy_allows_everything_of_a_kind() -> None:
    for name, statement in _statements():
        assert statement["Effect"] == "Allow"
        for action in _list(statement["Action"]):
            assert "*" not in action, f"{name}: {action}"
        for resource in _list(statement["Resource"]):
            assert resource != "*", f"{name}: {statement['Sid']}"


def test_receipts_are_sent_from_their_address_only_and_only_if_it_is_set() -> None:
    policy = template()["Resources"]["ReceiptsPolicy"]
    assert policy["Condition"] == "HasReceipts"
    senders = ("Pay", "Dashboard", "Expirer")
    roles = [{"Ref": f"{each}FunctionRole"} for each in senders]
    assert policy["Properties"]["Roles"] == roles
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Action"]) == ("Allow", "ses:SendEmail")
    assert statement["Condition"] == {"StringEquals": {"ses:FromAddress": {"Ref": "ReceiptSender"}}}
    sets = {"Fn::Not": [{"Fn::Equals": [{"Ref": "ReceiptSender"}, ""]}]}
    assert template()["Conditions"]["HasReceipts"] == sets
    assert template()["Parameters"]["ReceiptSender"]["Default"] == ""


def test_the_stacks_key_is_used_through_the_services_that_hold_what_it_encrypts() -> None:
    used = {}
    for name, statement in _statements():
        of_key = any(action.startswith("kms:") for action in _list(statement["Action"]))
        if of_key and statement["Sid"] != "CustomerDetails":
            used[name] = statement["Condition"]
    through = "{}.${{AWS::Region}}.amazonaws.com"
    assert used == {
        name: {
            "StringEquals": {
                "kms:ViaService": [{"Fn::Sub": through.format(s)} for s in sorted(keepers)]
            }
        }
        for name, keepers in USES_KEY.items()
    }


def test_the_api_opens_only_customers_details_and_the_dashboard_only_encrypts_them() -> None:
    direct = {
        name: (statement["Action"], statement["Resource"], statement["Condition"])
        for name, statement in _statements()
        if "kms:" in str(statement["Action"]) and "kms:ViaService" not in str(statement)
    }
    key = {"Fn::GetAtt": "StackKey.Arn"}
    purpose = {"StringEquals": {"kms:EncryptionContext:purpose": "customer-details"}}
    assert direct == {
        "ApiFunction": ("kms:Decrypt", key, purpose),
        "DashboardFunction": ("kms:Encrypt", key, purpose),
    }


def test_the_sender_reads_sessions_and_nothing_else_of_their_table() -> None:
    [statement] = (
        statement
        for name, statement in _statements()
        if name == "WebhookSenderFunction" and "CheckoutSessions" in str(statement["Resource"])
    )
    assert statement["Action"] == "dynamodb:GetItem"
    rows = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["cs_*"]}}
    assert statement["Condition"] == rows


def test_functions_neither_scan_nor_delete_records_and_only_consumers_read_queues() -> None:
    """Restrict grants in general; `tests.aws_calls` compares each one with the calls made."""
    consumers = {"TasksFunction", "WebhookSenderFunction"}
    of_mappings = {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}
    for name, statement in _statements():
        actions = set(_list(statement["Action"]))
        assert "dynamodb:Scan" not in actions
        if "dynamodb:DeleteItem" in actions:  # a search row of metadata that was changed
            assert (name, actions) == ("ApiFunction", {"dynamodb:DeleteItem"})
            rows = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["search#*"]}}
            assert statement["Condition"] == rows
        assert name in consumers or not actions & of_mappings
        if "dynamodb:Query" in actions:
            assert all("/index/" in each["Fn::Sub"] for each in _list(statement["Resource"]))


def test_the_scheduled_job_runs_each_minute_has_no_address_and_time_for_its_last_look() -> None:
    function = FUNCTIONS["ExpirerFunction"]
    [schedule] = function["Events"].values()
    assert schedule["Type"] == "ScheduleV2"
    assert schedule["Properties"]["ScheduleExpression"] == "rate(1 minute)"
    assert schedule["Properties"]["Input"] == {"Fn::Sub": '{"part": 0, "of": ${SweepParts}}'}
    assert function["Timeout"] > LAST_CHECK.total_seconds() + 45
    assert LAST_CHECK > RECONCILE_WITHIN
    assert not {route.function for route in routes()} & {"ExpirerFunction", "TasksFunction"}


def test_the_schedules_of_the_sweep_have_each_part_once() -> None:
    _, most = template()["Parameters"]["SweepParts"]["AllowedValues"]
    others = resources("AWS::Scheduler::Schedule").values()
    targets = [each["Target"] for each in others]
    assert {each["ScheduleExpression"] for each in others} == {"rate(1 minute)"}
    assert [json.loads(each["Input"]) for each in targets] == [
        {"part": number, "of": most} for number in range(1, most)
    ]
    assert most == DUE_SHARDS, "with more, some would have no shard"


@pytest.mark.parametrize(
    ("queue", "function"), [("Tasks", "TasksFunction"), ("Events", "WebhookSenderFunction")]
)
def test_each_queue_reaches_its_function_and_leaves_it_its_time(queue: str, function: str) -> None:
    mapping = resources("AWS::Lambda::EventSourceMapping")[f"{queue}Mapping"]
    assert mapping["FunctionName"] == {"Ref": f"{function}.Alias"}
    assert mapping["EventSourceArn"] == {"Fn::GetAtt": f"{queue}Queue.Arn"}
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    visible_after = resources("AWS::SQS::Queue")[f"{queue}Queue"]["VisibilityTimeout"]
    assert visible_after == 6 * FUNCTIONS[function]["Timeout"]


def test_a_payment_ends_and_is_answered_before_the_timeout_of_its_function() -> None:
    """Beside its deadline it may wait for the store: test_stalled_store.py says how long."""
    timeout = FUNCTIONS["PayFunction"]["Timeout"]
    assert APPROVE_WITHIN.total_seconds() + 8 < timeout < 30, "API Gateway's limit"
    assert PREPARE_WITHIN < APPROVE_WITHIN


def test_a_batch_of_tasks_and_an_attempt_of_a_webhook_end_before_the_timeout() -> None:
    batch = resources("AWS::Lambda::EventSourceMapping")["TasksMapping"]["BatchSize"]
    assert batch * CLEAN_UP_WITHIN.total_seconds() < FUNCTIONS["TasksFunction"]["Timeout"]
    sender = timedelta(seconds=FUNCTIONS["WebhookSenderFunction"]["Timeout"])
    assert 2 * DELIVERY_TIMEOUT < sender <= DELIVERY_LEASE


def _keys(schema: list[dict[str, str]]) -> tuple[str, ...]:
    return tuple(part["AttributeName"] for part in schema)


def test_the_tables_have_the_keys_that_the_stores_use() -> None:
    found = {
        stack_name(table["TableName"], ""): (
            _keys(table["KeySchema"]),
            {
                index["IndexName"]: (_keys(index["KeySchema"]), index["Projection"])
                for index in table.get("GlobalSecondaryIndexes", [])
            },
            table.get("TimeToLiveSpecification", {}).get("AttributeName"),
        )
        for table in TABLES.values()
    }
    everything, keys_only = {"ProjectionType": "ALL"}, {"ProjectionType": "KEYS_ONLY"}
    with_merchant = {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["merchant", "next_at"]}
    listed = {"by_merchant": (("merchant", "created_key"), keys_only)}
    due = ("due_shard", "due_at")
    assert found == {
        "-merchants": (("id",), {}, None),
        "-api_keys": (("hash",), {"by_merchant": (("merchant", "id"), everything)}, "ttl"),
        "-checkout_sessions": (
            ("id",),
            {
                **listed,
                "due": (due, keys_only),
                "by_search": (("search_key", "created_key"), keys_only),
                "uncounted": (("uncounted_shard", "uncounted_at"), keys_only),
            },
            "ttl",
        ),
        "-idempotency_keys": (("key",), {}, "ttl"),
        "-webhook_events": (("id",), {**listed, "due": (due, with_merchant)}, "ttl"),
    }


@pytest.mark.parametrize("name", TABLES)
def test_each_table_is_recoverable_encrypted_protected_and_on_demand(name: str) -> None:
    table = TABLES[name]
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["SSESpecification"] == {
        "SSEEnabled": True,
        "SSEType": "KMS",
        "KMSMasterKeyId": {"Fn::GetAtt": "StackKey.Arn"},
    }
    assert table["DeletionProtectionEnabled"] == {"Ref": "DeletionProtection"}


def test_the_key_rotates() -> None:
    assert resources("AWS::KMS::Key")["StackKey"]["EnableKeyRotation"] is True


def test_the_generated_secret_is_64_hexadecimal_characters() -> None:
    secret = resources("AWS::SecretsManager::Secret")["EncryptionKey"]["GenerateSecretString"]
    everything = {*string.ascii_letters, *string.digits, *string.punctuation}
    assert everything - set(secret["ExcludeCharacters"]) == set("0123456789abcdef")
    assert secret["PasswordLength"] == 64
    assert secret["RequireEachIncludedType"] is False
    # Written out: any change of these properties makes CloudFormation generate another secret in
    # each deployed stack, and no stored key opens any more. The stack policy does not see it.
    assert secret == {
        "PasswordLength": 64,
        "ExcludeCharacters": "ghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
        "RequireEachIncludedType": False,
    }


def test_the_routes_reach_the_function_of_their_path_and_throttled_ones_exist() -> None:
    table = {route.key: route.function for route in routes()}
    for key, function in table.items():
        path = key.partition(" ")[2]
        # /v1 is of `api`, but for what needs the dashboard's rights.
        owner = "dashboard" if path.startswith("/v1/webhook_endpoints") else path.split("/")[1]
        assert function == BY_PATH[owner]
    (stage,) = resources("AWS::ApiGatewayV2::Stage").values()
    assert stage["StageName"] == "$default"
    assert set(stage["RouteSettings"]) <= set(table)


@pytest.mark.parametrize("name", ["CommonLayer", "PayLayer"])
def test_each_layer_is_built_for_the_functions_processor(name: str) -> None:
    layer = template()["Resources"][name]
    assert layer["Metadata"]["BuildArchitecture"] == {"Ref": "Arch"}
    assert (REPOSITORY / layer["Properties"]["ContentUri"] / "requirements.txt").exists()


def test_the_template_has_no_yaml_aliases_which_cloudformation_refuses() -> None:
    files = (REPOSITORY / "template.yaml", *(REPOSITORY / "operations").glob("*.yaml"))
    lines = [line for each in files for line in each.read_text("utf-8").splitlines()]
    assert not [line for line in lines if line.partition(": ")[2].startswith(("&", "*"))]


@pytest.mark.parametrize("function", ["ApiFunction", "PayFunction"])
def test_neither_api_nor_page_reads_or_writes_a_sign_in_or_a_challenge(function: str) -> None:
    """They lie in the table of idempotency keys (tests/adapters/test_people.py)."""
    [policy] = FUNCTIONS[function]["Policies"]
    [statement] = [
        each for each in policy["Statement"] if "IdempotencyKeysTable" in str(each["Resource"])
    ]
    condition = {"dynamodb:LeadingKeys": ["sign-in#*", "challenge#*"]}
    assert statement.get("Condition") == {"ForAllValues:StringNotLike": condition}


@pytest.mark.parametrize(
    ("function", "rows"), [("ApiFunction", ["note#*", "withdrawal#*"]), ("PayFunction", ["note#*"])]
)
def test_no_private_note_is_read_or_written_by_api_or_page_nor_a_withdrawal_by_the_api(
    function: str, rows: list[str]
) -> None:
    """They lie beside the sessions (tests/adapters/test_notes.py)."""
    [policy] = FUNCTIONS[function]["Policies"]
    [statement] = [each for each in policy["Statement"] if each["Sid"] == "Sessions"]
    assert statement.get("Condition") == {
        "ForAllValues:StringNotLike": {"dynamodb:LeadingKeys": rows}
    }


def test_the_edge_takes_no_key_without_tls_and_answers_as_the_api_does() -> None:
    edge = read(REPOSITORY / "operations" / "edge.yaml")["Resources"]["Distribution"]["Properties"]
    found = edge["DistributionConfig"]
    usual = {**found["DefaultCacheBehavior"], "ViewerProtocolPolicy": "https-only"}
    *api, clients = found["CacheBehaviors"]
    assert api == [{**usual, "PathPattern": pattern} for pattern in ("/api/*", "/v1/*")]
    assert found["DefaultCacheBehavior"]["ViewerProtocolPolicy"] == "redirect-to-https"
    # AWS's managed policy that keeps what the answer lets it keep.
    kept = {"CachePolicyId": "658327ea-f89d-4fab-a63d-7e88639e58f6"}
    read_only = {"AllowedMethods": ["GET", "HEAD"], "PathPattern": "/clients/*"}
    assert clients == {**usual, **kept, **read_only}
