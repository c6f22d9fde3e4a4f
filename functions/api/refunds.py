"""The routes to request, read and cancel refunds.

To request or cancel a refund, an API key needs the scope `refund`. The merchant approves a refund
in their own wallet, starting from the dashboard page at `approval_url`. A refund paid from the
refund budget needs no approval.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Request, Response
from pydantic import AfterValidator, BeforeValidator, Field

from api.http import Injected, answered, api_key, json_response, performed
from api.requests import Form, Metadata, in_bounds, once, whole, whole_number
from checkout.domain.refund.public import public_refund
from checkout.domain.refund.record import ELSEWHERE_MAX, AmountMode, Reason, Refund
from checkout.flows import limits
from checkout.flows.idempotency import json_text
from checkout.flows.refund import request as refunds
from checkout.flows.refund.request import NewRefund
from checkout.services import Services
from checkout.web import json_object, no_parameters, validated

if TYPE_CHECKING:
    from checkout import answers

router = APIRouter(prefix="/api")
REFUNDS: Final = "/checkout/refunds"
PAGE_MAX: Final = 100
WALLET_MAX: Final = 2048  # characters


def said(text: str | None) -> str | None:
    """Return the text without leading and trailing blanks. Raise ValueError if nothing is left."""
    words = None if text is None else text.strip()
    if words == "":
        raise ValueError("Say how you have paid the customer back.")
    return words


class CreateRefund(Form):
    """A refund to be requested, or a note that the customer was paid back by other means."""

    session: Annotated[
        str,
        Field(
            description="The id of an ended session that has received money.",
            examples=["cs_3kTMd0wvG8PZx5nNq2LrYb"],
        ),
    ]
    amount: Annotated[
        int | None,
        Field(
            description="The amount to refund, in the currency's smallest unit. If absent, "
            "everything that is left.",
            examples=[500],
            json_schema_extra={"minimum": 1},
        ),
        BeforeValidator(whole),
        AfterValidator(in_bounds),
    ] = None
    amount_mode: Annotated[
        AmountMode | None,
        Field(
            strict=False,
            description="`as_paid`: the customer gets back what they paid for this amount, in "
            "their own currency. If that is also your currency, they get at most what arrived at "
            "your wallet. `at_cost`: the refund costs you exactly the amount. The default is "
            "`as_paid` if it is known what the customer paid.",
        ),
    ] = None
    reason: Annotated[
        Reason | None, Field(strict=False, description="Your reason. It is not sent to anyone.")
    ] = None
    customer_wallet: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=WALLET_MAX,
            description="A wallet other than the one that paid. Required if it is not known which "
            "wallet paid, because the money came from outside.",
        ),
    ] = None
    paid_elsewhere: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=ELSEWHERE_MAX,
            description="Set this if you have paid the customer back by other means, and describe "
            "how. Nothing is sent, but the amount left to refund becomes smaller. To undo this, "
            "cancel the refund. Your customer does not see this text.",
            examples=["Bank transfer of 3 May"],
        ),
        AfterValidator(said),
    ] = None
    metadata: Annotated[
        Metadata, Field(description="Your own key-value pairs, returned as submitted.")
    ] = {}  # noqa: RUF012 - copied for each request by Pydantic

    def new_refund(self) -> NewRefund:
        """Return the input of the flow that requests a refund."""
        return NewRefund(
            session=self.session,
            amount=self.amount,
            mode=self.amount_mode,
            reason=self.reason,
            metadata=self.metadata,
            wallet=self.customer_wallet,
            elsewhere=self.paid_elsewhere,
        )


class ListRefunds(Form):
    """The filters and the position of a list of refunds."""

    session: Annotated[
        str | None, Field(description="Return only the refunds of this session.")
    ] = None
    limit: Annotated[
        int,
        Field(ge=1, le=PAGE_MAX, description="The maximum number of refunds."),
        BeforeValidator(whole_number),
    ] = 10
    cursor: Annotated[str | None, Field(description="`next_cursor` of the previous page.")] = None


@router.post(REFUNDS)
async def create_refund(services: Injected, request: Request) -> Response:
    """Request a refund. A repeat with the same Idempotency-Key gets the same answer."""
    key = api_key(services, request)
    asked = validated(CreateRefund, await json_object(request))
    act = partial(refunds.create, services, key, asked.new_refund())
    parameters, render = asked.model_dump(mode="json"), partial(_text, services)
    return answered(
        performed(services, key, request, "refund", parameters, act, render, status=201)
    )


@router.get(REFUNDS)
async def list_refunds(services: Injected, request: Request) -> Response:
    """Return a page of refunds, or all refunds of one session."""
    key = api_key(services, request, None)
    asked = validated(ListRefunds, once(request.query_params.multi_items()))
    limits.admit_list(services, key.merchant)
    if asked.session is not None:
        found, more = refunds.of_session(services, key, asked.session), None
    else:
        page = refunds.list_page(services, key, limit=asked.limit, after=asked.cursor)
        found, more = page.records, page.next_cursor
    shown: answers.RefundList = {
        "object": "list",
        "url": "/api/checkout/refunds",
        "data": [public_refund(each, base_url=services.base_url) for each in found],
        "has_more": more is not None,
        "next_cursor": more,
    }
    return json_response(json_text(shown))


@router.get(f"{REFUNDS}/{{refund_id}}")
async def get_refund(services: Injected, request: Request, refund_id: str) -> Response:
    key = api_key(services, request)
    return json_response(_text(services, refunds.get(services, key, refund_id)))


@router.post(f"{REFUNDS}/{{refund_id}}/cancel")
async def cancel_refund(services: Injected, request: Request, refund_id: str) -> Response:
    """Cancel a refund that has not been sent yet, or remove the note of a refund by other means."""
    key = api_key(services, request)
    await no_parameters(request)
    act, render = partial(refunds.cancel, services, key, refund_id), partial(_text, services)
    return answered(performed(services, key, request, "cancel_refund", refund_id, act, render))


def _text(services: Services, refund: Refund) -> str:
    return json_text(public_refund(refund, base_url=services.base_url))
