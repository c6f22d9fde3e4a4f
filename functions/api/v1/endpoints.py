"""The routes of /v1/webhook_endpoints, with which a merchant manages webhook endpoints.

The function `dashboard` serves these routes, because a new signing secret is encrypted with a key
that the function `api` cannot use. A response that contains a secret is encrypted before it is
stored for repeated requests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from fastapi import APIRouter, Response

from api import http
from api.v1 import parity
from api.v1.forms import Parsed, parsed
from api.v1.http import Body, Call, Called, Managing, Query, answered, listed, shown
from api.v1.sessions import bounded, bounded_metadata, merged_metadata, page
from checkout.domain.ground.errors import ParameterInvalid, ParameterMissing, ResourceMissing
from checkout.domain.merchant.record import ApiKey
from checkout.domain.stripe.objects import API_VERSION, livemode, unix
from checkout.domain.webhooks.event_types import ALWAYS, BESIDE, OPTIONAL, PING, stripe_name
from checkout.domain.webhooks.record import Endpoint, Format
from checkout.flows import merchants
from checkout.flows.idempotency import Reserve, json_text
from checkout.flows.webhooks import endpoints
from checkout.flows.webhooks.endpoints import Configured
from checkout.services import DashboardServices
from checkout.web import like

ENDPOINTS: Final = "/v1/webhook_endpoints"
DESCRIPTION_MAX: Final = 500  # characters
_VERSION: Final = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}(?:\.[a-z_]{1,30})?")

Act = Callable[[Reserve[Configured] | None], Configured]

router = APIRouter(prefix=ENDPOINTS)


@router.get("")
async def list_endpoints(services: Managing, call: Called, query: Query) -> Response:
    given = parsed(query, parity.LIST_ENDPOINTS)
    newest = reversed(merchants.get(services.merchants, call.key.merchant).endpoints)
    data, more = page([endpoint_object(services, each) for each in newest], given.values)
    return listed(call, data, more=more)


@router.post("")
async def create(services: Managing, call: Called, body: Body) -> Response:
    """Add an endpoint, by default with Stripe's format. Only this response shows the secret."""
    given = parsed(body, parity.CREATE_ENDPOINT)
    for name in ("url", "enabled_events"):
        if name not in given.values:
            raise ParameterMissing("This parameter is required.", param=name)
    form = Format(given.values.get("format", Format.STRIPE))
    fields = _fields(given.values, form) | {"format": form}
    if "api_version" in given.values:
        fields["api_version"] = _version(given.values["api_version"])
    url, wanted = fields.pop("url"), fields.pop("events")

    def act(reserve: Reserve[Configured] | None) -> Configured:
        return endpoints.configure(
            services,
            call.key.merchant,
            url=url,
            events=wanted,
            add=True,
            more=fields,
            by=call.key,
            reserve=reserve,
        )

    return _written(services, call, _told_of(given, form), "create", act)


@router.get("/{identity}")
async def get(services: Managing, call: Called, query: Query, identity: str) -> Response:
    parsed(query, parity.ONE)
    return shown(call, endpoint_object(services, _own(services, call.key, identity)))


@router.post("/{identity}")
async def update(services: Managing, call: Called, body: Body, identity: str) -> Response:
    """Change the fields that are given. Raises ResourceMissing for another merchant's endpoint."""
    given = parsed(body, parity.UPDATE_ENDPOINT)
    form = _form(services, call.key, identity, given)
    fields = _fields(given.values, form)
    if ("description",) in given.unset:
        fields["description"] = None
    if "metadata" in {*given.values, *(path[0] for path in given.unset)}:
        endpoint = _own(services, call.key, identity)
        merged = merged_metadata(given, json.loads(endpoint.metadata_json))
        fields["metadata_json"] = json_text(merged)
    if "disabled" in given.values:
        disabled = given.values["disabled"]
        fields["disabled_at"] = services.clock.now() if disabled else None

    def act(reserve: Reserve[Configured] | None) -> Configured:
        return endpoints.update(
            services, call.key.merchant, fields, endpoint=identity, by=call.key, reserve=reserve
        )

    return _written(services, call, _told_of(given, form), identity, act)


