"""JSON answers, checked member by member and made into `models`.

Nothing that a server sends is trusted: types, ranges, https, and the match with the request are
checked. If a member fails a check, UntrustedAnswer names the member and never quotes its value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from open_payments.errors import UntrustedAnswer
from open_payments.interaction import Limits
from open_payments.models import (
    AccessToken,
    Amount,
    Continuation,
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
from open_payments.urls import origin

_UINT64 = re.compile(r"[0-9]{1,20}")
_ASCII = re.compile(r"[ -~]+")  # enough for the standard's machine-read members
_ASSET_CODE = re.compile(r"[A-Za-z0-9]{1,64}")  # assets that are not in ISO 4217 also have a code
# Line breaks, control characters, and marks that change the direction of the following text.
_UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SECRET = re.compile(r"[\x21-\x7e]{1,4096}")  # these characters can be sent in a header
_LONGEST = 2048  # characters
_MAX_SECONDS = 10**9
_DEFAULT_WAIT = 5  # seconds, if the server gives no wait


def loads(body: bytes) -> object:
    """Parse strict JSON. Raise ValueError, also for NaN and for excessive nesting."""
    try:
        return json.loads(body, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class Answer:
    """One JSON object of an answer, read member by member.

    Each reader raises UntrustedAnswer if the member is not of the kind that it reads.
    """

    def __init__(self, members: object, *, operation: str, path: str = "answer") -> None:
        self.operation = operation
        self.path = path
        if not isinstance(members, dict):
            self.distrust("is not an object")
        self._members: Mapping[str, Any] = members

    def distrust(self, complaint: str, name: str = "") -> NoReturn:
        where = f"{self.path}.{name}" if name else self.path
        raise UntrustedAnswer(f"{self.operation}: {where} {complaint}", operation=self.operation)

    def has(self, name: str) -> bool:
        """Return whether the member has a value. Servers also write null or "" for no value."""
        return self._members.get(name) not in (None, "")

    def is_(self, name: str, value: str) -> bool:
        return self._members.get(name) == value

    def child(self, name: str) -> Answer:
        return Answer(self._members.get(name), operation=self.operation, path=f"{self.path}.{name}")

    def children(self, name: str) -> list[Answer]:
        items = self._members.get(name)
        if not isinstance(items, list):
            self.distrust("is not a list", name)
        return [
            Answer(item, operation=self.operation, path=f"{self.path}.{name}[{index}]")
            for index, item in enumerate(items)
        ]

    def text(self, name: str, *, longest: int = _LONGEST) -> str:
        """Return a text that programs read, in printable ASCII: a URL, an id, a number."""
        value = self._text(name, longest)
        if not _ASCII.fullmatch(value):
            self.distrust("has characters that do not belong there", name)
        return value

    def name(self, name: str) -> str | None:
        """Return a text for people, in any script; None if there is none that can be shown.

        Such a text is only shown, so a fault in it does not invalidate the answer.
        """
        value = self._members.get(name)
        if not isinstance(value, str) or not 0 < len(value) <= _LONGEST:
            return None
        return None if _UNSHOWABLE.search(value) else value

    def asset_code(self) -> str:
        value = self.text("assetCode", longest=64)
        if not _ASSET_CODE.fullmatch(value):
            self.distrust("is not an asset code", "assetCode")
        return value

    def _text(self, name: str, longest: int) -> str:
        value = self._members.get(name)
        if not isinstance(value, str) or not 0 < len(value) <= longest:
            self.distrust("is not a text of usable length", name)
        return value

    def echo(self, name: str, asked: str) -> str:
        if self.text(name) != asked:
            self.distrust("is not what was asked for", name)
        return asked

    def secret(self, name: str) -> str:
        value = self._members.get(name)
        if not isinstance(value, str) or not _SECRET.fullmatch(value):
            self.distrust("is not a usable token", name)
        return value

    def https(self, name: str, *, same_origin_as: str | None = None) -> str:
        """Return a URL to which requests, and perhaps tokens, will be sent.

        The URL must be https. If `same_origin_as` is given, the URL must be on the same server.
        """
        url = self.text(name)
        try:
            found = origin(url)
        except ValueError:
            self.distrust("is not a usable URL", name)
        if not found.startswith("https://"):
            self.distrust("is not https", name)
        if same_origin_as is not None and found != origin(same_origin_as):
            self.distrust("is on another server", name)
        return url

    def flag(self, name: str) -> bool:
        value = self._members.get(name)
        if not isinstance(value, bool):
            self.distrust("is not true or false", name)
        return value

    def seconds(self, name: str) -> float:
        value = self._members.get(name)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not 0 <= value <= _MAX_SECONDS
        ):
            self.distrust("is not a number of seconds", name)
        return value

    def scale(self, name: str) -> int:
        value = self._members.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 255:
            self.distrust("is not a scale", name)
        return value

    def moment(self, name: str) -> datetime | None:
        """Return an aware time in UTC, or None if the member is absent."""
        if not self.has(name):
            return None
        try:
            found = datetime.fromisoformat(self.text(name, longest=64))
            moment = found.astimezone(UTC) if found.tzinfo else None
        except (ValueError, OverflowError):
            moment = None
        if moment is None:
            self.distrust("is not a time with its offset", name)
        return moment

    def metadata(self) -> Metadata | None:
        """Return the caller's own JSON, or None if there is none."""
        value = self._members.get("metadata")
        return value if isinstance(value, dict) else None

    def amount(self, name: str) -> Amount:
        child = self.child(name)
        value = child.text("value", longest=20)
        if not _UINT64.fullmatch(value) or int(value) >= 2**64:
            child.distrust("is not an unsigned 64 bit number", "value")
        return Amount(int(value), child.asset_code(), child.scale("assetScale"))


