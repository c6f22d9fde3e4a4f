"""Answers that no emulator gives: conflicts, throttling, silence. Botocore's own stubber gives
them, so that their shapes are checked against AWS's model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)
from botocore.stub import Stubber

from checkout.adapters.aws import CONFLICT_TRIES, LOST_TRIES, Persistent
from checkout.adapters.dynamo import DynamoApiKeys, DynamoDatabase, DynamoMerchants, DynamoSessions
from checkout.adapters.dynamo.records import reservation_item, session_item
from checkout.domain.ground.errors import Unavailable
from checkout.domain.ground.parts import Lists
from checkout.ports import StaleRecord, Transaction
from tests.support.basics import NOW, a_session, seeded
from tests.support.samples import a_key, a_merchant, a_reservation, an_event, cancel
from tests.support.stores import boto

UNBOUNDED: Any = dict.fromkeys(("after", "created_from", "created_before"))
NO = {"Code": "None"}
CONFLICT = {"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}
THROTTLED = {"Code": "ThrottlingError", "Message": "Throughput exceeds the current limit"}


class Scripted:
    """A stubbed client and the session store on it; `slept` are its pauses in seconds."""

    def __init__(self) -> None:
        self.client = boto()
        self.stubber = Stubber(self.client)
        self.slept: list[float] = []
        self.sessions = DynamoSessions(
            self.client, "test", sleep=self.slept.append, random_bytes=seeded()
        )

    def canceled(self, *reasons: dict[str, Any], times: int = 1) -> None:
        for _ in range(times):
            self.stubber.add_client_error(
                "transact_write_items",
                "TransactionCanceledException",
                http_status_code=400,
                modeled_fields={"CancellationReasons": list(reasons)},
            )

    def refused(self, operation: str, code: str, *, times: int = 1, status: int = 400) -> None:
        for _ in range(times):
            self.stubber.add_client_error(operation, code, "detail", http_status_code=status)

    def answered(self, operation: str, answer: dict[str, Any]) -> None:
        self.stubber.add_response(operation, answer)


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    made = Scripted()
    with made.stubber:
        yield made


@pytest.mark.parametrize("reasons", [(CONFLICT, NO), (NO, CONFLICT), (CONFLICT, CONFLICT)])
def test_a_conflict_is_tried_again_until_it_is_over(
    scripted: Scripted, reasons: tuple[dict[str, Any], ...]
) -> None:
    scripted.canceled(*reasons, times=CONFLICT_TRIES - 1)
    scripted.answered("transact_write_items", {})
    assert scripted.sessions.create(a_session(), a_reservation()) is None
    scripted.stubber.assert_no_pending_responses()
    assert len(scripted.slept) == CONFLICT_TRIES - 1
    assert len(set(scripted.slept)) == len(scripted.slept)
    assert 0 < sum(scripted.slept) < 2


def test_a_conflict_without_end_is_unavailable(scripted: Scripted) -> None:
    scripted.canceled(CONFLICT, NO, times=CONFLICT_TRIES)
    with pytest.raises(Unavailable):
        scripted.sessions.create(a_session(), a_reservation())
    scripted.stubber.assert_no_pending_responses()


def test_who_loses_the_key_after_a_conflict_gets_the_winners_record(scripted: Scripted) -> None:
    winner = a_reservation("winner")
    scripted.canceled(CONFLICT, NO)
    found = {"Code": "ConditionalCheckFailed", "Item": reservation_item(winner)}
    scripted.canceled(found, CONFLICT)  # decided, although something else was in the way
    loser = a_session(writer="loser")
    assert scripted.sessions.create(loser, a_reservation("loser")) == winner


def test_a_change_that_meets_a_transaction_is_tried_again(scripted: Scripted) -> None:
    change = cancel(a_session())
    scripted.refused("update_item", "TransactionConflictException", times=3)
    scripted.answered("update_item", {"Attributes": session_item(change.after)})
    assert scripted.sessions.save(Transaction(change)) == change.after
    scripted.stubber.assert_no_pending_responses()


def test_a_repeated_transaction_that_is_still_running_is_waited_for(scripted: Scripted) -> None:
    scripted.refused("transact_write_items", "TransactionInProgressException", times=2)
    scripted.answered("transact_write_items", {})
    assert scripted.sessions.create(a_session(), a_reservation()) is None


def test_a_change_with_its_event_that_lost_after_a_conflict_learns_the_winner(
    scripted: Scripted,
) -> None:
    before = a_session()
    winner = cancel(before, "winner").after
    scripted.canceled(CONFLICT, NO)
    scripted.canceled({"Code": "ConditionalCheckFailed", "Item": session_item(winner)}, NO)
    with pytest.raises(StaleRecord) as lost:
        scripted.sessions.save(Transaction(cancel(before, "loser"), (an_event(),)))
    assert lost.value.current == winner


def test_the_same_transaction_has_the_same_token_and_another_has_another() -> None:
    client: Any = Mock()
    client.transact_write_items.side_effect = ReadTimeoutError(endpoint_url="http://127.0.0.1")
    sessions = DynamoSessions(client, "test", sleep=lambda _: None, random_bytes=seeded())
    for writer in ("first", "second"):
        with pytest.raises(Unavailable):
            sessions.create(a_session(writer=writer), a_reservation(writer))
    sent = client.transact_write_items.call_args_list
    tokens = [call.kwargs["ClientRequestToken"] for call in sent]
    assert [len(token) for token in tokens] == [36] * 2 * LOST_TRIES
    assert tokens[0] == tokens[1] != tokens[2] == tokens[3]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        *(("ThrottlingException", 400), ("ProvisionedThroughputExceededException", 400)),
        *(("RequestLimitExceeded", 400), ("InternalServerError", 500)),
        *(("ServiceUnavailable", 503), ("SomethingNew", 500)),
    ],
)
def test_an_overloaded_store_is_asked_once_more_and_then_unavailable(
    scripted: Scripted, code: str, status: int
) -> None:
    scripted.refused("put_item", code, times=LOST_TRIES, status=status)
    with pytest.raises(Unavailable) as unavailable:
        scripted.sessions.create(a_session(), None)
    scripted.stubber.assert_no_pending_responses()
    assert str(unavailable.value) == "The data store is not answering."


def test_a_throttled_transaction_is_unavailable(scripted: Scripted) -> None:
    scripted.canceled(NO, THROTTLED, times=LOST_TRIES)
    with pytest.raises(Unavailable):
        scripted.sessions.save(Transaction(cancel(a_session()), (an_event(),)))


def test_a_read_is_left_to_the_clients_own_tries(scripted: Scripted) -> None:
    scripted.refused("get_item", "InternalServerError", status=500)
    with pytest.raises(Unavailable):
        scripted.sessions.get("cs_1")
    scripted.stubber.assert_no_pending_responses()


@pytest.mark.parametrize("code", ["ResourceNotFoundException", "AccessDeniedException"])
def test_a_mistake_of_the_deployment_is_not_taken_for_silence(
    scripted: Scripted, code: str
) -> None:
    scripted.refused("get_item", code)
    with pytest.raises(ClientError):
        scripted.sessions.get("cs_1")
    scripted.refused("put_item", code)
    with pytest.raises(ClientError):
        scripted.sessions.create(a_session(), None)


@pytest.mark.parametrize("code", ["ItemCollectionSizeLimitExceeded", "ValidationError"])
def test_a_transaction_that_can_never_be_is_not_tried_again(scripted: Scripted, code: str) -> None:
    scripted.canceled(NO, {"Code": code})
    with pytest.raises(ClientError):
        scripted.sessions.create(a_session(), a_reservation())
    scripted.canceled(NO, {"Code": code})
    with pytest.raises(ClientError):
        scripted.sessions.save(Transaction(cancel(a_session()), (an_event(),)))


class Silent:
    """A client whose every call fails so."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        return Mock(side_effect=self.error)


