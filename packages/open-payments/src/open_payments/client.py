"""`OpenPayments`: the resources of the standard, for one client.

It keeps the tokens that need no approval, and has one deadline for the calls of each method.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, Self, TypeVar

from open_payments import models, protocol
from open_payments.errors import NotSent
from open_payments.interaction import Grant, Limits, PendingGrant
from open_payments.models import (
    AccessToken,
    Amount,
    ClientIdentity,
    Continued,
    GrantSpent,
    IncomingPayment,
    Jwk,
    Metadata,
    OutgoingPayment,
    PublicIncomingPayment,
    Quote,
    WalletAddress,
)
from open_payments.protocol import Access, ClientForms
from open_payments.signatures import SigningKey
from open_payments.tokens import TokenKeeper
from open_payments.transports import Transport
from open_payments.wallet_address import parse

T = TypeVar("T")
_HOUR: Final = timedelta(hours=1)


class OpenPayments:
    """A client with the `wallet_address` and the `key` that sign. Safe between threads.

    `client` is the URL whose `jwks.json` has the key, by default the wallet address. `timeout`, in
    seconds, limits all calls of one method together. The default `transport` is `PublicTransport`.
    `object_first` is as in `protocol.ClientForms`, `directed` as in `models.ClientIdentity`.
    `development` allows loopback addresses, ports and plain http. Methods raise
    `errors.OpenPaymentsError`.
    """

    def __init__(
        self,
        wallet_address: str,
        key: SigningKey | None,
        *,
        client: str | None = None,
        transport: Transport | None = None,
        timeout: float = 10,
        object_first: bool = False,
        directed: bool = False,
        development: bool = False,
        now: Callable[[], datetime] = partial(datetime.now, UTC),  # noqa: B008 - the clock
        sleep: Callable[[float], None] = time.sleep,
        new_nonce: Callable[[], str] = secrets.token_urlsafe,
    ) -> None:
        identity = None
        if key is not None:
            typed = parse(wallet_address, allow_ports=development)
            identity = ClientIdentity(typed, key.key_id, key.private_key, client, directed)
        if transport is None:
            from open_payments.transports.public import PublicTransport

            transport = PublicTransport(allow_loopback=development)
        self._transport = transport
        self._identity = identity
        self._timeout = timedelta(seconds=timeout)
        self._development = development
        self._now = now
        self._sleep = sleep
        self._new_nonce = new_nonce
        self._forms = ClientForms(object_first=object_first)
        self._tokens = TokenKeeper(now)
        self._deadline: datetime | None = None

    @classmethod
    def public(
        cls, *, transport: Transport | None = None, timeout: float = 10, development: bool = False
    ) -> Self:
        """Return a client without a key, for what servers show to everybody."""
        return cls("", None, transport=transport, timeout=timeout, development=development)

    def within(self, seconds: float) -> Self:
        """Return this client with a deadline `seconds` from now, for all its calls together."""
        return self.until(self._now() + timedelta(seconds=seconds))

    def until(self, moment: datetime) -> Self:
        """Return this client with a deadline. The earlier one holds if it has one already."""
        found = copy(self)
        found._deadline = moment if self._deadline is None else min(moment, self._deadline)
        return found

    def wallet_address(self, typed: str) -> WalletAddress:
        """Read the document of a wallet address, typed as a URL or as a payment pointer.

        Raises InvalidWalletAddress, a ValueError, for what is none.
        """
        return self._calls().get_wallet_address(parse(typed, allow_ports=self._development))

    def keys(self, wallet: WalletAddress) -> tuple[Jwk, ...]:
        """Return the Ed25519 keys that are registered at the wallet address."""
        return self._calls().get_jwks(wallet.id)

    @property
    def grants(self) -> Grants:
        return Grants(self)

    @property
    def tokens(self) -> Tokens:
        return Tokens(self)

    @property
    def incoming_payments(self) -> IncomingPayments:
        return IncomingPayments(self)

    @property
    def quotes(self) -> Quotes:
        return Quotes(self)

    @property
    def outgoing_payments(self) -> OutgoingPayments:
        return OutgoingPayments(self)

    def _until(self) -> datetime:
        usual = self._now() + self._timeout
        return usual if self._deadline is None else self._deadline

    def _calls(self, deadline: datetime | None = None) -> protocol.OpenPayments:
        return protocol.OpenPayments(
            self._transport,
            self._identity,
            now=self._now,
            deadline=deadline or self._until(),
            allow_http_interaction=self._development,
            forms=self._forms,
        )

    def _with_token(
        self,
        wallet: WalletAddress,
        access: Access,
        call: Callable[[protocol.OpenPayments, AccessToken], T],
    ) -> T:
        """Make a call that needs a token of `access` at the wallet's servers."""
        calls = self._calls()
        return self._tokens.use(
            calls,
            wallet.auth_server,
            wallet.resource_server,
            access,
            partial(call, calls),
            wallet=wallet.id,
        )


