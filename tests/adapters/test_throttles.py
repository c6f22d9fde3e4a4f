"""Throttled answers of DynamoDB are counted, on the client that the functions use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.config import Config

from checkout import telemetry, wiring

Told = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def dynamodb(monkeypatch: pytest.MonkeyPatch, told: Told) -> Any:
    for name in ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "us-east-1")
    monkeypatch.setenv("DATABASE_URL", "dynamodb:///shop")
    monkeypatch.setenv("BASE_URL", "https://pay.example")
    wiring.settings.cache_clear()
    wiring._dynamodb.cache_clear()
    telemetry.start("api", stack="shop")
    yield wiring._dynamodb(Config())
    wiring.settings.cache_clear()
    wiring._dynamodb.cache_clear()


def counted(told: Told) -> list[Any]:
    telemetry.observed(lambda event, context: None)({}, None)
    return [line.get("TablesThrottled") for line in told() if "_aws" in line]


@pytest.mark.parametrize(
    "code",
    ["ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded"],
)
def test_a_throttled_call_counts_once(dynamodb: Any, told: Told, code: str) -> None:
    dynamodb.meta.events.emit(
        "response-received.dynamodb.GetItem",
        response_dict=None,
        parsed_response={"Error": {"Code": code}},
        context={},
        exception=None,
    )
    assert counted(told) == [[1]]


def test_a_throttled_part_of_a_transaction_counts(dynamodb: Any, told: Told) -> None:
    reasons = [{"Code": "None"}, {"Code": "ThrottlingError"}]
    canceled = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": reasons}
    dynamodb.meta.events.emit(
        "response-received.dynamodb.TransactWriteItems", parsed_response=canceled
    )
    assert counted(told) == [[1]]


@pytest.mark.parametrize(
    "parsed", [None, {"Item": {}}, {"Error": {"Code": "ConditionalCheckFailedException"}}]
)
def test_other_answers_do_not_count(dynamodb: Any, told: Told, parsed: Any) -> None:
    dynamodb.meta.events.emit("response-received.dynamodb.GetItem", parsed_response=parsed)
    assert counted(told) == []
