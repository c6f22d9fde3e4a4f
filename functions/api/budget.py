"""The routes of the refund budget: request one, read it, end it.

A key needs the scope `refund`, and even then no money moves: an owner approves the budget in the
merchant's own wallet, from the dashboard's page that `approval_url` names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

from fastapi import APIRouter, Request, Response
from pydantic import AfterValidator, BeforeValidator, Field

from api.dependencies import Injected, api_key, idempotency_key
from api.requests import Form, in_bounds, whole
from api.routes import answered, json_response
from checkout.domain.merchant.record import ApiKey
from checkout.domain.payment.mandate import Mandate
from checkout.domain.refund.public import public_budget
from checkout.flows.idempotency import Posted, Reserve, answer, fingerprint_of, json_text
from checkout.flows.refund import budget_request
from checkout.services import Services
from checkout.web import json_object, no_parameters, validated

router = APIRouter(prefix="/api")
BUDGET: Final = "/checkout/refund_budget"


class RequestBudget(Form):
    """A refund budget to be approved."""

    amount: Annotated[
        int,
        Field(
            description="The amount a month, in the smallest unit of your wallet's currency.",
            examples=[50000],
            json_schema_extra={"minimum": 1},
        ),
        BeforeValidator(whole),
        AfterValidator(in_bounds),
    ]


@router.get(BUDGET)
async def get_budget(services: Injected, request: Request) -> Response:
    key = api_key(services, request)
    return json_response(_text(services, budget_request.get(services, key)))


@router.post(BUDGET)
async def request_budget(services: Injected, request: Request) -> Response:
    """Request a budget. A repeat with the same Idempotency-Key gets the first answer."""
    key = api_key(services, request)
    asked = validated(RequestBudget, await json_object(request))
    fingerprint = fingerprint_of("refund_budget", asked.model_dump(mode="json"))

    def act(reserve: Reserve[Mandate] | None) -> Mandate:
        return budget_request.request(services, key, asked.amount, reserve)

    return _answer(services, request, key, fingerprint, act)


@router.post(f"{BUDGET}/end")
async def end_budget(services: Injected, request: Request) -> Response:
    """End the budget: refunds wait for approvals again."""
    key = api_key(services, request)
    await no_parameters(request)

    def act(reserve: Reserve[Mandate] | None) -> Mandate:
        return budget_request.end(services, key, reserve)

    return _answer(services, request, key, fingerprint_of("end_refund_budget", ""), act)


def _answer(
    services: Services,
    request: Request,
    key: ApiKey,
    fingerprint: str,
    act: Callable[[Reserve[Mandate] | None], Mandate],
) -> Response:
    posted: Posted[Mandate] = Posted(
        merchant=key.merchant,
        key=idempotency_key(request),
        fingerprint=fingerprint,
        render=lambda mandate: _text(services, mandate),
    )
    return answered(answer(services, posted, act))


def _text(services: Services, mandate: Mandate) -> str:
    return json_text(public_budget(mandate, base_url=services.base_url, now=services.clock.now()))
