"""The routes of /v1 that show payments: the `payment_intent` and the `charge` of a session.

Each session has one payment, whose id is made of the session's. Lists hold payments that were made,
by the creation of their sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response

from api.v1 import parity
from api.v1.answers import listed, shown
from api.v1.dependencies import Injected, Key, Query
from api.v1.expansions import CHARGE, PAYMENT, expandable
from api.v1.forms import Parsed, parsed
from api.v1.sessions import charge_query, of_payment, payment_query
from checkout.domain.customer_details import CustomerDetails
from checkout.domain.errors import ResourceMissing
from checkout.domain.merchant import ApiKey
from checkout.domain.session import Session, Status
from checkout.domain.stripe_objects import charge, payment_intent, session_of
from checkout.flows import limits
from checkout.flows.checkout import details, lists, lookup
from checkout.ports.services import Services

router = APIRouter(prefix="/v1")
_CHARGE = "latest_charge"


@router.get("/payment_intents")
async def list_payments(services: Injected, key: Key, request: Request, query: Query) -> Response:
    """Return a page of the payments that were made."""
    given = parsed(query, parity.LIST_PAYMENTS)
    expandable(given, PAYMENT, "data.")
    limits.admit_list(services, key.merchant)
    asked = payment_query(services, key, given)
    result = lists.list_page(services, key, asked)
    known, name = details.known(services, result.sessions), f"data.{_CHARGE}"
    data = [_intent(services, each, given, name, known) for each in result.sessions]
    return listed(request, data, more=result.next_cursor is not None, upward=asked.upward)


@router.get("/payment_intents/{payment_id}")
async def get_payment(
    services: Injected, key: Key, request: Request, query: Query, payment_id: str
) -> Response:
    given = parsed(query, parity.ONE)
    expandable(given, PAYMENT)
    session = _named(services, key, "pi_", payment_id)
    known = details.known(services, [session])
    return shown(request, _intent(services, session, given, _CHARGE, known))


@router.get("/charges")
async def list_charges(services: Injected, key: Key, request: Request, query: Query) -> Response:
    """Return a page of charges, or the charge of one payment."""
    given = parsed(query, parity.LIST_CHARGES)
    expandable(given, CHARGE, "data.")
    limits.admit_list(services, key.merchant)
    asked = charge_query(services, key, given)
    if "payment_intent" in given.values:
        found, more = tuple(of_payment(services, key, given.values["payment_intent"])), False
    else:
        result = lists.list_page(services, key, asked)
        found, more = result.sessions, result.next_cursor is not None
    known = details.known(services, found)
    data = [_charge(services, each, given, known, "data.") for each in found]
    return listed(request, data, more=more, upward=asked.upward)


@router.get("/charges/{charge_id}")
async def get_charge(
    services: Injected, key: Key, request: Request, query: Query, charge_id: str
) -> Response:
    given = parsed(query, parity.ONE)
    expandable(given, CHARGE)
    session = _named(services, key, "ch_", charge_id)
    if session.status is not Status.COMPLETED:
        raise ResourceMissing(f"No such charge: '{charge_id[:100]}'")
    known = details.known(services, [session])
    return shown(request, _charge(services, session, given, known))


def _charge(
    services: Services,
    session: Session,
    given: Parsed,
    known: Mapping[str, CustomerDetails],
    within: str = "",
) -> dict[str, Any]:
    """Return the charge, with its payment if `expand` names it, in lists after `within`."""
    found = charge(session, base_url=services.base_url, details=known[session.id])
    name = f"{within}payment_intent"
    if given.expands(name):
        found["payment_intent"] = _intent(services, session, given, f"{name}.{_CHARGE}", known)
    return found


def _intent(
    services: Services,
    session: Session,
    given: Parsed,
    name: str,
    known: Mapping[str, CustomerDetails],
) -> dict[str, Any]:
    return payment_intent(
        session,
        base_url=services.base_url,
        now=services.clock.now(),
        expand_charge=given.expands(name),
        details=known[session.id],
    )


def _named(services: Services, key: ApiKey, prefix: str, named: str) -> Session:
    """Return the session of a payment or charge. Raises ResourceMissing."""
    session_id = session_of(named, prefix)
    if session_id is None:
        raise ResourceMissing(f"There is no such object: '{named[:100]}'")
    return lookup.get(services, key, session_id)
