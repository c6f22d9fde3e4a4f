"""Webhook events as DynamoDB items.

An event is in the `due` index while an attempt is due, and gets its `ttl` with its end.
"""

from __future__ import annotations

from typing import Final

from checkout.adapters.dynamo.codec import Codec
from checkout.adapters.dynamo.records import due_shard, ttl
from checkout.adapters.dynamo.sharding import sharded, unsharded
from checkout.adapters.dynamo.values import Item, text
from checkout.domain.grammar import position
from checkout.domain.webhooks import KEPT, EventStatus, WebhookEvent

_EVENT: Final = Codec(WebhookEvent, packed=("deliveries",))


def event_from(item: Item) -> WebhookEvent:
    return _EVENT.decode(unsharded(item))


def event_item(event: WebhookEvent) -> Item:
    """Return the whole item, index attributes included."""
    item = sharded(_EVENT.encode(event))
    item["created_key"] = text(position(event.created_at, event.id))
    if event.status is EventStatus.PENDING:
        item["due_shard"] = text(due_shard(event.id))
        item["due_at"] = item["next_at"]
    if event.ended_at is not None:
        item["ttl"] = ttl(event.ended_at + KEPT)
    return item
