"""The page of one transaction: a session's details and its history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from fastapi import Response

from checkout.domain.ground.addresses import label
from checkout.domain.ground.errors import PaymentInProgress
from checkout.domain.ground.money import from_minor_units, rate_of
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import Actor, Right
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention, Phase, Problem
from checkout.domain.refund.record import ELSEWHERE_MAX, Refund
from checkout.domain.session.attempts import failure_of
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.note import TEXT_MAX, Note, case_of, needs_somebody
from checkout.domain.session.record import Session, Status, order_number
from checkout.domain.session.withdrawal import Withdrawal, waits
from checkout.domain.webhooks.event_types import CANCELED, EXPIRED
from checkout.domain.webhooks.record import Endpoint, GivenUp
from checkout.flows import merchants
from checkout.flows.refund import budget_request
from checkout.flows.session import close, details, lookup, notes, withdrawals
from checkout.flows.webhooks import event_log
from checkout.services import DashboardServices
from dashboard import refunds as refund_texts
from dashboard import texts
from dashboard.banner import banner_of
from dashboard.dependencies import Form, Page, PageRequest
from dashboard.forms import Fields, Yes
from dashboard.rendering import page, see, session_of, strip
from dashboard.routing import PageRouter
from dashboard.timeline import timeline
from dashboard.view import (
    delivered,
    look_of,
    margin_of,
    minor,
    plain,
    readable,
    refunded_of,
    short,
    status_of,
    wallet_of,
)
from dashboard.webhooks import elsewhere
from open_payments.models import Quote

router = PageRouter(prefix="/transactions/{session_id}")
_WRITTEN_WITHIN: Final = timedelta(minutes=10)  # after an expiry, until its event (expiries.py)


class NoteForm(Fields):
    """The note, its tags, and the version of the note that the page showed (`read`)."""

    read: str
    text: str
    tags: str


class DoneForm(Fields):
    """Whether to set a mark that something is done, or to remove the mark."""

    done: Yes


def transaction_page(
    request: PageRequest, session_id: str, *, alert: str | None = None, status: int = 200
) -> Response:
    """Return the page of a session, with the note as typed, if any. Raise ResourceMissing."""
    services, key = request.services, request.key
    now = services.clock.now()
    session = lookup.get(services, key, session_id)
    event = event_log.of_session(services, session)
    merchant = services.known_merchants.get(key.merchant)
    endpoints = merchant.endpoints if merchant else ()
    told = bool(endpoints) or (
        event is not None and (bool(event.deliveries) or event.given_up is not GivenUp.NO_ENDPOINT)
    )
    note = _note(session, services.notes.get(session.id), request.form)
    waits_here = case_of(session) is not None and not note["dealt_with"]
    given, refunds = _given(services, session), _refunds(services, session)
    return page(
        request.http,
        "transaction.html",
        status=status,
        section="",
        alert=alert,
        text_max=TEXT_MAX,
        note=note,
        session=session,
        s=_shown(session, now=now, base_url=services.base_url),
        money=partial(minor, session=session),
        given=given,
        label=label,
        withdrawal=_withdrawal(services, session),
        refunds=[(each, *refund_texts.status_of(each)) for each in refunds],
        refunded=refunded_of(session, refunds),
        elsewhere_max=ELSEWHERE_MAX,
        budget=_budget(services, key, session, now),
        told=told,
        webhook=delivered(event) if event else None,
        untold=None if event else _untold(session, endpoints, now),
        elsewhere=elsewhere(services, merchant, event) if event else [],
        **_others(request, session, beside=alert is not None or waits_here),
    )


def _others(request: PageRequest, session: Session, *, beside: bool) -> dict[str, Any]:
    """Return the banner of the other cases that need a person.

    The page itself shows the case of this session. The page has one alert at most. So if the page
    already has an alert (`beside`), only the number of other cases is shown, not the banner.
    """
    needed = strip(request.http)
    found = [each for each in needed.found if each.target != session.id] if needed else []
    if needed is None or beside:
        return {"needs": None, "others": len(found)}
    banner = banner_of(replace(needed, found=tuple(found)), partial(session_of, request.http))
    return {"needs": banner, "others": 0}


def _untold(session: Session, endpoints: tuple[Endpoint, ...], now: datetime) -> str:
    """Return why there is no event about the session's end."""
    if session.event is not None:
        return texts.NOT_KEPT
    ended = EXPIRED if session.status is Status.EXPIRED else CANCELED
    asked = any(each.wants(ended) for each in endpoints)
    written = session.over_at is not None and now >= session.over_at + _WRITTEN_WITHIN
    return texts.NOT_ASKED if session.terminal and (written or not asked) else texts.NOT_ENDED


