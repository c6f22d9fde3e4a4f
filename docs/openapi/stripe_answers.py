"""The answers of /v1, as models. A field of type None is there for Stripe's clients only.

stripe.py adds those of sessions, payments and charges, which the code that answers lists.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from checkout.answers import Amount, Currency
from checkout.domain.ground.grammar import EVENT_ID, SESSION_ID
from checkout.domain.refund.record import AmountMode, Reason, RefundProblem
from checkout.domain.session.collect import QuestionKind
from checkout.domain.session.record import Status
from checkout.domain.webhooks.record import Format
from docs.openapi.parts import ABSENT, Answer

LIST_MAX: Final = 100

Unix = Annotated[int, Field(ge=0, description="Unix seconds.")]
Money = Annotated[int, Field(ge=0, description="In Stripe's units of the currency.")]
PaymentId = Annotated[str, Field(pattern="^pi_")]
ChargeId = Annotated[str, Field(pattern="^ch_")]
RefundId = Annotated[str, Field(pattern="^re_")]
MethodId = Annotated[str, Field(pattern="^pm_")]
TransactionId = Annotated[str, Field(pattern="^txn_")]
Metadata = dict[str, str]
Country = Annotated[str, Field(pattern="^[A-Z]{2}$")]
Empty = Annotated[list[Any], Field(max_length=0)]


class AutomaticTax(Answer):
    enabled: Literal[False]
    liability: None
    provider: None
    status: None


class CustomText(Answer):
    after_submit: None
    shipping_address: None
    submit: None
    terms_of_service_acceptance: None


class Address(Answer):
    city: str | None
    country: Country
    line1: str | None
    line2: str | None
    """With the district, where addresses have one."""
    postal_code: str | None
    state: str | None


class ShippingDetails(Answer):
    address: Address
    name: str


class CollectedInformation(Answer):
    business_name: None
    individual_name: str | None
    shipping_details: ShippingDetails | None


class ShippingAddressCollection(Answer):
    allowed_countries: list[Country]


class PhoneNumberCollection(Answer):
    enabled: bool


class IndividualName(Answer):
    enabled: Literal[True]
    optional: bool


class NameCollection(Answer):
    individual: IndividualName


class CustomLabel(Answer):
    custom: str
    type: Literal["custom"]


class Option(Answer):
    label: str
    value: str


class Dropdown(Answer):
    default_value: None
    options: list[Option]
    value: str | None
    """The value of the option that the customer chose."""


class Typed(Answer):
    default_value: None
    maximum_length: int | None
    minimum_length: int | None
    value: str | None
    """The text that the customer gave."""


class CustomField(Answer):
    """A question of the shop; one of `dropdown`, `numeric` and `text` has the answer."""

    dropdown: Dropdown = ABSENT
    key: str
    label: CustomLabel
    numeric: Typed = ABSENT
    optional: bool
    text: Typed = ABSENT
    type: QuestionKind


class CustomerDetails(Answer):
    address: Address | None
    """The billing address."""
    business_name: None
    email: str | None
    individual_name: str | None
    name: str | None
    phone: str | None
    tax_exempt: Literal["none"]
    tax_ids: Empty


class TotalDetails(Answer):
    amount_discount: Literal[0]
    amount_shipping: Literal[0]
    amount_tax: Literal[0]


class OpenPayments(Answer):
    """Fields that only this service has."""

    status: Status
    customer_wallet: str | None
    incoming_payment: str | None
    outgoing_payment: str | None
    amount_received: Money | None
    customer_debit: Amount | None


class PaymentError(Answer):
    type: Literal["invalid_request_error"]
    code: str
    """One of Stripe's codes."""
    message: str


class ChargeFacts(Answer):
    """Fields that only this service has."""

    session: Annotated[str, Field(pattern=f"^{SESSION_ID.pattern}$")]


class PaymentFacts(ChargeFacts):
    problem: str | None
    """Why the last attempt failed, in the words of the native API."""


class BillingDetails(Answer):
    address: Address | None
    email: str | None
    name: str | None
    phone: str | None
    tax_id: None


class Shipping(Answer):
    address: Address
    carrier: None
    name: str
    phone: str | None
    tracking_number: None


