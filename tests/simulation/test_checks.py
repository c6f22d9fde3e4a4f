"""Each check can fail: it is shown what it must catch, in a world where nothing else happens.

Here are those that no seeded bug shows (mutants.py); `make simulate-mutants` names a check that
neither does.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from checkout.adapters.dynamo.events import event_item
from checkout.adapters.dynamo.records import session_item
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import (
    Attention,
    IncomingPaymentRef,
    Instruction,
    Phase,
)
from checkout.domain.payment.machine import HistoryEntry
from checkout.domain.session.public import event_body
from checkout.domain.session.record import Session, Status
from checkout.domain.session.transitions import advance
from checkout.domain.webhooks.event_types import COMPLETED
from open_payments.models import Amount
from open_payments.models import Quote as Price
from open_payments.transports import Request, Response
from sandbox.wallets.state import (
    Grant,
    GrantState,
    IncomingPayment,
    Interaction,
    Money,
    OutgoingPayment,
    Quote,
)
from tests.simulation import actors
from tests.simulation.boundaries import BEGINNING, Process, SimDynamo
from tests.simulation.faults import Aws
from tests.simulation.providers import CEDAR, CUSTOMER, HARBOR, KINDS, SHOP
from tests.simulation.sim_world import Answer, SimWorld
from tests.support.basics import GAVE_A_WALLET, a_link, a_session
from tests.support.samples import an_event

TENANT = "438fa74a-fa7d-4317-9ced-dde32ece1787"
INCOMING = f"{HARBOR}/{TENANT}/incoming-payments/in-1"
QUOTE = f"{CEDAR}/{TENANT}/quotes/quote-1"
LATER = BEGINNING + timedelta(hours=1)


class Stage:
    """A world that is not run: the test writes to its tables and its wallets' books."""

    def __init__(self) -> None:
        self.world = SimWorld(1)
        self.checker = self.world.checker
        self.process = Process(self.world, "p1", 0)
        self.session: Session | None = None
        state = self.world.network.state
        state.incoming["in-1"] = IncomingPayment(
            "in-1", "harbor", SHOP, usd(2000), usd(0), False, BEGINNING, LATER, None, SHOP
        )
        state.quotes["quote-1"] = Quote(
            "quote-1", "cedar", CUSTOMER, INCOMING, eur(2000), usd(2000), 0, BEGINNING, LATER, SHOP
        )
        state.grants["grant-1"] = Grant(
            id="grant-1",
            provider="cedar",
            client=SHOP,
            jwk=None,
            access=[{"limits": {"debitAmount": eur(2000).json()}}],
            continue_token="c",
            last_asked=BEGINNING,
            state=GrantState.APPROVED,
            interaction=Interaction(
                "i", "n", "ref-1", "Shop", SHOP, LATER, "https://x/pay/cs_1/grant/callback", "n"
            ),
        )

    @property
    def caught(self) -> list[str]:
        return [violation.check for violation in self.world.violations]

    def write(self, session: Session, event: Event | None = None) -> Session:
        """Store `session` as the next version, as `event` would."""
        before = self.session
        if event is not None:
            entry = HistoryEntry(BEGINNING, event.value)
            session = replace(session, history=(*session.history, entry))
        item = session_item(session)
        old = session_item(before) if before is not None else None
        self.checker.written([("sim-checkout_sessions", old, item)], "actor")
        self.session = session
        return session

    def paying(self) -> Session:
        """A session whose intent to pay has been written."""
        session = a_session(
            Status.AWAITING_APPROVAL,
            phase=Phase.CONTINUING,
            incoming_payment=IncomingPaymentRef(INCOMING, LATER),
            quote=Price(QUOTE, Amount(2000, "EUR", 2), Amount(2000, "USD", 2), None),
            lease_until=LATER,
        )
        self.write(session)
        session = replace(
            session,
            version=2,
            phase=Phase.PAYING,
            instruction=Instruction("attempt-1", BEGINNING + timedelta(seconds=5)),
            check_at=LATER,
        )
        return self.write(session, Event.PAYMENT_INTENDED)

    def pay(self, payment_id: str = "out-1", **changes: Any) -> OutgoingPayment:
        """A payment at the customer's wallet, under way."""
        payment = OutgoingPayment(
            id=payment_id,
            quote_id="quote-1",
            provider="cedar",
            wallet=CUSTOMER,
            receiver=INCOMING,
            debit=eur(2000),
            receive=usd(2000),
            fee=0,
            sent=0,
            failed=False,
            metadata={},
            created_at=BEGINNING,
            grant_id="grant-1",
            client=SHOP,
            settles_at=LATER,
            funded=True,
        )
        for name, value in changes.items():
            setattr(payment, name, value)
        self.world.network.state.outgoing[payment_id] = payment
        return payment

    def credit(self, value: int) -> None:
        self.world.network.state.incoming["in-1"].received = usd(value)
        self.checker.money()


