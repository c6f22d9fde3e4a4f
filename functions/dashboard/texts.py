"""What the dashboard says of states, steps and problems, in plain words."""

from __future__ import annotations

from typing import Final

from checkout.domain.audit import Action
from checkout.domain.session import Attention, Problem, Status
from checkout.domain.transitions import Event
from checkout.domain.webhooks import CANCELED, COMPLETED, EXPIRED, PING, EventStatus, GivenUp

STATUS: Final[dict[Status, str]] = {
    Status.OPEN: "Open",
    Status.PREPARING: "Preparing",
    Status.AWAITING_APPROVAL: "Awaiting approval",
    Status.PROCESSING: "Confirming",
    Status.COMPLETED: "Paid",
    Status.EXPIRED: "Expired",
    Status.CANCELED: "Canceled",
}

ACTION: Final[dict[Action, str]] = {
    Action.SIGNED_IN: "Signed in",
    Action.SIGNED_OUT: "Signed out",
    Action.SESSION_EXPIRED: "Expired a session",
    Action.SESSION_CANCELED: "Canceled a session",
    Action.EXPORTED: "Exported transactions",
    Action.KEY_CREATED: "Created an API key",
    Action.KEY_ROLLED: "Replaced an API key",
    Action.KEY_REVOKED: "Revoked an API key",
    Action.WEBHOOK_SET: "Set the webhook address",
    Action.WEBHOOK_REMOVED: "Removed the webhook address",
    Action.WEBHOOK_ENABLED: "Enabled the webhook address again",
    Action.WEBHOOK_SECRET_ROLLED: "Made a new webhook secret",
    Action.TEST_EVENT_SENT: "Sent a test event",
    Action.EVENT_RESENT: "Sent a webhook event again",
    Action.EVENTS_RESENT: "Sent all failed webhook events again",
    Action.SETTINGS_CHANGED: "Changed settings",
}

# What a session is waiting for.
WAITING: Final[dict[str, str]] = {
    "open": "The customer has yet to give a wallet address.",
    "preparing": "The wallet providers are being asked for the price and the way to approve.",
    "awaiting_approval": "The customer has yet to approve the payment at their wallet provider.",
    "continuing": "The customer has approved; the approval is being redeemed.",
    "paying": "The payment was instructed; its outcome is being found out.",
    "closing": "The incoming payment is being closed, so that it becomes certain whether anything "
    "arrived.",
    "processing": "The customer's wallet has the payment; the money has yet to show in your "
    "wallet.",
    "completed": "Nothing: the money is in your wallet.",
    "instructed": "Nothing: the customer's wallet has accepted the payment.",
    "expired": "Nothing: time ran out, or you expired it. It cannot be paid any more.",
    "canceled": "Nothing: you canceled it. It cannot be paid any more.",
}

STEP: Final[dict[Event, str]] = {
    Event.WALLET_SUBMITTED: "The customer gave a wallet address",
    Event.REFERENCE_STORED: "One more part of the preparation was ready",
    Event.PREPARED: "Ready: the customer was shown the price and the way to approve",
    Event.PREPARATION_FAILED: "The preparation failed",
    Event.APPROVAL_CLAIMED: "The customer came back from their wallet with an approval",
    Event.APPROVAL_LOST: "The approval could not be used",
    Event.PAYMENT_INTENDED: "The payment was instructed",
    Event.PAYMENT_REFUSED: "The customer's wallet refused the payment",
    Event.PAYMENT_CREATED: "The customer's wallet accepted the payment",
    Event.CHECKED: "The payment was looked at",
    Event.CLOSING_STARTED: "The incoming payment was to be closed, so that nothing can arrive late",
    Event.CLOSED: "The incoming payment was closed",
    Event.PAYMENT_DISPROVED: "It became certain that nothing arrived; it can be paid again",
    Event.RECONCILED: "Paid",
    Event.EXPIRY_PASSED: "Time ran out",
    Event.EXPIRE_REQUESTED: "You expired the session",
    Event.CANCEL_REQUESTED: "You canceled the session",
}
INCOMING: Final = "An incoming payment was made in your wallet"
QUOTED: Final = "The customer's wallet named its price"
BAD_STEPS: Final = frozenset(
    {
        Event.PREPARATION_FAILED,
        Event.APPROVAL_LOST,
        Event.PAYMENT_REFUSED,
        Event.PAYMENT_DISPROVED,
    }
)

PROBLEM: Final[dict[Problem, str]] = {
    Problem.WALLET_UNREACHABLE: "The customer's wallet provider did not answer.",
    Problem.WALLET_INVALID: "There is no wallet at the address that the customer typed.",
    Problem.WALLET_UNAVAILABLE: "The customer's wallet cannot pay yours: the two providers are not "
    "connected, or theirs has a fault.",
    Problem.AMOUNT_TOO_SMALL_FOR_WALLET: "The amount is too small for the customer's wallet.",
    Problem.MERCHANT_WALLET_ERROR: "Your own wallet provider refused or did not answer. If this "
    "stays, check that your key is still registered there.",
    Problem.PREPARATION_INTERRUPTED: "It was interrupted before it was done.",
    Problem.APPROVAL_UNUSABLE: "It was declined, lost, or came too late.",
    Problem.PRICE_CHANGED: "The price rose above what the customer had approved.",
    Problem.PAYMENT_REFUSED: "For instance because there was not enough money.",
    Problem.PAYMENT_FAILED: "The wallet had accepted it, and the money never arrived.",
}

# What no program can decide: what it is, and what to do.
ATTENTION: Final[dict[Attention, tuple[str, str]]] = {
    Attention.PARTIAL_PAYMENT: (
        "Only a part of the money has arrived.",
        "Do not hand over the goods yet. The rest may still arrive while the incoming payment "
        "lives. If it does not, agree with your customer: they send you the rest, or you send "
        "back what arrived, from wallet to wallet.",
    ),
    Attention.UNDECIDED: (
        "A wallet provider has given no clear answer for an hour.",
        "Do not hand over the goods, and do not ask for another payment yet. Look for the incoming "
        "payment below in your own wallet: what it shows is what counts. We go on asking every "
        "hour, and this page changes as soon as there is an answer.",
    ),
}

DELIVERY: Final[dict[EventStatus, str]] = {
    EventStatus.PENDING: "Not delivered yet",
    EventStatus.DELIVERED: "Delivered",
    EventStatus.EXHAUSTED: "Given up",
}
NOT_SENT: Final = "Not sent"  # to nobody: that is no failure
EVENT: Final[dict[str, str]] = {
    COMPLETED: "A session was paid",
    EXPIRED: "A session expired",
    CANCELED: "A session was canceled",
    PING: "Test",
}
GIVEN_UP: Final[dict[GivenUp, str]] = {
    GivenUp.ATTEMPTS: "every attempt failed",
    GivenUp.GONE: "the endpoint answered 410 (gone)",
    GivenUp.DISABLED: "the endpoint was disabled",
    GivenUp.NO_ENDPOINT: "no webhook address was set",
}

# Each in its own words.
LANGUAGE: Final[dict[str, str]] = {
    "en": "English",
    "es": "Español",
    "fr": "Français",
    "de": "Deutsch",
    "pt": "Português",
    "ar": "العربية",
    "hi": "हिन्दी",
    "sw": "Kiswahili",
}
