"""A wallet provider: its addresses, its fee, and the options in which providers differ."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from sandbox.wallets.money import Fee


@dataclass(frozen=True, slots=True)
class Rules:
    """Options of a provider; the defaults are a current Rafiki's. `wait` is in whole seconds.

    With `hash_over_root` the interaction hash is over the authorization server's bare origin with a
    slash (Rafiki 1 and 2.0). With `own_payment_ids` an outgoing payment's id is not its quote's.
    """

    wait: int = 5
    token_life: timedelta = timedelta(minutes=10)
    hash_over_root: bool = False
    client_objects: bool = True
    single_use_quotes: bool = True
    lists: bool = True
    limits_enforced: bool = True
    own_payment_ids: bool = False


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider: `origin` serves wallet addresses and resources, `auth_origin` authorization."""

    name: str
    title: str
    origin: str
    auth_origin: str
    tenant: str
    fee: Fee = field(default_factory=Fee)
    rules: Rules = field(default_factory=Rules)

    @property
    def auth_server(self) -> str:
        return f"{self.auth_origin}/{self.tenant}"

    @property
    def resource_server(self) -> str:
        return f"{self.origin}/{self.tenant}"
