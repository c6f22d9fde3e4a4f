from __future__ import annotations

import pytest

from tests.support.attack_counts import COUNTED, Attack
from tests.support.doors import Doors
from tests.support.flows import World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def attack(request: pytest.FixtureRequest) -> Attack:
    """Count what the test tries, for the summary of the run."""
    found = Attack()
    request.node.user_properties.append((COUNTED, found.counts))
    return found


@pytest.fixture(scope="module")
def shared() -> Doors:
    """Return doors that all tests of a suite share: none of their cases may change anything."""
    return Doors()


@pytest.fixture
def doors() -> Doors:
    return Doors()
