"""Grants that a customer approves: the limits, the proof of the return, and what is granted.

A server grants a malformed limit, and refuses or fails each payment later. So all limits are
checked here, before the customer is asked to approve them.

The interaction hash proves that a return comes from the server that was asked. Servers differ in
the URL that they hash and in the encoding, so a small set of candidates is accepted. Every one uses
only data from direct calls to the server, so it binds the approval to our nonce, the server's nonce
and that server.

Source: RFC 9635, section 4.2.3; Open Payments OpenAPI 1.3 (`limits-outgoing`); ISO 8601 intervals.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Self
from urllib.parse import parse_qsl

from open_payments.errors import Declined, NotFromThisServer
from open_payments.models import AccessToken, Amount, Continuation, WalletAddress
from open_payments.urls import last_segment

_LAST_DAY: Final = 28  # of every month
_MAX_PRESENTED = 128
_MAX_REF = 1024
_TO_STANDARD = str.maketrans("-_ ", "+/+")  # a space is a "+" that was not percent-encoded


@dataclass(frozen=True, slots=True)
class Interval:
    """Periods from `start` on, each a number of months or days long, without an end.

    Raises ValueError if `start` has no offset or has a fraction of a second, or if not exactly one
    of the lengths is positive. Months that begin after the 28th are also refused, because servers
    count each month from the end of the month before, so such periods would drift.
    """

    start: datetime
    months: int = 0
    days: int = 0

    def __post_init__(self) -> None:
        if self.start.utcoffset() is None or self.start.microsecond:
            raise ValueError("an interval starts at a whole second, with its offset")
        if min(self.months, self.days) < 0 or (self.months > 0) is (self.days > 0):
            raise ValueError("an interval has a length in months or in days")
        if self.months and self.start.astimezone(UTC).day > _LAST_DAY:
            raise ValueError("an interval of months starts on the 28th at the latest, in UTC")

    def __str__(self) -> str:
        start = self.start.astimezone(UTC).replace(tzinfo=None).isoformat()
        length = f"{self.months}M" if self.months else f"{self.days}D"
        return f"R/{start}Z/P{length}"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for the sum of all payments under one grant, in each period if it has an interval.

    Exactly one amount is given: `debit_amount`, which includes the sender's fees, or
    `receive_amount`, which is what arrives. `receiver` is the only incoming payment that the grant
    can pay. Raises ValueError.
    """

    receiver: str | None = None
    debit_amount: Amount | None = None
    receive_amount: Amount | None = None
    interval: Interval | None = None

    def __post_init__(self) -> None:
        amount = self.debit_amount or self.receive_amount
        if amount is None or (self.debit_amount and self.receive_amount):
            raise ValueError("a grant is limited by one amount")
        if not 0 <= amount.value < 2**64:
            raise ValueError("a grant is limited by an unsigned amount of 64 bits")

    def members(self) -> dict[str, object]:
        """Return the JSON object for a grant request."""
        named: dict[str, object] = {
            "receiver": self.receiver,
            "debitAmount": self.debit_amount and self.debit_amount.members(),
            "receiveAmount": self.receive_amount and self.receive_amount.members(),
            "interval": self.interval and str(self.interval),
        }
        return {name: value for name, value in named.items() if value is not None}


def matches(
    presented: str,
    *,
    client_nonce: str,
    finish_nonce: str,
    interact_ref: str,
    grant_url: str,
    continue_uri: str,
) -> str | None:
    """Return the name of the candidate whose hash is `presented` (query-decoded), else None.

    `grant_url` is the URL at which the grant was requested; `continue_uri` is from that server's
    answer. The comparison takes the same time whichever candidate matches, or if none matches.
    """
    digest = _decode(presented)
    if digest is None or not 0 < len(interact_ref) <= _MAX_REF or not _is_plain(interact_ref):
        return None
    found = None
    for name, endpoint in _candidates(grant_url, continue_uri):
        base = f"{client_nonce}\n{finish_nonce}\n{interact_ref}\n{endpoint}"
        expected = hashlib.sha256(base.encode()).digest()
        if hmac.compare_digest(expected, digest) and found is None:
            found = name
    return found


