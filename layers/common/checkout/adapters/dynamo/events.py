"""Webhook events in DynamoDB. Sessions' events are created in the transactions of sessions.py.

The attribute `retry_at` stores the field `next_at`, the time from which the next attempt can be
made. The attribute `next_at` is part of the event's entry in the index `due` (index_keys.py).

If a merchant has several endpoints, each further endpoint gets its own copies of the events. The
copies for one endpoint are a separate list, because their attribute `merchant` includes the
endpoint, as in `mer_…/we_…`. A reservation is an idempotency record (`ports.Reservation`), and a
shard is a part of a list or an index (lists.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from botocore.exceptions import ClientError

from checkout.adapters.dynamo import lists
from checkout.adapters.dynamo.client import PacedStore, due, get
from checkout.adapters.dynamo.codec import Codec, Item, instant, text, text_from
from checkout.adapters.dynamo.conditions import (
    TAKEN,
    failed_item,
    met,
    put,
    put_new,
    put_next,
)
from checkout.adapters.dynamo.index_keys import due_shards, of_event, sharded, unsharded
from checkout.domain.ground.errors import Unavailable
from checkout.domain.ground.parts import Lists
from checkout.domain.webhooks.record import WebhookEvent
from checkout.ports import WHOLE, Concurrency, DueEvent, Page, Reservation, ShardRange, StaleEvent

_EVENT: Final = Codec(
    WebhookEvent,
    deflated=("body", "stripe_body"),
    groups={"deliveries": ("deliveries",)},
    names={"next_at": "retry_at", "part": "shard", "subject": "session"},
)
_OF: Final = "/"
_DUE: Final = Codec(DueEvent, names={"at": "due_at", "since": "next_at"})


class DynamoEvents(PacedStore):
    """Stores webhook events; `DynamoSessions.save` adds those of sessions."""

    def add(self, event: WebhookEvent, reservation: Reservation | None = None) -> None:
        """Write a new event that belongs to no session, and the reservation.

        Both are written in one transaction. Raises KeyHeld.
        """
        item = event_item(event)
        request = put_new(self._events, item, "id")
        try:
            put(self._client, request, self._reservations, reservation, ask=self._persistent.ask)
        except ClientError as error:
            if failed_item(error) != item:  # if equal, an earlier try of this call wrote it
                raise Unavailable(TAKEN) from error

    def add_copy(self, event: WebhookEvent) -> None:
        """Write a copy of an event, unless this copy is already stored, in whatever state."""
        met(self._client.put_item, **put_new(self._events, event_item(event), "id"))

    def get(self, event_id: str) -> WebhookEvent | None:
        """Read the event with strong consistency."""
        item = get(self._client, self._events, id=text(event_id))
        return event_from(item) if item else None

    def many(self, ids: list[str]) -> Mapping[str, WebhookEvent]:
        """Read the events by their ids, with strong consistency. Missing ones are left out."""
        return {each.id: each for each in self._in_order(self._events, ids, event_from)}

    def save(self, event: WebhookEvent) -> None:
        """Write the event if the stored version is one less than `event.version`.

        Raises StaleEvent if another version is stored, and LookupError if there is no such event.
        """
        item = event_item(event)
        try:
            request = put_next(self._events, item, event.version)
            self._persistent.ask(self._client.put_item, **request)
        except ClientError as error:
            found = failed_item(error)
            if found is None:
                raise LookupError("no such event") from None
            if event_from(found) != event:  # if equal, an earlier try of this call wrote it
                raise StaleEvent(event_from(found)) from None

    def due(
        self,
        until: datetime,
        *,
        limit: int,
        run_concurrently: Concurrency,
        part: ShardRange = WHOLE,
    ) -> tuple[DueEvent, ...]:
        """Return events whose next attempt is due by `until`, oldest first.

        Only a range of the shards is read, and at most `limit` events from each shard. The index
        lags a little.
        """
        found = due(
            self._client,
            self._events,
            until,
            limit,
            read=lambda row: _DUE.decode(of_merchant(row)),
            run_concurrently=run_concurrently,
            shards=due_shards(),
            part=part,
        )
        return tuple(found.kept)

    def put_off(self, event: DueEvent, until: datetime) -> bool:
        """Postpone the event's entry in the index `due` to `until`.

        Returns False if the event was delivered, given up or postponed meanwhile.
        """
        as_seen = "#due_at = :seen"
        try:
            self._persistent.ask(
                self._client.update_item,
                TableName=self._events,
                Key={"id": text(event.id)},
                UpdateExpression="SET #due_at = :until",
                ConditionExpression=as_seen,
                ExpressionAttributeNames={"#due_at": "due_at"},
                ExpressionAttributeValues={":seen": instant(event.at), ":until": instant(until)},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            found = failed_item(error) or {}
            # If the same time is stored, an earlier try or another process has written it.
            return found.get("due_at") == instant(until)
        return True

    def page(
        self,
        of: Lists,
        *,
        limit: int,
        after: str | None = None,
        created_from: datetime | None = None,
        created_before: datetime | None = None,
        upward: bool = False,
        endpoint: str | None = None,
    ) -> Page[WebhookEvent]:
        """Return a page of a merchant's events, newest first; `limit` is 1 to 100.

        `after` is the position (`grammar.position`) of the event at which the previous page ended,
        None for the first page. Exception: if `upward` is true, the oldest event after that
        position comes first. With the id of a further `endpoint`, the page has the copies for that
        endpoint. Reading a page takes one query for each shard, and one batch read.
        """
        found = lists.page(
            self._client,
            self._events,
            "by_merchant",
            log_of(of.merchant, endpoint),
            shards=of.parts,
            limit=limit,
            after=after,
            created_from=created_from,
            created_before=created_before,
            upward=upward,
        )
        shown = self._in_order(self._events, found.ids, event_from)
        return Page(tuple(shown), found.next_key)


def log_of(merchant: str, endpoint: str | None) -> str:
    """Return the owner of a list of events: the merchant, or an endpoint for its copies."""
    return f"{merchant}{_OF}{endpoint}" if endpoint else merchant


def of_merchant(item: Item) -> Item:
    """Return the item (or entry of the index `due`) with merchant and shard as two fields."""
    found = unsharded(item)
    merchant, _, _ = text_from(found["merchant"]).partition(_OF)
    return found | {"merchant": text(merchant)}


def event_from(item: Item) -> WebhookEvent:
    return _EVENT.decode(of_merchant(item))


def event_item(event: WebhookEvent) -> Item:
    """Return the whole item, including the attributes for the indexes."""
    item = _EVENT.encode(event)
    if event.is_copy:
        item["merchant"] = text(log_of(event.merchant, event.endpoint))
    return sharded(item) | of_event(event)
