"""Fixtures of a merchant's dashboard and of a customer's browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.support.dashboard_pages import Browser, Dashboard, dashboard
from tests.support.flows import World
from tests.support.hosted_pages import Customer, customer
from tests.support.outbox import Outbox


@pytest.fixture
def shop() -> Iterator[Dashboard]:
    with dashboard() as found:
        yield found


@pytest.fixture
def browser(shop: Dashboard) -> Browser:
    return shop.signed_in()


@pytest.fixture
def visitor() -> Iterator[Customer]:
    with customer() as found:
        yield found


@pytest.fixture
def outbox() -> Outbox:
    return Outbox()


@pytest.fixture
def buyer(outbox: Outbox) -> Iterator[Customer]:
    """A customer of a shop whose mail goes to the outbox."""
    world = World()
    world.services = replace(world.services, mail=outbox)
    with customer(world) as found:
        yield found
