"""Remove a customer from records: wallet addresses, e-mail addresses and personal details.

The addresses are removed from every record, in every spelling. If a session belongs to the
customer, the session, its refunds and its events also lose all wallets, quotes and outgoing
payments, whose URLs may name the customer. The same records also lose all details that the customer
gave, and the e-mail address that the shop gave. Times, amounts and the merchant's own incoming
payment stay, because the merchant's accounts need them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Final, TypeVar

from checkout.domain.ground.json_values import compact
from checkout.domain.payment.attempt import PaymentAttempt
from checkout.domain.payment.machine import Change
from checkout.domain.refund.record import Refund
from checkout.domain.reports.search_terms import same_text
from checkout.domain.session.record import Session
from checkout.domain.webhooks.record import WebhookEvent

T = TypeVar("T")

ERASED: Final = "erased"  # replaces an address in a text

# A slash in plain text, in JSON, and percent-encoded. The scheme or "$" in front of a host can have
# the same three forms.
_SLASH: Final = r"(?:\\?/|%2F)"
_BEFORE: Final = rf"(?<![A-Za-z0-9.@-])(?:https(?::|%3A){_SLASH}{_SLASH}|\$|%24)?"
# The address must end here, because a longer address is another wallet, or a resource of a wallet.
_BEHIND: Final = rf"{_SLASH}?(?![/\\A-Za-z0-9_~-]|\.[A-Za-z0-9]|%(?:2F|[89A-F]))"
# An e-mail address must begin and end here, because a longer address belongs to somebody else.
_BEFORE_EMAIL: Final = r"(?:(?<![A-Za-z0-9._+~-])|(?<=%[0-9A-F]{2}))"
_BEHIND_EMAIL: Final = r"(?![A-Za-z0-9_-]|\.[A-Za-z0-9])"
# The fields that contain an event's bodies, one field for each form.
_BODIES: Final = tuple(each.name for each in fields(WebhookEvent) if each.name.endswith("body"))
# The session's fields about its customer in events and responses (domain/session/public.py).
_OF_THE_CUSTOMER: Final = frozenset({"customer_wallet", "outgoing_payment", "paid_elsewhere"})
# The objects of /v1 (the API for Stripe's libraries) whose field `email` has the e-mail address
# that the shop gave. A session also has the address as `customer_email` (domain/stripe/objects.py).
_WITH_EMAIL: Final = frozenset({"customer_details", "billing_details"})


@dataclass(frozen=True, slots=True)
class Customer:
    """A customer who is to be erased. Logs do not show the addresses.

    `wallets` are https URLs, `emails` are e-mail addresses. `sessions` are the ids of the sessions
    that belong to the customer, even if a session names another wallet. `withdrawals` are the ids
    of sessions with another e-mail address. From each of these sessions, only its withdrawal
    (session/withdrawal.py) is erased, because only the withdrawal belongs to the customer.
    """

    wallets: tuple[str, ...] = field(default=(), repr=False)
    emails: tuple[str, ...] = field(default=(), repr=False)
    sessions: frozenset[str] = frozenset()
    withdrawals: frozenset[str] = frozenset()
    _pattern: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        spellings = [*map(_of_wallet, self.wallets), *map(_of_email, self.emails)]
        pattern = re.compile("|".join(spellings) or "(?!)", re.IGNORECASE)
        object.__setattr__(self, "_pattern", pattern)

    def has(self, wallet: str) -> bool:
        """Return whether this wallet belongs to the customer."""
        return same_text(wallet) in map(same_text, self.wallets)

    def gave(self, session: Session) -> bool:
        """Return whether the session belongs to this customer."""
        paying = session.customer
        return session.id in self.sessions or (paying is not None and self.has(paying.id))

    def received(self, refund: Refund) -> bool:
        """Return whether a refund goes to a wallet of the customer or contains their address."""
        return self.has(refund.wallet) or self.cleaned(refund) is not refund

    def cleaned(self, record: T) -> T:
        """Return `record` (a frozen dataclass, a text or a tuple) without the addresses.

        If the record contains none of the addresses, the same object is returned.
        """
        after = self._cleaned(record)
        return record if after == record else after

    def _cleaned(self, value: Any) -> Any:
        if type(value) is str:  # a StrEnum's text is never a customer's address
            return self._pattern.sub(ERASED, value)
        if isinstance(value, tuple):
            return tuple(self._cleaned(each) for each in value)
        if is_dataclass(value) and not isinstance(value, type):
            kept = {each.name: self._cleaned(getattr(value, each.name)) for each in fields(value)}
            return replace(value, **kept)
        return value


def _of_wallet(url: str) -> str:
    """Return a pattern that matches every spelling of a wallet address."""
    return _BEFORE + re.escape(same_text(url)).replace("/", _SLASH) + _BEHIND


def _of_email(email: str) -> str:
    """Return a pattern that matches an e-mail address, as it is or percent-encoded."""
    words = re.escape(same_text(email)).replace("@", "(?:@|%40)").replace(r"\+", r"(?:\+|%2B)")
    return _BEFORE_EMAIL + words + _BEHIND_EMAIL


def in_session(session: Session, customer: Customer) -> bool:
    """Return whether the session contains anything about the customer."""
    return _without_customer(session, customer) != session


def gave_email(session: Session, email: str, mark: str | None) -> bool:
    """Return whether the session has this e-mail address, from the customer or from the shop.

    `mark` is a hash of the address under the key of the session's merchant; None if this merchant
    does not exist. The hash is compared with the session's hash of the customer's address. The
    address that the shop gave to /v1 is compared as text.
    """
    if mark is not None and session.customer_mark == mark:
        return True
    echoed = _echoed_email(session)
    return echoed is not None and same_text(echoed) == same_text(email)


def has_email(session: Session) -> bool:
    """Return whether the session has any e-mail address of its customer."""
    return session.customer_mark is not None or _echoed_email(session) is not None


def _echoed_email(session: Session) -> str | None:
    echoed = json.loads(session.echo_json or "{}").get("customer_email")
    return echoed if isinstance(echoed, str) else None


def without_wallet(change: Change[Session], customer: Customer) -> Change[Session]:
    """Return the change made by `Event.ERASED`, with the customer removed from the session."""
    return replace(change, after=_without_customer(change.after, customer))


def _without_customer(session: Session, customer: Customer) -> Session:
    after, theirs = session, customer.gave(session)
    if theirs:
        after = replace(
            after,
            customer=None,
            quote=None,
            outgoing_payment=None,
            customer_details=None,
            customer_further=None,
            customer_mark=None,
            customer_marks=None,
            echo_json=_without_email(after.echo_json),
        )
        # Fields that a later release has stored may be about the customer, too.
        after = replace(after, later_json=None)
    attempts = tuple(_attempt_without(each, customer, theirs) for each in after.payment_attempts)
    after = replace(after, payment_attempts=attempts)
    return _cleaned(after, customer)


def _without_email(echo_json: str | None) -> str | None:
    """Return the parameters of a request to /v1, without the customer's e-mail address."""
    if echo_json is None:
        return None
    echo = json.loads(echo_json)
    return compact(echo) if echo.pop("customer_email", None) is not None else echo_json


