"""Read all records. Only the operator's commands use this module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final, TypeVar

from checkout.adapters.dynamo.client import Store, get, pages
from checkout.adapters.dynamo.codec import Item, text, text_from
from checkout.adapters.dynamo.conditions import met
from checkout.adapters.dynamo.events import event_from
from checkout.adapters.dynamo.index_keys import unsharded
from checkout.adapters.dynamo.notes import (
    NOTE_ROW,
    WITHDRAWAL_ROW,
    note_from,
    withdrawal_from,
)
from checkout.adapters.dynamo.people import entry_from
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


class DynamoRecords(Store):
    """Reads whole tables, in no particular order. A row that cannot be read is returned as None.

    Only the operator's credentials allow scans. A scan costs one read unit for each 4 kB, and locks
    nothing. Each method raises `errors.Unavailable`.
    """

    def sessions(self) -> Iterator[Session | None]:
        def read(item: Item) -> Session:
            return session_from(with_cart(self._client, self._sessions, item))

        return self._read(self._sessions, "id", read)

    def session_ids(self) -> Iterator[str]:
        """Return the ids of all sessions, including sessions that cannot be read."""
        ids = (text_from(row["id"]) for row in self._rows(self._sessions))
        return (each for each in ids if each.startswith("cs_"))

    def merchant_of(self, session_id: str) -> str | None:
        """Return the id of a session's merchant, even if the session cannot be read."""
        row = get(self._client, self._sessions, id=text(session_id))
        return text_from(unsharded(row)["merchant"]) if row and "merchant" in row else None

    def events(self) -> Iterator[WebhookEvent | None]:
        return self._read(self._events, "id", event_from)

    def audit_entries(self) -> Iterator[AuditEntry | None]:
        return self._read(self._keys, "hash", entry_from, prefix=_AUDIT)

    def notes(self) -> Iterator[Note | None]:
        return self._read(self._sessions, "id", note_from, prefix=NOTE_ROW)

    def withdrawals(self) -> Iterator[Withdrawal | None]:
        return self._read(self._sessions, "id", withdrawal_from, prefix=WITHDRAWAL_ROW)

    def refunds(self) -> Iterator[Refund | None]:
        return self._read(self._sessions, "id", refund_from, prefix=_REFUND)

    def answers(self) -> Iterator[Reservation | None]:
        """Return the stored answers to requests with an idempotency key."""
        return self._read(self._reservations, "key", reservation_from)

    def replace_answer(self, answer: Reservation) -> None:
        """Replace the stored body with that of `answer`, unless the key has a newer answer."""
        still_this_answer = "#writer = :writer"
        met(
            self._client.update_item,
            TableName=self._reservations,
            Key={"key": text(answer.key)},
            UpdateExpression="SET #body = :body",
            ConditionExpression=still_this_answer,
            ExpressionAttributeNames={"#body": "body", "#writer": "writer"},
            ExpressionAttributeValues={
                ":body": reservation_item(answer)["body"],
                ":writer": text(answer.writer),
            },
        )

    def _read(
        self, table: str, key: str, read: Callable[[Item], T], *, prefix: str = ""
    ) -> Iterator[T | None]:
        """Read rows whose keys begin with `prefix`; without a prefix, skip other kinds of rows."""
        for row in self._rows(table):
            of = text_from(row[key])
            if of.startswith(prefix) if prefix else not of.startswith(_OTHER_ROWS):
                yield _readable(read, row)

    def _rows(self, table: str) -> Iterator[Item]:
        found = pages(self._client.scan, TableName=table, ConsistentRead=True)
        return chain.from_iterable(found)


def _readable(read: Callable[[Item], T], row: Item) -> T | None:
    """Return the record, or None if the row cannot be read, for example after a manual change."""
    try:
        return read(row)
    except (KeyError, TypeError, ValueError):
        return None
