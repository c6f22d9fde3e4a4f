"""The merchant as Stripe's `account`, read-only. Software reads it first, to test a connection."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from api.v1 import parity
from api.v1.answers import listed, shown
from api.v1.dependencies import Injected, Key, Query
from api.v1.forms import parsed
from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.merchant.record import Merchant
from checkout.domain.stripe.objects import account_id, unix
from checkout.flows import merchants

router = APIRouter(prefix="/v1")


@router.get("/account")
async def own(services: Injected, key: Key, request: Request, query: Query) -> Response:
    """Return the account of the key."""
    parsed(query, parity.ONE).expands_nothing()
    return shown(request, account_object(merchants.get(services.merchants, key.merchant)))


@router.get("/accounts")
async def connected(services: Injected, key: Key, request: Request, query: Query) -> Response:
    """Return an empty list: there are no connected accounts."""
    parsed(query, parity.LIST_ENDPOINTS).expands_nothing()
    return listed(request, [], more=False)


@router.get("/accounts/{account}")
async def named(
    services: Injected, key: Key, request: Request, query: Query, account: str
) -> Response:
    """Return the key's own account by its id. Raises ResourceMissing for any other."""
    parsed(query, parity.ONE).expands_nothing()
    if account != account_id(key.merchant):
        raise ResourceMissing(f"No such account: '{account[:100]}'", param="account")
    return shown(request, account_object(merchants.get(services.merchants, key.merchant)))


def account_object(merchant: Merchant) -> dict[str, Any]:
    """Return the merchant as `account`. Its country is not known."""
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
