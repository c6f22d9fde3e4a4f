"""Take some of many cases where all would take too long: CI does, and others in each run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def sample(cases: Iterable[T], *, of: int) -> list[T]:
    """Return all cases, or every `of`-th if the environment has SAMPLE, the number of the first.

    .ci/run sets it to a number of its own each time.
    """
    turn = os.environ.get("SAMPLE")
    return list(cases) if not turn else list(cases)[int(turn) % of :: of]


def some(cases: Sequence[T], *, most: int) -> list[T]:
    """Return at most this many of the cases, spread evenly; others in each run of CI."""
    step = -(-len(cases) // most)
    return list(cases[int(os.environ.get("SAMPLE", 0)) % step :: step])
