"""A customer's withdrawal from a purchase: a statement to the shop, which moves no money.

The customer files the withdrawal in the two steps that article 11a of the EU's Directive 2011/83
(added by Directive 2023/2673) requires: the statement, and its confirmation. The shop then pays the
customer back with a refund. A withdrawal is stored apart from the session
(docs/howto/add-a-note.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar, Final

from checkout.domain.session.collect import Collect, Detail
from checkout.domain.session.record import Session, Status

DAYS_MAX: Final = 365  # days after the payment in which customers can withdraw
# The directive requires a name, and an e-mail address for the acknowledgement.
ASKED: Final = Collect(
    asked=frozenset({Detail.NAME, Detail.EMAIL}), required=frozenset({Detail.NAME, Detail.EMAIL})
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """The withdrawal from one session, filed at `at`.

    `said` is the customer's name and e-mail address as ciphertext; None after an erasure.
    `acknowledge_at` is when the sweep (the scheduled job) sends the acknowledgement; None if it was
    sent, or if this deployment sends no e-mail. `language` is the language tag of the customer's
    page. `answered_by` is the person who has marked the withdrawal as answered, or None. `version`
    grows by one with each write.
    """

    session: str
    merchant: str
    at: datetime
    said: str | None = field(default=None, repr=False)
    answered_by: str | None = None
    version: int = 1
    acknowledge_at: datetime | None = None
    language: str | None = None

    # The sweep reads these fields of every record. A withdrawal has no payment and no history.
    payment_in_flight: ClassVar[bool] = False
    terminal: ClassVar[bool] = False
    attention: ClassVar[None] = None
    history: ClassVar[tuple[()]] = ()


def last_moment(session: Session, days: int) -> datetime | None:
    """Return until when the customer can withdraw, or None if the session was not paid.

    `days` is the merchant's setting. If `days` is 0, the customer's page offers no withdrawal, so
    the result is None.
    """
    if not days or session.status is not Status.COMPLETED or session.completed_at is None:
        return None
    return session.completed_at + timedelta(days=days)


def waits(session: Session, withdrawal: Withdrawal | None) -> bool:
    """Return whether the shop has to act: the withdrawal is neither answered nor fully refunded."""
    if withdrawal is None or withdrawal.answered_by is not None:
        return False
    return session.refunded < (session.amount_paid or session.amount_total)
