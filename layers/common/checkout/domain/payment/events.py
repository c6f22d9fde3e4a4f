"""The events of a session. The events about payments apply to any `InFlight` record."""

from __future__ import annotations

from enum import StrEnum


class Event(StrEnum):
    """The events that can happen to a session."""

    WALLET_SUBMITTED = "wallet_submitted"
    REFERENCE_STORED = "reference_stored"
    PREPARED = "prepared"
    PREPARATION_FAILED = "preparation_failed"
    RETURN_REPORTED = "return_reported"
    APPROVAL_CLAIMED = "approval_claimed"
    APPROVAL_KEPT = "approval_kept"
    APPROVAL_LOST = "approval_lost"
    PAYMENT_INTENDED = "payment_intended"
    PAYMENT_REFUSED = "payment_refused"
    PAYMENT_CREATED = "payment_created"
    CHECKED = "checked"
    PART_ARRIVED = "part_arrived"
    CLOSING_STARTED = "closing_started"
    CLOSED = "closed"
    PAYMENT_DISPROVED = "payment_disproved"
    RECONCILED = "reconciled"
    MONEY_FOUND = "money_found"
    ACCEPTED_AS_PAID = "accepted_as_paid"
    GIVEN_UP = "given_up"
    LATE_PAYMENT = "late_payment"
    EXPIRY_PASSED = "expiry_passed"
    EXPIRE_REQUESTED = "expire_requested"
    CANCEL_REQUESTED = "cancel_requested"
    REFUND_REQUESTED = "refund_requested"
    PAID_ELSEWHERE = "paid_elsewhere"
    REFUND_SETTLED = "refund_settled"
    DETAILS_GIVEN = "details_given"
    METADATA_CHANGED = "metadata_changed"
    ERASED = "erased"