class BalanceTransaction(Answer):
    """What your wallet received for a charge, or paid for a refund (below 0)."""

    id: TransactionId
    object: Literal["balance_transaction"]
    amount: int
    """In Stripe's units of the currency."""
    available_on: Unix
    balance_type: Literal["payments"]
    created: Unix
    currency: Currency
    description: None
    exchange_rate: None
    fee: Literal[0]
    fee_details: Empty
    net: int
    """The same as `amount`: this service takes no fee."""
    reporting_category: Literal["charge", "refund"]
    source: ChargeId | RefundId | Charge | Refund
    """The id of the charge or the refund; the object if it is expanded."""
    status: Literal["available"]
    type: Literal["charge", "refund"]


class CustomMethod(Answer):
    display_name: Literal["Open Payments"]
    logo: None
    type: Literal["open_payments"]


class PaymentMethod(Answer):
    """The wallet that paid a session. It cannot be charged again."""

    id: MethodId
    object: Literal["payment_method"]
    allow_redisplay: Literal["unspecified"]
    billing_details: BillingDetails
    created: Unix
    custom: CustomMethod
    customer: None
    customer_account: None
    livemode: bool
    metadata: Metadata
    type: Literal["custom"]


class MethodDetails(Answer):
    type: Literal["custom"]


class Charge(Answer):
    """The one charge of a session that was paid, or to which money came late or in part."""

    id: ChargeId
    object: Literal["charge"]
    amount: Money
    amount_captured: Money
    amount_refunded: Money
    """The sum that was sent back, with that of pending refunds."""
    balance_transaction: TransactionId | BalanceTransaction
    """The id of what your wallet received; the object if it is expanded."""
    billing_details: BillingDetails
    captured: Literal[True]
    created: Unix
    currency: Currency
    description: str | None
    disputed: Literal[False]
    livemode: bool
    metadata: Metadata
    open_payments: ChargeFacts
    paid: Literal[True]
    payment_intent: PaymentId | PaymentIntent
    """The payment's id; the payment if it is expanded."""
    payment_method: MethodId
    payment_method_details: MethodDetails
    receipt_url: str | None
    """The page of the paid session, which shows the receipt."""
    refunded: bool
    shipping: Shipping | None
    status: Literal["succeeded"]


class PaymentIntent(Answer):
    """The payment of a session: made, under way, to be tried again, or given up."""

    id: Annotated[str, Field(pattern="^pi_")]
    object: Literal["payment_intent"]
    amount: Money
    amount_capturable: Literal[0]
    amount_received: Money
    canceled_at: Unix | None
    cancellation_reason: str | None
    """`abandoned` if the session ended without it."""
    capture_method: Literal["automatic"]
    confirmation_method: Literal["automatic"]
    created: Unix
    currency: Currency
    description: str | None
    last_payment_error: PaymentError | None
    latest_charge: str | Charge | None
    """The id of the charge of a payment that was made; the charge if it is expanded."""
    livemode: bool
    metadata: Metadata
    open_payments: PaymentFacts
    payment_method: MethodId | PaymentMethod | None
    """The id of the wallet that paid; the object if it is expanded."""
    payment_method_types: list[Literal["open_payments"]]
    shipping: Shipping | None
    status: Literal[
        "succeeded", "canceled", "processing", "requires_action", "requires_payment_method"
    ]


class Product(Answer):
    id: Annotated[str, Field(pattern="^prod_")]
    object: Literal["product"]
    active: Literal[False]
    created: Unix
    default_price: None
    description: str | None
    images: list[str]
    livemode: bool
    marketing_features: Empty
    metadata: Metadata
    name: str
    package_dimensions: None
    shippable: None
    tax_details: None
    type: Literal["service"]
    updated: Unix
    url: None


class Price(Answer):
    id: Annotated[str, Field(pattern="^price_")]
    object: Literal["price"]
    active: Literal[False]
    billing_scheme: Literal["per_unit"]
    created: Unix
    currency: Currency
    custom_unit_amount: None
    livemode: bool
    lookup_key: None
    metadata: Metadata
    nickname: None
    product: str | Product
    """The product's id; the product if it is expanded."""
    recurring: None
    tax_behavior: Literal["unspecified"]
    tiers_mode: None
    transform_quantity: None
    type: Literal["one_time"]
    unit_amount: Money
    unit_amount_decimal: str


