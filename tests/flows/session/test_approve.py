from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from checkout.domain.ground.errors import PaymentInProgress
from checkout.domain.payment.attempt import Outcome
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Phase, Problem
from checkout.domain.payment.machine import IllegalTransition
from checkout.domain.session.attempts import attempts_of, running
from checkout.domain.session.record import Session, Status
from checkout.domain.session.transitions import advance
from checkout.flows import limits
from checkout.flows.payment import instruct
from checkout.flows.session import approve, close
from checkout.ports import StaleRecord, Transaction
from open_payments.errors import NotSent, OutcomeUnknown, Reason, Refused
from open_payments.transports import Request, Response
from sandbox.wallets.provider import Rules
from tests.support.basics import between
from tests.support.flows import CEDAR, World, answering, interrupt, lose_answers, on, raising
from tests.support.protected import LEASE, SEND_WITHIN


def test_an_approved_payment_completes_step_by_step_with_one_event(
    world: World,
) -> None:
    session, callback = world.awaiting()
    done = world.finish(session, callback).record
    assert done.status is Status.COMPLETED
    assert done.completed_at == world.clock.now()
    assert done.received == world.received() == 2000
    assert done.outgoing_payment is not None
    assert (done.grant, done.token, done.interact_url) == (None, None, None)
    [event] = world.events()
    assert event["type"] == "checkout.session.completed"
    assert world.queue.messages == [event["id"]]
    assert [entry.event for entry in done.history] == [
        "created",
        "wallet_submitted",
        "reference_stored",
        "reference_stored",
        "prepared",
        "approval_claimed",
        "payment_intended",
        "payment_created",
        "reconciled",
    ]


@pytest.mark.parametrize("wait", [1, 5, 30])
def test_trap_05_a_wallets_wait_is_waited_for_in_the_browser_and_holds_no_process(
    wait: int,
) -> None:
    world = World(rules=Rules(wait=wait))
    session, (reference, presented) = world.awaiting()
    world.transport.sent.clear()
    begun = world.clock.now()
    for _ in range(3):  # any number of copies
        result = approve.finish(
            world.services, session.id, interact_ref=reference, presented_hash=presented
        )
        assert result.wait_seconds == wait
    assert world.clock.now() == begun
    assert world.transport.sent == []
    assert world.session(session.id) == session
    world.clock.pass_time(wait)
    done = world.finish(session, (reference, presented))
    assert (done.wait_seconds, done.record.status) == (0, Status.COMPLETED)


def test_a_wallet_whose_clock_disagrees_and_says_too_fast_is_asked_again(world: World) -> None:
    session, callback = world.awaiting()
    cedar = world.network.providers["cedar"]
    world.network.providers["cedar"] = replace(cedar, rules=Rules(wait=8))
    assert world.finish(session, callback).record.status is Status.COMPLETED
    assert world.received() == 2000


def test_trap_06_a_lost_continuation_answer_opens_the_session_and_no_money_moves() -> None:
    world = World()
    session, callback = world.awaiting()
    world.transport.after = lose_answers("/continue/", OutcomeUnknown("lost"))
    lost = world.finish(session, callback).record
    assert (lost.status, lost.problem) == (Status.OPEN, Problem.APPROVAL_UNUSABLE)
    assert world.transport.count("POST", "/continue/") == 2  # the second is refused
    assert world.transport.count("DELETE", "/continue/") == 1
    assert world.received() == 0
    assert world.pay(lost).status is Status.COMPLETED
    assert world.received() == 2000


STUMBLING = ("stumbles", "reads-no-keys")


