"""Each plausible wrong order of a refund is noticed by a storm, by the books alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import pytest

from checkout.domain import refund_transitions, refund_verdict
from checkout.domain.machine import ALWAYS, Row
from checkout.domain.refund import RefundEvent, RefundProblem, RefundStatus
from checkout.domain.refund_verdict import Outcome, Verdict
from checkout.domain.session import Session
from checkout.flows.payment.writes import move
from checkout.flows.refund import approve, claim, reconcile, request, settle
from checkout.open_payments import errors as op
from checkout.open_payments.client import OpenPayments
from tests.flows.refund import storms, test_claim
from tests.flows.refund.storms import storm
from tests.support.flows import World
from tests.support.refund_books import fund

pytestmark = pytest.mark.untraced

WORLDS: Final = 120
Patch = pytest.MonkeyPatch
DECIDE: Final = refund_verdict.decide
SETTLE: Final = settle.settle
PAY: Final = OpenPayments.create_outgoing_payment


def the_sum_is_not_counted(patch: Patch) -> None:
    patch.setattr(Session, "refunded", property(lambda session: 0))


def no_idempotency(patch: Patch) -> None:
    def anew(services: Any, posted: Any, act: Callable[[Any], Any]) -> Any:
        return act(None)

    patch.setattr(storms, "answer", anew)


def again_after_an_unknown_outcome(patch: Patch) -> None:
    patch.setattr(
        reconcile, "look", lambda visit, refund: approve._not_sent(visit, refund, "unknown")
    )


def a_refusal_decides(patch: Patch) -> None:
    def refused(client: Any, *given: Any, **named: Any) -> Any:
        try:
            return PAY(client, *given, **named)
        except op.Refused as error:
            raise op.NotSent(str(error)) from None

    patch.setattr(OpenPayments, "create_outgoing_payment", refused)


def not_found_decides_at_once(patch: Patch) -> None:
    patch.setattr(refund_verdict, "CLOCKS", timedelta(minutes=-10))


def nothing_is_awaited_that_is_under_way(patch: Patch) -> None:
    patch.setattr(refund_verdict, "UNDER_WAY", timedelta(minutes=-10))


def decided(patch: Patch, wrong: Callable[..., Verdict | None]) -> None:
    def deciding(refund: Any, own: Any, theirs: Any, *, now: Any) -> Verdict:
        found = wrong(refund, own, theirs)
        return found or DECIDE(refund, own, theirs, now=now)

    patch.setattr(reconcile, "decide", deciding)


def the_customers_view_decides(patch: Patch) -> None:
    decided(
        patch,
        lambda refund, own, theirs: Verdict(Outcome.NOTHING) if theirs == 0 else None,
    )


def accepted_is_succeeded(patch: Patch) -> None:
    decided(
        patch,
        lambda refund, own, theirs: (
            Verdict(Outcome.SUCCEEDED, refund.amount) if own is not None else None
        ),
    )


def something_sent_is_all(patch: Patch) -> None:
    decided(
        patch,
        lambda refund, own, theirs: (
            Verdict(Outcome.SUCCEEDED, refund.amount) if own and own.sent.value else None
        ),
    )


def failed_is_nothing(patch: Patch) -> None:
    decided(
        patch,
        lambda refund, own, theirs: Verdict(Outcome.NOTHING) if own and own.failed else None,
    )


def a_part_is_given_back_as_if_nothing_was_sent(patch: Patch) -> None:
    def settling(*given: Any, **named: Any) -> Any:
        return SETTLE(*given, **{**named, "kept": 0})

    patch.setattr(reconcile, "settle", settling)


def canceled_in_flight(patch: Patch) -> None:
    row = Row(RefundStatus.CANCELED, ALWAYS, refund_transitions._ATTEMPT)
    cell = (RefundStatus.SENDING, RefundEvent.CANCEL_REQUESTED)
    patch.setitem(refund_transitions.REFUND_TRANSITIONS, cell, row)


def another_wallet_is_named_in_flight(patch: Patch) -> None:
    """The customer says that their old wallet is gone, while it is being paid."""
    row = Row(RefundStatus.NEEDS_APPROVAL, ALWAYS, refund_transitions._ATTEMPT)
    cell = (RefundStatus.SENDING, RefundEvent.CLAIMED)
    patch.setitem(refund_transitions.REFUND_TRANSITIONS, cell, row)
    patch.setattr(claim, "is_open", lambda services, refund: bool(refund.claim_open))


def a_link_is_made_in_flight_as_if_nothing_was_sent(patch: Patch) -> None:
    row = Row(RefundStatus.NEEDS_APPROVAL, ALWAYS, refund_transitions._ATTEMPT)
    cell = (RefundStatus.SENDING, RefundEvent.CLAIM_OFFERED)
    patch.setitem(refund_transitions.REFUND_TRANSITIONS, cell, row)


def the_approval_of_the_old_wallet_stays(patch: Patch) -> None:
    cell = (RefundStatus.NEEDS_APPROVAL, RefundEvent.CLAIMED)
    row = Row(RefundStatus.NEEDS_APPROVAL, refund_transitions.OFFERED, ("claim_open",))
    patch.setitem(refund_transitions.REFUND_TRANSITIONS, cell, row)


def a_lost_token_means_that_nothing_was_sent(patch: Patch) -> None:
    def lost(services: Any, refund: Any, known: Any) -> None:
        problem = RefundProblem.NOT_SENT
        move(services, refund, RefundEvent.NOTHING_SENT, problem=problem)

    patch.setattr(reconcile, "_lost", lost)


def no_more_is_kept_than_the_wallet_says_without_the_other(patch: Patch) -> None:
    decided(
        patch,
        lambda refund, own, theirs: (
            Verdict(Outcome.FAILED, 1)
            if own and own.failed and 0 < own.sent.value < own.debit.value
            else None
        ),
    )


def canceled_keeps_its_amount(patch: Patch) -> None:
    def keeping(*given: Any, **named: Any) -> Any:
        return SETTLE(*given, **{**named, "kept": given[1].amount})

    patch.setattr(request, "settle", keeping)


def nothing_is_swept(patch: Patch) -> None:
    patch.setattr(reconcile, "step", lambda services, refund, **named: refund)


WRONG: Final = (
    the_sum_is_not_counted,
    no_idempotency,
    again_after_an_unknown_outcome,
    a_refusal_decides,
    not_found_decides_at_once,
    nothing_is_awaited_that_is_under_way,
    the_customers_view_decides,
    accepted_is_succeeded,
    something_sent_is_all,
    failed_is_nothing,
    a_part_is_given_back_as_if_nothing_was_sent,
    canceled_in_flight,
    another_wallet_is_named_in_flight,
    a_link_is_made_in_flight_as_if_nothing_was_sent,
    a_lost_token_means_that_nothing_was_sent,
    no_more_is_kept_than_the_wallet_says_without_the_other,
    canceled_keeps_its_amount,
    nothing_is_swept,
)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda each: each.__name__)
def test_a_wrong_order_is_noticed(wrong: Callable[[Patch], None], monkeypatch: Patch) -> None:
    wrong(monkeypatch)
    for seed in range(1, WORLDS + 1):
        if storm(seed).wrong:
            return
    raise AssertionError(f"{wrong.__name__} is not noticed in {WORLDS} worlds")


def test_the_approval_of_the_old_wallet_is_missed_by_the_test_that_draws_it(
    monkeypatch: Patch,
) -> None:
    """Storms meet it too seldom: an approval, a link and its use, and then the callback."""
    the_approval_of_the_old_wallet_stays(monkeypatch)
    world = World()
    fund(world)
    with pytest.raises(AssertionError):
        test_claim.test_an_approval_of_the_old_wallet_pays_nobody(world)
