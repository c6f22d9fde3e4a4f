"""Begin a purchase at a payment link, which creates a session.

The form on the link's page sends a `visit`, a random text that is the idempotency key of the
purchase. So a form that is sent twice, or again after going back, creates only one session and
takes its items from the stock only once. Exception: a form that is sent again with corrected
details, another quantity or another amount begins another purchase. The first purchase is then left
unpaid, and its items return to the stock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from checkout.domain.ground.errors import (
    CheckoutError,
    Conflict,
    IdempotencyKeyReused,
    ParameterInvalid,
    ResourceMissing,
)
from checkout.domain.ground.grammar import LINK_ID, NONCE, is_http
from checkout.domain.ground.ids import new_nonce, new_session_id
from checkout.domain.ground.limits import PURCHASE, TILL
from checkout.domain.links import PaymentLink
from checkout.domain.merchant.reach import Effect, allows
from checkout.domain.session.customer_details import NONE_GIVEN, CustomerDetails
from checkout.domain.session.record import Session
from checkout.flows import idempotency, limits, merchants
from checkout.flows.idempotency import Posted, Reserve, answer, fingerprint_of
from checkout.flows.session import close
from checkout.flows.session import details as customer_details
from checkout.flows.session.lookup import apply_clock, load
from checkout.ports import KeyHeld, OutOfStock
from checkout.services import PayServices

_NO_LINK: Final = "No such payment link."


@dataclass(frozen=True, slots=True)
class Begun:
    """The session of a `visit`; `ended` if the session was begun earlier and has already ended."""

    session_id: str
    ended: bool
    visit: str


def load_link(services: PayServices, link_id: str) -> PaymentLink:
    """Read a link. Raises ResourceMissing; an id with the wrong format is not looked up."""
    link = services.links.get(link_id) if LINK_ID.fullmatch(link_id) else None
    if link is None:
        raise ResourceMissing(_NO_LINK)
    return link


def shown_link(services: PayServices, link_id: str) -> PaymentLink:
    """Read a link whose page may be shown.

    Raises ResourceMissing, also for a link of an unproven shop.
    """
    link = load_link(services, link_id)
    if not allows(merchants.get(services.merchants, link.merchant), Effect.LINK):
        raise ResourceMissing(_NO_LINK)
    return link


def new_visit(services: PayServices) -> str:
    return new_nonce(services.random_bytes)


def is_visit(text: str) -> bool:
    return NONCE.fullmatch(text) is not None


def begin(
    services: PayServices,
    link: PaymentLink,
    visit: str,
    client: str,
    details: CustomerDetails = NONE_GIVEN,
    quantity: int = 1,
    amount: int | None = None,
    *,
    at_till: bool = False,
) -> Begun:
    """Return the session of this visit. Create the session if there is none.

    If the link has a limited stock, the session holds `quantity` items. `amount` is what the
    customer has chosen to pay (`PaymentLink.chosen`), or None if the price is fixed. If this visit
    has already begun a purchase with other details or another amount, another purchase is begun
    under a new visit. Raises ParameterInvalid, RateLimited, Conflict (the link is stopped, or has
    too few items left), Unavailable and the errors of `PaymentLink.opened`. After an error no
    session was created, and no item is held.
    """
    if not is_visit(visit):
        raise ParameterInvalid("This page has expired. Reload it and try again.", param="visit")
    limits.admit(services, TILL if at_till else PURCHASE, client)
    posted = Posted(
        merchant=link.id,  # separates a link's idempotency keys from its merchant's
        key=visit,
        fingerprint=_fingerprint(link, visit, details, quantity, amount),
        render=attrgetter("id"),
        status=303,
    )
    try:
        found = answer(
            services,
            posted,
            lambda reserve: _open(
                services, link, client, details, quantity, amount, reserve, at_till=at_till
            ),
        )
    except IdempotencyKeyReused:
        visit = new_visit(services)
        return begin(services, link, visit, client, details, quantity, amount, at_till=at_till)
    before = apply_clock(services, load(services, found.body)) if found.replayed else None
    return Begun(found.body, ended=before is not None and before.terminal, visit=visit)


def continues(services: PayServices, link: PaymentLink, visit: str) -> bool:
    """Return whether this visit has a session that has not ended.

    The customer can continue this session even if no items are left.
    """
    found = _session_of(services, link, visit)
    return found is not None and not apply_clock(services, load(services, found)).terminal


def began(services: PayServices, link: PaymentLink, visit: str, session_id: str) -> bool:
    """Return whether the session was begun by the form with this visit."""
    return _session_of(services, link, visit) == session_id


def cancel(services: PayServices, link: PaymentLink, visit: str, session_id: str) -> None:
    """Cancel a sale for the till (a shop's sales screen) that began it.

    Raises ResourceMissing if the sale began with another visit, and the errors of `close.cancel`.
    """
    if not began(services, link, visit, session_id):
        raise ResourceMissing("This till did not begin the sale.")
    close.cancel_at_till(services, load(services, session_id))


def _session_of(services: PayServices, link: PaymentLink, visit: str) -> str | None:
    """Return the id of the session that the form with this visit began, or None."""
    found = idempotency.stored(services, link.id, visit) if is_visit(visit) else None
    return found.body if found is not None else None


def _open(
    services: PayServices,
    link: PaymentLink,
    client: str,
    details: CustomerDetails,
    quantity: int,
    amount: int | None,
    reserve: Reserve[Session] | None,
    *,
    at_till: bool,
) -> Session:
    merchant = merchants.get(services.merchants, link.merchant)
    if not link.sells or not allows(merchant, Effect.SALE):
        raise _refusal()
    if link.left is not None:
        if link.left < quantity:
            raise _refusal()
        limits.admit_items(services, link.id, client, quantity, left=link.left)
    for row in _rows(services, link):
        session_id = new_session_id(services.random_bytes, test=services.test)
        sealed = customer_details.seal(services.vault, merchant, session_id, details)
        session = link.opened(
            merchant,
            session_id=session_id,
            writer=new_nonce(services.random_bytes),
            now=services.clock.now(),
            base_url=services.base_url,
            base_is_http=is_http(services.base_url),
            **sealed.fields,
            quantity=quantity,
            amount=amount,
            row=row,
            at_till=at_till,
        )
        reservation = reserve(session, session.writer) if reserve else None
        try:
            held = services.sessions.create(session, reservation)
        except OutOfStock:
            continue
        if held is not None:
            raise KeyHeld(held)
        return session
    raise _refusal()


def _rows(services: PayServices, link: PaymentLink) -> Sequence[str | None]:
    """Return the ids of the rows that store the stock, starting with a random row.

    If the link has no stock, returns only None.
    """
    if not link.limited:
        return (None,)
    first = services.random_bytes(1)[0] % link.rows if link.rows > 1 else 0
    return (*link.row_ids[first:], *link.row_ids[:first])


def _fingerprint(
    link: PaymentLink, visit: str, details: CustomerDetails, quantity: int, amount: int | None
) -> str:
    """Return the fingerprint of a purchase.

    The fingerprint includes the visit, a random text that is not stored. So nobody can find out the
    details by computing fingerprints of guesses.
    """
    if details == NONE_GIVEN and quantity == 1 and amount is None:
        return fingerprint_of("buy", link.id)
    chosen = [] if amount is None else [amount]
    return fingerprint_of(
        "buy", [link.id, visit, quantity, details.to_json(), details.further_json(), *chosen]
    )


def _refusal() -> CheckoutError:
    return Conflict("Not enough items are left, or the sale was stopped. Nothing was charged.")
