"""Checkout sessions in DynamoDB, through the low-level client that is passed in.

Every write is conditional. If a condition fails, for example because another process has changed
the record, the same response contains the stored record. All reads are strongly consistent, except
reads of indexes. A reservation is an idempotency record (ports.py), and a shard is a part of a list
or an index (lists.py). Source: domain/session/transitions.py, design.md "Records".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Generic, TypeVar

from botocore.exceptions import ClientError

from checkout.adapters.aws import Persistent
from checkout.adapters.dynamo import lists
from checkout.adapters.dynamo.client import Client, PacedStore, due, get, readable
from checkout.adapters.dynamo.codec import Item, instant_from, text, text_from
from checkout.adapters.dynamo.conditions import (
    RESERVATION,
    TAKEN,
    Writes,
    condition_failed,
    count_in,
    counted_in,
    failed_item,
    keep_longer,
    put_new,
    put_reservation,
    row_updates,
    update,
)
from checkout.adapters.dynamo.events import event_item
from checkout.adapters.dynamo.index_keys import LATER, due_shards, prefix_key, search_key
from checkout.adapters.dynamo.links import give_back, take_items
from checkout.adapters.dynamo.records import (
    SESSION_ATTRIBUTES,
    cart_id,
    cart_item,
    cart_of,
    flag_item,
    id_row,
    reservation_from,
    search_items,
    session_from,
    session_item,
)
from checkout.adapters.dynamo.refunds import (
    mandate_from,
    put_refund,
    refund_from,
    update_mandate,
    update_refund,
)
from checkout.domain.ground.errors import Unavailable
from checkout.domain.ground.ids import MANDATE, REFUND, SESSION, kind_of
from checkout.domain.ground.parts import Lists
from checkout.domain.payment.events import Event
from checkout.domain.payment.machine import Change, Record
from checkout.domain.reports.search_terms import outer_ids, same_text, wallets
from checkout.domain.session.record import Session
from checkout.domain.session.retention import RETENTION
from checkout.domain.session.transitions import given_back
from checkout.ports import (
    WHOLE,
    AllowanceUsed,
    Concurrency,
    DueSessions,
    OutOfStock,
    Page,
    Reservation,
    ShardRange,
    StaleRecord,
    Transaction,
)

R = TypeVar("R", bound=Record)


class DynamoSessions(PacedStore):
    """Stores checkout sessions, and the records written in the same transactions.

    `retention` is the time for which an ended session is kept (domain/session/retention.py).
    """

    def __init__(
        self, client: Client, prefix: str, *, retention: timedelta = RETENTION, **paced: Any
    ) -> None:
        super().__init__(client, prefix, **paced)
        self._retention = retention

    def create(self, session: Session, reservation: Reservation | None) -> Reservation | None:
        """Write the idempotency record and the session, and take its items from the stock.

        The record and the session are written in one transaction if items are taken, or if the
        record names no session. Otherwise they are written one after the other, which costs half as
        much. Returns None if both were written. If an unexpired record already has the key,
        nothing is written, and that record is returned. An expired record is replaced. Raises
        OutOfStock.
        """
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
        """Store a session's search rows before the session, so that a search finds it at once.

        If the session is never stored, the search ignores these rows. They are removed after their
        time to live.
        """
        self._persistent.batch_put(self._client, self._sessions, rows)

    def _reserve(self, reservation: Reservation) -> Reservation | None:
        """Store a reservation, or return the unexpired reservation that already has its key."""
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
        """Write the record and the session, and take the items, in one transaction."""
        self._put_cart(session)
        self._put_rows(search_items(session, self._retention))
        writes = Writes()
        writes.reserve(self._reservations, reservation)
        put_session = put_new(self._sessions, session_item(session, self._retention), "id")
        writes.items["session"] = {"Put": put_session}
        if session.link is not None and session.holds_item:
            taken = take_items(self._sessions, session.link, session.quantity)
            writes.items["stock"] = {"Update": taken}
        try:
            self._transact(writes)
        except ClientError as error:
            held = writes.stored(error, RESERVATION)
            if held is not None and reservation is not None:
                return _of_another(held, reservation)
            found = writes.stored(error, "session")
            if found is None and session.holds_item:
                raise OutOfStock from error
            _raise_if_taken(found, session, error)
        return None

    def get(self, session_id: str) -> Session | None:
        """Read the session with strong consistency."""
        item = get(self._client, self._sessions, id=text(session_id))
        return session_from(with_cart(self._client, self._sessions, item)) if item else None

    def reservation(self, key: str) -> Reservation | None:
        """Read the idempotency record with strong consistency, even if it has expired."""
        item = get(self._client, self._reservations, key=text(key))
        return reservation_from(item) if item else None

    def save(self, transaction: Transaction[R]) -> R:
        """Write everything in the transaction, or nothing if a condition fails.

        If the change returns items to a payment link's stock, the stock is also written. Returns
        the record as written, even if an earlier try, whose response was lost, has written it.
        Raises KeyHeld if another unexpired reservation has the key, AllowanceUsed if too little of
        the allowance is left, and LookupError if there is no such record. Raises StaleRecord if the
        record has changed since it was read. The transaction can contain a change of a second
        record, `also`. If only that record has changed meanwhile, StaleRecord contains the first
        record as it was read. Only `flows.payment.writes` calls this.
        """
        change = transaction.change
        kind: StoredKind[R] = _KINDS[kind_of(change.after.id)]
        writes = self._writes(kind, transaction)
        found_by = kind.found_by(change, self._retention)
        for row in kind.kept_longer(change, self._retention):
            self._keep_longer(row)
        # After a wallet's 201, W7 (this write of the session) must come first, so the rows are put
        # later.
        late = change.event == Event.PAYMENT_CREATED
        if not late:
            self._put_rows(found_by)
        saved = change.after
        try:
            if len(writes.items) > 1:
                self._transact(writes)
            else:
                request = writes.items["change"]["Update"]
                answer = self._persistent.ask(
                    self._client.update_item, **request, ReturnValues="ALL_NEW"
                )
                saved = kind.stored(change, answer["Attributes"])
        except ClientError as error:
            writes.raise_if_held(error, transaction.reservation)
            if not writes.failed(error, "change"):
                if writes.failed(error, "also"):
                    raise StaleRecord(change.before) from None
                if writes.failed(error, "allowance"):
                    raise AllowanceUsed(counted_in(writes.stored(error, "allowance"))) from None
            saved = self._stale_unless_ours(kind, error, change)
        if late:
            self._put_rows(found_by)
        return saved

    def _writes(self, kind: StoredKind[R], transaction: Transaction[R]) -> Writes:
        """Return the writes of a transaction, including those to the other rows of the record."""
        change = transaction.change
        writes = Writes(
            {"change": {"Update": kind.update(self._sessions, change, self._retention)}}
        )
        items = writes.items
        for event in transaction.events:
            items[event.id] = {"Put": put_new(self._events, event_item(event), "id")}
        if transaction.refund is not None:
            items["refund"] = {
                "Put": put_refund(self._sessions, transaction.refund, self._retention)
            }
        writes.reserve(self._reservations, transaction.reservation)
        beside = kind.beside(self._sessions, change, self._retention)
        items |= {f"beside {number}": each for number, each in enumerate(beside)}
        if transaction.allowance is not None:
            items["allowance"] = {"Update": count_in(self._sessions, transaction.allowance)}
        if transaction.also is not None:
            other: StoredKind[Any] = _KINDS[kind_of(transaction.also.after.id)]
            also = other.update(self._sessions, transaction.also, self._retention)
            items["also"] = {"Update": also}
        return writes

    def page(
        self,
        of: Lists,
        *,
        limit: int,
        after: str | None,
        created_from: datetime | None,
        created_before: datetime | None,
        search: str | None = None,
        upward: bool = False,
    ) -> Page[Session]:
        """Return a page of a merchant's sessions, newest first; `limit` is 1 to 100.

        `after` is the position (`grammar.position`) of the session at which the previous page
        ended, None for the first page. Exception: if `upward` is true, the oldest session after
        that position comes first. With `search`, the page has only sessions with this text: the
        name of a wallet, a metadata value, or a word of an item's name
        (domain/reports/search_terms.py). The index lags a little. Reading a page takes one query
        for each shard, and one batch read.
        """
        index, key = "by_merchant", of.merchant
        if search is not None:
            index, key = "by_search", search_key(key, search)
        found = lists.page(
            self._client,
            self._sessions,
            index,
            key,
            shards=of.parts,
            limit=limit,
            after=after,
            created_from=created_from,
            created_before=created_before,
            upward=upward,
            # The search can find a session twice: by its wallet and by another text.
            entries_each=1 if search is None else 2,
        )
        sessions, unreadable = self._batch_get(found.ids)
        shown = tuple(sessions[each] for each in found.ids if each in sessions)
        return Page(shown, found.next_key, unreadable)

    def holder(self, merchant: str, outer_id: str) -> str | None:
        """Return the id of the session with this payment's, quote's or request's id, or None."""
        row = get(self._client, self._sessions, id=text(id_row(merchant, outer_id)))
        return text_from(row["session"]) if row else None

    def ordered(self, of: Lists, beginning: str, *, limit: int) -> tuple[Session, ...]:
        """Return up to `limit` sessions whose order number, or its last part, has this `beginning`.

        The search takes one query for each shard, and one batch read.
        """
        ids = lists.beginning(
            self._client,
            self._sessions,
            prefix_key(of.merchant, beginning),
            same_text(beginning),
            shards=of.parts,
            limit=limit,
        )
        found, _ = self._batch_get(ids)
        return tuple(found[each] for each in ids if each in found)

    def due(
        self,
        now: datetime,
        *,
        urgent: bool,
        limit: int,
        run_concurrently: Concurrency,
        part: ShardRange = WHOLE,
    ) -> DueSessions:
        """Return the sessions due for a check at `now`, either the urgent ones or all others.

        At most `limit` sessions of each shard are returned. The index lags a little, so read each
        session before acting on it.
        """
        found = due(
            self._client,
            self._sessions,
            now,
            limit,
            read=lambda row: (text_from(row["id"]), instant_from(row["due_at"])),
            run_concurrently=run_concurrently,
            lane="" if urgent else LATER,
            shards=due_shards(urgent=urgent),
            part=part,
        )
        oldest = found.kept[0][1] if found.kept else None
        return DueSessions(tuple(each for each, _ in found.kept), found.total, oldest)

    def _batch_get(self, session_ids: list[str]) -> tuple[dict[str, Session], tuple[str, ...]]:
        """Read up to 100 sessions with strong consistency. Also return the ids of damaged sessions.

        Missing sessions are left out.
        """
        found = self._persistent.batch_get(
            self._client, self._sessions, session_ids, SESSION_ATTRIBUTES
        )
        found = with_carts(self._client, self._persistent, self._sessions, found)
        sessions, unreadable = readable(found.values(), session_from)
        return {each.id: each for each in sessions}, tuple(unreadable)

    def _put_cart(self, session: Session) -> None:
        """Store a large cart before its session, so that no session is ever without its cart.

        If the session is never stored, nobody reads the cart, and it is removed after its time to
        live.
        """
        cart = cart_item(session, self._retention)
        if cart is None:
            return
        try:
            self._persistent.ask(self._client.put_item, **put_new(self._sessions, cart, "id"))
        except ClientError as error:
            if failed_item(error) != cart:  # if equal, an earlier try of this call wrote it
                raise Unavailable(TAKEN) from error

    def _keep_longer(self, row: Item) -> None:
        """Give a stored row the time to live of `row`. A missing row is not created."""
        try:
            self._persistent.ask(self._client.update_item, **keep_longer(self._sessions, row))
        except ClientError as error:
            failed_item(error)  # no such row: another release keeps the cart in the session's item

    def _stale_unless_ours(self, kind: StoredKind[R], error: ClientError, change: Change[R]) -> R:
        """Return the stored record if an earlier try of ours has written it.

        Raises StaleRecord if another process has written it. A cart in a separate item is read
        again, because the other process may have changed the cart.
        """
        item = failed_item(error)
        if not condition_failed(error):
            raise Unavailable(TAKEN) from error
        if item is None:
            raise LookupError("no such record") from None
        if kind_of(change.after.id) == SESSION:
            item = with_cart(self._client, self._sessions, item)
        current = kind.stored(change, item)
        if current.writer != change.after.writer:
            raise StaleRecord(current) from None
        return current

    def _transact(self, writes: Writes) -> None:
        self._persistent.ask(self._client.transact_write_items, **writes.request())


