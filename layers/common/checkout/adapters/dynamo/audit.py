"""`ports.Audit` on DynamoDB: rows of their own kind among the API keys, which the entries are about
and whose index reads a merchant's in one query (docs/decisions/0004).
"""

from __future__ import annotations

from checkout.adapters.aws import ask
from checkout.adapters.dynamo.client import Client
from checkout.adapters.dynamo.records import position
from checkout.adapters.dynamo.values import (
    Item,
    Value,
    instant,
    instant_from,
    optional,
    present,
    read,
    text,
    text_from,
)
from checkout.domain.audit import Action, AuditEntry
from checkout.ports.merchants import AuditPage


class DynamoAudit:
    """Keys begin with what they are, which the hash of an API key never does."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._table = f"{prefix}-api_keys"

    def add(self, entry: AuditEntry) -> None:
        # The same id is the same entry: writing it again after a lost answer is no harm.
        item = present(
            hash=text(f"audit#{entry.id}"),
            merchant=_owner(entry.merchant),
            id=text(position(entry.at, entry.id)),
            at=instant(entry.at),
            action=text(entry.action),
            key_id=text(entry.key_id),
            key_name=text(entry.key_name),
            key_last_four=text(entry.key_last_four),
            target=optional(text, entry.target),
        )
        ask(self._client.put_item, TableName=self._table, Item=item)

    def page(self, merchant: str, *, limit: int, after: str | None) -> AuditPage:
        found = ask(
            self._client.query,
            TableName=self._table,
            IndexName="by_merchant",
            KeyConditionExpression="#merchant = :merchant AND #id < :after",
            ExpressionAttributeNames={"#merchant": "merchant", "#id": "id"},
            # ":" sorts behind every digit.
            ExpressionAttributeValues={":merchant": _owner(merchant), ":after": text(after or ":")},
            ScanIndexForward=False,
            Limit=limit + 1,  # one more tells whether there are more
        )
        rows = found["Items"]
        return AuditPage(
            tuple(_entry(merchant, row) for row in rows[:limit]),
            text_from(rows[limit - 1]["id"]) if len(rows) > limit else None,
        )


def _owner(merchant: str) -> Value:
    return text(f"audit#{merchant}")


def _entry(merchant: str, item: Item) -> AuditEntry:
    return AuditEntry(
        id=text_from(item["hash"]).removeprefix("audit#"),
        merchant=merchant,
        at=instant_from(item["at"]),
        action=Action(text_from(item["action"])),
        key_id=text_from(item["key_id"]),
        key_name=text_from(item["key_name"]),
        key_last_four=text_from(item["key_last_four"]),
        target=read(item, "target", text_from),
    )
