from __future__ import annotations

import pytest

from tests.sandbox.wallet_client import World


@pytest.fixture
def world() -> World:
    return World()