@pytest.mark.parametrize("wallet", STUMBLING)
def test_a_wallet_that_stumbles_at_the_continuation_is_paid_from_with_one_approval(
    world: World, wallet: str
) -> None:
    session, (reference, presented) = world.awaiting(wallet)
    asked = {"interact_ref": reference, "presented_hash": presented}
    world.clock.pass_time(5)
    told = approve.finish(world.services, session.id, **asked)
    kept = told.record
    assert (told.wait_seconds, kept.status, kept.phase) == (10, Status.AWAITING_APPROVAL, None)
    assert (kept.lease_until, kept.grant) == (None, session.grant)
    assert [entry.event for entry in kept.history][-2:] == ["approval_claimed", "approval_kept"]
    done = world.finish(session, (reference, presented)).record
    assert (done.status, done.approve_until) == (Status.COMPLETED, None)
    assert len(attempts_of(done)) == 1
    assert world.received() == 2000


@pytest.mark.parametrize(
    "stumble",
    [
        lambda request: Response(503, {}, b""),
        lambda request: Response(429, {}, b""),
        raising(NotSent("down")),
        raising(OutcomeUnknown("no answer")),
    ],
    ids=["503", "429", "unreachable", "silent"],
)
def test_an_approval_that_no_wallet_takes_is_kept_for_three_minutes_and_then_lost(
    world: World, stumble: Callable[[Request], Response]
) -> None:
    session, callback = world.awaiting()
    world.clock.pass_time(5)
    began = world.clock.now()
    answering(world, "POST", "/continue/", stumble)
    lost = world.finish(session, callback).record
    assert (lost.status, lost.problem) == (Status.OPEN, Problem.APPROVAL_UNUSABLE)
    assert (lost.grant, lost.approve_until) == (None, None)
    assert 170 < (world.clock.now() - began).total_seconds() < 200
    assert world.received() == 0


@pytest.mark.parametrize("ending", [close.cancel, close.expire])
def test_a_session_whose_approval_is_kept_can_be_ended_or_paid_from_another_wallet(
    world: World, ending: Callable[..., object]
) -> None:
    for end in (True, False):
        session, (reference, presented) = world.awaiting("stumbles")
        asked = {"interact_ref": reference, "presented_hash": presented}
        world.clock.pass_time(5)
        assert approve.finish(world.services, session.id, **asked).wait_seconds == 10
        if end:
            ending(world.services, world.key(), session.id)
        else:
            assert world.pay(session).status is Status.COMPLETED
        world.clock.pass_time(30)
        late = approve.finish(world.services, session.id, **asked).record
        assert late == world.session(session.id)
        assert world.received() == (0 if end else 2000)


def test_a_new_price_that_the_wallet_stumbles_at_is_asked_for_again(world: World) -> None:
    session, callback = world.awaiting()
    world.clock.pass_time(299)
    refuses = [Response(503, {}, b""), Response(503, {}, b"")]
    handle = world.network.handle
    answering(
        world, "POST", "/quotes", lambda request: refuses.pop() if refuses else handle(request)
    )
    assert world.finish(session, callback).record.status is Status.COMPLETED
    assert (refuses, world.received()) == ([], 2000)


def test_trap_11_a_quote_that_ran_out_during_consent_is_renewed_within_the_approved_limit() -> None:
    world = World()
    session, callback = world.awaiting()
    world.clock.pass_time(299)
    done = world.finish(session, callback).record
    assert done.status is Status.COMPLETED
    assert done.quote is not None
    assert session.quote is not None
    assert done.quote.id != session.quote.id
    assert done.incoming_payment == session.incoming_payment
    assert world.received() == 2000


def test_a_renewed_quote_beyond_what_was_approved_asks_the_customer_again(world: World) -> None:
    session, callback = world.awaiting("expensive-renewal")
    world.clock.pass_time(299)
    back = world.finish(session, callback).record
    assert (back.status, back.problem) == (Status.OPEN, Problem.PRICE_CHANGED)
    assert world.received() == 0
    assert world.transport.count("POST", "/outgoing-payments") == 0
    assert world.pay(back, f"{CEDAR}/expensive-renewal").status is Status.COMPLETED


