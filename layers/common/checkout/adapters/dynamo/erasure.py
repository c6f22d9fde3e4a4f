"""The reading of all records, for the operator's commands. No request does this."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from checkout.adapters.aws import ask
from checkout.adapters.dynamo.client import Client, get
from checkout.adapters.dynamo.codec import Item, text, text_from
from checkout.adapters.dynamo.conditions import met
from checkout.adapters.dynamo.events import event_from
from checkout.adapters.dynamo.notes import (
    NOTE_ROW,
    WITHDRAWAL_ROW,
    note_from,
    withdrawal_from,
)
from checkout.adapters.dynamo.people import entry_from
from checkout.adapters.dynamo.places import unsharded
from checkout.adapters.dynamo.records import (
    CART_ROW,
    FLAG_ROW,
    SEARCH_ROW,
    reservation_from,
    reservation_item,
    session_from,
)
from checkout.adapters.dynamo.refunds import refund_from
from checkout.adapters.dynamo.sessions import with_cart
from checkout.domain.merchant.audit import AuditEntry
from checkout.domain.refund.record import Refund
from checkout.domain.session.note import Note
from checkout.domain.session.record import Session
from checkout.domain.session.withdrawal import Withdrawal
from checkout.domain.webhooks.record import WebhookEvent
from checkout.ports import Reservation

T = TypeVar("T")

_AUDIT: Final = "audit#"
_REFUND: Final = "re_"
_OTHER_ROWS: Final = (
    CART_ROW,
    FLAG_ROW,
    NOTE_ROW,
    SEARCH_ROW,
    WITHDRAWAL_ROW,
    "day#",
    "clock#",
    "plink_",
    _REFUND,
    "man_",
    "ntc_",
    "sign-in#",
    "attempts#",
    "challenge#",
)


class DynamoRecords:
    """Reads whole tables, in no order; None stands for a row that cannot be read.

    Only the operator's credentials allow scans. A scan costs one read unit for each 4 kB, and locks
    nothing. Each method raises `errors.Unavailable`.
    """

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._prefix = prefix

    def sessions(self) -> Iterator[Session | None]:
        table = f"{self._prefix}-checkout_sessions"

        def read(item: Item) -> Session:
            return session_from(with_cart(self._client, table, item))

        return self._read("checkout_sessions", "id", read)

    def session_ids(self) -> Iterator[str]:
        """Return the ids of all sessions, also of those that cannot be read."""
        ids = (text_from(row["id"]) for row in self._rows("checkout_sessions"))
        return (each for each in ids if each.startswith("cs_"))

    def merchant_of(self, session_id: str) -> str | None:
        """Return the id of a session's merchant, also if the session cannot be read."""
        row = get(self._client, f"{self._prefix}-checkout_sessions", id=text(session_id))
        return text_from(unsharded(row)["merchant"]) if row and "merchant" in row else None

    def events(self) -> Iterator[WebhookEvent | None]:
        return self._read("webhook_events", "id", event_from)

    def audit_entries(self) -> Iterator[AuditEntry | None]:
        rows = self._rows("api_keys")
        entries = (row for row in rows if text_from(row["hash"]).startswith(_AUDIT))
        return (_readable(entry_from, row) for row in entries)

    def notes(self) -> Iterator[Note | None]:
        rows = self._rows("checkout_sessions")
        notes = (row for row in rows if text_from(row["id"]).startswith(NOTE_ROW))
        return (_readable(note_from, row) for row in notes)

    def withdrawals(self) -> Iterator[Withdrawal | None]:
        rows = self._rows("checkout_sessions")
        filed = (row for row in rows if text_from(row["id"]).startswith(WITHDRAWAL_ROW))
        return (_readable(withdrawal_from, row) for row in filed)

    def refunds(self) -> Iterator[Refund | None]:
        rows = self._rows("checkout_sessions")
        refunds = (row for row in rows if text_from(row["id"]).startswith(_REFUND))
        return (_readable(refund_from, row) for row in refunds)

    def answers(self) -> Iterator[Reservation | None]:
        """Return the stored answers of requests with an idempotency key."""
        return self._read("idempotency_keys", "key", reservation_from)

    def replace_answer(self, answer: Reservation) -> None:
        """Write the answer's body in place of the stored one, unless the key has a newer answer."""
        still_this_answer = "#writer = :writer"
        met(
            self._client.update_item,
            TableName=f"{self._prefix}-idempotency_keys",
            Key={"key": text(answer.key)},
            UpdateExpression="SET #body = :body",
            ConditionExpression=still_this_answer,
            ExpressionAttributeNames={"#body": "body", "#writer": "writer"},
            ExpressionAttributeValues={
                ":body": reservation_item(answer)["body"],
                ":writer": text(answer.writer),
            },
        )

    def _read(self, table: str, key: str, read: Callable[[Item], T]) -> Iterator[T | None]:
        rows = self._rows(table)
        own = (row for row in rows if not text_from(row[key]).startswith(_OTHER_ROWS))
        return (_readable(read, row) for row in own)

    def _rows(self, table: str) -> Iterator[Item]:
        start: dict[str, Any] = {}
        while True:
            found = ask(
                self._client.scan,
                TableName=f"{self._prefix}-{table}",
                ConsistentRead=True,
                **start,
            )
            yield from found["Items"]
            if "LastEvaluatedKey" not in found:
                return
            start = {"ExclusiveStartKey": found["LastEvaluatedKey"]}


def _readable(read: Callable[[Item], T], row: Item) -> T | None:
    """Return the record, or None for a row that was damaged by hand."""
    try:
        return read(row)
    except (KeyError, TypeError, ValueError):
        return None
