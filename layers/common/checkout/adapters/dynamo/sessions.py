"""`ports.Sessions` on DynamoDB, by the low-level client that is passed in.

Every write is conditional; the loser learns the winner from the same response. All reads are
strong, except of the indexes. Source: domain/transitions.py, design.md "Records".
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from checkout.adapters.aws import Persistent
from checkout.adapters.dynamo import lists
from checkout.adapters.dynamo.client import Client, due, get
from checkout.adapters.dynamo.conditions import (
    TAKEN,
    condition_failed,
    failed_item,
    put_new,
    put_reservation,
    raise_if_held,
    search_updates,
    transaction,
    update,
)
from checkout.adapters.dynamo.event_records import event_item
from checkout.adapters.dynamo.links import give_back, take_item
from checkout.adapters.dynamo.records import (
    DUE_SHARDS,
    LATER,
    URGENT_SHARDS,
    reservation_from,
    search_items,
    session_from,
    session_item,
)
from checkout.adapters.dynamo.values import instant_from, text, text_from
from checkout.domain.errors import Unavailable
from checkout.domain.retention import RETENTION
from checkout.domain.search import search_key
from checkout.domain.session import Session
from checkout.domain.transitions import Change
from checkout.domain.webhooks import WebhookEvent
from checkout.ports.runtime import WHOLE, Part, RandomBytes, SideBySide
from checkout.ports.sessions import (
    DueSessions,
    OutOfStock,
    Reservation,
    SessionPage,
    StaleSession,
)


class DynamoSessions:
    """`ports.Sessions`. `sleep` takes seconds; it and `random_bytes` pace retries.

    `retention` is for how long an ended session is kept (domain/retention.py).
    """

    def __init__(
        self,
        client: Client,
        prefix: str,
        *,
        sleep: Callable[[float], None],
        random_bytes: RandomBytes,
        retention: timedelta = RETENTION,
    ) -> None:
        self._client = client
        self._sessions = f"{prefix}-checkout_sessions"
        self._reservations = f"{prefix}-idempotency_keys"
        self._events = f"{prefix}-webhook_events"
        self._persistent = Persistent(sleep, random_bytes)
        self._retention = retention

    def create(self, session: Session, reservation: Reservation | None) -> Reservation | None:
        put_session = put_new(self._sessions, session_item(session, self._retention), "id")
        others = [
            {"Put": {"TableName": self._sessions, "Item": row}}
            for row in search_items(session, self._retention)
        ]
        if session.link is not None and session.holds_item:
            others.insert(0, {"Update": take_item(self._sessions, session.link)})
        if reservation is None:
            try:
                if others:
                    self._transact({"Put": put_session}, *others)
                else:
                    self._persistent.ask(self._client.put_item, **put_session)
            except ClientError as error:
                found = failed_item(error)
                if found is None and session.holds_item:
                    raise OutOfStock from error
                if found is None or session_from(found).writer != session.writer:
                    raise Unavailable(TAKEN) from error
            return None
        put_key = put_reservation(self._reservations, reservation)
        try:
            self._transact({"Put": put_key}, {"Put": put_session}, *others)
        except ClientError as error:
            held = failed_item(error, index=0)
            if held is None:
                if session.holds_item and condition_failed(error, index=2):
                    raise OutOfStock from error
                raise Unavailable(TAKEN) from error
            winner = reservation_from(held)
            return None if winner.writer == reservation.writer else winner
        return None

    def get(self, session_id: str) -> Session | None:
        item = get(self._client, self._sessions, id=text(session_id))
        return session_from(item) if item else None

    def reservation(self, key: str) -> Reservation | None:
        item = get(self._client, self._reservations, key=text(key))
        return reservation_from(item) if item else None

    def save(
        self,
        change: Change,
        event: WebhookEvent | None = None,
        reservation: Reservation | None = None,
    ) -> Session:
        """Write a change, as the port says. Raise LookupError if there is no such session."""
        request = update(self._sessions, change, self._retention)
        found_by = search_updates(self._sessions, change, self._retention)
        puts = [] if event is None else [put_new(self._events, event_item(event), "id")]
        if reservation is not None:
            puts.append(put_reservation(self._reservations, reservation))
        if change.restocks is not None:
            found_by.append({"Update": give_back(self._sessions, change.restocks)})
        try:
            if not puts and not found_by:
                answer = self._persistent.ask(
                    self._client.update_item, **request, ReturnValues="ALL_NEW"
                )
                return session_from(answer["Attributes"])
            self._transact({"Update": request}, *({"Put": put} for put in puts), *found_by)
        except ClientError as error:
            if reservation is not None:
                raise_if_held(error, reservation, index=len(puts))
            return self._stale_unless_ours(error, change)
        if change.by_instruction:  # it goes on from whatever version was stored
            return self.get(change.after.id) or change.after
        return change.after

    def page(
        self,
        merchant: str,
        *,
        limit: int,
        after: str | None,
        created_from: datetime | None,
        created_before: datetime | None,
        search: str | None = None,
        upward: bool = False,
        shards: int = 1,
    ) -> SessionPage:
        """Return a page: a query for each shard, and one batch read."""
        index, attribute, owner = "by_merchant", "merchant", merchant
        if search is not None:
            index, attribute, owner = "by_search", "search_key", search_key(merchant, search)
        found = lists.page(
            self._client,
            self._sessions,
            index,
            attribute,
            owner,
            shards=shards,
            limit=limit,
            after=after,
            created_from=created_from,
            created_before=created_before,
            upward=upward,
            # It may be found by its wallet and by its metadata.
            entries_each=1 if search is None else 2,
        )
        sessions = self._batch_get(found.ids)
        shown = tuple(sessions[each] for each in found.ids if each in sessions)
        return SessionPage(shown, found.next_key)

    def due(
        self,
        now: datetime,
        *,
        urgent: bool,
        limit: int,
        side_by_side: SideBySide,
        part: Part = WHOLE,
    ) -> DueSessions:
        found = due(
            self._client,
            self._sessions,
            now,
            limit,
            read=lambda row: (text_from(row["id"]), instant_from(row["due_at"])),
            side_by_side=side_by_side,
            lane="" if urgent else LATER,
            shards=URGENT_SHARDS if urgent else DUE_SHARDS,
            part=part,
        )
        oldest = found.kept[0][1] if found.kept else None
        return DueSessions(tuple(each for each, _ in found.kept), found.total, oldest)

    def _batch_get(self, session_ids: list[str]) -> dict[str, Session]:
        """Read up to 100 sessions, strongly; a missing one is not in the result."""
        found = self._persistent.batch_get(self._client, self._sessions, session_ids)
        return {session_id: session_from(item) for session_id, item in found.items()}

    def _transact(self, *items: dict[str, Any]) -> None:
        self._persistent.ask(self._client.transact_write_items, **transaction(*items))

    @staticmethod
    def _stale_unless_ours(error: ClientError, change: Change) -> Session:
        """Return our own write, whose answer was lost. Raise StaleSession of another's."""
        item = failed_item(error, index=0)
        if not condition_failed(error, index=0):
            raise Unavailable(TAKEN) from error
        if item is None:
            raise LookupError("no such session") from None
        current = session_from(item)
        if current.writer != change.after.writer:
            raise StaleSession(current) from None
        return current
