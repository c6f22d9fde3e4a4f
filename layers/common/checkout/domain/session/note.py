"""A merchant's private note about a session: a text, tags, and a mark "dealt with".

The note is stored apart from the session (docs/howto/add-a-note.md), because no API, webhook or
customer's page may show it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from checkout.domain.payment.in_flight import Attention
from checkout.domain.session.record import Session

TEXT_MAX: Final = 2_000  # characters of a note
TAGS_MAX: Final = 10
TAG_MAX: Final = 30  # characters
_BETWEEN: Final = re.compile(r"[,\n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """The note on one session, as `author` left it at `at`.

    `dealt_with` is the text of the case that a person has dealt with (`case_of`). If another case
    occurs, or more money arrives, this is a new case, and the session needs a person again.
    `version` grows by one with each write.
    """

    session: str
    merchant: str
    text: str = field(default="", repr=False)
    tags: tuple[str, ...] = ()
    dealt_with: str | None = None
    author: str
    at: datetime
    version: int = 1


def case_of(session: Session) -> str | None:
    """Return a text for the case that needs a person (its reason and amount received), or None."""
    if not session.needs_attention or _sent_back(session):
        return None
    return f"{session.attention or 'overpaid'} {session.received or 0}"


def needs_somebody(session: Session, note: Note | None) -> bool:
    """Return whether the session needs a person and is not marked as dealt with.

    The mark has no effect on a partly paid session, which the merchant must accept or give up.
    """
    case = case_of(session)
    marked = note is not None and note.dealt_with == case and not session.partly_paid
    return case is not None and not marked


def _sent_back(session: Session) -> bool:
    """Return whether refunds have sent back, or will send back, all excess money.

    If a refund fails or is canceled, its amount is no longer reserved, so the session then needs a
    person again.
    """
    if session.attention is Attention.UNDECIDED or not session.terminal:
        return False
    wanted = session.amount_total if session.overpaid else 0
    return session.refunded >= max((session.amount_received or 0) - wanted, 1)


def tags_of(typed: str) -> tuple[str, ...]:
    """Return the tags in a text, where commas or line ends separate them, without repeats."""
    tags = (" ".join(each.split()) for each in _BETWEEN.split(typed))
    return tuple(dict.fromkeys(each for each in tags if each))
