"""The routes of /v1 for the payment of a session, and for the objects that describe it.

Each session has one `payment_intent`, whose id is made from the session's id. If money has arrived,
the session also has a `charge`, a `payment_method` and a `balance_transaction`. Lists contain only
payments that were made, in the order in which their sessions were created.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from api.v1 import parity
from api.v1.expansions import (
    CHARGE,
    METHOD,
    PAYMENT,
    PREFIXES,
    TRANSACTION,
    Make,
    expanded,
    maker,
    parsed_for,
)
from api.v1.forms import Parsed
from api.v1.http import Call, Called, Query, listed, shown
from api.v1.sessions import session_page
from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.session.customer_details import NONE_GIVEN
from checkout.domain.session.record import Session
from checkout.domain.stripe.objects import has_charge, session_of
from checkout.domain.stripe.refunds import refund_of
from checkout.flows.refund import request as refunds
from checkout.flows.session import details, lookup

router = APIRouter(prefix="/v1")


@router.get("/payment_intents")
async def list_payments(call: Called, query: Query) -> Response:
    """Return a page of the payments that were made."""
    return _listed(call, PAYMENT, parsed_for(PAYMENT, query, parity.LIST_PAYMENTS, "data."))


@router.get("/payment_intents/{payment_id}")
async def get_payment(call: Called, query: Query, payment_id: str) -> Response:
    return _shown(call, PAYMENT, query, payment_id)


@router.get("/charges")
async def list_charges(call: Called, query: Query) -> Response:
    """Return a page of charges, or the charge of one payment.

    `created` filters by the time of the charge, but the list is in the order in which the sessions
    were created.
    """
    return _listed(call, CHARGE, parsed_for(CHARGE, query, parity.LIST_CHARGES, "data."))


@router.get("/charges/{charge_id}")
async def get_charge(call: Called, query: Query, charge_id: str) -> Response:
    return _shown(call, CHARGE, query, charge_id)


@router.get("/payment_methods/{method_id}")
async def get_method(call: Called, query: Query, method_id: str) -> Response:
    """Return the wallet that paid a session."""
    return _shown(call, METHOD, query, method_id)


@router.get("/balance_transactions/{transaction_id}")
async def get_transaction(call: Called, query: Query, transaction_id: str) -> Response:
    """Return what the wallet received for a charge, or paid for a refund."""
    refund_id = refund_of(transaction_id)
    if refund_id is None:
        return _shown(call, TRANSACTION, query, transaction_id)
    given = parsed_for(TRANSACTION, query, parity.ONE)
    try:
        refund = refunds.get(call.services, call.key, refund_id)
    except ResourceMissing:
        raise _missing(transaction_id) from None
    make = maker(call.services, None, NONE_GIVEN, refund)
    found = make(transaction_id)
    if found is None:
        raise _missing(transaction_id)
    return shown(call, expanded(found, TRANSACTION, given, make))


def _listed(call: Call, kind: str, given: Parsed) -> Response:
    """Return a page of the objects of this kind."""
    sessions, upward, after = session_page(call.services, call.key, given, kind)
    known = details.known(call.services, sessions)
    data = [
        _object(maker(call.services, each, known[each.id]), given, kind, each, "data.")
        for each in sessions
    ]
    return listed(call, data, more=after is not None, upward=upward, after=after)


def _shown(call: Call, kind: str, query: Query, named: str) -> Response:
    """Return the object of this kind with this id. Raises ResourceMissing.

    A payment exists as soon as its session exists. The other objects exist once money has arrived.
    """
    given = parsed_for(kind, query, parity.ONE)
    try:
        session = lookup.get(call.services, call.key, session_of(named, PREFIXES[kind]) or "")
    except ResourceMissing:
        raise _missing(named) from None
    if kind != PAYMENT and not has_charge(session):
        raise _missing(named)
    known = details.known(call.services, [session])[session.id]
    return shown(call, _object(maker(call.services, session, known), given, kind, session))


def _object(
    make: Make, given: Parsed, kind: str, session: Session, within: str = ""
) -> dict[str, Any]:
    """Return the session's object of this kind, with the objects that `expand` names.

    In a list, each name in `expand` begins with `within`.
    """
    found = make(session.id.replace("cs_", PREFIXES[kind], 1))
    assert found is not None, "each of these is made of a session"
    return expanded(found, kind, given, make, within)


def _missing(named: str) -> ResourceMissing:
    return ResourceMissing(
        f"There is no such object: '{named[:100]}'. Compare its id, and use a key of the same "
        "merchant."
    )