@dataclass(frozen=True, slots=True)
class StoredKind(Generic[R]):
    """The functions that store the records of one kind, all in the sessions' table.

    `update` returns the write of a change, and `beside` further writes in the same transaction.
    `found_by` returns the new search rows, and `kept_longer` the rows that must be kept longer from
    now on. `stored` decodes the item that a write has returned.
    """

    update: Callable[[str, Change[R], timedelta], dict[str, Any]]
    stored: Callable[[Change[R], Item], R]
    beside: Callable[[str, Change[R], timedelta], list[dict[str, Any]]] = lambda *_: []
    found_by: Callable[[Change[R], timedelta], list[Item]] = lambda *_: []
    kept_longer: Callable[[Change[R], timedelta], list[Item]] = lambda *_: []


def _beside_session(
    table: str, change: Change[Session], retention: timedelta
) -> list[dict[str, Any]]:
    """Return the writes to the session's other rows, and to a stock that gets items back."""
    rows, link = row_updates(table, change, retention), given_back(change)
    if link is None:
        return rows
    return [*rows, {"Update": give_back(table, link, change.after.quantity)}]


def _new_rows(change: Change[Session], retention: timedelta) -> list[Item]:
    """Return the search rows for the texts that the change has added to the session."""
    before, after = change.before, change.after
    flagged = after.needs_attention and not before.needs_attention
    flag = [flag_item(after, retention)] if flagged else []
    same = _of_wallets(before) == _of_wallets(after) and not _first_wallet(change)
    if change.event is Event.ERASED or same:
        return flag
    known = search_items(before, retention)
    return flag + [row for row in search_items(after, retention) if row not in known]


