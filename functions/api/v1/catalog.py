"""The routes of /v1 for the items of a session: the `price` and the `product` of a line item.

Both are made of the session that their id names. There is no catalog, so the lists are empty: a
client that reads them all finds nothing to sell again.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from api.v1 import parity
from api.v1.answers import listed, shown
from api.v1.dependencies import Injected, Key, Query
from api.v1.expansions import PRICE, PRODUCT, expandable
from api.v1.forms import parsed
from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.merchant.record import ApiKey
from checkout.domain.stripe.objects import item_of, line_items
from checkout.flows.session import lookup
from checkout.services import Services

router = APIRouter(prefix="/v1")


@router.get("/prices")
async def list_prices(_: Key, request: Request) -> Response:
    """Return an empty list, to which each of Stripe's filters may be applied."""
    return listed(request, [], more=False)


@router.get("/products")
async def list_products(_: Key, request: Request) -> Response:
    """Return an empty list, to which each of Stripe's filters may be applied."""
    return listed(request, [], more=False)


@router.get("/prices/{price_id}")
async def get_price(
    services: Injected, key: Key, request: Request, query: Query, price_id: str
) -> Response:
    given = parsed(query, parity.ONE)
    expandable(given, PRICE)
    price = _price(services, key, "price_", price_id, whole=given.expands("product"))
    return shown(request, price)


@router.get("/products/{product_id}")
async def get_product(
    services: Injected, key: Key, request: Request, query: Query, product_id: str
) -> Response:
    expandable(parsed(query, parity.ONE), PRODUCT)
    return shown(request, _price(services, key, "prod_", product_id, whole=True)["product"])


def _price(services: Services, key: ApiKey, prefix: str, named: str, *, whole: bool) -> Any:
    """Return the price with this id, which is that of a line item, with its `whole` product.

    Raises ResourceMissing, also for another merchant's.
    """
    missing = ResourceMissing(
        f"There is no such object: '{named[:100]}'. Prices and products are those of the line "
        "items of your sessions."
    )
    session_id, place = item_of(named, prefix) or ("", 0)
    try:
        session = lookup.get(services, key, session_id)
    except ResourceMissing:
        raise missing from None
    items = line_items(session, base_url=services.base_url, expand_product=whole)
    if place >= len(items):
        raise missing
    return items[place]["price"]
