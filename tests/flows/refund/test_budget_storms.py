"""No storm breaks an invariant of the budget from which refunds are paid."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.flows.refund.budget_storms import storm

pytestmark = pytest.mark.untraced

WORLDS = 150


def test_no_storm_breaks_the_budget() -> None:
    counts: Counter[str] = Counter()
    for seed in range(1, WORLDS + 1):
        found = storm(seed)
        assert found.wrong == [], seed
        counts.update(found.counts)
    for name in ("lost", "revoked", "ended", "rotation late", "overtaken", "killed"):
        assert counts[name] > 20, (name, counts)
    assert counts["paid from the budget"] > 120
