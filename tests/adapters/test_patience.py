from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError

from checkout.adapters.aws import BRIEF, USUAL, PatientClient, longest, one_request
from checkout.adapters.dynamo import DynamoApiKeys, DynamoSessions
from checkout.domain.ground.errors import Unavailable
from checkout.ports import Transaction
from tests.support.basics import NOW, a_session, seeded
from tests.support.samples import a_key, cancel

REFUSED = ClientError({"Error": {"Code": "ValidationException"}}, "GetItem")


@dataclass
class Left:
    """A Lambda context with a number of seconds left."""

    seconds: float = 15

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


@dataclass
class Store:
    """Two clients; `says` is what both raise, in turn, before they answer."""

    says: list[Exception] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)

    def client(self, name: str) -> Any:
        store = self

        class Client:
            def get_item(self, **request: Any) -> Any:
                store.asked[name] += 1
                if store.says:
                    raise store.says.pop(0)
                return {}

            put_item = update_item = get_item

        return Client()

    @property
    def patient(self) -> Any:
        return PatientClient(self.client("usual"), self.client("brief"))


def silence(times: int) -> list[Exception]:
    return [ReadTimeoutError(endpoint_url="http://127.0.0.1") for _ in range(times)]


def test_a_silent_store_costs_at_most_eight_seconds_of_a_request() -> None:
    assert longest(USUAL) == 6
    assert longest(BRIEF) == 1.5
    assert longest(USUAL) + longest(BRIEF) <= 8


def test_a_request_waits_in_vain_for_long_only_once() -> None:
    store = Store(silence(1))
    client = store.patient
    with one_request(Left()):
        with pytest.raises(ReadTimeoutError):
            client.get_item()
        client.get_item()
        client.put_item()
    assert store.asked == {"usual": 1, "brief": 2}
    with one_request(Left()):
        client.get_item()
    assert store.asked["usual"] == 2


@pytest.mark.parametrize("says", [REFUSED, ConnectTimeoutError(endpoint_url="http://127.0.0.1")])
def test_a_store_that_refuses_has_answered(says: Exception) -> None:
    store = Store([says])
    with one_request(Left()):
        with pytest.raises(type(says)):
            store.patient.get_item()
        store.patient.get_item()
    answered = isinstance(says, ClientError)
    assert store.asked == ({"usual": 2} if answered else {"usual": 1, "brief": 1})


@pytest.mark.parametrize(
    ("seconds", "asked"), [(15, {"usual": 1}), (6.9, {"brief": 1}), (2.6, {"brief": 1})]
)
def test_near_the_end_of_the_process_a_call_is_made_once_and_briefly(
    seconds: float, asked: dict[str, int]
) -> None:
    store = Store()
    with one_request(Left(seconds)):
        store.patient.get_item()
    assert store.asked == asked


@pytest.mark.parametrize("seconds", [2.4, 0.5, 0])
def test_where_no_time_is_left_nothing_is_sent(seconds: float) -> None:
    store = Store()
    with one_request(Left(seconds)), pytest.raises(Unavailable):
        store.patient.get_item()
    assert store.asked == {}


def test_a_process_that_does_not_end_waits_long_only_once_too() -> None:
    store = Store(silence(1))
    with one_request(None):
        with pytest.raises(ReadTimeoutError):
            store.patient.get_item()
        store.patient.get_item()
    assert store.asked == {"usual": 1, "brief": 1}


def test_outside_of_a_request_every_call_is_a_usual_one() -> None:
    store = Store(silence(1))
    client = store.patient
    with pytest.raises(ReadTimeoutError):
        client.get_item()
    client.get_item()
    assert store.asked == {"usual": 2}


def test_a_save_that_is_not_answered_is_sent_again_once_and_then_unavailable() -> None:
    store = Store(silence(9))
    sessions = DynamoSessions(
        store.patient, "test", sleep=lambda seconds: None, random_bytes=seeded()
    )
    with one_request(Left()):
        for _ in range(2):  # the second save of the request
            with pytest.raises(Unavailable):
                sessions.save(Transaction(cancel(a_session())))
    assert store.asked == {"usual": 1, "brief": 3}


def test_a_courtesy_that_is_not_answered_costs_little_and_is_remembered() -> None:
    store = Store(silence(1))
    brief = store.client("brief")
    keys = DynamoApiKeys(store.patient, "test", courtesy=PatientClient(brief, brief))
    with one_request(Left()):
        keys.touch(a_key(), NOW)
        store.patient.get_item()
    assert store.asked == {"brief": 2}
