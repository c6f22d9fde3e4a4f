"""Group the ports in three classes of services, one for each kind of entry point.

Every entry point has `Services`. `PayServices` adds wallets, for functions/pay, functions/expirer
and the command line. `DashboardServices` adds the merchant's own records, for functions/dashboard.
A flow takes the smallest class that has the ports it uses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from checkout.domain.grammar import TestUrl
from checkout.domain.people import SignUp
from checkout.domain.providers import Provider
from checkout.ports.limits import RateLimits
from checkout.ports.links import Links
from checkout.ports.mail import Mail, WriteAcknowledgement, WriteNotice
from checkout.ports.mandates import Mandates
from checkout.ports.merchants import ApiKeys, Audit, Merchants, SignIns
from checkout.ports.notes import Notes, Withdrawals
from checkout.ports.people import Challenges, Passkeys, People
from checkout.ports.refunds import Refunds
from checkout.ports.refusals import RefusalLog
from checkout.ports.runtime import (
    Clock,
    Database,
    DetailsKeys,
    RandomBytes,
    SideBySide,
    Vault,
)
from checkout.ports.sessions import Sessions, Tallies
from checkout.ports.subscribers import Subscribers
from checkout.ports.wallets import CompletionPolicy, TaskQueue, Wallets
from checkout.ports.webhooks import EventQueue, Events, Hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The ports of every entry point.

    `base_url` has no trailing slash. `allow_loopback` is for development only: wallets and webhook
    endpoints on this machine are allowed. `providers` are the operator's wallet providers for the
    hosted page. `test_wallets` is the address below which a test stage has its wallets, "" on any
    other stage. Without `details_keys`, the API shows no details of customers.
    """

    clock: Clock
    random_bytes: RandomBytes
    base_url: str
    allow_loopback: bool = False
    providers: tuple[Provider, ...] = ()
    test_wallets: str = ""
    database: Database
    sessions: Sessions
    refunds: Refunds
    mandates: Mandates
    merchants: Merchants
    api_keys: ApiKeys
    events: Events
    queue: EventQueue
    tasks: TaskQueue
    limits: RateLimits
    refusals: RefusalLog
    details_keys: DetailsKeys | None = None

    def __post_init__(self) -> None:
        if self.test:
            object.__setattr__(self, "base_url", TestUrl(self.base_url))

    @property
    def test(self) -> bool:
        """Whether this is a test stage, where nothing is paid with real money."""
        return bool(self.test_wallets)

    def shared(self) -> dict[str, Any]:
        """Return these ports by name, to compose a larger bag of them."""
        return {each.name: getattr(self, each.name) for each in fields(Services)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PayServices(Services):
    """The ports of flows that call wallets, and of the sweep.

    An edge proves itself with `edge_secret` (`clients.py`). Without `mail`, no e-mail is sent; only
    the sweep has `write_notice` and `write_acknowledgement`.
    """

    vault: Vault
    wallets: Wallets
    tallies: Tallies
    links: Links
    notes: Notes
    withdrawals: Withdrawals
    people: People
    subscribers: Subscribers
    mail: Mail | None = None
    write_notice: WriteNotice | None = None
    write_acknowledgement: WriteAcknowledgement | None = None
    edge_secret: str = field(default="", repr=False)
    side_by_side: SideBySide
    completion_policy: CompletionPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardServices(Services):
    """The ports of flows that act for a signed-in merchant.

    `known_merchants` may be up to a minute old; they are for the head of each page. `wallets` makes
    the wallet clients, which most pages do not need, and `paying` the services of flows that call
    wallets. `sign_up` says who may sign up.
    """

    known_merchants: Merchants
    wallets: Callable[[], Wallets]
    vault: Vault
    tallies: Tallies
    links: Links
    notes: Notes
    withdrawals: Withdrawals
    sign_ins: SignIns
    people: People
    subscribers: Subscribers
    mail: Mail | None = None
    challenges: Challenges
    passkeys: Passkeys
    audit: Audit
    hosts: Hosts
    paying: Callable[[], PayServices]
    edge_secret: str = field(default="", repr=False)
    sign_up: SignUp = SignUp.CLOSED
