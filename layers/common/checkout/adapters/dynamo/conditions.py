"""Build conditional requests to DynamoDB, and find out which condition failed.

Each write of a transaction has a name, so that the write whose condition failed can be found by
name. Each clause of a condition is a named variable before the clauses are joined. A reservation is
an idempotency record: the stored response to requests with one idempotency key (ports.py). Source:
the order of writes, domain/session/transitions.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

from checkout.adapters.aws import CONDITION_FAILED, ask, code, reasons
from checkout.adapters.dynamo.client import Client
from checkout.adapters.dynamo.codec import Item, instant, number, number_from, text
from checkout.adapters.dynamo.index_keys import ttl
from checkout.adapters.dynamo.records import (
    cart_id,
    changed_items,
    reservation_from,
    reservation_item,
    rows_of,
    same_cart,
)
from checkout.domain.payment.events import Event
from checkout.domain.payment.machine import Change
from checkout.domain.session.record import Session
from checkout.domain.session.retention import RETENTION, rows_kept_until
from checkout.ports import Allowance, KeyHeld, Reservation

RESERVATION: Final = "reservation"  # the name of the reservation's item in a transaction
# The probability that a new, random id is taken by chance is about 2^-130. So a taken id shows that
# the code has a mistake.
TAKEN: Final = "A new record's id is taken; nothing was written."


def update(table: str, change: Change[Session], retention: timedelta = RETENTION) -> dict[str, Any]:
    """Return an UpdateItem that writes the changed attributes over the version that was read.

    The write fails if another version is stored. If `change.in_time` is true, the write also fails
    if the session has expired.
    """
    before, after = changed_items(change.before, change.after, retention)
    names = {"#status": "status", "#version": "version"}
    values = {
        ":from": text(change.before.status),
        ":read": before["version"],
        ":set_version": after["version"],
    }
    sets = ["#version = :set_version"]

    still_as_read = "#status = :from AND #version = :read"
    in_time = "#expires_at > :now"
    conditions = [still_as_read]
    if change.in_time:
        conditions.append(in_time)
        names["#expires_at"] = "expires_at"
        values[":now"] = instant(change.after.updated_at)

    for name, value in after.items():
        # `ttl` is always written, because the stored value may come from an earlier retention.
        if name != "version" and (before.get(name) != value or name == "ttl"):
            names[f"#{name}"] = name
            values[f":set_{name}"] = value
            sets.append(f"#{name} = :set_{name}")
    # The attributes of the index `due`, and of a changed cart, are removed even if `before` lacks
    # them. Another release may have added the session to this index, or stored the cart in the
    # session's item and not in a separate one.
    moved = () if same_cart(change.before, change.after) else ("cart",)
    maybe = dict.fromkeys((*before, "due_shard", "due_at", *moved))
    removed = [name for name in maybe if name not in after]
    names |= {f"#{name}": name for name in removed}
    return {
        "TableName": table,
        "Key": {"id": after["id"]},
        "UpdateExpression": "SET " + ", ".join(sets) + _removing(removed),
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def update_whole(table: str, before: Item, after: Item, maybe: Collection[str]) -> dict[str, Any]:
    """Return an UpdateItem that writes all attributes of a small record over the version read.

    Attributes in `maybe` that the record no longer has are removed.
    """
    request = _written(table, after, maybe)
    request["ExpressionAttributeValues"] |= {":from": before["status"], ":read": before["version"]}
    return request | {
        "ConditionExpression": "#status = :from AND #version = :read",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def row_updates(table: str, change: Change[Session], retention: timedelta) -> list[dict[str, Any]]:
    """Return the writes to the session's other rows, for the transaction of a change.

    Most changes need no such writes (domain/session/retention.py). If a change gives the session
    its first wallet, sessions.py extends the rows' time to live before it writes the change.
    """
    before, after = change.before, change.after
    as_long = rows_kept_until(before, retention) == rows_kept_until(after, retention)
    as_long = as_long or before.wallet_given is not after.wallet_given
    same = same_cart(before, after)
    if as_long and same and change.event is not Event.ERASED:
        return []
    old = {row["id"]["S"]: row for row in rows_of(before, retention)}
    if not same:
        old.setdefault(cart_id(before.id), {})  # another release may have stored a larger cart
    new = {row["id"]["S"]: row for row in rows_of(after, retention)}
    return [
        *({"Update": _written(table, row)} for key, row in new.items() if row != old.get(key)),
        *({"Delete": {"TableName": table, "Key": {"id": text(key)}}} for key in old.keys() - new),
    ]


def keep_longer(table: str, row: Item) -> dict[str, Any]:
    """Return the UpdateItem that gives a stored row the time to live of `row`.

    Only the time is written, and not the row's text, because an operator may have erased a
    customer's data from the text meanwhile.
    """
    return {
        "TableName": table,
        "Key": {"id": row["id"]},
        "UpdateExpression": "SET #ttl = :ttl",
        "ConditionExpression": "attribute_exists(#id)",
        "ExpressionAttributeNames": {"#id": "id", "#ttl": "ttl"},
        "ExpressionAttributeValues": {":ttl": row["ttl"]},
    }


def _written(
    table: str, row: Item, maybe: Collection[str] = ("ttl", "search_key", "created_key")
) -> dict[str, Any]:
    """Return the UpdateItem that replaces a row and removes those of `maybe` that `row` lacks."""
    names = [name for name in row if name != "id"]
    removed = [name for name in maybe if name not in row]
    return {
        "TableName": table,
        "Key": {"id": row["id"]},
        "UpdateExpression": "SET "
        + ", ".join(f"#{name} = :{name}" for name in names)
        + _removing(removed),
        "ExpressionAttributeNames": {f"#{name}": name for name in (*names, *removed)},
        "ExpressionAttributeValues": {f":{name}": row[name] for name in names},
    }


def _removing(names: Collection[str]) -> str:
    return " REMOVE " + ", ".join(f"#{name}" for name in names) if names else ""


def put_new(table: str, item: Item, key: str) -> dict[str, Any]:
    return {
        "TableName": table,
        "Item": item,
        "ConditionExpression": "attribute_not_exists(#key)",
        "ExpressionAttributeNames": {"#key": key},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def put_reservation(table: str, reservation: Reservation) -> dict[str, Any]:
    """Return a PutItem of an idempotency record. It fails if an unexpired record has the key."""
    absent_or_expired = "(attribute_not_exists(#key) OR #expires_at <= :now)"
    return {
        "TableName": table,
        "Item": reservation_item(reservation),
        "ConditionExpression": absent_or_expired,
        "ExpressionAttributeNames": {"#key": "key", "#expires_at": "expires_at"},
        "ExpressionAttributeValues": {":now": instant(reservation.created_at)},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def count_in(table: str, allowance: Allowance) -> dict[str, Any]:
    """Return the UpdateItem that adds to an allowance's count, up to the maximum."""
    return {
        "TableName": table,
        "Key": {"id": text(f"allowance#{allowance.id}")},
        "UpdateExpression": "SET #ttl = :ttl ADD #used :amount",
        "ConditionExpression": "attribute_not_exists(#used) OR #used <= :room",
        "ExpressionAttributeNames": {"#used": "used", "#ttl": "ttl"},
        "ExpressionAttributeValues": {
            ":amount": number(allowance.amount),
            ":room": number(allowance.most - allowance.amount),
            ":ttl": ttl(allowance.until),
        },
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def counted_in(item: Item | None) -> int:
    """Return the count in the item of an allowance."""
    return number_from(item["used"]) if item else 0


@dataclass(frozen=True, slots=True)
class Writes:
    """The writes ("items") of a transaction, by name.

    DynamoDB reports only the position of the write whose condition failed. The writes are sent in
    the order of this mapping, so that the position leads to the name.
    """

    items: dict[str, dict[str, Any]] = field(default_factory=dict)

    def reserve(self, table: str, reservation: Reservation | None) -> None:
        """Add the write of an idempotency record, if there is one."""
        if reservation is not None:
            self.items[RESERVATION] = {"Put": put_reservation(table, reservation)}

    def request(self, *, writer: str = "") -> dict[str, Any]:
        """Return the request of the transaction (see `transaction`)."""
        return transaction(*self.items.values(), writer=writer)

    def failed(self, error: ClientError, name: str) -> bool:
        """Return whether the condition of this write failed; False if there is no such write."""
        return name in self.items and condition_failed(error, index=[*self.items].index(name))

    def stored(self, error: ClientError, name: str) -> Item | None:
        """Return the stored item because of which this write's condition failed (`failed_item`).

        Returns None if the transaction has no write of this name.
        """
        return failed_item(error, index=[*self.items].index(name)) if name in self.items else None

    def raise_if_held(self, error: ClientError, reservation: Reservation | None) -> None:
        """Raise KeyHeld if another write holds the reservation's key."""
        held = self.stored(error, RESERVATION)
        if held is not None and reservation is not None:
            winner = reservation_from(held)
            if winner.writer != reservation.writer:
                raise KeyHeld(winner) from None


def put(
    client: Client,
    request: dict[str, Any],
    table: str,
    reservation: Reservation | None,
    *,
    ask: Callable[..., Any] = ask,
) -> None:
    """Make a PutItem, and the PutItem of a reservation in the same transaction.

    `table` is the table of the reservations. Raises KeyHeld.
    """
    if reservation is None:
        ask(client.put_item, **request)
    else:
        put_reserved(client, table, reservation, request, ask=ask)


def put_reserved(
    client: Client,
    table: str,
    reservation: Reservation,
    *puts: dict[str, Any],
    ask: Callable[..., Any],
) -> None:
    """Make these PutItems and the reservation's in one transaction. Raises KeyHeld."""
    writes = Writes({f"put {number}": {"Put": each} for number, each in enumerate(puts)})
    writes.reserve(table, reservation)
    try:
        ask(client.transact_write_items, **writes.request())
    except ClientError as error:
        writes.raise_if_held(error, reservation)
        raise


def put_version(table: str, item: Item, key: str, version: int) -> dict[str, Any]:
    """Return a PutItem of a record's `version`, which must be 1 or follow the stored one."""
    return put_new(table, item, key) if version == 1 else put_next(table, item, version)


def put_next(table: str, item: Item, version: int) -> dict[str, Any]:
    """Return a PutItem of a record's next `version`. The previous version must be stored."""
    return {
        "TableName": table,
        "Item": item,
        **at_version(version - 1),
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def at_version(version: int) -> dict[str, Any]:
    """Return the condition that the stored record still has the version that was read."""
    return {
        "ConditionExpression": "#version = :read",
        "ExpressionAttributeNames": {"#version": "version"},
        "ExpressionAttributeValues": {":read": number(version)},
    }


def condition_failed(error: ClientError, *, index: int = 0) -> bool:
    """Return whether a condition failed. `index` is the item's position in a transaction."""
    canceled = reasons(error)
    if canceled:
        return canceled[index].get("Code") == CONDITION_FAILED
    return code(error) == f"{CONDITION_FAILED}Exception"


def met(operation: Callable[..., Any], **request: Any) -> bool:
    """Make a conditional write. Return False if the condition failed and nothing was written."""
    try:
        ask(operation, **request)
    except ClientError as error:
        if not condition_failed(error):
            raise
        return False
    return True


def failed_item(error: ClientError, *, index: int = 0) -> Item | None:
    """Return the stored item because of which the condition of item `index` failed.

    Return None if there is no stored item, or if only the condition of another item failed.

    Raises `error` itself if no condition failed.
    """
    canceled = reasons(error)
    if not canceled and not condition_failed(error):
        raise error
    if canceled and all(reason.get("Code") != CONDITION_FAILED for reason in canceled):
        raise error
    item: Item | None = canceled[index].get("Item") if canceled else error.response.get("Item")
    return item


def transaction(*items: dict[str, Any], writer: str = "") -> dict[str, Any]:
    """Return the request of a transaction.

    The transaction's token is the digest of the request, so a repetition after a lost answer
    changes nothing. If the items contain a writer, equal changes by two processes have different
    digests. If they contain none, pass `writer`.
    """
    digest = hashlib.sha256(
        json.dumps(items, sort_keys=True, default=bytes.hex).encode() + writer.encode()
    ).hexdigest()
    return {"TransactItems": list(items), "ClientRequestToken": digest[:36]}  # at most 36
