"""Refused requests in DynamoDB: a row for each API key among the idempotency keys.

Its entries are one compressed text.
"""

from __future__ import annotations

from typing import Final

from checkout.adapters.dynamo.client import Client, get
from checkout.adapters.dynamo.codec import Codec
from checkout.adapters.dynamo.conditions import met, put_version
from checkout.adapters.dynamo.places import ttl
from checkout.adapters.dynamo.wire import Value, text
from checkout.domain.merchant.failed_requests import KEPT, Refusals

REFUSED_ROW: Final = "refused#"
_REFUSALS: Final = Codec(Refusals, groups={"entries": ("entries",)})


class DynamoRefusals:
    """Stores the refused requests of each API key, for a day.

    Keys begin with `refused#`, unlike the hash of any idempotency key. No request waits for long
    for them: `courtesy` is a client that gives up soon.
    """

    def __init__(self, courtesy: Client, prefix: str) -> None:
        self._client = courtesy
        self._table = f"{prefix}-idempotency_keys"

    def of(self, key_id: str) -> Refusals:
        """Read those of a key; none is a record of version 0."""
        item = get(self._client, self._table, key=_row_key(key_id))
        return _REFUSALS.decode({**item, "key": text(key_id)}) if item else Refusals(key=key_id)

    def put(self, refusals: Refusals) -> bool:
        """Write the record if the stored version is one less.

        Returns False if somebody else has written meanwhile.
        """
        newest = refusals.entries[-1].at
        place = {"key": _row_key(refusals.key), "ttl": ttl(newest + KEPT)}
        item = _REFUSALS.encode(refusals) | place
        return met(self._client.put_item, **put_version(self._table, item, "key", refusals.version))


def _row_key(key_id: str) -> Value:
    return text(REFUSED_ROW + key_id)
