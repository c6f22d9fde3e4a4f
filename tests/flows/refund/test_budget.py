"""The refund budget: approved once in the merchant's wallet, it pays refunds without a person.

The sums that were paid come from the wallets' books, never from the budget itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from checkout.domain.ground.errors import (
    AmountTooLarge,
    AmountTooSmall,
    CallbackInvalid,
    CheckoutError,
    MerchantWalletError,
    RefundUnexpectedState,
    SessionBusy,
)
from checkout.domain.payment.mandate import Mandate, MandateEvent, MandateStatus, period_of
from checkout.domain.refund.public import public_refund
from checkout.domain.refund.record import (
    AmountMode,
    Refund,
    RefundEvent,
    RefundProblem,
    RefundStatus,
)
from checkout.domain.session.record import Session
from checkout.flows.notices import Case, action_items
from checkout.flows.payment import mandates
from checkout.flows.payment.cleanup import clean_up
from checkout.flows.payment.wallet_calls import WalletCalls
from checkout.flows.payment.writes import move
from checkout.flows.refund import budget, budget_request, reconcile, request, settle
from checkout.ports import StaleRecord, Transaction
from open_payments.errors import NotSent, OutcomeUnknown
from open_payments.transports import Response
from sandbox.wallets.answers import resource
from sandbox.wallets.money import Fee
from sandbox.wallets.provider import Rules
from sandbox.wallets.state import GrantState, OutgoingPayment
from tests.flows.deadly import Killed
from tests.support.basics import HandClock
from tests.support.flows import (
    BASE_URL,
    CEDAR,
    World,
    answering,
    interrupt,
    lose_answers,
    on,
    raising,
)
from tests.support.refund_books import (
    ALICE,
    BOB,
    again,
    allow,
    allowed,
    approve_budget,
    ask,
    balance,
    come_back,
    consent,
    end_budget,
    fund,
    mandate,
    of_budget,
    payments,
    prepare,
    refusal,
    send,
)

LIMIT: Final = 100_00


def made(**options: Any) -> World:
    world = World(**options)
    fund(world)
    return world


@pytest.fixture
def world() -> World:
    return made()


def paid(world: World, amount: int = 2000) -> Session:
    return world.pay(world.create(amount), BOB)


def from_budget(world: World) -> list[OutgoingPayment]:
    """The payments that the merchant's wallet has made with the budget's grants."""
    world.network.advance()
    grants = {each.id for each in of_budget(world)}
    return [e for e in world.network.state.outgoing.values() if e.grant_id in grants]


def refunded(world: World, amount: int | None = None, **fields: Any) -> Refund:
    """Request a refund of a new sale, and let the sweep do the rest."""
    return swept(world, ask(world, paid(world), amount, **fields))


def swept(world: World, refund: Refund, *, minutes: int = 15) -> Refund:
    for _ in range(minutes):
        world.sweep()
        refund = again(world, refund)
        if refund.terminal or refund.approval_waits:
            break
        world.clock.pass_time(60)
    return refund


def calls(world: World) -> WalletCalls:
    return WalletCalls.begin(world.services, world.merchant, within=mandates.DEADLINE)


def rotate(world: World) -> None:
    mandates.rotate(calls(world), mandate(world))


def told(world: World) -> list[Case]:
    """The cases that the dashboard's pages name."""
    return [each.case for each in action_items(world.services, world.key()).found]


# --- approve, replace, end


def test_the_wallet_is_asked_for_an_amount_a_month(world: World) -> None:
    allow(world, LIMIT)
    [grant] = of_budget(world)
    [item] = grant.access
    assert item["limits"]["debitAmount"] == {
        "value": "10000",
        "assetCode": "USD",
        "assetScale": 2,
    }
    repeats, start, month = item["limits"]["interval"].split("/")
    assert (repeats, month) == ("R", "P1M")
    assert datetime.fromisoformat(start) == mandate(world).terms.start  # type: ignore[union-attr]
    assert "receiver" not in item["limits"]


@pytest.mark.parametrize(("value", "error"), [(0, AmountTooSmall), (10**15, AmountTooLarge)])
def test_an_amount_out_of_range_is_refused(
    world: World, value: int, error: type[Exception]
) -> None:
    with pytest.raises(error, match="budget"):
        budget.ask(world.services, world.key(), value)
    assert mandates.of(world.services, world.merchant.id) is None


def test_a_wallet_that_does_not_answer_is_told(world: World) -> None:
    world.transport.before = raising(OutcomeUnknown("lost"))
    with pytest.raises(MerchantWalletError):
        budget.ask(world.services, world.key(), LIMIT)


def test_a_callback_of_somebody_else_is_refused_without_a_call(world: World) -> None:
    asked = budget.ask(world.services, world.key(), LIMIT)
    interact_ref, _ = approve_budget(world, asked)
    calls = len(world.transport.sent)
    with pytest.raises(CallbackInvalid):
        allowed(world, (interact_ref, "wrong"))
    assert len(world.transport.sent) == calls
    assert mandate(world).status is MandateStatus.PENDING


def test_without_an_approval_a_callback_finds_nothing(world: World) -> None:
    found = budget.finish(world.services, world.key(), interact_ref="a", presented_hash="b")
    assert (found.record, found.wait_seconds) == (None, 0)


def test_a_callback_that_comes_twice_gets_the_budget_as_it_is(world: World) -> None:
    callback = approve_budget(world, budget.ask(world.services, world.key(), LIMIT))
    first = allowed(world, callback)
    calls = len(world.transport.sent)
    assert allowed(world, callback).version == first.version
    assert len(world.transport.sent) == calls


