"""Remove a customer's wallet from records: its address, and everything that belongs to it.

A record is cleaned of the address in every spelling. A session of this customer also loses the
wallet, its quote and its outgoing payment, whose addresses may name the customer, all that the
customer gave, and the e-mail address that the shop gave. Times, amounts and the merchant's own
incoming payment stay: they are the merchant's accounts.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Final, TypeVar

from checkout.domain.grammar import SESSION_ID
from checkout.domain.machine import Change
from checkout.domain.payment_attempt import PaymentAttempt
from checkout.domain.refund import Refund
from checkout.domain.search import same_text
from checkout.domain.session import Session
from checkout.domain.webhooks import WebhookEvent, compact

T = TypeVar("T")

ERASED: Final = "erased"  # replaces the wallet's address in a text

# A slash in plain text, in JSON, and percent-encoded; the same for the characters before the host.
_SLASH: Final = r"(?:\\?/|%2F)"
_BEFORE: Final = rf"(?<![A-Za-z0-9.@-])(?:https(?::|%3A){_SLASH}{_SLASH}|\$|%24)?"
# The address must end here: a longer one is another wallet, or a resource of a wallet.
_BEHIND: Final = rf"{_SLASH}?(?![/\\A-Za-z0-9_~-]|\.[A-Za-z0-9]|%(?:2F|[89A-F]))"
# The fields with an event's bodies, one for each form.
_BODIES: Final = tuple(each.name for each in fields(WebhookEvent) if each.name.endswith("body"))
# The session's fields about its customer in events and responses (domain/public.py).
_OF_THE_CUSTOMER: Final = frozenset({"customer_wallet", "outgoing_payment", "paid_elsewhere"})


@dataclass(frozen=True, slots=True)
class Wallet:
    """A wallet address to be erased; `url` is its https URL. It is not shown in logs."""

    url: str = field(repr=False)
    _pattern: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        words = re.escape(same_text(self.url)).replace("/", _SLASH)
        object.__setattr__(self, "_pattern", re.compile(_BEFORE + words + _BEHIND, re.IGNORECASE))

    def gave(self, session: Session) -> bool:
        """Return whether this is the wallet of the session's customer."""
        customer = session.customer
        return customer is not None and same_text(customer.id) == same_text(self.url)

    def received(self, refund: Refund) -> bool:
        """Return whether this is the wallet that a refund goes to."""
        return same_text(refund.wallet) == same_text(self.url) or self.cleaned(refund) is not refund

    def cleaned(self, record: T) -> T:
        """Return a frozen record, text or tuple without the address; itself if it has none."""
        after = self._cleaned(record)
        return record if after == record else after

    def _cleaned(self, value: Any) -> Any:
        if type(value) is str:  # an enum's text is not about a customer
            return self._pattern.sub(ERASED, value)
        if isinstance(value, tuple):
            return tuple(self._cleaned(each) for each in value)
        if is_dataclass(value) and not isinstance(value, type):
            kept = {each.name: self._cleaned(getattr(value, each.name)) for each in fields(value)}
            return replace(value, **kept)
        return value


def in_session(session: Session, wallet: Wallet) -> bool:
    """Return whether the session contains anything of the wallet."""
    return wallet.gave(session) or _cleaned(session, wallet) != session


def without_wallet(change: Change[Session], wallet: Wallet) -> Change[Session]:
    """Return the change of `Event.ERASED` with the wallet removed from the session."""
    after = change.after
    if wallet.gave(after):
        after = replace(
            after,
            customer=None,
            quote=None,
            outgoing_payment=None,
            customer_details=None,
            customer_further=None,
            customer_mark=None,
            echo_json=_without_email(after.echo_json),
        )
        # Fields that a later release has stored may be about the customer, too.
        after = replace(after, later_json=None)
    attempts = tuple(_attempt_without(each, wallet) for each in after.payment_attempts)
    after = replace(after, payment_attempts=attempts)
    return replace(change, after=_cleaned(after, wallet))


def _without_email(echo_json: str | None) -> str | None:
    """Return what a request to /v1 gave without the customer's e-mail address."""
    if echo_json is None:
        return None
    echo = json.loads(echo_json)
    return compact(echo) if echo.pop("customer_email", None) is not None else echo_json


def refund_without(change: Change[Refund], wallet: Wallet) -> Change[Refund]:
    """Return the change of `RefundEvent.ERASED` with the wallet removed from the refund."""
    after = replace(
        change.after,
        wallet="",
        elsewhere=None if change.after.elsewhere is None else "",
        customer=None,
        incoming_payment=None,
        quote=None,
        later_json=None,
    )
    return replace(change, after=wallet.cleaned(after))


def _attempt_without(attempt: PaymentAttempt, wallet: Wallet) -> PaymentAttempt:
    """Return a payment attempt without the wallet.

    The typed text is removed, too: it may be another address of the customer, which redirects to
    this wallet.
    """
    named = (attempt.wallet, attempt.typed)
    if all(name is None or wallet.cleaned(name) == name for name in named):
        return attempt
    return replace(attempt, typed=None, wallet=None, quote=None, outgoing_payment=None)


def _cleaned(session: Session, wallet: Wallet) -> Session:
    """Return the session without the address.

    A URL that equals the address belongs to the merchant.
    """
    after = wallet.cleaned(session)
    urls = {name: getattr(after, name) for name in ("success_url", "cancel_url")}
    own = {name: getattr(session, name) for name, url in urls.items() if url.startswith(ERASED)}
    return replace(after, **own) if own else after


def event_without_wallet(
    event: WebhookEvent, wallet: Wallet, *, answers: bool = False
) -> WebhookEvent:
    """Return the next version of an event without the wallet; the same if it has nothing of it.

    If its customer is erased, the receivers' answers are removed, too, because they may repeat the
    body. With `answers` they are removed although no body names this wallet.
    """
    bodies = {name: getattr(event, name) for name in _BODIES}
    changed: dict[str, Any] = {
        name: without
        for name, body in bodies.items()
        if body is not None and (without := body_without_wallet(body, wallet)) != body
    }
    if changed or (answers and any(each.answer for each in event.deliveries)):
        deliveries = tuple(replace(each, answer=None) for each in event.deliveries)
        event = replace(event, deliveries=deliveries, **changed)
    elif wallet.cleaned(event) is event:
        return event
    return replace(wallet.cleaned(event), version=event.version + 1)


def body_without_wallet(body: str, wallet: Wallet) -> str:
    """Return a JSON text without the wallet, or unchanged if it contains nothing of it.

    The stored answer of a purchase at a payment link is no JSON: it is the session's id.
    """
    if SESSION_ID.fullmatch(body):
        return body
    value = json.loads(body)
    after = _without(value, wallet)
    return wallet.cleaned(body if after == value else compact(after))


def _without(value: Any, wallet: Wallet) -> Any:
    """Return a JSON value in which no object names this wallet as its customer's."""
    if isinstance(value, list):
        return [_without(each, wallet) for each in value]
    if not isinstance(value, dict):
        return value
    named = value.get("customer_wallet")
    mine = isinstance(named, str) and same_text(named) == same_text(wallet.url)
    return {
        name: None if mine and name in _OF_THE_CUSTOMER else _without(each, wallet)
        for name, each in value.items()
    }
