"""`ports.Tallies` on DynamoDB: a row per merchant, currency and day, among the sessions.

A sparse index holds the sessions that are not counted yet (docs/decisions/0004).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from checkout.adapters.aws import Persistent
from checkout.adapters.dynamo.client import Client, due
from checkout.adapters.dynamo.conditions import failed_item, transaction
from checkout.adapters.dynamo.records import session_from
from checkout.adapters.dynamo.values import Item, number, number_from, text, text_from
from checkout.domain.session import Session
from checkout.domain.tally import DayTally
from checkout.ports.runtime import RandomBytes

_COUNTS: Final = ("ended", "wallet", "approved", "paid", "amount")


class DynamoTallies:
    """Ids begin with `day#`, which a session's never does."""

    def __init__(
        self,
        client: Client,
        prefix: str,
        *,
        sleep: Callable[[float], None],
        random_bytes: RandomBytes,
    ) -> None:
        self._client = client
        self._table = f"{prefix}-checkout_sessions"
        self._persistent = Persistent(sleep, random_bytes)

    def uncounted(self, until: datetime, *, limit: int) -> tuple[Session, ...]:
        """Return sessions not counted yet.

        The index lags behind: the strong read leaves out those that are counted already.
        """
        ids = due(
            self._client,
            self._table,
            until,
            limit,
            read=lambda row: text_from(row["id"]),
            index="uncounted",
        )
        items = self._persistent.batch_get(self._client, self._table, ids)
        found = [items[each] for each in ids if each in items]
        return tuple(session_from(item) for item in found if "uncounted_shard" in item)

    def count(self, tallies: Sequence[DayTally], sessions: Sequence[Session]) -> bool:
        # A session may need a day of its own: 50 make 100 items, which one transaction takes.
        changes = [*map(self._added, tallies), *map(self._marked, sessions)]
        request = transaction(*({"Update": change} for change in changes))
        try:
            self._persistent.ask(self._client.transact_write_items, **request)
        except ClientError as error:
            failed_item(error)
            return False
        return True

    def days(self, merchant: str, currency: str, days: Sequence[date]) -> tuple[DayTally, ...]:
        ids = {_id(merchant, currency, day): day for day in days}
        items = self._persistent.batch_get(self._client, self._table, list(ids))
        return tuple(
            DayTally(
                merchant=merchant,
                currency=currency,
                day=day,
                **{name: _count(items.get(each, {}), name) for name in _COUNTS},
            )
            for each, day in ids.items()
        )

    def _added(self, tally: DayTally) -> dict[str, Any]:
        return {
            "TableName": self._table,
            "Key": {"id": text(_id(tally.merchant, tally.currency, tally.day))},
            "UpdateExpression": "ADD " + ", ".join(f"#{name} :{name}" for name in _COUNTS),
            "ExpressionAttributeNames": {f"#{name}": name for name in _COUNTS},
            "ExpressionAttributeValues": {
                f":{name}": number(getattr(tally, name)) for name in _COUNTS
            },
        }

    def _marked(self, session: Session) -> dict[str, Any]:
        not_counted = "attribute_exists(#shard)"
        return {
            "TableName": self._table,
            "Key": {"id": text(session.id)},
            "UpdateExpression": "REMOVE #shard, #at",
            "ConditionExpression": not_counted,
            "ExpressionAttributeNames": {"#shard": "uncounted_shard", "#at": "uncounted_at"},
        }


def _id(merchant: str, currency: str, day: date) -> str:
    return f"day#{merchant}#{currency}#{day.isoformat()}"


def _count(item: Item, name: str) -> int:
    return number_from(item[name]) if name in item else 0
