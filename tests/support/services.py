"""Build the service bags of tests over any DynamoDB client: one place for all suites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from checkout.adapters import dynamo
from checkout.adapters.details_keys import KmsDetailsKeys
from checkout.adapters.dynamo.daily_totals import DynamoDailyTotals
from checkout.adapters.dynamo.merchants import key_item
from checkout.adapters.dynamo.notes import DynamoNotes, DynamoWithdrawals
from checkout.adapters.dynamo.people import DynamoAudit, DynamoPeople, DynamoSubscribers
from checkout.adapters.dynamo.refunds import mandate_item, refund_item
from checkout.adapters.limits import Allowances
from checkout.adapters.outbound.wallets import SignedWallets
from checkout.adapters.passkeys import WebAuthnPasskeys
from checkout.adapters.runtime import run_in_turn
from checkout.adapters.vault import AesVault
from checkout.domain.ground.ids import RandomBytes
from checkout.domain.merchant.record import ApiKey
from checkout.domain.payment.mandate import Mandate
from checkout.domain.refund.record import Refund
from checkout.domain.session.retention import RETENTION
from checkout.ports import Clock, CompletionPolicy, Concurrency, EventQueue, Hosts, TaskQueue
from checkout.services import DashboardServices, PayServices, Services
from open_payments.errors import NotSent
from open_payments.transports import Request, Response

B = TypeVar("B")  # a store of rows beside the sessions


class Nowhere:
    """`Transport` that reaches nobody."""

    def send(self, request: Request, *, timeout: float) -> Response:
        raise NotSent("there is nobody here")


def core(
    client: Any,
    prefix: str,
    *,
    clock: Clock,
    random_bytes: RandomBytes,
    queue: EventQueue,
    tasks: TaskQueue,
    base_url: str,
    allow_loopback: bool = False,
    details_keys: KmsDetailsKeys | None = None,
) -> Services:
    """Return the ports of every entry point; the stores are the product's, not instrumented.

    No client has limits unless a test sets one, because most tests do not move the clock.
    """
    paced: Any = {"sleep": clock.sleep, "random_bytes": random_bytes}
    return Services(
        clock=clock,
        random_bytes=random_bytes,
        base_url=base_url,
        allow_loopback=allow_loopback,
        database=dynamo.DynamoDatabase(client, prefix),
        sessions=dynamo.DynamoSessions(client, prefix, **paced),
        refunds=dynamo.DynamoRefunds(client, prefix, **paced),
        mandates=dynamo.DynamoMandates(client, prefix),
        merchants=dynamo.DynamoMerchants(client, prefix),
        api_keys=dynamo.DynamoApiKeys(client, prefix),
        events=dynamo.DynamoEvents(client, prefix, **paced),
        queue=queue,
        tasks=tasks,
        limits=limits(clock, client, prefix, 0),
        failed_requests=dynamo.DynamoFailedRequests(client, prefix),
        details_keys=details_keys,
    )


def pay(
    base: Services,
    client: Any,
    prefix: str,
    *,
    vault: AesVault,
    wallets: SignedWallets,
    run_concurrently: Concurrency = run_in_turn,
    completion_policy: CompletionPolicy = CompletionPolicy.RECEIVED,
    client_limit: int = 0,
) -> PayServices:
    """Return `base` with wallets, and with merchants cached as in production."""
    shared = base.shared() | {
        "merchants": dynamo.CachedMerchants(client, prefix, base.clock),
        "limits": limits(base.clock, client, prefix, client_limit),
    }
    return PayServices(
        **shared,
        vault=vault,
        wallets=wallets,
        daily_totals=_tallies(base, client, prefix),
        links=links(base, client, prefix),
        notes=_beside(DynamoNotes, base, client, prefix),
        withdrawals=_beside(DynamoWithdrawals, base, client, prefix),
        people=DynamoPeople(client, prefix),
        subscribers=DynamoSubscribers(client, prefix, base.clock),
        run_concurrently=run_concurrently,
        completion_policy=completion_policy,
    )


def dashboard(
    base: Services,
    client: Any,
    prefix: str,
    *,
    vault: AesVault,
    hosts: Hosts,
    wallets: SignedWallets | None = None,
    client_limit: int = 30,
) -> DashboardServices:
    """Return `base` with the merchant's own records. Without `wallets`, none answers."""
    found = wallets or SignedWallets(Nowhere(), vault, base.clock)
    paying = pay(base, client, prefix, vault=vault, wallets=found)
    return DashboardServices(
        **base.shared() | {"limits": limits(base.clock, client, prefix, client_limit)},
        wallets=lambda: found,
        known_merchants=dynamo.CachedMerchants(client, prefix, base.clock),
        vault=vault,
        daily_totals=_tallies(base, client, prefix),
        links=links(base, client, prefix),
        notes=_beside(DynamoNotes, base, client, prefix),
        withdrawals=_beside(DynamoWithdrawals, base, client, prefix),
        sign_ins=dynamo.DynamoSignIns(client, prefix),
        people=DynamoPeople(client, prefix),
        subscribers=DynamoSubscribers(client, prefix, base.clock),
        challenges=dynamo.DynamoChallenges(client, prefix),
        passkeys=WebAuthnPasskeys(base.base_url),
        audit=DynamoAudit(client, prefix),
        hosts=hosts,
        paying=lambda: paying,
    )


def limits(clock: Clock, client: Any, prefix: str, a_minute: int) -> Allowances:
    """Return the limits of a new process."""
    return Allowances(clock, dynamo.DynamoCounters(client, prefix), a_minute=a_minute)


def links(base: Services, client: Any, prefix: str) -> dynamo.DynamoLinks:
    """Return the store of payment links."""
    return dynamo.DynamoLinks(
        client, prefix, sleep=base.clock.sleep, random_bytes=base.random_bytes
    )


def _beside(kind: Callable[..., B], base: Services, client: Any, prefix: str) -> B:
    return kind(client, prefix, sleep=base.clock.sleep, random_bytes=base.random_bytes)


def _tallies(base: Services, client: Any, prefix: str) -> DynamoDailyTotals:
    return DynamoDailyTotals(client, prefix, sleep=base.clock.sleep, random_bytes=base.random_bytes)


def store_refund(client: Any, prefix: str, refund: Refund) -> None:
    """Store `refund` unchanged."""
    item = refund_item(refund, RETENTION)
    client.put_item(TableName=f"{prefix}-checkout_sessions", Item=item)


def store_mandate(client: Any, prefix: str, mandate: Mandate) -> None:
    """Store `mandate` unchanged."""
    item = mandate_item(mandate)
    client.put_item(TableName=f"{prefix}-checkout_sessions", Item=item)


def put_key(client: Any, prefix: str, key: ApiKey) -> None:
    """Store `key` unchanged."""
    client.put_item(TableName=f"{prefix}-api_keys", Item=key_item(key))
