"""Decide the position of each record in every index, and when DynamoDB removes the record.

The domain decides when a record needs a check (`Session.needed_at`) and how long it is kept
(domain/session/retention.py). This module turns these times into index entries that cost little to
write.

    index                   key                        entries
    by_merchant             merchant, created_key      sessions and events, by creation
    by_search               search_key, created_key    search rows (records.py); completed sessions;
                                                       links
    due                     due_shard, due_at          records for the sweep, in two lanes: urgent
                                                       ones, about which an interrupted process may
                                                       have left money in doubt, and all others
    uncounted               uncounted_shard, _at       sessions by their end, in two lanes: ended by
                                                       a write, or by the clock. Entries are never
                                                       removed

A session without a wallet and without items of a stock ends by the clock: at `expires_at`, without
a write. A lane is a group of shards. An index has several shards, because one partition accepts
only 1 000 write units a second, and all new entries of an index by time are at the same end
(docs/decisions/0009). Moving an entry costs two write units, so an entry of `due` is moved only if
necessary.

In a merchant's list, the index's key of shard 0 is the owner alone, as in lists made before
there were shards, and the key of shard 3 is `owner#3`. So the attribute `merchant` of a record
contains its merchant and its shard. The domain calls this shard the record's `part`.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Final

from checkout.adapters.dynamo.codec import (
    Item,
    Value,
    instant,
    milliseconds,
    number,
    text,
    text_from,
)
from checkout.domain.ground.grammar import position
from checkout.domain.ground.parts import part_of
from checkout.domain.reports.search_terms import NEEDS_SOMEBODY, PAID, PREFIX_LEAST, same_text
from checkout.domain.session.record import Session, Status
from checkout.domain.session.retention import session_kept_until
from checkout.domain.webhooks.record import KEPT, EventStatus, WebhookEvent

# The number of shards in each lane of an index by time. A later release can have more shards, but
# never fewer, because the entries in the removed shards would not be found.
DUE_SHARDS: Final = 8
URGENT_SHARDS: Final = 16  # of the urgent lane of `due`, to which each payment writes eight times
# The prefixes of the shards in the second lane: LATER in the index `due`, for sessions that are not
# urgent, and CLOCK in the index `uncounted`, for sessions that end by the clock.
LATER: Final = "later-"
CLOCK: Final = "clock-"
# The sweep runs once a minute. An entry is not moved if its time is at most this much earlier than
# needed, and not later than needed.
LOOK_EARLIER: Final = timedelta(seconds=60)
_TTL_DELAY: Final = 86_400  # seconds; DynamoDB's TTL only cleans up, and nothing depends on it


def of_session(session: Session, retention: timedelta) -> Item:
    """Return a session's attributes for the indexes and the time to live."""
    place = {"created_key": text(position(session.created_at, session.id))}
    due = due_at(session)
    if due is not None:
        first = urgent(session)
        place["due_shard"] = text(("" if first else LATER) + due_shard(session.id, urgent=first))
        place["due_at"] = instant(due)
    # An entry of `uncounted` is never removed; each walk of daily_totals.py passes it once.
    if session.over_at is not None:
        clock = CLOCK if session.left_to_clock else ""
        place["uncounted_shard"] = text(clock + due_shard(session.id))
        place["uncounted_at"] = instant(session.over_at)
    if session.status is Status.COMPLETED:  # so that the list of completed sessions contains it
        place["search_key"] = owned(search_key(session.merchant, PAID), session.part)
    kept_until = session_kept_until(session, retention)
    if kept_until is not None:
        place["ttl"] = ttl(kept_until)
    return place


def due_at(session: Session) -> datetime | None:
    """Return the time at which the sweep checks the session, or None if nothing is left to do.

    Moving an entry costs money. So a check that is already planned (`look_at`) is not moved if it
    is early enough. It is also not moved while the session awaits the customer's approval, because
    most customers approve before the check.
    """
    needed, planned = session.needed_at, session.look_at
    if needed is None or planned is None:
        return needed
    in_time = needed - LOOK_EARLIER <= planned <= needed
    return planned if in_time or session.awaits_look else needed


def urgent(session: Session) -> bool:
    """Return whether the session is in the urgent lane, which the sweep checks first.

    An interrupted process may have left money in doubt in such a session. A session that awaits its
    planned check stays in the lane into which its earlier lease put it, because moving it costs
    money.
    """
    return session.payment_in_flight or session.lease_until is not None or session.awaits_look


def of_event(event: WebhookEvent) -> Item:
    """Return an event's attributes for the indexes and the time to live.

    While an event waits for an attempt, it is in the index `due`, at the time `due_at`. This time
    can be postponed without a new version of the event. The attribute `next_at` keeps the original
    time; it is not the event's field `next_at` (events.py). The time to live begins when the event
    ends.
    """
    place = {"created_key": text(position(event.created_at, event.id))}
    if event.status is EventStatus.PENDING:
        place["due_shard"] = text(due_shard(event.id))
        place["due_at"] = place["next_at"] = instant(event.due_at)
    if event.ended_at is not None:
        place["ttl"] = ttl(event.ended_at + KEPT)
    return place


def due_shards(*, urgent: bool = False) -> int:
    """Return the number of shards in a lane of an index by time."""
    return URGENT_SHARDS if urgent else DUE_SHARDS


def due_shard(record_id: str, *, urgent: bool = False) -> str:
    """Return the shard, in a lane of an index by time, that contains this record."""
    return str(part_of(record_id, due_shards(urgent=urgent)))


def ttl(at: datetime) -> Value:
    """Return the time to live, in epoch seconds, of a record that is not needed after `at`."""
    return number(milliseconds(at) // 1000 + _TTL_DELAY)


def needing_somebody(session: Session) -> Item:
    """Return the attributes with which a row lists its session among those needing a person."""
    return {
        "search_key": owned(search_key(session.merchant, NEEDS_SOMEBODY), session.part),
        "created_key": text(position(session.created_at, session.id)),
    }


def owned(owner: str, shard: int) -> Value:
    """Return the key of one shard of the owner's list."""
    return text(f"{owner}#{shard}" if shard else owner)


def sharded(item: Item) -> Item:
    """Join the attributes `merchant` and `shard` of an item into one."""
    shard = int(item.pop("shard")["N"])
    return item | {"merchant": owned(text_from(item["merchant"]), shard)}


def unsharded(item: Item) -> Item:
    """Split the attribute `merchant` of an item into `merchant` and `shard` again."""
    merchant, mark, shard = text_from(item["merchant"]).partition("#")
    if not mark:
        return item
    return item | {"merchant": text(merchant), "shard": number(int(shard))}


def search_key(merchant: str, typed: str) -> str:
    """Return the key of a text in `by_search`: a hash, because wallet addresses are private."""
    found = f"search\n{merchant}\n{same_text(typed)}"
    return hashlib.sha256(found.encode()).hexdigest()[:32]


def prefix_key(merchant: str, typed: str) -> str:
    """Return the key that all order numbers with the same beginning as `typed` share."""
    return search_key(merchant, "order\n" + same_text(typed)[:PREFIX_LEAST])
