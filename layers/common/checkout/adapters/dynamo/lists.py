"""Pages of a list that is ordered by time in an index, and spread over a merchant's shards.

A list can be spread over several shards (partition keys), because one shard accepts only a limited
number of writes a second. To read a page, all shards are read and merged by position. So a cursor
is valid for any number of shards, and a merchant can get more shards without moving stored records.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from checkout.adapters.aws import ask
from checkout.adapters.dynamo.client import PAGE_MAX, Client
from checkout.adapters.dynamo.codec import text, text_from
from checkout.adapters.dynamo.index_keys import owned
from checkout.domain.ground.grammar import position

_OWNERS: Final = {"by_merchant": "merchant", "by_search": "search_key"}  # keys of the indexes
_FIRST: Final = "0"
_LAST: Final = ":"  # sorts after every digit
_BEHIND: Final = "\U0010ffff"  # sorts after every text


@dataclass(frozen=True, slots=True)
class Places:
    """The ids of a page in order. `next_key` is the position of the last id, None at the end."""

    ids: list[str]
    next_key: str | None


def page(
    client: Client,
    table: str,
    index: str,
    owner: str,
    *,
    shards: int,
    limit: int,
    after: str | None,
    created_from: datetime | None = None,
    created_before: datetime | None = None,
    upward: bool = False,
    entries_each: int = 1,
) -> Places:
    """Return a page of the list, with one query for each shard.

    The newest record is first, or with `upward` the oldest. `after` is the position at which the
    previous page ended. `limit` is 1 to 100. A record can have up to `entries_each` entries in the
    list, all at the same position.
    """
    if not 1 <= limit <= PAGE_MAX:
        raise ValueError(f"limit must be 1..{PAGE_MAX}")
    lowest = position(created_from) if created_from else _FIRST
    highest = position(created_before) if created_before else _LAST
    if after is not None:
        lowest, highest = (max(lowest, after), highest) if upward else (lowest, min(highest, after))
    if lowest > highest:
        return Places([], None)
    # Read one more entry, to see whether there are more, and another one because BETWEEN includes
    # `after` itself, which is already on the previous page.
    most = (limit + (1 if after is None else 2)) * entries_each
    bounds = (lowest, highest)
    found = _entries(client, table, index, owner, shards, bounds, most=most, upward=upward)
    places = sorted(found - {after}, reverse=not upward)
    shown = places[:limit]
    return Places(
        [place.partition("#")[2] for place in shown], shown[-1] if len(places) > limit else None
    )


def beginning(
    client: Client, table: str, owner: str, prefix: str, *, shards: int, limit: int
) -> list[str]:
    """Return the ids of up to `limit` records whose texts begin with `prefix`, newest first.

    The sort key of these entries of the index `by_search` is `text#position`. The search takes one
    query for each shard.
    """
    bounds = (prefix, prefix + _BEHIND)
    found = _entries(client, table, "by_search", owner, shards, bounds, most=limit)
    places = {"#".join(each.rsplit("#", 2)[1:]) for each in found}
    newest = sorted(places, reverse=True)[:limit]
    return [place.partition("#")[2] for place in newest]


def _entries(
    client: Client,
    table: str,
    index: str,
    owner: str,
    shards: int,
    bounds: tuple[str, str],
    *,
    most: int,
    upward: bool = True,
) -> set[str]:
    """Return the keys of the first `most` entries between the bounds in each shard."""
    low, high = map(text, bounds)
    found: set[str] = set()
    for shard in range(shards):
        answer = ask(
            client.query,
            TableName=table,
            IndexName=index,
            KeyConditionExpression="#owner = :owner AND #created_key BETWEEN :low AND :high",
            ExpressionAttributeNames={"#owner": _OWNERS[index], "#created_key": "created_key"},
            ExpressionAttributeValues={":owner": owned(owner, shard), ":low": low, ":high": high},
            ScanIndexForward=upward,
            Limit=most,
        )
        found.update(text_from(row["created_key"]) for row in answer["Items"])
    return found