def test_an_approval_that_is_being_redeemed_is_left_alone(world: World) -> None:
    asked = budget.ask(world.services, world.key(), LIMIT)
    callback = approve_budget(world, asked)
    found: list[Any] = []

    def meanwhile() -> None:
        if not found:
            found.append(None)
            found[0] = allowed(world, callback)
            with pytest.raises(RefundUnexpectedState, match="being processed"):
                budget.ask(world.services, world.key(), LIMIT)

    world.transport.before = on("POST", "/continue/", meanwhile)
    assert allowed(world, callback).active
    assert found[0].status is MandateStatus.PENDING
    assert [each.state for each in of_budget(world)].count(GrantState.ISSUED) == 1


@pytest.mark.parametrize("wallet", ["stumbles", "reads-no-keys"])
def test_a_wallet_that_stumbles_approves_the_budget_once(wallet: str) -> None:
    world = World(shop=f"{CEDAR}/{wallet}")
    callback = approve_budget(world, budget.ask(world.services, world.key(), LIMIT))
    after = allowed(world, callback)
    assert after.active
    events = [entry.event for entry in after.history]
    assert events.count("approval_asked") == 1
    assert "approval_kept" in events


def test_a_budgets_approval_that_no_wallet_takes_is_lost_after_three_minutes(world: World) -> None:
    callback = approve_budget(world, budget.ask(world.services, world.key(), LIMIT))
    world.transport.before = on("POST", "/continue/", raising(NotSent("down")))
    began = world.clock.now()
    lost = allowed(world, callback)
    assert (lost.active, lost.grant) == (False, None)
    assert 170 < (world.clock.now() - began).total_seconds() < 200


def test_an_approval_whose_answer_is_lost_leaves_the_budget_in_use(world: World) -> None:
    first = allow(world, LIMIT)
    callback = approve_budget(world, budget.ask(world.services, world.key(), 2 * LIMIT))
    world.transport.after = lose_answers("/continue/", OutcomeUnknown("lost"))
    after = allowed(world, callback)
    assert (after.active, after.terms, after.grant) == (True, first.terms, None)
    assert refunded(world, 500).status is RefundStatus.SUCCEEDED
    assert len(from_budget(world)) == 1


def test_who_has_been_too_slow_leaves_what_was_approved_unused(world: World) -> None:
    """Another approval is asked for while the first one's answer takes longer than its lease."""
    callback = approve_budget(world, budget.ask(world.services, world.key(), LIMIT))

    def meanwhile() -> None:
        world.transport.after = lambda request, response: None
        world.clock.pass_time(50)
        budget.ask(world.services, world.key(), 2 * LIMIT)

    world.transport.after = on("POST", "/continue/", meanwhile)
    after = allowed(world, callback)
    assert (after.status, after.token) == (MandateStatus.PENDING, None)
    with pytest.raises(mandates.NoToken):
        mandates.usable(calls(world), after)


def test_who_has_lost_the_lease_leaves_what_was_approved_unused(world: World) -> None:
    """Another request has claimed the same approval, and will cancel its grant."""
    callback = approve_budget(world, budget.ask(world.services, world.key(), LIMIT))

    def meanwhile() -> None:
        world.transport.after = lambda request, response: None
        world.clock.pass_time(50)
        world.transport.before = on("POST", "/continue/", raising(Killed()))
        with pytest.raises(Killed):
            allowed(world, callback)
        world.transport.before = lambda request: None

    world.transport.after = on("POST", "/continue/", meanwhile)
    after = allowed(world, callback)
    assert (after.status, after.token) == (MandateStatus.PENDING, None)


def test_a_slow_refusal_leaves_a_newer_approval_alone(world: World) -> None:
    callback = approve_budget(world, budget.ask(world.services, world.key(), LIMIT))
    newer: list[Mandate] = []

    def meanwhile() -> None:
        world.transport.after = lambda request, response: None
        world.clock.pass_time(50)
        newer.append(budget.ask(world.services, world.key(), 2 * LIMIT))
        raise OutcomeUnknown("lost")

    world.transport.after = on("POST", "/continue/", meanwhile)
    assert allowed(world, callback).grant == newer[0].grant


def test_a_newer_approval_replaces_the_older_one_and_the_month_goes_on(world: World) -> None:
    first = allow(world, LIMIT)
    assert refunded(world, 500).status is RefundStatus.SUCCEEDED
    world.clock.pass_time(24 * 3600)
    second = allow(world, 2 * LIMIT)
    assert second.terms is not None
    assert first.terms is not None
    assert second.terms.start == first.terms.start
    assert second.left(world.clock.now()) == 2 * LIMIT - 500
    states = [each.state for each in of_budget(world)]
    assert states.count(GrantState.ISSUED) == 1


def test_another_wallet_begins_a_month_of_its_own(world: World) -> None:
    first = allow(world, LIMIT)
    assert refunded(world, 500).status is RefundStatus.SUCCEEDED
    terms = first.terms
    assert terms is not None
    world.clock.pass_time(3600)
    other = replace(world.merchant, wallet_address=BOB)
    asked = budget._terms(first, other, LIMIT, world.services)
    assert asked.start == (world.clock.now() - timedelta(hours=1)).replace(microsecond=0)
    assert not first.pays_for(replace(world.merchant, wallet_address=BOB))


def test_an_ended_budget_pays_nothing_and_its_grant_is_canceled(world: World) -> None:
    allow(world, LIMIT)
    ended = end_budget(world)
    assert (ended.status, ended.token, ended.handle) == (MandateStatus.ENDED, None, None)
    refund = ask(world, paid(world))
    assert (refund.budget_at, refund.problem) == (None, None)
    with pytest.raises(RefundUnexpectedState, match="no budget"):
        end_budget(world)


def test_an_end_that_an_approval_overtakes_cancels_what_was_approved(world: World) -> None:
    """Each end of a budget in these tests holds that no grant is alive (refund_books.py)."""
    allow(world, LIMIT)
    callback = approve_budget(world, budget.ask(world.services, world.key(), LIMIT))
    interrupt(world, "update_item", lambda: allowed(world, callback))
    assert end_budget(world).status is MandateStatus.ENDED
    assert [each.state for each in of_budget(world)] == [GrantState.REVOKED] * 2


