"""One set of tests, two DynamoDBs: in memory and the embedded emulator; a few ask moto, too."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from moto import mock_aws

from checkout.adapters.outbound.http import PublicHttp
from sandbox.cloud import table_definitions
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.support.stores import EMULATED, Store, Watched, boto, new_store, with_tables
from tests.support.tls_server import Authority, Names, TlsServer, make_authority


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


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def server(authority: Authority) -> Iterator[TlsServer]:
    """For tests that may open sockets."""
    server = TlsServer(authority.tls)
    yield server
    server.close()


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture
def new_http(authority: Authority, names: Names) -> Iterator[Callable[..., PublicHttp]]:
    """Return a maker of clients that trust the test's authority; all are closed at the end."""
    usual: dict[str, Any] = {"version": "1.2.3", "ca_file": authority.ca_file, "resolve": names}
    made: list[PublicHttp] = []

    def make(**options: Any) -> PublicHttp:
        made.append(PublicHttp(**(usual | {"allow_loopback": True} | options)))
        return made[-1]

    yield make
    for http in made:
        http.close()
