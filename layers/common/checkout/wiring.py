"""Build the implementations of the ports from the settings, once per process.

Each Lambda function calls only the builder of its own services, so that `api` loads no HTTP client
and no template engine.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import boto3
from botocore.config import Config

from checkout import settings as settings_module
from checkout import telemetry
from checkout.adapters import dynamo, queue
from checkout.adapters.aws import BRIEF, THOROUGH, USUAL, PatientClient
from checkout.adapters.instrumented import (
    InstrumentedReceivers,
    InstrumentedSessions,
    InstrumentedTransport,
    count_throttle,
    report_refusal,
)
from checkout.adapters.limits import Allowances
from checkout.adapters.outbound.hosts import ResolvedHosts
from checkout.adapters.runtime import SystemClock, Threads, system_random
from checkout.ports import EventQueue, Mail, TaskQueue
from checkout.services import DashboardServices, PayServices, Services
from checkout.settings import Settings
from checkout.version import VERSION
from open_payments.urls import authority

if TYPE_CHECKING:  # loaded by the builders that need it
    from checkout.adapters.details_keys import KmsDetailsKeys
    from checkout.adapters.dynamo.erasure import DynamoRecords
    from checkout.adapters.outbound.wallets import SignedWallets
    from checkout.adapters.vault import AesVault
    from checkout.flows.webhooks.deliver import MessageResult
    from open_payments.transports.public import PublicTransport


_COLLECT_AFTER: Final = 20_000  # objects
B = TypeVar("B", bound=dynamo.PacedStore)


def observe(service: str) -> None:
    """Start logs and metrics as the function `service`, if this process runs in Lambda.

    The tables' prefix is the stack's name. Raises SettingsError.
    """
    if settings_module.in_lambda(os.environ):
        telemetry.start(service, stack=_prefix())


def build_in_lambda(services: Callable[[], object]) -> None:
    """Build the services while a function's module is loaded, if this process runs in Lambda.

    A module is loaded in Lambda's INIT phase, in which a function has a whole CPU core. Nothing is
    sent, so a process starts even if a store does not answer. The garbage collector, which was off
    until now, is switched on. It ignores the objects that exist now, because they stay in memory
    until the process ends. It runs after every 20 000 new objects instead of every 700, because
    most requests create fewer than 20 000 objects. Raises SettingsError.
    """
    if settings_module.in_lambda(os.environ):
        services()
        gc.freeze()
        gc.set_threshold(_COLLECT_AFTER)
        gc.enable()


@cache
def settings() -> Settings:
    """Return this process's settings. Raises SettingsError."""
    return settings_module.load(os.environ)


def edge_secret() -> str:
    """Return the secret of the edge (a CDN in front of the service), or "" without an edge.

    If the secret is set, functions in Lambda answer only requests that have it.
    """
    return settings().edge_secret if settings_module.in_lambda(os.environ) else ""


def base_url() -> str:
    """Return the service's address, or "" in a process without settings, such as a test."""
    try:
        return settings().base_url
    except settings_module.SettingsError:
        return ""


def test_wallets() -> str:
    """Return the base URL of a test stage's wallets, or "" on any other stage.

    On a test stage, pages and e-mails show that no money is real.
    """
    try:
        return settings().test_wallets
    except settings_module.SettingsError:
        return ""


def doc_url(code: str) -> str:
    """Return the URL of this error's line in the reference under /docs."""
    return f"{base_url()}/docs#{code}"


@cache
def api_services() -> Services:
    """Build the services of functions/api, without wallets and secrets."""
    client, prefix = _store(), _prefix()
    return Services(
        clock=SystemClock(),
        random_bytes=system_random,
        base_url=settings().base_url,
        allow_loopback=settings().allow_loopback_wallets,
        providers=settings().wallet_providers,
        test_wallets=settings().test_wallets,
        database=dynamo.DynamoDatabase(_dynamodb(BRIEF), prefix),
        sessions=_paced(InstrumentedSessions, retention=_retention()),
        refunds=_paced(dynamo.DynamoRefunds),
        mandates=dynamo.DynamoMandates(client, prefix),
        merchants=dynamo.DynamoMerchants(client, prefix),
        api_keys=dynamo.DynamoApiKeys(client, prefix, courtesy=_store(BRIEF)),
        events=_paced(dynamo.DynamoEvents),
        queue=_events_queue(),
        tasks=_tasks_queue(),
        limits=_limits(),
        failed_requests=dynamo.DynamoFailedRequests(_store(BRIEF), prefix),
        details_keys=_details_keys(),
    )


@cache
def client_services() -> Services:
    """Build the services that serve client documents, from merchants read up to a minute ago."""
    return replace(api_services(), merchants=_cached_merchants())


@cache
def dashboard_services() -> DashboardServices:
    """Build the services of functions/dashboard and of commands on webhooks."""
    from checkout.adapters.dynamo.people import DynamoAudit
    from checkout.adapters.passkeys import WebAuthnPasskeys

    base, client, prefix = api_services(), _store(), _prefix()
    return DashboardServices(
        **base.shared(),
        **_of_merchants(),
        known_merchants=_cached_merchants(),
        wallets=_wallets,
        sign_ins=dynamo.DynamoSignIns(client, prefix, courtesy=_store(BRIEF)),
        challenges=dynamo.DynamoChallenges(client, prefix),
        passkeys=WebAuthnPasskeys(base.base_url),
        audit=DynamoAudit(client, prefix, retention=_retention()),
        hosts=ResolvedHosts(allow_loopback=base.allow_loopback),
        paying=pay_services,
        sign_up=settings().sign_up,
    )