@dataclass(frozen=True, slots=True)
class _Resource:
    _client: OpenPayments


class Grants(_Resource):
    """Grants that a customer approves at the wallet."""

    def request(
        self, wallet: WalletAddress, limits: Limits | None, *, finish_uri: str | None = None
    ) -> PendingGrant:
        """Ask the owner of `wallet` for payments within `limits`; without limits, to read payments.

        The customer's browser returns to `finish_uri`, whose query must not use the names hash,
        interact_ref, result and message. Without a `finish_uri`, the grant is polled.
        """
        request = partial(self._client._calls().request_payment_grant, wallet, limits=limits)
        return self._pending(wallet, limits, finish_uri, request)

    def subject(self, wallet: WalletAddress, *, finish_uri: str | None = None) -> PendingGrant:
        """Ask the owner of `wallet` to prove the ownership, without any payment."""
        request = partial(self._client._calls().request_subject_grant, wallet)
        return self._pending(wallet, None, finish_uri, request)

    def _pending(
        self,
        wallet: WalletAddress,
        limits: Limits | None,
        finish_uri: str | None,
        request: Callable[..., models.PendingGrant],
    ) -> PendingGrant:
        nonce = "" if finish_uri is None else self._client._new_nonce()
        found = request(finish_uri=finish_uri, nonce=nonce)
        return PendingGrant(
            wallet, limits, found.interact_url, found.continuation, nonce, found.finish_nonce
        )

    def continue_(self, pending: PendingGrant, reference: str) -> Grant:
        """Redeem the reference that `pending.verify` returned, once.

        Waits for the moment that the server gave, at most until the deadline. If the answer is
        lost, the grant is lost: ask the customer again.
        """
        calls = self._after_the_wait(pending)
        found = calls.redeem_grant(
            pending.wallet,
            pending.continuation,
            interact_ref=reference,
            limits=pending.limits,
        )
        return _grant(pending, found)

    def poll(self, pending: PendingGrant) -> Grant | PendingGrant:
        """Return the grant once the customer has approved it; before that, what to poll next.

        Waits as `continue_` does.
        """
        calls = self._after_the_wait(pending)
        found = calls.poll_grant(pending.wallet, pending.continuation, limits=pending.limits)
        if not found.waits:
            return _grant(pending, found)
        return replace(pending, continuation=found.continuation or pending.continuation)

    def cancel(self, granted: PendingGrant | Grant) -> None:
        """Give up a grant, and all its tokens. Raises ValueError for one without a continuation."""
        if granted.continuation is None:
            raise ValueError("the server gave no way to cancel this grant")
        self._client._calls().cancel_grant(granted.wallet.auth_server, granted.continuation)

    def _after_the_wait(self, pending: PendingGrant) -> protocol.OpenPayments:
        client, deadline = self._client, self._client._until()
        not_before = pending.continuation.not_before
        if not_before >= deadline:
            raise NotSent("the server accepts no continuation before the deadline")
        wait = (not_before - client._now()).total_seconds()
        if wait > 0:
            client._sleep(wait)
        return client._calls(deadline)


class Tokens(_Resource):
    """Access tokens of approved grants."""

    def rotate(self, grant: Grant) -> Grant:
        """Return the grant with a new token. The old one is dead, even if the answer is lost."""
        token = self._client._calls().rotate_token(grant.wallet.auth_server, _token(grant))
        return replace(grant, token=token)

    def revoke(self, grant: Grant) -> None:
        """Revoke the grant's token."""
        self._client._calls().revoke_token(grant.wallet.auth_server, _token(grant))


