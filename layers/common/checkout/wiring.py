"""The one place that builds what stands behind the ports, from the settings, once per process.

Each function calls the one builder it needs, so that `api` loads no HTTP client and no page engine.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from checkout import settings as settings_module
from checkout import telemetry
from checkout.adapters import dynamo, queue
from checkout.adapters.addresses import ResolvedHosts
from checkout.adapters.clock import SystemClock, system_random
from checkout.adapters.told import ToldReceivers, ToldSessions, ToldTransport
from checkout.ports import (
    DashboardServices,
    EndpointServices,
    EventQueue,
    PayServices,
    SenderServices,
    Services,
    TaskQueue,
    Vault,
)
from checkout.settings import Settings
from checkout.version import VERSION

if TYPE_CHECKING:  # loaded by the builders that need it
    from checkout.adapters.http import PublicHttp

# A table answers in milliseconds; what takes longer is tried again on another connection. With the
# store's own repetitions it stays below API Gateway's 30 s. Times are in seconds.
_AWS = Config(
    connect_timeout=1, read_timeout=3, retries={"mode": "standard", "total_max_attempts": 2}
)
# For what nobody should wait for: health, and tasks after the answer.
_BRIEF = Config(
    connect_timeout=0.5, read_timeout=1, retries={"mode": "standard", "total_max_attempts": 1}
)


def observe(service: str) -> None:
    """This process is the function `service`; outside of Lambda its log is the process's own
    matter.
    """
    if settings_module.in_lambda(os.environ):
        telemetry.start(service)


@cache
def settings() -> Settings:
    """This process's settings. Raises SettingsError."""
    return settings_module.load(os.environ)


@cache
def api_services() -> Services:
    """For functions/api: no wallet, no secret."""
    client, prefix = _dynamodb(_AWS), _prefix()
    clock = SystemClock()
    return Services(
        clock=clock,
        random_bytes=system_random,
        sessions=ToldSessions(client, prefix, sleep=clock.sleep, random_bytes=system_random),
        merchants=dynamo.DynamoMerchants(client, prefix),
        database=dynamo.DynamoDatabase(_dynamodb(_BRIEF), prefix),
        base_url=settings().base_url,
        queue=_events_queue(),
        tasks=_tasks_queue(),
    )


@cache
def dashboard_services() -> DashboardServices:
    """For functions/dashboard: no wallet."""
    base = api_services()
    client, prefix = _dynamodb(_AWS), _prefix()
    return DashboardServices(
        clock=base.clock,
        random_bytes=base.random_bytes,
        sessions=base.sessions,
        merchants=base.merchants,
        database=base.database,
        base_url=base.base_url,
        queue=base.queue,
        tasks=base.tasks,
        events=_events(),
        tallies=_tallies(),
        sign_ins=dynamo.DynamoSignIns(client, prefix),
        audit=dynamo.DynamoAudit(client, prefix),
        api_keys=dynamo.DynamoApiKeys(client, prefix),
        endpoints=endpoint_services(),
    )


@cache
def pay_services() -> PayServices:
    """For functions/pay, functions/expirer and the setup command: wallets, secrets, the event
    queue.
    """
    from checkout.adapters.merchants import CachedMerchants
    from checkout.adapters.wallets import SignedWallets

    base = api_services()
    chosen = settings()
    sealed = _vault()
    return PayServices(
        clock=base.clock,
        random_bytes=base.random_bytes,
        sessions=base.sessions,
        merchants=CachedMerchants(base.merchants, base.clock),
        database=base.database,
        base_url=base.base_url,
        queue=base.queue,
        tasks=base.tasks,
        vault=sealed,
        wallets=SignedWallets(
            ToldTransport(_public_http(), base.clock.now),
            sealed,
            base.clock,
            allow_loopback=chosen.allow_loopback_wallets,
        ),
        events=_events(),
        tallies=_tallies(),
        completion_policy=chosen.completion_policy,
        allow_loopback=chosen.allow_loopback_wallets,
    )


@cache
def sender_services() -> SenderServices:
    """For functions/webhook_sender."""
    from checkout.adapters.receivers import PublicReceivers

    base = api_services()
    return SenderServices(
        clock=base.clock,
        random_bytes=base.random_bytes,
        merchants=base.merchants,
        events=_events(),
        queue=base.queue,
        vault=_vault(),
        receivers=ToldReceivers(PublicReceivers(_public_http()), base.clock.now),
    )


@cache
def endpoint_services() -> EndpointServices:
    """For whatever a merchant looks after their webhooks with."""
    base = api_services()
    allow_loopback = settings().allow_loopback_wallets
    return EndpointServices(
        clock=base.clock,
        random_bytes=base.random_bytes,
        merchants=base.merchants,
        events=_events(),
        queue=base.queue,
        vault=_vault(),
        hosts=ResolvedHosts(allow_loopback=allow_loopback),
        allow_loopback=allow_loopback,
    )


def _public_http() -> PublicHttp:
    from checkout.adapters.http import PublicHttp

    chosen = settings()
    return PublicHttp(
        version=VERSION,
        ca_file=chosen.extra_ca_file or None,
        allow_loopback=chosen.allow_loopback_wallets,
    )


@cache
def _dynamodb(config: Config) -> dynamo.Client:
    """One for all stores of a process: each has connections of its own, which take time to make."""
    place = dynamo.parse_database_url(settings().database_url)
    client: dynamo.Client = boto3.client("dynamodb", endpoint_url=place.endpoint_url, config=config)
    return client


def _prefix() -> str:
    return dynamo.parse_database_url(settings().database_url).prefix


def _events() -> dynamo.DynamoEvents:
    return dynamo.DynamoEvents(
        _dynamodb(_AWS), _prefix(), sleep=SystemClock().sleep, random_bytes=system_random
    )


def _tallies() -> dynamo.DynamoTallies:
    return dynamo.DynamoTallies(
        _dynamodb(_AWS), _prefix(), sleep=SystemClock().sleep, random_bytes=system_random
    )


def _events_queue() -> EventQueue:
    url = settings().events_queue_url
    return queue.SqsEventQueue(_sqs, url) if url else queue.NoQueue()


def _tasks_queue() -> TaskQueue:
    url = settings().tasks_queue_url
    return queue.SqsTaskQueue(_sqs, url) if url else queue.NoQueue()


@cache
def _sqs() -> queue.SqsClient:
    client: queue.SqsClient = boto3.client("sqs", config=_BRIEF)
    return client


def _vault() -> Vault:
    from checkout.adapters import vault

    chosen = settings()
    if chosen.encryption_key:
        return vault.AesVault(lambda: chosen.encryption_key, system_random)
    if not chosen.encryption_key_secret:
        raise settings_module.SettingsError("ENCRYPTION_KEY or ENCRYPTION_KEY_SECRET must be set.")
    client = boto3.client("secretsmanager", config=_AWS)
    source = vault.key_from_secrets_manager(client, chosen.encryption_key_secret)
    return vault.AesVault(source, system_random)
