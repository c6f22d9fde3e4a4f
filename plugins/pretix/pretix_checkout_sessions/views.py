"""The webhook endpoint, and the customer's ways to and from the payment page."""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST
from django_scopes import scope
from pretix.base.models import Order, OrderPayment, Organizer
from pretix.base.payment import PaymentException
from pretix.multidomain.urlreverse import eventreverse

from pretix_checkout_sessions import booking, endpoint
from pretix_checkout_sessions.checkout import CheckoutError
from pretix_checkout_sessions.payment import is_tag_of, provider_of

_BODY_MAX: Final = 256 * 1024  # bytes

logger = logging.getLogger(__name__)


@csrf_exempt
@require_POST
def webhook(request: HttpRequest, organizer: str) -> HttpResponse:
    """Look at the session that a signed delivery names.

    The checkout sends the events of all of the merchant's sessions here: those of others are
    answered with 200 too. It repeats what was not answered with 200.
    """
    found = get_object_or_404(Organizer, slug=organizer)
    if len(request.body) > _BODY_MAX:
        return HttpResponse("Too long.", status=413, content_type="text/plain")
    signature = request.headers.get("Checkout-Signature", "")
    if not endpoint.is_genuine(found, request.body, signature):
        return HttpResponse("Not signed.", status=400, content_type="text/plain")
    try:
        told = json.loads(request.body)
    except ValueError:
        told = None
    if isinstance(told, dict):
        try:
            with scope(organizer=found):
                _look(found, told)
        except CheckoutError as error:
            logger.warning("A delivery could not be looked at: %s", error)
            return HttpResponse("Try again.", status=503, content_type="text/plain")
    return HttpResponse("Thank you.", content_type="text/plain")


def _look(organizer: Organizer, told: dict[str, Any]) -> None:
    if told.get("object") == "refund":
        payment = _booking(organizer, str(told.get("session")))
        if payment is not None:
            provider_of(payment).sync_refunds(payment)
        return
    identity = str(told.get("id"))
    payment = _named(organizer, told.get("metadata"))
    if payment is not None and provider_of(payment).adopt(payment, identity):
        provider_of(payment).sync(payment, identity)


def _named(organizer: Organizer, metadata: Any) -> OrderPayment | None:
    """Return the payment that the metadata of a session names."""
    if not isinstance(metadata, dict):
        return None
    slug = str(metadata.get("pretix_event")).partition("/")[2]
    code, _between, number = str(metadata.get("pretix_payment")).rpartition("-P-")
    if not (number.isascii() and number.isdecimal() and len(number) < 9):
        return None
    return OrderPayment.objects.filter(
        provider=booking.PROVIDER,
        order__event__organizer=organizer,
        order__event__slug=slug,
        order__code=code,
        local_id=int(number),
    ).first()


def _booking(organizer: Organizer, session: str) -> OrderPayment | None:
    """Return the first payment with which money of the session was booked."""
    candidates = OrderPayment.objects.filter(
        provider=booking.PROVIDER,
        order__event__organizer=organizer,
        info__contains=json.dumps(session),
    )
    found = (
        each for each in candidates if (booking.booked_of(each) or {}).get("session") == session
    )
    return next(found, None)


@require_GET
def pay(request: HttpRequest, order: str, tag: str, payment: str, **_names: Any) -> HttpResponse:
    """Lead the customer to the payment page, of a new session if the last one has ended."""
    found = _own(request, order, tag, payment)
    provider = provider_of(found)
    if (
        found.order.status not in (Order.STATUS_PENDING, Order.STATUS_EXPIRED)
        or found.state != OrderPayment.PAYMENT_STATE_PENDING
        or not provider.is_enabled
        or found.order._can_be_paid() is not True
    ):
        messages.error(request, _("The payment for this order cannot be continued."))
        return redirect(_order_page(found.order))
    try:
        return redirect(provider.page(found))
    except PaymentException as error:
        messages.error(request, str(error))
        return redirect(_order_page(found.order))


@require_GET
def came_back(
    request: HttpRequest, order: str, tag: str, payment: str, **_names: Any
) -> HttpResponse:
    """Book what has arrived, and show the order."""
    found = _own(request, order, tag, payment)
    try:
        provider_of(found).sync(found)
    except CheckoutError as error:
        logger.warning("Nothing is known about payment %s: %s", found.full_id, error)
    found.order.refresh_from_db()
    paid = found.order.status == Order.STATUS_PAID
    return redirect(_order_page(found.order) + ("?paid=yes" if paid else ""))


def _own(request: HttpRequest, order: str, tag: str, payment: str) -> OrderPayment:
    """Return the payment that an address of ours names, or answer 404."""
    found = get_object_or_404(
        OrderPayment,
        order__event=request.event,
        order__code=order,
        provider=booking.PROVIDER,
        pk=payment,
    )
    if not is_tag_of(found, tag):
        get_object_or_404(OrderPayment.objects.none())
    return found


def _order_page(order: Order) -> str:
    names = {"order": order.code, "secret": order.secret}
    return str(eventreverse(order.event, "presale:event.order", kwargs=names))