class IncomingPayments(_Resource):
    """Payments that a wallet address receives: the only proof that money arrived."""

    def create(
        self,
        wallet: WalletAddress,
        amount: Amount | None = None,
        *,
        expires_in: timedelta = _HOUR,
        metadata: Metadata | None = None,
    ) -> IncomingPayment:
        """Create an incoming payment. Not idempotent: each call makes one."""
        expires_at = self._client._now() + expires_in
        return self._client._with_token(
            wallet,
            Access.INCOMING_PAYMENT,
            lambda calls, token: calls.create_incoming_payment(
                wallet.resource_server,
                token,
                amount=amount,
                expires_at=expires_at,
                wallet=wallet.id,
                metadata=metadata,
            ),
        )

    def get(self, wallet: WalletAddress, url: str) -> IncomingPayment:
        """Read a payment that this client created. `received` proves what has arrived."""
        return self._client._with_token(
            wallet,
            Access.INCOMING_PAYMENT,
            lambda calls, token: calls.get_incoming_payment(url, token, wallet=wallet.id),
        )

    def get_public(self, url: str) -> PublicIncomingPayment:
        """Read what the server shows to everybody."""
        return self._client._calls().get_public_incoming_payment(url)

    def complete(self, wallet: WalletAddress, url: str) -> IncomingPayment:
        """Close a payment to further money."""
        return self._client._with_token(
            wallet,
            Access.INCOMING_PAYMENT,
            lambda calls, token: calls.complete_incoming_payment(url, token, wallet=wallet.id),
        )

    def list(self, wallet: WalletAddress, *, page_size: int = 20) -> Iterator[IncomingPayment]:
        """Return the payments that this client created, newest first, a page a call."""
        return _all(
            lambda cursor: self._client._with_token(
                wallet,
                Access.INCOMING_PAYMENTS,
                lambda calls, token: calls.list_incoming_payments(
                    wallet.resource_server, token, wallet=wallet.id, first=page_size, cursor=cursor
                ),
            )
        )


class Quotes(_Resource):
    """What a payment costs the sender, fees included."""

    def create(
        self,
        wallet: WalletAddress,
        *,
        receiver: IncomingPayment | str,
        receive: Amount | None = None,
        debit: Amount | None = None,
    ) -> Quote:
        """Create a quote of `wallet` for paying `receiver`, an incoming payment or its URL.

        Its amount is the one of the receiver, `receive` or `debit`. A quote that delivers less than
        the incoming payment asks for raises UntrustedAnswer.
        """
        asked = None
        if isinstance(receiver, IncomingPayment):
            asked = receiver.incoming_amount if receive is None and debit is None else None
            receiver = receiver.id
        return self._client._with_token(
            wallet,
            Access.QUOTE,
            lambda calls, token: calls.create_quote(
                wallet, token, receiver=receiver, receive=asked, debit=debit, fixed_receive=receive
            ),
        )

    def get(self, wallet: WalletAddress, quote: Quote) -> Quote:
        """Read a quote again."""
        return self._client._with_token(
            wallet,
            Access.QUOTE,
            lambda calls, token: calls.get_quote(
                wallet, token, url=quote.id, receiver=quote.receiver
            ),
        )


class OutgoingPayments(_Resource):
    """Payments of a wallet address, within the limits that its owner approved."""

    def create(
        self, grant: Grant, quote: Quote, *, metadata: Metadata | None = None
    ) -> OutgoingPayment:
        """Move the money.

        A quote can be used once. After OutcomeUnknown the money may have moved: use `find` before
        anything else.
        """
        return self._client._calls().create_outgoing_payment(
            grant.wallet, _token(grant), quote=quote, receiver=quote.receiver, metadata=metadata
        )

    def get(self, grant: Grant, url: str) -> OutgoingPayment:
        return self._client._calls().get_outgoing_payment(url, _token(grant))

    def find(self, grant: Grant, quote: Quote) -> OutgoingPayment | None:
        """Return the payment of `quote`, or None if all pages of the list have none.

        None proves little shortly after a payment without an answer: it may still be on its way.
        """
        for each in self.list(grant):
            if each.quote_id == quote.id:
                return each
        return None

    def list(self, grant: Grant, *, page_size: int = 20) -> Iterator[OutgoingPayment]:
        """Return the wallet's payments, newest first, a page a call."""
        calls = self._client._calls()
        return _all(
            lambda cursor: calls.list_outgoing_payments(
                grant.wallet, _token(grant), first=page_size, cursor=cursor
            )
        )

    def spent(self, grant: Grant) -> GrantSpent:
        """Return the sums that the grant's payments count against its limits."""
        return self._client._calls().get_grant_spent(grant.wallet, _token(grant))


def _grant(pending: PendingGrant, found: Continued) -> Grant:
    return Grant(pending.wallet, pending.limits, found.token, found.subject, found.continuation)


def _token(grant: Grant) -> AccessToken:
    if grant.token is None:
        raise ValueError("this grant has no access token")
    return grant.token


def _all(page: Callable[[str | None], tuple[tuple[T, ...], str | None]]) -> Iterator[T]:
    items, cursor = page(None)
    yield from items
    while cursor is not None:
        items, cursor = page(cursor)
        yield from items
