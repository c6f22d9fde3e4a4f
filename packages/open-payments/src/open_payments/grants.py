"""Grants that a customer approves: what is kept until the return, and what the approval gives.

Source: RFC 9635, sections 3, 4 and 5; Open Payments OpenAPI 1.3 (auth server).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Self
from urllib.parse import parse_qsl

from open_payments.errors import Declined, NotFromThisServer
from open_payments.interaction import matches
from open_payments.limits import Interval, Limits
from open_payments.models import AccessToken, Amount, Continuation, WalletAddress


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
        the query reports no approval, which proves nothing, because anyone can write such a query;
        and NotFromThisServer if the hash is missing or wrong (RFC 9635, section 4.2.3).
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
        """Return the grant that `dump` wrote. Raises ValueError or KeyError for any other text."""
        found = json.loads(text)
        continuation = found["continuation"]
        continuation["not_before"] = datetime.fromisoformat(continuation["not_before"])
        return cls(
            **found
            | {
                "wallet": WalletAddress(**found["wallet"]),
                "limits": _limits(found["limits"]),
                "continuation": Continuation(**continuation),
            }
        )


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


def _limits(found: Mapping[str, object] | None) -> Limits | None:
    if found is None:
        return None
    receiver, interval = found["receiver"], found["interval"]
    return Limits(
        receiver=receiver if isinstance(receiver, str) else None,
        debit_amount=_amount(found["debit_amount"]),
        receive_amount=_amount(found["receive_amount"]),
        interval=Interval(**interval | {"start": datetime.fromisoformat(interval["start"])})
        if isinstance(interval, dict)
        else None,
    )


def _amount(found: object) -> Amount | None:
    return Amount(**found) if isinstance(found, dict) else None