def _first_wallet(change: Change[Session]) -> bool:
    """Return whether the change gives the session its first wallet.

    From then on the session is kept longer, and has more search rows. These rows and the longer
    time to live of a separate cart are written before the session, because a session could not be
    read if its cart expired first.
    """
    return change.after.wallet_given and not change.before.wallet_given


def _kept_longer(change: Change[Session], retention: timedelta) -> list[Item]:
    cart = cart_item(change.after, retention) if _first_wallet(change) else None
    return [cart] if cart else []


def _with_cart_of(change: Change[Session], item: Item) -> Session:
    """Return the session that a change has stored. A separate cart comes from `change.before`."""
    return session_from({"cart": cart_of(change.before)} | item)


_KINDS: Final[Mapping[str, StoredKind[Any]]] = {
    SESSION: StoredKind(
        update=update,
        beside=_beside_session,
        found_by=_new_rows,
        kept_longer=_kept_longer,
        stored=_with_cart_of,
    ),
    REFUND: StoredKind(update_refund, lambda change, item: refund_from(item)),
    MANDATE: StoredKind(update_mandate, lambda change, item: mandate_from(item)),
}


def _of_another(held: Item, ours: Reservation) -> Reservation | None:
    """Return the reservation that holds the key, or None if an earlier try of ours wrote it."""
    winner = reservation_from(held)
    return None if winner.writer == ours.writer else winner


def _raise_if_taken(found: Item | None, session: Session, error: ClientError) -> None:
    """Raise Unavailable unless an earlier try of ours has written the stored item."""
    if found is None or text_from(found["writer"]) != session.writer:
        raise Unavailable(TAKEN) from error


def _of_wallets(session: Session) -> tuple[list[str], list[str]]:
    return wallets(session), outer_ids(session)


def with_cart(client: Client, table: str, item: Item) -> Item:
    """Return a session's item with its cart. Read the cart if it is a separate item.

    A cart is stored before its session, so if the session was read, the cart exists.
    """
    if "cart" in item:
        return item
    return item | _cart(get(client, table, id=text(cart_id(item["id"]["S"]))))


def with_carts(
    client: Client, persistent: Persistent, table: str, items: dict[str, Item]
) -> dict[str, Item]:
    """Return the items of up to 100 sessions by session id, with their carts."""
    without = [each for each, item in items.items() if "cart" not in item]
    carts = persistent.batch_get(client, table, [cart_id(each) for each in without])
    return items | {each: items[each] | _cart(carts.get(cart_id(each))) for each in without}


def _cart(row: Item | None) -> Item:
    return {"cart": row["cart"]} if row else {}
