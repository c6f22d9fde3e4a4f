"""Each plausible wrong order of the refund budget is noticed by a storm, by the books alone.

A test that draws the situation notices those that a storm meets too seldom.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import pytest

from checkout.domain import mandate_transitions
from checkout.domain.machine import ALWAYS, Change
from checkout.domain.mandate import Mandate, MandateEvent, MandateStatus, first_period
from checkout.flows.payment import mandates, writes
from checkout.flows.refund import approve, budget, settle
from checkout.open_payments.client import OpenPayments
from checkout.ports.sessions import StaleSession
from tests.flows.refund import test_budget
from tests.flows.refund.budget_storms import storm
from tests.support.flows import World

pytestmark = pytest.mark.untraced

WORLDS: Final = 100
Patch = pytest.MonkeyPatch
ROTATE: Final = OpenPayments.rotate_token
CHANGE: Final = writes.change
COMMIT: Final = writes.commit
STARTED: Final = mandates._started
_S, _E = MandateStatus, MandateEvent


def changed(patch: Patch, event: MandateEvent, **fields: Any) -> None:
    """Let this event set other fields than it should."""

    def changing(services: Any, record: Any, happens: Any, **changes: Any) -> Change[Any]:
        return CHANGE(services, record, happens, **changes | (fields if happens is event else {}))

    for module in (mandates, budget, writes):
        patch.setattr(module, "change", changing)


def row(patch: Patch, event: MandateEvent, **fields: Any) -> None:
    """Let the rows of this event be others."""
    for cell, found in mandate_transitions.MANDATE_TRANSITIONS.items():
        if cell[1] is event:
            patch.setitem(mandate_transitions.MANDATE_TRANSITIONS, cell, replace(found, **fields))


def nothing_is_written_before_a_rotation(patch: Patch) -> None:
    patch.setattr(mandates, "_started", lambda services, mandate, known: (mandate, False))


def an_unknown_outcome_is_a_failure(patch: Patch) -> None:
    row(patch, _E.NOT_ROTATED, drops=("rotating", "rotation_until"))


def any_error_loses_it(patch: Patch) -> None:
    def gone(services: Any, mandate: Any, known: str) -> None:
        mandates._over(services, mandate, known, _E.LOST)

    patch.setattr(mandates, "_unanswered", gone)


def it_gives_up_silently(patch: Patch) -> None:
    def over(services: Any, mandate: Any, known: str, event: MandateEvent) -> None:
        def quiet(current: Mandate) -> Any:
            if not current.active:
                return None
            return CHANGE(services, current, _E.ROTATED, rotate_at=None)

        writes.write_decided(services, mandate, quiet)

    patch.setattr(mandates, "_over", over)


def it_is_called_lost_without_looking(patch: Patch) -> None:
    """Once a rotation has had no answer, the wallet is not asked again."""

    def started(services: Any, mandate: Mandate, known: str) -> Any:
        if mandate.rotating is not None and not mandate.rotation_live(services.clock.now()):
            mandates._over(services, mandate, known, _E.LOST)
        return STARTED(services, mandate, known)

    patch.setattr(mandates, "_started", started)


def a_slow_visit_does_not_heal(patch: Patch) -> None:
    patch.setattr(mandates, "_HEALED", (_S.ACTIVE,))


def the_token_is_used_once_the_lease_has_ended(patch: Patch) -> None:
    usable = mandates.usable

    def used(visit: Any, mandate: Mandate | None) -> Any:
        assert mandate is not None
        if not mandate.rotation_live(visit.services.clock.now()):
            token, mandate = usable(visit, replace(mandate, rotating=None))[1], mandate
            return mandate, token
        return usable(visit, mandate)

    patch.setattr(mandates, "usable", used)
    row(patch, _E.SPENT, when=mandate_transitions.FREE)


def anybodys_lease_approves(patch: Patch) -> None:
    def claimed(current: Mandate, claimed: Mandate) -> bool:
        return current.grant == claimed.grant

    patch.setattr(budget, "_still_claimed", claimed)


def the_older_grant_stays(patch: Patch) -> None:
    patch.setattr(budget, "_cancel", lambda services, mandate: None)


def its_loss_is_not_told(patch: Patch) -> None:
    row(patch, _E.LOST, webhook=None)


def its_end_at_the_wallet_is_not_told(patch: Patch) -> None:
    row(patch, _E.REVOKED, webhook=None)


def nobody_renews_it(patch: Patch) -> None:
    patch.setattr(Mandate, "needed_at", property(lambda mandate: None))


def two_may_renew_at_once_and_the_last_one_stores(patch: Patch) -> None:
    row(patch, _E.ROTATION_STARTED, when=ALWAYS)
    patch.setattr(Mandate, "rotation_live", lambda mandate, now: False)
    changed(patch, _E.ROTATION_STARTED, rotating=None)


def nothing_is_counted(patch: Patch) -> None:
    changed(patch, _E.SPENT, spent=0)


def it_is_counted_before_the_intent(patch: Patch) -> None:
    def apart(services: Any, change: Any, *given: Any, also: Any = None, **named: Any) -> Any:
        if also is not None:
            COMMIT(services, also)
        return COMMIT(services, change, *given, **named)

    patch.setattr(budget, "commit", apart)


def it_is_counted_after_the_payment(patch: Patch) -> None:
    counts: list[Any] = []
    send = approve.send

    def intended(services: Any, change: Any, *given: Any, also: Any = None, **named: Any) -> Any:
        counts.append(also)
        return COMMIT(services, change, *given, **named)

    def sent(visit: Any, refund: Any, token: Any) -> Any:
        found = send(visit, refund, token)
        with suppress(StaleSession):
            COMMIT(visit.services, counts.pop())
        return found

    patch.setattr(budget, "commit", intended)
    patch.setattr(approve, "send", sent)


def what_is_left_is_not_asked_at_the_intent(patch: Patch) -> None:
    patch.setattr(budget, "_fits", lambda mandate, debit, merchant, now: True)


def each_approval_begins_to_count_anew(patch: Patch) -> None:
    changed(patch, _E.APPROVED, spent=0)


def each_approval_begins_its_own_months(patch: Patch) -> None:
    terms = budget._terms

    def anew(mandate: Any, payer: Any, value: int, services: Any) -> Any:
        found = terms(mandate, payer, value, services)
        return replace(found, start=first_period(services.clock.now()))

    patch.setattr(budget, "_terms", anew)


def months_are_the_calendars(patch: Patch) -> None:
    def first(mandate: Mandate, now: datetime) -> datetime:
        return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)

    patch.setattr(Mandate, "period_at", first)


def months_have_four_weeks(patch: Patch) -> None:
    def weeks(mandate: Mandate, now: datetime) -> datetime:
        assert mandate.terms is not None
        start, four = mandate.terms.start, timedelta(days=28)
        return start + max((now - start) // four, 0) * four

    patch.setattr(Mandate, "period_at", weeks)


def nothing_is_given_back(patch: Patch) -> None:
    patch.setattr(settle, "_given_back", lambda services, refund: None)


def it_is_given_back_in_whatever_month(patch: Patch) -> None:
    back = settle._given_back

    def given(services: Any, refund: Any) -> Any:
        found = mandates.of(services, refund.merchant)
        return back(services, replace(refund, period=found.period)) if found else None

    patch.setattr(settle, "_given_back", given)


def a_part_that_was_sent_is_given_back(patch: Patch) -> None:
    settling = settle.settle

    def given(services: Any, refund: Any, event: Any, **named: Any) -> Any:
        back = settle._given_back(services, refund)
        if back is not None and str(event) == "failed":
            COMMIT(services, back)
        return settling(services, refund, event, **named)

    from checkout.flows.refund import reconcile

    patch.setattr(reconcile, "settle", given)


WRONG: Final = (
    nothing_is_written_before_a_rotation,
    an_unknown_outcome_is_a_failure,
    any_error_loses_it,
    it_gives_up_silently,
    it_is_called_lost_without_looking,
    a_slow_visit_does_not_heal,
    the_older_grant_stays,
    its_loss_is_not_told,
    its_end_at_the_wallet_is_not_told,
    nobody_renews_it,
    two_may_renew_at_once_and_the_last_one_stores,
    nothing_is_counted,
    it_is_counted_after_the_payment,
    what_is_left_is_not_asked_at_the_intent,
    each_approval_begins_to_count_anew,
    each_approval_begins_its_own_months,
    months_are_the_calendars,
    months_have_four_weeks,
    nothing_is_given_back,
    a_part_that_was_sent_is_given_back,
)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda each: each.__name__)
def test_a_wrong_order_is_noticed(wrong: Callable[[Patch], None], monkeypatch: Patch) -> None:
    wrong(monkeypatch)
    for seed in range(1, WORLDS + 1):
        if storm(seed).wrong:
            return
    raise AssertionError(f"{wrong.__name__} is not noticed in {WORLDS} worlds")


# Those that storms meet too seldom, with the tests that draw them.
DRAWN: Final = (
    (
        it_is_counted_before_the_intent,
        test_budget.test_a_refund_that_is_canceled_at_the_intent_is_not_paid,
    ),
    (
        the_token_is_used_once_the_lease_has_ended,
        test_budget.test_a_token_that_may_have_been_replaced_is_never_used,
    ),
    (
        anybodys_lease_approves,
        test_budget.test_who_has_lost_the_lease_leaves_what_was_approved_unused,
    ),
    (
        it_is_given_back_in_whatever_month,
        test_budget.test_a_debit_of_a_month_that_is_over_is_not_given_back_to_the_next,
    ),
)


@pytest.mark.parametrize(("wrong", "drawn"), DRAWN, ids=[each[0].__name__ for each in DRAWN])
def test_a_wrong_order_is_noticed_by_the_test_that_draws_it(
    wrong: Callable[[Patch], None], drawn: Callable[[World], None], monkeypatch: Patch
) -> None:
    drawn(test_budget.made())
    wrong(monkeypatch)
    with pytest.raises(AssertionError):
        drawn(test_budget.made())
