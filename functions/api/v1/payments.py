"""The routes of /v1 that show the payment of a session, and its objects.

Each session has one `payment_intent`, whose id is made of the session's. If money has arrived it
has a `charge`, a `payment_method` and a `balance_transaction`, as well. Lists hold payments that
were made, by the creation of their sessions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from api.v1 import parity
from api.v1.expansions import (
    CHARGE,
    METHOD,
    PAYMENT,
    TRANSACTION,
    Make,
    expandable,
    expanded,
    maker,
)
from api.v1.forms import Parsed, parsed
from api.v1.http import Injected, Key, Query, listed, shown
from api.v1.sessions import charge_query, continued, of_payment, payment_query
from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.merchant.record import ApiKey
from checkout.domain.session.customer_details import NONE_GIVEN
from checkout.domain.session.record import Session
from checkout.domain.stripe.objects import has_charge, session_of
from checkout.domain.stripe.refunds import refund_of
from checkout.flows import limits
from checkout.flows.refund import request as refunds
from checkout.flows.session import details, lists, lookup
from checkout.services import Services

router = APIRouter(prefix="/v1")
_PREFIXES: Final[Mapping[str, str]] = {
    PAYMENT: "pi_",
    CHARGE: "ch_",
    METHOD: "pm_",
    TRANSACTION: "txn_",
}


@router.get("/payment_intents")
async def list_payments(services: Injected, key: Key, request: Request, query: Query) -> Response:
    """Return a page of the payments that were made."""
    given = parsed(query, parity.LIST_PAYMENTS)
    expandable(given, PAYMENT, "data.")
    limits.admit_list(services, key.merchant)
    asked = payment_query(services, key, given)
    result = lists.list_page(services, key, asked)
    data = _objects(services, given, PAYMENT, result.sessions)
    after = continued(key, result, "pi_")
    return listed(request, data, more=after is not None, upward=asked.upward, after=after)


@router.get("/payment_intents/{payment_id}")
async def get_payment(
    services: Injected, key: Key, request: Request, query: Query, payment_id: str
) -> Response:
    given = _one(query, PAYMENT)
    return shown(
        request, _shown(services, given, PAYMENT, _named(services, key, "pi_", payment_id))
    )


@router.get("/charges")
async def list_charges(services: Injected, key: Key, request: Request, query: Query) -> Response:
    """Return a page of charges, or the charge of one payment.

    `created` bounds the time of the charges; they are listed by the creation of their sessions.
    """
    given = parsed(query, parity.LIST_CHARGES)
    expandable(given, CHARGE, "data.")
    limits.admit_list(services, key.merchant)
    asked = charge_query(services, key, given)
    if "payment_intent" in given.values:
        of_one = of_payment(services, key, given.values["payment_intent"], asked)
        return listed(request, _objects(services, given, CHARGE, of_one), more=False)
    result = lists.list_page(services, key, asked)
    data = _objects(services, given, CHARGE, result.sessions)
    after = continued(key, result, "ch_")
    return listed(request, data, more=after is not None, upward=asked.upward, after=after)


@router.get("/charges/{charge_id}")
async def get_charge(
    services: Injected, key: Key, request: Request, query: Query, charge_id: str
) -> Response:
    given = _one(query, CHARGE)
    return shown(
        request, _shown(services, given, CHARGE, _charged(services, key, "ch_", charge_id))
    )


@router.get("/payment_methods/{method_id}")
async def get_method(
    services: Injected, key: Key, request: Request, query: Query, method_id: str
) -> Response:
    """Return the wallet that paid a session."""
    given = _one(query, METHOD)
    return shown(
        request, _shown(services, given, METHOD, _charged(services, key, "pm_", method_id))
    )


@router.get("/balance_transactions/{transaction_id}")
async def get_transaction(
    services: Injected, key: Key, request: Request, query: Query, transaction_id: str
) -> Response:
    """Return what the wallet received for a charge, or paid for a refund."""
    given, refund_id = _one(query, TRANSACTION), refund_of(transaction_id)
    if refund_id is None:
        session = _charged(services, key, "txn_", transaction_id)
        return shown(request, _shown(services, given, TRANSACTION, session))
    try:
        refund = refunds.get(services, key, refund_id)
    except ResourceMissing:
        raise _missing(transaction_id) from None
    make = maker(services, None, NONE_GIVEN, refund)
    found = make(transaction_id)
    if found is None:
        raise _missing(transaction_id)
    return shown(request, expanded(found, TRANSACTION, given, make))


def _one(query: Query, kind: str) -> Parsed:
    given = parsed(query, parity.ONE)
    expandable(given, kind)
    return given


def _objects(
    services: Services, given: Parsed, kind: str, sessions: Sequence[Session]
) -> list[dict[str, Any]]:
    known = details.known(services, sessions)
    return [
        _object(maker(services, each, known[each.id]), given, kind, each, "data.")
        for each in sessions
    ]


def _shown(services: Services, given: Parsed, kind: str, session: Session) -> dict[str, Any]:
    known = details.known(services, [session])[session.id]
    return _object(maker(services, session, known), given, kind, session)


def _object(
    make: Make, given: Parsed, kind: str, session: Session, within: str = ""
) -> dict[str, Any]:
    """Return the session's object of this kind with what `expand` names, in lists in `within`."""
    found = make(session.id.replace("cs_", _PREFIXES[kind], 1))
    assert found is not None, "each of these is made of a session"
    return expanded(found, kind, given, make, within)


def _charged(services: Services, key: ApiKey, prefix: str, named: str) -> Session:
    """Return the session of an object that exists once money has arrived.

    Raises ResourceMissing.
    """
    session = _named(services, key, prefix, named)
    if not has_charge(session):
        raise _missing(named)
    return session


def _named(services: Services, key: ApiKey, prefix: str, named: str) -> Session:
    """Return the session of which an object has this id. Raises ResourceMissing."""
    try:
        return lookup.get(services, key, session_of(named, prefix) or "")
    except ResourceMissing:
        raise _missing(named) from None


def _missing(named: str) -> ResourceMissing:
    return ResourceMissing(
        f"There is no such object: '{named[:100]}'. Compare its id, and use a key of the same "
        "merchant."
    )
