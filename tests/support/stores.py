"""Stores on fresh tables, with a client between that counts calls and loses answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ReadTimeoutError

from checkout.adapters.dynamo import (
    DynamoApiKeys,
    DynamoChallenges,
    DynamoDatabase,
    DynamoEvents,
    DynamoLinks,
    DynamoMerchants,
    DynamoSessions,
    read_as_sent,
)
from checkout.adapters.dynamo.daily_totals import DynamoDailyTotals
from checkout.adapters.dynamo.notes import DynamoNotes, DynamoWithdrawals
from checkout.adapters.dynamo.people import DynamoPeople
from sandbox.cloud import table_definitions
from tests.support.basics import seeded

EMULATED = pytest.param("emulator", marks=pytest.mark.cloud)
# For one test of each kind of request, because a moto takes 0.3 s a test.
ON_MOTO_TOO = pytest.mark.parametrize("store", ["memory", "moto", EMULATED], indirect=True)
_WRITES = ("put_item", "update_item", "batch_write_item", "transact_write_items")


def _nothing() -> None:
    return


@dataclass
class Watched:
    """A client whose calls are counted. Its next `lose` writes are done but not answered; what
    `meanwhile` does happens before they are tried again.
    """

    client: Any
    calls: Counter[str] = field(default_factory=Counter)
    lose: int = 0
    meanwhile: Callable[[], object] = _nothing

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self.client, name)

        def call(**request: Any) -> Any:
            self.calls[name] += 1
            answer = operation(**request)
            if name in _WRITES and self.lose:
                self.lose -= 1
                self.meanwhile()
                raise ReadTimeoutError(endpoint_url="http://127.0.0.1")
            return answer

        return call


@dataclass(frozen=True)
class Store:
    """The stores on one client; `with_client` looks at the same tables through another."""

    client: Any
    prefix: str
    sessions: DynamoSessions
    merchants: DynamoMerchants
    api_keys: DynamoApiKeys
    people: DynamoPeople
    challenges: DynamoChallenges
    events: DynamoEvents
    daily_totals: DynamoDailyTotals
    links: DynamoLinks
    notes: DynamoNotes
    withdrawals: DynamoWithdrawals
    database: DynamoDatabase

    def with_client(self, client: Any) -> Store:
        return new_store(client, self.prefix)


def new_store(client: Any, prefix: str) -> Store:
    return Store(
        client=client,
        prefix=prefix,
        sessions=DynamoSessions(client, prefix, sleep=lambda seconds: None, random_bytes=seeded()),
        merchants=DynamoMerchants(client, prefix),
        api_keys=DynamoApiKeys(client, prefix),
        people=DynamoPeople(client, prefix),
        challenges=DynamoChallenges(client, prefix),
        events=DynamoEvents(client, prefix, sleep=lambda seconds: None, random_bytes=seeded()),
        daily_totals=DynamoDailyTotals(
            client, prefix, sleep=lambda seconds: None, random_bytes=seeded()
        ),
        links=DynamoLinks(client, prefix, sleep=lambda seconds: None, random_bytes=seeded()),
        notes=DynamoNotes(client, prefix, sleep=lambda seconds: None, random_bytes=seeded()),
        withdrawals=DynamoWithdrawals(
            client, prefix, sleep=lambda seconds: None, random_bytes=seeded()
        ),
        database=DynamoDatabase(client, prefix),
    )


@cache
def boto(endpoint_url: str | None = None) -> Any:
    """A client that tries once, for moto or the emulator: they take any credentials. Making one
    takes longer than most tests.
    """
    client = boto3.client(
        "dynamodb",
        endpoint_url=endpoint_url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(max_pool_connections=60, retries={"total_max_attempts": 1}),
    )
    read_as_sent(client)
    return client


def with_tables(client: Any, prefix: str) -> Any:
    for definition in table_definitions(prefix):
        client.create_table(**definition)
    return client
