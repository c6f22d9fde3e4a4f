"""The routes of /v1 that show payments: the `payment_intent` and the `charge` of a session.

Each session has one payment, whose id is made of the session's. Lists hold payments that were made.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from api.v1 import parity
from api.v1.answers import listed, shown
from api.v1.dependencies import Injected, Key, Query
from api.v1.expansions import CHARGE, PAYMENT, expandable
from api.v1.forms import Parsed, parsed
from api.v1.sessions import payment_query
from checkout.domain.errors import ResourceMissing
from checkout.domain.merchant import ApiKey
from checkout.domain.session import Session, Status
from checkout.domain.stripe_objects import charge, payment_intent, session_of
from checkout.flows import limits
from checkout.flows.checkout import lists, lookup
from checkout.ports.services import Services

router = APIRouter(prefix="/v1")
_CHARGE = "latest_charge"


@router.get("/payment_intents")
async def list_payments(services: Injected, key: Key, request: Request, query: Query) -> Response:
    """Return a page of the payments that were made, by the creation of their sessions."""
    given = parsed(query, parity.LIST_PAYMENTS)
    expandable(given, PAYMENT, "data.")
    limits.admit_list(services, key.merchant)
    asked = payment_query(services, key, given)
    result = lists.list_page(services, key, asked)
    data = [_intent(services, each, given, f"data.{_CHARGE}") for each in result.sessions]
    return listed(request, data, more=result.next_cursor is not None, upward=asked.upward)


@router.get("/payment_intents/{payment_id}")
async def get_payment(
    services: Injected, key: Key, request: Request, query: Query, payment_id: str
) -> Response:
    given = parsed(query, parity.ONE)
    expandable(given, PAYMENT)
    session = _named(services, key, "pi_", payment_id)
    return shown(request, _intent(services, session, given, _CHARGE))


@router.get("/charges/{charge_id}")
async def get_charge(
    services: Injected, key: Key, request: Request, query: Query, charge_id: str
) -> Response:
    given = parsed(query, parity.ONE)
    expandable(given, CHARGE)
    session = _named(services, key, "ch_", charge_id)
    if session.status is not Status.COMPLETED:
        raise ResourceMissing(f"No such charge: '{charge_id[:100]}'")
    found = charge(session, base_url=services.base_url)
    if given.expands("payment_intent"):
        found["payment_intent"] = _intent(services, session, given, f"payment_intent.{_CHARGE}")
    return shown(request, found)


def _intent(services: Services, session: Session, given: Parsed, name: str) -> dict[str, Any]:
    return payment_intent(
        session,
        base_url=services.base_url,
        now=services.clock.now(),
        expand_charge=given.expands(name),
    )


def _named(services: Services, key: ApiKey, prefix: str, named: str) -> Session:
    """Return the session of a payment or charge. Raises ResourceMissing."""
    session_id = session_of(named, prefix)
    if session_id is None:
        raise ResourceMissing(f"There is no such object: '{named[:100]}'")
    return lookup.get(services, key, session_id)
