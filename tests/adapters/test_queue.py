from __future__ import annotations

import json
import logging
from itertools import chain, repeat
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from checkout.adapters.queue import NoQueue, SqsEventQueue, SqsTaskQueue, cleanup_from, event_from
from checkout.ports import Cleanup, QueuedEvent


def sqs_client(*first: dict[str, Any] | Exception) -> Mock:
    """Return an SQS client that answers or fails at first as it is told."""
    answers = chain[Any](first, repeat({"Successful": []}))
    client = Mock()
    client.send_message.side_effect = client.send_message_batch.side_effect = answers
    return client


def event_id(number: int) -> str:
    return f"evt_{number:022d}"


def hinted(sqs: Mock, *events: QueuedEvent) -> list[list[dict[str, Any]]]:
    """Return the batches in which these events are sent."""
    SqsEventQueue(lambda: sqs, "https://sqs.example/queue").enqueue(events)
    sent = [call.kwargs for call in sqs.send_message_batch.call_args_list]
    assert all(request["QueueUrl"] == "https://sqs.example/queue" for request in sent)
    return [request["Entries"] for request in sent]


def test_an_event_is_one_message_that_says_when_and_is_grouped_by_merchant() -> None:
    [batch] = hinted(
        sqs_client(), QueuedEvent(event_id(1), "mer_1", 300), QueuedEvent(event_id(2), "mer_2")
    )
    said = [(e["DelaySeconds"], e["MessageGroupId"]) for e in batch]
    assert said == [(300, "mer_1"), (0, "mer_2")]
    ids = [event_id(1), event_id(2)]
    assert [json.loads(e["MessageBody"]) for e in batch] == [{"event": each} for each in ids]
    assert [event_from(e["MessageBody"]) for e in batch] == ids


def test_many_events_go_in_batches_of_ten_with_distinct_entry_ids() -> None:
    ids = [event_id(number) for number in range(23)]
    batches = hinted(sqs_client(), *(QueuedEvent(each, "mer_1") for each in ids))
    assert [len(batch) for batch in batches] == [10, 10, 3]
    assert [event_from(entry["MessageBody"]) for batch in batches for entry in batch] == ids
    for batch in batches:
        assert len({entry["Id"] for entry in batch}) == len(batch)


def test_no_event_is_no_call() -> None:
    assert hinted(sqs_client()) == []


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
    with caplog.at_level(logging.WARNING):
        assert len(hinted(sqs_client(failure), *[QueuedEvent("evt_1", "mer_1")] * 11)) == 2
    [record] = caplog.records
    assert "events not hinted" in record.getMessage()
    assert "hunter2" not in caplog.text


LEFTOVERS = Cleanup(
    session="cs_1", merchant="mer_1", auth_server="https://a.example", grant="v1.x.y"
)


def test_a_task_is_one_message_and_read_back_as_it_was() -> None:
    sqs = sqs_client()
    SqsTaskQueue(lambda: sqs, "https://sqs.example/tasks").clean_up(LEFTOVERS)
    request = sqs.send_message.call_args.kwargs
    assert request["QueueUrl"] == "https://sqs.example/tasks"
    assert cleanup_from(request["MessageBody"]) == LEFTOVERS


def test_the_client_of_the_task_queue_is_made_at_the_first_task() -> None:
    make = Mock(return_value=sqs_client())
    queue = SqsTaskQueue(make, "q")
    make.assert_not_called()
    queue.clean_up(LEFTOVERS)
    make.assert_called_once_with()


def test_a_task_that_cannot_be_sent_is_logged_without_detail(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sqs = sqs_client(EndpointConnectionError(endpoint_url="http://hunter2"))
    with caplog.at_level(logging.WARNING):
        SqsTaskQueue(lambda: sqs, "q").clean_up(LEFTOVERS)
    assert "a task was not sent: EndpointConnectionError" in caplog.text
    assert "hunter2" not in caplog.text
    assert "v1.x.y" not in caplog.text


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "{}",
        '{"cleanup":{"other":1}}',
        '{"cleanup":1}',
        '{"event":{"id":1}}',
        '{"event":1}',
        '{"event":null}',
    ],
)
def test_a_message_that_is_not_ours_is_refused(body: str) -> None:
    for read in (cleanup_from, event_from):
        with pytest.raises((ValueError, KeyError, TypeError)):
            read(body)


def test_without_a_queue_nothing_happens() -> None:
    queue = NoQueue()
    queue.enqueue([QueuedEvent("evt_1", "mer_1")])
    queue.clean_up(LEFTOVERS)
    assert vars(queue) == {}
