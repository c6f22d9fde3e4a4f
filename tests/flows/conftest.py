from __future__ import annotations

import pytest

from tests.support.flows import World


@pytest.fixture
def world() -> World:
    return World()
