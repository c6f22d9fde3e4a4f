"""Daily totals in DynamoDB: rows in the sessions' table, per merchant, currency, day and shard.

The index `uncounted` lists the sessions by the time of their end, in two lanes (groups of shards).
One lane is for sessions that end by the clock, which means at `expires_at`, without a write. The
other is for sessions whose end is written. A session stays in the index even after it was counted
(docs/decisions/0004).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

from checkout.adapters.dynamo.client import PacedStore, entries, readable
from checkout.adapters.dynamo.codec import (
    Item,
    instant,
    instant_from,
    number,
    number_from,
    text,
    text_from,
)
from checkout.adapters.dynamo.conditions import failed_item, transaction
from checkout.adapters.dynamo.index_keys import CLOCK, due_shard, due_shards
from checkout.adapters.dynamo.records import session_from
from checkout.adapters.dynamo.sessions import with_carts
from checkout.domain.ground.parts import Lists
from checkout.domain.reports.daily_totals import DayTotals
from checkout.domain.session.record import Session
from checkout.ports import Batch, Scan, ScanPositions

_UNREPORTED: Final = "unreported"  # attribute of a shard's row: ids, separated by spaces
_COUNTS: Final = ("ended", "wallet", "priced", "approved", "paid", "amount")
# Attributes of a day's row: amounts by hour (`hour#9`), and the numbers of unpaid sessions
# (`unpaid#reason#provider`).
_HOUR, _UNPAID = "hour", "unpaid"


class DynamoDailyTotals(PacedStore):
    """Stores the daily sums of each merchant, counted after sessions have ended.

    A session is not marked as counted. Instead, each walk (`ports.Scan`), a job that goes along the
    index, stores how far it has come. Rows with sums have ids that begin with `day#`, and rows with
    the walks' positions have ids that begin with `clock#`. No id of a session begins in this way.
    """

    @property
    def shards(self) -> range:
        """Return the shards of the walks."""
        return range(due_shards())

    def positions(self) -> ScanPositions:
        """Return the positions of all walks. One call reads the rows of all shards."""
        ids = {_mark(shard): shard for shard in self.shards}
        rows = self._persistent.batch_get(self._client, self._sessions, list(ids))
        marks = {
            (walk, ids[each]): instant_from(row[walk])
            for each, row in rows.items()
            for walk in Scan
            if walk in row
        }
        unreported = {
            ids[each]: frozenset(text_from(row[_UNREPORTED]).split())
            for each, row in rows.items()
            if _UNREPORTED in row
        }
        return ScanPositions(marks, unreported)

    def ahead(
        self,
        walk: Scan,
        shard: int,
        until: datetime,
        *,
        since: datetime | None,
        limit: int,
        gathered: timedelta = timedelta(0),
    ) -> Batch | None:
        """Return the next batch of a walk: about `limit` sessions that ended by `until`.

        `since` is the position of the walk, or None before its first batch. Returns None if there
        are no sessions. To save costs by fewer, larger batches, also returns None if there are far
        fewer than `limit` sessions and the first one ended less than `gathered` before `until`. All
        sessions that ended in the same millisecond are in the same batch.
        """
        if since is not None and since >= until:
            return None
        rows: list[Item] = []
        more = False
        in_time = entries(
            self._client,
            self._sessions,
            "uncounted",
            f"{'' if walk is Scan.ENDS else CLOCK}{shard}",
            until,
            since=since,
            limit=limit,
        )
        for page in in_time:
            rows += page
            more = len(page) == limit
            last = rows[-1]["uncounted_at"] if rows else None
            if more and rows[0]["uncounted_at"] != last:  # the last millisecond may be incomplete
                rows = [row for row in rows if row["uncounted_at"] != last]
                break
        if not rows:
            return None
        if len(rows) < limit // 2 and instant_from(rows[0]["uncounted_at"]) + gathered > until:
            return None
        ids = [text_from(row["id"]) for row in rows]
        items = self._persistent.batch_get(self._client, self._sessions, ids)
        items = with_carts(self._client, self._persistent, self._sessions, items)
        sessions, unreadable = readable((items[one] for one in ids if one in items), session_from)
        return Batch(
            walk=walk,
            shard=shard,
            since=since,
            to=instant_from(rows[-1]["uncounted_at"]),
            sessions=tuple(sessions),
            unreadable=tuple(unreadable),
            more=more,
        )

    def passed(
        self,
        batch: Batch,
        daily_totals: Sequence[DayTotals],
        unreported: frozenset[str] = frozenset(),
    ) -> bool:
        """Add `daily_totals` and store the walk's new position, in one transaction.

        The transaction also stores the shard's `unreported` sessions, whose end could not be
        written yet, if there are any. Returns False if another run has already passed this batch.
        """
        still = "attribute_not_exists(#mark)" if batch.since is None else "#mark = :since"
        values = {":to": instant(batch.to)}
        if batch.since is not None:
            values[":since"] = instant(batch.since)
        moved: dict[str, Any] = {
            "TableName": self._sessions,
            "Key": {"id": text(_mark(batch.shard))},
            "UpdateExpression": "SET #mark = :to",
            "ConditionExpression": still,
            "ExpressionAttributeNames": {"#mark": batch.walk.value},
            "ExpressionAttributeValues": values,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        if unreported:
            moved["UpdateExpression"] += ", #unreported = :unreported"
            moved["ExpressionAttributeNames"]["#unreported"] = _UNREPORTED
            values[":unreported"] = _ids(unreported)
        try:
            if not daily_totals:
                self._persistent.ask(self._client.update_item, **moved)
            else:
                changes = [moved, *map(self._added, daily_totals)]
                request = transaction(*({"Update": change} for change in changes))
                self._persistent.ask(self._client.transact_write_items, **request)
        except ClientError as error:
            found = failed_item(error) or {}
            # If an earlier try of this call has stored the position and only the answer was lost,
            # nothing is wrong. Two runs that pass the same batch send the same transaction, and
            # because of its token DynamoDB adds the numbers only once.
            return not daily_totals and found.get(batch.walk.value) == instant(batch.to)
        return True

    def told(self, shard: int, was: frozenset[str], unreported: frozenset[str]) -> None:
        """Store the shard's `unreported` sessions if the stored ones are still `was`."""
        try:
            self._persistent.ask(
                self._client.update_item,
                TableName=self._sessions,
                Key={"id": text(_mark(shard))},
                UpdateExpression="SET #unreported = :unreported",
                ConditionExpression="#unreported = :was",
                ExpressionAttributeNames={"#unreported": _UNREPORTED},
                ExpressionAttributeValues={":was": _ids(was), ":unreported": _ids(unreported)},
            )
        except ClientError as error:
            failed_item(error)  # harmless: another run or an earlier try has stored them

    def days(self, of: Lists, currency: str, days: Sequence[date]) -> tuple[DayTotals, ...]:
        """Return the sums of these days, at most 100, in the order of `days`."""
        found: dict[date, Counter[str]] = {day: Counter() for day in days}
        for part in range(of.parts):
            ids = {_id(of.merchant, currency, day, part): day for day in days}
            items = self._persistent.batch_get(self._client, self._sessions, list(ids))
            for each, item in items.items():
                counts = {
                    name: number_from(value)
                    for name, value in item.items()
                    if name in _COUNTS or name.partition("#")[0] in (_HOUR, _UNPAID)
                }
                found[ids[each]].update(counts)
        return tuple(
            DayTotals(
                merchant=of.merchant,
                currency=currency,
                day=day,
                **{name: sums[name] for name in _COUNTS},
                hours={int(rest[0]): sums[name] for name, rest in _named(sums, _HOUR)},
                unpaid={(rest[0], rest[1]): sums[name] for name, rest in _named(sums, _UNPAID)},
            )
            for day, sums in found.items()
        )

    def counted(self, session: Session, positions: ScanPositions) -> bool:
        """Return whether walks at these positions have passed this ended session."""
        assert session.over_at is not None
        walk = Scan.COUNT if session.left_to_clock else Scan.ENDS
        mark = positions.marks.get((walk, int(due_shard(session.id))))
        return mark is not None and instant_from(instant(session.over_at)) <= mark

    def _added(self, tally: DayTotals) -> dict[str, Any]:
        counts = {name: getattr(tally, name) for name in _COUNTS}
        counts |= {f"{_HOUR}#{hour}": amount for hour, amount in tally.hours.items()}
        counts |= {f"{_UNPAID}#{'#'.join(of)}": count for of, count in tally.unpaid.items()}
        places = range(len(counts))
        return {
            "TableName": self._sessions,
            "Key": {"id": text(_id(tally.merchant, tally.currency, tally.day, tally.part))},
            "UpdateExpression": "ADD " + ", ".join(f"#n{place} :n{place}" for place in places),
            "ExpressionAttributeNames": {
                f"#n{place}": name for place, name in zip(places, counts, strict=True)
            },
            "ExpressionAttributeValues": {
                f":n{place}": number(count)
                for place, count in zip(places, counts.values(), strict=True)
            },
        }


def _named(names: Iterable[str], kind: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the attribute names of this kind, each with the parts after the kind."""
    for name in names:
        first, *rest = name.split("#", 2)
        if first == kind:
            yield name, rest


def _ids(unreported: frozenset[str]) -> dict[str, Any]:
    return text(" ".join(sorted(unreported)))


def _mark(shard: int) -> str:
    """Return the id of the row that stores the walks' positions in a shard."""
    return f"clock#{shard}"


def _id(merchant: str, currency: str, day: date, part: int) -> str:
    row = f"day#{merchant}#{currency}#{day.isoformat()}"
    return f"{row}#{part}" if part else row
