from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import MISSING, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from boto3.dynamodb.types import Binary

from checkout.adapters.dynamo import codec, events, merchants, records
from checkout.adapters.dynamo.codec import deflated, inflated
from checkout.domain.merchant.people import Scope
from checkout.domain.merchant.record import ApiKey, Merchant, Suspension
from checkout.domain.payment.attempt import PaymentAttempt
from checkout.domain.payment.in_flight import Problem
from checkout.domain.session.attempts import CHARACTERS_MAX
from checkout.domain.session.record import LineItem, Session, Status
from checkout.domain.session.retention import RETENTION
from checkout.domain.webhooks.record import (
    FIRST_MESSAGE,
    Delivery,
    EventStatus,
    WebhookEvent,
    ended,
    leased,
)
from checkout.ports import Reservation
from open_payments.models import Amount, Quote
from tests.fakes.dynamodb import ITEM_MAX, item_size
from tests.support.basics import GAVE_A_WALLET, NOW, a_session
from tests.support.protected import DELIVERIES_KEPT
from tests.support.samples import (
    MS,
    a_key,
    a_merchant,
    a_reservation,
    an_endpoint,
    an_event,
    full_event,
    full_merchant,
    full_session,
    session_id,
)

TRIPS: dict[type, tuple[Callable[..., Any], Callable[..., Any]]] = {
    Session: (
        lambda session: records.session_item(session) | {"cart": records.cart_of(session)},
        records.session_from,
    ),
    WebhookEvent: (events.event_item, events.event_from),
    Merchant: (merchants.merchant_item, merchants.merchant_from),
    ApiKey: (merchants.key_item, merchants.key_from),
    Reservation: (records.reservation_item, records.reservation_from),
}
FULL = (full_session(), full_event(), full_merchant())
COST = Amount(1, "EUR", 2)
BARE = (a_session(), an_event(), a_merchant(), a_key(), a_reservation())


# The fields of a session that are an attribute each, and lie in no group.
OWN = [
    "id",
    "merchant",
    "part",
    "version",
    "writer",
    "status",
    "expires_at",
    "phase",
    "check_at",
    "checks",
    "hung_until",
    "grant",
    "token",
    "instruction",
    "closing_at",
    "closed_at",
    "received",
    "attention",
    "restocked_at",
]


def test_each_field_of_a_session_lies_in_one_group_or_is_an_attribute_of_its_own() -> None:
    named = [*records.CART, *records.PAYMENT, *OWN]
    assert sorted(named) == sorted(each.name for each in fields(Session))


def stored_and_read(record: Any) -> Any:
    store, read = TRIPS[type(record)]
    return read(store(record))


@pytest.mark.parametrize(
    "full", [*FULL, full_merchant().endpoint], ids=lambda it: type(it).__name__
)
def test_the_samples_set_every_field_that_has_a_default(full: Any) -> None:
    defaults = {f.name: f.default for f in fields(full) if f.default is not MISSING}
    assert [name for name, value in defaults.items() if getattr(full, name) == value] == []


@pytest.mark.parametrize(
    "record",
    [
        *(*BARE, *FULL, a_key(last_used_at=NOW, revoked_at=NOW + MS), an_event(subject=None)),
        a_key(scopes=(Scope.READ,), ends_at=NOW, maker="mbr_1", key_sign_in_off_at=NOW + MS),
        a_key(suspended=Suspension.WITH_ALL),
        full_session(quote=Quote("https://r.example/q/1", COST, COST, None)),
        full_merchant(endpoint=an_endpoint(url="https://shop.example")),
    ],
    ids=lambda record: type(record).__name__,
)
def test_a_record_comes_back_as_it_was(record: Any) -> None:
    assert stored_and_read(record) == record


@pytest.mark.parametrize(
    ("full", "name"), [(full, f.name) for full in FULL for f in fields(full) if f.default is None]
)
def test_an_absent_field_takes_no_attribute_and_comes_back_absent(full: Any, name: str) -> None:
    record = replace(full, **{name: None})
    assert name not in TRIPS[type(record)][0](record)
    assert stored_and_read(record) == record


