"""Group the ports in the three bags that flows take, one for each kind of entry point.

`Services` is what every entry point has. `PayServices` adds wallets, for functions/pay,
functions/expirer and the command line. `DashboardServices` adds the merchant's own records, for
functions/dashboard. Flows ask for the smallest bag that has what they use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from checkout.domain.providers import Provider
from checkout.ports.limits import Limits
from checkout.ports.links import Links
from checkout.ports.mail import Mail
from checkout.ports.merchants import ApiKeys, Audit, Merchants, SignIns
from checkout.ports.people import Challenges, Passkeys, People
from checkout.ports.runtime import Clock, Database, RandomBytes, SideBySide, Vault
from checkout.ports.sessions import Sessions, Tallies
from checkout.ports.wallets import CompletionPolicy, TaskQueue, Wallets
from checkout.ports.webhooks import EventQueue, Events, Hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The ports of every entry point.

    `base_url` has no trailing slash. `allow_loopback` is for development only: wallets and webhook
    endpoints on this machine are allowed. `providers` are the operator's, which the hosted page
    offers.
    """

    clock: Clock
    random_bytes: RandomBytes
    base_url: str
    allow_loopback: bool = False
    providers: tuple[Provider, ...] = ()
    database: Database
    sessions: Sessions
    merchants: Merchants
    api_keys: ApiKeys
    events: Events
    queue: EventQueue
    tasks: TaskQueue

    def shared(self) -> dict[str, Any]:
        """Return these ports by name, to compose a larger bag of them."""
        return {each.name: getattr(self, each.name) for each in fields(Services)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PayServices(Services):
    """The ports of flows that speak to wallets, and of the sweep.

    With `edge_secret`, an edge proves that it names the client (`clients.py`). Without `mail`,
    nothing is sent by e-mail.
    """

    vault: Vault
    wallets: Wallets
    tallies: Tallies
    links: Links
    limits: Limits
    mail: Mail | None = None
    edge_secret: str = field(default="", repr=False)
    side_by_side: SideBySide
    completion_policy: CompletionPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardServices(Services):
    """The ports of flows that act for a signed-in merchant.

    `known_merchants` are as they were up to a minute ago, for the head of each page. `wallets`
    makes what speaks to wallets, which most pages do not need.
    """

    known_merchants: Merchants
    wallets: Callable[[], Wallets]
    vault: Vault
    tallies: Tallies
    links: Links
    sign_ins: SignIns
    people: People
    challenges: Challenges
    passkeys: Passkeys
    audit: Audit
    hosts: Hosts
    limits: Limits
    edge_secret: str = field(default="", repr=False)