def _candidates(grant_url: str, continue_uri: str) -> list[tuple[str, str]]:
    toggled = grant_url.removesuffix("/") if grant_url.endswith("/") else f"{grant_url}/"
    found = [("grant_url", grant_url), ("grant_url_slash_toggled", toggled)]
    server, at, _ = continue_uri.rpartition("/continue/")
    if at:
        # The server's own name for itself, which differs from the grant URL in some deployments.
        found.append(("server_root", f"{server}/"))
        found.append(("server_tenant", f"{server}/{last_segment(grant_url)}"))
    return found


def _decode(presented: str) -> bytes | None:
    if len(presented) > _MAX_PRESENTED:
        return None
    text = presented.rstrip("=").translate(_TO_STANDARD)
    try:
        digest = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    return digest if len(digest) == hashlib.sha256().digest_size else None


def _is_plain(text: str) -> bool:
    """Return false for a text with a line break, which would move text between hashed parts."""
    return text.isascii() and text.isprintable()


@dataclass(frozen=True, slots=True)
class PendingGrant:
    """A grant that waits for the customer, who approves it at `redirect`.

    `limits` is None for a grant that does not pay. `nonce` and `finish_nonce` bind the return to
    this grant; both are "" for a grant that is polled.
    """

    wallet: WalletAddress
    limits: Limits | None
    redirect: str = field(repr=False)
    continuation: Continuation
    nonce: str = field(default="", repr=False)
    finish_nonce: str = field(default="", repr=False)

    def verify(self, query: str | Mapping[str, str]) -> str:
        """Return the reference with which `grants.continue_` redeems the approval.

        `query` is the query of the return to the finish URI, as text or decoded. Raises Declined if
        the query reports no approval, and NotFromThisServer if the hash is missing or wrong.
        """
        if isinstance(query, str):
            query = dict(parse_qsl(query.removeprefix("?"), keep_blank_values=True))
        reference, presented = query.get("interact_ref", ""), query.get("hash", "")
        if not reference and query.get("result"):
            raise Declined("the query reports that the customer did not approve the grant")
        if not self.finish_nonce or not matches(
            presented,
            client_nonce=self.nonce,
            finish_nonce=self.finish_nonce,
            interact_ref=reference,
            grant_url=self.wallet.auth_server,
            continue_uri=self.continuation.uri,
        ):
            raise NotFromThisServer("the hash does not prove that the wallet sent the customer")
        return reference

    def dump(self) -> str:
        """Return the grant as JSON, to be kept secret until the customer returns."""
        return json.dumps(asdict(self), default=_plain)

    @classmethod
    def load(cls, text: str) -> Self:
        """Return the grant that `dump` wrote. Raises ValueError for any other text."""
        found = json.loads(text)
        try:
            uri, token, not_before = found["continuation"].values()
            found["wallet"] = WalletAddress(**found["wallet"])
            found["limits"] = _limits(found["limits"])
            found["continuation"] = Continuation(uri, token, datetime.fromisoformat(not_before))
            return cls(**found)
        except (KeyError, TypeError, AttributeError):
            raise ValueError("not the text of a pending grant") from None


@dataclass(frozen=True, slots=True)
class Grant:
    """An approved grant of `wallet`.

    `token` is None for a grant of subject information, whose proved wallet addresses are `subject`.
    """

    wallet: WalletAddress
    limits: Limits | None
    token: AccessToken | None
    subject: tuple[str, ...] = ()
    continuation: Continuation | None = None


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"a grant holds no {type(value).__name__}")


def _limits(found: Any) -> Limits | None:
    if found is None:
        return None
    for name in ("debit_amount", "receive_amount"):
        found[name] = found[name] and Amount(**found[name])
    if interval := found["interval"]:
        start = datetime.fromisoformat(interval["start"])
        found["interval"] = Interval(start, interval["months"], interval["days"])
    return Limits(**found)
