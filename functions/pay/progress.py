"""The steps of a payment in flight, for the customer's page: past steps, the current, the next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from checkout.domain.ground.json_values import timestamp
from checkout.domain.payment.events import Event
from checkout.domain.session.record import Session
from checkout.pages import Moment


class Progress(StrEnum):
    """The known state of a payment in flight. The page has a text for each state."""

    SENDING = "sending"  # approved, but the wallet has not confirmed that it sends the money
    WAITING = "waiting"  # the wallet has accepted the payment
    PART = "part"  # less than the price has arrived
    CLOSING = "closing"  # nothing has arrived; 35 s after the closing, this is certain
    UNDECIDED = "undecided"  # a provider has not answered for a long time


@dataclass(frozen=True, slots=True)
class ProgressStep:
    """A step of a payment. `text` is the name of the step's text, and `at` is when it happened.

    `now` is true for the current step. The current step and later steps have no time.
    """

    text: str
    at: Moment | None = None
    now: bool = False


# For each of these states, the current step and the step after it. In other states the page lists
# no steps, but shows what the customer has to do next.
_NEXT: Final = {
    Progress.SENDING: ("course.sending", "course.paid"),
    Progress.WAITING: ("course.way", "course.paid"),
    Progress.CLOSING: ("course.certain", "course.again"),
}
_BEGINS: Final = (Event.APPROVAL_CLAIMED, Event.MONEY_FOUND)  # money from outside has no approval


def course_of(session: Session, progress: Progress | None) -> tuple[ProgressStep, ...]:
    """Return the steps of the session's payment, or none if the customer did not approve it."""
    if progress not in _NEXT:
        return ()
    begun = [at for at, entry in enumerate(session.history) if entry.event in _BEGINS]
    happened = session.history[begun[-1] :] if begun else ()
    if not happened or happened[0].event != Event.APPROVAL_CLAIMED:
        return ()
    texts = {Event.APPROVAL_CLAIMED.value: "course.approved"}
    if progress is not Progress.CLOSING:  # while closing, this step is left out: no money has come
        texts[Event.PAYMENT_CREATED.value] = "course.accepted"
    past = [
        ProgressStep(texts[entry.event], _clock(entry.at))
        for entry in happened
        if entry.event in texts
    ]
    now, following = _NEXT[progress]
    return (*past, ProgressStep(now, now=True), ProgressStep(following))


def _clock(at: datetime) -> Moment:
    return Moment(timestamp(at), f"{at.astimezone(UTC):%H:%M:%S} UTC")
