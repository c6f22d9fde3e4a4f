"""The dashboard's texts for states, steps, problems and actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from checkout.domain.merchant.notices import Pace, Topic
from checkout.domain.merchant.people import USUAL, Role, Scope
from checkout.domain.payment.attempt import EndedBy, Outcome
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention, Problem
from checkout.domain.session.attempts import Concern
from checkout.domain.session.collect import Detail, Place, QuestionKind
from checkout.domain.session.record import Status
from checkout.domain.webhooks.record import EventStatus, Format, GivenUp
from checkout.flows.notices import Case
from open_payments.errors import Reason

USED_ALREADY: Final = (
    "This form was already sent with other values. Check the result of the first one. If you also "
    "want this one, send it again from this page."
)
SENT_TWICE: Final = (
    "This form was sent twice, but the action was done only once. A key, link or secret was shown "
    "only in the first response. If you did not see it, replace or withdraw it here."
)

STATUS: Final[dict[Status, str]] = {
    Status.OPEN: "Open",
    Status.PREPARING: "Preparing",
    Status.AWAITING_APPROVAL: "Awaiting approval",
    Status.PROCESSING: "Confirming",
    Status.COMPLETED: "Paid",
    Status.EXPIRED: "Expired",
    Status.CANCELED: "Canceled",
}

# The texts that replace "Confirming" when the state of the payment is known more exactly.
PART_PAID: Final = "Part paid"
MAKING_CERTAIN: Final = "Making certain"

# Shown beside the status after money was sent back.
REFUNDED: Final = "Refunded"
PARTLY_REFUNDED: Final = "Partly refunded"

ROLE: Final[dict[Role, tuple[str, str]]] = {
    Role.SUPPORT: ("Support", "reads everything and writes private notes, changes nothing else"),
    Role.DEVELOPER: ("Developer", "also manages API keys and webhooks"),
    Role.OWNER: ("Owner", "everything, settings and people included"),
}
# The scopes that a key can get and their text, by the value in the form.
SCOPES: Final[Mapping[str, tuple[tuple[Scope, ...], str]]] = {
    "full": (USUAL, "Everything but refund"),
    "refund": (tuple(Scope), "Everything, and refund"),
    "both": ((Scope.READ, Scope.WRITE), "Read, and create sessions"),
    "read": ((Scope.READ,), "Read only"),
    "write": ((Scope.WRITE,), "Create sessions only"),
    "end": ((Scope.WRITE, Scope.MANAGE), "Sessions, webhooks, no reading"),
}

# For a browser that signed in with a key without the scope `refund`.
KEY_MOVES_NO_MONEY: Final = (
    "This API key does not have the scope `refund`, so it can neither move money nor manage people "
    "here. Sign in as an owner with a passkey. If there is no owner yet, ask the operator for an "
    "invitation: `checkout invite`."
)

# The text of the next step in each stage of a session.
WAITING: Final[dict[str, str]] = {
    "open": "Waiting for the customer to enter a wallet address.",
    "failed": "No money arrived, and none can: the incoming payment is closed. The customer may "
    "pay again.",
    "preparing": "Asking the wallet providers for the price and for the approval page.",
    "awaiting_approval": "Waiting for the customer to approve the payment at their wallet "
    "provider.",
    "continuing": "The customer has approved the payment. We are completing the approval with the "
    "wallet.",
    "paying": "The payment was sent to the customer's wallet. Its result is being checked.",
    "closing": "The incoming payment is being closed, to find out for certain whether any money "
    "has arrived.",
    "processing": "The customer's wallet has accepted the payment. Waiting for the money to arrive "
    "in your wallet.",
    "found": (
        "Money has arrived in your wallet without an approval on the checkout page. We are "
        "checking whether it is the whole amount."
    ),
    "partly_paid": "A part of the money has arrived. The rest may still arrive until the incoming "
    "payment is closed or expires.",
    "partly_paid_for_good": (
        "A part of the money has arrived. The incoming payment is closed, so the rest can no "
        "longer arrive. The session waits for your decision."
    ),
    "completed": "Complete: the money is in your wallet.",
    "short": (
        "Complete: slightly less than the price has arrived (see Received). The difference is "
        "within your tolerance, so the session is paid."
    ),
    "accepted": "Complete: less than the price has arrived (see Received), and you accepted it as "
    "paid.",
    "instructed": "Complete: the customer's wallet has accepted the payment.",
    "expired": "Expired: its time ran out, or you expired it. It can no longer be paid.",
    "given_up": "Expired: you gave it up after a part of the money had arrived (see Received). It "
    "can no longer be paid.",
    "canceled": "You canceled this session. It can no longer be paid.",
}

# This text is added for an ended session once it is certain that no money has arrived.
NONE_ARRIVED: Final = "No money arrived, and none can."

# Why there is no event about the end of a session.
NOT_ENDED: Final = "The webhook about its end is sent once the session has ended."
NOT_ASKED: Final = "No webhook about its end was sent, because no endpoint asked for it then."
NOT_KEPT: Final = (
    "The event of its end is no longer stored. Events are kept for 30 days after the last attempt."
)

# The text of a step, by the name of its event. A later release may have stored other events.
STEP: Final[Mapping[str, str]] = {
    Event.WALLET_SUBMITTED: "The customer entered a wallet address",
    Event.REFERENCE_STORED: "A further step of the preparation was done",
    Event.PREPARED: "Ready: the customer saw the price and could approve it",
    Event.PREPARATION_FAILED: "The preparation failed",
    Event.RETURN_REPORTED: "The customer's browser came back from the wallet without an approval",
    Event.APPROVAL_CLAIMED: "The customer came back from their wallet with an approval",
    Event.APPROVAL_KEPT: "The wallet could not process the approval at that moment; the approval "
    "was kept",
    Event.APPROVAL_LOST: "The approval could not be used",
    Event.PAYMENT_INTENDED: "The payment was sent to the customer's wallet",
    Event.PAYMENT_REFUSED: "The customer's wallet refused the payment",
    Event.PAYMENT_CREATED: "The customer's wallet accepted the payment",
    Event.CHECKED: "The payment was checked",
    Event.PART_ARRIVED: "A part of the money arrived",
    Event.CLOSING_STARTED: "Started to close the incoming payment, so that no money can arrive "
    "late",
    Event.CLOSED: "The incoming payment was closed",
    Event.PAYMENT_DISPROVED: "It was proven that no money arrived; the session can be paid again",
    Event.RECONCILED: "Paid",
    Event.MONEY_FOUND: "Money that was not paid through the checkout page was found in your wallet",
    Event.ACCEPTED_AS_PAID: "You accepted the received amount as paid",
    Event.GIVEN_UP: "You gave the session up",
    Event.LATE_PAYMENT: "Money arrived after the session had ended",
    Event.EXPIRY_PASSED: "The session expired",
    Event.EXPIRE_REQUESTED: "You expired the session",
    Event.CANCEL_REQUESTED: "You canceled the session",
    Event.REFUND_REQUESTED: "A refund was requested",
    Event.PAID_ELSEWHERE: "It was noted that the customer was paid back elsewhere",
    Event.REFUND_SETTLED: "A refund ended; any part that was not sent can be refunded again",
    Event.DETAILS_GIVEN: "The customer gave the details that you ask for",
    Event.METADATA_CHANGED: "You changed the metadata",
    Event.ERASED: "The customer's wallet was erased on request",
}
BY_SERVER: Final = "Created by your server"
AT_LINK: Final = "Begun at your link {}"
INCOMING: Final = "An incoming payment was created in your wallet"
ERASED: Final = "erased"

ASKED: Final[dict[Detail | Place, str]] = {
    Detail.EMAIL: "E-mail",
    Detail.NAME: "Name",
    Detail.PHONE: "Phone",
    Place.SHIPPING: "Shipping address",
    Place.BILLING: "Billing address",
}
ANSWER: Final[dict[QuestionKind, str]] = {
    QuestionKind.TEXT: "Text",
    QuestionKind.NUMERIC: "Digits",
    QuestionKind.DROPDOWN: "One of a list",
}
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
    Problem.WALLET_UNREACHABLE: "The customer's wallet provider did not give a usable answer.",
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

# The text for each outcome of a payment attempt, with the reason why the attempt ended.
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
PART_ARRIVED: Final = "a part has arrived"
NOT_PROVEN: Final = "reported by the customer's browser, not proven"
ENDED_BY: Final[Mapping[EndedBy, str]] = {
    EndedBy.CUSTOMER: "the customer",
    EndedBy.CUSTOMER_WALLET: "the customer's wallet provider",
    EndedBy.MERCHANT: "you",
    EndedBy.MERCHANT_WALLET: "your wallet provider",
    EndedBy.CHECKOUT: "this service",
    EndedBy.EXPIRY: "the session's expiry",
    EndedBy.OUTSIDE_PAYMENT: "money that came from outside of the checkout page",
}
# The overview shows why sessions with a wallet were not paid. The text of each reason, by the
# problem or the outcome of the session's last attempt. A later release may have stored others.
REASON: Final[Mapping[str, str]] = {
    Problem.WALLET_UNREACHABLE: "The wallet provider did not answer",
    Problem.WALLET_INVALID: "No wallet at the address",
    Problem.WALLET_UNAVAILABLE: "The wallets are not connected",
    Problem.AMOUNT_TOO_SMALL_FOR_WALLET: "Too small an amount for the wallet",
    Problem.MERCHANT_WALLET_ERROR: "Your own wallet provider refused or did not answer",
    Problem.PREPARATION_INTERRUPTED: "The preparation was interrupted",
    Problem.APPROVAL_UNUSABLE: "The approval was declined, lost or too late",
    Problem.PRICE_CHANGED: "The price rose above what was approved",
    Problem.PAYMENT_REFUSED: "Refused by the wallet, such as for lack of funds",
    Problem.PAYMENT_FAILED: "Accepted by the wallet, but no money arrived",
    Outcome.DECLINED: "Declined by the customer, as the browser reported",
    Outcome.TIMED_OUT: "Not approved in time",
    Outcome.REFUSED: "Refused by the wallet",
    Outcome.FAILED: "Failed",
    Outcome.REPLACED: "Another wallet was tried, and left",
    Outcome.CANCELED: "Ended by you before it was paid",
    Outcome.PAID_IN_PART: "Given up after a part had arrived",
}
REASON_UNKNOWN: Final = "Another reason: {}"
# The list of transactions shows how the last attempt of an unpaid session failed.
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
    Concern.PAYMENT: "A wallet was given",
}
# The lists of transactions that are opened most often, by the filter's value. The first is the
# default.
EVERYTHING: Final = "all"
TABS: Final = (
    (Concern.PAYMENT.value, "Payments"),
    (Status.COMPLETED.value, "Paid"),
    (Concern.FAILED.value, "Failed"),
    (Concern.DECLINED.value, "Declined"),
    (Concern.ATTENTION.value, "Needs you"),
    (EVERYTHING, "All"),
)
# What the customer's browser has reported, by the note of the step.
REPORTED: Final[Mapping[str, str]] = {
    Outcome.DECLINED: (
        "It reported that the customer declined. The report is not signed: the customer could "
        "still approve."
    ),
    Outcome.TIMED_OUT: (
        "It reported that the approval took too long. The report is not signed: the customer "
        "could still approve."
    ),
}
# The kinds of error in the notes of steps. A later release may have stored other kinds, which are
# shown as they are.
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
    Reason.NOT_ROTATED: "the provider was busy",
    Reason.INSUFFICIENT_GRANT: "the approval does not cover the payment",
    Reason.BEYOND_LIMITS: "the approval does not cover the payment",
    Reason.INVALID_QUOTE: "the price is no longer valid",
    Reason.UNKNOWN_QUOTE: "the provider does not know this price",
    Reason.INVALID_RECEIVER: "the incoming payment cannot be paid from this wallet",
    Reason.AMOUNT_TOO_SMALL: "the amount is too small",
    Reason.INVALID_AMOUNT: "the amount is not valid there",
    Reason.NOT_FOUND: "not found",
    Reason.NOT_OURS: "created by another client",
    Reason.BUSY: "the provider was busy",
    Reason.OTHER: "the provider gave no known reason",
}

# Connection errors in delivery logs. Errors that are not listed here are shown as they are.
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

# Why a wallet refused the merchant's key, by the reason: the problem and its remedy.
KEY_REFUSED: Final[Mapping[str, str]] = {
    Reason.CLIENT_UNKNOWN: "A wallet provider did not find your key at your wallet address. Check "
    "your wallet's settings. If the key is missing there, register it again, or create a new key "
    "and ask your operator to replace it here (checkout setup --replace-key). If the key is there, "
    "the provider could not read it at that moment.",
    Reason.BAD_SIGNATURE: "A wallet provider says that our signature does not match the key at "
    "your wallet address. Create a new key in your wallet's settings, and ask your operator to "
    "replace it here (checkout setup --replace-key).",
}

# Problems that need the merchant: a description with amounts, and the remedy.
ATTENTION: Final[dict[Attention, tuple[str, str]]] = {
    Attention.PARTIAL_PAYMENT: (
        "Only part of the money has arrived: {received} of {asked}.",
        "Do not deliver the goods yet. If the amount that has arrived is enough for you, accept it "
        "as paid. If not, give the session up. You can then refund the amount that has arrived.",
    ),
    Attention.UNDECIDED: (
        "A wallet provider has given no clear answer for an hour.",
        "Do not deliver, and do not ask for another payment yet. Look up the incoming payment in "
        "your own wallet, and trust what it shows. We ask the provider every hour, and update this "
        "page.",
    ),
    Attention.LATE_PAYMENT: (
        "Money arrived after the session had ended: {received}.",
        "The session stays as it is. Agree with your customer whether you refund the money (below) "
        "or deliver the goods. This service does neither automatically.",
    ),
}
# The kinds of cases that need a person, as the page for notices by e-mail lists them.
TOPIC: Final[dict[Topic, str]] = {
    Topic.PAYMENTS: "Payments: a part, too much, too late, no clear answer, or a withdrawal",
    Topic.WALLET: "Your wallet: a provider refuses its key",
    Topic.WEBHOOKS: "Webhooks: an endpoint fails, or is disabled",
    Topic.ENDS: "Keys and budget: an API key in use ends soon, or the refund budget has ended",
}
PACE: Final[dict[Pace, str]] = {
    Pace.AT_ONCE: "Within five minutes",
    Pace.DAILY: "Once a day, at 07:00 UTC, if there is something new",
}
# The texts of each case that needs a person, and of its remedy.
NEED: Final[dict[Case, tuple[str, str]]] = {
    Case.PARTIAL_PAYMENT: (
        "Only a part of the money has arrived:",
        "Accept it as paid, or give the session up. Do not deliver before.",
    ),
    Case.UNDECIDED: (
        "A wallet provider gives no clear answer:",
        "Look up the incoming payment in your own wallet, and trust what it shows.",
    ),
    Case.LATE_PAYMENT: (
        "Money arrived after the session had ended:",
        "Send it back, or deliver, as you agree with your customer. Then mark it as dealt with.",
    ),
    Case.OVERPAID: (
        "More money has arrived than was asked for:",
        "Send the rest back, as you agree with your customer. Then mark it as dealt with.",
    ),
    Case.WITHDRAWAL: (
        "A customer has withdrawn from their purchase:",
        "Refund it within 14 days, or answer your customer and mark the withdrawal as answered.",
    ),
    Case.WALLET_KEY: (
        "A wallet provider has refused your wallet's key, and no price could be requested since "
        "then:",
        "Check your wallet's settings. If the key is missing there, register it again, or create a "
        "new key and ask your operator to replace it here (checkout setup --replace-key). If the "
        "key is there, or if this service has created it, the provider could not read it.",
    ),
    Case.ENDPOINT_SET: (
        "In the last three days, somebody else has set an address that webhooks go to:",
        "The audit log shows who did it. If you do not know the address, remove the endpoint, and "
        "revoke the key or member that set it.",
    ),
    Case.ENDPOINT_DISABLED: (
        "A webhook endpoint is disabled, because your server answered 410 (gone):",
        "It gets nothing until you enable it again.",
    ),
    Case.ENDPOINT_FAILING: (
        "A webhook endpoint fails:",
        "Its last attempts have all failed. Fix your server. This warning ends when a test event "
        "arrives.",
    ),
    Case.BUDGET_OVER: (
        "Your wallet has ended the refund budget, or no longer answers requests about it:",
        "Refunds wait for your approval until you approve a new budget.",
    ),
    Case.KEY_ENDS: (
        "An API key that your server uses ends soon:",
        "Put a newer key into your server before this one ends.",
    ),
}
# The same cases on the banner of each page: the text, and the text of its link. {} stands for the
# name of the case (banner.named).
NEED_NOW: Final[dict[Case, tuple[str, str]]] = {
    Case.PARTIAL_PAYMENT: ("Only {} arrived", "decide"),
    Case.UNDECIDED: ("A wallet gives no clear answer about {}", "look it up"),
    Case.LATE_PAYMENT: ("Money arrived late for {}", "send it back or deliver"),
    Case.OVERPAID: ("Too much money arrived for {}", "send the rest back"),
    Case.WITHDRAWAL: ("A customer withdrew from {}", "refund or answer"),
    Case.WALLET_KEY: ("A wallet provider has refused your wallet's key", "see what to do"),
    Case.ENDPOINT_SET: ("Webhooks go to the new address {}", "check it"),
    Case.ENDPOINT_DISABLED: ("The webhook endpoint {} is disabled", "enable it"),
    Case.ENDPOINT_FAILING: ("The webhook endpoint {} fails", "look into it"),
    Case.BUDGET_OVER: ("Your refund budget is over", "approve it again"),
    Case.KEY_ENDS: ("The API key {} ends soon", "replace it"),
}
# The text for a completed session that has received more than was asked for.
OVERPAID: Final = (
    "More money has arrived than was asked for: {received} of {asked}.",
    "The session is paid, so deliver the goods. Send the rest back, from your wallet to your "
    "customer's, as you agree with them. Nothing is sent back automatically.",
)
# The text for the flag UNDECIDED on a session that has already ended.
UNACCOUNTED: Final = (
    "Your wallet provider has given no clear answer for a week.",
    "So it is not certain how much money this ended session has received. Look up the incoming "
    "payment (below) in your own wallet, and trust what it shows. We do not ask the provider "
    "again.",
)

# The texts about a new merchant's wallet and key, by first_steps.State.
WALLET_STATE: Final[Mapping[str, str]] = {
    "fine": "Your wallet answers.",
    "wrong": "There is no wallet at this address, or its currency has changed. Ask your operator.",
    "unknown": "Your wallet provider did not answer just now. Reload the page to try again.",
}
KEY_STATE: Final[Mapping[str, str]] = {
    "fine": "Your wallet lists this key, and it is the one that this service uses.",
    "wrong": "Your wallet does not list this key. Register it again in your wallet's settings, or "
    "ask your operator to replace it here (checkout setup --replace-key).",
    "unknown": "The key could not be checked just now.",
}
SERVICE_KEY_STATE: Final[Mapping[str, str]] = {
    "fine": "This service has created the key for you. Wallets find it at an address of this "
    "service.",
    "wrong": "This service has created the key for you, but it is missing at the address where "
    "wallets look for it. Tell your operator, because no wallet can verify your requests.",
    "unknown": "This service has created the key for you, but we could not read it just now in the "
    "way that wallets do. If this continues, tell your operator.",
}

DELIVERY: Final[dict[EventStatus, str]] = {
    EventStatus.PENDING: "Not delivered yet",
    EventStatus.DELIVERED: "Delivered",
    EventStatus.EXHAUSTED: "Failed",
}
NOT_SENT: Final = "Not sent"  # no endpoint requested the event, so this is not a failure
FORMAT: Final[Mapping[Format, str]] = {
    Format.NATIVE: "Seven fields of the session",
    Format.STRIPE: "The format of Stripe's libraries",
}
FORM_SAMPLES: Final[Mapping[Format, str]] = {
    Format.NATIVE: '{"id": "cs_…", "status": "completed", "amount_total": 2000, "currency": "usd", '
    '"metadata": {"order": "42"}, "outgoing_payment": "https://…", "customer_wallet": "https://…"}',
    Format.STRIPE: '{"id": "evt_…", "object": "event", "type": "checkout.session.completed", '
    '"data": {"object": {"id": "cs_…", "payment_status": "paid", "metadata": {"order": "42"}}}}',
}
GIVEN_UP: Final[dict[GivenUp, str]] = {
    GivenUp.ATTEMPTS: "every attempt failed",
    GivenUp.GONE: "the endpoint responded 410 (gone)",
    GivenUp.DISABLED: "the endpoint was disabled",
    GivenUp.NO_ENDPOINT: "the webhook URL was not set, or was removed",
    GivenUp.NOT_WANTED: "this endpoint did not ask for such events",
}

# The choices of how many seconds a replaced key or secret stays valid. The first is the default.
OVERLAPS: Final[dict[str, str]] = {
    "86400": "1 day",
    "3600": "1 hour",
    "259200": "3 days",
    "604800": "7 days",
    "0": "No overlap: end the old one now",
}