@cache
def pay_services() -> PayServices:
    """Build the services of functions/pay, functions/expirer and the setup command."""
    base = api_services()
    shared = base.shared() | {"merchants": _cached_merchants()}
    return PayServices(
        **shared,
        **_of_merchants(),
        wallets=_wallets(),
        run_concurrently=Threads(),
        completion_policy=settings().completion_policy,
    )


def _of_merchants() -> dict[str, Any]:
    """Build the services that `MerchantServices` adds to `Services`, by name."""
    from checkout.adapters.dynamo.daily_totals import DynamoDailyTotals
    from checkout.adapters.dynamo.notes import DynamoNotes, DynamoWithdrawals
    from checkout.adapters.dynamo.people import DynamoPeople, DynamoSubscribers

    client, prefix = _store(), _prefix()
    return {
        "vault": _vault(),
        "daily_totals": _paced(DynamoDailyTotals),
        "links": _paced(dynamo.DynamoLinks),
        "notes": _paced(DynamoNotes, retention=_retention()),
        "withdrawals": _paced(DynamoWithdrawals, retention=_retention()),
        "people": DynamoPeople(client, prefix, retention=_retention()),
        "subscribers": DynamoSubscribers(client, prefix, SystemClock()),
        "mail": _mail(),
        "edge_secret": settings().edge_secret,
    }


def records() -> DynamoRecords:
    """Build the reader of whole tables, for the command line."""
    from checkout.adapters.dynamo.erasure import DynamoRecords

    return DynamoRecords(_dynamodb(THOROUGH), _prefix())


@cache
def webhook_sender() -> Callable[[str], MessageResult]:
    """Build the function that functions/webhook_sender calls for each event id."""
    from checkout.adapters.outbound.receivers import PublicReceivers
    from checkout.flows.webhooks.deliver import deliver

    base = api_services()
    receivers = InstrumentedReceivers(PublicReceivers(_public_http()), base.clock.now)
    return partial(deliver, base, _vault(), receivers)


@cache
def _wallets() -> SignedWallets:
    from checkout.adapters.outbound.wallets import SignedWallets, StageTransport

    base = api_services()
    public = StageTransport(_public_http(), base.test_wallets)
    known = frozenset(authority(each.form) for each in base.providers)
    return SignedWallets(
        InstrumentedTransport(public, base.clock.now, known=known),
        _vault(),
        base.clock,
        allow_loopback=base.allow_loopback,
        on_refusal=report_refusal,
    )


def _public_http() -> PublicTransport:
    from open_payments.transports.public import PublicTransport

    chosen = settings()
    return PublicTransport(
        user_agent=f"checkout-sessions/{VERSION}",
        ca_file=chosen.extra_ca_file or None,
        allow_loopback=chosen.allow_loopback_wallets,
    )


@cache
def _store(usual: Config = USUAL) -> dynamo.Client:
    """Return the client that all stores share, because new connections take time."""
    patient: Any = PatientClient(_dynamodb(usual), _dynamodb(BRIEF))
    client: dynamo.Client = patient
    return client


@cache
def _dynamodb(config: Config) -> dynamo.Client:
    place = dynamo.parse_database_url(settings().database_url)
    client = boto3.client("dynamodb", endpoint_url=place.endpoint_url, config=config)
    client.meta.events.register("response-received.dynamodb", count_throttle)
    dynamo.read_as_sent(client)
    made: dynamo.Client = client
    return made


def _prefix() -> str:
    return dynamo.parse_database_url(settings().database_url).prefix


def _retention() -> timedelta:
    return timedelta(days=settings().retention_days)


def _paced(kind: type[B], **given: Any) -> B:
    """Build a store that repeats its calls, after pauses."""
    sleep = SystemClock().sleep
    return kind(_store(), _prefix(), sleep=sleep, random_bytes=system_random, **given)


def _cached_merchants() -> dynamo.CachedMerchants:
    return dynamo.CachedMerchants(_store(), _prefix(), SystemClock())


def _limits() -> Allowances:
    counters = dynamo.DynamoCounters(_store(), _prefix())
    return Allowances(SystemClock(), counters, a_minute=settings().client_limit)


def _events_queue() -> EventQueue:
    url = settings().events_queue_url
    return queue.SqsEventQueue(_sqs, url) if url else queue.NoQueue()


def _tasks_queue() -> TaskQueue:
    url = settings().tasks_queue_url
    return queue.SqsTaskQueue(_sqs, url) if url else queue.NoQueue()


@cache
def _sqs() -> queue.SqsClient:
    client: queue.SqsClient = boto3.client("sqs", config=BRIEF)
    return client


def _mail() -> Mail | None:
    sender = settings().receipt_sender
    if not sender:
        return None
    from checkout.adapters.mail import ONCE, SesMail

    return SesMail(cache(lambda: boto3.client("sesv2", config=ONCE)), sender)


def _details_keys() -> KmsDetailsKeys | None:
    key_id = settings().details_kms_key
    if not key_id:
        return None
    from checkout.adapters.details_keys import KmsDetailsKeys

    return KmsDetailsKeys(cache(lambda: boto3.client("kms", config=USUAL)), key_id, _under)


def _under(key: str) -> AesVault:
    from checkout.adapters import vault

    return vault.AesVault(lambda: key, system_random, derive=bytes.fromhex)


def _vault() -> AesVault:
    from checkout.adapters import vault

    chosen = settings()
    if chosen.encryption_key:
        return vault.AesVault(lambda: chosen.encryption_key, system_random)
    if not chosen.encryption_key_secret:
        raise settings_module.SettingsError("ENCRYPTION_KEY or ENCRYPTION_KEY_SECRET must be set.")
    client = boto3.client("secretsmanager", config=USUAL)
    source = vault.key_from_secrets_manager(client, chosen.encryption_key_secret)
    return vault.AesVault(source, system_random)
