"""One world and one pretix for all tests, each in an order of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from world import World


@pytest.fixture(scope="session")
def starting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world that starts while pretix makes its tables."""
    world = World(Path(tmp_path_factory.mktemp("world")))
    yield world
    world.end()


@pytest.fixture(scope="session")
def shop(starting: World, django_db_setup: None, django_db_blocker: Any) -> Iterator[Any]:
    """pretix from an empty database, with the plugin set up by its pages."""
    from django.conf import settings
    from pytest_django.live_server_helper import LiveServer
    from shop import Shop, site

    with django_db_blocker.unblock():
        server = LiveServer(f"localhost:{settings.PRETIX_PORT}")
        # Addresses of this machine: pretix refuses them otherwise, see `test_traps.py`.
        settings.ALLOW_HTTP_TO_PRIVATE_NETWORKS = True
        starting.ready()
        yield Shop(site(), starting)
        server.stop()


@pytest.fixture
def world(shop: Any) -> World:
    found: World = shop.world
    return found


@pytest.fixture(scope="session")
def django_db_setup(
    starting: World, request: pytest.FixtureRequest, django_db_blocker: Any
) -> Iterator[None]:
    """Make pretix's tables after the world was started, so that both are made at once."""
    from django.test.utils import setup_databases, teardown_databases

    with django_db_blocker.unblock():
        made = setup_databases(verbosity=0, interactive=False)
    yield
    with django_db_blocker.unblock():
        teardown_databases(made, verbosity=0)