@router.delete("/{identity}")
async def delete(services: Managing, call: Called, query: Query, identity: str) -> Response:
    """Remove an endpoint. Raises ResourceMissing for another merchant's endpoint."""
    parsed(query, parity.NOTHING)
    _own(services, call.key, identity)
    endpoints.remove(services, call.key.merchant, endpoint=identity, by=call.key)
    return shown(call, {"id": identity, "object": "webhook_endpoint", "deleted": True})


def endpoint_object(
    services: DashboardServices, endpoint: Endpoint, secret: str | None = None
) -> dict[str, Any]:
    """Return Stripe's object for the endpoint, with the `secret` if it has just been created."""
    fields = {
        "id": endpoint.id,
        "object": "webhook_endpoint",
        "api_version": endpoint.api_version or API_VERSION,
        "application": None,
        "created": unix(endpoint.created_at),
        "description": endpoint.description,
        "enabled_events": _told(endpoint),
        "livemode": livemode(services.base_url),
        "metadata": json.loads(endpoint.metadata_json),
        "open_payments": {"format": endpoint.format.value},
        "status": "enabled" if endpoint.disabled_at is None else "disabled",
        "url": endpoint.url,
    }
    return fields | ({} if secret is None else {"secret": secret})


def _told(endpoint: Endpoint) -> list[str]:
    """Return the requested event types or, if no request is stored, the types that are sent."""
    return list(endpoint.asked or ()) or list(
        dict.fromkeys(_name(each, endpoint.format) for each in (*ALWAYS, *endpoint.events))
    )


def _name(event_type: str, form: Format) -> str:
    """Return the name that the event type has in this format."""
    return stripe_name(event_type) if form is Format.STRIPE else event_type


def _sent(form: Format) -> dict[str, tuple[str, ...]]:
    """Return all type names of this format, each with the optional event types that it covers."""
    found: dict[str, tuple[str, ...]] = {}
    for each in (*ALWAYS, *OPTIONAL):
        if form is Format.STRIPE or each not in BESIDE:
            name = _name(each, form)
            found[name] = (*found.get(name, ()), *([each] if each in OPTIONAL else ()))
    return found


def _fields(values: dict[str, Any], form: Format) -> dict[str, Any]:
    """Return the values as fields of an endpoint with this format. Raises ParameterInvalid."""
    fields: dict[str, Any] = {}
    if "url" in values:
        fields["url"] = values["url"]
    if "enabled_events" in values:
        fields |= _wanted(values["enabled_events"], form)
    if "description" in values:
        fields["description"] = bounded(values["description"], DESCRIPTION_MAX, "description")
    if "metadata" in values:
        fields["metadata_json"] = json_text(bounded_metadata(values["metadata"], "metadata"))
    if "format" in values:
        fields["format"] = Format(values["format"])
    return fields


def _wanted(types: list[str], form: Format) -> dict[str, tuple[str, ...]]:
    """Return the endpoint's fields for these types. Raises ParameterInvalid for an unknown type.

    The field `asked` has the types as requested. The field `events` has only the optional types
    among them, by the names that the dashboard uses.
    """
    sent = _sent(form)
    for number, each in enumerate(types):
        if each not in STRIPE_EVENTS and each not in sent and each != "*":
            raise ParameterInvalid(
                _no_type(each, form, sorted(sent)), param=f"enabled_events[{number}]"
            )
    chosen = {each for name in types for each in sent.get(name, ())}
    return {
        "events": tuple(each for each in OPTIONAL if "*" in types or each in chosen),
        "asked": tuple(dict.fromkeys(types)),
    }