@pytest.mark.parametrize(
    "error",
    [
        ReadTimeoutError(endpoint_url="http://10.0.0.1"),
        ConnectTimeoutError(endpoint_url="http://10.0.0.1"),
        EndpointConnectionError(endpoint_url="http://10.0.0.1"),
    ],
    ids=["read", "connect", "endpoint"],
)
def test_a_store_that_is_silent_is_unavailable_everywhere(error: Exception) -> None:
    client: Any = Silent(error)
    sessions = DynamoSessions(client, "test", sleep=lambda _: None, random_bytes=seeded())
    merchants = DynamoMerchants(client, "test")
    api_keys = DynamoApiKeys(client, "test")
    session = a_session()
    everything: list[Any] = [
        lambda: sessions.create(session, None),
        lambda: sessions.create(session, a_reservation()),
        lambda: sessions.get(session.id),
        lambda: sessions.save(Transaction(cancel(session))),
        lambda: sessions.save(Transaction(cancel(session), (an_event(),))),
        lambda: sessions.page(Lists("mer_1"), limit=1, **UNBOUNDED),
        lambda: merchants.add(a_merchant(), a_key()),
        lambda: merchants.replace(a_merchant()),
        lambda: merchants.get("mer_1"),
        lambda: merchants.find_by_wallet("https://w.example/shop"),
        lambda: api_keys.find("ab"),
        lambda: api_keys.add(a_key(), a_merchant()),
    ]
    for call in everything:
        with pytest.raises(Unavailable) as unavailable:
            call()
        assert "10.0.0.1" not in str(unavailable.value)
    api_keys.touch(a_key(), NOW)
    assert not DynamoDatabase(client, "test").ping()