def test_an_approval_that_an_end_overtakes_is_canceled(world: World) -> None:
    allow(world, LIMIT)
    callback = approve_budget(world, budget.ask(world.services, world.key(), LIMIT))

    def end() -> None:
        world.transport.after = lambda request, response: None
        budget_request.end(world.services, world.key())
        clean_up(world.services, world.tasks.left[0])

    world.transport.after = on("POST", "/continue/", end)
    assert allowed(world, callback).status is MandateStatus.ENDED
    assert [each.state for each in of_budget(world)] == [GrantState.REVOKED] * 2


def test_without_a_budget_there_is_nothing_to_end(world: World) -> None:
    with pytest.raises(RefundUnexpectedState, match="no budget"):
        end_budget(world)


def test_no_secret_of_it_is_stored_in_the_clear(world: World) -> None:
    callback = approve_budget(world, budget.ask(world.services, world.key(), LIMIT))
    allowed(world, callback)
    tokens = [each.value for each in world.network.state.tokens.values()]
    rows = str(world.dynamo.tables if hasattr(world.dynamo, "tables") else mandate(world))
    assert not [each for each in (*tokens, callback[0]) if each in rows]
    assert tokens[0] not in repr(mandate(world))


# --- pay from it


def test_a_refund_is_paid_without_a_person(world: World) -> None:
    allow(world, LIMIT)
    session, had = paid(world), balance(world, BOB)
    refund = swept(world, ask(world, session, 700))
    assert (refund.status, refund.sent) == (RefundStatus.SUCCEEDED, 700)
    assert balance(world, BOB) == had + 700
    assert mandate(world).left(world.clock.now()) == LIMIT - 700


def test_a_refund_that_the_budget_is_to_pay_asks_nobody_for_an_approval(world: World) -> None:
    """Also while its wallets are tried again; once the budget does not pay it, it asks for one."""
    allow(world, LIMIT)
    refund, other = ask(world, paid(world), 700), ask(world, paid(world), 300)
    assert shown(refund) == ("pending", "processing", None)
    world.transport.before = on("POST", "/quotes", raising(OutcomeUnknown("away")))
    world.sweep()
    refund = again(world, refund)
    assert refund.problem is RefundProblem.MERCHANT_WALLET_ERROR
    assert shown(refund) == ("pending", "processing", None)
    end_budget(world)
    world.transport.before = lambda request: None
    world.clock.pass_time(60)
    refund, other = swept(world, refund), swept(world, other)
    for each in (refund, other):
        page = f"{BASE_URL}/dashboard/refunds/{each.id}"
        assert shown(each) == ("pending", "needs_approval", page)


def shown(refund: Refund) -> tuple[str, str | None, str | None]:
    """Return the status, its reason and the page of the approval, as the API shows them."""
    found = public_refund(refund, base_url=BASE_URL)
    return found["status"], found["pending_reason"], found["approval_url"]


def test_without_a_budget_a_refund_waits_for_an_approval(world: World) -> None:
    refund = refunded(world)
    assert (refund.approval_waits, refund.problem) == (True, None)


def test_a_refund_that_asks_for_an_approval_gets_one(world: World) -> None:
    allow(world, LIMIT)
    refund = refunded(world, by_budget=False)
    assert refund.approval_waits
    assert from_budget(world) == []


def test_what_does_not_fit_waits_for_an_approval(world: World) -> None:
    allow(world, 1000)
    assert refunded(world, 700).status is RefundStatus.SUCCEEDED
    refund = refunded(world, 301)
    assert (refund.approval_waits, refund.problem) == (True, RefundProblem.OVER_BUDGET)
    assert refunded(world, 300).status is RefundStatus.SUCCEEDED
    assert send(world, refund).status is RefundStatus.SUCCEEDED
    assert sum(each.debit.value for each in from_budget(world)) == 1000


def test_two_that_fit_only_one_by_one_are_not_both_paid(world: World) -> None:
    """Both were planned while the budget had enough for each."""
    allow(world, 1000)
    session = paid(world)
    first, second = ask(world, session, 700), ask(world, session, 700)
    first, second = swept(world, first), swept(world, second)
    assert sorted([first.status, second.status]) == ["needs_approval", "succeeded"]
    [waits] = [e for e in (first, second) if e.status is RefundStatus.NEEDS_APPROVAL]
    assert waits.problem is RefundProblem.OVER_BUDGET
    assert sum(each.debit.value for each in from_budget(world)) == 700


def test_the_next_month_has_its_own_amount(world: World) -> None:
    allow(world, 1000)
    assert refunded(world, 1000).status is RefundStatus.SUCCEEDED
    for _ in range(64):
        world.clock.pass_time(12 * 3600)
        world.sweep()
    assert refunded(world, 1000).status is RefundStatus.SUCCEEDED
    months = {period_of(mandate(world).terms.start, e.created_at) for e in from_budget(world)}  # type: ignore[union-attr]
    assert len(months) == 2


def test_a_payment_that_was_never_sent_gives_its_debit_back(world: World) -> None:
    allow(world, LIMIT)
    refund = ask(world, paid(world), 700)
    world.transport.before = on("POST", "/outgoing-payments", raising(NotSent("no connection")))
    refund = swept(world, refund)
    assert (refund.approval_waits, refund.problem) == (True, RefundProblem.NOT_SENT)
    assert mandate(world).left(world.clock.now()) == LIMIT
    assert from_budget(world) == []