@router.page("", Door(Right.READ, "customers' details"))
async def transaction(request: Page, session_id: str) -> Response:
    return transaction_page(request, session_id)


@router.page("/packing", Door(Right.READ, "customers' details"))
async def packing(request: Page, session_id: str) -> Response:
    """Return the packing slip to print: sender, addressee, items, answers, and no prices."""
    services, key = request.services, request.key
    session = lookup.get(services, key, session_id)
    return page(
        request.http,
        "packing.html",
        section="",
        session=session,
        s=_shown(session, now=services.clock.now(), base_url=services.base_url),
        given=_given(services, session),
        label=label,
        shop=merchants.get(services.known_merchants, key.merchant),
    )


@router.form("/note", Door(Right.NOTE, "a private note"), again=transaction_page)
async def write_note(request: Form, session_id: str) -> Response:
    """Write the note and its tags."""
    typed = request.read(NoteForm)
    notes.write(request.services, request.key, session_id, **typed.model_dump())
    return see(request.visit, f"/transactions/{session_id}")


@router.form(
    "/dealt-with",
    Door(Right.MANAGE, "marks whether a payment still needs a person"),
    again=transaction_page,
)
async def deal_with(request: Form, session_id: str) -> Response:
    """Mark the session as dealt with, or remove this mark."""
    done = request.read(DoneForm).done
    notes.deal_with(request.services, request.key, session_id, done=done)
    return see(request.visit, f"/transactions/{session_id}")


@router.form(
    "/withdrawal",
    Door(Right.MANAGE, "marks whether a withdrawal is answered"),
    again=transaction_page,
)
async def answer_withdrawal(request: Form, session_id: str) -> Response:
    """Mark the customer's withdrawal as answered, or remove this mark."""
    done = request.read(DoneForm).done
    withdrawals.answer(request.services, request.key, session_id, done=done)
    return see(request.visit, f"/transactions/{session_id}")


@router.form("/expire", Door(Right.MANAGE, "ends a session"))
async def expire(request: Form, session_id: str) -> Response:
    return _end(request, session_id, close.expire, Action.SESSION_EXPIRED)


@router.form("/cancel", Door(Right.MANAGE, "ends a session"))
async def cancel(request: Form, session_id: str) -> Response:
    return _end(request, session_id, close.cancel, Action.SESSION_CANCELED)


@router.form("/accept_as_paid", Door(Right.MANAGE, "accepts a smaller amount as paid"))
async def accept_as_paid(request: Form, session_id: str) -> Response:
    return _end(request, session_id, close.accept_as_paid, Action.SESSION_ACCEPTED)


@router.form("/give_up", Door(Right.MANAGE, "ends a session"))
async def give_up(request: Form, session_id: str) -> Response:
    return _end(request, session_id, close.give_up, Action.SESSION_GIVEN_UP)


def _end(
    request: PageRequest,
    session_id: str,
    end: Callable[[DashboardServices, Actor, str], Session],
    action: Action,
) -> Response:
    """End a session, and log its end.

    If the session's incoming payment must be closed before, this function only begins to close it,
    and logs that the closing has begun.
    """
    services, key = request.services, request.key
    before = lookup.get(services, key, session_id)
    try:
        session = end(services, key, session_id)
    except PaymentInProgress:
        session = lookup.get(services, key, session_id)
        if before.closing_at is not None or session.closing_at is None:
            raise
        action = Action.CLOSING_STARTED
    request.note(action, session.id)
    return see(request.visit, f"/transactions/{session.id}")