@pytest.fixture
def stage() -> Stage:
    return Stage()


def usd(value: int) -> Money:
    return Money(value, "USD", 2)


def eur(value: int) -> Money:
    return Money(value, "EUR", 2)


def sending(url: str, **body: str) -> Request:
    return Request("POST", url, {}, json.dumps(body).encode())


def payment_request() -> Request:
    return sending(f"{CEDAR}/{TENANT}/outgoing-payments", quoteId=QUOTE)


def completed(session: Session) -> Session:
    return replace(session, version=9, status=Status.COMPLETED, phase=None, check_at=None)


def event_of(
    session: Session, body: str | None = None, event_id: str = "evt_1", version: int = 1
) -> dict[str, Any]:
    event = an_event(id=event_id, subject=session.id, type=COMPLETED, version=version)
    return event_item(replace(event, body=body or event_body(session)))


# --- what is written ---


@pytest.mark.parametrize(("changes", "early"), [({}, True), ({"failed": True}, False)])
def test_a_fence_may_begin_once_the_payment_has_failed_also_where_its_address_is_unknown(
    stage: Stage, changes: dict[str, Any], early: bool
) -> None:
    session = stage.paying()
    stage.pay(**changes)
    stage.write(replace(session, version=3, closing_at=BEGINNING), Event.CLOSING_STARTED)
    assert ("fence_waits_its_time" in stage.caught) is early


@pytest.mark.parametrize("read_at", [34, 35])
def test_the_read_behind_a_verdict_begins_35_s_after_the_close(stage: Stage, read_at: int) -> None:
    session = stage.paying()
    closed = replace(session, closing_at=BEGINNING, closed_at=BEGINNING)
    stage.session = stage.checker.sessions[session.id] = closed
    stage.world.scheduler.now = read_at * 1000
    get = Request("GET", INCOMING, {}, b"")
    stage.checker.sending(stage.process, get)
    change = advance(closed, Event.PAYMENT_DISPROVED, now=LATER, writer="w")
    item = session_item(change.after), stage.world.scheduler.actor
    stage.checker.written([("sim-checkout_sessions", session_item(closed), item[0])], item[1])
    assert ("verdict_reads_late_enough" in stage.caught) == (read_at < 35)


@pytest.mark.parametrize("lost", [{}, {"hung_until": None}, {"history": ()}])
def test_a_record_of_the_payment_that_loses_what_a_check_wrote_is_caught(
    stage: Stage, lost: dict[str, Any]
) -> None:
    checked = stage.write(replace(stage.paying(), version=3, hung_until=LATER))
    after = replace(checked, version=4, status=Status.PROCESSING, phase=None, **lost)
    stage.write(after, Event.PAYMENT_CREATED)
    assert stage.caught == ["record_loses_nothing"] * bool(lost)


BEFORE = a_session(Status.OPEN, version=3, history=GAVE_A_WALLET)
WRITES: list[tuple[str, Session, Session, Event | None]] = [
    (
        "terminal_is_final",
        replace(BEFORE, status=Status.CANCELED),
        replace(BEFORE, version=4),
        None,
    ),
    (
        "metadata_is_what_was_written",
        BEFORE,
        replace(BEFORE, version=4, metadata_json='{"order":"2"}'),
        Event.CHECKED,
    ),
]


@pytest.mark.parametrize("case", WRITES, ids=lambda case: case[0])
def test_a_wrong_write_is_caught(
    stage: Stage, case: tuple[str, Session, Session, Event | None]
) -> None:
    name, before, after, event = case
    stage.write(before)
    assert stage.caught == []
    stage.write(after, event)
    assert name in stage.caught


NEW = a_session(Status.OPEN)