def test_a_wallet_with_one_second_quotes_pays(world: World) -> None:
    session, callback = world.awaiting("quote-expired")
    world.clock.pass_time(60)
    assert world.finish(session, callback).record.status is Status.COMPLETED


def test_trap_07_an_answer_lost_after_the_payment_is_never_sent_again(world: World) -> None:
    session, callback = world.awaiting("dies-after-create")
    doubtful = world.finish(session, callback).record
    assert (doubtful.status, doubtful.phase) == (Status.AWAITING_APPROVAL, Phase.PAYING)
    done = world.settle(doubtful)
    assert done.status is Status.COMPLETED
    assert done.outgoing_payment is not None
    assert world.transport.count("POST", "/outgoing-payments") == 1
    assert world.transport.count("GET", "/outgoing-payments/") == 1
    assert world.received() == 2000


def test_a_definite_refusal_opens_the_session_once_the_wallet_shows_no_payment() -> None:
    world = World()
    session, callback = world.awaiting()
    world.transport.before = on("POST", "/outgoing-payments", world.raise_prices)
    back = world.finish(session, callback).record
    assert (back.status, back.problem) == (Status.OPEN, Problem.PAYMENT_REFUSED)
    assert world.transport.count("GET", "/outgoing-payments/") == 1
    assert world.transport.count("GET", "/outgoing-payments?") == 1
    world.transport.before = lambda request: None
    assert world.pay(back).status is Status.COMPLETED


@pytest.mark.parametrize("status", [400, 403, 404, 408, 409, 425, 429, 500, 503])
def test_an_answer_that_contradicts_what_the_wallet_shows_proves_nothing(status: int) -> None:
    """A doubled delivery gets 400 "invalid quote"; a hostile wallet refuses what it accepted."""
    world = World()
    session, callback = world.awaiting()

    def lie(request: Request) -> Response:
        world.network.handle(request)
        body = b'{"error":{"code":"400","description":"invalid quote"}}'
        return Response(status, {"content-type": "application/json"}, body)

    answering(world, "POST", "/outgoing-payments", lie)
    shown = world.finish(session, callback).record
    if status < 500:  # a refusal has the merchant's wallet asked, which shows the money
        assert shown.status is Status.COMPLETED
    else:
        assert shown.phase is Phase.PAYING
    assert world.settle(shown).status is Status.COMPLETED
    assert world.received() == 2000


@pytest.mark.parametrize("ending", [close.expire, close.cancel])
def test_a_payment_in_flight_is_never_taken_back(ending: Callable[..., object]) -> None:
    world = World()
    session, callback = world.awaiting()
    refused: list[Exception] = []

    def during() -> None:
        with pytest.raises(PaymentInProgress) as caught:
            ending(world.services, world.key(), session.id)
        refused.append(caught.value)

    world.transport.before = on("POST", "/outgoing-payments", during)
    assert world.finish(session, callback).record.status is Status.COMPLETED
    assert refused


def test_two_callbacks_at_once_pay_once(world: World) -> None:
    session, callback = world.awaiting()
    seen: list[Session] = []

    def during(request: Request) -> None:
        if "/continue/" in request.url and not seen:
            seen.append(world.finish(session, callback).record)

    world.transport.before = during
    assert world.finish(session, callback).record.status is Status.COMPLETED
    assert [other.phase for other in seen] == [Phase.CONTINUING]
    assert world.transport.count("POST", "/continue/") == 1
    assert world.transport.count("POST", "/outgoing-payments") == 1
    assert world.received() == 2000


def test_a_session_that_expires_before_the_claim_is_expired_and_nobody_is_asked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, callback = world.awaiting()
    left = (session.expires_at - world.clock.now()).total_seconds()
    monkeypatch.setattr(limits, "admit_work", lambda *_, **__: world.clock.pass_time(left))
    world.transport.sent.clear()
    assert world.finish(session, callback).record.status is Status.EXPIRED
    assert world.transport.sent == []


