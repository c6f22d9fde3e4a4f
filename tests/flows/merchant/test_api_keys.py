"""API keys whose merchant, or whose last companion, is changed by somebody else meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from checkout.domain.ground.errors import Conflict, ParameterInvalid
from checkout.domain.merchant.record import ApiKey
from checkout.flows.merchant import api_keys
from checkout.services import DashboardServices
from tests.support.basics import between
from tests.support.dashboard_pages import Dashboard, dashboard
from tests.support.merchant_api import SESSIONS

DAY = timedelta(days=1)


@pytest.fixture
def shop() -> Iterator[Dashboard]:
    with dashboard() as found:
        yield found


@pytest.fixture
def second(shop: Dashboard) -> ApiKey:
    return api_keys.create(shop.services, shop.key, name="Second").key


def racing(shop: Dashboard, write: str, meanwhile: Callable[[], object]) -> DashboardServices:
    """Return the services, of which the next such write of keys comes after `meanwhile`."""
    return replace(shop.services, api_keys=between(shop.services.api_keys, write, meanwhile))


def renamed(shop: Dashboard) -> None:
    merchant = shop.services.merchants.get("mer_1")
    assert merchant is not None
    shop.services.merchants.replace(merchant.changed(name="New name"))


def test_a_key_is_not_made_from_a_merchant_that_changed_meanwhile(shop: Dashboard) -> None:
    with pytest.raises(Conflict, match="changed in the meantime"):
        api_keys.create(racing(shop, "add", lambda: renamed(shop)), shop.key, name="Late")
    rolling = racing(shop, "roll", lambda: renamed(shop))
    with pytest.raises(Conflict):
        api_keys.roll(rolling, shop.key, shop.key.id, overlap=DAY)
    assert shop.services.api_keys.of("mer_1") == (shop.key,)


def test_of_two_who_roll_the_same_key_one_makes_a_new_one(shop: Dashboard) -> None:
    def meanwhile() -> None:
        api_keys.roll(shop.services, shop.key, shop.key.id, overlap=DAY)

    with pytest.raises(Conflict):
        api_keys.roll(racing(shop, "roll", meanwhile), shop.key, shop.key.id, overlap=DAY)
    assert len(shop.services.api_keys.of("mer_1")) == 2


def test_of_two_who_revoke_the_last_two_keys_one_is_kept_from_it(
    shop: Dashboard, second: ApiKey
) -> None:
    def meanwhile() -> None:
        api_keys.revoke(shop.services, second, shop.key.id)

    with pytest.raises(Conflict):
        api_keys.revoke(racing(shop, "revoke", meanwhile), shop.key, second.id)
    assert shop.get(SESSIONS).status == 401
    kept = shop.services.api_keys.find(second.hash)
    assert kept is not None
    assert kept.lasting


@pytest.mark.parametrize("overlap", [timedelta(seconds=-1), timedelta(days=7, seconds=1)])
def test_an_overlap_is_zero_to_seven_days(shop: Dashboard, overlap: timedelta) -> None:
    with pytest.raises(ParameterInvalid):
        api_keys.roll(shop.services, shop.key, shop.key.id, overlap=overlap)
    week = timedelta(days=7)
    made = api_keys.roll(shop.services, shop.key, shop.key.id, overlap=week)
    assert made.key.lasting


def test_a_plain_key_is_in_no_representation(shop: Dashboard) -> None:
    made = api_keys.create(shop.services, shop.key, name="Web shop")
    assert made.plain not in repr(made)
