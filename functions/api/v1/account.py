"""The routes of /v1 for the merchant's account, and for the prices and products of line items.

Stripe's object `account` describes the merchant. It is read-only; software often reads it first, to
test a connection. The `price` and the `product` of a line item are made from the line item's
session, and their ids contain the session's id. There is no catalog, so the lists of prices and
products are always empty.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from api.v1 import parity
from api.v1.expansions import PRICE, PRODUCT, parsed_for
from api.v1.forms import parsed
from api.v1.http import Call, Called, Query, listed, shown
from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.merchant.record import Merchant
from checkout.domain.stripe.objects import account_id, item_of, line_items, unix
from checkout.flows import merchants
from checkout.flows.session import lookup

router = APIRouter(prefix="/v1")


@router.get("/account")
async def own(call: Called, query: Query) -> Response:
    """Return the account of the merchant whose key was sent."""
    parsed(query, parity.ONE).expands_nothing()
    return shown(call, account_object(merchants.get(call.services.merchants, call.key.merchant)))


@router.get("/accounts")
async def connected(call: Called, query: Query) -> Response:
    """Return an empty list: there are no connected accounts."""
    parsed(query, parity.LIST_ENDPOINTS).expands_nothing()
    return listed(call, [], more=False)


@router.get("/accounts/{account}")
async def named(call: Called, query: Query, account: str) -> Response:
    """Return the key's own account by its id. Raises ResourceMissing for any other id."""
    parsed(query, parity.ONE).expands_nothing()
    if account != account_id(call.key.merchant):
        raise ResourceMissing(f"No such account: '{account[:100]}'", param="account")
    return shown(call, account_object(merchants.get(call.services.merchants, call.key.merchant)))


def account_object(merchant: Merchant) -> dict[str, Any]:
    """Return the merchant as Stripe's `account`, without `country`, which is not stored."""
    contact = merchant.contact or ""
    website = f"https://{merchant.website}" if merchant.website else None
    profile = {
        "annual_revenue": None,
        "estimated_worker_count": None,
        "mcc": None,
        "minority_owned_business_designation": None,
        "name": merchant.name,
        "product_description": None,
        "specified_commercial_transactions_act_url": None,
        "support_address": None,
        "support_email": contact if "@" in contact else None,
        "support_phone": None,
        "support_url": contact if contact.startswith("https://") else None,
        "url": website,
    }
    open_for_sale = merchant.suspended is None
    return {
        "id": account_id(merchant.id),
        "object": "account",
        "business_profile": profile,
        "business_type": None,
        "capabilities": {},
        "charges_enabled": open_for_sale,
        "created": unix(merchant.created_at),
        "default_currency": merchant.asset_code.lower(),
        "details_submitted": True,
        "email": None,
        "metadata": {},
        "payouts_enabled": open_for_sale,
        "settings": None,
        "type": "standard",
    }


@router.get("/prices")
async def list_prices(call: Called) -> Response:
    """Return an empty list. All filters are accepted, because none can change the result."""
    return listed(call, [], more=False)


@router.get("/products")
async def list_products(call: Called) -> Response:
    """Return an empty list. All filters are accepted, because none can change the result."""
    return listed(call, [], more=False)


@router.get("/prices/{price_id}")
async def get_price(call: Called, query: Query, price_id: str) -> Response:
    given = parsed_for(PRICE, query, parity.ONE)
    price = _price(call, "price_", price_id, whole=given.expands("product"))
    return shown(call, price)


@router.get("/products/{product_id}")
async def get_product(call: Called, query: Query, product_id: str) -> Response:
    parsed_for(PRODUCT, query, parity.ONE)
    return shown(call, _price(call, "prod_", product_id, whole=True)["product"])


def _price(call: Call, prefix: str, named: str, *, whole: bool) -> Any:
    """Return the price of the line item to which this id belongs.

    With `whole`, the price contains its product, otherwise the product's id. Raises
    ResourceMissing, also if the line item belongs to another merchant.
    """
    missing = ResourceMissing(
        f"There is no such object: '{named[:100]}'. Prices and products exist only within the line "
        "items of your sessions."
    )
    session_id, place = item_of(named, prefix) or ("", 0)
    try:
        session = lookup.get(call.services, call.key, session_id)
    except ResourceMissing:
        raise missing from None
    items = line_items(session, base_url=call.services.base_url, expand_product=whole)
    if place >= len(items):
        raise missing
    return items[place]["price"]
