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

from checkout.adapters.dynamo.records import DUE_SHARDS
from checkout.domain import webhooks
from checkout.flows.payment import cleanup, reconcile
from checkout.settings import Settings
from expirer.app import LAST_CHECK
from sandbox.template import resources, routes, stack_name, template

REPOSITORY = Path(__file__).parent.parent.parent
FUNCTIONS = resources("AWS::Serverless::Function")
TABLES = resources("AWS::DynamoDB::Table")
BY_PATH = {
    "api": "ApiFunction",
    "buy": "PayFunction",
    "dashboard": "DashboardFunction",
    "pay": "PayFunction",
    "v1": "ApiFunction",
}
# For developers' machines only; Lambda has the first in the secret and refuses the others.
LOCAL_ONLY = {"ENCRYPTION_KEY", "ALLOW_LOOPBACK_WALLETS", "EXTRA_CA_FILE"}


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
    given = set().union(*(_environment(function) for function in FUNCTIONS.values()))
    assert given == settings - LOCAL_ONLY


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
    assert policy["Properties"]["Roles"] == [{"Ref": "PayFunctionRole"}]
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Action"]) == ("Allow", "ses:SendEmail")
    assert statement["Condition"] == {"StringEquals": {"ses:FromAddress": {"Ref": "ReceiptSender"}}}
    sets = {"Fn::Not": [{"Fn::Equals": [{"Ref": "ReceiptSender"}, ""]}]}
    assert template()["Conditions"]["HasReceipts"] == sets
    assert template()["Parameters"]["ReceiptSender"]["Default"] == ""


def test_the_stacks_key_is_used_through_services_only() -> None:
    for _, statement in _statements():
        if any(action.startswith("kms:") for action in _list(statement["Action"])):
            assert "kms:ViaService" in statement["Condition"]["StringEquals"]


def test_functions_neither_scan_nor_delete_and_only_consumers_read_queues() -> None:
    """Restrict grants in general; `tests.aws_calls` compares each one with the calls made."""
    consumers = {"TasksFunction", "WebhookSenderFunction"}
    of_mappings = {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}
    for name, statement in _statements():
        actions = set(_list(statement["Action"]))
        assert not actions & {"dynamodb:DeleteItem", "dynamodb:Scan"}
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
    assert LAST_CHECK > reconcile.DEADLINE
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


def test_a_batch_of_tasks_and_an_attempt_of_a_webhook_end_before_the_timeout() -> None:
    batch = resources("AWS::Lambda::EventSourceMapping")["TasksMapping"]["BatchSize"]
    assert batch * cleanup.DEADLINE.total_seconds() < FUNCTIONS["TasksFunction"]["Timeout"]
    sender = timedelta(seconds=FUNCTIONS["WebhookSenderFunction"]["Timeout"])
    assert 2 * webhooks.TIMEOUT < sender <= webhooks.LEASE


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
    lines = (REPOSITORY / "template.yaml").read_text("utf-8").splitlines()
    assert not [line for line in lines if line.partition(": ")[2].startswith(("&", "*"))]