@pytest.mark.parametrize(
    ("check", "session", "wrong"),
    [
        ("the_clock_finds_it", NEW, {"uncounted_shard": {"S": "3"}}),
        ("the_clock_finds_it", NEW, {"uncounted_at": {"N": "1"}}),
        ("the_clock_finds_it", BEFORE, {"uncounted_shard": {"S": "clock-3"}}),
        ("untouched_owes_nothing", NEW, {"due_shard": {"S": "later-3"}, "due_at": {"N": "1"}}),
        ("payments_come_first", BEFORE, {"due_shard": {"S": "3"}}),
        (
            "payments_come_first",
            replace(BEFORE, status=Status.PROCESSING, check_at=LATER),
            {"due_shard": {"S": "later-3"}},
        ),
    ],
)
def test_a_wrong_place_in_an_index_is_caught(
    stage: Stage, check: str, session: Session, wrong: dict[str, dict[str, str]]
) -> None:
    right = session_item(session)
    stage.checker.written([("sim-checkout_sessions", None, right)], "actor")
    assert stage.caught == []
    stage.checker.written([("sim-checkout_sessions", None, right | wrong)], "actor")
    assert check in stage.caught


def test_an_intent_that_was_written_before_is_caught(stage: Stage) -> None:
    session = stage.paying()
    stage.session = replace(session, phase=Phase.CONTINUING)
    stage.checker.sessions[session.id] = stage.session
    stage.write(replace(session, version=3), Event.PAYMENT_INTENDED)
    assert stage.caught == ["intent_is_new"]


def test_a_terminal_session_that_is_due_is_caught(stage: Stage) -> None:
    due = {"due_at": {"N": "1"}, "due_shard": {"S": "0"}}
    item = session_item(a_session(Status.CANCELED)) | due
    stage.checker.written([("sim-checkout_sessions", None, item)], "actor")
    assert "done_owes_nothing" in stage.caught


@pytest.mark.parametrize("received", [0, 1998])
def test_a_completed_session_without_its_money_or_its_event_is_caught(
    stage: Stage, received: int
) -> None:
    session = stage.paying()
    stage.credit(received)
    stage.write(completed(session), Event.RECONCILED)
    assert {"completed_is_paid", "completed_has_one_event"} <= set(stage.caught)
    assert ("completed_was_instructed" in stage.caught) == (received == 0)


def test_an_event_that_tells_something_else_is_caught(stage: Stage) -> None:
    session = stage.paying()
    stage.credit(2000)
    wrong = event_of(session, body=event_body(session))  # its status is not completed
    done = completed(replace(session, history=(HistoryEntry(BEGINNING, "reconciled"),)))
    rows = [
        ("sim-checkout_sessions", session_item(session), session_item(done)),
        ("sim-webhook_events", None, wrong),
    ]
    stage.checker.written(rows, "actor")
    assert "event_tells_the_session" in stage.caught


# --- what is sent ---


def test_a_reference_that_is_accepted_twice_is_caught(stage: Stage) -> None:
    stage.checker.continued("grant-1")
    assert stage.caught == []
    stage.checker.continued("grant-1")
    assert stage.caught == ["one_continue_per_reference"]


def test_a_refused_callback_that_did_something_is_caught(stage: Stage) -> None:
    stage.checker.refused_callback(0, 0)
    assert stage.caught == []
    stage.checker.refused_callback(0, 1)
    assert stage.caught == ["unverified_does_nothing"]


# --- what the wallets do ---


def test_a_doubled_delivery_excuses_a_second_payment_only_where_nothing_is_enforced(
    stage: Stage,
) -> None:
    stage.world.kind = next(kind for kind in KINDS if kind.prevents_nothing)
    stage.paying()
    stage.checker.doubling(payment_request())
    stage.pay("out-1")
    stage.pay("out-2")
    stage.checker.money()
    assert stage.caught == []
    stage.pay("out-3")
    stage.checker.money()
    assert stage.caught == ["one_live_payment"]


@pytest.mark.parametrize(("debit", "caught"), [(2000, []), (2001, ["never_more_than_approved"])])
def test_a_payment_that_debits_more_than_was_approved_is_caught(
    stage: Stage, debit: int, caught: list[str]
) -> None:
    stage.paying()
    stage.pay(debit=eur(debit), parts_sent=1)
    stage.checker._prices.clear()  # of what the customer was shown
    stage.checker.money()
    assert stage.caught == caught


@pytest.mark.parametrize(
    ("event", "gone", "check"),
    [
        (Event.PAYMENT_DISPROVED, "incoming_payment", "disproved_stays_unpaid"),
        (Event.PAYMENT_REFUSED, "quote", "refused_stays_unpaid"),
    ],
)
def test_money_after_a_verdict_of_nothing_is_caught(
    stage: Stage, event: Event, gone: str, check: str
) -> None:
    changes: dict[str, Any] = {"version": 3, "status": Status.OPEN, "phase": None, gone: None}
    stage.write(replace(stage.paying(), **changes), event)
    stage.world.violations.clear()  # of the order
    stage.pay(parts_sent=1)
    stage.credit(2000)
    assert stage.caught == [check]