def _no_type(name: str, form: Format, sent: list[str]) -> str:
    """Return the error message for an unknown type, with the most similar type and all types."""
    if name == PING:
        return "Leave out `ping`: you send it yourself, from the dashboard, to any endpoint."
    if name in (*ALWAYS, *OPTIONAL):
        return f"In Stripe's form this type is called `{stripe_name(name)}`."
    near = like(name, sent)
    return (
        f"There is no such type.{f' Did you mean `{near}`?' if near else ''} In the format "
        f"`{form}`, these are sent: {', '.join(sent)}. Other types of Stripe's can be requested, "
        "but never happen here."
    )


def _form(services: DashboardServices, key: ApiKey, identity: str, given: Parsed) -> Format:
    """Return the format that the endpoint has after this change. It decides how types are named."""
    if "format" in given.values:
        return Format(given.values["format"])
    endpoint = merchants.get(services.merchants, key.merchant).endpoint_of(identity)
    return endpoint.format if endpoint else Format.STRIPE


def _told_of(given: Parsed, form: Format) -> Parsed:
    """Return the parameters, with the event types that are never sent here added to `ignored`."""
    sent = _sent(form)
    never = tuple(
        f"enabled_events[{number}]"
        for number, each in enumerate(given.values.get("enabled_events", ()))
        if each not in sent and each != "*"
    )
    return replace(given, ignored=(*given.ignored, *never))


def _version(given: str) -> str:
    """Return the API version that the events will name. It does not change the events' shape."""
    if not _VERSION.fullmatch(given):
        raise ParameterInvalid("A version is a day, as in 2026-10-28.endive.", param="api_version")
    return given


def _own(services: DashboardServices, key: ApiKey, identity: str) -> Endpoint:
    """Return the endpoint with this id, if the key's merchant owns it. Raises ResourceMissing."""
    endpoint = merchants.get(services.merchants, key.merchant).endpoint_of(identity)
    if endpoint is None:
        raise ResourceMissing("No such webhook endpoint.")
    return endpoint


def _written(
    services: DashboardServices, call: Call, given: Parsed, operation: str, act: Act
) -> Response:
    place = ("idempotency_keys", call.key.merchant, "answer")

    def render(done: Configured) -> str:
        body = json_text(endpoint_object(services, done.endpoint, done.secret))
        return services.vault.seal(body, place=place)

    parameters = [operation, given.given]
    sealed = http.performed(
        services, call.key, call.request, "v1 webhook endpoint", parameters, act, render
    )
    opened = replace(sealed, body=services.vault.open(sealed.body, place=place))
    return answered(call, opened, given)