class LineItem(Answer):
    id: Annotated[str, Field(pattern="^li_")]
    object: Literal["item"]
    adjustable_quantity: None
    amount_discount: Literal[0]
    amount_subtotal: Money
    amount_tax: Literal[0]
    amount_total: Money
    currency: Currency
    description: str
    metadata: Metadata
    price: Price
    quantity: Annotated[int, Field(ge=1)]


class Further(Answer):
    """The id with which an empty page goes on."""

    starting_after: str = ABSENT
    ending_before: str = ABSENT


class _List(Answer):
    object: Literal["list"]
    url: str
    has_more: bool
    open_payments: Further = ABSENT
    """On an empty page of a list that goes on."""


class LineItemList(_List):
    data: Annotated[list[LineItem], Field(max_length=LIST_MAX)]


class PriceList(_List):
    """Nothing: there is no catalog."""

    data: Annotated[list[Price], Field(max_length=0)]


class ProductList(_List):
    """Nothing: there is no catalog."""

    data: Annotated[list[Product], Field(max_length=0)]


class Session(Answer):
    """A checkout session."""

    id: Annotated[str, Field(pattern=f"^{SESSION_ID.pattern}$")]
    object: Literal["checkout.session"]
    amount_subtotal: Money
    amount_total: Money
    automatic_tax: AutomaticTax
    billing_address_collection: Literal["auto", "required"] | None
    cancel_url: str | None
    client_reference_id: str | None
    collected_information: CollectedInformation | None
    created: Unix
    currency: Currency
    custom_fields: list[CustomField]
    custom_text: CustomText
    customer_details: CustomerDetails | None
    customer_email: str | None
    discounts: Empty
    expires_at: Unix
    line_items: LineItemList = ABSENT
    """If it is expanded."""
    livemode: bool
    locale: str | None
    metadata: Metadata
    mode: Literal["payment"]
    name_collection: NameCollection = ABSENT
    """If the page asks for a name of its own."""
    open_payments: OpenPayments
    payment_intent: str | PaymentIntent | None
    """The id of the payment that was made; the payment if it is expanded."""
    payment_method_collection: Literal["if_required"]
    payment_method_types: list[Literal["open_payments"]]
    payment_status: Literal["paid", "unpaid"]
    phone_number_collection: PhoneNumberCollection
    shipping_address_collection: ShippingAddressCollection | None
    shipping_details: Shipping | None
    """For clients of before 2025; `collected_information` has it, too."""
    shipping_options: Empty
    status: Literal["open", "complete", "expired"]
    submit_type: str | None
    success_url: str
    total_details: TotalDetails
    ui_mode: Literal["hosted_page"]
    url: str | None
    """The customer's page, while the session is open."""


class SessionList(_List):
    data: Annotated[list[Session], Field(max_length=LIST_MAX)]


class PaymentList(_List):
    data: Annotated[list[PaymentIntent], Field(max_length=LIST_MAX)]


class ChargeList(_List):
    data: Annotated[list[Charge], Field(max_length=LIST_MAX)]


class RefundFacts(Answer):
    """Fields that only this service has."""

    session: str
    pending_reason: Literal["needs_approval", "processing"] | None
    approval_url: str | None
    """The page on which the merchant approves the refund, while it waits for that."""
    amount_mode: AmountMode | None
    paid_elsewhere: str | None
    """How the merchant has paid the customer back by other means; otherwise null."""
    amount_sent: Annotated[int, Field(ge=0)]
    arrival_confirmed: bool | None
    cost: Amount | None
    customer_receives: Amount | None
    customer_wallet: str | None
    outgoing_payment: str | None
    failure_reason: RefundProblem | None


