"""What needs somebody: API keys that end soon, budgets that are over, new addresses of webhooks."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.payment.mandate import MandateStatus
from checkout.domain.webhooks.event_types import EXPIRED
from checkout.flows import notices
from checkout.flows.webhooks import endpoints
from tests.support.basics import NOW, a_mandate
from tests.support.flows import World
from tests.support.samples import a_key, a_member

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("changes", "needed"),
    [
        ({"ends_at": NOW + 6 * DAY, "last_used_at": NOW - DAY}, True),
        ({"ends_at": NOW + 8 * DAY, "last_used_at": NOW - DAY}, False),
        ({"ends_at": NOW + 6 * DAY, "last_used_at": NOW - 8 * DAY}, False),
        ({"ends_at": NOW + 6 * DAY}, False),
        ({"ends_at": NOW - DAY, "last_used_at": NOW - DAY}, False),
        ({"last_used_at": NOW - DAY}, False),
    ],
)
def test_a_key_in_use_that_ends_within_a_week_needs_somebody(
    changes: dict[str, Any], needed: bool
) -> None:
    found = list(notices._keys((a_key(**changes),), NOW))
    assert [each.case for each in found] == [notices.Case.KEY_ENDS] * needed


@pytest.mark.parametrize(
    ("changes", "since"),
    [
        ({"status": MandateStatus.ACTIVE}, None),
        ({"status": MandateStatus.ACTIVE, "rotating": NOW - DAY}, NOW - DAY),
        ({"status": MandateStatus.ACTIVE, "rotating": NOW - DAY / 2}, None),
        ({"status": MandateStatus.LOST, "over_at": NOW - DAY}, NOW - DAY),
        ({"status": MandateStatus.REVOKED, "over_at": NOW}, NOW),
        ({"status": MandateStatus.ENDED, "over_at": NOW}, None),
    ],
)
def test_a_budget_that_pays_no_more_needs_somebody(
    changes: dict[str, Any], since: datetime | None
) -> None:
    found = [each.at for each in notices._budget(a_mandate(**changes), NOW)]
    assert found == ([] if since is None else [since])


@pytest.mark.parametrize(
    ("by", "after", "told"),
    [
        ("key_other", 0, True),
        ("key_other", 71, True),
        ("key_other", 72, False),
        ("own", 0, False),
        (None, 0, False),
    ],
)
def test_an_address_of_webhooks_that_somebody_else_has_set_needs_a_look_for_three_days(
    world: World, by: str | None, after: int, told: bool
) -> None:
    world.listen()
    set_by = world.key().id if by == "own" else by
    fields = {"set_by": set_by, "set_at": world.clock.now()}
    endpoints.update(world.endpoints, world.merchant.id, fields)
    world.clock.pass_time(after * 3600)
    found = notices.action_items(world.endpoints, world.key()).found
    assert [each.case.value for each in found] == ["endpoint_set"] * told
    assert [each.name for each in found] == ["https://shop.example/hooks"] * told


def test_an_address_stays_with_the_one_who_has_set_it_while_others_change_its_events(
    world: World,
) -> None:
    first, second = a_member(merchant=world.merchant.id), world.key()
    url = "https://shop.example/hooks"
    endpoints.configure(world.endpoints, first.merchant, url=url, events=(), by=first)
    for events in ((EXPIRED,), ()):
        endpoints.configure(world.endpoints, second.merchant, url=url, events=events, by=second)
        endpoints.update(world.endpoints, second.merchant, {"url": url}, by=second)
    assert world.stored().endpoints[0].set_by == first.id
    endpoints.update(world.endpoints, second.merchant, {"url": f"{url}/2"}, by=second)
    assert world.stored().endpoints[0].set_by == second.id


def test_a_merchant_who_is_no_more_has_no_needs(world: World) -> None:
    gone = replace(world.key(), merchant="mer_gone")
    with pytest.raises(ResourceMissing):
        notices.action_items(world.endpoints, gone)