def test_whoever_wakes_up_after_the_attempts_deadline_does_not_send(world: World) -> None:
    session, callback = world.awaiting()

    def slow() -> None:
        if world.session(session.id).phase is Phase.CONTINUING:  # the intent is written now
            world.clock.pass_time(SEND_WITHIN.total_seconds())

    interrupt(world, "update_item", slow, times=2)
    back = world.finish(session, callback).record
    assert world.transport.count("POST", "/outgoing-payments") == 0
    assert (back.status, back.problem) == (Status.OPEN, Problem.APPROVAL_UNUSABLE), "at once"
    assert world.pay(back).status is Status.COMPLETED


def test_a_connection_refused_before_the_payment_was_sent_opens_the_session_at_once(
    world: World,
) -> None:
    session, callback = world.awaiting()

    def unreachable(request: Request) -> None:
        if request.method == "POST" and request.url.endswith("/outgoing-payments"):
            raise NotSent("connection refused")

    world.transport.before = unreachable
    back = world.finish(session, callback).record
    assert (back.status, back.problem) == (Status.OPEN, Problem.WALLET_UNREACHABLE)
    world.transport.before = lambda request: None
    assert world.pay(back).status is Status.COMPLETED
    assert world.received() == 2000


def test_a_refusal_of_a_wallet_that_paid_all_the_same_is_not_believed(world: World) -> None:
    """The customer's wallet hides the payment; the merchant's shows the money."""
    session, callback = world.awaiting()

    def hide(request: Request, response: Response) -> None:
        if "/outgoing-payments" in request.url:
            status = 404 if request.method == "GET" else 403
            raise Refused("no", operation="", status=status, reason=hidden[request.method])

    hidden = {"GET": Reason.NOT_FOUND, "POST": Reason.OTHER}
    world.transport.after = hide
    assert world.finish(session, callback).record.status is Status.COMPLETED


def test_a_refusal_is_not_believed_while_the_wallet_shows_the_payment(world: World) -> None:
    """No money is there yet: the wallet sends it after a moment."""
    session, callback = world.awaiting("late")

    def refuse(request: Request, response: Response) -> None:
        if request.method == "POST" and "/outgoing-payments" in request.url:
            raise Refused("no", operation="", status=403, reason=Reason.OTHER)

    world.transport.after = refuse
    doubtful = world.finish(session, callback).record
    assert doubtful.phase is Phase.PAYING
    assert world.settle(doubtful, seconds=120).status is Status.COMPLETED
    assert world.received() == 2000


@pytest.mark.parametrize("reason", [Reason.BUSY, Reason.INVALID_QUOTE])
def test_a_refusal_that_may_follow_a_payment_proves_nothing(world: World, reason: Reason) -> None:
    """A wallet that is busy with a quote, or knows it as used, may have paid it."""
    session, callback = world.awaiting()
    refused = Refused("no", operation="", status=409, reason=reason)
    world.transport.before = on("POST", "/outgoing-payments", raising(refused))
    doubtful = world.finish(session, callback).record
    assert (doubtful.phase, doubtful.closing_at) == (Phase.PAYING, None)
    assert world.transport.count("GET", "/outgoing-payments") == 0, "nobody is asked"


def test_a_sweep_that_only_looked_does_not_cost_us_the_wallets_answer(world: World) -> None:
    session, callback = world.awaiting()

    def look() -> None:
        current, now = world.session(session.id), world.clock.now()
        change = advance(current, Event.CHECKED, now=now, writer="sweep", check_at=now)
        world.services.sessions.save(Transaction(change))

    world.transport.after = on("POST", "/outgoing-payments", look)
    done = world.finish(session, callback).record
    assert done.status is Status.COMPLETED
    assert done.outgoing_payment is not None