# --- at the end, and what people are told ---


def test_a_flag_without_a_reason_is_caught(stage: Stage) -> None:
    flagged = replace(
        stage.paying(),
        status=Status.PROCESSING,
        attention=Attention.PARTIAL_PAYMENT,
        check_at=None,
    )
    stage.checker.sessions[flagged.id] = flagged
    stage.checker.finished()
    assert stage.caught == ["flagged_has_a_reason"]
    stage.world.violations.clear()
    stage.credit(1000)
    stage.checker.finished()
    assert stage.caught == ["money_is_recorded"]
    stage.world.violations.clear()
    stage.checker.sessions[flagged.id] = replace(flagged, received=1000)
    stage.checker.finished()
    assert stage.caught == []


def throttled(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage.world.faults, "aws", lambda reads: Aws.THROTTLED)
    with contextlib.suppress(ClientError):
        SimDynamo(stage.process).get_item(TableName="sim-merchants", ConsistentRead=True)


def nothing_of_a_batch(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.world.swarm = replace(stage.world.swarm, partial=1.0)
    monkeypatch.setattr(stage.world.faults, "aws", lambda reads: None)
    monkeypatch.setattr(stage.world.wide, "randrange", lambda most: 0)
    puts = [{"PutRequest": {"Item": {"id": {"S": "search#1"}}}}]
    request = {"RequestItems": {"sim-checkout_sessions": puts}}
    answer = SimDynamo(stage.process).batch_write_item(**request)
    assert answer["UnprocessedItems"] == request["RequestItems"]


@pytest.mark.parametrize(
    ("store_fails", "caught"),
    [
        (None, ["a_part_that_is_seen_is_told"]),
        (throttled, []),
        (nothing_of_a_batch, []),
    ],
)
def test_money_that_was_seen_and_not_told_is_caught_unless_the_store_failed(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    store_fails: Callable[[Stage, pytest.MonkeyPatch], None] | None,
    caught: list[str],
) -> None:
    ended = replace(stage.paying(), status=Status.EXPIRED, phase=None, check_at=None)
    stage.checker.sessions[ended.id] = ended

    def look() -> None:
        received = json.dumps({"receivedAmount": {"value": "500"}}).encode()
        stage.checker.has_read(Request("GET", INCOMING, {}, None), Response(200, {}, received))
        if store_fails is not None:
            store_fails(stage, monkeypatch)
        stage.checker.answering()

    stage.world.scheduler.spawn("sweep", look)
    stage.world.scheduler.run(until=10**6)
    assert stage.caught == caught


def test_a_customer_who_is_told_paid_too_early_is_caught(stage: Stage) -> None:
    session = stage.paying()
    customer = actors.Customer(stage.world, session.id)
    answers(stage, lambda: completed(session))
    customer._look()
    assert stage.caught == ["told_paid_when_paid"]


def test_two_sessions_of_one_visit_are_caught(stage: Stage) -> None:
    ids = iter(range(10))
    answers(stage, lambda: type("Begun", (), {"session_id": f"cs_{next(ids)}"})())
    stage.world.rng.random = lambda: 0.95  # type: ignore[method-assign]
    merchant = actors.Merchant(stage.world, 0)
    stage.world.scheduler.spawn("merchant", lambda: void(merchant._buy(a_link())))
    stage.world.scheduler.run(until=10**6)
    assert stage.caught == ["one_session_per_visit"]


def test_a_wallet_that_expects_another_amount_than_the_chosen_one_is_caught(stage: Stage) -> None:
    session = stage.paying()
    stage.checker.chosen(session.id, 2000)
    stage.checker._chosen_in_the_ledger()
    assert stage.caught == []
    stage.world.network.state.incoming["in-1"].amount = usd(1999)
    stage.checker._chosen_in_the_ledger()
    assert stage.caught == ["the_ledger_has_what_the_form_held"]


def test_a_payment_of_another_session_is_caught(stage: Stage) -> None:
    stage.pay("out-9", receiver=INCOMING.replace("in-1", "in-9"))
    paid = f"{CEDAR}/{TENANT}/outgoing-payments/out-9"
    stage.write(replace(stage.paying(), version=3, outgoing_payment=paid))
    assert "payment_is_its_own" in stage.caught


def answers(stage: Stage, value: Callable[[], Any]) -> None:
    """Let every request to the product have that answer."""
    stage.world.request = lambda name, act: Answer(value())  # type: ignore[method-assign]


def void(_: object) -> None:
    """For what nobody looks at."""
