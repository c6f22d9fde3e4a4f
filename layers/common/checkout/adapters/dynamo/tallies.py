"""`ports.Tallies` on DynamoDB: a row per merchant, currency, day and shard, among the sessions.

A sparse index holds the sessions that are not counted yet (docs/decisions/0004).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from checkout.adapters.aws import Persistent
from checkout.adapters.dynamo.client import PAGE_MAX, Client, entries, get
from checkout.adapters.dynamo.conditions import failed_item, transaction
from checkout.adapters.dynamo.records import CLOCK, DUE_SHARDS, session_from
from checkout.adapters.dynamo.values import (
    Item,
    instant,
    instant_from,
    number,
    number_from,
    text,
    text_from,
)
from checkout.domain.session import Session
from checkout.domain.tally import DayTally
from checkout.ports.runtime import RandomBytes, SideBySide
from checkout.ports.sessions import Stretch, Walk

logger = logging.getLogger(__name__)

_COUNTS: Final = ("ended", "wallet", "approved", "paid", "amount")


class DynamoTallies:
    """Ids begin with `day#` and `clock#`, which a session's never does."""

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

    def uncounted(
        self, until: datetime, *, limit: int, side_by_side: SideBySide
    ) -> tuple[Session, ...]:
        """Return sessions not counted yet.

        The index lags behind: the strong read leaves out those that are counted already.
        """

        def in_shard(shard: int) -> list[Item]:
            place = str(shard)
            return next(entries(self._client, self._table, "uncounted", place, until, limit=limit))

        rows = [row for found in side_by_side(in_shard, self.shards) for row in found]
        rows.sort(key=lambda row: (number_from(row["uncounted_at"]), text_from(row["id"])))
        parts = [rows[start : start + PAGE_MAX] for start in range(0, len(rows), PAGE_MAX)]
        return tuple(each for found in side_by_side(self._not_counted, parts) for each in found)

    def _not_counted(self, rows: Sequence[Item]) -> list[Session]:
        ids = [text_from(row["id"]) for row in rows]
        items = self._persistent.batch_get(self._client, self._table, ids)
        found = [items[each] for each in ids if each in items]
        return [session_from(item) for item in found if "uncounted_shard" in item]

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

    @property
    def shards(self) -> range:
        return range(DUE_SHARDS)

    def ahead(self, walk: Walk, shard: int, until: datetime, *, limit: int) -> Stretch | None:
        """Return the next stretch, of whole milliseconds: then none is passed by half."""
        mark = get(self._client, self._table, id=text(_mark(shard))) or {}
        since = instant_from(mark[walk]) if walk in mark else None
        if since is not None and since >= until:
            return None
        rows: list[Item] = []
        more = False
        in_time = entries(
            self._client,
            self._table,
            "uncounted",
            f"{CLOCK}{shard}",
            until,
            since=since,
            limit=limit,
        )
        for page in in_time:
            rows += page
            more = len(page) == limit
            last = rows[-1]["uncounted_at"] if rows else None
            if more and rows[0]["uncounted_at"] != last:  # the last one may go on
                rows = [row for row in rows if row["uncounted_at"] != last]
                break
        if not rows:
            return None
        ids = [text_from(row["id"]) for row in rows]
        sessions: list[Session] = []
        unreadable = 0
        for start in range(0, len(ids), PAGE_MAX):
            some = ids[start : start + PAGE_MAX]
            items = self._persistent.batch_get(self._client, self._table, some)
            for each in (items[one] for one in some if one in items):
                try:
                    sessions.append(session_from(each))
                except Exception as error:  # noqa: BLE001 - one poisoned record stops no other
                    logger.warning("a record is no session: %s", type(error).__name__)
                    unreadable += 1
        return Stretch(
            walk=walk,
            shard=shard,
            since=since,
            to=instant_from(rows[-1]["uncounted_at"]),
            sessions=tuple(sessions),
            unreadable=unreadable,
            more=more,
        )

    def passed(self, stretch: Stretch, tallies: Sequence[DayTally]) -> bool:
        still = "attribute_not_exists(#mark)" if stretch.since is None else "#mark = :since"
        values = {":to": instant(stretch.to)}
        if stretch.since is not None:
            values[":since"] = instant(stretch.since)
        moved: dict[str, Any] = {
            "TableName": self._table,
            "Key": {"id": text(_mark(stretch.shard))},
            "UpdateExpression": "SET #mark = :to",
            "ConditionExpression": still,
            "ExpressionAttributeNames": {"#mark": stretch.walk.value},
            "ExpressionAttributeValues": values,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        try:
            if not tallies:
                self._persistent.ask(self._client.update_item, **moved)
            else:
                changes = [moved, *map(self._added, tallies)]
                request = transaction(*({"Update": change} for change in changes))
                self._persistent.ask(self._client.transact_write_items, **request)
        except ClientError as error:
            found = failed_item(error) or {}
            # As we want it: our own write, whose answer was lost; two that pass the same stretch
            # add the same, and a transaction's token lets only one of them through.
            return not tallies and found.get(stretch.walk.value) == instant(stretch.to)
        return True

    def days(
        self, merchant: str, currency: str, days: Sequence[date], *, shards: int = 1
    ) -> tuple[DayTally, ...]:
        found: dict[date, Counter[str]] = {day: Counter() for day in days}
        for shard in range(shards):
            ids = {_id(merchant, currency, day, shard): day for day in days}
            items = self._persistent.batch_get(self._client, self._table, list(ids))
            for each, item in items.items():
                counts = {name: number_from(item[name]) for name in _COUNTS if name in item}
                found[ids[each]].update(counts)
        return tuple(
            DayTally(
                merchant=merchant,
                currency=currency,
                day=day,
                **{name: sums[name] for name in _COUNTS},
            )
            for day, sums in found.items()
        )

    def _added(self, tally: DayTally) -> dict[str, Any]:
        return {
            "TableName": self._table,
            "Key": {"id": text(_id(tally.merchant, tally.currency, tally.day, tally.shard))},
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


def _mark(shard: int) -> str:
    """Return the id of the row that remembers how far the walks along a shard have come."""
    return f"clock#{shard}"


def _id(merchant: str, currency: str, day: date, shard: int) -> str:
    row = f"day#{merchant}#{currency}#{day.isoformat()}"
    return f"{row}#{shard}" if shard else row
