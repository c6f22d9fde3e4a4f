from __future__ import annotations

import pytest

from tests.product import World


@pytest.fixture
def world() -> World:
    return World()
