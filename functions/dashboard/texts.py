"""The words of the dashboard for states, steps, problems and actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from checkout.domain.attempts import Concern
from checkout.domain.audit import Action
from checkout.domain.payment_attempt import EndedBy, Outcome
from checkout.domain.people import Role, Scope
from checkout.domain.session import Attention, Problem, Status
from checkout.domain.transitions import Event
from checkout.domain.webhooks import (
    CANCELED,
    COMPLETED,
    EXPIRED,
    LATE_PAYMENT,
    PARTIALLY_PAID,
    PAYMENT_FAILED,
    PING,
    EventStatus,
    Format,
    GivenUp,
)
from checkout.open_payments.errors import Reason

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
    Action.SESSION_ACCEPTED: "Accepted a session as paid",
    Action.SESSION_GIVEN_UP: "Gave a session up",
    Action.CLOSING_STARTED: "Started to close an incoming payment",
    Action.EXPORTED: "Exported transactions",
    Action.KEY_CREATED: "Created an API key",
    Action.KEY_ROLLED: "Replaced an API key",
    Action.KEY_REVOKED: "Revoked an API key",
    Action.WEBHOOK_SET: "Set the webhook URL",
    Action.WEBHOOK_REMOVED: "Removed the webhook URL",
    Action.WEBHOOK_ENABLED: "Re-enabled the webhook URL",
    Action.WEBHOOK_SECRET_ROLLED: "Created a new webhook secret",
    Action.TEST_EVENT_SENT: "Sent a test event",
    Action.EVENT_RESENT: "Resent a webhook event",
    Action.EVENTS_RESENT: "Resent all failed webhook events",
    Action.LINK_CREATED: "Created a payment link",
    Action.LINK_STOPPED: "Stopped a payment link",
    Action.LINK_STARTED: "Let a payment link sell again",
    Action.LINK_STOCKED: "Set the stock of a payment link",
    Action.SETTINGS_CHANGED: "Changed settings",
    Action.MEMBER_INVITED: "Invited a person",
    Action.INVITATION_WITHDRAWN: "Withdrew an invitation",
    Action.MEMBER_JOINED: "Accepted an invitation",
    Action.MEMBER_ROLE_CHANGED: "Changed a person's role",
    Action.MEMBER_REVOKED: "Revoked a person",
    Action.KEY_SIGN_IN_ALLOWED: "Let API keys sign in here",
    Action.KEY_SIGN_IN_ENDED: "Ended the sign-in with API keys",
}

ROLE: Final[dict[Role, tuple[str, str]]] = {
    Role.SUPPORT: ("Support", "reads everything, changes nothing"),
    Role.DEVELOPER: ("Developer", "also manages API keys and webhooks"),
    Role.OWNER: ("Owner", "everything, settings and people included"),
}
# By the value of the form: the scopes, and their text.
SCOPES: Final[Mapping[str, tuple[tuple[Scope, ...], str]]] = {
    "both": ((Scope.READ, Scope.WRITE), "Read and write"),
    "read": ((Scope.READ,), "Read only"),
    "write": ((Scope.WRITE,), "Write only: create and end sessions"),
}

# What happens next in each stage of a session.
WAITING: Final[dict[str, str]] = {
    "open": "Waiting for the customer to enter a wallet address.",
    "preparing": "Asking the wallet providers for the price and for a way to approve it.",
    "awaiting_approval": "Waiting for the customer to approve the payment at their wallet "
    "provider.",
    "continuing": "The customer has approved the payment. The approval is being redeemed.",
    "paying": "The payment was sent to the customer's wallet. Its result is being checked.",
    "closing": "The incoming payment is being closed, to find out for certain whether any money "
    "has arrived.",
    "processing": "The customer's wallet has accepted the payment. Waiting for the money to arrive "
    "in your wallet.",
    "found": "Money has arrived in your wallet without an approval on the checkout page. Checking "
    "whether it is all of it.",
    "partly_paid": "A part of the money has arrived. The rest may still arrive until the incoming "
    "payment is closed or expires.",
    "partly_paid_for_good": "A part of the money has arrived. The incoming payment is closed: the "
    "rest cannot arrive any more. The session waits for your decision.",
    "completed": "Complete: the money is in your wallet.",
    "short": "Complete: less than asked has arrived (see Received), but so little is missing that "
    "it counts as paid.",
    "accepted": "Complete: less than asked has arrived (see Received), and you accepted it as "
    "paid.",
    "instructed": "Complete: the customer's wallet has accepted the payment.",
    "expired": "Expired: its time ran out, or you expired it. It can no longer be paid.",
    "given_up": "Expired: you gave it up after a part of the money had arrived (see Received). It "
    "can no longer be paid.",
    "canceled": "You canceled this session. It can no longer be paid.",
}

# By the name of an event, which may be one that this release does not know.
STEP: Final[Mapping[str, str]] = {
    Event.WALLET_SUBMITTED: "The customer entered a wallet address",
    Event.REFERENCE_STORED: "A further part of the preparation was ready",
    Event.PREPARED: "Ready: the customer saw the price and the way to approve it",
    Event.PREPARATION_FAILED: "The preparation failed",
    Event.RETURN_REPORTED: "The customer's browser came back from the wallet without an approval",
    Event.APPROVAL_CLAIMED: "The customer came back from their wallet with an approval",
    Event.APPROVAL_LOST: "The approval could not be used",
    Event.PAYMENT_INTENDED: "The payment was sent to the customer's wallet",
    Event.PAYMENT_REFUSED: "The customer's wallet refused the payment",
    Event.PAYMENT_CREATED: "The customer's wallet accepted the payment",
    Event.CHECKED: "The payment was checked",
    Event.PART_ARRIVED: "A part of the money arrived",
    Event.CLOSING_STARTED: "Started to close the incoming payment, so that nothing can arrive late",
    Event.CLOSED: "The incoming payment was closed",
    Event.PAYMENT_DISPROVED: "It is certain that no money arrived; the session can be paid again",
    Event.RECONCILED: "Paid",
    Event.MONEY_FOUND: "Money was found in your wallet that no approval on the checkout page paid",
    Event.ACCEPTED_AS_PAID: "You accepted as paid what had arrived",
    Event.GIVEN_UP: "You gave the session up",
    Event.LATE_PAYMENT: "Money arrived after the session had ended",
    Event.EXPIRY_PASSED: "The session expired",
    Event.EXPIRE_REQUESTED: "You expired the session",
    Event.CANCEL_REQUESTED: "You canceled the session",
    Event.ERASED: "The customer's wallet was erased on request",
}
INCOMING: Final = "An incoming payment was created in your wallet"
ERASED: Final = "erased"
OUTSIDE: Final = "not known: no payment from the customer's wallet was seen"
QUOTED: Final = "The customer's wallet quoted its price"
BAD_STEPS: Final = frozenset[str](
    {
        Event.PREPARATION_FAILED,
        Event.RETURN_REPORTED,
        Event.APPROVAL_LOST,
        Event.PAYMENT_REFUSED,
        Event.PAYMENT_DISPROVED,
        Event.LATE_PAYMENT,
    }
)

PROBLEM: Final[Mapping[str, str]] = {
    Problem.WALLET_UNREACHABLE: "The customer's wallet provider did not respond.",
    Problem.WALLET_INVALID: "There is no wallet at the address that the customer entered.",
    Problem.WALLET_UNAVAILABLE: "The customer's wallet cannot pay yours: the two providers are not "
    "connected, or the customer's provider has a fault.",
    Problem.AMOUNT_TOO_SMALL_FOR_WALLET: "The amount is too small for the customer's wallet.",
    Problem.MERCHANT_WALLET_ERROR: "Your own wallet provider refused the request or did not "
    "respond. If this continues, check that your key is still registered there.",
    Problem.PREPARATION_INTERRUPTED: "The preparation was interrupted.",
    Problem.APPROVAL_UNUSABLE: "The approval was declined, lost, or too late.",
    Problem.PRICE_CHANGED: "The price rose above what the customer had approved.",
    Problem.PAYMENT_REFUSED: "For example because the balance was too low.",
    Problem.PAYMENT_FAILED: "The wallet had accepted the payment, but the money never arrived.",
}

# How a payment attempt ended, and who or what ended it.
OUTCOME: Final[Mapping[Outcome, str]] = {
    Outcome.DECLINED: "declined",
    Outcome.TIMED_OUT: "out of time",
    Outcome.PRICE_CHANGED: "the price changed",
    Outcome.REFUSED: "refused by the wallet",
    Outcome.FAILED: "failed",
    Outcome.REPLACED: "replaced",
    Outcome.CANCELED: "canceled",
    Outcome.PAID: "paid",
    Outcome.PAID_IN_PART: "paid in part",
}
RUNNING: Final = "under way"
ENDED_BY: Final[Mapping[EndedBy, str]] = {
    EndedBy.CUSTOMER: "the customer",
    EndedBy.CUSTOMER_WALLET: "the customer's wallet provider",
    EndedBy.MERCHANT: "you",
    EndedBy.MERCHANT_WALLET: "your wallet provider",
    EndedBy.CHECKOUT: "this service",
    EndedBy.EXPIRY: "the session's expiry",
    EndedBy.OUTSIDE_PAYMENT: "money that came from outside of the checkout page",
}
# How the last attempt of an unpaid session failed, for the list.
FAILURE: Final[Mapping[Outcome, str]] = {
    Outcome.DECLINED: "Declined",
    Outcome.TIMED_OUT: "Timed out",
    Outcome.PRICE_CHANGED: "Price changed",
    Outcome.REFUSED: "Payment refused",
    Outcome.FAILED: "Failed",
}
CONCERN: Final[Mapping[Concern, str]] = {
    Concern.FAILED: "Failed",
    Concern.DECLINED: "Declined",
    Concern.ATTENTION: "Needs attention",
}
# What a browser reports, by the note of the step.
REPORTED: Final[Mapping[str, str]] = {
    Outcome.DECLINED: "It reported that the customer declined. Nobody has signed that, so it "
    "changed nothing.",
    Outcome.TIMED_OUT: "It reported that the approval took too long. Nobody has signed that, so it "
    "changed nothing.",
}
# The kinds of error in the notes of steps; those of a later release stay as they are.
KIND: Final[Mapping[str, str]] = {
    "NotSent": "no connection",
    "NoSuchHost": "no such host",
    "OutcomeUnknown": "no clear answer",
    "UntrustedAnswer": "the answer did not make sense",
    "BadRedirect": "a redirect that cannot be followed",
    "Refused": "the provider refused the request",
    "lease lapsed": "a process was interrupted",
    Reason.NOT_APPROVED: "the approval was not given",
    Reason.GRANT_GONE: "the approval is no longer valid",
    Reason.TOKEN_INACTIVE: "the approval has ended",
    Reason.TOKEN_GONE: "the approval has ended",
    Reason.INSUFFICIENT_GRANT: "the approval does not cover the payment",
    Reason.BEYOND_LIMITS: "the approval does not cover the payment",
    Reason.INVALID_QUOTE: "the price is no longer valid",
    Reason.UNKNOWN_QUOTE: "the price is not known there",
    Reason.INVALID_RECEIVER: "the incoming payment cannot be paid from there",
    Reason.AMOUNT_TOO_SMALL: "the amount is too small",
    Reason.INVALID_AMOUNT: "the amount is not valid there",
    Reason.NOT_FOUND: "not found",
    Reason.BUSY: "the provider was busy",
    Reason.OTHER: "the provider gave no known reason",
}

# Errors of connections in delivery logs; others stay as they are.
CONNECTION: Final[Mapping[str, str]] = {
    "ConnectionRefusedError": "the connection was refused",
    "ConnectionResetError": "the connection was cut",
    "BrokenPipeError": "the connection was cut",
    "RemoteProtocolError": "the answer was not HTTP",
    "TimeoutError": "no connection in time",
    "gaierror": "there is no such host",
    "SSLEOFError": "the connection was cut",
    "SSLError": "TLS failed",
}

# Refusals of the merchant's key, by their reason: what is wrong, and what to do.
KEY_REFUSED: Final[Mapping[str, str]] = {
    Reason.CLIENT_UNKNOWN: "A wallet provider did not find your key at your wallet address. Look "
    "into your wallet's settings. If the key is missing, register it again, or create a new one "
    "and have it replaced here (checkout setup --replace-key). If it is there, the provider could "
    "not read it at that moment.",
    Reason.BAD_SIGNATURE: "A wallet provider says that our signature does not match the key at "
    "your wallet address. Create a new key in your wallet's settings and have it replaced here "
    "(checkout setup --replace-key).",
}

# Problems that need the merchant: what is wrong, with amounts, and what to do.
ATTENTION: Final[dict[Attention, tuple[str, str]]] = {
    Attention.PARTIAL_PAYMENT: (
        "Only part of the money has arrived: {received} of {asked}.",
        "Do not deliver the goods yet. If you are content with what has arrived, accept it as "
        "paid. If not, give the session up, and send back what has arrived, from your wallet to "
        "your customer's: this service never sends money back.",
    ),
    Attention.UNDECIDED: (
        "A wallet provider has given no clear answer for an hour.",
        "Do not deliver the goods, and do not ask for another payment yet. Look up the incoming "
        "payment (below) in your own wallet: what your wallet shows is what counts. We ask again "
        "every hour, and update this page as soon as there is an answer.",
    ),
    Attention.LATE_PAYMENT: (
        "Money arrived after the session had ended: {received}.",
        "The session stays as it is. Either send the money back, from your wallet to your "
        "customer's, or deliver the goods, as you agree with your customer. This service never "
        "does either by itself.",
    ),
}
# UNDECIDED after a session's end.
UNACCOUNTED: Final = (
    "Your wallet provider has given no clear answer for a week.",
    "So it is not certain what this ended session has received. Look up the incoming payment "
    "(below) in your own wallet: what your wallet shows is what counts. We do not ask again.",
)

# What a new merchant is told of their wallet and key: by first_steps.State.
WALLET_STATE: Final[Mapping[str, str]] = {
    "fine": "Your wallet answers.",
    "wrong": "There is no wallet at this address, or its currency has changed. Ask your operator.",
    "unknown": "Your wallet provider did not answer just now. Reload the page to try again.",
}
KEY_STATE: Final[Mapping[str, str]] = {
    "fine": "Your wallet lists this key, and it is ours.",
    "wrong": "Your wallet does not list this key. Register it again in your wallet's settings, or "
    "have it replaced here (checkout setup --replace-key).",
    "unknown": "It could not be checked just now.",
}

DELIVERY: Final[dict[EventStatus, str]] = {
    EventStatus.PENDING: "Not delivered yet",
    EventStatus.DELIVERED: "Delivered",
    EventStatus.EXHAUSTED: "Failed",
}
NOT_SENT: Final = "Not sent"  # nobody was to get it, which is not a failure
# By an event's type, which may be one that this release does not know.
EVENT: Final[Mapping[str, str]] = {
    COMPLETED: "A session was paid",
    EXPIRED: "A session expired",
    CANCELED: "A session was canceled",
    LATE_PAYMENT: "Money arrived after a session had ended",
    PAYMENT_FAILED: "A payment failed, and the session is open again",
    PARTIALLY_PAID: "Part of a payment arrived",
    PING: "Test",
}
FORMAT: Final[Mapping[Format, str]] = {
    Format.NATIVE: "Seven fields of the session",
    Format.STRIPE: "An event as Stripe's libraries read it",
}
GIVEN_UP: Final[dict[GivenUp, str]] = {
    GivenUp.ATTEMPTS: "every attempt failed",
    GivenUp.GONE: "the endpoint responded 410 (gone)",
    GivenUp.DISABLED: "the endpoint was disabled",
    GivenUp.NO_ENDPOINT: "the webhook URL was not set, or was removed",
    GivenUp.NOT_WANTED: "this endpoint has not asked for such events",
}

# For how many seconds a replaced key or secret stays valid, the usual choice first.
OVERLAPS: Final[dict[str, str]] = {
    "86400": "1 day",
    "3600": "1 hour",
    "259200": "3 days",
    "604800": "7 days",
    "0": "Not at all: end it now",
}
