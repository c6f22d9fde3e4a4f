"""Book in pretix what the checkout says has arrived and was sent back.

Webhooks, the customer's return and the periodic task only say that there may be news. The API says
what is booked, so a repeated, old or forged message books nothing. Each session is booked up to its
`amount_received`, under the lock of the order, so nothing is booked twice.

A payment's `info` has `sessions`, the ids of its sessions with the newest last, and, once money of
a session was booked with it, `booked`: that session and the number of units.
"""

from __future__ import annotations

import logging
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from django.db import transaction
from pretix.base.models import Order, OrderPayment, OrderRefund, Quota
from pretix.base.payment import PaymentException
from pretix.helpers import OF_SELF

from pretix_checkout_sessions.money import decimal

PROVIDER: Final = "checkoutsessions"
_OPEN: Final = (OrderPayment.PAYMENT_STATE_CREATED, OrderPayment.PAYMENT_STATE_PENDING)
_BOOKED: Final = (OrderPayment.PAYMENT_STATE_CONFIRMED, OrderPayment.PAYMENT_STATE_REFUNDED)
_SENT: Final = ("succeeded", "failed")

logger = logging.getLogger(__name__)


def sessions_of(payment: OrderPayment) -> list[str]:
    """Return the ids of the payment's sessions, the newest last."""
    return list(payment.info_data.get("sessions", []))


def newest_of(payment: OrderPayment) -> str | None:
    """Return the id of the payment's newest session."""
    found = sessions_of(payment)
    return found[-1] if found else None


def booked_of(payment: OrderPayment) -> dict[str, Any] | None:
    """Return the session whose money was booked with this payment, and the number of units."""
    return payment.info_data.get("booked")


def begin(payment: OrderPayment, session: str, amount: Decimal) -> bool:
    """Let the payment wait for this amount in a new session.

    Return False if it waits no more: it was booked or canceled while the session was created.
    """
    with transaction.atomic():
        _locked(payment)
        payment.refresh_from_db()
        if booked_of(payment) or payment.state not in _OPEN:
            return False
        payment.state = OrderPayment.PAYMENT_STATE_PENDING
        payment.amount = amount
        _add_session(payment, session, newest=True)
    return True


def adopt(payment: OrderPayment, session: str) -> None:
    """Add the id of a session that is the payment's, as its oldest."""
    with transaction.atomic():
        _locked(payment)
        payment.refresh_from_db()
        _add_session(payment, session, newest=False)


def cancel(payment: OrderPayment) -> None:
    """Mark the payment as canceled, unless its money has come meanwhile."""
    waits = OrderPayment.objects.filter(pk=payment.pk).exclude(state__in=_BOOKED)
    waits.update(state=OrderPayment.PAYMENT_STATE_CANCELED)
    payment.refresh_from_db(fields=["state"])


def _add_session(payment: OrderPayment, session: str, *, newest: bool) -> None:
    others = [each for each in sessions_of(payment) if each != session]
    sessions = [*others, session] if newest else [session, *others]
    payment.info_data = {**payment.info_data, "sessions": sessions}
    payment.save(update_fields=["state", "amount", "info"])


def all_booked(payment: OrderPayment, session: dict[str, Any]) -> bool:
    """Return whether everything that has arrived in the session was booked."""
    mine = payment.order.payments.filter(provider=PROVIDER)
    return sum(_units(each, session) for each in mine) >= (session["amount_received"] or 0)


def book(payment: OrderPayment, session: dict[str, Any]) -> None:
    """Book what has arrived in a session of this payment and was not booked yet."""
    with transaction.atomic():
        order = _locked(payment)
        mine = list(order.payments.filter(provider=PROVIDER))
        received = session["amount_received"] or 0
        before = sum(_units(each, session) for each in mine)
        if received > before:
            mine.append(_kept(order, mine, session, received - before))
            _expect_rest(order, mine, session, received)
        # One of an earlier call that was cut off before it was confirmed is confirmed now.
        due = [each for each in mine if _units(each, session) and each.state not in _BOOKED]
    for each in due:
        try:
            each.confirm()
        except Quota.QuotaExceededException:
            # The money is booked; pretix has noted at the order that it is sold out.
            logger.warning("Payment %s came when the order was sold out.", each.full_id)
    if due:
        _end_others(order)


def book_refunds(payment: OrderPayment, refunds: list[dict[str, Any]]) -> None:
    """Move the refunds of this payment's order as the checkout tells, and add those made there."""
    for told in refunds:
        with transaction.atomic():
            _book_refund(_locked(payment), payment, told)


