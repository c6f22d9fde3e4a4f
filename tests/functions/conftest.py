"""Fixtures of a merchant's dashboard and of a customer's browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.dashboard_pages import Browser, Dashboard, dashboard
from tests.hosted_pages import Customer, customer


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
