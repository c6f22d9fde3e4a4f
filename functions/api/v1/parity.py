"""A table of all parameters of /v1: each is accepted, ignored for a reason, or refused.

The table determines how parameters are parsed and refused. The OpenAPI document and the table in
docs/stripe.md are generated from it. A parameter that would change the amount is never ignored. In
a path, `[]` stands for an index and `[*]` for any name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Does(StrEnum):
    """What the API does with a parameter."""

    TAKEN = "taken"
    IGNORED = "ignored"
    REFUSED = "refused"


class ParameterKind(StrEnum):
    """The type of a value."""

    TEXT = "string"
    INTEGER = "integer"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A row of the table. An ignored or refused row covers all parameters that begin with `path`.

    `text` describes the parameter's effect, or why it is ignored or refused. If `only` lists
    values, any other value is refused. If `unsets` is true, an empty value removes the stored
    value.
    """

    path: str
    does: Does
    text: str
    kind: ParameterKind = ParameterKind.TEXT
    only: tuple[str, ...] = ()
    unsets: bool = False


def _taken(path: str, text: str, kind: ParameterKind = ParameterKind.TEXT, *only: str) -> Parameter:
    return Parameter(path, Does.TAKEN, text, kind, only)


def _ignored(path: str, text: str, *only: str) -> Parameter:
    return Parameter(path, Does.IGNORED, text, only=only)


def _refused(path: str, text: str) -> Parameter:
    return Parameter(path, Does.REFUSED, text)


_ONE_TIME: Final = "There are one-time payments only."
_NO_TAX: Final = "No tax is calculated here: include the tax in the prices."
_NO_CUSTOMER: Final = "There are no customer records."
_NO_CONNECT: Final = "The money goes to one wallet, without fees or transfers."
_NO_SHIPPING: Final = "Shipping has no price of its own here: put it into a line item."
_NO_INVOICE: Final = "There are no invoices."
_NO_TAX_ID: Final = "The page asks for no tax number; ask with `custom_fields`."
_NO_BUSINESS: Final = "The page asks for no business name; ask with `custom_fields`."
_NO_CONSENT: Final = "The page asks for no consent."
_NO_DEFAULT: Final = "The page fills in no answer: customers give their own."
_ALWAYS_WALLET: Final = "Customers always pay from an Open Payments wallet, whatever you list here."
_HOSTED: Final = "There is the hosted page only."
_LOOK: Final = "The look of the page is set in the dashboard."
_TEXT_LOST: Final = "The page would not show it."

EXPAND: Final = _taken("expand[]", "Objects to be included in the answer.")

