"""The payment method: its settings, the way to the payment page, cancellations and refunds."""

from __future__ import annotations

import logging
import secrets
from collections import OrderedDict
from datetime import timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

from django import forms
from django.conf import settings
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _
from pretix.base.forms import SECRET_REDACTED, SecretKeySettingsField
from pretix.base.models import Order, OrderPayment, OrderRefund
from pretix.base.payment import BasePaymentProvider, PaymentException
from pretix.base.views.redirect import safelink
from pretix.multidomain.urlreverse import eventreverse, eventreverse_absolute

from pretix_checkout_sessions import booking, endpoint
from pretix_checkout_sessions.checkout import Answer, Checkout, CheckoutError
from pretix_checkout_sessions.money import NotExact, decimal, shown, supported, units

_LANGUAGES: Final = ("en", "es", "fr", "de", "pt", "ar", "hi", "sw")  # of the checkout's pages
_PAYABLE: Final = ("open", "awaiting_approval", "processing")
_TAG: Final = "checkout-sessions"
_DAY: Final = 86_400  # seconds
_SHORTEST: Final = 1_800  # seconds

logger = logging.getLogger(__name__)


class CheckoutSessions(BasePaymentProvider):
    """Payments through the checkout whose URL and API key the organizer has set."""

    identifier = booking.PROVIDER
    verbose_name = _("Open Payments wallet (Checkout Sessions)")
    public_name = _("Open Payments wallet")
    execute_payment_needs_user = True
    abort_pending_allowed = True
    test_mode_message = _(
        "Test mode changes nothing for this payment method: unless its checkout is one for "
        "testing, your money will be sent."
    )

    # --- settings ---

    @property
    def settings_form_fields(self) -> dict[str, forms.Field]:
        """Return pretix's own fields, the checkout's address, the API key and the wallets."""
        own = [
            (
                "base_url",
                forms.URLField(
                    label=_("Address of your checkout"),
                    help_text=_("Such as https://checkout.example"),
                    assume_scheme="https",
                ),
            ),
            (
                "api_key",
                SecretKeySettingsField(
                    label=_("API key"),
                    help_text=_(
                        "Make it in your checkout's dashboard: “Everything, and refund”. The "
                        "webhook endpoint is set up by itself when you save."
                    ),
                ),
            ),
            (
                "wallets",
                forms.CharField(
                    label=_("Wallets that can pay"),
                    help_text=_("Such as GateHub. Customers read it where they choose how to pay"),
                    max_length=200,
                    required=False,
                ),
            ),
        ]
        fields = OrderedDict([*own, *super().settings_form_fields.items()])
        fields.move_to_end("_enabled", last=False)
        return fields

    def settings_form_clean(self, cleaned_data: dict[str, Any]) -> dict[str, Any]:
        """Check address, key and currency with the checkout, and make the webhook endpoint."""
        name = f"payment_{self.identifier}_"
        base_url = (cleaned_data.get(f"{name}base_url") or "").rstrip("/")
        api_key = cleaned_data.get(f"{name}api_key") or ""
        if api_key == SECRET_REDACTED:
            api_key = self.settings.get("api_key") or ""
        if not (base_url and api_key):
            return cleaned_data
        cleaned_data[f"{name}base_url"] = base_url
        if not (base_url.startswith("https://") or settings.ALLOW_HTTP_TO_PRIVATE_NETWORKS):
            raise forms.ValidationError(
                _(
                    "The address of your checkout must begin with https://. For tests with a "
                    "private address, set allow_http_to_private_networks=on in the section "
                    "[pretix] of pretix.cfg."
                )
            )
        if not supported(self.event.currency):
            raise forms.ValidationError(_("This event's currency is not supported."))
        try:
            currency = Checkout(base_url, api_key).currency()
            if currency != self.event.currency:
                raise forms.ValidationError(
                    _(
                        "The wallet of this API key is in {wallet}, and the event in {event}."
                    ).format(wallet=currency, event=self.event.currency)
                )
            endpoint.ensure(self.event.organizer, base_url, api_key)
        except CheckoutError as error:
            raise forms.ValidationError(
                _("The checkout does not accept this: {message}").format(message=error)
            ) from None
        return cleaned_data

    @cached_property
    def checkout(self) -> Checkout:
        """Return the API of the checkout. Raises CheckoutError if it is not set up."""
        base_url, api_key = self.settings.get("base_url"), self.settings.get("api_key")
        if not (base_url and api_key):
            raise CheckoutError("The checkout is not set up.", "unreachable")
        return Checkout(base_url, api_key)

    # --- before a payment ---

    @property
    def _ready(self) -> bool:
        return bool(
            self.settings.get("base_url")
            and self.settings.get("api_key")
            and supported(self.event.currency)
        )

    def is_allowed(self, request: HttpRequest, total: Decimal | None = None) -> bool:
        """Return whether customers may choose this for their cart."""
        return self._ready and super().is_allowed(request, total)

    def order_change_allowed(self, order: Order, request: HttpRequest | None = None) -> bool:
        """Return whether customers may choose this for their order."""
        return self._ready and super().order_change_allowed(order, request)

    def payment_form_render(self, *_args: Any, **_kwargs: Any) -> str:
        """Say what comes next; nothing is asked here."""
        return self.checkout_confirm_render(None)

    def checkout_confirm_render(self, *_args: Any, **_kwargs: Any) -> str:
        """Say which wallets can pay, and what comes next."""
        wallets = (self.settings.get("wallets") or "").strip()
        needed = _("You need a wallet of a provider that supports Open Payments.")
        if wallets:
            needed = _("You need a wallet of one of these providers: {wallets}.").format(
                wallets=wallets
            )
        then = _("You will go on to a page where you pay from your wallet.")
        return format_html("<p>{} {}</p>", needed, then)

    def payment_is_valid_session(self, request: HttpRequest) -> bool:
        """Return True: nothing is needed before the payment."""
        return True

    def checkout_prepare(self, request: HttpRequest, cart: dict[str, Any]) -> bool:
        """Return True: nothing is needed before the payment."""
        return True

    def payment_prepare(self, request: HttpRequest, payment: OrderPayment) -> bool:
        """Return True: nothing is needed before the payment."""
        return True

    # --- a payment ---

    def execute_payment(self, request: HttpRequest, payment: OrderPayment) -> str:
        """Return the page on which the customer pays. Raises PaymentException."""
        url = self.page(payment)
        # The page may not be shown in a frame, so it leaves the frame of pretix's widget.
        return safelink(url, framebreak=True) if request.session.get("iframe_session") else url

    def page(self, payment: OrderPayment) -> str:
        """Return the page of the payment's session, or of a new one if that has ended.

        Raises PaymentException.
        """
        try:
            session = self.sync(payment)
            payment.refresh_from_db()
            if booking.booked_of(payment):
                return self._order_url(payment)
            if session is None or session["status"] not in _PAYABLE:
                return self._new_page(payment)
        except (CheckoutError, NotExact) as error:
            logger.warning("No page for payment %s: %s", payment.full_id, error)
            raise PaymentException(
                _("The payment page cannot be opened at the moment. Please try again later.")
            ) from None
        return str(session["url"])

    def sync(self, payment: OrderPayment, identity: str | None = None) -> Answer | None:
        """Book what has arrived in a session of the payment, by default the newest; return it.

        Raises CheckoutError.
        """
        chosen = identity or booking.newest_of(payment)
        if chosen is None:
            return None
        session = self.checkout.session(chosen)
        booking.book(payment, session)
        return session

    def sync_refunds(self, payment: OrderPayment) -> None:
        """Move the refunds of the payment's session as the checkout tells.

        Raises CheckoutError.
        """
        booked = booking.booked_of(payment)
        if booked is not None:
            booking.book_refunds(payment, self.checkout.refunds(booked["session"]))

    def adopt(self, payment: OrderPayment, identity: str) -> bool:
        """Return whether the session is of this payment, also if the answer that said so was lost.

        Raises CheckoutError.
        """
        if identity in booking.sessions_of(payment):
            return True
        try:
            session = self.checkout.session(identity)
        except CheckoutError as error:
            if error.code == "resource_missing":
                return False
            raise
        if session["metadata"].get("pretix_tag") != _tag(payment):
            return False
        booking.adopt(payment, identity)
        return True

    def _new_page(self, payment: OrderPayment) -> str:
        amount = min(payment.amount, payment.order.pending_sum)
        body, count = self._body(payment, amount), len(booking.sessions_of(payment))
        key = f"pretix-{_tag(payment)}-{count}"
        try:
            session = self.checkout.create_session(body, key=key)
        except CheckoutError as error:
            # An earlier try with another amount or time, whose answer was lost: nobody has the
            # address of that session.
            if error.code != "idempotency_key_reused":
                raise
            key = f"{key}-{secrets.token_hex(8)}"
            session = self.checkout.create_session(body, key=key)
        if booking.begin(payment, session["id"], amount):
            return str(session["url"])
        self.checkout.cancel(session["id"])
        return self._order_url(payment)

    def _body(self, payment: OrderPayment, amount: Decimal) -> Answer:
        order = payment.order
        back = eventreverse_absolute(
            self.event, "plugins:pretix_checkout_sessions:return", kwargs=_names(payment)
        )
        price = {
            "currency": self.event.currency.lower(),
            "unit_amount": units(amount, self.event.currency),
            "product_data": {"name": f"{order.code}: {self.event.name}"[:200]},
        }
        body = {
            "mode": "payment",
            "line_items": [{"price_data": price, "quantity": 1}],
            "client_reference_id": order.code,
            "metadata": {
                "pretix_event": f"{self.event.organizer.slug}/{self.event.slug}",
                "pretix_order": order.code,
                "pretix_payment": payment.full_id,
                "pretix_tag": _tag(payment),
            },
            "success_url": back,
            "cancel_url": back,
            "expires_in_seconds": _lasts(order),
        }
        language = order.locale.partition("-")[0]
        return body | ({"locale": language} if language in _LANGUAGES else {})

    def _order_url(self, payment: OrderPayment) -> str:
        order = payment.order
        names = {"order": order.code, "secret": order.secret}
        return str(eventreverse(self.event, "presale:event.order", kwargs=names))

    def _payment_abort_pending_allowed(self, payment: OrderPayment) -> bool:
        """Return whether the customer may pay otherwise: not while money may be under way."""
        try:
            session = self.sync(payment)
        except CheckoutError:
            return False
        return session is None or session["status"] != "processing"

    def cancel_payment(self, payment: OrderPayment) -> None:
        """End the session, so that nobody can pay it. Raises PaymentException."""
        newest = booking.newest_of(payment)
        if newest is not None:
            try:
                self._end(payment, newest)
            except CheckoutError as error:
                raise PaymentException(
                    _("The payment cannot be canceled: {message}").format(message=error)
                ) from None
        booking.cancel(payment)

    def _end(self, payment: OrderPayment, identity: str) -> None:
        try:
            self.checkout.cancel(identity)
        except CheckoutError as error:
            if error.code != "session_unexpected_state":
                raise
            session = self.checkout.session(identity)
            if session["status"] in _PAYABLE or not booking.all_booked(payment, session):
                raise

    # --- refunds ---

    def payment_refund_supported(self, payment: OrderPayment) -> bool:
        """Return whether the payment came through the checkout."""
        return booking.booked_of(payment) is not None

    def payment_partial_refund_supported(self, payment: OrderPayment) -> bool:
        """Return whether the payment came through the checkout."""
        return self.payment_refund_supported(payment)

    def execute_refund(self, refund: OrderRefund) -> None:
        """Request the refund, which the organizer then approves in their own wallet.

        Raises PaymentException.
        """
        booked = booking.booked_of(refund.payment)
        if booked is None:
            raise PaymentException(_("This payment did not come through the checkout."))
        tag = refund.order.tagged_secret(f"{_TAG} {refund.full_id}", 32)
        try:
            body = {
                "session": booked["session"],
                "amount": units(refund.amount, self.event.currency),
                "metadata": {"pretix_order": refund.order.code, "pretix_refund": refund.full_id},
            }
            made = self.checkout.create_refund(body, key=f"pretix-{tag}")
        except (CheckoutError, NotExact) as error:
            raise PaymentException(
                _("The refund was not requested: {message}").format(message=error)
            ) from None
        refund.info_data = {"refund": made["id"]}
        refund.state = OrderRefund.REFUND_STATE_TRANSIT
        refund.save()

    # --- what people see ---

    def payment_pending_render(self, request: HttpRequest, payment: OrderPayment) -> str:
        """Return the customer's way to the payment page."""
        return format_html(
            '<p><a class="btn btn-primary btn-lg" href="{}" target="_top">{}</a></p>',
            address_to_pay(payment),
            _("Go to the payment page"),
        )

    def payment_control_render(self, request: HttpRequest, payment: OrderPayment) -> str:
        """Return links to the payment's sessions in the checkout's dashboard."""
        return self._links("transactions", booking.sessions_of(payment), booking.booked_of(payment))

    def refund_control_render(self, request: HttpRequest, refund: OrderRefund) -> str:
        """Return the link to the page on which the refund is approved, and then what it cost."""
        identity, cost = refund.info_data.get("refund"), refund.info_data.get("cost")
        html = self._links("refunds", [identity] if identity else [], None)
        if cost:
            html += format_html("<p>{} {}</p>", _("Paid by your wallet:"), shown(cost))
        return html

    def _links(self, kind: str, identities: list[str], booked: Answer | None) -> str:
        base, html = self.settings.get("base_url") or "", format_html("")
        for each in identities:
            html += format_html(
                '<p><a href="{}/dashboard/{}/{}" target="_blank" rel="noopener">{}</a></p>',
                base,
                kind,
                each,
                each,
            )
        if booked:
            html += format_html(
                "<p>{} {} {}</p>",
                _("Received in your wallet:"),
                decimal(booked["amount"], self.event.currency),
                self.event.currency,
            )
        return html

    def refund_control_render_short(self, refund: OrderRefund) -> str:
        """Return the refund's id at the checkout, and what it cost."""
        identity, cost = self.refund_matching_id(refund) or "", refund.info_data.get("cost")
        return f"{identity} ({shown(cost)})" if cost else identity

    def matching_id(self, payment: OrderPayment) -> str | None:
        """Return the session's id."""
        booked = booking.booked_of(payment)
        return str(booked["session"]) if booked else booking.newest_of(payment)

    def refund_matching_id(self, refund: OrderRefund) -> str | None:
        """Return the refund's id at the checkout."""
        return refund.info_data.get("refund")

    def api_payment_details(self, payment: OrderPayment) -> Answer:
        """Return the ids of the payment's sessions."""
        return {"sessions": booking.sessions_of(payment)}

    def api_refund_details(self, refund: OrderRefund) -> Answer:
        """Return the refund's id at the checkout, and what the organizer's wallet paid for it."""
        return {name: refund.info_data.get(name) for name in ("refund", "cost")}

    def shred_payment_info(self, obj: OrderPayment | OrderRefund) -> None:
        """Keep the ids: they are not personal data, and late money is booked by them."""


def _tag(payment: OrderPayment) -> str:
    """Return what only this payment has, of all shops that share the merchant."""
    return str(payment.order.tagged_secret(f"{_TAG} {payment.full_id}", 32))


def _names(payment: OrderPayment) -> dict[str, Any]:
    return {"order": payment.order.code, "tag": _tag(payment), "payment": payment.pk}


def provider_of(payment: OrderPayment) -> CheckoutSessions:
    """Return the payment's method, also of an event that has disabled the plugin since."""
    return CheckoutSessions(payment.order.event)


def address_to_pay(payment: OrderPayment) -> str:
    """Return the address that leads the customer to the payment page."""
    name = "plugins:pretix_checkout_sessions:pay"
    return str(eventreverse(payment.order.event, name, kwargs=_names(payment)))


def is_tag_of(payment: OrderPayment, tag: str) -> bool:
    """Return whether an address of ours for this payment has this tag."""
    return secrets.compare_digest(tag.encode(), _tag(payment).encode())


def _lasts(order: Order) -> int:
    """Return for how many seconds a new session can be paid: until the order expires."""
    left = (order.expires - now()) // timedelta(seconds=1)
    return max(_SHORTEST, min(_DAY, left))
