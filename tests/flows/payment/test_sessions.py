from __future__ import annotations

import base64
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from checkout.adapters.dynamo.event_records import event_from
from checkout.domain.errors import (
    AmountNotRepresentable,
    AmountTooLarge,
    AmountTooSmall,
    CurrencyMismatch,
    CurrencyNotSupported,
    CursorInvalid,
    IdempotencyKeyInvalid,
    IdempotencyKeyReused,
    PaymentInProgress,
    ResourceMissing,
    SessionBusy,
    SessionUnexpectedState,
    UrlInvalid,
)
from checkout.domain.merchant import ApiKey
from checkout.domain.new_session import NewSession
from checkout.domain.session import Instruction, LineItem, Phase, Problem, Session, Status
from checkout.domain.transitions import Event, advance
from checkout.domain.webhooks import CANCELED, COMPLETED, EXPIRED, Endpoint, WebhookEvent
from checkout.flows.give_way import GIVE_WAY
from checkout.flows.payment import sessions, writes
from checkout.flows.payment.sessions import ListQuery
from checkout.open_payments.models import Amount
from checkout.ports.services import Services
from checkout.ports.sessions import StaleSession
from tests.merchant_api import MerchantApi
from tests.product import NotedHints
from tests.support import NOW, between

LATER = NOW + timedelta(seconds=30)
JUST_SENT = Instruction("a", NOW)
EARLIER = NOW - timedelta(seconds=30)
AWAITING = Status.AWAITING_APPROVAL
End = Callable[[Services, ApiKey, str], Session]


@pytest.fixture
def api() -> MerchantApi:
    return MerchantApi()


def new(unit_amount: int = 1000, currency: str = "usd", **changes: Any) -> NewSession:
    fields: dict[str, Any] = {
        "line_items": (LineItem(currency, "Tea", None, unit_amount, 2),),
        "success_url": "https://shop.example/thanks?s={CHECKOUT_SESSION_ID}",
        "cancel_url": "https://shop.example/basket?s={CHECKOUT_SESSION_ID}",
    }
    return NewSession(**(fields | changes))


def create(api: MerchantApi, asked: NewSession, key: ApiKey | None = None) -> Session:
    created = sessions.create(api.services, key or api.key, asked, None)
    return api.stored(json.loads(created.body)["id"])


# --- creation


def test_a_created_session_is_stored_as_it_was_answered(api: MerchantApi) -> None:
    created = sessions.create(api.services, api.key, new(), None)
    body = json.loads(created.body)
    session = api.stored(body["id"])
    assert (created.status, created.replayed) == (201, False)
    assert session.status is Status.OPEN
    assert session.merchant == "mer_1"
    assert session.amount_total == body["amount_total"] == 2000
    assert session.receive == Amount(2000, "USD", 2)
    assert session.expires_at == NOW + timedelta(days=1)
    assert session.success_url == f"https://shop.example/thanks?s={session.id}"
    assert session.cancel_url == f"https://shop.example/basket?s={session.id}"
    assert [entry.event for entry in session.history] == ["created"]


@pytest.mark.parametrize(
    ("code", "scale", "currency", "unit_amount", "receive"),
    [
        ("JPY", 0, "jpy", 500, 1000),
        ("KWD", 3, "kwd", 1, 2),
        ("EUR", 9, "eur", 1, 20_000_000),
        ("USD", 0, "usd", 50, 1),
    ],
)
def test_the_total_is_converted_exactly_into_the_wallets_scale(
    api: MerchantApi, code: str, scale: int, currency: str, unit_amount: int, receive: int
) -> None:
    _, key = api.join("mer_3", asset_code=code, asset_scale=scale)
    assert create(api, new(unit_amount, currency), key).receive == Amount(receive, code, scale)


