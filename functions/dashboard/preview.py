"""The customers' page as it would look, made by the code of functions/pay itself, with a purchase
that exists nowhere. Its form leads nowhere, and it has no script.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from fastapi import Request, Response

from checkout.domain.merchant import Merchant
from checkout.domain.session import LineItem, Session, Status
from checkout.open_payments.models import Amount
from checkout.ports.services import DashboardServices
from dashboard.dependencies import Visit
from dashboard.headers import is_preview

_PRICE: Final = 1000  # minor units


def preview(
    services: DashboardServices, request: Request, visit: Visit, merchant: Merchant
) -> Response:
    """In the merchant's language. The page's code is loaded here, because few ask for it."""
    from pay import render
    from pay.language import reader
    from pay.pictures import logo_mark
    from pay.view import shown

    reads = reader(wished=merchant.locale, accepted="", default=None)
    session = _sample(services, merchant)
    seen = shown(session, merchant, reads, base_url=services.base_url, now=session.created_at)
    mark = logo_mark(merchant.logo)
    logo = f"{visit.home}/settings/logo?v={mark}" if mark else None
    is_preview(request)
    return render.page(
        request,
        reads,
        "preview.html",
        s=replace(seen, paths=replace(seen.paths, logo=logo), cancel_url=None),
        alert=None,
        typed="",
    )


def _sample(services: DashboardServices, merchant: Merchant) -> Session:
    """Two of something. Only the scale of `receive` is shown of it."""
    now, currency = services.clock.now(), merchant.asset_code.lower()
    return Session(
        id="cs_" + "0" * 22,
        merchant=merchant.id,
        status=Status.OPEN,
        version=1,
        writer="",
        created_at=now,
        updated_at=now,
        expires_at=now + timedelta(days=1),
        amount_total=2 * _PRICE,
        currency=currency,
        receive=Amount(2 * _PRICE, merchant.asset_code, merchant.asset_scale),
        line_items=(LineItem(currency, "Tea", None, _PRICE, 2),),
        metadata_json="{}",
        success_url="",
        cancel_url="",
    )
