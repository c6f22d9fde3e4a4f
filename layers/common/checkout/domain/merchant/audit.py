"""The audit log of the dashboard: entries that are written once and never changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Action(StrEnum):
    """An action in the dashboard. Exports are noted, other reads are not."""

    SIGNED_IN = "signed_in"
    SIGNED_OUT = "signed_out"
    SESSION_EXPIRED = "session_expired"
    SESSION_CANCELED = "session_canceled"
    SESSION_ACCEPTED = "session_accepted"
    SESSION_GIVEN_UP = "session_given_up"
    CLOSING_STARTED = "closing_started"
    REFUND_REQUESTED = "refund_requested"
    PAID_ELSEWHERE = "paid_elsewhere"
    REFUND_CANCELED = "refund_canceled"
    CLAIM_OFFERED = "claim_offered"
    BUDGET_ASKED = "budget_asked"
    BUDGET_APPROVED = "budget_approved"
    BUDGET_ENDED = "budget_ended"
    EXPORTED = "exported"
    NOTE_WRITTEN = "note_written"
    DEALT_WITH = "dealt_with"
    OPENED_AGAIN = "opened_again"
    KEY_CREATED = "key_created"
    KEY_ROLLED = "key_rolled"
    KEY_REVOKED = "key_revoked"
    WEBHOOK_SET = "webhook_set"
    WEBHOOK_REMOVED = "webhook_removed"
    WEBHOOK_ENABLED = "webhook_enabled"
    WEBHOOK_SECRET_ROLLED = "webhook_secret_rolled"
    TEST_EVENT_SENT = "test_event_sent"
    EVENT_RESENT = "event_resent"
    EVENTS_RESENT = "events_resent"
    LINK_CREATED = "link_created"
    LINK_STOPPED = "link_stopped"
    LINK_STARTED = "link_started"
    LINK_STOCKED = "link_stocked"
    SETTINGS_CHANGED = "settings_changed"
    SIGNED_UP = "signed_up"
    WALLET_PROVEN = "wallet_proven"
    MEMBER_INVITED = "member_invited"
    INVITATION_WITHDRAWN = "invitation_withdrawn"
    MEMBER_JOINED = "member_joined"
    MEMBER_ROLE_CHANGED = "member_role_changed"
    MEMBER_REVOKED = "member_revoked"
    KEY_SIGN_IN_ALLOWED = "key_sign_in_allowed"
    KEY_SIGN_IN_ENDED = "key_sign_in_ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One action by one actor, an API key or a member.

    The actor's name, and a key's last four digits, are copied at that time. `target` is the id of
    the changed record, or a short text; never a secret.
    """

    id: str
    merchant: str
    at: datetime
    action: Action
    actor_id: str
    actor_name: str
    key_last_four: str | None = None
    target: str | None = None
