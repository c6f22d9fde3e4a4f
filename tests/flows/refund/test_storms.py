"""No storm breaks an invariant of refunds, and each wrong order of writes is noticed by one."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.flows.refund.storms import storm

pytestmark = pytest.mark.untraced

WORLDS = 150


def test_no_storm_breaks_the_books() -> None:
    counts: Counter[str] = Counter()
    for seed in range(1, WORLDS + 1):
        found = storm(seed)
        assert found.wrong == [], seed
        counts.update(found.counts)
    for name in ("succeeded", "failed", "canceled", "killed", "doubled", "late", "answer lost"):
        assert counts[name] > 5, (name, counts)
