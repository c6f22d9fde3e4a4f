"""Which API keys need somebody: those in use that end soon."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from checkout.flows.merchant import needs
from tests.adapters.samples import a_key
from tests.support import NOW

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
