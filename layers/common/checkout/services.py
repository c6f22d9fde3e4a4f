"""Group ports and stores in classes of services, one for each kind of entry point.

Every entry point has `Services`. `PayServices` adds wallets, for functions/pay, functions/expirer
and the command line. `DashboardServices` adds what signed-in people use, for functions/dashboard.
Both classes extend `MerchantServices`. A flow takes the smallest class that contains the services
that the flow uses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from checkout.domain.ground.grammar import TestUrl
from checkout.domain.ground.ids import RandomBytes
from checkout.domain.ground.providers import Provider
from checkout.domain.merchant.people import SignUp
from checkout.ports import (
    Clock,
    CompletionPolicy,
    Concurrency,
    EventQueue,
    Hosts,
    Mail,
    TaskQueue,
    WriteAcknowledgement,
    WriteNotice,
)

if TYPE_CHECKING:  # at run time, wiring.py imports only what a function needs
    from checkout.adapters.details_keys import KmsDetailsKeys
    from checkout.adapters.dynamo import (
        DynamoApiKeys,
        DynamoChallenges,
        DynamoDatabase,
        DynamoEvents,
        DynamoFailedRequests,
        DynamoLinks,
        DynamoMandates,
        DynamoMerchants,
        DynamoRefunds,
        DynamoSessions,
        DynamoSignIns,
    )
    from checkout.adapters.dynamo.daily_totals import DynamoDailyTotals
    from checkout.adapters.dynamo.notes import DynamoNotes, DynamoWithdrawals
    from checkout.adapters.dynamo.people import DynamoAudit, DynamoPeople, DynamoSubscribers
    from checkout.adapters.limits import Allowances
    from checkout.adapters.outbound.wallets import SignedWallets
    from checkout.adapters.passkeys import WebAuthnPasskeys
    from checkout.adapters.vault import AesVault


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Services:
    """The services of every entry point.

    `base_url` has no trailing slash. `allow_loopback` is for development only: wallets and webhook
    endpoints on this machine are allowed. `providers` are the operator's wallet providers for the
    hosted page. `test_wallets` is the base URL of the wallets of a test stage (a deployment with
    play money), or "" on any other stage. Without `details_keys`, the API shows no details of
    customers.
    """

    clock: Clock
    random_bytes: RandomBytes
    base_url: str
    allow_loopback: bool = False
    providers: tuple[Provider, ...] = ()
    test_wallets: str = ""
    database: DynamoDatabase
    sessions: DynamoSessions
    refunds: DynamoRefunds
    mandates: DynamoMandates
    merchants: DynamoMerchants
    api_keys: DynamoApiKeys
    events: DynamoEvents
    queue: EventQueue
    tasks: TaskQueue
    limits: Allowances
    failed_requests: DynamoFailedRequests
    details_keys: KmsDetailsKeys | None = None

    def __post_init__(self) -> None:
        if self.test:
            object.__setattr__(self, "base_url", TestUrl(self.base_url))

    @property
    def test(self) -> bool:
        """Return whether this is a test stage, where no money is real."""
        return bool(self.test_wallets)

    def shared(self) -> dict[str, Any]:
        """Return these ports by name, to build a larger class of services."""
        return {each.name: getattr(self, each.name) for each in fields(Services)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MerchantServices(Services):
    """The merchant's own records and secrets.

    `edge_secret` proves that a request came through the edge, a CDN in front of the service
    (`client_address.py`). Without `mail`, no e-mail is sent.
    """

    vault: AesVault
    daily_totals: DynamoDailyTotals
    links: DynamoLinks
    notes: DynamoNotes
    withdrawals: DynamoWithdrawals
    people: DynamoPeople
    subscribers: DynamoSubscribers
    mail: Mail | None = None
    edge_secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PayServices(MerchantServices):
    """The services of flows that call wallets, and of the sweep (the scheduled job).

    `write_notice` and `write_acknowledgement` are set only for the sweep.
    """

    wallets: SignedWallets
    write_notice: WriteNotice | None = None
    write_acknowledgement: WriteAcknowledgement | None = None
    run_concurrently: Concurrency
    completion_policy: CompletionPolicy


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DashboardServices(MerchantServices):
    """The services of flows that act for a signed-in merchant.

    `known_merchants` caches merchants for up to a minute, for the head of each page.
    `wallets` creates the wallet clients, which most pages do not need. `paying` creates the
    services of flows that call wallets. `sign_up` defines who may sign up.
    """

    known_merchants: DynamoMerchants
    wallets: Callable[[], SignedWallets]
    sign_ins: DynamoSignIns
    challenges: DynamoChallenges
    passkeys: WebAuthnPasskeys
    audit: DynamoAudit
    hosts: Hosts
    paying: Callable[[], PayServices]
    sign_up: SignUp = SignUp.CLOSED