@pytest.mark.parametrize(
    ("asked", "error", "param"),
    [
        (new(0), AmountTooSmall, "line_items"),
        (
            new(
                line_items=(
                    LineItem("usd", "Tea", None, 999_999_999_999, 1000),
                    LineItem("usd", "Tea", None, 1000, 1),
                )
            ),
            AmountTooLarge,
            "line_items",
        ),
        (
            new(line_items=(LineItem("usd", "A", None, 1, 1), LineItem("eur", "B", None, 1, 1))),
            CurrencyMismatch,
            "line_items[1].price_data.currency",
        ),
        (new(currency="eur"), CurrencyNotSupported, "line_items[0].price_data.currency"),
        (new(success_url="http://shop.example/"), UrlInvalid, "success_url"),
        (new(cancel_url="javascript:alert(1)"), UrlInvalid, "cancel_url"),
    ],
)
def test_what_cannot_be_charged_is_refused_and_nothing_is_stored(
    api: MerchantApi, asked: NewSession, error: type[Exception], param: str
) -> None:
    with pytest.raises(error) as refused:
        sessions.create(api.services, api.key, asked, "key-1")
    assert getattr(refused.value, "param", None) == param
    assert not api.dynamo.calls


def test_a_total_finer_than_the_wallet_counts_is_refused(api: MerchantApi) -> None:
    _, key = api.join("mer_3", asset_code="USD", asset_scale=0)
    with pytest.raises(AmountNotRepresentable):
        create(api, new(1), key)


def test_http_addresses_are_taken_only_while_the_service_is_http() -> None:
    asked = new(success_url="http://localhost:3000/")
    assert create(MerchantApi(base_url="http://localhost:4000"), asked)
    with pytest.raises(UrlInvalid):
        create(MerchantApi(), asked)


# --- idempotency


def test_the_same_key_and_parameters_give_the_same_answer_and_one_session(api: MerchantApi) -> None:
    first = sessions.create(api.services, api.key, new(), "key-1")
    api.clock.pass_time(5)
    again = sessions.create(api.services, api.key, new(), "key-1")
    assert again == replace(first, replayed=True)
    assert len(api.rows("checkout_sessions")) == 1


def test_defaults_spelled_out_and_keys_in_another_order_are_the_same_parameters() -> None:
    one = new(metadata_json='{"a":1,"b":2}')
    assert one.fingerprint() == new(metadata_json='{"b":2,"a":1}').fingerprint()
    assert one.fingerprint() == replace(one, expires_in_seconds=86_400).fingerprint()
    others = ['{"a":1.0,"b":2}', '{"a":true,"b":2}', '{"a":"1","b":2}', '{"a":1}']
    assert (
        len({new(metadata_json=text).fingerprint() for text in others} | {one.fingerprint()}) == 5
    )


def test_the_same_key_with_other_parameters_is_refused(api: MerchantApi) -> None:
    sessions.create(api.services, api.key, new(), "key-1")
    with pytest.raises(IdempotencyKeyReused):
        sessions.create(api.services, api.key, new(1001), "key-1")
    assert len(api.rows("checkout_sessions")) == 1


def test_another_merchants_key_of_the_same_name_is_another_key(api: MerchantApi) -> None:
    first = sessions.create(api.services, api.key, new(), "key-1")
    other = sessions.create(api.services, api.other_key, new(), "key-1")
    assert not other.replayed
    assert json.loads(other.body)["id"] != json.loads(first.body)["id"]
    shifted = replace(api.key, merchant="mer_11")  # mer_1 and "1x" read as mer_11 and "x"
    assert not sessions.create(api.services, api.key, new(), "1x").replayed
    assert not sessions.create(api.services, shifted, new(), "x").replayed


def test_a_key_is_free_after_24_hours_and_not_a_millisecond_before(api: MerchantApi) -> None:
    sessions.create(api.services, api.key, new(), "key-1")
    api.clock.pass_time(24 * 3600 - 0.001)
    assert sessions.create(api.services, api.key, new(), "key-1").replayed
    api.clock.pass_time(0.001)
    assert not sessions.create(api.services, api.key, new(1001), "key-1").replayed
    assert sessions.create(api.services, api.key, new(1001), "key-1").replayed


