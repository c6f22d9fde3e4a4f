"""Webhook events as DynamoDB items.

An event is in the `due` index while an attempt is due, and gets its `ttl` with its end. Its place
in the index is `next_at`, which a lease does not move. The next attempt is made from `retry_at`.

The copies for an endpoint that is not the merchant's first are a list of their own: their
`merchant` holds the endpoint too, as `mer_…/we_…`.
"""

from __future__ import annotations

from typing import Final

from checkout.adapters.dynamo.codec import Codec
from checkout.adapters.dynamo.records import due_shard, ttl
from checkout.adapters.dynamo.sharding import sharded, unsharded
from checkout.adapters.dynamo.values import Item, instant, text, text_from
from checkout.domain.grammar import position
from checkout.domain.webhooks import KEPT, EventStatus, WebhookEvent

_EVENT: Final = Codec(
    WebhookEvent,
    packed=("deliveries",),
    deflated=("body", "stripe_body"),
    names={"next_at": "retry_at"},
)
_OF: Final = "/"


def log_of(merchant: str, endpoint: str | None) -> str:
    """Return the owner of a list of events: of a merchant's, or of an endpoint's copies."""
    return f"{merchant}{_OF}{endpoint}" if endpoint else merchant


def of_merchant(item: Item) -> Item:
    """Return the item, or one of the `due` index, with merchant and shard as two attributes."""
    found = unsharded(item)
    merchant, _, _ = text_from(found["merchant"]).partition(_OF)
    return found | {"merchant": text(merchant)}


def event_from(item: Item) -> WebhookEvent:
    return _EVENT.decode(of_merchant(item))


def event_item(event: WebhookEvent) -> Item:
    """Return the whole item, index attributes included."""
    item = _EVENT.encode(event)
    if event.is_copy:
        item["merchant"] = text(log_of(event.merchant, event.endpoint))
    item = sharded(item)
    item["created_key"] = text(position(event.created_at, event.id))
    if event.status is EventStatus.PENDING:
        item["due_shard"] = text(due_shard(event.id))
        item["due_at"] = item["next_at"] = instant(event.due_at)
    if event.ended_at is not None:
        item["ttl"] = ttl(event.ended_at + KEPT)
    return item
