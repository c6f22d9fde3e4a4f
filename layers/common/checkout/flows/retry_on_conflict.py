"""Change a record that other requests may change at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from checkout.domain.ground.errors import Conflict
from checkout.ports import Stale

TRIES: Final = 5  # attempts to write, each with a newer version of the record

T = TypeVar("T")


def retry_on_conflict(record: T, changed: Callable[[T], T], write: Callable[[T], None]) -> T:
    """Write the result of `changed`.

    If another process has written the record first, `changed` is called again with the newer
    version. Returns the record as written. If `changed` returns the record that it was given,
    nothing is written. Raises Conflict after TRIES attempts, and the errors of `changed` and
    `write`.
    """
    for _ in range(TRIES):
        after = changed(record)
        if after is record:
            return record
        try:
            write(after)
        except Stale as stale:
            record = stale.current
        else:
            return after
    raise Conflict("This is being changed by other requests; try again shortly.")
