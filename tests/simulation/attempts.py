"""The invariants of payment attempts, looked at after every write of a session.

An attempt is never lost, never changed after its end, its outcome agrees with the session, and its
evidence is its own: what it names is of its wallet in the wallets' own books. How an event ends an
attempt is written down a second time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from checkout.domain.payment.attempt import Outcome, PaymentAttempt
from checkout.domain.payment.events import Event
from checkout.domain.session.attempts import attempts_of
from checkout.domain.session.record import Session, Status
from sandbox.wallets.state import State
from tests.support.protected import ATTEMPTS_KEPT

# The outcomes that an event may give the attempt that it ends.
BY: Final = {
    Event.WALLET_SUBMITTED: {Outcome.REPLACED, Outcome.DECLINED, Outcome.TIMED_OUT},
    Event.PREPARATION_FAILED: {Outcome.FAILED},
    Event.APPROVAL_LOST: {Outcome.FAILED, Outcome.PRICE_CHANGED},
    Event.PAYMENT_REFUSED: {Outcome.REFUSED, Outcome.FAILED, Outcome.TIMED_OUT},
    Event.PAYMENT_DISPROVED: {Outcome.FAILED},
    Event.MONEY_FOUND: {Outcome.REPLACED},
    Event.RECONCILED: {Outcome.PAID},
    Event.ACCEPTED_AS_PAID: {Outcome.PAID_IN_PART},
    Event.GIVEN_UP: {Outcome.PAID_IN_PART},
    Event.EXPIRY_PASSED: {Outcome.TIMED_OUT, Outcome.DECLINED},
    Event.EXPIRE_REQUESTED: {Outcome.CANCELED},
    Event.CANCEL_REQUESTED: {Outcome.CANCELED},
}
RUNS: Final = (Status.PREPARING, Status.AWAITING_APPROVAL)
PAID: Final = (Outcome.PAID, Outcome.PAID_IN_PART)


class Attempts:
    """Checks the attempts of each session; `fail` takes the check and what was seen."""

    def __init__(self, state: Callable[[], State], fail: Callable[[str, str], None]) -> None:
        self._state = state
        self._fail = fail
        self._given: Counter[str] = Counter()  # wallets, by session
        self._from_outside: set[str] = set()  # sessions in which money was found since the last one

    def written(self, before: Session, after: Session, event: Event) -> None:
        """Check a write that made `after` of `before`."""
        self._given[after.id] += event is Event.WALLET_SUBMITTED
        if event is Event.MONEY_FOUND:
            self._from_outside.add(after.id)
        elif event is Event.WALLET_SUBMITTED:
            self._from_outside.discard(after.id)
        self._kept(before, after)
        self._unchanged(before, after)
        self._ended(before, after, event)
        self._agrees(after, event)
        for attempt in attempts_of(after)[-2:]:  # as they are shown, also the one that runs
            self._own_evidence(attempt)

    def _kept(self, before: Session, after: Session) -> None:
        """The newest are there, one for each wallet that was given, in their order."""
        given = self._given[after.id]
        wanted = list(range(max(0, given - ATTEMPTS_KEPT) + 1, given + 1))
        found = [each.number for each in after.payment_attempts]
        if found != wanted:
            self._fail("attempt_is_never_lost", f"{found} of {given}, from {before.status}")

    def _unchanged(self, before: Session, after: Session) -> None:
        now = {each.number: each for each in after.payment_attempts}
        for old in before.payment_attempts:
            if old.outcome is not None and now.get(old.number, old) != old:
                self._fail("ended_attempt_never_changes", f"number {old.number}, {old.outcome}")

    def _ended(self, before: Session, after: Session, event: Event) -> None:
        """An attempt that this write has ended is told as the event says, with its evidence."""
        ran = {each.number for each in before.payment_attempts if each.outcome is None}
        for attempt in after.payment_attempts:
            if attempt.number not in ran or attempt.outcome is None:
                continue
            if attempt.outcome not in BY.get(event, set()):
                self._fail("attempt_agrees_with_state", f"{attempt.outcome} by {event}")
            if attempt.quote != before.quote or attempt.outgoing_payment != before.outgoing_payment:
                self._fail("attempt_has_its_evidence", f"{attempt.quote}, not {before.quote}")

    def _agrees(self, after: Session, event: Event) -> None:
        if not after.payment_attempts:
            return
        last = after.payment_attempts[-1]
        told = f"{event}: {after.status}, last attempt {last.outcome}"
        if any(each.outcome is None for each in after.payment_attempts[:-1]):
            self._fail("attempt_agrees_with_state", f"{told}, and an earlier one runs")
        found = after.id in self._from_outside
        runs = after.status in RUNS or (after.status is Status.PROCESSING and not found)
        if runs is not (last.outcome is None):
            self._fail("attempt_agrees_with_state", told)
        paid = any(each.outcome in PAID for each in after.payment_attempts)
        if paid and after.status is not Status.COMPLETED and not after.happened(Event.GIVEN_UP):
            self._fail("attempt_agrees_with_state", told)
        if after.status is Status.COMPLETED and not found and last.outcome not in PAID:
            self._fail("attempt_agrees_with_state", told)

    def _own_evidence(self, attempt: PaymentAttempt) -> None:
        """Its things are of the wallet that was typed, and pay its incoming payment."""
        if attempt.wallet not in (None, attempt.typed):
            self._fail("evidence_is_its_own", f"{attempt.wallet}, typed {attempt.typed}")
        state = self._state()
        quote = state.quotes.get(_last(attempt.quote.id)) if attempt.quote else None
        payment = state.outgoing.get(_last(attempt.outgoing_payment or ""))
        for made in (quote, payment):
            if made is None:
                continue
            if (made.wallet, made.receiver) != (attempt.wallet, attempt.incoming_payment):
                told = f"{type(made).__name__} of {made.wallet} for {made.receiver}"
                self._fail("evidence_is_its_own", f"{told} in {attempt.wallet}")


def _last(url: str) -> str:
    return url.rsplit("/", 1)[-1]