def _locked(payment: OrderPayment) -> Order:
    return Order.objects.select_for_update(of=OF_SELF).get(pk=payment.order_id)


def _units(payment: OrderPayment, session: dict[str, Any]) -> int:
    """Return how many units of the session were booked with this payment."""
    booked = booked_of(payment)
    return int(booked["amount"]) if booked and booked["session"] == session["id"] else 0


def _kept(
    order: Order, mine: list[OrderPayment], session: dict[str, Any], value: int
) -> OrderPayment:
    """Return the payment that books `value` units: the one that waits for them, or a new one."""
    waits = (each for each in mine if not booked_of(each) and newest_of(each) == session["id"])
    payment = next(waits, None) or OrderPayment(
        order=order, provider=PROVIDER, state=OrderPayment.PAYMENT_STATE_CREATED
    )
    if payment.pk is not None:
        mine.remove(payment)
    payment.amount = decimal(value, order.event.currency)
    payment.info_data = {
        "sessions": sessions_of(payment) or [session["id"]],
        "booked": {"session": session["id"], "amount": value},
    }
    payment.save()
    return payment


def _expect_rest(
    order: Order, mine: list[OrderPayment], session: dict[str, Any], received: int
) -> None:
    """Add a payment that waits for the rest, while more may arrive in the session.

    It keeps the customer from paying the rest a second time meanwhile.
    """
    rest = session["amount_total"] - received
    waiting = any(not booked_of(each) and newest_of(each) == session["id"] for each in mine)
    if rest > 0 and session["status"] == "processing" and not waiting:
        order.payments.create(
            provider=PROVIDER,
            state=OrderPayment.PAYMENT_STATE_PENDING,
            amount=decimal(rest, order.event.currency),
            info=_with_sessions([session["id"]]),
        )


def _with_sessions(sessions: list[str]) -> str:
    made = OrderPayment()
    made.info_data = {"sessions": sessions}
    return str(made.info)


def _end_others(order: Order) -> None:
    """End the sessions that the customer could still pay for an order that is paid."""
    from pretix_checkout_sessions.payment import provider_of  # it imports this module

    order.refresh_from_db()
    if order.pending_sum > 0:
        return
    for each in order.payments.filter(provider=PROVIDER, state__in=_OPEN):
        try:
            provider_of(each).cancel_payment(each)
            order.log_action(
                "pretix.event.order.payment.canceled",
                {"local_id": each.local_id, "provider": each.provider},
            )
        except PaymentException as error:
            logger.warning("Payment %s was not canceled: %s", each.full_id, error)


def _book_refund(order: Order, payment: OrderPayment, told: dict[str, Any]) -> None:
    known = _known(order, told)
    sent = told["amount_sent"] if told["status"] in _SENT else 0
    if sent:
        amount = decimal(sent, order.event.currency)
        if known is None:
            ended = datetime.fromisoformat(told["ended_at"]) if told["ended_at"] else None
            info = OrderRefund()
            info.info_data = {"refund": told["id"], "cost": told["cost"]}
            payment.create_external_refund(amount=amount, execution_date=ended, info=info.info)
        elif known.state not in (
            OrderRefund.REFUND_STATE_DONE,
            OrderRefund.REFUND_STATE_EXTERNAL,
        ):
            known.amount = amount
            known.info_data |= {"refund": told["id"], "cost": told["cost"]}
            known.done()
    elif known is not None and known.state in (
        OrderRefund.REFUND_STATE_CREATED,
        OrderRefund.REFUND_STATE_TRANSIT,
    ):
        known.info_data = {**known.info_data, "refund": told["id"]}
        if told["status"] in ("failed", "canceled"):
            known.state = (
                OrderRefund.REFUND_STATE_CANCELED
                if told["status"] == "canceled"
                else OrderRefund.REFUND_STATE_FAILED
            )
            order.log_action(
                f"pretix.event.order.refund.{known.state}",
                {"local_id": known.local_id, "provider": known.provider},
            )
        known.save()


def _known(order: Order, told: dict[str, Any]) -> OrderRefund | None:
    """Return pretix's refund: by the checkout's id, or by the name that was given with it."""
    named = told["metadata"].get("pretix_refund")
    for each in order.refunds.filter(provider=PROVIDER):
        found = each.info_data.get("refund")
        if found == told["id"] or (found is None and each.full_id == named):
            return each
    return None
