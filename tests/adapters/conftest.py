"""One set of tests, two DynamoDBs: in memory and the embedded emulator; a few ask moto, too."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from moto import mock_aws
from tls_server import authority, names, new_http, server  # noqa: F401 - fixtures

from sandbox.cloud import table_definitions
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.support.stores import EMULATED, Store, Watched, boto, new_store, with_tables


def _store(kind: str, request: pytest.FixtureRequest) -> Iterator[Store]:
    if kind == "memory":
        yield new_store(Watched(InMemoryDynamoDb(table_definitions("test"))), "test")
    elif kind == "moto":
        with mock_aws():
            yield new_store(Watched(with_tables(boto(), "test")), "test")
    else:
        prefix = f"test-{uuid.uuid4().hex[:12]}"
        client = with_tables(boto(request.getfixturevalue("emulator")), prefix)
        yield new_store(Watched(client), prefix)


@pytest.fixture(params=["memory", EMULATED])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Return stores on each DynamoDB in turn."""
    yield from _store(request.param, request)


@pytest.fixture(params=["memory", EMULATED])
def shared(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Return stores for many threads at once, each DynamoDB in turn."""
    yield from _store(request.param, request)