@pytest.mark.parametrize("key", ["", "a" * 256, "ä", "a\tb", "a\nb", "\x7f", "\x00"])
def test_a_key_that_is_no_printable_ascii_is_refused(api: MerchantApi, key: str) -> None:
    with pytest.raises(IdempotencyKeyInvalid):
        sessions.create(api.services, api.key, new(), key)
    assert not api.dynamo.calls


def test_keys_of_every_allowed_length_are_taken(api: MerchantApi) -> None:
    for key in ("a", " ~", "a" * 255):
        assert not sessions.create(api.services, api.key, new(), key).replayed


def test_fifty_at_once_with_one_key_make_one_session_and_equal_answers(api: MerchantApi) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(
            pool.map(lambda _: sessions.create(api.services, api.key, new(), "key-1"), range(50))
        )
    assert len({answer.body for answer in answers}) == 1
    assert [answer.replayed for answer in answers].count(False) == 1
    assert len(api.rows("checkout_sessions")) == 1


# --- reading


def test_another_merchants_session_is_missing_like_an_unknown_one(api: MerchantApi) -> None:
    session = api.store()
    actions: list[End] = [sessions.get, sessions.expire, sessions.cancel]
    for action in actions:
        for key, session_id in [
            (api.other_key, session.id),
            (api.key, "cs_" + "0" * 22),
            (api.key, "cs_" + "0" * 21),
            (api.key, "cs_" + "0" * 3000),
            (api.key, ""),
            (api.key, "evt_" + "0" * 22),
            (api.key, "cs_" + "é" * 22),
        ]:
            with pytest.raises(ResourceMissing):
                action(api.services, key, session_id)
    assert api.stored(session.id) == session


def test_a_read_persists_that_time_is_up(api: MerchantApi) -> None:
    session = api.store()
    api.clock.pass_time(24 * 3600 - 0.001)
    assert sessions.get(api.services, api.key, session.id) == session
    api.clock.pass_time(0.001)
    assert sessions.get(api.services, api.key, session.id).status is Status.EXPIRED
    assert api.stored(session.id).status is Status.EXPIRED
    assert not api.rows("webhook_events")


# --- settling


def settled(api: MerchantApi, **changes: Any) -> Session:
    session = api.store(**changes)
    result = sessions.settle(api.services, session)
    assert result == api.stored(session.id)
    return result


def test_a_preparation_whose_lease_lapsed_is_open_again_with_the_reason(api: MerchantApi) -> None:
    for lease in (EARLIER, NOW, None):
        session = settled(api, status=Status.PREPARING, lease_until=lease)
        assert session.status is Status.OPEN
        assert session.problem is Problem.PREPARATION_INTERRUPTED
        assert session.lease_until is None


def test_a_continuation_whose_lease_lapsed_is_open_again_without_its_secrets(
    api: MerchantApi,
) -> None:
    session = settled(
        api,
        status=AWAITING,
        phase=Phase.CONTINUING,
        lease_until=EARLIER,
        grant="sealed",
        interact_url="https://w.example/i",
    )
    assert session.status is Status.OPEN
    assert session.problem is Problem.APPROVAL_UNUSABLE
    assert (session.phase, session.grant, session.interact_url) == (None, None, None)


def test_past_expiry_a_lapsed_lease_leads_to_expired(api: MerchantApi) -> None:
    for changes in (
        {"status": Status.PREPARING, "lease_until": EARLIER},
        {"status": Status.PREPARING, "lease_until": LATER},
        {"status": AWAITING, "phase": Phase.CONTINUING, "lease_until": EARLIER},
        {"status": AWAITING},
        {"status": Status.OPEN},
    ):
        assert settled(api, expires_at=NOW, **changes).status is Status.EXPIRED


