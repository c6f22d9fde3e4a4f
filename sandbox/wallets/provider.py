"""A wallet provider: its addresses, its fee, and options in which providers differ."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from sandbox.wallets.money import Fee


@dataclass(frozen=True, slots=True)
class Closing:
    """A provider's answer to `complete`, the request that closes an incoming payment.

    `closes` is whether the request closes an open payment, and `empty` whether a successful answer
    has no body. If `status` is an error, closed payments get this error too.
    """

    status: int = 200
    description: str = ""
    closes: bool = True
    empty: bool = False


CLOSINGS: Final = {
    "200": Closing(),
    "200, empty": Closing(empty=True),
    "204": Closing(204, empty=True),
    "400": Closing(400, "invalid request", closes=False),
    "403": Closing(403, "forbidden", closes=False),
    "405": Closing(405, "method not allowed", closes=False),
    "409 wrong state": Closing(409, "wrong state", closes=False),
    "409 wrong state, closed": Closing(409, "wrong state"),
    "409 other words": Closing(409, "already being processed", closes=False),
    "409 other words, closed": Closing(409, "already being processed"),
    "500": Closing(500, closes=False),
    "500, closed": Closing(500),
}


@dataclass(frozen=True, slots=True)
class Rules:
    """Options of a provider; the defaults are a current Rafiki's. `wait` is in whole seconds.

    `client_objects` (Open Payments 1.3) and `client_strings` are the forms in which a grant request
    can name its client. With `hash_over_root` the interaction hash contains the authorization
    server's bare origin with a slash, as in Rafiki 1 and 2.0. With `own_payment_ids` an outgoing
    payment does not have the id of its quote. `incoming_life` is the life of every incoming
    payment, regardless of the request.

    Each use makes a token inactive with the probability `loses_tokens`. Without `rotates`, tokens
    cannot be rotated. A rotation fails with the probability `busy`, as if the database were busy,
    and then has no effect. A token is deleted `token_kept` after its expiry. Without `readable`, no
    payer's provider can read the incoming payments of this provider.
    """

    wait: int = 5
    token_life: timedelta = timedelta(minutes=10)
    hash_over_root: bool = False
    client_objects: bool = True
    client_strings: bool = True
    single_use_quotes: bool = True
    lists: bool = True
    limits_enforced: bool = True
    own_payment_ids: bool = False
    closing: Closing = field(default_factory=Closing)
    incoming_life: timedelta | None = None
    loses_tokens: float = 0.0
    rotates: bool = True
    token_kept: timedelta = timedelta(days=30)
    busy: float = 0.0
    readable: bool = True


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider: `origin` serves wallet addresses and resources, `auth_origin` authorization.

    The provider's clock is ahead by `skew`.
    """

    name: str
    title: str
    origin: str
    auth_origin: str
    tenant: str
    fee: Fee = field(default_factory=Fee)
    rules: Rules = field(default_factory=Rules)
    skew: timedelta = timedelta(0)

    @property
    def auth_server(self) -> str:
        return f"{self.auth_origin}/{self.tenant}"

    @property
    def resource_server(self) -> str:
        return f"{self.origin}/{self.tenant}"
