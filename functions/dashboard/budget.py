"""The page of the refund budget: the amount left, and the approval in the merchant's wallet."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

from fastapi import Response

from checkout.domain.ground.errors import ParameterInvalid
from checkout.domain.ground.money import from_minor_units, minor_units
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import Right
from checkout.domain.payment.mandate import USUAL_MARGIN, Mandate, MandateStatus, Margin
from checkout.flows.refund import budget_request
from checkout.pages import callback_of
from dashboard import refunds as texts
from dashboard.dependencies import Form, Page, PageRequest
from dashboard.rendering import page, see, wait_page
from dashboard.routing import PageRouter
from dashboard.view import margin_of, readable
from open_payments.models import Amount

router = PageRouter(prefix="/budget")
PERCENT_MAX: Final = 20
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_NONE: Final = Mandate(  # shown if nobody has requested a budget
    id="",
    merchant="",
    status=MandateStatus.PENDING,
    version=0,
    writer="",
    updated_at=_EPOCH,
    created_at=_EPOCH,
)


def _page(request: PageRequest, *, alert: str | None = None, status: int = 200) -> Response:
    services, key = request.services, request.key
    mandate, now = budget_request.find(services, key) or _NONE, services.clock.now()
    typed = request.form if alert and request.form else None
    return page(
        request.http,
        "budget.html",
        status=status,
        section="/settings",
        alert=alert,
        b=_shown(mandate, now) | _typed(typed),
        currency=key.asset_code,
    )


@router.page("", Door(Right.READ, "the budget"))
async def budget_page(request: Page) -> Response:
    return _page(request)


@router.form("", Door(Right.OWN, "asks the shop's wallet for the budget"), again=_page)
async def ask(request: Form) -> Response:
    """Request the approval from the merchant's wallet, and show the page of the budget again."""
    from checkout.flows.refund import budget  # this import loads the wallets' client

    amount, margin = request.amount("amount"), _margin(request)
    terms = budget.ask(request.services.paying(), request.key, amount, margin).asked
    request.note(Action.BUDGET_ASKED, str(terms.limit) if terms else None)
    return _page(request)


@router.page("/callback", Door(Right.OWN, "begins the budget"))
async def callback(request: Page) -> Response:
    """Continue the approval with the parameters of the redirect from the merchant's wallet."""
    from checkout.flows.refund import budget

    services, key = request.services, request.key
    returned = callback_of(request.http)
    if returned.result is not None:  # unsigned, so anybody may have sent it
        return _page(request, alert="The budget was not approved.")
    before = budget_request.find(services, key)
    done = budget.finish(
        services.paying(), key, interact_ref=returned.interact_ref, presented_hash=returned.hash
    )
    after, older = done.record, before.handle if before else None
    if after and after.active and after.terms and after.handle != older:
        request.note(Action.BUDGET_APPROVED, str(after.terms.limit))
    if done.wait_seconds:
        return wait_page(request.http, done.wait_seconds)
    return see(request.visit, "/budget")


@router.form("/end", Door(Right.OWN, "ends the budget"), again=_page)
async def end(request: Form) -> Response:
    budget_request.end(request.services, request.key)
    request.note(Action.BUDGET_ENDED)
    return see(request.visit, "/budget")


def _margin(request: PageRequest) -> Margin:
    """Return the typed margin: how much a refund from the budget can cost beyond its own amount.

    Raises ParameterInvalid.
    """
    percent = request.form.get("percent", str(USUAL_MARGIN.percent))
    if not re.fullmatch("[0-9]{1,2}", percent) or int(percent) > PERCENT_MAX:
        raise ParameterInvalid(f"Type 0 to {PERCENT_MAX} per cent.", param="percent")
    plus = request.amount("plus") if "plus" in request.form else 0
    return Margin(int(percent), budget_request.in_wallet(request.key, plus).value if plus else 0)


def _typed(typed: dict[str, str] | None) -> dict[str, Any]:
    """Return the texts typed into a rejected form, or an empty dictionary for a new form."""
    if typed is None:
        return {}
    amount, percent, plus = (typed.get(name, "") for name in ("amount", "percent", "plus"))
    return {"typed": amount, "percent": percent, "plus": plus}


def _shown(mandate: Mandate, now: datetime) -> dict[str, Any]:
    """Return this month's budget for the page: `amount`, `spent`, `left`, and `share` (% spent).

    `approval` is the wallet's page on which the merchant approves the amount `asked`. `margin` is
    how much a refund from the budget can cost beyond its own amount. `percent` and `plus` are the
    two parts of the margin as the form shows them.
    """
    status, badge, told = texts.BUDGET[mandate.status]
    terms, asked = mandate.terms, mandate.asked
    ready = mandate.approve_until is not None and now < mandate.approve_until
    limit = terms.limit if terms else None
    offered = asked.limit if asked and ready else limit
    left = _like(limit, mandate.left(now)) if limit else None
    chosen = asked if asked and ready else terms
    margin = chosen.margin if chosen else USUAL_MARGIN
    return {
        "status": status,
        "badge": badge,
        "told": texts.SILENT if mandate.silent(now) else told,
        "amount": readable(limit) if limit else None,
        "spent": readable(_like(limit, limit.value - left.value)) if limit and left else None,
        "left": readable(left) if left else None,
        "share": 100 - 100 * left.value // limit.value if limit and left else 0,
        "renews_on": _day(mandate.renews_at(now)) if mandate.active else None,
        "asked": readable(asked.limit) if asked and ready else None,
        "approval": mandate.interact_url if ready else None,
        "typed": _plain(offered) if offered else "",
        "margin": margin_of(terms) if terms else None,
        "percent": str(margin.percent),
        "plus": _plain(_like(chosen.limit, margin.units)) if chosen else "0",
        "active": mandate.active,
        "endable": mandate.active or mandate.gone,
        "steps": texts.steps_of(mandate.history, texts.BUDGET_STEP, texts.BUDGET_BAD),
    }


def _like(limit: Amount, value: int) -> Amount:
    return Amount(value, limit.asset_code, limit.asset_scale)


def _day(at: datetime) -> str:
    return f"{at.day} {at:%B %Y}"


def _plain(amount: Amount) -> str:
    """Return the amount in plain digits, for the form."""
    code, scale = amount.asset_code, amount.asset_scale
    return from_minor_units(minor_units(amount), currency=code, wallet_scale=scale).decimal()
