"""Give the sweep's indexes few partitions.

A round asks each partition. With few sessions most partitions are empty, and reading them took two
thirds of all calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from checkout.adapters.dynamo import index_keys


@contextmanager
def few_partitions() -> Iterator[None]:
    """Use 4 partitions of the urgent lane and 2 of each other lane, in place of 16 and 8."""
    with patch.multiple(index_keys, URGENT_SHARDS=4, DUE_SHARDS=2):
        yield
