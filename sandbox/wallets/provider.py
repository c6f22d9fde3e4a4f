"""What a wallet provider is: its addresses, its fee, and the ways in which providers lawfully
differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from sandbox.wallets.money import Fee


@dataclass(frozen=True, slots=True)
class Rules:
    """The defaults are a current Rafiki's. `wait` is in whole seconds, as the protocol counts it.

    `hash_over_root`: the interaction hash is taken over the bare authorization server with a slash
    (Rafiki 1 and 2.0). `own_payment_ids`: an outgoing payment is not found by its quote's id.
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
    """`origin` serves the wallet addresses and the resource server, `auth_origin` the
    authorization server.
    """

    name: str
    title: str
    origin: str
    auth_origin: str
    tenant: str
    fee: Fee = Fee()
    rules: Rules = field(default_factory=Rules)

    @property
    def auth_server(self) -> str:
        return f"{self.auth_origin}/{self.tenant}"

    @property
    def resource_server(self) -> str:
        return f"{self.origin}/{self.tenant}"
