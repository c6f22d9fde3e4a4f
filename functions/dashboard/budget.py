"""The page of the refund budget: what is left of it, and its approval in the merchant's wallet."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from fastapi import APIRouter, Request, Response

from checkout.domain.errors import CheckoutError, ParameterInvalid
from checkout.domain.mandate import USUAL_MARGIN, Mandate, Margin
from checkout.domain.money import from_minor_units, minor_units
from checkout.domain.people import Actor
from checkout.domain.typed_amount import typed_amount
from checkout.flows.merchant import actions
from checkout.flows.refund import budget_request
from checkout.grant_callback import callback_of
from checkout.open_payments.models import Amount
from checkout.ports.services import DashboardServices
from dashboard import refund_texts as texts
from dashboard.dependencies import Form, Injected, Key, Visited
from dashboard.refunds import Step
from dashboard.rendering import page, refused, saved, see
from dashboard.view import margin_of, moment, readable

router = APIRouter(prefix="/budget")
PERCENT_MAX: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetShown:
    """The budget. `amount`, `spent`, `left` and `share`, the spent part in per cent, are its month.

    `wanted` is what the shop's server has requested, and `approval` the page at the wallet that
    waits, for the amount `asked`. `margin` is what a refund may cost more than its amount without a
    person, and `percent` and `plus` are the same for the form.
    """

    status: str
    badge: str
    told: str
    amount: str | None = None
    spent: str | None = None
    left: str | None = None
    share: int = 0
    renews_on: str | None = None
    wanted: str | None = None
    asked: str | None = None
    approval: str | None = None
    typed: str = ""
    margin: str | None = None
    percent: str = str(USUAL_MARGIN.percent)
    plus: str = "0"
    active: bool = False
    endable: bool = False
    steps: tuple[Step, ...] = ()


@router.get("")
async def budget_page(services: Injected, request: Request, key: Key) -> Response:
    return _page(services, request, key)


@router.post("")
async def ask(services: Injected, request: Request, key: Key, form: Form) -> Response:
    """Ask the merchant's wallet for the page of the approval."""
    try:
        amount, margin = _amount(key, form, "amount"), _margin(key, form)
        actions.ask_budget(services, key, amount, margin)
    except CheckoutError as error:
        return refused(error, _page, services, request, key, typed=form)
    return _page(services, request, key)


def _amount(key: Actor, form: dict[str, str], name: str) -> int:
    """Return a typed amount in minor units. Raises ParameterInvalid."""
    code, scale = key.asset_code, key.asset_scale
    return typed_amount(form.get(name, ""), currency=code, wallet_scale=scale, param=name)


def _margin(key: Actor, form: dict[str, str]) -> Margin:
    """Return what refunds may cost more without a person. Raises ParameterInvalid."""
    percent = form.get("percent", str(USUAL_MARGIN.percent))
    if not re.fullmatch("[0-9]{1,2}", percent) or int(percent) > PERCENT_MAX:
        raise ParameterInvalid(f"Type 0 to {PERCENT_MAX} per cent.", param="percent")
    plus = _amount(key, form, "plus") if "plus" in form else 0
    return Margin(int(percent), budget_request.in_wallet(key, plus).value if plus else 0)


@router.get("/callback")
async def callback(services: Injected, visit: Visited, request: Request, key: Key) -> Response:
    """Continue with what the merchant's wallet appended to the address of its return."""
    returned = callback_of(request)
    if returned.result is not None:  # it is unsigned, so it decides nothing
        return _page(services, request, key, alert="You did not approve the budget.")
    done = actions.approve_budget(
        services, key, interact_ref=returned.interact_ref, presented_hash=returned.hash
    )
    if done.wait_seconds:
        return page(
            request,
            "refund_wait.html",
            section="",
            seconds=done.wait_seconds,
            again=f"{request.url.path}?{request.url.query}",
        )
    return see(visit, "/budget")


@router.post("/end")
async def end(services: Injected, visit: Visited, request: Request, key: Key, _: Form) -> Response:

    def save() -> None:
        actions.end_budget(services, key)

    return saved(save, visit, "/budget", _page, services, request, key)


def _page(
    services: DashboardServices,
    request: Request,
    key: Actor,
    *,
    typed: dict[str, str] | None = None,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    mandate, now = budget_request.find(services, key), services.clock.now()
    return page(
        request,
        "budget.html",
        status=status,
        section="/settings",
        alert=alert,
        b=_shown(mandate, typed, now) if mandate else _none(typed),
        currency=key.asset_code,
    )


def _none(typed: dict[str, str] | None) -> BudgetShown:
    status, badge, told = texts.NO_BUDGET
    return _typed(BudgetShown(status=status, badge=badge, told=told), typed)


def _typed(shown: BudgetShown, typed: dict[str, str] | None) -> BudgetShown:
    """Return the budget with what was typed into its form."""
    if typed is None:
        return shown
    amount, percent, plus = (typed.get(name, "") for name in ("amount", "percent", "plus"))
    return replace(shown, typed=amount, percent=percent, plus=plus)


def _shown(mandate: Mandate, typed: dict[str, str] | None, now: datetime) -> BudgetShown:
    status, badge, told = texts.BUDGET[mandate.status]
    terms, asked = mandate.terms, mandate.asked
    ready = mandate.approve_until is not None and now < mandate.approve_until
    limit = terms.limit if terms else None
    offered = mandate.wanted or (asked.limit if asked and ready else limit)
    left = _like(limit, mandate.left(now)) if limit else None
    chosen = asked if asked and ready else terms
    margin = chosen.margin if chosen else USUAL_MARGIN
    shown = BudgetShown(
        status=status,
        badge=badge,
        told=texts.SILENT if mandate.silent(now) else told,
        amount=readable(limit) if limit else None,
        spent=readable(_like(limit, limit.value - left.value)) if limit and left else None,
        left=readable(left) if left else None,
        share=100 - 100 * left.value // limit.value if limit and left else 0,
        renews_on=_day(mandate.renews_at(now)) if mandate.active else None,
        wanted=readable(mandate.wanted) if mandate.wanted else None,
        asked=readable(asked.limit) if asked and ready else None,
        approval=mandate.interact_url if ready else None,
        typed=_plain(offered) if offered else "",
        margin=margin_of(terms) if terms else None,
        percent=str(margin.percent),
        plus=_plain(_like(chosen.limit, margin.units)) if chosen else "0",
        active=mandate.active,
        endable=mandate.active or mandate.gone,
        steps=tuple(
            Step(
                at=moment(each.at),
                text=texts.BUDGET_STEP.get(each.event, each.event.replace("_", " ")),
                detail=each.note,
                bad=each.event in texts.BUDGET_BAD,
            )
            for each in mandate.history
        ),
    )
    return _typed(shown, typed)


def _like(limit: Amount, value: int) -> Amount:
    return Amount(value, limit.asset_code, limit.asset_scale)


def _day(at: datetime) -> str:
    return f"{at.day} {at:%B %Y}"


def _plain(amount: Amount) -> str:
    """Return the amount in plain digits, as the form takes it."""
    code, scale = amount.asset_code, amount.asset_scale
    return from_minor_units(minor_units(amount), currency=code, wallet_scale=scale).decimal()
