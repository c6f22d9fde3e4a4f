from __future__ import annotations

import pytest

from tests.support.flows import World
from tests.support.merchant_api import MerchantApi


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def api() -> MerchantApi:
    return MerchantApi()