# The types of Stripe's events. Most of them cannot happen here, but an endpoint can request all of
# them, as platforms with automatic set-up do. The list comes from stripe-python 16.1
# (`WebhookEndpoint.create`, parameter `enabled_events`). Each line contains an object and its
# events.
_TYPES: Final = """
    account: application.authorized application.deauthorized external_account.created
        external_account.deleted external_account.updated updated
    application_fee: created refund.updated refunded
    apps: install.created install.deleted install.updated
    balance: available
    balance_settings: updated
    billing: alert.triggered credit_balance_transaction.created credit_grant.created
        credit_grant.updated meter.created meter.deactivated meter.reactivated meter.updated
    billing_portal: configuration.created configuration.updated session.created
    capability: updated
    cash_balance: funds_available
    charge: captured dispute.closed dispute.created dispute.funds_reinstated
        dispute.funds_withdrawn dispute.updated expired failed pending refund.updated refunded
        succeeded updated
    checkout: session.async_payment_failed session.async_payment_succeeded session.completed
        session.expired
    climate: order.canceled order.created order.delayed order.delivered order.product_substituted
        product.created product.pricing_updated
    coupon: created deleted updated
    credit_note: created updated voided
    customer: created deleted discount.created discount.deleted discount.updated source.created
        source.deleted source.expiring source.updated subscription.created subscription.deleted
        subscription.paused subscription.pending_update_applied
        subscription.pending_update_expired subscription.resumed subscription.trial_will_end
        subscription.updated tax_id.created tax_id.deleted tax_id.updated updated
    customer_cash_balance_transaction: created
    entitlements: active_entitlement_summary.updated
    file: created
    financial_connections: account.account_numbers_updated account.created account.deactivated
        account.disconnected account.expected_deactivation_date_updated account.reactivated
        account.refreshed_balance account.refreshed_ownership account.refreshed_transactions
        account.supported_payment_method_types_updated account.upcoming_account_number_expiry
        account.upcoming_deactivation authorization.expected_deactivation_date_updated
        authorization.upcoming_deactivation
    identity: verification_session.canceled verification_session.created
        verification_session.processing verification_session.redacted
        verification_session.requires_input verification_session.verified
    invoice: created deleted finalization_failed finalized marked_uncollectible overdue overpaid
        paid payment_action_required payment_attempt_required payment_failed payment_succeeded
        sent upcoming updated voided will_be_due
    invoice_payment: paid
    invoiceitem: created deleted
    issuing_authorization: created request updated
    issuing_card: created updated
    issuing_cardholder: created updated
    issuing_dispute: closed created funds_reinstated funds_rescinded submitted updated
    issuing_personalization_design: activated deactivated rejected updated
    issuing_token: created updated
    issuing_transaction: created purchase_details_receipt_updated updated
    mandate: updated
    payment_intent: amount_capturable_updated canceled created partially_funded payment_failed
        processing requires_action succeeded
    payment_link: created updated
    payment_method: attached automatically_updated detached updated
    payout: canceled created failed paid reconciliation_completed updated
    person: created deleted updated
    plan: created deleted updated
    price: created deleted updated
    product: created deleted updated
    promotion_code: created updated
    quote: accepted canceled created finalized
    radar: early_fraud_warning.created early_fraud_warning.updated
    refund: created failed updated
    reporting: report_run.failed report_run.succeeded report_type.updated
    reserve: hold.created hold.updated plan.created plan.disabled plan.expired plan.updated
        release.created
    review: closed opened
    setup_intent: canceled created requires_action setup_failed succeeded
    sigma: scheduled_query_run.created
    source: canceled chargeable failed mandate_notification refund_attributes_required
        transaction.created transaction.updated
    subscription_schedule: aborted canceled completed created expiring released updated
    tax: settings.updated
    tax_rate: created updated
    terminal: reader.action_failed reader.action_succeeded reader.action_updated
    test_helpers: test_clock.advancing test_clock.created test_clock.deleted
        test_clock.internal_failure test_clock.ready
    three_d_secure: authentication.canceled authentication.challenge_started
        authentication.errored authentication.failed authentication.requires_challenge
        authentication.requires_submission authentication.succeeded
    topup: canceled created failed reversed succeeded
    transfer: created reversed updated
    treasury: credit_reversal.created credit_reversal.posted debit_reversal.completed
        debit_reversal.created debit_reversal.initial_credit_granted financial_account.closed
        financial_account.created financial_account.features_status_updated
        inbound_transfer.canceled inbound_transfer.created inbound_transfer.failed
        inbound_transfer.succeeded outbound_payment.canceled outbound_payment.created
        outbound_payment.expected_arrival_date_updated outbound_payment.failed
        outbound_payment.posted outbound_payment.returned
        outbound_payment.tracking_details_updated outbound_transfer.canceled
        outbound_transfer.created outbound_transfer.expected_arrival_date_updated
        outbound_transfer.failed outbound_transfer.posted outbound_transfer.returned
        outbound_transfer.tracking_details_updated received_credit.created received_credit.failed
        received_credit.succeeded received_debit.created
"""


def _read(lines: str) -> frozenset[str]:
    found, about = set(), ""
    for word in lines.split():
        if word.endswith(":"):
            about = word[:-1]
        else:
            found.add(f"{about}.{word}")
    return frozenset(found)


STRIPE_EVENTS: Final = _read(_TYPES)