def test_missing_credentials_are_a_mistake_and_still_unhealthy() -> None:
    client: Any = Silent(NoCredentialsError())
    with pytest.raises(NoCredentialsError):
        DynamoMerchants(client, "test").get("mer_1")
    assert not DynamoDatabase(client, "test").ping()


def test_keys_that_were_not_processed_are_asked_for_again(scripted: Scripted) -> None:
    sessions = [a_session(id=f"cs_{number}") for number in range(3)]
    items = [session_item(session) for session in sessions]
    table = "test-checkout_sessions"
    newest_first = reversed(items)
    rows = [{name: item[name] for name in ("id", "created_key")} for item in newest_first]
    scripted.answered("query", {"Items": rows})

    def left(*indexes: int) -> dict[str, Any]:
        return {table: {"Keys": [{"id": items[index]["id"]} for index in indexes]}}

    for found, remaining in (([], (0, 1, 2)), ([items[2]], (0, 1)), ([items[0]], ())):
        unprocessed = left(*remaining) if remaining else {}
        answer = {"Responses": {table: found}, "UnprocessedKeys": unprocessed}
        scripted.answered("batch_get_item", answer)
    page = scripted.sessions.page(Lists("mer_1"), limit=3, **UNBOUNDED)
    assert page.records == (sessions[2], sessions[0])  # in the index's order; cs_1 is gone
    assert page.next_key is None
    assert len(scripted.slept) == 1


def test_keys_that_are_never_processed_end_as_unavailable(scripted: Scripted) -> None:
    item, table = session_item(a_session()), "test-checkout_sessions"
    scripted.answered("query", {"Items": [{"id": item["id"], "created_key": item["created_key"]}]})
    for _ in range(4):
        left = {table: {"Keys": [{"id": item["id"]}]}}
        scripted.answered("batch_get_item", {"Responses": {}, "UnprocessedKeys": left})
    with pytest.raises(Unavailable):
        scripted.sessions.page(Lists("mer_1"), limit=1, **UNBOUNDED)


def test_more_items_than_a_call_takes_are_read_in_several() -> None:
    """Keys that one call leaves unprocessed are asked for again, before the rest."""
    sizes: list[int] = []

    class Client:
        def batch_get_item(self, *, RequestItems: dict[str, Any]) -> dict[str, Any]:
            keys = RequestItems["T"]["Keys"]
            sizes.append(len(keys))
            left = keys[:30] if len(sizes) == 1 else []
            done = [{"id": key["id"]} for key in keys[len(left) :]]
            again = {"T": {"Keys": left}} if left else {}
            return {"Responses": {"T": done}, "UnprocessedKeys": again}

    ids = [f"cs_{number}" for number in range(250)]
    reader = Persistent(lambda seconds: None, lambda size: bytes(size))
    found = reader.batch_get(Client(), "T", ids)
    assert sorted(found) == sorted(ids)
    assert sizes == [100, 100, 80]
    assert reader.batch_get(Client(), "T", []) == {}


@pytest.mark.parametrize("count", [1, 24, 25, 26, 60])
@pytest.mark.parametrize("done_of_each", [1, 2, 24, 25])
def test_every_item_is_put_however_few_of_a_batch_are_done(count: int, done_of_each: int) -> None:
    stored: list[str] = []

    class Client:
        def batch_write_item(self, *, RequestItems: dict[str, Any]) -> dict[str, Any]:
            asked = RequestItems["T"]
            assert len(asked) <= 25, "DynamoDB takes no more at once"
            stored.extend(each["PutRequest"]["Item"]["id"]["S"] for each in asked[:done_of_each])
            left = asked[done_of_each:]
            return {"UnprocessedItems": {"T": left}} if left else {"UnprocessedItems": {}}

    ids = [f"search#{number}" for number in range(count)]
    writer = Persistent(lambda seconds: None, lambda size: bytes(size))
    writer.batch_put(Client(), "T", [{"id": {"S": each}} for each in ids])
    assert sorted(stored) == sorted(ids)


def test_a_batch_of_which_nothing_is_ever_done_ends_as_unavailable() -> None:
    class Client:
        def batch_write_item(self, *, RequestItems: dict[str, Any]) -> dict[str, Any]:
            return {"UnprocessedItems": RequestItems}

    slept: list[float] = []
    writer = Persistent(slept.append, lambda size: bytes(size))
    with pytest.raises(Unavailable):
        writer.batch_put(Client(), "T", [{"id": {"S": "search#1"}}])
    assert slept
