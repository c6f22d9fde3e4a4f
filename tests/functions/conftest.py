"""Fixtures of the API, of a merchant's dashboard and of a customer's browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from checkout.domain.session.record import Session
from tests.support.dashboard_pages import Browser, Dashboard, dashboard, dashboard_of
from tests.support.flows import World
from tests.support.hosted_pages import Customer, customer
from tests.support.outbox import Outbox
from tests.support.refund_books import fund
from tests.support.stripe_api import StripeApi


@pytest.fixture
def api() -> StripeApi:
    """Return both APIs, the native one and the one under /v1."""
    return StripeApi()


@pytest.fixture
def shop() -> Iterator[Dashboard]:
    with dashboard() as found:
        yield found


@pytest.fixture
def browser(shop: Dashboard) -> Browser:
    return shop.signed_in()


@pytest.fixture
def world() -> World:
    """A shop with money for refunds."""
    found = World()
    fund(found)
    return found


@pytest.fixture
def owner(world: World) -> Iterator[Browser]:
    with dashboard_of(world) as found:
        yield found


@pytest.fixture
def sold(world: World) -> Session:
    return world.pay(world.create(2000))


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
