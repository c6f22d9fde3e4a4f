from __future__ import annotations

from datetime import timedelta

import pytest

from checkout.domain.retention import search_rows_kept_until, session_kept_until
from checkout.domain.session import Attention, Instruction, Phase, Session, Status
from tests.support import NOW, a_session

KEPT = timedelta(days=400)
DAY = timedelta(days=1)
EXPIRY = NOW + DAY  # of `a_session`
ATTEMPT = Instruction("a", NOW)
FLAGGED = a_session(
    Status.PROCESSING, attention=Attention.PARTIAL_PAYMENT, received=5, updated_at=NOW + 90 * DAY
)


@pytest.mark.parametrize(
    ("session", "kept_until"),
    [
        (a_session(), EXPIRY + KEPT),
        (a_session(Status.PREPARING, lease_until=NOW), EXPIRY + KEPT),
        (a_session(Status.AWAITING_APPROVAL, check_at=NOW), EXPIRY + KEPT),
        (a_session(Status.AWAITING_APPROVAL, phase=Phase.CONTINUING), EXPIRY + KEPT),
        (a_session(Status.AWAITING_APPROVAL, phase=Phase.PAYING, instruction=ATTEMPT), None),
        (a_session(Status.PROCESSING, check_at=NOW), None),
        (a_session(Status.PROCESSING, attention=Attention.UNDECIDED), None),
        (FLAGGED, None),
        (a_session(Status.COMPLETED, updated_at=NOW + DAY), NOW + DAY + KEPT),
        (a_session(Status.EXPIRED, updated_at=NOW + DAY), NOW + DAY + KEPT),
        (a_session(Status.CANCELED), NOW + KEPT),
        (a_session(Status.CANCELED, attention=Attention.LATE_PAYMENT), NOW + KEPT),
        (a_session(Status.EXPIRED, check_at=NOW + 3 * DAY), NOW + 3 * DAY + KEPT),
        (a_session(Status.COMPLETED, check_at=NOW - DAY), NOW + KEPT),
    ],
)
def test_how_long_a_session_is_kept(session: Session, kept_until: object) -> None:
    assert session_kept_until(session, KEPT) == kept_until


LONGER = EXPIRY + 30 * DAY + KEPT  # as they are written with the session


@pytest.mark.parametrize(
    ("session", "kept_until"),
    [
        (a_session(), LONGER),
        (a_session(Status.AWAITING_APPROVAL, phase=Phase.PAYING, instruction=ATTEMPT), LONGER),
        (a_session(Status.PROCESSING), LONGER),
        (FLAGGED, None),
        (a_session(Status.COMPLETED, updated_at=EXPIRY + 30 * DAY), LONGER),
        (a_session(Status.EXPIRED, updated_at=EXPIRY + 31 * DAY), LONGER + 31 * DAY),
    ],
)
def test_search_rows_are_kept_at_least_as_long_as_their_session(
    session: Session, kept_until: object
) -> None:
    assert search_rows_kept_until(session, KEPT) == kept_until
    own = session_kept_until(session, KEPT)
    rows = search_rows_kept_until(session, KEPT)
    assert rows is None or own is None or rows >= own