def test_while_it_is_in_doubt_the_debit_is_held(world: World) -> None:
    allow(world, LIMIT)
    refund, sold = ask(world, paid(world), 700), payments(world)
    world.transport.before = on("POST", "/outgoing-payments", raising(OutcomeUnknown("lost")))
    world.sweep()
    world.transport.before = lambda request: None
    assert again(world, refund).status is RefundStatus.SENDING
    assert mandate(world).left(world.clock.now()) == LIMIT - 700
    refund = swept(world, refund, minutes=30)
    assert (refund.approval_waits, refund.problem) == (True, RefundProblem.NOT_SENT)
    assert mandate(world).left(world.clock.now()) == LIMIT
    assert payments(world) == sold


def test_a_debit_of_a_month_that_is_over_is_not_given_back_to_the_next(world: World) -> None:
    allow(world, LIMIT)
    refund, later = ask(world, paid(world), 700), paid(world)
    world.transport.before = on("", "/outgoing-payments", raising(OutcomeUnknown("lost")))
    for _ in range(58):
        world.sweep()
        world.clock.pass_time(12 * 3600)
    world.clock.pass_time(2 * 24 * 3600)
    other = ask(world, later, 500)
    world.transport.before = on("GET", "/outgoing-payments", raising(OutcomeUnknown("lost")))
    world.sweep()
    assert mandate(world).spent == 500
    world.transport.before = lambda request: None
    swept(world, other)
    world.clock.pass_time(24 * 3600)
    swept(world, refund)
    assert "nothing_sent" in [each.event for each in again(world, refund).history]
    assert mandate(world).left(world.clock.now()) == LIMIT - 500


def test_a_person_sees_the_price_and_pays_it_from_the_budget(world: World) -> None:
    allow(world, LIMIT)
    refund = prepare(world, ask(world, paid(world), 700, by_budget=False))
    done = budget.choose(world.services, world.key(), refund.id)
    assert done.status is RefundStatus.SUCCEEDED
    assert [each.debit.value for each in from_budget(world)] == [700]
    with pytest.raises(RefundUnexpectedState, match="is not waiting"):
        budget.choose(world.services, world.key(), refund.id)


def test_a_price_that_has_risen_since_is_not_paid(world: World) -> None:
    allow(world, LIMIT)
    session = world.pay(world.create(2000), ALICE)
    refund = prepare(world, ask(world, session, 700, by_budget=False))
    world.clock.pass_time(400)  # the quote has ended
    _make_dearer(world)
    done = budget.choose(world.services, world.key(), refund.id)
    assert (done.approval_waits, done.problem) == (True, RefundProblem.PRICE_CHANGED)
    assert from_budget(world) == []


def test_without_a_person_it_may_cost_a_tenth_more_at_most(world: World) -> None:
    allow(world, LIMIT)
    session = world.pay(world.create(2000), ALICE)
    _make_dearer(world)
    refund = swept(world, ask(world, session, 700))
    assert (refund.approval_waits, refund.problem) == (True, RefundProblem.TOO_DEAR)
    assert refund.quote is not None
    done = budget.choose(world.services, world.key(), refund.id)
    assert done.status is RefundStatus.SUCCEEDED


def _make_dearer(world: World) -> None:
    """Let payments from the merchant's wallet to another provider cost a half more."""
    provider = world.network.providers["harbor"]
    world.network.providers["harbor"] = replace(provider, fee=Fee(basis_points=5000))


def test_what_another_has_changed_meanwhile_is_left_to_be_looked_at(world: World) -> None:
    allow(world, LIMIT)
    refund = prepare(world, ask(world, paid(world), 700, by_budget=False))
    cancel = lambda: request.cancel(world.services, world.key(), refund.id)  # noqa: E731
    interrupt(world, "update_item", cancel)
    with pytest.raises(RefundUnexpectedState, match="changed meanwhile"):
        budget.choose(world.services, world.key(), refund.id)
    assert from_budget(world) == []


def test_a_refund_that_is_canceled_at_the_intent_is_not_paid(world: World) -> None:
    allow(world, LIMIT)
    refund = ask(world, paid(world), 700)
    cancel = lambda: request.cancel(world.services, world.key(), refund.id)  # noqa: E731
    interrupt(world, "transact_write_items", cancel)
    world.sweep()
    assert again(world, refund).status is RefundStatus.CANCELED
    assert (from_budget(world), mandate(world).left(world.clock.now())) == ([], LIMIT)


# --- wallets that hinder it


def test_a_customers_wallet_that_does_not_answer_is_tried_for_a_day_and_a_half(
    world: World,
) -> None:
    allow(world, LIMIT)
    session = world.pay(world.create(2000), ALICE)
    refund = ask(world, session, 700)
    world.transport.before = on("GET", "/alice", raising(OutcomeUnknown("away")))
    hours = 0
    while not (refund := again(world, refund)).approval_waits and hours < 200:
        world.clock.pass_time(1800)
        world.sweep()
        hours += 1
    assert refund.problem is RefundProblem.CUSTOMER_WALLET_UNREACHABLE
    assert 36 <= hours / 2 <= 48


def test_a_customers_wallet_that_comes_back_is_paid(world: World) -> None:
    allow(world, LIMIT)
    refund = ask(world, paid(world), 700)
    world.transport.before = on("POST", "/incoming-payments", raising(OutcomeUnknown("away")))
    world.sweep()
    assert again(world, refund).problem is RefundProblem.CUSTOMER_WALLET_UNREACHABLE
    world.transport.before = lambda request: None
    world.clock.pass_time(60)
    assert swept(world, refund).status is RefundStatus.SUCCEEDED


