"""A stage that is stopped starts nothing, loses no message, and is started as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from operations import pause
from operations.stages import Account, Refused
from tests.operations.accounts import REGION, a_stage, code, in_state

RESERVED = {"checkout-api": None, "checkout-pay": 20}


class Running(Account):
    """Functions, mappings and schedules in moto. `told` has each call that changes something."""

    def __init__(self) -> None:
        self.region = REGION
        self.told: list[str] = []
        self.fail_at = -1
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        self._session = boto3.Session(region_name=REGION, **keys)
        self._session.events.register("before-call.*.*", self._call)
        trust = '{"Version": "2012-10-17", "Statement": []}'
        role = self.client("iam").create_role(RoleName="role", AssumeRolePolicyDocument=trust)
        functions, arn = self.client("lambda"), role["Role"]["Arn"]
        for name, reserved in RESERVED.items():
            functions.create_function(
                FunctionName=name,
                Runtime="python3.13",
                Role=arn,
                Handler="app.handler",
                Code={"ZipFile": code("0")},
            )
            if reserved is not None:
                functions.put_function_concurrency(
                    FunctionName=name, ReservedConcurrentExecutions=reserved
                )
        self.mappings = [self._mapping(name) for name in RESERVED]
        functions.update_event_source_mapping(UUID=self.mappings[1], Enabled=False)
        for name, state in (("each-minute", "ENABLED"), ("part-1", "DISABLED")):
            self.client("scheduler").create_schedule(
                Name=name,
                Description="runs the sweep",
                ScheduleExpression="rate(1 minute)",
                FlexibleTimeWindow={"Mode": "OFF"},
                Target={"Arn": arn, "RoleArn": arn, "Input": '{"part": 0}'},
                State=state,
            )
        self.table()
        self.told.clear()

    def table(self) -> None:
        """Create the table of the sessions, or another one in its place."""
        tables, name = self.client("dynamodb"), "checkout-checkout_sessions"
        if name in tables.list_tables()["TableNames"]:
            tables.delete_table(TableName=name)
        tables.create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        )

    def _mapping(self, function: str) -> str:
        sqs = self.client("sqs")
        url = sqs.create_queue(QueueName=function)["QueueUrl"]
        found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        made: str = self.client("lambda").create_event_source_mapping(
            EventSourceArn=found["Attributes"]["QueueArn"], FunctionName=function
        )["UUID"]
        return made

    def _call(self, model: Any, **rest: Any) -> None:
        if model.name.startswith(("Put", "Update", "Delete")):
            self.told.append(model.name)
            if len(self.told) == self.fail_at:
                raise KeyboardInterrupt

    def stack(self, name: str) -> dict[str, Any] | None:
        found: dict[str, Any] = in_state("UPDATE_COMPLETE")["Stacks"][0]
        return found

    def resources(self, stack: str, kind: str) -> dict[str, str]:
        names = {
            "AWS::Lambda::Function": list(RESERVED),
            "AWS::Lambda::EventSourceMapping": self.mappings,
            "AWS::Scheduler::Schedule": ["each-minute", "part-1"],
        }[kind]
        return {name: name for name in names}

    def state(self) -> list[Any]:
        """Return the mappings' states, the schedules and the functions' reserved executions."""
        functions, scheduler = self.client("lambda"), self.client("scheduler")
        found = [functions.get_event_source_mapping(UUID=each)["State"] for each in self.mappings]
        for name in ("each-minute", "part-1"):
            schedule = scheduler.get_schedule(Name=name)
            found += [schedule["State"], schedule["Description"], schedule["Target"]["Input"]]
        for name in RESERVED:
            answer = functions.get_function_concurrency(FunctionName=name)
            found.append(answer.get("ReservedConcurrentExecutions"))
        return found


@pytest.fixture
def account() -> Iterator[Running]:
    with mock_aws():
        yield Running()


def stop(account: Account) -> list[float]:
    """Stop the stage; return the seconds it waited."""
    waited: list[float] = []
    pause.stop(account, a_stage(), waited.append)
    return waited


SWEEP = ["runs the sweep", '{"part": 0}']
RUNNING = ["Enabled", "Disabled", "ENABLED", *SWEEP, "DISABLED", *SWEEP, None, 20]
STOPPED = ["Disabled", "Disabled", "DISABLED", *SWEEP, "DISABLED", *SWEEP, 0, 0]


def test_a_stopped_stage_starts_nothing_and_is_started_as_it_was(account: Running) -> None:
    assert account.state() == RUNNING
    assert stop(account) == [75]  # as long as the longest function may run
    assert account.state() == STOPPED
    assert pause.stopped(account, "checkout") is not None
    pause.start(account, a_stage())
    assert account.state() == RUNNING
    assert pause.stopped(account, "checkout") is None


def test_no_queue_is_polled_any_more_before_a_function_refuses(account: Running) -> None:
    """Messages that a throttled function refuses become dead letters after five times."""
    stop(account)
    calls = account.told
    last = max(n for n, name in enumerate(calls) if name == "UpdateEventSourceMapping")
    assert last < calls.index("PutFunctionConcurrency")


def test_what_was_there_survives_interruptions_at_each_step(account: Running) -> None:
    stop(account)
    steps = len(account.told)
    pause.start(account, a_stage())
    for step in range(1, steps + 1):
        account.told.clear()
        account.fail_at = step
        with pytest.raises(KeyboardInterrupt):
            stop(account)
        account.fail_at = -1
        stop(account)
        stop(account)  # and once too often
        assert account.state() == STOPPED
        account.told.clear()
        account.fail_at = step
        with pytest.raises(KeyboardInterrupt):
            pause.start(account, a_stage())
        account.fail_at = -1
        pause.start(account, a_stage())
        assert account.state() == RUNNING


def test_a_stage_that_is_not_stopped_is_not_started(account: Running) -> None:
    with pytest.raises(Refused, match="checkout is not stopped"):
        pause.start(account, a_stage())


@pytest.mark.parametrize("refunds", ["held", "complete"])
def test_after_a_restore_a_stage_is_started_only_once_its_refunds_are_held(
    account: Running, refunds: str
) -> None:
    stop(account)
    account.table()
    account.told.clear()
    with pytest.raises(Refused, match="checkout hold-refunds"):
        pause.start(account, a_stage())
    assert account.state() == STOPPED
    assert account.told == []
    pause.start(account, a_stage(), refunds)
    assert account.state() == RUNNING


def test_what_an_earlier_release_has_stopped_is_started(account: Running) -> None:
    """It has not stored when the table was created."""
    stop(account)
    before = pause.stopped(account, "checkout")
    assert before is not None
    del before["table"]
    account.client("ssm").put_parameter(
        Name="/checkout/stopped", Type="String", Value=json.dumps(before), Overwrite=True
    )
    account.table()
    pause.start(account, a_stage())
    assert account.state() == RUNNING
