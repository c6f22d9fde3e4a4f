from __future__ import annotations

import pytest

from tests.support.flows import World
from tests.support.refund_books import fund


@pytest.fixture
def world() -> World:
    """A shop with money of its own, since a refund of converted money costs more than it made."""
    found = World()
    fund(found)
    return found