def test_an_own_wallet_that_does_not_answer_is_tried_again(world: World) -> None:
    allow(world, LIMIT)
    refund = ask(world, paid(world), 700)
    world.transport.before = on("POST", "/quotes", raising(OutcomeUnknown("away")))
    world.sweep()
    assert again(world, refund).problem is RefundProblem.MERCHANT_WALLET_ERROR
    world.transport.before = lambda request: None
    world.clock.pass_time(60)
    assert swept(world, refund).status is RefundStatus.SUCCEEDED


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (
            resource(401, "Signature validation error: could not find key").response,
            RefundProblem.MERCHANT_WALLET_ERROR,
        ),
        (Response(401, {}, b"Unauthorized"), RefundProblem.MERCHANT_WALLET_ERROR),
        (Response(429, {}, b""), RefundProblem.CUSTOMER_WALLET_UNREACHABLE),
    ],
    ids=["keys", "401", "busy"],
)
def test_a_customers_wallet_that_cannot_read_our_keys_or_is_busy_is_asked_again(
    world: World, answer: Response, problem: RefundProblem
) -> None:
    """It does not refuse the money, and is not told as if it did."""
    allow(world, LIMIT)
    refund = ask(world, paid(world), 700)
    network = world.transport.network
    answering(world, "POST", "/incoming-payments", lambda request: answer)
    world.sweep()
    waits = again(world, refund)
    assert (waits.problem, waits.budget_tries) == (problem, 1)
    with pytest.raises(CheckoutError, match="Try again later") as told:
        prepare(world, waits)
    assert "does not accept" not in told.value.message
    world.transport.network = network
    world.clock.pass_time(60)
    assert swept(world, refund).status is RefundStatus.SUCCEEDED


def test_a_problem_of_the_budget_ends_with_the_payment_that_a_person_approves(
    world: World,
) -> None:
    allow(world, LIMIT)
    refund = ask(world, paid(world), 700)
    end_budget(world)
    refund = swept(world, refund)
    assert (refund.approval_waits, refund.problem) == (True, RefundProblem.NO_BUDGET)
    prepared = prepare(world, refund)
    callback = consent(world, prepared)
    world.transport.after = lose_answers("/outgoing-payments", OutcomeUnknown("lost"), times=9)
    sending = come_back(world, prepared, callback)
    assert (sending.status, sending.problem) == (RefundStatus.SENDING, None)


@pytest.mark.parametrize("by_hand", [True, False], ids=["approved", "canceled"])
def test_a_refund_that_waits_for_a_busy_wallet_is_approved_by_hand_or_canceled(
    world: World, by_hand: bool
) -> None:
    allow(world, LIMIT)
    refund, sold = ask(world, paid(world), 700), payments(world)
    world.transport.before = on("POST", "/quotes", raising(OutcomeUnknown("away")))
    world.sweep()
    world.transport.before = lambda request: None
    if by_hand:
        done = send(world, again(world, refund))
        assert (done.status, done.budget_at) == (RefundStatus.SUCCEEDED, None)
    else:
        request.cancel(world.services, world.key(), refund.id)
    world.clock.pass_time(60)
    world.sweep()  # the budget does not pay it, too
    assert payments(world) == sold + by_hand
    assert from_budget(world) == []


def test_a_customers_wallet_that_is_gone_is_left_to_a_person(world: World) -> None:
    allow(world, LIMIT)
    session = paid(world)
    del world.network.state.accounts[BOB]
    refund = swept(world, ask(world, session, 700))
    assert (refund.approval_waits, refund.problem) == (
        True,
        RefundProblem.CUSTOMER_WALLET_REFUSED,
    )


def test_a_wallet_that_has_not_paid_gets_nothing_without_a_person(world: World) -> None:
    """A stolen key can name the thief's wallet."""
    allow(world, LIMIT)
    session, had = paid(world), balance(world, ALICE)
    refund = swept(world, ask(world, session, 700, wallet=ALICE, mode=AmountMode.AT_COST))
    assert (refund.approval_waits, refund.problem) == (True, RefundProblem.OTHER_WALLET)
    assert from_budget(world) == []
    assert balance(world, ALICE) == had
    prepared = prepare(world, refund)
    assert prepared.problem is RefundProblem.OTHER_WALLET, "it still says why"
    done = budget.choose(world.services, world.key(), refund.id)
    assert done.status is RefundStatus.SUCCEEDED, "a person has confirmed it"
    assert balance(world, ALICE) > had


def test_the_wallet_that_paid_may_be_named(world: World) -> None:
    allow(world, LIMIT)
    refund = swept(world, ask(world, paid(world), 700, wallet=BOB))
    assert refund.status is RefundStatus.SUCCEEDED


# --- the token


def test_an_ended_token_is_renewed_before_it_is_used(world: World) -> None:
    allow(world, LIMIT)
    world.clock.pass_time(9 * 60 + 1)  # it would end within the next minute
    rotations = world.transport.count("POST", "/token/")
    assert refunded(world, 700).status is RefundStatus.SUCCEEDED
    assert world.transport.count("POST", "/token/") == rotations + 1


def test_the_sweep_renews_it_twice_a_day(world: World) -> None:
    allow(world, LIMIT)
    for _ in range(8):
        world.clock.pass_time(6 * 3600)
        world.sweep()
    assert world.transport.count("POST", "/token/") == 4
    assert mandate(world).active


def test_a_renewal_whose_answer_is_lost_is_told_and_asked_for_again(world: World) -> None:
    allow(world, LIMIT)
    world.transport.after = lose_answers("/token/", OutcomeUnknown("lost"))
    for _ in range(4):
        world.clock.pass_time(6 * 3600)
        world.sweep()
    found = mandate(world)
    assert (found.status, found.gone) == (MandateStatus.LOST, True)
    assert told(world) == [Case.BUDGET_OVER]
    refund = ask(world, paid(world))
    assert (refund.budget_at, refund.problem) == (None, RefundProblem.NO_BUDGET)
    assert allow(world, LIMIT).active
    assert GrantState.ISSUED in [each.state for each in of_budget(world)]