CREATE_SESSION: Final = (
    _taken("mode", "Only `payment`.", ParameterKind.TEXT, "payment"),
    _taken("success_url", "Required. The page to which the customer goes after paying."),
    _taken("cancel_url", "The page for leaving without paying; by default the shop's front page."),
    _taken(
        "client_reference_id",
        "Returned; up to 200 characters. Customers see it as the order number.",
    ),
    _taken(
        "customer_email",
        "An address. Returned; the page then does not ask for it. No mail is sent.",
    ),
    _taken("currency", "Must be that of the line items."),
    _taken("expires_at", "Must be 5 minutes to 24 hours in the future.", ParameterKind.INTEGER),
    _taken("metadata[*]", "Returned; 50 keys of 40 characters, values of 500."),
    _taken("submit_type", "Returned. The button's text does not change."),
    _taken("locale", "A language of the page; `auto` and any other leave it to the browser."),
    EXPAND,
    _taken("line_items[][quantity]", "Required, 1 to 1 000 000.", ParameterKind.INTEGER),
    _taken("line_items[][price_data][currency]", "Required. The currency of your wallet."),
    _taken("line_items[][price_data][unit_amount]", "In Stripe's units.", ParameterKind.INTEGER),
    _taken("line_items[][price_data][unit_amount_decimal]", "Accepted if it is a whole number."),
    _taken(
        "line_items[][price_data][product_data][name]",
        "Required; up to 5000 characters, of which pages show 200.",
    ),
    _taken(
        "line_items[][price_data][product_data][description]",
        "Up to 40 000 characters, of which pages show 1000.",
    ),
    _taken(
        "line_items[][price_data][product_data][images][]",
        "The page shows the first picture whose URL is https.",
    ),
    _taken("line_items[][price_data][product_data][metadata][*]", "Returned with the product."),
    _taken("line_items[][metadata][*]", "Returned with the line item."),
    _ignored("line_items[][price_data][product_data][tax_code]", "There is no tax."),
    _ignored("line_items[][price_data][product_data][tax_details]", "There is no tax."),
    _ignored("line_items[][price_data][product_data][unit_label]", "The page shows no units."),
    _ignored("line_items[][price_data][tax_behavior]", "There is no tax to include or to add."),
    _refused("line_items[][price_data][product]", "There is no catalog; send `product_data`."),
    _refused("line_items[][price_data][recurring]", _ONE_TIME),
    _refused("line_items[][price]", "There is no catalog; send `price_data`."),
    _ignored("line_items[][adjustable_quantity][enabled]", "Quantities are fixed.", "false"),
    _refused("line_items[][adjustable_quantity]", "Quantities are fixed."),
    _refused("line_items[][tax_rates]", _NO_TAX),
    _refused("line_items[][dynamic_tax_rates]", _NO_TAX),
    _taken(
        "shipping_address_collection[allowed_countries][]",
        "The page asks for a shipping address in these countries, with the name.",
    ),
    _taken(
        "billing_address_collection",
        "`required`: the page asks for it, with the name. `auto`: it does not.",
        ParameterKind.TEXT,
        "auto",
        "required",
    ),
    _taken("phone_number_collection[enabled]", "The page asks for it.", ParameterKind.BOOLEAN),
    _taken("name_collection[individual][enabled]", "The page asks for it.", ParameterKind.BOOLEAN),
    _taken(
        "name_collection[individual][optional]",
        "Customers may leave it out.",
        ParameterKind.BOOLEAN,
    ),
    _taken("custom_fields[][key]", "Required; 1 to 200 letters and digits. Returned."),
    _taken(
        "custom_fields[][type]",
        "Required. The answer: a choice, digits, or a text.",
        ParameterKind.TEXT,
        "dropdown",
        "numeric",
        "text",
    ),
    _taken("custom_fields[][label][type]", "Required.", ParameterKind.TEXT, "custom"),
    _taken("custom_fields[][label][custom]", "Required; up to 100 characters."),
    _taken("custom_fields[][optional]", "Customers may leave it out.", ParameterKind.BOOLEAN),
    _taken("custom_fields[][dropdown][options][][label]", "Required; up to 100 characters."),
    _taken(
        "custom_fields[][dropdown][options][][value]",
        "Required; up to 100 letters and digits. Returned as the answer.",
    ),
    *(
        _taken(f"custom_fields[][{kind}][{bound}_length]", f"{low} to 255.", ParameterKind.INTEGER)
        for kind in ("numeric", "text")
        for bound, low in (("minimum", 0), ("maximum", 1))
    ),
    *(
        _ignored(f"custom_fields[][{kind}][default_value]", _NO_DEFAULT)
        for kind in ("dropdown", "numeric", "text")
    ),
    _taken("payment_intent_data[metadata][*]", "Returned with the expanded `payment_intent`."),
    _taken("payment_intent_data[description]", "Returned with the expanded `payment_intent`."),
    _ignored(
        "payment_intent_data[capture_method]",
        "Payments are captured at once.",
        "automatic",
        "automatic_async",
    ),
    _ignored("payment_intent_data[receipt_email]", "Customers ask for a receipt themselves."),
    _ignored("payment_intent_data[statement_descriptor]", "Wallets show the merchant's own name."),
    _ignored("payment_intent_data[statement_descriptor_suffix]", "As above."),
    _ignored("payment_intent_data[shipping]", "It is for card fraud checks; nothing reads it."),
    _refused("payment_intent_data[application_fee_amount]", _NO_CONNECT),
    _refused("payment_intent_data[on_behalf_of]", _NO_CONNECT),
    _refused("payment_intent_data[transfer_data]", _NO_CONNECT),
    _refused("payment_intent_data[transfer_group]", _NO_CONNECT),
    _refused("payment_intent_data[setup_future_usage]", "Wallets are not saved."),
    _ignored("payment_method_types[]", _ALWAYS_WALLET),
    _ignored("allowed_payment_method_types[]", _ALWAYS_WALLET),
    _ignored("excluded_payment_method_types[]", _ALWAYS_WALLET),
    _ignored("payment_method_configuration", _ALWAYS_WALLET),
    _ignored("payment_method_collection", "Every session has an amount to pay."),
    _ignored("payment_method_data", "Wallets are not saved."),
    _ignored("payment_method_options[*][setup_future_usage]", "Wallets are not saved.", "none"),
    _ignored(
        "payment_method_options[*][capture_method]", "Payments are captured at once.", "automatic"
    ),
    _ignored("payment_method_options", "There are no such payment methods."),
    _ignored("wallet_options", "It is about Stripe's own wallet."),
    _ignored("saved_payment_method_options", "Wallets are not saved."),
    _ignored("automatic_tax[enabled]", _NO_TAX, "false"),
    _refused("automatic_tax", _NO_TAX),
    _ignored("tax_id_collection[enabled]", _NO_TAX_ID, "false"),
    _ignored("tax_id_collection[required]", _NO_TAX_ID, "never"),
    _refused("tax_id_collection", _NO_TAX_ID),
    _ignored("managed_payments[enabled]", "You are the merchant of record.", "false"),
    _refused("managed_payments", "You are the merchant of record."),
    _ignored("adaptive_pricing", "Customers always pay in their wallet's own currency."),
    _ignored("allow_promotion_codes", "There are no discounts.", "false"),
    _refused("discounts", "There are no discounts: send the reduced prices."),
    _refused("optional_items", "The page sells what the line items say."),
    _refused("shipping_options", _NO_SHIPPING),
    _refused("permissions", _HOSTED),
    _ignored("name_collection[business][enabled]", _NO_BUSINESS, "false"),
    _refused("name_collection[business]", _NO_BUSINESS),
    _ignored("consent_collection[promotions]", _NO_CONSENT, "none"),
    _ignored("consent_collection[terms_of_service]", _NO_CONSENT, "none"),
    _refused("consent_collection", _NO_CONSENT),
    _refused("custom_text", _TEXT_LOST),
    _ignored("branding_settings", _LOOK),
    _refused("customer", _NO_CUSTOMER),
    _refused("customer_account", _NO_CUSTOMER),
    _refused("customer_update", _NO_CUSTOMER),
    _ignored("customer_creation", _NO_CUSTOMER, "if_required"),
    _ignored("invoice_creation[enabled]", _NO_INVOICE, "false"),
    _refused("invoice_creation", _NO_INVOICE),
    _ignored(
        "after_expiration[recovery][enabled]", "An expired session cannot be recovered.", "false"
    ),
    _refused("after_expiration", "An expired session cannot be recovered."),
    _ignored("origin_context", "The page is the same everywhere."),
    _ignored("integration_identifier", "It is for Stripe's own statistics."),
    _ignored("ui_mode", _HOSTED, "hosted", "hosted_page"),
    _refused("return_url", _HOSTED),
    _refused("redirect_on_completion", _HOSTED),
    _refused("setup_intent_data", _ONE_TIME),
    _refused("subscription_data", _ONE_TIME),
)

