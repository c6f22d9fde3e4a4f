"""Decide how long sessions and their other rows are kept, which is their time to live.

    session                                       kept until
    open, preparing, awaiting approval            its expiry + the retention
    payment in flight, in doubt or partly paid    no end: it is still to be decided
    ended                                         its end + the retention
    ended, its incoming payment still checked     the next check + the retention

A waiting session has its time from the beginning: nothing needs to be written when it expires.

No decision depends on these times. DynamoDB deletes some days late, and a record that is past its
time and still there is read like any other.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from checkout.domain.session import Session

RETENTION: Final = timedelta(days=400)  # a year's accounts, and a month to close them
RETENTION_LEAST: Final = timedelta(days=30)  # webhook events can be sent again for so long
# A session's other rows are written once, with the session. They live longer than it does, so that
# they need no further write when a session ends later than it should.
_ROWS_LONGER: Final = timedelta(days=30)
# A payment that is in doubt for so long after its session's expiry may stay so.
_LONG_IN_DOUBT: Final = timedelta(days=7)


def session_kept_until(session: Session, retention: timedelta) -> datetime | None:
    """Return when `session` may be deleted, or None while it may not."""
    if session.payment_in_flight:
        return None
    if session.terminal:
        return max(session.updated_at, session.check_at or session.updated_at) + retention
    return session.expires_at + retention


def rows_kept_until(session: Session, retention: timedelta) -> datetime | None:
    """Return when a session's other rows may be deleted; None while they may not.

    They are its cart, where that is large, and those by which it is found. The time changes for a
    session that is flagged, that is long in doubt, or that ends a month after its expiry, and so
    only these have their rows written again.
    """
    late_by = session.updated_at - session.expires_at
    if session.partly_paid or (session.payment_in_flight and late_by > _LONG_IN_DOUBT):
        return None
    late = session.terminal and late_by > _ROWS_LONGER
    last = session.updated_at if late else session.expires_at
    return last + _ROWS_LONGER + retention