def test_times_are_whole_milliseconds_cut_not_rounded() -> None:
    at = datetime(2026, 3, 1, 12, 0, 0, 999_999, tzinfo=UTC)
    assert codec.milliseconds(at) == 1_772_366_400_999
    assert codec.moment(1_772_366_400_999) == at.replace(microsecond=999_000)


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.EXPIRED, Status.CANCELED])
def test_a_session_that_owes_nothing_is_not_in_the_due_index(status: Status) -> None:
    item = records.session_item(a_session(status))
    assert "due_at" not in item
    assert "due_shard" not in item


@pytest.mark.parametrize(
    ("lane", "shards", "changes"),
    [
        ("", 16, {"lease_until": NOW + timedelta(days=1)}),
        ("later-", 8, {"history": GAVE_A_WALLET}),
    ],
)
def test_a_session_that_owes_something_is_in_one_of_the_shards_of_its_lane(
    lane: str, shards: int, changes: dict[str, Any]
) -> None:
    items = [
        records.session_item(a_session(id=session_id(number), **changes)) for number in range(200)
    ]
    assert {item["due_shard"]["S"] for item in items} == {f"{lane}{n}" for n in range(shards)}
    assert {item["due_at"]["N"] for item in items} == {
        str(codec.milliseconds(NOW + timedelta(days=1)))
    }


