from __future__ import annotations

import pytest

from tests.support.wallet_client import World


@pytest.fixture
def world() -> World:
    return World()