def _note(session: Session, note: Note | None, typed: dict[str, str]) -> dict[str, Any]:
    """Return the note for the form: the `typed` text if there is one, otherwise the stored note.

    `read` in the result is the version of the stored note.
    """
    tags = note.tags if note else ()
    return {
        "text": typed.get("text", note.text if note else ""),
        "tags": tags,
        "typed_tags": typed.get("tags", ", ".join(tags)),
        "read": note.version if note else 0,
        "by": note.author if note else None,
        "at": note.at if note else None,
        "dealt_with": case_of(session) is not None and not needs_somebody(session, note),
    }


def _withdrawal(
    services: DashboardServices, session: Session
) -> tuple[Withdrawal, CustomerDetails, bool] | None:
    """Return the customer's withdrawal, what it says, and whether the shop has to answer it.

    It says the customer's name and e-mail address, which are None after they were erased. Return
    None if there is no withdrawal; nobody can withdraw from a session that was not paid.
    """
    found = None
    if session.status is Status.COMPLETED:
        found = services.withdrawals.get(session.id)
    if found is None:
        return None
    merchant = merchants.get(services.merchants, session.merchant)
    said = details.opened_said(services.vault, merchant, found)
    return found, said, waits(session, found)


def _given(services: DashboardServices, session: Session) -> CustomerDetails | None:
    """Return the details that the customer has given, or None.

    The merchant's own record has the key that decrypts the details. It is read only if the session
    has details.
    """
    if session.customer_details is None:
        return None
    merchant = services.merchants.get(session.merchant)
    return details.opened(services.vault, merchant, session)


def _shown(session: Session, *, now: datetime, base_url: str) -> dict[str, Any]:
    """Return what the pages show in addition to the fields of the session.

    `sent` is the amount that the customer pays if `priced` is true, otherwise the reason why this
    amount is unknown. `rate` is the exchange rate. `received` is the amount that has arrived in the
    merchant's wallet so far, and `difference` is how far `received` is from the price. `can_close`
    is true if the outcome of a payment is in doubt, and the merchant can have the incoming payment
    closed. `incoming_payment` is set only if no attempt shows the incoming payment. `refundable` is
    the amount that can still be refunded, or None if that is 0; `left` is the same amount for the
    form.
    """
    status = session.status_at(now)
    endable = status in (Status.OPEN, Status.AWAITING_APPROVAL)
    chapters, incoming, failure = timeline(session), session.incoming_payment, failure_of(session)
    wallet = wallet_of(session)
    return {
        "url": f"{base_url}/pay/{session.id}",
        "look": look_of(session, now),
        "status_text": status_of(session, now),
        "amount": minor(session.amount_total, session),
        "failure": texts.FAILURE[failure] if failure else None,
        "waiting": _waiting(session, status),
        "attention": _attention(session),
        "problem": texts.PROBLEM[session.problem] if session.problem else None,
        "can_end": endable and session.phase is None,
        "can_close": session.may_close(now),
        "late": session.happened(Event.LATE_PAYMENT),
        "wallet": wallet,
        "payer": short(wallet),
        "sent": _sent(session),
        "priced": _price(session) is not None,
        "rate": _rate(session),
        "received": _received(session),
        "difference": _difference(session),
        "incoming_payment": None
        if chapters.names_incoming_payment or not incoming
        else incoming.id,
        "order": order_number(session),
        "metadata": [(name, plain(value)) for name, value in session.metadata.items()],
        "story": chapters,
        "refundable": minor(session.refundable, session) if session.refundable else None,
        "surplus": _surplus(session),
        "left": _decimal(session, session.refundable),
        "payer_known": session.outgoing_payment is not None and session.customer is not None,
    }


def _surplus(session: Session) -> tuple[str, str] | None:
    """Return the amount to send back with one click, for people and in plain digits, or None.

    For an unpaid session, the amount is all money that has arrived; for a paid session, the excess
    over the price.
    """
    owed = session.amount_total if session.status is Status.COMPLETED else 0
    value = session.refundable - owed
    return (minor(value, session), _decimal(session, value)) if value > 0 else None