def refund_without(change: Change[Refund], customer: Customer) -> Change[Refund]:
    """Return the change made by `RefundEvent.ERASED`, with the wallet removed from the refund."""
    after = replace(
        change.after,
        wallet="",
        elsewhere=None if change.after.elsewhere is None else "",
        customer=None,
        incoming_payment=None,
        quote=None,
        later_json=None,
    )
    return replace(change, after=customer.cleaned(after))


def _attempt_without(attempt: PaymentAttempt, customer: Customer, theirs: bool) -> PaymentAttempt:
    """Return a payment attempt without the wallet, if the wallet or the session is the customer's.

    The text that was typed as the wallet is removed, too, because this text may be another address
    of the customer that redirects to the wallet.
    """
    named = (attempt.wallet, attempt.typed)
    if not theirs and all(name is None or customer.cleaned(name) == name for name in named):
        return attempt
    return replace(attempt, typed=None, wallet=None, quote=None, outgoing_payment=None)


def _cleaned(session: Session, customer: Customer) -> Session:
    """Return the session without the addresses.

    `success_url` and `cancel_url` belong to the merchant, so they stay even if they begin with an
    address of the customer.
    """
    after = customer.cleaned(session)
    urls = {name: getattr(after, name) for name in ("success_url", "cancel_url")}
    own = {name: getattr(session, name) for name, url in urls.items() if url.startswith(ERASED)}
    return replace(after, **own) if own else after


def event_without_wallet(
    event: WebhookEvent, customer: Customer, *, theirs: bool = False
) -> WebhookEvent:
    """Return the next version of an event without the customer; the event itself if unchanged.

    A changed event also loses the receivers' answers, because they may repeat the body. `theirs`
    means that the event's session belongs to the customer, so the event loses its answers and every
    wallet.
    """
    changed: dict[str, Any] = {
        name: without
        for name in _BODIES
        if (body := getattr(event, name)) is not None
        and (without := body_without_wallet(body, customer, theirs=theirs)) != body
    }
    if changed or (theirs and any(each.answer for each in event.deliveries)):
        deliveries = tuple(replace(each, answer=None) for each in event.deliveries)
        event = replace(event, deliveries=deliveries, **changed)
    elif customer.cleaned(event) is event:
        return event
    return replace(customer.cleaned(event), version=event.version + 1)


def body_without_wallet(body: str, customer: Customer, *, theirs: bool = False) -> str:
    """Return a JSON text without the customer, or unchanged if it contains nothing of them.

    If `theirs` is true, all wallets in the text belong to the customer, and so does the e-mail
    address that the shop gave. Two kinds of stored answers are not JSON: for a purchase at a
    payment link, the answer is the session's id; for a webhook endpoint, it is an encrypted text.
    Neither names a customer, so both stay as they are.
    """
    try:
        value = json.loads(body)
    except ValueError:
        return body
    after = _without(value, customer, theirs)
    return customer.cleaned(body if after == value else compact(after))


def _without(value: Any, customer: Customer, theirs: bool, where: str = "") -> Any:
    """Return a JSON value in which no object names a wallet of this customer.

    `where` is the name of the field that contains `value` in the surrounding object.
    """
    if isinstance(value, list):
        return [_without(each, customer, theirs) for each in value]
    if not isinstance(value, dict):
        return value
    named = value.get("customer_wallet")
    mine = isinstance(named, str) and (theirs or customer.has(named))
    gone = _OF_THE_CUSTOMER if mine else frozenset()
    if theirs and where != "metadata":
        gone |= {"customer_email", "email"} if where in _WITH_EMAIL else {"customer_email"}
    return {
        name: None if name in gone else _without(each, customer, theirs, name)
        for name, each in value.items()
    }