_PAGE: Final = (
    _taken("limit", "1 to 100; the default is 10.", ParameterKind.INTEGER),
    _taken("starting_after", "The page begins after the object with this id."),
    _taken("ending_before", "The page ends before the object with this id."),
)
_CREATED: Final = tuple(
    _taken(f"created{sign}", "Unix seconds.", ParameterKind.INTEGER)
    for sign in ("", "[gt]", "[gte]", "[lt]", "[lte]")
)
LIST_SESSIONS: Final = (
    *_PAGE,
    *_CREATED,
    _taken("status", "Only these.", ParameterKind.TEXT, "open", "complete", "expired"),
    _taken("payment_intent", "Only the session of this payment."),
    _taken("expand[]", "Each is written `data.…`."),
    _refused("customer", _NO_CUSTOMER),
    _refused("customer_account", _NO_CUSTOMER),
    _refused(
        "customer_details",
        "The dashboard finds sessions by their mail address; this list does not.",
    ),
    _refused("payment_link", "There are no payment links."),
    _refused("subscription", _ONE_TIME),
)
LIST_PAYMENTS: Final = (
    *_PAGE,
    *_CREATED,
    _taken("expand[]", "`data.latest_charge`."),
    _refused("customer", _NO_CUSTOMER),
    _refused("customer_account", _NO_CUSTOMER),
)
LIST_CHARGES: Final = (
    *_PAGE,
    _taken("payment_intent", "Only the charge of this payment."),
    *_CREATED,  # filters by the charges' times, but the list is in the order of the sessions
    _taken("expand[]", "`data.payment_intent`."),
    _refused("customer", _NO_CUSTOMER),
    _refused("transfer_group", _NO_CONNECT),
)
ONE: Final = (EXPAND,)
LINE_ITEMS: Final = (*_PAGE, EXPAND)
LIST_EVENTS: Final = (
    *_PAGE,
    *_CREATED,
    _taken("type", "A type, or `checkout.session.*`."),
    _taken("types[]", "Up to 20 types."),
    _taken("delivery_success", "Whether they were delivered.", ParameterKind.BOOLEAN),
    EXPAND,
)
_NEW_METADATA: Final = (
    _taken("metadata[*]", "Returned; 50 keys of 40 characters, values of 500."),
    _taken("metadata", "Only an empty value is accepted.", ParameterKind.TEXT, ""),
)
CREATE_REFUND: Final = (
    _taken("payment_intent", "The payment; or send its `charge`."),
    _taken("charge", "The charge of the payment."),
    _taken(
        "amount", "In Stripe's units. If absent, everything that is left.", ParameterKind.INTEGER
    ),
    _taken(
        "reason",
        "Returned.",
        ParameterKind.TEXT,
        "duplicate",
        "fraudulent",
        "requested_by_customer",
    ),
    *_NEW_METADATA,
    EXPAND,
    _ignored("instructions_email", "No mail is sent; the customer's wallet shows the money."),
    _ignored("refund_application_fee", _NO_CONNECT, "false"),
    _ignored("reverse_transfer", _NO_CONNECT, "false"),
    _refused("currency", "A refund is in the currency of its payment."),
    _refused("customer", _NO_CUSTOMER),
    _refused("origin", _NO_CUSTOMER),
)
LIST_REFUNDS: Final = (
    _taken("limit", "1 to 100; the default is 10.", ParameterKind.INTEGER),
    _taken("starting_after", "The page begins after the refund with this id."),
    _taken("payment_intent", "All refunds of this payment."),
    _taken("charge", "All refunds of this charge."),
    EXPAND,
    *_CREATED,
    _refused("ending_before", "Refunds are listed from the newest on."),
)
_METADATA: Final = (
    _taken("metadata[*]", "Keys are changed or added; an empty value removes a key."),
    _taken("metadata", "Only empty: it removes all keys.", ParameterKind.TEXT, ""),
)
UPDATE_SESSION: Final = (
    *_METADATA,
    EXPAND,
    _refused("collected_information", "The customer's details cannot be changed."),
    _refused("line_items", "The items cannot be changed: make another session."),
    _refused("shipping_options", _NO_SHIPPING),
)
UPDATE_REFUND: Final = (*_METADATA, EXPAND)
NOTHING: Final[tuple[Parameter, ...]] = ()
LIST_ENDPOINTS: Final = (*_PAGE, EXPAND)
_ENDPOINT: Final = (
    _taken(
        "url",
        "The address that gets the events: https on port 443, at a public host. On a local stage "
        "also http on this machine.",
    ),
    _taken(
        "enabled_events[]",
        "The types that it gets, or `*` for all: Stripe's names, or with the format `native` the "
        "names in /docs#events. Types of Stripe's that never happen here are accepted and ignored.",
    ),
    Parameter(
        "description",
        Does.TAKEN,
        "Returned; up to 500 characters. An empty value removes it.",
        unsets=True,
    ),
    *_NEW_METADATA,
    _taken(
        "format",
        "Ours: `stripe` (the default) or `native`.",
        ParameterKind.TEXT,
        "stripe",
        "native",
    ),
    EXPAND,
)
CREATE_ENDPOINT: Final = (
    *_ENDPOINT,
    _taken(
        "api_version",
        "Returned in the endpoint's events, whose shape is the same for every "
        "version. Can be set only at creation.",
    ),
    _ignored("connect", "There are no connected accounts.", "false"),
)
UPDATE_ENDPOINT: Final = (
    *(row for row in _ENDPOINT if row not in _NEW_METADATA),
    *_METADATA,
    _taken("disabled", "If true, nothing is sent to the endpoint.", ParameterKind.BOOLEAN),
)
