from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from checkout.adapters.queue import (
    NoQueue,
    SqsEventQueue,
    SqsTaskQueue,
    cleanup_from,
    event_from,
)
from checkout.ports.wallets import Cleanup
from checkout.ports.webhooks import QueuedEvent


class Sqs:
    """An SQS client that keeps what it is sent, and answers or fails in turn."""

    def __init__(self, *answers: dict[str, Any] | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[dict[str, Any]] = []

    def send_message_batch(self, **request: Any) -> dict[str, Any]:
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else {"Successful": []}
        if isinstance(answer, Exception):
            raise answer
        return answer

    def send_message(self, **request: Any) -> dict[str, Any]:
        return self.send_message_batch(**request)

    def bodies(self) -> list[list[dict[str, str]]]:
        return [[json.loads(e["MessageBody"]) for e in r["Entries"]] for r in self.requests]


def test_a_hint_is_one_message_with_the_events_id() -> None:
    sqs = Sqs()
    SqsEventQueue(lambda: sqs, "https://sqs.example/queue").enqueue([QueuedEvent("evt_1", "mer_1")])
    assert sqs.bodies() == [[{"event": "evt_1"}]]
    assert sqs.requests[0]["QueueUrl"] == "https://sqs.example/queue"


def test_a_hint_says_when_and_is_grouped_by_merchant() -> None:
    sqs = Sqs()
    SqsEventQueue(lambda: sqs, "q").enqueue(
        [QueuedEvent("evt_1", "mer_1", 300), QueuedEvent("evt_2", "mer_2")]
    )
    said = [(e["DelaySeconds"], e["MessageGroupId"]) for e in sqs.requests[0]["Entries"]]
    assert said == [(300, "mer_1"), (0, "mer_2")]
    assert [event_from(e["MessageBody"]) for e in sqs.requests[0]["Entries"]] == ["evt_1", "evt_2"]


def test_many_hints_go_in_batches_of_ten_with_distinct_entry_ids() -> None:
    sqs = Sqs()
    ids = [f"evt_{number}" for number in range(23)]
    SqsEventQueue(lambda: sqs, "q").enqueue([QueuedEvent(each, "mer_1") for each in ids])
    assert [len(batch) for batch in sqs.bodies()] == [10, 10, 3]
    assert [message["event"] for batch in sqs.bodies() for message in batch] == ids
    for request in sqs.requests:
        assert len({entry["Id"] for entry in request["Entries"]}) == len(request["Entries"])


def test_nothing_to_hint_is_no_call() -> None:
    sqs = Sqs()
    SqsEventQueue(lambda: sqs, "q").enqueue([])
    assert sqs.requests == []


@pytest.mark.parametrize(
    "failure",
    [
        ClientError({"Error": {"Code": "AccessDenied", "Message": "hunter2"}}, "SendMessageBatch"),
        EndpointConnectionError(endpoint_url="http://hunter2"),
        {"Failed": [{"Id": "0", "Message": "hunter2"}]},
    ],
    ids=["client", "connection", "partial"],
)
def test_a_failure_is_logged_without_detail_and_the_next_batch_still_goes(
    failure: Any, caplog: pytest.LogCaptureFixture
) -> None:
    sqs = Sqs(failure)
    with caplog.at_level(logging.WARNING):
        SqsEventQueue(lambda: sqs, "q").enqueue(
            [QueuedEvent(f"evt_{n}", "mer_1") for n in range(11)]
        )
    assert len(sqs.requests) == 2
    [record] = caplog.records
    assert "events not hinted" in record.getMessage()
    assert "hunter2" not in caplog.text


LEFTOVERS = Cleanup(
    session="cs_1", merchant="mer_1", auth_server="https://a.example", grant="v1.x.y"
)


def test_a_task_is_one_message_and_read_back_as_it_was() -> None:
    sqs = Sqs()
    SqsTaskQueue(lambda: sqs, "https://sqs.example/tasks").clean_up(LEFTOVERS)
    [request] = sqs.requests
    assert request["QueueUrl"] == "https://sqs.example/tasks"
    assert cleanup_from(request["MessageBody"]) == LEFTOVERS


def test_the_client_of_the_task_queue_is_made_at_the_first_task() -> None:
    made: list[Sqs] = []

    def make() -> Sqs:
        made.append(Sqs())
        return made[-1]

    queue = SqsTaskQueue(make, "q")
    assert made == []
    queue.clean_up(LEFTOVERS)
    assert len(made) == 1


def test_a_task_that_cannot_be_sent_is_logged_without_detail(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sqs = Sqs(EndpointConnectionError(endpoint_url="http://hunter2"))
    with caplog.at_level(logging.WARNING):
        SqsTaskQueue(lambda: sqs, "q").clean_up(LEFTOVERS)
    assert "a task was not sent: EndpointConnectionError" in caplog.text
    assert "hunter2" not in caplog.text
    assert "v1.x.y" not in caplog.text


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"cleanup":{"other":1}}', '{"cleanup":1}'])
def test_a_message_that_is_not_ours_is_refused(body: str) -> None:
    for read in (cleanup_from, event_from):
        with pytest.raises((ValueError, KeyError, TypeError)):
            read(body)


def test_without_a_queue_nothing_happens() -> None:
    queue = NoQueue()
    queue.enqueue([QueuedEvent("evt_1", "mer_1")])
    queue.clean_up(LEFTOVERS)
    assert vars(queue) == {}
