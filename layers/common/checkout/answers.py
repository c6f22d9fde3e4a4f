"""The answers of the native API, and the bodies of its webhooks, as types.

The functions that render the answers return these types, and mypy checks them. docs/openapi makes
the schemas of the OpenAPI document from them. No code imports this module at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict  # pydantic needs it on Python 3.11

from checkout.domain.payment.attempt import EndedBy, Outcome
from checkout.domain.refund.record import AmountMode, Reason, RefundProblem
from checkout.domain.session.attempts import KEPT_MAX
from checkout.domain.session.collect import QUESTIONS_MAX
from checkout.domain.session.public import MESSAGES
from checkout.domain.session.record import METADATA_VALUE_MAX, Status
from checkout.flows.session.lists import PAGE_MAX


def _one_of(*values: str) -> Any:
    """Return the metadata of a text field that can have only these values."""
    return Field(json_schema_extra={"enum": list(values)})


EXAMPLE_ID: Final = "cs_3kTMd0wvG8PZx5nNq2LrYb"
EXAMPLE_REFUND: Final = "re_7hTMd0wvG8PZx5nNq2LrYb"
EXAMPLE_EVENT: Final = "evt_8SyRVeQ3sRcDOrR8KCW0Fd"

# The URL as the shop gave it. Browsers allow brackets and non-ASCII letters, which no RFC does, so
# the schema has no format for this URL.
ShopUrl = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=0)]
Currency = Annotated[str, Field(pattern="^[a-z]{3}$")]
SessionId = Annotated[str, Field(pattern="^cs_", examples=[EXAMPLE_ID])]
RefundId = Annotated[str, Field(pattern="^re_", examples=[EXAMPLE_REFUND])]
Url = Annotated[str, WithJsonSchema({"type": "string", "format": "uri", "minLength": 1})]
Time = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Reported = Annotated[str, _one_of("declined", "timed_out")]
RefundStatus = Annotated[str, _one_of("pending", "succeeded", "failed", "canceled")]
PendingReason = Annotated[str, _one_of("needs_approval", "processing")]
EventStatus = Annotated[str, _one_of("completed", "expired", "canceled", "open", "ping")]
Scalar = Annotated[
    str | int | float | bool | None,
    WithJsonSchema(
        {"type": ["string", "number", "boolean", "null"], "maxLength": METADATA_VALUE_MAX}
    ),
]
Code = Annotated[str, _one_of(*sorted(map(str, MESSAGES)))]


# Lists contain the status as text, because pydantic takes twice the time to write an enum. Type
# checkers see the text. At run time it is the enum, from which docs/openapi makes the schema.
if TYPE_CHECKING:
    StatusText = str
else:
    StatusText = Status


class Product(TypedDict):
    name: str
    description: NotRequired[str]
    image: NotRequired[str]


class Price(TypedDict):
    currency: Currency
    product_data: Product
    unit_amount: int


class LineItem(TypedDict):
    """As submitted, with the currency in lowercase and always with a quantity."""

    price_data: Price
    quantity: int


class Amount(TypedDict):
    value: Annotated[str, Field(pattern="^[0-9]+$")]
    asset_code: Annotated[str, Field(examples=["EUR"])]
    asset_scale: Annotated[int, Field(ge=0, le=255)]


class PaymentError(TypedDict):
    code: Code
    message: str
    """For people; may change."""


class Address(TypedDict):
    """An address in the form of its country."""

    country: Annotated[str, Field(pattern="^[A-Z]{2}$")]
    name: str | None
    line1: str | None
    line2: str | None
    district: str | None
    city: str | None
    state: str | None
    postal_code: str | None


class CustomerAnswer(TypedDict):
    """The answer to a question of yours."""

    key: str
    label: str
    value: str
    shown: str
    """The label of the chosen option, or the text."""


class CustomerDetails(TypedDict):
    """The details that the customer has given, as your session or payment link asked for it."""

    email: str | None
    name: str | None
    phone: str | None
    shipping_address: Address | None
    billing_address: Address | None
    answers: Annotated[list[CustomerAnswer], Field(max_length=QUESTIONS_MAX)]


class Session(TypedDict):
    """A checkout session."""

    id: SessionId
    object: Literal["checkout.session"]
    status: StatusText
    """completed, expired and canceled never change again."""
    url: Url
    """The customer's checkout page. Anyone who has it can pay."""
    amount_total: Annotated[int, Field(ge=1)]
    """Sum of unit_amount times quantity, in the smallest unit."""
    currency: Currency
    mode: Literal["payment"]
    line_items: list[LineItem]
    metadata: dict[str, Scalar]
    success_url: ShopUrl
    """With the session's id inserted."""
    cancel_url: ShopUrl
    """With the session's id inserted."""
    customer_wallet: Url | None
    """null until a wallet is submitted."""
    incoming_payment: Url | None
    """The incoming payment at your wallet; null until it is prepared."""
    outgoing_payment: Url | None
    """The payment at the customer's wallet; null until it is made."""
    expires_at: Annotated[Time, Field(examples=["2026-03-02T12:00:00.000Z"])]
    created_at: Time
    completed_at: Time | None
    amount_received: Count | None
    """Amount that arrived in your wallet, in the smallest unit, rounded down; null until it is
    known. It may be above or below amount_total, and can also be set in a session that expired or
    was canceled."""
    client_reference_id: str | None
    """As submitted; null if there was none."""
    customer_debit: Amount | None
    """Price that the customer has paid, in the customer's currency, as quoted; null until a payment
    is made, and if none was quoted."""
    amount_refunded: Count
    """The part of amount_received that was sent back, or that pending refunds hold."""
    customer_details: CustomerDetails | None
    """The details that the customer has given; null until then, and after an erasure. Answers to
    POST requests have null, because they are kept for repeats."""