@pytest.mark.parametrize("character", ["x", "ü", "🫖", "\u0001"])
def test_the_largest_session_that_the_api_accepts_fits_into_an_item(character: str) -> None:
    """256 KiB of request body at most, however the text is made up, and a full history besides."""
    wide = len(json.dumps(character, ensure_ascii=False)) - 2
    room = 256 * 1024 // 100 - 120  # bytes of one of 100 line items, less its field names
    per_item = min(1000, room // max(wide, len(character.encode())))
    line = LineItem("usd", "Tea", character * per_item, 999_999_999_999, 1_000_000)
    entry = full_session().history[0]
    attempts = the_longest_attempts()
    session = full_session(
        line_items=(line,) * 100, history=(entry,) * 200, payment_attempts=attempts
    )
    assert item_size(records.session_item(session)) < ITEM_MAX


def the_longest_attempts() -> tuple[PaymentAttempt, ...]:
    """As many as a session keeps, with all that a customer and a hostile wallet can put there."""
    last = full_session().payment_attempts[-1]
    long = replace(last, typed="🫖" * 200, wallet="https://w.example/" + "w" * 2000)
    return (replace(long, detail="🫖" * 200),) * (CHARACTERS_MAX // long.characters)


def test_attempts_come_back_as_they_were_and_the_running_one_is_short() -> None:
    session = full_session()
    assert stored_and_read(session).payment_attempts == session.payment_attempts
    plain = inflated(records.session_item(session)["payment"])
    assert '"payment_attempts":[[1,1772366400000],[2,' in plain
    none = replace(session, payment_attempts=())
    assert stored_and_read(none).payment_attempts == ()


def test_values_that_a_later_release_adds_are_left_alone() -> None:
    session = full_session()
    found = json.loads(inflated(records.session_item(session)["payment"]))
    found["later"] = "later"
    found["quote"].append("later")
    found["history"][0] += ["x"] * 9
    item = records.session_item(session) | {
        "cart": records.cart_of(session),
        "payment": deflated(json.dumps(found)),
        "later": {"S": "later"},
    }
    read = records.session_from(item)
    assert read.quote == session.quote
    assert len(read.history) == len(session.history)


def test_a_group_with_something_behind_its_object_is_refused() -> None:
    session = full_session()
    plain = inflated(records.session_item(session)["payment"])
    item = records.session_item(session) | {
        "cart": records.cart_of(session),
        "payment": deflated(plain + "{}"),
    }
    with pytest.raises(ValueError, match="Extra data"):
        records.session_from(item)


@pytest.mark.parametrize("missing", ["id", "status", "version", "expires_at", "cart", "payment"])
def test_an_item_that_lacks_what_it_needs_is_refused(missing: str) -> None:
    session = full_session()
    item = records.session_item(session) | {"cart": records.cart_of(session)}
    assert records.session_from(item) == session
    del item[missing]
    with pytest.raises(TypeError, match="missing"):
        records.session_from(item)


@pytest.mark.parametrize(
    ("changes", "groups"),
    [
        ({"version": 9}, set()),
        ({"problem": None}, {"payment"}),
        ({"metadata_json": '{"a":1}'}, {"cart"}),
        ({"problem": None, "metadata_json": "{}"}, {"cart", "payment"}),
    ],
)
def test_a_change_compares_only_the_groups_that_it_changes(
    changes: dict[str, Any], groups: set[str]
) -> None:
    before = replace(full_session(), metadata_json='{"b":2}', problem=Problem.WALLET_UNAVAILABLE)
    after = replace(before, **changes)
    old, new = records.changed_items(before, after, RETENTION)
    whole, large = records.session_item(after), records.cart_item(after) is not None
    assert new.keys() & {"cart", "payment"} == groups - ({"cart"} if large else set())
    assert new == {name: whole[name] for name in new}
    assert whole.keys() - new.keys() <= {"cart", "payment"}
    assert not old.keys() & {"cart", "payment"}


def test_a_reservation_is_removed_a_day_after_it_ends() -> None:
    item = records.reservation_item(a_reservation())
    assert int(item["ttl"]["N"]) == int((NOW + timedelta(days=2)).timestamp())


def test_a_pending_event_is_due_when_its_attempt_is_and_is_never_removed() -> None:
    late = NOW + FIRST_MESSAGE + MS
    item = events.event_item(an_event(next_at=late))
    assert item["status"] == {"S": "pending"}
    assert item["attempts"] == {"N": "0"}
    assert item["created_at"] == {"N": "1772366400000"}
    assert item["due_at"] == item["next_at"] == item["retry_at"] == codec.instant(late)
    assert "ttl" not in item
    assert item["due_shard"]["S"] in "01234567"
    assert item["created_key"] == {"S": "1772366400000#evt_1"}
    assert inflated(item["body"]) == an_event().body


def test_in_its_first_minute_an_event_keeps_its_place_in_the_index() -> None:
    """A place that moves costs two write units, and one projected attribute that changes one."""
    names = ("due_shard", "due_at", "next_at", "merchant", "id")
    begun = leased(an_event(), NOW + MS, writer="w")
    failed = ended(begun, Delivery(NOW + MS, 5, 500), now=NOW + 5 * MS, spread=0)
    items = [events.event_item(each) for each in (an_event(), begun, failed)]
    assert len({str([item[name] for name in names]) for item in items}) == 1
    assert items[0]["due_at"] == codec.instant(NOW + FIRST_MESSAGE)


@pytest.mark.parametrize("status", [EventStatus.DELIVERED, EventStatus.EXHAUSTED])
def test_an_ended_event_is_due_no_more_and_kept_for_31_days(status: EventStatus) -> None:
    item = events.event_item(full_event(status=status, ended_at=NOW))
    assert "due_at" not in item
    assert "due_shard" not in item
    assert int(item["ttl"]["N"]) == int((NOW + timedelta(days=31)).timestamp())


@pytest.mark.parametrize("character", ["x", "\n", '"', "ü", "🫖", "\ufffd"])
def test_the_largest_event_with_the_longest_log_fits_into_an_item(character: str) -> None:
    """50 keys of metadata of the worst text there is, and an answer of 1 KiB to every attempt."""
    metadata = {f"{key:02}" + "\u0001" * 38: "\u0001" * 500 for key in range(50)}
    body = json.dumps({"metadata": metadata, "urls": "x" * 2 * 2048})
    # A byte that is no UTF-8 becomes one character of three.
    size = 1024 if character == "\ufffd" else 1024 // len(character.encode())
    entry = Delivery(NOW, 10_000, 500, None, character * size)
    event = full_event(body=body, deliveries=(entry,) * DELIVERIES_KEPT)
    assert item_size(events.event_item(event)) < ITEM_MAX


def test_a_logo_comes_back_as_plain_bytes_also_from_the_clients_own_type() -> None:
    item = merchants.merchant_item(full_merchant())
    item["logo"]["M"]["data"] = {"B": Binary(bytes(range(256)))}
    logo = merchants.merchant_from(item).logo
    assert logo is not None
    assert (type(logo.data), logo.data) == (bytes, bytes(range(256)))


def test_no_record_shows_its_secret_in_a_log() -> None:
    session = a_session(grant="SEALED", token="SEALED", interact_url="https://SEALED")
    assert "SEALED" not in repr([a_merchant(private_key="SEALED"), session])
    assert ApiKey.__dataclass_params__.frozen  # type: ignore[attr-defined]
