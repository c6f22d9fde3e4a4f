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
from checkout.adapters.dynamo.client import Client, due, get, with_cart, with_carts
from checkout.adapters.dynamo.conditions import (
    TAKEN,
    condition_failed,
    failed_item,
    put_new,
    put_reservation,
    raise_if_held,
    row_updates,
    transaction,
    update,
)
from checkout.adapters.dynamo.event_records import event_item
from checkout.adapters.dynamo.links import give_back, take_item
from checkout.adapters.dynamo.records import (
    LATER,
    SESSION_ATTRIBUTES,
    cart_item,
    cart_of,
    due_shards,
    id_row,
    reservation_from,
    search_items,
    session_from,
    session_item,
)
from checkout.adapters.dynamo.values import Item, instant_from, text, text_from
from checkout.domain.errors import Unavailable
from checkout.domain.retention import RETENTION
from checkout.domain.search import outer_ids, prefix_key, same_text, search_key, wallets
from checkout.domain.session import Session
from checkout.domain.transitions import Change, Event
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
        """Write both, as the port says: in a transaction, or each for half of the price."""
        if session.holds_item or (reservation is not None and reservation.session is None):
            return self._create_at_once(session, reservation)
        if reservation is not None:
            winner = self._reserve(reservation)
            if winner is not None:
                return winner
        self._put_cart(session)
        self._put_rows(search_items(session, self._retention))
        put_session = put_new(self._sessions, session_item(session, self._retention), "id")
        try:
            self._persistent.ask(self._client.put_item, **put_session)
        except ClientError as error:
            _raise_if_taken(failed_item(error), session, error)
        return None

    def _put_rows(self, rows: list[Item]) -> None:
        """Store rows by which a session is found: before it, so that it is found once it is there.

        A row whose session is never stored finds nothing, and goes with its time to live.
        """
        self._persistent.batch_put(self._client, self._sessions, rows)

    def _reserve(self, reservation: Reservation) -> Reservation | None:
        """Store a reservation; return the live one that holds its key, if there is one."""
        request = put_reservation(self._reservations, reservation)
        try:
            self._persistent.ask(self._client.put_item, **request)
        except ClientError as error:
            held = failed_item(error)
            assert held is not None, "the key is free"
            return _of_another(held, reservation)
        return None

    def _create_at_once(
        self, session: Session, reservation: Reservation | None
    ) -> Reservation | None:
        """Write both or neither, with the item of the stock."""
        self._put_cart(session)
        self._put_rows(search_items(session, self._retention))
        keys = [] if reservation is None else [put_reservation(self._reservations, reservation)]
        put_session = put_new(self._sessions, session_item(session, self._retention), "id")
        items: list[dict[str, Any]] = [{"Put": put} for put in (*keys, put_session)]
        if session.link is not None and session.holds_item:
            items.insert(len(keys) + 1, {"Update": take_item(self._sessions, session.link)})
        try:
            self._transact(*items)
        except ClientError as error:
            held = failed_item(error) if keys else None
            if held is not None and reservation is not None:
                return _of_another(held, reservation)
            found = failed_item(error, index=len(keys))
            if found is None and session.holds_item:
                raise OutOfStock from error
            _raise_if_taken(found, session, error)
        return None

    def get(self, session_id: str) -> Session | None:
        item = get(self._client, self._sessions, id=text(session_id))
        return session_from(with_cart(self._client, self._sessions, item)) if item else None

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
        rows = row_updates(self._sessions, change, self._retention)
        puts = [] if event is None else [put_new(self._events, event_item(event), "id")]
        if reservation is not None:
            puts.append(put_reservation(self._reservations, reservation))
        if change.restocks is not None:
            rows.append({"Update": give_back(self._sessions, change.restocks)})
        found_by = self._new_rows(change)
        if not change.by_instruction:  # nothing comes between a 201 and its W7
            self._put_rows(found_by)
        try:
            if not puts and not rows:
                answer = self._persistent.ask(
                    self._client.update_item, **request, ReturnValues="ALL_NEW"
                )
                if change.by_instruction:
                    self._put_rows(found_by)
                return _with_cart_of(change, answer["Attributes"])
            self._transact({"Update": request}, *({"Put": put} for put in puts), *rows)
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
            # It may be found by its wallet and by another text.
            entries_each=1 if search is None else 2,
        )
        sessions = self._batch_get(found.ids)
        shown = tuple(sessions[each] for each in found.ids if each in sessions)
        return SessionPage(shown, found.next_key)

    def holder(self, merchant: str, outer_id: str) -> str | None:
        row = get(self._client, self._sessions, id=text(id_row(merchant, outer_id)))
        return text_from(row["session"]) if row else None

    def ordered(
        self, merchant: str, beginning: str, *, limit: int, shards: int = 1
    ) -> tuple[Session, ...]:
        """Return sessions: a query for each shard, and one batch read."""
        ids = lists.beginning(
            self._client,
            self._sessions,
            prefix_key(merchant, beginning),
            same_text(beginning),
            shards=shards,
            limit=limit,
        )
        found = self._batch_get(ids)
        return tuple(found[each] for each in ids if each in found)

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
            shards=due_shards(urgent=urgent),
            part=part,
        )
        oldest = found.kept[0][1] if found.kept else None
        return DueSessions(tuple(each for each, _ in found.kept), found.total, oldest)

    def _batch_get(self, session_ids: list[str]) -> dict[str, Session]:
        """Read up to 100 sessions, strongly; a missing one is not in the result."""
        found = self._persistent.batch_get(
            self._client, self._sessions, session_ids, SESSION_ATTRIBUTES
        )
        found = with_carts(self._client, self._persistent, self._sessions, found)
        return {session_id: session_from(item) for session_id, item in found.items()}

    def _put_cart(self, session: Session) -> None:
        """Store a large cart, before its session: no session is ever without its cart.

        A cart whose session is never stored is found by nobody, and goes with its time to live.
        """
        cart = cart_item(session, self._retention)
        if cart is None:
            return
        try:
            self._persistent.ask(self._client.put_item, **put_new(self._sessions, cart, "id"))
        except ClientError as error:
            if failed_item(error) != cart:  # else it is our own write, whose answer was lost
                raise Unavailable(TAKEN) from error

    def _new_rows(self, change: Change) -> list[Item]:
        """Return the rows that find the changed session by what the change has brought."""
        before, after = change.before, change.after
        if change.event is Event.ERASED or _of_wallets(before) == _of_wallets(after):
            return []
        known = search_items(before, self._retention)
        return [row for row in search_items(after, self._retention) if row not in known]

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
        current = _with_cart_of(change, item)
        if current.writer != change.after.writer:
            raise StaleSession(current) from None
        return current


def _of_another(held: Item, ours: Reservation) -> Reservation | None:
    """Return the reservation that holds the key; None if it is ours, whose answer was lost."""
    winner = reservation_from(held)
    return None if winner.writer == ours.writer else winner


def _raise_if_taken(found: Item | None, session: Session, error: ClientError) -> None:
    """Raise Unavailable unless the item found is our own write, whose answer was lost."""
    if found is None or text_from(found["writer"]) != session.writer:
        raise Unavailable(TAKEN) from error


def _of_wallets(session: Session) -> tuple[list[str], list[str]]:
    return wallets(session), outer_ids(session)


def _with_cart_of(change: Change, item: Item) -> Session:
    """Return the stored session of a change. A cart that lies elsewhere is as it was read."""
    return session_from({"cart": cart_of(change.before)} | item)