class PaymentAttempt(TypedDict):
    """One wallet that the customer gave, and the result."""

    object: Literal["payment_attempt"]
    number: Annotated[int, Field(ge=1)]
    """The number of the attempt in this session, beginning at 1."""
    outcome: Outcome | None
    """null while the attempt runs. It never changes after that."""
    ended_by: EndedBy | None
    error: PaymentError | None
    """null unless the attempt failed."""
    reported_by_browser: Reported | None
    """The result that the customer's browser brought back from the wallet. It is not signed, and
    changes nothing."""
    wallet_typed: str | None
    """As the customer entered it, up to 200 characters."""
    customer_wallet: Url | None
    """null until the wallet was found."""
    incoming_payment: Url | None
    """The payment that your wallet expected; attempts may share it."""
    quote: Url | None
    customer_debit: Amount | None
    """Price in the customer's currency, as quoted."""
    quote_expires_at: Time | None
    outgoing_payment: Url | None
    """The payment at the customer's wallet, if one was made."""
    amount_received: Count | None
    """Amount in your wallet at the end of the attempt, in the smallest unit, rounded down; null if
    the wallet was not asked."""
    submitted_at: Time
    wallet_resolved_at: Time | None
    """The wallet was found, and your wallet expects a payment."""
    prepared_at: Time | None
    """The customer saw the price."""
    reported_at: Time | None
    """The browser came back without an approval."""
    approved_at: Time | None
    """The customer came back with an approval that verified."""
    sent_at: Time | None
    """The payment was about to be sent."""
    accepted_at: Time | None
    """The payment was seen at the customer's wallet, or its money."""
    ended_at: Time | None


class Attempts(TypedDict, total=False):
    payment_attempts: Annotated[list[PaymentAttempt], Field(max_length=KEPT_MAX)]
    """One for each wallet that the customer gave, oldest first; the last 20 are kept."""
    last_payment_error: PaymentError | None
    """The reason of the last failed attempt; null if none has failed, and once the session is
    paid."""


class ExpandableSession(Session, Attempts):
    """A checkout session; with `expand=payment_attempts` the last two fields too."""


class PaymentAttemptList(TypedDict):
    object: Literal["list"]
    url: str
    data: Annotated[list[PaymentAttempt], Field(max_length=KEPT_MAX)]
    has_more: Literal[False]
    total_count: Count
    """Includes older attempts that are no longer kept."""
    last_payment_error: PaymentError | None
    """The reason of the last failed attempt; null if none has failed, and once the session is
    paid."""


class SessionList(TypedDict):
    object: Literal["list"]
    url: Literal["/api/checkout/sessions"]
    data: Annotated[list[Session], Field(max_length=PAGE_MAX)]
    has_more: bool
    next_cursor: str | None
    """Opaque; send it as `cursor` in the next request. null on the last page."""


class Refund(TypedDict):
    """Money that goes back to a customer."""

    id: RefundId
    object: Literal["refund"]
    session: SessionId
    status: RefundStatus
    """The last three never change again."""
    pending_reason: PendingReason | None
    """null unless the refund is pending."""
    approval_url: Url | None
    """The page of the dashboard on which you approve the refund, while it waits for that."""
    amount: Annotated[int, Field(ge=1)]
    """The part of the session's amount_received that is refunded, in the smallest unit."""
    currency: Currency
    amount_mode: AmountMode | None
    """The side whose amount is fixed; null if it was paid elsewhere."""
    paid_elsewhere: str | None
    """How you have paid the customer back by other means, without a payment; otherwise null."""
    amount_sent: Count
    """The part of amount that was sent. Of a refund that failed, a part may have been."""
    arrival_confirmed: bool | None
    """Whether the customer's wallet has shown all of it; null while the refund is pending,
    or if it was paid elsewhere."""
    cost: Amount | None
    """The price that your wallet pays, with its fees; null until it was asked for it. Once the
    refund has ended, what it has paid; of a part, as far as the wallets say."""
    customer_receives: Amount | None
    """The amount that the customer's wallet gets; null if that is not known yet."""
    customer_wallet: Url | None
    """null once the customer was erased."""
    outgoing_payment: Url | None
    """The payment at your wallet; null until it was made."""
    reason: Reason | None
    failure_reason: RefundProblem | None
    """The reason why the last approval or payment failed."""
    metadata: dict[str, Scalar]
    created_at: Time
    ended_at: Time | None


class RefundList(TypedDict):
    object: Literal["list"]
    url: Literal["/api/checkout/refunds"]
    data: Annotated[list[Refund], Field(max_length=PAGE_MAX)]
    has_more: bool
    next_cursor: str | None
    """Opaque; send it as `cursor` in the next request. null on the last page."""


class Checks(TypedDict):
    database: Literal["ok", "failing"]


class Health(TypedDict):
    status: Literal["healthy", "unhealthy"]
    uptime: Count
    """Seconds."""
    version: str
    checks: Checks


class SessionFacts(TypedDict):
    id: str
    """The session's id; of a ping, the event's."""
    amount_total: Count
    """Sum of unit_amount times quantity, in the smallest unit."""
    currency: Currency
    metadata: dict[str, Scalar]
    outgoing_payment: Url | None
    """The payment at the customer's wallet; null until it is made."""
    customer_wallet: Url | None
    """null until a wallet is submitted."""


class Event(SessionFacts):
    status: EventStatus


class LatePayment(SessionFacts):
    status: EventStatus
    amount_received: Count


class PartialPayment(SessionFacts):
    status: Annotated[str, WithJsonSchema({"type": "string", "const": "processing"})]
    amount_received: Count
