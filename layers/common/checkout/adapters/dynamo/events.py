"""`ports.Events` on DynamoDB: webhook events outside of the transaction that made them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from botocore.exceptions import ClientError

from checkout.adapters.aws import Persistent, ask
from checkout.adapters.dynamo.client import PAGE_MAX, Client, due, get
from checkout.adapters.dynamo.codec import Codec
from checkout.adapters.dynamo.conditions import TAKEN, failed_item, put_new, put_next
from checkout.adapters.dynamo.event_records import event_from, event_item
from checkout.adapters.dynamo.values import instant, text, text_from
from checkout.domain.errors import Unavailable
from checkout.domain.grammar import position
from checkout.domain.webhooks import WebhookEvent
from checkout.ports.runtime import RandomBytes, SideBySide
from checkout.ports.webhooks import DueEvent, EventPage, StaleEvent

_DUE: Final = Codec(DueEvent, names={"at": "due_at", "since": "next_at"})


class DynamoEvents:
    """`sleep` takes seconds; it and `random_bytes` pace retries."""

    def __init__(
        self,
        client: Client,
        prefix: str,
        *,
        sleep: Callable[[float], None],
        random_bytes: RandomBytes,
    ) -> None:
        self._client = client
        self._table = f"{prefix}-webhook_events"
        self._persistent = Persistent(sleep, random_bytes)

    def add(self, event: WebhookEvent) -> None:
        item = event_item(event)
        try:
            self._persistent.ask(self._client.put_item, **put_new(self._table, item, "id"))
        except ClientError as error:
            if failed_item(error) != item:  # else it is our own write, whose answer was lost
                raise Unavailable(TAKEN) from error

    def get(self, event_id: str) -> WebhookEvent | None:
        item = get(self._client, self._table, id=text(event_id))
        return event_from(item) if item else None

    def save(self, event: WebhookEvent) -> None:
        """Write the next version. Raise StaleEvent, and LookupError if there is no such event."""
        item = event_item(event)
        try:
            request = put_next(self._table, item, event.version)
            self._persistent.ask(self._client.put_item, **request)
        except ClientError as error:
            found = failed_item(error)
            if found is None:
                raise LookupError("no such event") from None
            if event_from(found) != event:  # else it is our own write, whose answer was lost
                raise StaleEvent(event_from(found)) from None

    def due(self, until: datetime, *, limit: int, side_by_side: SideBySide) -> tuple[DueEvent, ...]:
        found = due(
            self._client,
            self._table,
            until,
            limit,
            read=_DUE.decode,
            side_by_side=side_by_side,
        )
        return tuple(found.kept)

    def put_off(self, event: DueEvent, until: datetime) -> bool:
        as_seen = "#due_at = :seen"
        try:
            self._persistent.ask(
                self._client.update_item,
                TableName=self._table,
                Key={"id": text(event.id)},
                UpdateExpression="SET #due_at = :until",
                ConditionExpression=as_seen,
                ExpressionAttributeNames={"#due_at": "due_at"},
                ExpressionAttributeValues={":seen": instant(event.at), ":until": instant(until)},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            found = failed_item(error) or {}
            # As we want it: our own write, whose answer was lost, or one that did the same.
            return found.get("due_at") == instant(until)
        return True

    def page(
        self,
        merchant: str,
        *,
        limit: int,
        after: str | None = None,
        created_from: datetime | None = None,
        created_before: datetime | None = None,
        upward: bool = False,
    ) -> EventPage:
        """Return a page; `limit` is 1..100. One index query and one batch read."""
        if not 1 <= limit <= PAGE_MAX:
            raise ValueError(f"limit must be 1..{PAGE_MAX}")
        lowest = position(created_from) if created_from else "0"
        highest = position(created_before) if created_before else ":"  # sorts behind every digit
        if after is not None:
            lowest, highest = (
                (max(lowest, after), highest) if upward else (lowest, min(highest, after))
            )
        if highest < lowest:
            return EventPage((), None)
        found = ask(
            self._client.query,
            TableName=self._table,
            IndexName="by_merchant",
            KeyConditionExpression="#merchant = :merchant AND #created_key BETWEEN :low AND :high",
            ExpressionAttributeNames={"#merchant": "merchant", "#created_key": "created_key"},
            ExpressionAttributeValues={
                ":merchant": text(merchant),
                ":low": text(lowest),
                ":high": text(highest),
            },
            ScanIndexForward=upward,
            # One more tells whether there are more; BETWEEN includes `after` itself, seen already.
            Limit=limit + (1 if after is None else 2),
        )
        rows = [row for row in found["Items"] if row["created_key"]["S"] != after]
        ids = [text_from(row["id"]) for row in rows[:limit]]
        items = self._persistent.batch_get(self._client, self._table, ids)
        return EventPage(
            tuple(event_from(items[event_id]) for event_id in ids if event_id in items),
            text_from(rows[limit - 1]["created_key"]) if len(rows) > limit else None,
        )
