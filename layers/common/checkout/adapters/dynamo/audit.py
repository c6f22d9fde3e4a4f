"""The audit log in DynamoDB: rows among the API keys, because the entries are about them.

The index of that table reads a merchant's entries in one query (docs/decisions/0004).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from checkout.adapters.aws import ask
from checkout.adapters.dynamo.client import Client
from checkout.adapters.dynamo.codec import Codec
from checkout.adapters.dynamo.places import ttl
from checkout.adapters.dynamo.wire import Item, Value, text, text_from
from checkout.domain.ground.grammar import position
from checkout.domain.merchant.audit import AuditEntry
from checkout.domain.session.retention import RETENTION

# Before there were members, all actors were keys.
_ENTRY: Final = Codec(AuditEntry, names={"actor_id": "key_id", "actor_name": "key_name"})


@dataclass(frozen=True, slots=True)
class AuditPage:
    """A page of audit entries; `next_key` is the position of the last one, or None at the end."""

    entries: tuple[AuditEntry, ...]
    next_key: str | None


class DynamoAudit:
    """Stores each change made in the dashboard, and who made it.

    Keys begin with `audit#`, unlike the hash of any API key. An entry is kept for `retention`; an
    API key has no time to live.
    """

    def __init__(self, client: Client, prefix: str, *, retention: timedelta = RETENTION) -> None:
        self._client = client
        self._retention = retention
        self._table = f"{prefix}-api_keys"

    def add(self, entry: AuditEntry) -> None:
        # The same id is the same entry, so writing it again after a lost answer does no harm.
        place = {
            "hash": text(f"audit#{entry.id}"),
            "merchant": _owner(entry.merchant),
            "id": text(position(entry.at, entry.id)),
            "ttl": ttl(entry.at + self._retention),
        }
        item = _ENTRY.encode(entry) | place
        ask(self._client.put_item, TableName=self._table, Item=item)

    def page(self, merchant: str, *, limit: int, after: str | None) -> AuditPage:
        """Read a merchant's entries, newest first by `grammar.position`.

        `after` is the position of the last entry seen.
        """
        found = ask(
            self._client.query,
            TableName=self._table,
            IndexName="by_merchant",
            KeyConditionExpression="#merchant = :merchant AND #id < :after",
            ExpressionAttributeNames={"#merchant": "merchant", "#id": "id"},
            # ":" sorts behind every digit.
            ExpressionAttributeValues={":merchant": _owner(merchant), ":after": text(after or ":")},
            ScanIndexForward=False,
            Limit=limit + 1,  # one more, to see whether there are more
        )
        rows = found["Items"]
        return AuditPage(
            tuple(map(entry_from, rows[:limit])),
            text_from(rows[limit - 1]["id"]) if len(rows) > limit else None,
        )


def _owner(merchant: str) -> Value:
    return text(f"audit#{merchant}")


def entry_from(item: Item) -> AuditEntry:
    """Return the entry of a row."""
    entry_id = text_from(item["hash"]).removeprefix("audit#")
    merchant = text_from(item["merchant"]).removeprefix("audit#")
    return _ENTRY.decode({**item, "id": text(entry_id), "merchant": text(merchant)})
