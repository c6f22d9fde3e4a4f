"""How webhook events lie in their table: dataclass to DynamoDB item and back. An event is in the
`due` index for as long as an attempt is owed, and gets its `ttl` with its end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from checkout.adapters.dynamo.records import BROOM_DELAY, compact, due_shard, position
from checkout.adapters.dynamo.values import (
    Item,
    Value,
    instant,
    instant_from,
    milliseconds,
    moment,
    number,
    number_from,
    optional,
    present,
    read,
    text,
    text_from,
)
from checkout.domain.webhooks import KEPT, Delivery, EventStatus, GivenUp, WebhookEvent


def event_item(event: WebhookEvent) -> Item:
    pending = event.status is EventStatus.PENDING
    gone_at: int | None = None
    if event.ended_at is not None:
        gone_at = milliseconds(event.ended_at + KEPT) // 1000 + BROOM_DELAY
    return present(
        id=text(event.id),
        merchant=text(event.merchant),
        session=optional(text, event.session),
        type=text(event.type),
        body=text(event.body),
        created_at=instant(event.created_at),
        created_key=text(position(event.created_at, event.id)),
        status=text(event.status),
        version=number(event.version),
        attempts=number(event.attempts),
        next_at=instant(event.next_at),
        due_shard=text(due_shard(event.id)) if pending else None,
        due_at=instant(event.next_at) if pending else None,
        deliveries=text(compact([_delivery(delivery) for delivery in event.deliveries])),
        ended_at=optional(instant, event.ended_at),
        given_up=optional(text, event.given_up),
        writer=text(event.writer),
        ttl=optional(number, gone_at),
    )


def event_from(item: Mapping[str, Value]) -> WebhookEvent:
    return WebhookEvent(
        id=text_from(item["id"]),
        merchant=text_from(item["merchant"]),
        session=read(item, "session", text_from),
        type=text_from(item["type"]),
        body=text_from(item["body"]),
        created_at=instant_from(item["created_at"]),
        next_at=instant_from(item["next_at"]),
        status=EventStatus(text_from(item["status"])),
        version=number_from(item["version"]),
        attempts=number_from(item["attempts"]),
        deliveries=tuple(
            Delivery(moment(at), *rest) for at, *rest in json.loads(text_from(item["deliveries"]))
        ),
        ended_at=read(item, "ended_at", instant_from),
        given_up=read(item, "given_up", lambda value: GivenUp(text_from(value))),
        writer=text_from(item["writer"]),
    )


def _delivery(delivery: Delivery) -> list[object]:
    return [
        milliseconds(delivery.at),
        delivery.duration_ms,
        delivery.status,
        delivery.error,
        delivery.answer,
    ]