def test_a_renewal_whose_request_is_lost_is_made_again(world: World) -> None:
    allow(world, LIMIT)
    world.transport.before = on("POST", "/token/", raising(OutcomeUnknown("lost")))
    world.clock.pass_time(12 * 3600)
    world.sweep()
    assert mandate(world).rotating is not None
    refund = ask(world, paid(world), 700)
    world.sweep()
    assert not again(world, refund).terminal, "the token is not used while it may be replaced"
    assert from_budget(world) == []
    world.transport.before = lambda request: None
    world.clock.pass_time(120)
    assert swept(world, refund).status is RefundStatus.SUCCEEDED
    assert mandate(world).rotating is None


def test_a_token_that_may_have_been_replaced_is_never_used(world: World) -> None:
    """Not even after the lease of the rotation has ended."""
    allow(world, LIMIT)
    world.transport.after = lose_answers("/token/", OutcomeUnknown("lost"))
    with pytest.raises(OutcomeUnknown):
        rotate(world)
    world.clock.pass_time(50)
    refund, sold = ask(world, paid(world), 700), payments(world)
    refund = swept(world, refund)
    assert (refund.approval_waits, refund.problem) == (True, RefundProblem.NO_BUDGET)
    assert payments(world) == sold


def test_a_busy_wallet_loses_nothing() -> None:
    world = made(rules=Rules(busy=1))
    allow(world, LIMIT)
    world.clock.pass_time(12 * 3600)
    for _ in range(5):
        world.sweep()
        world.clock.pass_time(3600)
    assert mandate(world).active
    assert mandate(world).unanswered >= 3
    assert not mandate(world).silent(world.clock.now())
    world.clock.pass_time(24 * 3600)
    assert mandate(world).silent(world.clock.now())


def test_a_grant_that_was_ended_at_the_wallet_is_told_within_a_day(world: World) -> None:
    allow(world, LIMIT)
    [grant] = of_budget(world)
    grant.state = GrantState.REVOKED
    world.network.state.tokens.clear()
    for _ in range(4):
        world.clock.pass_time(6 * 3600)
        world.sweep()
    assert mandate(world).status is MandateStatus.REVOKED
    assert told(world) == [Case.BUDGET_OVER]


def test_a_refund_finds_that_it_was_ended_and_waits_for_a_person(world: World) -> None:
    allow(world, LIMIT)
    refund = ask(world, paid(world), 700)
    world.network.state.tokens.clear()
    world.clock.pass_time(700)
    refund = swept(world, refund)
    assert (refund.approval_waits, refund.problem) == (True, RefundProblem.NO_BUDGET)


def test_a_budget_that_is_ended_after_the_request_pays_nothing(world: World) -> None:
    allow(world, LIMIT)
    refund = ask(world, paid(world), 700)
    end_budget(world)
    refund = swept(world, refund)
    assert (refund.approval_waits, refund.problem) == (True, RefundProblem.NO_BUDGET)


def test_a_slow_renewal_heals_what_another_has_called_lost(world: World) -> None:
    allow(world, LIMIT)
    world.clock.pass_time(700)

    def overtaken() -> None:
        world.transport.after = lambda request, response: None
        world.clock.pass_time(50)
        with pytest.raises(mandates.NoToken):
            rotate(world)
        assert mandate(world).gone

    world.transport.after = on("POST", "/token/", overtaken)
    rotate(world)
    assert mandate(world).active
    assert refunded(world, 700).status is RefundStatus.SUCCEEDED


def test_two_renewals_at_once_are_one(world: World) -> None:
    allow(world, LIMIT)
    stale = mandate(world)
    refused: list[mandates.NoToken] = []

    def at_once() -> None:
        with pytest.raises(mandates.NoToken) as error:
            mandates.rotate(calls(world), stale)
        refused.append(error.value)

    world.transport.before = on("POST", "/token/", at_once)
    rotate(world)
    assert [each.gone for each in refused] == [False]
    assert world.transport.count("POST", "/token/") == 1
    with pytest.raises(mandates.NoToken):  # it was read before that
        mandates.rotate(calls(world), stale)


def test_a_renewal_after_the_end_stores_nothing(world: World) -> None:
    allow(world, LIMIT)
    end = lambda: end_budget(world)  # noqa: E731
    world.transport.after = on("POST", "/token/", end)
    with pytest.raises(mandates.NoToken):
        rotate(world)
    assert (mandate(world).status, mandate(world).token) == (MandateStatus.ENDED, None)
    with pytest.raises(mandates.NoToken):
        rotate(world)


@pytest.mark.parametrize("answer", [OutcomeUnknown("lost"), None], ids=["lost", "gone"])
def test_what_a_renewal_finds_after_the_end_is_not_written(
    world: World, answer: OutcomeUnknown | None
) -> None:
    allow(world, LIMIT)
    if answer is None:
        world.network.state.tokens.clear()

    def end(*_: Any) -> None:
        end_budget(world)
        if answer is not None:
            raise answer

    world.transport.after = on("POST", "/token/", end)
    with pytest.raises((mandates.NoToken, OutcomeUnknown)):
        rotate(world)
    assert mandate(world).status is MandateStatus.ENDED


def test_one_that_is_not_due_is_left_alone(world: World) -> None:
    found = allow(world, LIMIT)
    assert mandates.step(world.services, found) is found
    ended = end_budget(world)
    assert mandates.step(world.services, ended) is ended


def test_a_renewal_that_the_end_overtakes_is_not_begun(world: World) -> None:
    allow(world, LIMIT)
    end = lambda: end_budget(world)  # noqa: E731
    interrupt(world, "update_item", end)
    with pytest.raises(mandates.NoToken) as error:
        rotate(world)
    assert error.value.gone
    assert world.transport.count("POST", "/token/") == 0


