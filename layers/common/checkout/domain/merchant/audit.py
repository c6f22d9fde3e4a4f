"""The audit log of the dashboard: entries that are written once and never changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self


class Action(StrEnum):
    """An action in the dashboard, with its text in the log. Exports are the only logged reads."""

    words: str

    def __new__(cls, value: str, words: str) -> Self:
        action = str.__new__(cls, value)
        action._value_ = value
        action.words = words
        return action

    SIGNED_IN = "signed_in", "Signed in"
    SIGNED_OUT = "signed_out", "Signed out"
    SESSION_EXPIRED = "session_expired", "Expired a session"
    SESSION_CANCELED = "session_canceled", "Canceled a session"
    SESSION_ACCEPTED = "session_accepted", "Accepted a session as paid"
    SESSION_GIVEN_UP = "session_given_up", "Gave a session up"
    CLOSING_STARTED = "closing_started", "Started to close an incoming payment"
    REFUND_REQUESTED = "refund_requested", "Requested a refund"
    PAID_ELSEWHERE = "paid_elsewhere", "Noted that a customer was paid back elsewhere"
    REFUND_CANCELED = "refund_canceled", "Canceled a refund"
    CLAIM_OFFERED = "claim_offered", "Created a link with which a customer can name another wallet"
    BUDGET_ASKED = "budget_asked", "Asked the wallet for a refund budget"
    BUDGET_APPROVED = "budget_approved", "Approved a refund budget"
    BUDGET_ENDED = "budget_ended", "Ended the refund budget"
    EXPORTED = "exported", "Exported transactions"
    NOTE_WRITTEN = "note_written", "Wrote a note"
    DEALT_WITH = "dealt_with", "Marked a session as dealt with"
    OPENED_AGAIN = "opened_again", "Marked a session as not dealt with"
    KEY_CREATED = "key_created", "Created an API key"
    KEY_ROLLED = "key_rolled", "Replaced an API key"
    KEY_REVOKED = "key_revoked", "Revoked an API key"
    WEBHOOK_SET = "webhook_set", "Set the webhook URL"
    WEBHOOK_REMOVED = "webhook_removed", "Removed the webhook URL"
    WEBHOOK_ENABLED = "webhook_enabled", "Re-enabled the webhook URL"
    WEBHOOK_SECRET_ROLLED = "webhook_secret_rolled", "Created a new webhook secret"
    TEST_EVENT_SENT = "test_event_sent", "Sent a test event"
    EVENT_RESENT = "event_resent", "Resent a webhook event"
    EVENTS_RESENT = "events_resent", "Resent all failed webhook events"
    LINK_CREATED = "link_created", "Created a payment link"
    LINK_STOPPED = "link_stopped", "Stopped a payment link"
    LINK_STARTED = "link_started", "Restarted a payment link"
    LINK_STOCKED = "link_stocked", "Set the stock of a payment link"
    SETTINGS_CHANGED = "settings_changed", "Changed settings"
    SIGNED_UP = "signed_up", "Signed up with this shop"
    WALLET_PROVEN = "wallet_proven", "Confirmed that the wallet is the shop's"
    MEMBER_INVITED = "member_invited", "Invited a person"
    INVITATION_WITHDRAWN = "invitation_withdrawn", "Withdrew an invitation"
    MEMBER_JOINED = "member_joined", "Accepted an invitation"
    MEMBER_ROLE_CHANGED = "member_role_changed", "Changed a person's role"
    MEMBER_REVOKED = "member_revoked", "Revoked a person"
    KEY_SIGN_IN_ALLOWED = "key_sign_in_allowed", "Turned on the sign-in with API keys"
    KEY_SIGN_IN_ENDED = "key_sign_in_ended", "Turned off the sign-in with API keys"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One action by one actor, which is an API key or a member.

    The entry keeps the actor's name, and a key's last four digits, as they were at that time.
    `target` is the id of the changed record, or a short text, and never a secret.
    """

    id: str
    merchant: str
    at: datetime
    action: Action
    actor_id: str
    actor_name: str
    key_last_four: str | None = None
    target: str | None = None