class Refund(Answer):
    id: RefundId
    object: Literal["refund"]
    amount: Money
    balance_transaction: TransactionId | BalanceTransaction | None
    """The id of what your wallet has paid, once it has; the object if it is expanded."""
    charge: ChargeId | Charge
    """The charge's id; the charge if it is expanded."""
    created: Unix
    currency: Currency
    customer: None
    customer_account: None
    failure_reason: Literal["unknown"] = ABSENT
    """If only a part was sent."""
    metadata: Metadata
    open_payments: RefundFacts
    payment_intent: PaymentId | PaymentIntent
    """The payment's id; the payment if it is expanded."""
    payment_method: MethodId | PaymentMethod
    """The id of the wallet that paid; the object if it is expanded."""
    pending_reason: Literal["processing"] = ABSENT
    """While the refund is pending."""
    reason: Reason | None
    receipt_number: None
    source_transfer_reversal: None
    status: Literal["pending", "succeeded", "failed", "canceled"]
    transfer_reversal: None


class RefundList(_List):
    data: Annotated[list[Refund], Field(max_length=LIST_MAX)]


class Subject(Answer):
    """The subject of an event that has no session, such as a ping."""

    id: str
    object: str


class RefundBudget(Answer):
    """The refund budget, in events that release 0.1.0 has stored."""

    id: Annotated[str, Field(pattern="^man_")]
    object: Literal["refund_budget"]
    status: str
    amount: int | None
    currency: str | None = ABSENT
    interval: Literal["month"] = ABSENT
    spent: int | None = ABSENT
    left: int | None = ABSENT
    renews_at: str | None = ABSENT
    requested_amount: int | None = ABSENT
    approval_url: str | None = ABSENT
    created_at: str = ABSENT
    ended_at: str | None = ABSENT


class EventData(Answer):
    object: Session | PaymentIntent | Charge | Refund | RefundBudget | Subject


class EventRequest(Answer):
    id: None
    idempotency_key: None


class Event(Answer):
    id: Annotated[str, Field(pattern=f"^{EVENT_ID.pattern}$")]
    object: Literal["event"]
    api_version: str
    created: Unix
    data: EventData
    livemode: bool
    pending_webhooks: Annotated[int, Field(ge=0)]
    request: EventRequest
    type: str


class EventList(_List):
    data: Annotated[list[Event], Field(max_length=LIST_MAX)]


class EndpointFacts(Answer):
    """Fields that only this service has."""

    format: Format


class Endpoint(Answer):
    id: Annotated[str, Field(pattern="^we_")]
    object: Literal["webhook_endpoint"]
    api_version: str
    application: None
    created: Unix
    description: str | None
    enabled_events: list[str]
    livemode: bool
    metadata: Metadata
    open_payments: EndpointFacts
    secret: str = ABSENT
    """In the answer to the creation only."""
    status: Literal["enabled", "disabled"]
    url: str


class EndpointList(_List):
    data: Annotated[list[Endpoint], Field(max_length=LIST_MAX)]


class Deleted(Answer):
    id: str
    object: Literal["webhook_endpoint"]
    deleted: Literal[True]


class BusinessProfile(Answer):
    annual_revenue: None
    estimated_worker_count: None
    mcc: None
    minority_owned_business_designation: None
    name: str
    product_description: None
    specified_commercial_transactions_act_url: None
    support_address: None
    support_email: str | None
    support_phone: None
    support_url: str | None
    url: str | None


class Account(Answer):
    """The merchant of the key."""

    id: Annotated[str, Field(pattern="^acct_")]
    object: Literal["account"]
    business_profile: BusinessProfile
    business_type: None
    capabilities: Annotated[dict[str, str], Field(max_length=0)]
    charges_enabled: bool
    """False while the merchant is suspended."""
    created: Unix
    default_currency: Currency
    details_submitted: Literal[True]
    email: None
    metadata: Metadata
    payouts_enabled: bool
    settings: None
    type: Literal["standard"]


class AccountList(_List):
    """Nothing: there are no connected accounts."""

    data: Annotated[list[Account], Field(max_length=0)]


class Held(Answer):
    amount: Literal[0]
    currency: Currency
    source_types: Annotated[dict[str, int], Field(max_length=0)]


class Balance(Answer):
    """Nothing: no money is held here."""

    object: Literal["balance"]
    available: list[Held]
    pending: list[Held]
    livemode: bool