@pytest.mark.parametrize(
    "changes",
    [
        {"status": Status.OPEN},
        {"status": AWAITING},
        {"status": Status.PREPARING, "lease_until": LATER},
        {"status": AWAITING, "phase": Phase.CONTINUING, "lease_until": LATER},
        {"status": AWAITING, "phase": Phase.CONTINUING, "lease_until": LATER, "expires_at": NOW},
        {"status": AWAITING, "phase": Phase.PAYING, "expires_at": EARLIER},
        {"status": Status.PROCESSING, "expires_at": EARLIER},
        {"status": Status.COMPLETED, "expires_at": EARLIER},
        {"status": Status.CANCELED, "expires_at": EARLIER},
        {"status": Status.EXPIRED, "expires_at": EARLIER},
    ],
)
def test_what_the_clock_has_not_decided_is_not_written(
    api: MerchantApi, changes: dict[str, Any]
) -> None:
    session = api.store(**changes)
    api.dynamo.calls.clear()
    assert sessions.settle(api.services, session) == session
    assert not api.dynamo.calls


def test_a_dead_preparation_can_be_ended_and_a_settler_that_lost_takes_that(
    api: MerchantApi,
) -> None:
    session = api.store(status=Status.PREPARING, lease_until=EARLIER)
    winner = sessions.cancel(api.services, api.key, session.id)
    assert winner.status is Status.CANCELED
    assert sessions.settle(api.services, session) == winner


# --- ending


@pytest.mark.parametrize(
    ("action", "status"),
    [(sessions.expire, Status.EXPIRED), (sessions.cancel, Status.CANCELED)],
)
@pytest.mark.parametrize(
    "changes",
    [
        {"status": Status.OPEN},
        {"status": AWAITING, "grant": "sealed"},
        {"status": AWAITING, "phase": Phase.CONTINUING, "lease_until": EARLIER},
    ],
)
def test_an_open_or_awaiting_session_ends_in_one_write(
    api: MerchantApi, action: End, status: Status, changes: dict[str, Any]
) -> None:
    session = api.store(**changes)
    api.dynamo.calls.clear()
    ended = action(api.services, api.key, session.id)
    assert ended.status is status
    # The session, the merchant (who may want to be told), the write.
    assert api.dynamo.calls == {"get_item": 2, "update_item": 1}
    assert (ended.grant, ended.phase, ended.due_at()) == (None, None, None)
    assert ended == api.stored(session.id)


@pytest.mark.parametrize(
    "changes",
    [
        {"status": AWAITING, "phase": Phase.CONTINUING, "lease_until": LATER},
        {"status": AWAITING, "phase": Phase.PAYING, "instruction": JUST_SENT},
        {
            "status": AWAITING,
            "phase": Phase.PAYING,
            "instruction": JUST_SENT,
            "expires_at": EARLIER,
        },
        {"status": Status.PROCESSING, "instruction": JUST_SENT},
    ],
)
@pytest.mark.parametrize(
    "action", [sessions.expire, sessions.cancel, sessions.accept_as_paid, sessions.give_up]
)
def test_a_payment_in_flight_is_not_taken_back(
    api: MerchantApi, action: End, changes: dict[str, Any]
) -> None:
    session = api.store(**changes)
    with pytest.raises(PaymentInProgress):
        action(api.services, api.key, session.id)
    assert api.stored(session.id) == session


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"status": Status.PREPARING, "lease_until": LATER}, "preparing"),
        ({"status": Status.COMPLETED}, "completed"),
        ({"status": Status.CANCELED}, "canceled"),
        ({"status": Status.EXPIRED}, "expired"),
        ({"status": Status.OPEN, "expires_at": NOW}, "expired"),
        ({"status": AWAITING, "expires_at": NOW}, "expired"),
    ],
)
@pytest.mark.parametrize("action", [sessions.expire, sessions.cancel])
def test_in_another_state_the_refusal_names_it_and_the_allowed_ones(
    api: MerchantApi, action: End, changes: dict[str, Any], named: str
) -> None:
    session = api.store(**changes)
    with pytest.raises(SessionUnexpectedState) as refused:
        action(api.services, api.key, session.id)
    for word in (named, "open", "awaiting_approval"):
        assert word in refused.value.message