def wallet_address(answer: Answer) -> WalletAddress:
    return WalletAddress(
        id=_base(answer, "id"),
        asset_code=answer.asset_code(),
        asset_scale=answer.scale("assetScale"),
        auth_server=_base(answer, "authServer"),
        resource_server=_base(answer, "resourceServer"),
        public_name=answer.name("publicName"),
    )


def _base(answer: Answer, name: str) -> str:
    """Return a URL below which paths are added."""
    url = answer.https(name)
    if "?" in url:
        answer.distrust("has a query", name)
    return url


def jwks(answer: Answer) -> tuple[Jwk, ...]:
    """Return the Ed25519 keys of the set; keys of other kinds are skipped."""
    return tuple(
        Jwk(kid=key.text("kid"), x=key.text("x", longest=64))
        for key in answer.children("keys")
        if key.text("kty", longest=16) == "OKP" and key.has("kid") and key.is_("crv", "Ed25519")
    )


def access_token(answer: Answer, *, auth_server: str, sent_at: datetime) -> AccessToken:
    expires_at = None
    if answer.has("expires_in"):
        expires_at = sent_at + timedelta(seconds=math.floor(answer.seconds("expires_in")))
    return AccessToken(
        value=answer.secret("value"),
        manage=answer.https("manage", same_origin_as=auth_server),
        expires_at=expires_at,
    )


def granted_payment(token: Answer, *, wallet: str, limits: Limits | None) -> None:
    """Raise UntrustedAnswer if the token is for another wallet or limits than requested.

    Members that the answer omits are not checked, because not every server repeats the granted
    access.
    """
    for access in token.children("access") if token.has("access") else ():
        access.echo("type", "outgoing-payment")
        if access.has("identifier"):
            access.echo("identifier", wallet)
        if limits is None or not access.has("limits"):
            continue
        granted = access.child("limits")
        for name, amount in (
            ("debitAmount", limits.debit_amount),
            ("receiveAmount", limits.receive_amount),
        ):
            if granted.has(name) and granted.amount(name) != amount:
                granted.distrust("is not what was asked for", name)
        for name, text in (("receiver", limits.receiver), ("interval", limits.interval)):
            if granted.has(name):
                granted.echo(name, str(text or ""))


def continuation(answer: Answer, *, auth_server: str, answered_at: datetime) -> Continuation:
    wait = answer.seconds("wait") if answer.has("wait") else _DEFAULT_WAIT
    return Continuation(
        uri=answer.https("uri", same_origin_as=auth_server),
        token=answer.child("access_token").secret("value"),
        not_before=answered_at + timedelta(seconds=math.ceil(wait)),
    )


