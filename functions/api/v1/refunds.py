"""The routes of /v1/refunds, which use the flows of the native API.

A refund stays `pending` at least until the merchant has approved it in their own wallet. The
approval starts on the page at `open_payments.approval_url`. No API key can approve a refund.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, Final

from fastapi import APIRouter, Response

from api.v1 import parity
from api.v1.expansions import REFUND, expanded, maker, parsed_for
from api.v1.forms import Parsed
from api.v1.http import Body, Call, Called, Query, listed, performed, shown
from api.v1.sessions import between, bounded_metadata, merged_metadata
from checkout.domain.ground.errors import (
    ParameterInvalid,
    ParameterInvalidInteger,
    ParameterMissing,
    ResourceMissing,
)
from checkout.domain.ground.money import TOTAL_MAX
from checkout.domain.merchant.record import ApiKey
from checkout.domain.refund.record import Reason, Refund
from checkout.domain.stripe.objects import from_stripe, session_of
from checkout.domain.stripe.refunds import refund_object
from checkout.flows import limits
from checkout.flows.idempotency import json_text
from checkout.flows.refund import request as refunds
from checkout.flows.refund.request import NewRefund
from checkout.flows.session import details, lookup
from checkout.services import Services

router = APIRouter(prefix="/v1/refunds")
LIST_MAX: Final = 100
_KINDS: Final = {"payment_intent": "pi_", "charge": "ch_"}
_EXPANDED: Final = (*_KINDS, "payment_method", "balance_transaction")


@router.post("")
async def create(call: Called, body: Body) -> Response:
    """Request a refund. A repeat with the same Idempotency-Key gets the same answer."""
    given = parsed_for(REFUND, body, parity.CREATE_REFUND)
    asked = _asked(call.services, call.key, given)
    act = partial(refunds.create, call.services, call.key, asked)
    return performed(call, given, act, _render(call, given), operation="v1 create refund")


@router.get("")
async def list_refunds(call: Called, query: Query) -> Response:
    """Return a page of refunds, or all refunds of a payment."""
    given = parsed_for(REFUND, query, parity.LIST_REFUNDS, "data.")
    services, key = call.services, call.key
    limits.admit_list(services, key.merchant)
    limit = given.values.get("limit", 10)
    if not 1 <= limit <= LIST_MAX:
        raise ParameterInvalidInteger(f"This must be 1 to {LIST_MAX}.", param="limit")
    session, (low, high) = _session_of(given), between(given.values)
    if session is not None:
        of_one, more = refunds.of_session(services, key, session), False
        found = tuple(each for each in of_one if _made_between(each, low, high))
    else:
        anchor = given.values.get("starting_after")
        try:
            page = refunds.list_behind(
                services, key, limit=limit, anchor=anchor, created_from=low, created_before=high
            )
        except ResourceMissing as missing:
            raise ResourceMissing(missing.message, param="starting_after") from None
        found, more = page.records, page.next_cursor is not None
    data = [_object(services, given, each, "data.", whole=True) for each in found]
    return listed(call, data, more=more)


@router.get("/{refund_id}")
async def get(call: Called, query: Query, refund_id: str) -> Response:
    given = parsed_for(REFUND, query, parity.ONE)
    refund = refunds.get(call.services, call.key, refund_id)
    return shown(call, _object(call.services, given, refund, whole=True))


@router.post("/{refund_id}")
async def update(call: Called, body: Body, refund_id: str) -> Response:
    """Change the refund's metadata: set the given keys, and remove keys with an empty value."""
    given = parsed_for(REFUND, body, parity.UPDATE_REFUND)
    merge = partial(merged_metadata, given)
    act = partial(refunds.update_metadata, call.services, call.key, refund_id, merge)
    render = _render(call, given)
    return performed(call, given, act, render, operation="v1 update refund", record=refund_id)


@router.post("/{refund_id}/cancel")
async def cancel(call: Called, body: Body, refund_id: str) -> Response:
    """Cancel a refund that has not been sent yet."""
    given = parsed_for(REFUND, body, parity.ONE)
    act = partial(refunds.cancel, call.services, call.key, refund_id)
    render = _render(call, given)
    return performed(call, given, act, render, operation="v1 cancel refund", record=refund_id)


def _made_between(refund: Refund, low: datetime | None, high: datetime | None) -> bool:
    at = refund.created_at
    return (low is None or low <= at) and (high is None or at < high)


def _asked(services: Services, key: ApiKey, given: Parsed) -> NewRefund:
    """Convert the parameters to the flow's request. Raises ParameterMissing, ParameterInvalid…"""
    values, session_id = given.values, _session_of(given)
    if session_id is None:
        raise ParameterMissing("Name the payment to be refunded.", param="payment_intent")
    amount = values.get("amount")
    if amount is not None:
        session = lookup.get(services, key, session_id)
        if not 1 <= amount <= TOTAL_MAX:
            raise ParameterInvalidInteger("This must be at least 1.", param="amount")
        amount = from_stripe(amount, session.currency, param="amount")
    return NewRefund(
        session=session_id,
        amount=amount,
        reason=Reason(values["reason"]) if "reason" in values else None,
        metadata=bounded_metadata(values.get("metadata", {}), "metadata"),
    )


def _session_of(given: Parsed) -> str | None:
    """Return the id of the session whose payment or charge is given, or None without either."""
    named = {
        each: session_of(given.values[each], prefix)
        for each, prefix in _KINDS.items()
        if each in given.values
    }
    for each, session_id in named.items():
        if session_id is None:
            raise ResourceMissing(f"No such {each.replace('_', ' ')}.", param=each)
    if len(set(named.values())) > 1:
        raise ParameterInvalid("This charge is of another payment.", param="charge")
    return next(iter(named.values()), None)


def _render(call: Call, given: Parsed) -> Callable[[Refund], str]:
    return lambda refund: json_text(_object(call.services, given, refund))


def _object(
    services: Services, given: Parsed, refund: Refund, within: str = "", *, whole: bool = False
) -> dict[str, Any]:
    """Return the refund with the objects that `expand` names.

    A refund is kept a month longer than its session. During that month, the session's objects no
    longer exist, so their ids are not expanded. With `whole`, the objects contain the customer's
    details. Responses that are stored for repeated requests contain no details.
    """
    named = any(given.expands(f"{within}{each}") for each in _EXPANDED)
    session = services.sessions.get(refund.session) if named else None
    known = details.known(services, [session] if whole and session else [])[refund.session]
    make = maker(services, session, known, refund)
    return expanded(refund_object(refund, base_url=services.base_url), REFUND, given, make, within)
