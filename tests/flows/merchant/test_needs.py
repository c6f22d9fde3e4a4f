"""Which API keys need somebody: those in use that end soon."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from checkout.domain.errors import ResourceMissing
from checkout.domain.mandate import MandateStatus
from checkout.flows.merchant import needs
from tests.support.basics import NOW, a_mandate
from tests.support.flows import World
from tests.support.samples import a_key

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
    found = list(needs._keys((a_key(**changes),), NOW))
    assert [each.case for each in found] == [needs.Case.KEY_ENDS] * needed


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
    found = [each.at for each in needs._budget(a_mandate(**changes), NOW)]
    assert found == ([] if since is None else [since])


def test_a_merchant_who_is_no_more_has_no_needs(world: World) -> None:
    gone = replace(world.key(), merchant="mer_gone")
    with pytest.raises(ResourceMissing):
        needs.of(world.endpoints, gone)
