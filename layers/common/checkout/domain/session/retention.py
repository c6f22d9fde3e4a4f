"""Decide how long sessions and the records beside them are kept.

    session                                       kept until
    never given a wallet                          its expiry or end + CARTS_KEPT
    open, preparing, awaiting approval            its expiry + the retention
    payment in flight, in doubt or partly paid    no end: it is not decided yet
    ended                                         its end + the retention
    ended, its incoming payment still checked     the next check + the retention

In the first two cases, the deletion time is counted from the expiry and stored in advance. So
nothing needs to be written when the session expires.

No decision depends on these times. The database may delete records some days late. Until then,
records past their time are read like any other.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from checkout.domain.session.record import Session

RETENTION: Final = timedelta(days=400)  # a year of accounts, and a month to close them
RETENTION_LEAST: Final = timedelta(days=30)  # the time for which webhook events can be sent again
# No money can have arrived for a session without a wallet, so the merchant's accounts do not need
# the session. Two of three customers leave without giving a wallet, and these carts would be most
# of the stored data (docs/decisions/0010).
CARTS_KEPT: Final = timedelta(days=30)
# A session's other rows are written with the session, and again when a wallet is given. They are
# kept longer than the session, so that they need no further write if the session ends late.
_ROWS_LONGER: Final = timedelta(days=30)
_CARTS_LONGER: Final = timedelta(days=2)
_FLAG_LONGER: Final = timedelta(days=3650)
# A payment that is in doubt for longer than this may never be decided.
_LONG_IN_DOUBT: Final = timedelta(days=7)


def session_kept_until(session: Session, retention: timedelta) -> datetime | None:
    """Return when `session` may be deleted; None while it is not known when it ends."""
    if session.payment_in_flight:
        return None
    retention = _retention(session, retention)
    if session.terminal:
        return max(session.updated_at, session.check_at or session.updated_at) + retention
    return session.expires_at + retention


def rows_kept_until(session: Session, retention: timedelta) -> datetime | None:
    """Return when a session's other rows may be deleted; None while its end is not known.

    These rows are the session's search rows and, if its cart is large, the cart. The time changes
    when a wallet is given. After that, the time changes only if the session is partly paid, is in
    doubt for long, or ends a month after its expiry.
    """
    late_by = session.updated_at - session.expires_at
    if session.partly_paid or (session.payment_in_flight and late_by > _LONG_IN_DOUBT):
        return None
    longer = _ROWS_LONGER if session.wallet_given else _CARTS_LONGER
    late = session.terminal and late_by > longer
    last = session.updated_at if late else session.expires_at
    return last + longer + _retention(session, retention)


def _retention(session: Session, retention: timedelta) -> timedelta:
    return retention if session.wallet_given else min(retention, CARTS_KEPT)


def note_kept_until(at: datetime, retention: timedelta) -> datetime:
    """Return when a note written at `at` may be deleted: not before the note's session."""
    return at + retention + _ROWS_LONGER


def flag_kept_until(session: Session, retention: timedelta) -> datetime:
    """Return when the row that finds a flagged session may be deleted.

    The time never changes. It is long after the expiry, because a partly paid session does not end
    until its merchant decides. The row contains no personal data.
    """
    return session.expires_at + _FLAG_LONGER + retention