def test_a_renewal_that_another_one_has_overtaken_blames_no_wallet(world: World) -> None:
    """The other one's answer was lost: it has replaced the token, and nobody has ended it."""
    allow(world, LIMIT)
    world.transport.after = lose_answers("/token/", OutcomeUnknown("lost"))

    def another() -> None:
        with pytest.raises(OutcomeUnknown):
            rotate(world)

    interrupt(world, "update_item", another)
    with pytest.raises(mandates.NoToken):
        rotate(world)
    assert mandate(world).status is MandateStatus.LOST


# --- races


def test_two_who_ask_first_share_one_budget(world: World) -> None:
    first: list[Mandate] = []
    ask_too = lambda: first.append(budget.ask(world.services, world.key(), LIMIT))  # noqa: E731
    interrupt(world, "put_item", ask_too)
    second = budget.ask(world.services, world.key(), LIMIT)
    assert first[0].id == second.id
    assert second.grant == mandate(world).grant != first[0].grant


def test_a_callback_that_a_newer_approval_overtakes_redeems_nothing(world: World) -> None:
    callback = approve_budget(world, budget.ask(world.services, world.key(), LIMIT))
    world.clock.sleep(10)
    anew = lambda: budget.ask(world.services, world.key(), LIMIT)  # noqa: E731
    interrupt(world, "update_item", anew)
    assert allowed(world, callback).status is MandateStatus.PENDING
    assert world.transport.count("POST", "/continue/") == 0


def planned(world: World) -> Refund:
    """A refund that the budget is to pay, with a token that has ended."""
    allow(world, LIMIT)
    return ask(world, paid(world), 700)


def test_a_renewal_under_way_is_awaited(world: World) -> None:
    refund = planned(world)
    world.clock.pass_time(700)

    def meanwhile() -> None:
        world.transport.before = lambda request: None
        world.restart()
        budget.pay(world.services, again(world, refund))

    world.transport.before = on("POST", "/token/", meanwhile)
    rotate(world)
    assert not again(world, refund).terminal
    assert from_budget(world) == []
    world.clock.pass_time(60)
    assert swept(world, refund).status is RefundStatus.SUCCEEDED


def a_renewal(world: World) -> None:
    rotate(world)


def the_begin_of_a_renewal(world: World) -> None:
    found = mandate(world)
    assert found.token is not None
    mandates._started(world.services, found, found.token)


@pytest.mark.parametrize("meanwhile", [a_renewal, the_begin_of_a_renewal])
def test_what_changes_the_token_at_the_intent_is_awaited(
    world: World, meanwhile: Callable[[World], None]
) -> None:
    refund = planned(world)
    interrupt(world, "transact_write_items", lambda: meanwhile(world))
    world.sweep()
    assert (again(world, refund).status, from_budget(world)) == (RefundStatus.NEEDS_APPROVAL, [])
    world.clock.pass_time(120)
    assert swept(world, refund).status is RefundStatus.SUCCEEDED
    assert sum(each.debit.value for each in from_budget(world)) == 700


def counted_elsewhere(world: World) -> None:
    """Another refund counts, or gives back, between the reading and the intent."""
    found = mandate(world)
    now = world.clock.now()
    period = found.period_at(now)
    spent = found.spent_in(period) + 1
    move(world.services, found, MandateEvent.SPENT, period=period, spent=spent)


@pytest.mark.parametrize(("times", "sent"), [(1, 700), (99, 0)], ids=["once", "always"])
def test_another_refund_at_the_intent_is_counted_too(world: World, times: int, sent: int) -> None:
    refund = planned(world)
    interrupt(world, "transact_write_items", lambda: counted_elsewhere(world), times=times)
    world.sweep()
    assert again(world, refund).sent == sent
    assert sum(each.debit.value for each in from_budget(world)) == sent
    assert mandate(world).spent > sent


def test_another_refund_at_the_verdict_loses_nothing(world: World) -> None:
    refund = planned(world)
    world.transport.before = on("POST", "/outgoing-payments", raising(OutcomeUnknown("lost")))
    world.sweep()
    world.transport.before = lambda request: None
    interrupt(world, "transact_write_items", lambda: counted_elsewhere(world))
    assert swept(world, refund, minutes=30).problem is RefundProblem.NOT_SENT
    assert mandate(world).spent == 1


def test_a_verdict_that_never_wins_decides_nothing(world: World) -> None:
    refund = planned(world)
    world.transport.before = on("POST", "/outgoing-payments", raising(OutcomeUnknown("lost")))
    world.sweep()
    interrupt(world, "transact_write_items", lambda: counted_elsewhere(world), times=9999)
    with pytest.raises(StaleRecord):
        settle.nothing_sent(world.services, again(world, refund), RefundProblem.NOT_SENT)
    assert again(world, refund).status is RefundStatus.SENDING


def test_of_two_verdicts_one_gives_the_debit_back(world: World) -> None:
    refund = planned(world)
    world.transport.before = on("POST", "/outgoing-payments", raising(OutcomeUnknown("lost")))
    world.sweep()
    sending = again(world, refund)
    settle.nothing_sent(world.services, sending, RefundProblem.NOT_SENT)
    with pytest.raises(StaleRecord):
        settle.nothing_sent(world.services, sending, RefundProblem.NOT_SENT)
    assert mandate(world).spent == 0