def interfering(api: MerchantApi, times: int, win: Callable[[], Session]) -> Services:
    """Return services in whose store somebody else is faster, `times` over."""

    def lose() -> None:
        raise StaleSession(win())

    return replace(api.services, sessions=between(api.services.sessions, "save", lose, times=times))


def test_a_loser_decides_anew_from_what_the_winner_left(api: MerchantApi) -> None:
    session = api.store(status=AWAITING)
    winner = api.store(status=Status.COMPLETED)
    services = interfering(api, 1, lambda: winner)
    with pytest.raises(SessionUnexpectedState, match="completed"):
        sessions.cancel(services, api.key, session.id)
    assert api.stored(session.id).status is AWAITING


def test_a_loser_tries_again_while_that_may_help_and_then_says_busy(api: MerchantApi) -> None:
    for times in (1, GIVE_WAY - 1):
        session = api.store()
        services = interfering(api, times, partial(api.stored, session.id))
        assert sessions.cancel(services, api.key, session.id).status is Status.CANCELED
    session = api.store()
    services = interfering(api, 100, partial(api.stored, session.id))
    with pytest.raises(SessionBusy):
        sessions.cancel(services, api.key, session.id)


def test_an_end_asked_for_in_doubt_is_refused_also_where_the_fence_cannot_begin(
    api: MerchantApi,
) -> None:
    long_ago = Instruction("a", NOW - timedelta(hours=1))
    session = api.store(status=Status.PROCESSING, instruction=long_ago)
    services = interfering(api, 100, lambda: session)
    with pytest.raises(PaymentInProgress):
        sessions.cancel(services, api.key, session.id)
    assert api.stored(session.id) == session


def test_a_settler_that_always_loses_returns_the_last_state_it_saw(api: MerchantApi) -> None:
    session = api.store(expires_at=NOW)
    assert sessions.settle(interfering(api, 100, lambda: session), session) == session


# --- lists


def listed(api: MerchantApi, **query: Any) -> list[str]:
    return [
        one.id for one in sessions.list_page(api.services, api.key, ListQuery(**query)).sessions
    ]


def walk(api: MerchantApi, **query: Any) -> tuple[list[str], int]:
    """All pages' ids, and how many pages there were."""
    ids: list[str] = []
    cursor: str | None = None
    pages = 0
    while True:
        page = sessions.list_page(api.services, api.key, ListQuery(cursor=cursor, **query))
        pages += 1
        assert len(page.sessions) <= query.get("limit", 10)
        ids += [session.id for session in page.sessions]
        cursor = page.next_cursor
        if cursor is None:
            return ids, pages


def test_a_list_is_newest_first_without_another_merchants_sessions(api: MerchantApi) -> None:
    made = []
    for _ in range(5):
        made.append(create(api, new()).id)
        create(api, new(), api.other_key)
        api.clock.pass_time(1)
    assert listed(api) == made[::-1]