def _decimal(session: Session, value: int) -> str:
    """Return `value` minor units in plain digits, for a form."""
    scale = session.receive.asset_scale
    return from_minor_units(value, currency=session.currency, wallet_scale=scale).decimal()


def _refunds(services: DashboardServices, session: Session) -> tuple[Refund, ...]:
    """Return the session's refunds, newest first. If there are none, nothing is read."""
    ids = tuple(each.id for each in reversed(session.refunds or ()))
    return services.refunds.of(ids) if ids else ()


def _budget(
    services: DashboardServices, key: Actor, session: Session, now: datetime
) -> tuple[str, str] | None:
    """Return what is left of the month's refund budget, and the budget's margin.

    The margin is how much a refund can cost beyond its own amount. Return None if the budget cannot
    pay a refund of the session.
    """
    if not session.refundable or session.outgoing_payment is None or session.customer is None:
        return None
    mandate = budget_request.find(services, key)
    if mandate is None or mandate.terms is None or not mandate.active or not mandate.left(now):
        return None
    left = readable(replace(mandate.terms.limit, value=mandate.left(now)))
    return left, margin_of(mandate.terms)


def _waiting(session: Session, status: Status) -> str:
    """Return the text of the next step. If no money has arrived and none can, the text says so."""
    waiting = texts.WAITING[_stage(session, status)]
    nothing = session.unsold and session.wallet_given and not session.received
    return f"{waiting} {texts.NONE_ARRIVED}" if nothing else waiting


def _stage(session: Session, status: Status) -> str:
    if status is Status.OPEN and session.problem is Problem.PAYMENT_FAILED:
        return "failed"  # written only after the incoming payment was closed
    if session.partly_paid:
        return "partly_paid_for_good" if session.check_at is None else "partly_paid"
    if session.closing_at is not None and session.payment_in_flight:
        return "closing"
    if session.phase is Phase.CONTINUING:
        return "continuing"
    if session.phase is Phase.PAYING:
        return "paying"
    if status is Status.PROCESSING and session.quote is None:
        return "found"
    if status is Status.COMPLETED and session.received is None:
        return "instructed"
    if status is Status.COMPLETED and _missing(session) > 0:
        return "accepted" if session.happened(Event.ACCEPTED_AS_PAID) else "short"
    if status is Status.EXPIRED and session.happened(Event.GIVEN_UP):
        return "given_up"
    return status.value


def _attention(session: Session) -> tuple[str, str] | None:
    if case_of(session) is None:
        return None
    what, todo = texts.ATTENTION[session.attention] if session.attention else texts.OVERPAID
    if session.terminal and session.attention is Attention.UNDECIDED:
        what, todo = texts.UNACCOUNTED
    received = readable(replace(session.receive, value=session.received or 0))
    return what.format(received=received, asked=readable(session.receive)), todo


def _price(session: Session) -> Quote | None:
    """Return the quote of the customer's payment, or None.

    Money from outside the checkout page may come from anybody, so no quote is shown for it.
    """
    found_outside = session.received and session.outgoing_payment is None
    return None if session.erased or found_outside else session.quote


def _sent(session: Session) -> str | None:
    """Return the amount that the customer pays, or the reason why it is not known."""
    price = _price(session)
    if price is not None:
        return readable(price.debit)
    if session.erased:
        return texts.ERASED
    return texts.OUTSIDE if session.received else None


def _rate(session: Session) -> str | None:
    """Return the exchange rate in the customer's quote, such as "1 USD = 0.9270 EUR"."""
    price = _price(session)
    found = rate_of(price.debit, price.receive) if price is not None else None
    return f"1\u00a0{found.one} = {found.rate:f}\u00a0{found.many}" if found else None


def _received(session: Session) -> str | None:
    if session.received is None:
        return None
    return readable(replace(session.receive, value=session.received))


def _difference(session: Session) -> str | None:
    """Return the difference of received amount and price, or None if all or nothing arrived."""
    missing = _missing(session)
    if not session.received or missing == 0:
        return None
    difference = readable(replace(session.receive, value=abs(missing)))
    return f"{difference} {'less' if missing > 0 else 'more'} than the price"


def _missing(session: Session) -> int:
    return session.receive.value - (session.received or 0)