# --- months


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param(1, id="after a day"),
        pytest.param(30, id="after 30 days", marks=pytest.mark.endurance),
    ],
)
def test_thirteen_months_with_a_provider_that_deletes_tokens(kept: int) -> None:
    """An answer gets lost now and then, and the merchant approves again when it is lost."""
    clock = HandClock(datetime(2026, 1, 31, 0, 30, tzinfo=UTC))
    rules = Rules(token_kept=timedelta(days=kept), limits_enforced=False)
    world = made(rules=rules, clock=clock)
    first = allow(world, 1000)
    assert first.terms is not None
    start, until = first.terms.start, clock.now() + timedelta(days=13 * 30.5)
    lost, asked_again = 0, 0
    day = 0
    while clock.now() < until:
        clock.pass_time(24 * 3600 / 3)
        day += 1
        if day % 101 == 0:
            lost += 1
            world.transport.after = lose_answers("/token/", OutcomeUnknown("lost"))
            since = clock.now()
        found = mandates.step(world.services, mandate(world))
        if not found.active:
            assert found.over_at is not None
            assert found.over_at - since <= timedelta(days=1)
            allow(world, 1000)
            asked_again += 1
        if day % 30 == 0:
            refunded(world, 600)
    assert lost > 8
    assert asked_again == lost, "no other end: it was kept"
    months: dict[datetime, int] = {}
    for each in from_budget(world):
        month = period_of(start, each.created_at)
        months[month] = months.get(month, 0) + each.debit.value
    assert len(months) >= 12
    assert max(months.values()) <= 1000


# --- the budget's token reads a payment


def test_a_payment_is_read_with_the_budgets_token_after_it_was_renewed(world: World) -> None:
    allow(world, LIMIT)
    refund, had = ask(world, paid(world), 700), balance(world, BOB)
    world.transport.after = lose_answers("/outgoing-payments", OutcomeUnknown("lost"), times=1)
    world.clock.pass_time(1)
    world.sweep()
    world.clock.pass_time(700)
    assert swept(world, refund).status is RefundStatus.SUCCEEDED
    assert balance(world, BOB) == had + 700


def test_a_payment_whose_budget_is_gone_asks_for_an_approval_that_can_only_read(
    world: World,
) -> None:
    allow(world, LIMIT)
    refund, had = ask(world, paid(world), 700), balance(world, BOB)
    world.transport.after = lose_answers("/outgoing-payments", OutcomeUnknown("lost"), times=9)
    world.sweep()
    assert again(world, refund).status is RefundStatus.SENDING
    end_budget(world)
    world.transport.after = lambda request, response: None
    world.clock.pass_time(60)
    refund = swept(world, refund)
    if refund.status is RefundStatus.SENDING:
        assert refund.approval_waits
        refund = send(world, refund)
    assert refund.status is RefundStatus.SUCCEEDED
    assert balance(world, BOB) == had + 700


def test_a_payment_is_not_read_while_the_token_is_being_renewed(world: World) -> None:
    refund = planned(world)
    world.transport.before = on("", "/outgoing-payments", raising(OutcomeUnknown("lost")))
    world.sweep()
    assert again(world, refund).status is RefundStatus.SENDING
    world.transport.before = lambda request: None
    the_begin_of_a_renewal(world)
    found = reconcile.look(calls(world), again(world, refund))
    assert (found.status, found.approval_waits) == (RefundStatus.SENDING, False)


def test_a_token_that_the_wallet_has_let_end_early_is_renewed_to_read(world: World) -> None:
    refund, had = planned(world), balance(world, BOB)
    world.transport.after = lose_answers("/outgoing-payments", OutcomeUnknown("lost"), times=3)
    world.sweep()
    assert again(world, refund).status is RefundStatus.SENDING
    world.transport.after = lambda request, response: None
    for token in world.network.state.tokens.values():
        token.expires_at = world.clock.now()
    rotations = world.transport.count("POST", "/token/")
    assert swept(world, refund).status is RefundStatus.SUCCEEDED
    assert world.transport.count("POST", "/token/") > rotations
    assert balance(world, BOB) == had + 700


@pytest.mark.parametrize(
    "answer",
    [refusal(403, "Insufficient Grant"), refusal(401, "Signature validation error")],
    ids=["403", "401"],
)
def test_a_refusal_to_show_it_decides_nothing(
    world: World, answer: Callable[[Any], Response]
) -> None:
    refund = planned(world)
    world.transport.before = on("", "/outgoing-payments", raising(OutcomeUnknown("lost")))
    world.sweep()
    world.transport.before = lambda request: None
    answering(world, "GET", "/outgoing-payments", answer)
    for _ in range(30):
        world.sweep()
    assert again(world, refund).status is RefundStatus.SENDING
    assert mandate(world).left(world.clock.now()) == LIMIT - 700


def test_a_price_of_an_earlier_identity_is_not_paid(world: World) -> None:
    allow(world, LIMIT)
    refund = prepare(world, ask(world, paid(world), 700, by_budget=False))
    move(world.services, again(world, refund), RefundEvent.APPROVAL_ASKED, identity=7)
    done = budget.choose(world.services, world.key(), refund.id)
    assert (done.approval_waits, done.problem) == (True, RefundProblem.PRICE_CHANGED)
    assert from_budget(world) == []


def test_a_budget_of_an_earlier_identity_pays_nothing(world: World) -> None:
    found = allow(world, LIMIT)
    assert found.pays_for(world.merchant)
    assert not found.pays_for(replace(world.merchant, identity=1))


# --- when others write all the time


def busy(world: World) -> Any:
    """The services of a process that loses each race."""

    class Busy:
        def save(self, transaction: Transaction[Any]) -> Any:
            raise StaleRecord(transaction.change.before)

        def __getattr__(self, name: str) -> Any:
            return getattr(world.services.sessions, name)

    sessions: Any = Busy()
    return replace(world.services, sessions=sessions)


def test_a_budget_that_others_change_all_the_time_is_ended_later(world: World) -> None:
    allow(world, LIMIT)
    with pytest.raises(SessionBusy):
        budget_request.end(busy(world), world.key())
    assert mandate(world).active


def test_a_refund_that_others_change_while_it_is_paid_is_as_they_left_it(world: World) -> None:
    allow(world, LIMIT)
    refund = ask(world, paid(world), 700)
    assert budget.pay_now(busy(world), refund) == again(world, refund)
    assert from_budget(world) == []