def continued(
    answer: Answer, *, auth_server: str, wallet: str, sent_at: datetime, answered_at: datetime
) -> Continued:
    """Return the answer to a continuation of a grant about `wallet`."""
    token = None
    if answer.has("access_token"):
        token = access_token(answer.child("access_token"), auth_server=auth_server, sent_at=sent_at)
    subject: tuple[str, ...] = ()
    if answer.has("subject"):
        child = answer.child("subject")
        ids = child.children("sub_ids") if child.has("sub_ids") else []
        subject = tuple(each.echo("id", wallet) for each in ids if each.is_("format", "uri"))
    following = None
    # What was granted must not be lost because of a faulty way to go on.
    with suppress(*(UntrustedAnswer,) if token or subject else ()):
        following = continuation(
            answer.child("continue"), auth_server=auth_server, answered_at=answered_at
        )
    return Continued(token, subject, following)


def public_incoming_payment(answer: Answer) -> PublicIncomingPayment:
    return PublicIncomingPayment(
        received=answer.amount("receivedAmount"), auth_server=_base(answer, "authServer")
    )


def incoming_payment(answer: Answer, *, wallet: str, id_on: str | None = None) -> IncomingPayment:
    received = answer.amount("receivedAmount")
    expected = answer.amount("incomingAmount") if answer.has("incomingAmount") else None
    if expected is not None and not expected.same_asset(received):
        answer.distrust("is of another asset than incomingAmount", "receivedAmount")
    return IncomingPayment(
        id=answer.https("id", same_origin_as=id_on),
        wallet_address=answer.echo("walletAddress", wallet),
        incoming_amount=expected,
        received=received,
        completed=answer.flag("completed"),
        expires_at=answer.moment("expiresAt"),
        metadata=answer.metadata(),
    )


def quote(
    answer: Answer,
    *,
    wallet: WalletAddress,
    receiver: str,
    receive: Amount | None = None,
    debit: Amount | None = None,
    fixed_receive: Amount | None = None,
) -> Quote:
    """Return a quote that delivers at least `receive`.

    If given, `fixed_receive` is exactly what it delivers, and `debit` exactly what it costs.
    """
    answer.echo("walletAddress", wallet.id)
    answer.echo("receiver", receiver)
    found = Quote(
        id=answer.https("id", same_origin_as=wallet.resource_server),
        debit=answer.amount("debitAmount"),
        receive=answer.amount("receiveAmount"),
        expires_at=answer.moment("expiresAt"),
        receiver=receiver,
    )
    if fixed_receive is not None and found.receive != fixed_receive:
        answer.distrust("is not what was asked for", "receiveAmount")
    if receive is not None and (
        not found.receive.same_asset(receive) or found.receive.value < receive.value
    ):
        answer.distrust("is not what the receiver is owed", "receiveAmount")
    if debit is not None and found.debit != debit:
        answer.distrust("is not what was asked for", "debitAmount")
    if not found.debit.is_of(wallet):
        answer.distrust("is not of the wallet's asset", "debitAmount")
    return found


def grant_spent(answer: Answer, *, wallet: WalletAddress) -> GrantSpent:
    found = GrantSpent(
        debit=answer.amount("spentDebitAmount") if answer.has("spentDebitAmount") else None,
        receive=answer.amount("spentReceiveAmount") if answer.has("spentReceiveAmount") else None,
    )
    if found.debit is not None and not found.debit.is_of(wallet):
        answer.distrust("is not of the wallet's asset", "spentDebitAmount")
    return found


def outgoing_payment(answer: Answer, *, id_on: str) -> OutgoingPayment:
    debit = answer.amount("debitAmount")
    sent = answer.amount("sentAmount")
    if not sent.same_asset(debit):
        answer.distrust("is of another asset than debitAmount", "sentAmount")
    return OutgoingPayment(
        id=answer.https("id", same_origin_as=id_on),
        wallet_address=answer.https("walletAddress"),
        quote_id=answer.text("quoteId") if answer.has("quoteId") else None,
        receiver=answer.text("receiver"),
        debit=debit,
        sent=sent,
        failed=answer.has("failed") and answer.flag("failed"),
        metadata=answer.metadata(),
    )
