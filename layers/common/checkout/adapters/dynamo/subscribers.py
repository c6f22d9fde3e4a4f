"""Subscribers to notices in DynamoDB: rows among the sessions, where the sweep's index is."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from botocore.exceptions import ClientError

from checkout.adapters.dynamo.client import Client, get
from checkout.adapters.dynamo.codec import Codec
from checkout.adapters.dynamo.conditions import failed_item, put, put_version
from checkout.adapters.dynamo.places import LATER, due_shard, ttl
from checkout.adapters.dynamo.wire import Item, instant, text
from checkout.domain.merchant.notices import Subscriber
from checkout.ports import Clock, Reservation

STOPPED_KEPT: Final = timedelta(days=1)
# `merchant` is the key of the list of sessions, which must not contain subscribers.
_SUBSCRIBER: Final = Codec(Subscriber, names={"merchant": "owner"}, groups={"told": ("told",)})

subscriber_from: Final = _SUBSCRIBER.decode


class DynamoSubscribers:
    """Stores one record for each member who has asked for notices.

    Ids begin with `ntc_`, unlike the id of any session.
    """

    def __init__(self, client: Client, prefix: str, clock: Clock) -> None:
        self._client = client
        self._table = f"{prefix}-checkout_sessions"
        self._reservations = f"{prefix}-idempotency_keys"
        self._clock = clock

    def get(self, subscriber_id: str) -> Subscriber | None:
        """Read the record, strongly consistent."""
        item = get(self._client, self._table, id=text(subscriber_id))
        return subscriber_from(item) if item else None

    def put(self, subscriber: Subscriber, reservation: Reservation | None = None) -> bool:
        """Write the record if the stored version is one less; a first version if there is none.

        Returns False if somebody else has written meanwhile. The reservation is written in the same
        transaction. Raises KeyHeld.
        """
        item = self._item(subscriber)
        request = put_version(self._table, item, "id", subscriber.version)
        try:
            put(self._client, request, self._reservations, reservation)
        except ClientError as error:
            found = failed_item(error)  # our own write, if its answer was lost
            return found is not None and found["writer"] == item["writer"]
        return True

    def _item(self, subscriber: Subscriber) -> Item:
        """Return the item, with the attributes of the index `due`, or its time to live."""
        item = _SUBSCRIBER.encode(subscriber)
        if subscriber.look_at is None:
            return item | {"ttl": ttl(self._clock.now() + STOPPED_KEPT)}
        return item | {
            "due_shard": text(LATER + due_shard(subscriber.id)),
            "due_at": instant(subscriber.look_at),
        }
