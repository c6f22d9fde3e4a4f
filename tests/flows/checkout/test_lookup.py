"""A merchant reads only their own sessions, as the clock has left them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from checkout.domain.errors import (
    ResourceMissing,
)
from checkout.domain.merchant import ApiKey
from checkout.domain.session import Session, Status
from checkout.flows.checkout import ends, lookup
from checkout.ports.services import Services
from tests.support.merchant_api import MerchantApi

End = Callable[[Services, ApiKey, str], Session]


@pytest.fixture
def api() -> MerchantApi:
    return MerchantApi()


def test_another_merchants_session_is_missing_like_an_unknown_one(api: MerchantApi) -> None:
    session = api.store()
    actions: list[End] = [lookup.get, ends.expire, ends.cancel]
    for action in actions:
        for key, session_id in [
            (api.other_key, session.id),
            (api.key, "cs_" + "0" * 22),
            (api.key, "cs_" + "0" * 21),
            (api.key, "cs_" + "0" * 3000),
            (api.key, ""),
            (api.key, "evt_" + "0" * 22),
            (api.key, "cs_" + "é" * 22),
        ]:
            with pytest.raises(ResourceMissing):
                action(api.services, key, session_id)
    assert api.stored(session.id) == session


def test_a_read_persists_that_time_is_up(api: MerchantApi) -> None:
    session = api.store()
    api.clock.pass_time(24 * 3600 - 0.001)
    assert lookup.get(api.services, api.key, session.id) == session
    api.clock.pass_time(0.001)
    assert lookup.get(api.services, api.key, session.id).status is Status.EXPIRED
    assert api.stored(session.id).status is Status.EXPIRED
    assert not api.rows("webhook_events")
