"""Refunds as DynamoDB items: rows among the sessions, whose transactions hold their amounts.

A refund is in the index `due` while something is left to do, and in `by_search` in the list of its
merchant. Everything else that it has is one compressed attribute (codec.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from checkout.adapters.aws import Persistent
from checkout.adapters.dynamo import lists
from checkout.adapters.dynamo.client import Client, get, readable
from checkout.adapters.dynamo.codec import Codec, Item, instant, text
from checkout.adapters.dynamo.conditions import put_new, update_whole
from checkout.adapters.dynamo.places import LATER, due_shard, owned, search_key, ttl
from checkout.domain.ground.grammar import position
from checkout.domain.ground.ids import RandomBytes
from checkout.domain.ground.parts import Lists
from checkout.domain.payment.machine import Change
from checkout.domain.refund.record import Refund
from checkout.domain.reports.search_terms import REFUNDS

KEPT_LONGER: Final = timedelta(days=30)  # than its session, so that both are found together
_APART: Final = ("id", "merchant", "part", "status", "version", "writer", "grant", "token")
_NAMES: Final = [each for each in Refund.__dataclass_fields__ if each not in _APART]
# `merchant` is the key of the list of sessions, which must not contain refunds.
_REFUND: Final = Codec(
    Refund,
    names={"merchant": "owner"},
    deflated=("grant", "token"),
    groups={"refund": _NAMES},
    later="later_json",
)
_MAYBE: Final = ("grant", "token", "due_shard", "due_at", "ttl")

refund_from: Final = _REFUND.decode


def refund_item(refund: Refund, retention: timedelta) -> Item:
    """Return the refund's item, with the attributes of its indexes and its time to live."""
    place = {
        "search_key": owned(search_key(refund.merchant, REFUNDS), refund.part),
        "created_key": text(position(refund.created_at, refund.id)),
    }
    if refund.needed_at is not None:
        first = refund.payment_in_flight
        place["due_shard"] = text(("" if first else LATER) + due_shard(refund.id, urgent=first))
        place["due_at"] = instant(refund.needed_at)
    elif refund.ended_at is not None:
        place["ttl"] = ttl(refund.ended_at + retention + KEPT_LONGER)
    return _REFUND.encode(refund) | place


def update(table: str, change: Change[Refund], retention: timedelta) -> dict[str, Any]:
    """Return the UpdateItem of a changed refund, over the version that was read."""
    before, after = _REFUND.encode(change.before), refund_item(change.after, retention)
    return update_whole(table, before, after, _MAYBE)


def put_refund(table: str, refund: Refund, retention: timedelta) -> dict[str, Any]:
    """Return the PutItem of a new refund."""
    return put_new(table, refund_item(refund, retention), "id")


@dataclass(frozen=True, slots=True)
class RefundPage:
    """A page of refunds; `next_key` is the position of the last one read, or None at the end."""

    refunds: tuple[Refund, ...]
    next_key: str | None


class DynamoRefunds:
    """Reads refunds; `DynamoSessions.save` writes them.

    Ids begin with `re_`, unlike the id of any session. `sleep` takes seconds; with `random_bytes`
    it paces retries.
    """

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

    def get(self, refund_id: str) -> Refund | None:
        """Read the refund, strongly consistent."""
        item = get(self._client, self._table, id=text(refund_id))
        return refund_from(item) if item else None

    def of(self, refund_ids: tuple[str, ...]) -> tuple[Refund, ...]:
        """Read refunds, in this order, strongly consistent, 100 in a request.

        Missing ones are left out.
        """
        found = self._persistent.batch_get(self._client, self._table, list(refund_ids))
        shown, _ = readable((found[each] for each in refund_ids if each in found), refund_from)
        return tuple(shown)

    def page(
        self,
        of: Lists,
        *,
        limit: int,
        after: str | None,
        created_from: datetime | None = None,
        created_before: datetime | None = None,
    ) -> RefundPage:
        """Read a merchant's refunds, newest first; `limit` is 1 to 100.

        `after` is the position of the last refund seen. The index lags a little.
        """
        found = lists.page(
            self._client,
            self._table,
            "by_search",
            "search_key",
            search_key(of.merchant, REFUNDS),
            shards=of.parts,
            limit=limit,
            after=after,
            created_from=created_from,
            created_before=created_before,
            upward=False,
            entries_each=1,
        )
        items = self._persistent.batch_get(self._client, self._table, list(found.ids))
        shown, _ = readable((items[each] for each in found.ids if each in items), refund_from)
        return RefundPage(tuple(shown), found.next_key)
