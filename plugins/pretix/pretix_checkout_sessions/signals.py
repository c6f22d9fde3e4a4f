"""Receivers of pretix's signals: for the list of payment methods, and every few minutes."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any, Final

from django.dispatch import receiver
from django.utils.timezone import now
from django_scopes import scopes_disabled
from pretix.base.models import OrderPayment, OrderRefund
from pretix.base.signals import periodic_task, register_payment_providers
from pretix.helpers.periodic import minimum_interval

from pretix_checkout_sessions.booking import PROVIDER
from pretix_checkout_sessions.checkout import CheckoutError
from pretix_checkout_sessions.payment import CheckoutSessions, provider_of

_WAITED_FOR: Final = timedelta(days=31)  # an order's term, and a refund that nobody approves
_AT_ONCE: Final = 200  # calls of a run, so that it ends

logger = logging.getLogger(__name__)


@receiver(register_payment_providers, dispatch_uid="checkoutsessions_provider")
def provider(sender: Any, **_kwargs: Any) -> type[CheckoutSessions]:
    """Return the payment method."""
    return CheckoutSessions


@receiver(periodic_task, dispatch_uid="checkoutsessions_look_again")
@minimum_interval(minutes_after_success=10, minutes_after_error=10)
@scopes_disabled()
def look_again(sender: Any, **_kwargs: Any) -> None:
    """Ask about what is pending, in case that no webhook came."""
    since = now() - _WAITED_FOR
    payments = OrderPayment.objects.filter(
        provider=PROVIDER, state=OrderPayment.PAYMENT_STATE_PENDING, created__gte=since
    )
    for payment in payments.order_by("-created")[:_AT_ONCE]:
        _tried(payment, provider_of(payment).sync)
    refunds = OrderRefund.objects.filter(
        provider=PROVIDER,
        state__in=(OrderRefund.REFUND_STATE_CREATED, OrderRefund.REFUND_STATE_TRANSIT),
        created__gte=since,
        payment__isnull=False,
    )
    for refund in refunds.order_by("-created")[:_AT_ONCE]:
        _tried(refund.payment, provider_of(refund.payment).sync_refunds)


def _tried(payment: OrderPayment, sync: Any) -> None:
    try:
        sync(payment)
    except CheckoutError as error:
        logger.warning("Nothing is known about payment %s: %s", payment.full_id, error)