@pytest.mark.parametrize("limit", [1, 3, 7, 10, 100])
def test_pages_neither_skip_nor_repeat_sessions_of_one_millisecond(
    api: MerchantApi, limit: int
) -> None:
    made = sorted((api.store().id for _ in range(21)), reverse=True)
    ids, pages = walk(api, limit=limit)
    assert ids == made
    assert pages == -(-21 // limit)  # the last page knows that it is the last


def test_sessions_created_between_two_pages_change_nothing_behind_the_cursor(
    api: MerchantApi,
) -> None:
    made = sorted((api.store().id for _ in range(10)), reverse=True)
    first = sessions.list_page(api.services, api.key, ListQuery(limit=4))
    api.clock.pass_time(1)
    create(api, new())
    rest = sessions.list_page(api.services, api.key, ListQuery(limit=10, cursor=first.next_cursor))
    assert [one.id for one in (*first.sessions, *rest.sessions)] == made


def test_time_bounds_include_the_first_instant_and_exclude_the_last(api: MerchantApi) -> None:
    made = [api.store(created_at=NOW + timedelta(seconds=second)).id for second in range(4)]
    bounds = {
        "created_from": NOW + timedelta(seconds=1),
        "created_before": NOW + timedelta(seconds=3),
    }
    assert listed(api, **bounds) == [made[2], made[1]]
    assert walk(api, limit=1, **bounds)[0] == [made[2], made[1]]
    assert listed(api, created_from=NOW + timedelta(seconds=4)) == []


@pytest.mark.parametrize("limit", [1, 2, 7, 30])
def test_a_status_filter_finds_each_once_whatever_the_page_size(
    api: MerchantApi, limit: int
) -> None:
    wanted = []
    for number in range(30):
        status = Status.CANCELED if number % 4 == 0 else Status.OPEN
        session = api.store(status=status, created_at=NOW + timedelta(seconds=number // 3))
        wanted += [session] if status is Status.CANCELED else []
    wanted.sort(key=lambda session: (session.created_at, session.id), reverse=True)
    ids, _ = walk(api, limit=limit, status=Status.CANCELED)
    assert ids == [session.id for session in wanted]


def test_a_status_filter_judges_by_the_clock(api: MerchantApi) -> None:
    session = api.store(expires_at=NOW)
    assert listed(api, status=Status.OPEN) == []
    assert listed(api, status=Status.EXPIRED) == [session.id]


def test_a_rare_status_costs_a_bounded_number_of_reads_and_is_still_found(
    api: MerchantApi,
) -> None:
    rare = api.store(status=Status.CANCELED, created_at=NOW - timedelta(days=1))
    for _ in range(sessions.FILTER_ROUNDS * sessions.PAGE_MAX):
        api.store()
    api.dynamo.calls.clear()
    page = sessions.list_page(api.services, api.key, ListQuery(status=Status.CANCELED))
    assert page.sessions == ()
    assert page.next_cursor is not None
    rounds = sessions.FILTER_ROUNDS
    assert api.dynamo.calls == {"query": rounds, "batch_get_item": rounds}
    assert walk(api, status=Status.CANCELED)[0] == [rare.id]


def test_a_cursor_is_good_for_its_merchant_alone_and_only_untouched(api: MerchantApi) -> None:
    for _ in range(3):
        api.store()
    cursor = sessions.list_page(api.services, api.key, ListQuery(limit=1)).next_cursor
    assert cursor is not None
    plain = base64.urlsafe_b64decode(cursor + "==").decode()
    forged = [
        "",
        "x",
        "=",
        "é",
        cursor[:-2],
        cursor + "AA",
        cursor[1:],
        cursor.swapcase(),
        "A" * 5000,
        *(
            base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
            for text in (
                "",
                "#",
                plain.replace("1", "2", 1),
                plain.rpartition("#")[0],
                plain + "0",
                "\x00" * 60,
                "ü" * 30,
            )
        ),
    ]
    for tampered in forged:
        with pytest.raises(CursorInvalid):
            sessions.list_page(api.services, api.key, ListQuery(cursor=tampered))
    with pytest.raises(CursorInvalid):
        sessions.list_page(api.services, api.other_key, ListQuery(cursor=cursor))
    assert "mer_" not in plain


# --- what the merchant is told


def listen(api: MerchantApi, *events: str) -> None:
    merchant = api.services.merchants.get("mer_1")
    assert merchant is not None
    endpoint = Endpoint(url="https://shop.example/hooks", events=events)
    api.services.merchants.replace(merchant.changed(endpoint=endpoint))


def told(api: MerchantApi) -> list[WebhookEvent]:
    return [event_from(row) for row in api.rows("webhook_events")]


def passed(services: Services, key: ApiKey, session_id: str) -> Session:
    """Nobody ends it: time does, and a read notices."""
    return sessions.get(services, key, session_id)


ENDS: list[tuple[End, str, timedelta]] = [
    (sessions.cancel, CANCELED, timedelta(0)),
    (sessions.expire, EXPIRED, timedelta(0)),
    (passed, EXPIRED, timedelta(days=1)),
]


@pytest.mark.parametrize(("end", "wanted", "later"), ENDS)
def test_an_end_that_was_asked_for_is_told_in_the_transaction_that_makes_it(
    api: MerchantApi, end: End, wanted: str, later: timedelta
) -> None:
    listen(api, wanted)
    queue = NotedHints()
    services = replace(api.services, queue=queue)
    session = api.store(metadata_json='{"order":"ü 🫖"}')
    api.clock.pass_time(later.total_seconds())
    api.dynamo.calls.clear()
    ended = end(services, api.key, session.id)
    assert api.dynamo.calls == {"get_item": 2, "transact_write_items": 1}
    [event] = told(api)
    assert (event.id, event.type, event.session) == (ended.event, wanted, session.id)
    assert (event.merchant, event.attempts) == ("mer_1", 0)
    assert event.created_at == event.next_at == NOW + later
    body = json.loads(event.body)
    assert list(body.items())[:5] == [
        ("id", session.id),
        ("status", ended.status.value),
        ("amount_total", 2000),
        ("currency", "usd"),
        ("metadata", {"order": "ü 🫖"}),
    ]
    assert (queue.messages, queue.delays) == ([event.id], [0])


@pytest.mark.parametrize(("end", "wanted", "later"), ENDS)
@pytest.mark.parametrize("listening", ["no merchant", "no endpoint", "no wish", "another wish"])
def test_an_end_that_nobody_asked_for_is_told_to_nobody(
    api: MerchantApi, end: End, wanted: str, later: timedelta, listening: str
) -> None:
    merchant = "mer_gone" if listening == "no merchant" else "mer_1"
    if listening == "no wish":
        listen(api)
    if listening == "another wish":
        listen(api, CANCELED if wanted == EXPIRED else EXPIRED)
    session = api.store(merchant=merchant)
    api.clock.pass_time(later.total_seconds())
    ended = end(api.services, replace(api.key, merchant=merchant), session.id)
    assert ended.terminal
    assert ended.event is None
    assert told(api) == []


def test_of_two_ends_at_once_one_is_told_of(api: MerchantApi) -> None:
    listen(api, CANCELED, EXPIRED)
    session = api.store()
    cancel = partial(sessions.cancel, api.services, api.key, session.id)
    services = replace(api.services, sessions=between(api.services.sessions, "save", cancel))
    with pytest.raises(SessionUnexpectedState):
        sessions.expire(services, api.key, session.id)
    assert [event.type for event in told(api)] == [CANCELED]


@pytest.mark.parametrize("listening", [None, (), (EXPIRED,)])
def test_a_payment_is_told_whether_anybody_listens_or_not(
    api: MerchantApi, listening: tuple[str, ...] | None
) -> None:
    if listening is not None:
        listen(api, *listening)
    paid = api.store(status=Status.PROCESSING, outgoing_payment="https://r.example/out/1")
    change = advance(paid, Event.RECONCILED, now=NOW, writer="w", received=2000)
    api.dynamo.calls.clear()
    after = writes.commit(api.services, change)
    assert api.dynamo.calls == {"transact_write_items": 1}
    [event] = told(api)
    assert (event.id, event.type) == (after.event, COMPLETED)
    assert json.loads(event.body)["outgoing_payment"] == "https://r.example/out/1"


# --- budgets (design.md), without the key's look-up
