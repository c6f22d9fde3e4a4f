"""The calls of Open Payments that we make, with every answer checked against its request.

The client refuses to send if no time is left, and to continue a grant or rotate a token at a server
other than the issuer. It repeats only a grant request whose form of `client` was refused;
`errors.py` shows which calls a caller can repeat.

Source: Open Payments OpenAPI 1.3 (wallet address, auth and resource server), RFC 9635 (GNAP).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlencode

from open_payments import answers
from open_payments.answers import Answer
from open_payments.errors import NotSent, Reason, Refused, UntrustedAnswer
from open_payments.exchange import CALL, DOCUMENT, SLOW_CALL, Exchange, Reply
from open_payments.interaction import Limits
from open_payments.models import (
    AccessToken,
    Amount,
    ClientIdentity,
    Continuation,
    Continued,
    GrantSpent,
    IncomingPayment,
    Jwk,
    Metadata,
    OutgoingPayment,
    PendingGrant,
    PublicIncomingPayment,
    Quote,
    WalletAddress,
)
from open_payments.signatures import public_x
from open_payments.transports import Transport
from open_payments.urls import (
    is_address,
    is_loopback,
    last_segment,
    origin,
    target,
    target_uri,
    under,
)

_MOST_FORMS: Final = 1024  # customers choose the servers, so their number is limited here


class Access(StrEnum):
    """A grant that a wallet gives without interaction."""

    INCOMING_PAYMENT = "incoming-payment"
    INCOMING_PAYMENTS = "incoming-payments"  # all of them: to read and list
    QUOTE = "quote"


_ACCESS: Final[Mapping[Access, dict[str, Any]]] = {
    Access.INCOMING_PAYMENT: {
        "type": "incoming-payment",
        "actions": ["create", "read", "complete"],
    },
    Access.INCOMING_PAYMENTS: {"type": "incoming-payment", "actions": ["read", "list"]},
    Access.QUOTE: {"type": "quote", "actions": ["create", "read"]},
}


class ClientForms:
    """The form of the member `client` that each server wants, learned from its refusals.

    Open Payments 1.3 made `client` an object, and deprecated the string, the only form that older
    servers accept. The string goes first.

    With `object_first`, the object goes first. A process has one instance, which its threads share.
    """

    def __init__(self, *, object_first: bool = False) -> None:
        self._object_first = object_first
        self._lock = threading.Lock()
        self._others: dict[str, None] = {}  # the servers that want the other form

    def wants_object(self, auth_server: str) -> bool:
        return (auth_server in self._others) is not self._object_first

    def learn(self, auth_server: str, *, wants_object: bool) -> None:
        """Remember the form that `auth_server` has accepted."""
        with self._lock:
            self._others.pop(auth_server, None)
            if wants_object is not self._object_first:
                self._others[auth_server] = None
            if len(self._others) > _MOST_FORMS:
                del self._others[next(iter(self._others))]


class OpenPayments:
    """A client for the calls of one request that we handle; `deadline` limits all of them together.

    Requests are signed by `identity`; if it is None, only the unsigned reads work. Many clients
    share one `forms`. `on_refusal` is called with each refusal before the refusal is raised. All
    methods raise errors.OpenPaymentsError.
    """

    def __init__(
        self,
        transport: Transport,
        identity: ClientIdentity | None,
        *,
        now: Callable[[], datetime],
        deadline: datetime,
        allow_http_interaction: bool = False,
        forms: ClientForms | None = None,
        on_refusal: Callable[[Refused], None] = lambda refused: None,
    ) -> None:
        self._identity = identity
        self._now = now
        self._allow_http_interaction = allow_http_interaction
        self._forms = forms or ClientForms()
        self._exchange = Exchange(
            transport, identity, now=now, deadline=deadline, on_refusal=on_refusal
        )

    @property
    def identity(self) -> ClientIdentity:
        """The identity that signs. Raises ValueError if the client was made without one."""
        if self._identity is None:
            raise ValueError("this call must be signed, and the client has no identity")
        return self._identity

    # Discovery: unsigned.

    def get_wallet_address(self, url: str) -> WalletAddress:
        """Read the document at `url`, which `wallet_address.parse` returned.

        A wallet address on the customer's own domain may redirect to the wallet, so use the `id` of
        the result from then on. All reads together take no longer than DOCUMENT.
        """
        begun_at = self._now()
        document, served_at = self._exchange.discover("get_wallet_address", url)
        found = answers.wallet_address(document)
        if origin(found.id) == origin(served_at):
            return found
        # Any server can serve a document with this `id`, but only the server of `id` can confirm
        # the document.
        left = DOCUMENT - (self._now() - begun_at).total_seconds()
        read = self._read_public("get_wallet_address", found.id, cap=left)
        confirmed = answers.wallet_address(read)
        if confirmed.id != found.id:
            raise UntrustedAnswer(
                "get_wallet_address: the server of the document's id does not confirm it",
                operation="get_wallet_address",
            )
        return confirmed

    def get_jwks(self, wallet_address_id: str) -> tuple[Jwk, ...]:
        """Return the Ed25519 keys that are registered at the wallet address."""
        return answers.jwks(self._read_public("get_jwks", under(wallet_address_id, "jwks.json")))

    # Grants, at an authorization server. `auth_server` is WalletAddress.auth_server throughout.

    def request_grant(
        self, auth_server: str, access: Access, *, wallet: str | None = None
    ) -> AccessToken:
        """Return a token for `access`, which the server grants without an interaction.

        A grant for incoming payments is for the wallet address `wallet`, by default the client's
        own. Raises Refused(INTERACTION_REQUIRED) if the server wants an interaction.
        """
        wanted = dict(_ACCESS[access])
        if access is not Access.QUOTE:
            wanted["identifier"] = wallet or self.identity.wallet_address
        body = {"access_token": {"access": [wanted]}}
        reply = self._ask_grant("request_grant", auth_server, body)
        if reply.answer.has("interact"):
            raise Refused(
                f"request_grant: the wallet asks for an interaction for {access.value}",
                operation="request_grant",
                status=reply.status,
                reason=Reason.INTERACTION_REQUIRED,
            )
        return self._token(reply, auth_server)

    def request_payment_grant(
        self,
        wallet: WalletAddress,
        *,
        limits: Limits | None,
        finish_uri: str | None,
        nonce: str = "",
    ) -> PendingGrant:
        """Ask the owner of `wallet` to approve payments within `limits`; if None, to read payments.

        The query of `finish_uri` must not have the names hash, interact_ref, result and message,
        because the server sets these. Without a `finish_uri` the grant is polled (`poll_grant`).
        Raises NotSent for a debit limit in an asset other than the wallet's, because the server
        would grant it and then refuse each payment.
        """
        debit = limits.debit_amount if limits is not None else None
        if debit is not None and not debit.is_of(wallet):
            raise NotSent(
                "request_payment_grant: the limit is of another asset than the wallet",
                operation="request_payment_grant",
            )
        pays = {"actions": ["create", "read", "list"]}
        wanted = {
            "type": "outgoing-payment",
            **(pays if limits is not None else {"actions": ["read", "list"]}),
            "identifier": wallet.id,
            **({"limits": limits.members()} if limits is not None else {}),
        }
        wants = {"access_token": {"access": [wanted]}}
        return self._ask_approval("request_payment_grant", wallet, wants, finish_uri, nonce)

    def request_subject_grant(
        self, wallet: WalletAddress, *, finish_uri: str | None, nonce: str = ""
    ) -> PendingGrant:
        """Ask the owner of `wallet` to prove the ownership, and to approve nothing else.

        `finish_uri` is as in `request_payment_grant`. Source: Open Payments 1.1, RFC 9635, 2.2.
        """
        wants = {"subject": {"sub_ids": [{"id": wallet.id, "format": "uri"}]}}
        return self._ask_approval("request_subject_grant", wallet, wants, finish_uri, nonce)

    def continue_grant(
        self,
        wallet: WalletAddress,
        continuation: Continuation,
        *,
        interact_ref: str,
        limits: Limits | None,
    ) -> AccessToken:
        """Redeem `interact_ref`, once, and not before `continuation.not_before`.

        `limits` are those of `request_payment_grant`; a token with other limits is refused. If the
        answer is lost, the token is lost, too.
        """
        body = {"interact_ref": interact_ref}
        reply = self._continued("continue_grant", wallet, continuation, body, limits)
        return self._token(reply, wallet.auth_server)

    def redeem_grant(
        self,
        wallet: WalletAddress,
        continuation: Continuation,
        *,
        interact_ref: str,
        limits: Limits | None,
    ) -> Continued:
        """Do what `continue_grant` does, for a grant that may have no access token."""
        body = {"interact_ref": interact_ref}
        return self._granted(
            self._continued("continue_grant", wallet, continuation, body, limits), wallet
        )

    def poll_grant(
        self, wallet: WalletAddress, continuation: Continuation, *, limits: Limits | None
    ) -> Continued:
        """Ask whether a grant without a finish URI has been approved.

        Not before `continuation.not_before`; poll again with the `continuation` of the result.
        """
        return self._granted(
            self._continued("poll_grant", wallet, continuation, None, limits), wallet
        )

    def cancel_grant(self, auth_server: str, continuation: Continuation) -> None:
        """Revoke the grant and all its tokens."""
        self._check_home("cancel_grant", continuation.uri, auth_server)
        self._exchange.empty("cancel_grant", "DELETE", continuation.uri, token=continuation.token)

    def rotate_token(self, auth_server: str, token: AccessToken) -> AccessToken:
        """Return a new token, with a new manage URI, for an old one, expired or not.

        The old token is invalid afterwards, even if the answer is lost. Raises Refused(TOKEN_GONE)
        if the token is gone. Raises Refused(NOT_ROTATED) if the server was busy, or
        was rotating the token for another request. Then this call had no effect, and can be
        repeated.
        """
        self._check_home("rotate_token", token.manage, auth_server)
        reply = self._exchange.json("rotate_token", "POST", token.manage, token=token.value)
        return self._token(reply, auth_server)

    def revoke_token(self, auth_server: str, token: AccessToken) -> None:
        self._check_home("revoke_token", token.manage, auth_server)
        self._exchange.empty("revoke_token", "DELETE", token.manage, token=token.value)

    # Incoming payments, at the receiver's resource server. `wallet` is the receiver's wallet
    # address, by default the client's own.

    def create_incoming_payment(
        self,
        resource_server: str,
        token: AccessToken,
        *,
        amount: Amount | None,
        expires_at: datetime,
        wallet: str | None = None,
        metadata: Metadata | None = None,
    ) -> IncomingPayment:
        """Create an incoming payment. Without an `amount` it accepts any amount, and stays open.

        Not idempotent: each call creates another incoming payment.
        """
        wallet = wallet or self.identity.wallet_address
        expected: dict[str, object] = {}
        if amount is not None:
            expected["incomingAmount"] = amount.members()
        if metadata is not None:
            expected["metadata"] = metadata
        reply = self._exchange.json(
            "create_incoming_payment",
            "POST",
            under(resource_server, "incoming-payments"),
            token=token.value,
            body={"walletAddress": wallet, **expected, "expiresAt": _iso(expires_at)},
            expect=201,
            cap=SLOW_CALL,
        )
        found = answers.incoming_payment(reply.answer, wallet=wallet, id_on=resource_server)
        if found.incoming_amount != amount:
            reply.answer.distrust("is not what was asked for", "incomingAmount")
        if found.completed or found.received.value:
            reply.answer.distrust("was already paid or closed when it was created")
        return found

    def get_incoming_payment(
        self, url: str, token: AccessToken, *, wallet: str | None = None
    ) -> IncomingPayment:
        """Read an incoming payment.

        The reason of a refusal is NOT_FOUND for an unpaid one that has expired, and NOT_OURS for
        one that another client made.
        """
        reply = self._exchange.json("get_incoming_payment", "GET", url, token=token.value)
        return self._incoming(reply, url, wallet)

    def get_public_incoming_payment(self, url: str) -> PublicIncomingPayment:
        """Read what the server shows without a token."""
        return answers.public_incoming_payment(
            self._read_public("get_public_incoming_payment", url)
        )

    def list_incoming_payments(
        self,
        resource_server: str,
        token: AccessToken,
        *,
        wallet: str | None = None,
        first: int = 20,
        cursor: str | None = None,
    ) -> tuple[tuple[IncomingPayment, ...], str | None]:
        """Return a page of the wallet's incoming payments, and the next cursor or None.

        `token` is of `Access.INCOMING_PAYMENTS`.
        """
        wallet = wallet or self.identity.wallet_address
        url = under(resource_server, "incoming-payments")
        items, following = self._page("list_incoming_payments", url, token, wallet, first, cursor)
        found = [
            answers.incoming_payment(item, wallet=wallet, id_on=resource_server) for item in items
        ]
        return tuple(found), following

    def complete_incoming_payment(
        self, url: str, token: AccessToken, *, wallet: str | None = None
    ) -> IncomingPayment:
        """Close an incoming payment, so that it takes no further money.

        Raises Refused(WRONG_STATE) if it is already completed or has expired.
        """
        reply = self._exchange.json(
            "complete_incoming_payment", "POST", under(url, "complete"), token=token.value
        )
        return self._incoming(reply, url, wallet)

    # Quotes and outgoing payments, at the sender's resource server.

    def create_quote(
        self,
        wallet: WalletAddress,
        token: AccessToken,
        *,
        receiver: str,
        receive: Amount | None = None,
        debit: Amount | None = None,
        fixed_receive: Amount | None = None,
    ) -> Quote:
        """Create a quote for delivering the amount of `receiver`, at least `receive`.

        With `debit`, the quote is for what this debit, which includes fees, delivers. With
        `fixed_receive`, the quote is for delivering exactly this amount to a receiver that asks for
        none. Raises ValueError for both.
        """
        if debit is not None and fixed_receive is not None:
            raise ValueError("a quote fixes one amount")
        fixed = {} if debit is None else {"debitAmount": debit.members()}
        if fixed_receive is not None:
            fixed = {"receiveAmount": fixed_receive.members()}
        reply = self._exchange.json(
            "create_quote",
            "POST",
            under(wallet.resource_server, "quotes"),
            token=token.value,
            body={"walletAddress": wallet.id, "receiver": receiver, "method": "ilp", **fixed},
            expect=201,
            cap=SLOW_CALL,
        )
        return answers.quote(
            reply.answer,
            wallet=wallet,
            receiver=receiver,
            receive=receive,
            debit=debit,
            fixed_receive=fixed_receive,
        )

    def get_quote(
        self, wallet: WalletAddress, token: AccessToken, *, url: str, receiver: str
    ) -> Quote:
        """Read a quote of `wallet` that pays `receiver`."""
        reply = self._exchange.json("get_quote", "GET", url, token=token.value)
        reply.answer.echo("id", url)
        return answers.quote(reply.answer, wallet=wallet, receiver=receiver)

    def create_outgoing_payment(
        self,
        wallet: WalletAddress,
        token: AccessToken,
        *,
        quote: Quote,
        receiver: str,
        metadata: Metadata | None = None,
    ) -> OutgoingPayment:
        """Move the money.

        A quote can be used only once. After any failure, read the existing payments before you send
        again.
        """
        reply = self._exchange.json(
            "create_outgoing_payment",
            "POST",
            under(wallet.resource_server, "outgoing-payments"),
            token=token.value,
            body={
                "walletAddress": wallet.id,
                "quoteId": quote.id,
                **({} if metadata is None else {"metadata": metadata}),
            },
            expect=201,
        )
        found = answers.outgoing_payment(reply.answer, id_on=wallet.resource_server)
        asked = (wallet.id, quote.id, receiver, quote.debit)
        answered = (found.wallet_address, found.quote_id or quote.id, found.receiver, found.debit)
        if answered != asked:
            reply.answer.distrust("is not the payment that was asked for")
        return found

    def get_outgoing_payment(self, url: str, token: AccessToken) -> OutgoingPayment:
        reply = self._exchange.json("get_outgoing_payment", "GET", url, token=token.value)
        reply.answer.echo("id", url)
        return answers.outgoing_payment(reply.answer, id_on=url)

    def get_grant_spent(self, wallet: WalletAddress, token: AccessToken) -> GrantSpent:
        """Return the sums of the payments so far that the limits of the token's grant apply to."""
        url = under(wallet.resource_server, "outgoing-payment-grant")
        reply = self._exchange.json("get_grant_spent", "GET", url, token=token.value)
        return answers.grant_spent(reply.answer, wallet=wallet)

    def outgoing_payment_url(self, wallet: WalletAddress, quote_id: str) -> str:
        """Return the URL of a quote's payment if the server gives both the same last segment."""
        return under(wallet.resource_server, "outgoing-payments", last_segment(quote_id))

    def list_outgoing_payments(
        self,
        wallet: WalletAddress,
        token: AccessToken,
        *,
        first: int = 20,
        cursor: str | None = None,
    ) -> tuple[tuple[OutgoingPayment, ...], str | None]:
        """Return a page of the wallet's payments, newest first, and the next cursor or None."""
        url = under(wallet.resource_server, "outgoing-payments")
        items, following = self._page(
            "list_outgoing_payments", url, token, wallet.id, first, cursor
        )
        found = [answers.outgoing_payment(item, id_on=wallet.resource_server) for item in items]
        return tuple(found), following

    def _page(
        self,
        operation: str,
        url: str,
        token: AccessToken,
        wallet: str,
        first: int,
        cursor: str | None,
    ) -> tuple[list[Answer], str | None]:
        """Return the items of a page, each of `wallet`, and the next cursor or None."""
        query = {"first": str(first), "wallet-address": wallet}
        if cursor is not None:
            query = {"cursor": cursor, **query}
        answer = self._exchange.json(
            operation, "GET", f"{url}?{urlencode(query)}", token=token.value
        ).answer
        items = answer.children("result")
        for item in items:
            item.echo("walletAddress", wallet)
        page = answer.child("pagination")
        following = page.text("endCursor") if page.flag("hasNextPage") else None
        if following is not None and following == cursor:
            page.distrust("leads to the same page again", "endCursor")
        return items, following

    def _ask_approval(
        self,
        operation: str,
        wallet: WalletAddress,
        wants: Mapping[str, object],
        finish_uri: str | None,
        nonce: str,
    ) -> PendingGrant:
        """Request an interactive grant."""
        interact: dict[str, object] = {"start": ["redirect"]}
        if finish_uri is not None:
            interact["finish"] = {"method": "redirect", "uri": finish_uri, "nonce": nonce}
        reply = self._ask_grant(operation, wallet.auth_server, {**wants, "interact": interact})
        answer = reply.answer.child("interact")
        return PendingGrant(
            interact_url=self._interact_url(answer),
            finish_nonce="" if finish_uri is None else answer.secret("finish"),
            continuation=answers.continuation(
                reply.answer.child("continue"),
                auth_server=wallet.auth_server,
                answered_at=reply.answered_at,
            ),
        )

    def _continued(
        self,
        operation: str,
        wallet: WalletAddress,
        continuation: Continuation,
        body: Mapping[str, object] | None,
        limits: Limits | None,
    ) -> Reply:
        """Continue a grant, and check the access that it gives, if any."""
        self._check_home(operation, continuation.uri, wallet.auth_server)
        reply = self._exchange.json(
            operation, "POST", continuation.uri, token=continuation.token, body=body
        )
        if reply.answer.has("access_token"):
            token = reply.answer.child("access_token")
            answers.granted_payment(token, wallet=wallet.id, limits=limits)
        return reply

    def _granted(self, reply: Reply, wallet: WalletAddress) -> Continued:
        return answers.continued(
            reply.answer,
            auth_server=wallet.auth_server,
            wallet=wallet.id,
            sent_at=reply.sent_at,
            answered_at=reply.answered_at,
        )

    def _ask_grant(self, operation: str, auth_server: str, body: Mapping[str, object]) -> Reply:
        """Request a grant.

        If the server refuses the form of `client`, try once more with the other form. The refused
        request had no effect, so nothing is requested twice.
        """
        if self.identity.directed:
            own = {"jwk": Jwk(self.identity.key_id, public_x(self.identity.private_key)).members()}
            return self._exchange.json(operation, "POST", auth_server, body={**body, "client": own})
        as_object = self._forms.wants_object(auth_server)
        try:
            return self._ask_grant_as(as_object, operation, auth_server, body)
        except Refused as refused:
            if refused.reason is not Reason.CLIENT_FORM:
                raise
        reply = self._ask_grant_as(not as_object, operation, auth_server, body)
        self._forms.learn(auth_server, wants_object=not as_object)
        return reply

    def _ask_grant_as(
        self, as_object: bool, operation: str, auth_server: str, body: Mapping[str, object]
    ) -> Reply:
        url = self.identity.client
        client = {"walletAddress": url} if as_object else url
        return self._exchange.json(operation, "POST", auth_server, body={**body, "client": client})

    def _read_public(self, operation: str, url: str, *, cap: float = CALL) -> Answer:
        return self._exchange.json(operation, "GET", url, signed=False, cap=cap).answer

    def _token(self, reply: Reply, auth_server: str) -> AccessToken:
        return answers.access_token(
            reply.answer.child("access_token"), auth_server=auth_server, sent_at=reply.sent_at
        )

    def _incoming(self, reply: Reply, url: str, wallet: str | None) -> IncomingPayment:
        reply.answer.echo("id", url)
        wallet = wallet or self.identity.wallet_address
        return answers.incoming_payment(reply.answer, wallet=wallet)

    def _interact_url(self, interact: Answer) -> str:
        """Return the URL for the customer's browser: https at a name, or loopback in development.

        IP addresses are refused, because one could belong to a device in the customer's network.
        """
        url = interact.text("redirect")
        try:
            where = target(target_uri(url.replace("#", "?", 1)))  # the browser's: any fragment
        except ValueError:
            interact.distrust("is not a usable URL", "redirect")
        local = self._allow_http_interaction and is_loopback(where.host)
        if not local and (where.scheme != "https" or is_address(where.host)):
            interact.distrust("is not https at a name", "redirect")
        return url

    def _check_home(self, operation: str, url: str, auth_server: str) -> None:
        """Raise UntrustedAnswer unless `url` is on the server that issued the token."""
        try:
            at_home = origin(url) == origin(auth_server) and origin(url).startswith("https://")
        except ValueError:
            at_home = False
        if not at_home:
            raise UntrustedAnswer(
                f"{operation}: the URL is not on the authorization server", operation=operation
            )


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