def test_a_claim_that_lost_its_race_holds_its_lease_from_when_it_is_written(world: World) -> None:
    session, callback = world.awaiting()
    lost, leases = [], []

    def look() -> None:
        world.clock.pass_time(10)
        current, now = world.session(session.id), world.clock.now()
        lost.append(now)
        change = advance(current, Event.CHECKED, now=now, writer="sweep", check_at=now)
        services.sessions.save(Transaction(change))

    services = world.services
    world.services = replace(services, sessions=between(services.sessions, "save", look))
    world.transport.after = on(
        "POST", "/continue", lambda: leases.append(world.session(session.id).lease_until)
    )
    assert world.finish(session, callback).record.status is Status.COMPLETED
    assert leases == [lost[0] + LEASE]


@pytest.mark.parametrize(
    "moved_on",
    [lambda session: IllegalTransition(session, Event.PAYMENT_INTENDED), StaleRecord],
)
def test_a_session_that_moved_on_during_the_continuation_is_shown_as_it_is(
    world: World, monkeypatch: pytest.MonkeyPatch, moved_on: Callable[[Session], Exception]
) -> None:
    session, callback = world.awaiting()
    monkeypatch.setattr(instruct, "move", raising(moved_on(session)))
    found = world.finish(session, callback).record
    assert found.status is Status.AWAITING_APPROVAL
    assert world.transport.count("POST", "/outgoing-payments") == 0


# --- a return without an approval is noted, and changes nothing else ---


@pytest.mark.parametrize(
    ("result", "outcome"),
    [("grant_rejected", Outcome.DECLINED), ("invalid_interaction", Outcome.TIMED_OUT)],
)
def test_a_report_is_kept_on_the_attempt_and_moves_nothing(
    world: World, result: str, outcome: Outcome
) -> None:
    session = world.submit(world.create())
    after = world.report(session, result)
    attempt = running(after)
    assert attempt is not None
    assert (attempt.reported, attempt.reported_at) == (outcome, world.clock.now())
    assert attempt.outcome is None
    changed = {"version", "writer", "history", "payment_attempts", "updated_at"}
    same = {name: getattr(session, name) for name in changed}
    assert replace(after, **same) == session
    assert after.history[-1].note == outcome.value


def test_a_report_is_kept_once(world: World) -> None:
    session = world.report(world.submit(world.create()))
    assert world.report(session, "invalid_interaction") is session


def test_a_browser_that_did_not_begin_the_approval_reports_nothing(world: World) -> None:
    first = world.submit(world.create())
    old = world.proof(first)
    session = world.submit(first)
    for browser in ("", "0" * 32, old):
        assert (
            approve.note_reported(world.services, session, "grant_rejected", browser=browser)
            is session
        )


def test_a_session_that_does_not_wait_takes_no_report(world: World) -> None:
    session = world.create()
    assert approve.note_reported(world.services, session, "grant_rejected", browser="") is session
    paying = world.in_doubt()
    assert approve.note_reported(world.services, paying, "grant_rejected", browser="") is paying


def test_a_report_that_comes_too_late_changes_nothing(world: World) -> None:
    session = world.submit(world.create())
    browser = world.proof(session)
    ended = close.cancel(world.services, world.key(), session.id)
    told = approve.note_reported(world.services, session, "grant_rejected", browser=browser)
    assert told == ended
    expired = world.submit(world.create())
    browser = world.proof(expired)
    world.clock.pass_time(2 * 24 * 3600)
    assert (
        approve.note_reported(world.services, expired, "grant_rejected", browser=browser) is expired
    )


def test_the_next_wallet_ends_a_declined_attempt_as_declined(world: World) -> None:
    session = world.pay(world.report(world.submit(world.create())))
    first, second = attempts_of(session)
    assert (first.outcome, first.reported) == (Outcome.DECLINED, Outcome.DECLINED)
    assert (second.outcome, second.outgoing_payment) == (Outcome.PAID, session.outgoing_payment)
