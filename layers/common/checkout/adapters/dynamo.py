"""The stores of `ports.py` on DynamoDB, by the low-level client that is passed in.

Every write is conditional; what lost learns the winner from the same answer. Refuses to write a
session blindly, and to read with anything but a strong read, except the indexes.
`wiring.py` makes the client. Source: design.md "Records", "The order of writes around the money".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from botocore.exceptions import ClientError

from checkout.adapters.aws import AWS_ERRORS, Answer, Persistent, ask
from checkout.adapters.conditions import (
    condition_failed,
    failed_item,
    put_new,
    transaction,
    update,
)
from checkout.adapters.records import (
    DUE_SHARDS,
    event_item,
    key_from,
    key_item,
    merchant_from,
    merchant_item,
    position,
    reservation_from,
    reservation_item,
    session_from,
    session_item,
)
from checkout.adapters.values import Item, Value, instant, text
from checkout.domain.errors import CheckoutError, Unavailable
from checkout.domain.merchant import ApiKey, Merchant, WebhookEvent
from checkout.domain.session import Session
from checkout.domain.transitions import Change
from checkout.ports import RandomBytes, Reservation, SessionPage, StaleSession

PAGE_MAX: Final = 100  # what one BatchGetItem takes
_FIRST_POSITION: Final = "0"
_LAST_POSITION: Final = ":"  # sorts behind every digit
_TOUCH_EVERY: Final = timedelta(minutes=1)
_NO_PROGRESS_MAX: Final = 4
_TAKEN: Final = "A new record's id is taken; nothing was written."  # 2^-130, or a mistake
_DATABASE_URL: Final = re.compile(
    r"dynamodb(?:://|\+http://(?P<place>[A-Za-z0-9.-]+(?::[0-9]{1,5})?))/(?P<prefix>[A-Za-z0-9_.-]+)"
)


class Client(Protocol):
    """What of boto3's low-level DynamoDB client is used."""

    def get_item(self, **request: Any) -> Answer: ...

    def put_item(self, **request: Any) -> Answer: ...

    def update_item(self, **request: Any) -> Answer: ...

    def query(self, **request: Any) -> Answer: ...

    def batch_get_item(self, **request: Any) -> Answer: ...

    def transact_write_items(self, **request: Any) -> Answer: ...


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """Tables are named `prefix-<table>`; without an endpoint it is AWS itself."""

    prefix: str
    endpoint_url: str | None


def parse_database_url(url: str) -> DatabaseUrl:
    """`dynamodb:///PREFIX` or `dynamodb+http://HOST:PORT/PREFIX`. Raises ValueError."""
    found = _DATABASE_URL.fullmatch(url)
    if found is None:
        raise ValueError(
            "DATABASE_URL must be dynamodb:///PREFIX or dynamodb+http://HOST:PORT/PREFIX, where "
            "PREFIX begins the tables' names (letters, digits, '-', '_', '.')."
        )
    place = found["place"]
    return DatabaseUrl(found["prefix"], f"http://{place}" if place else None)


class DynamoSessions:
    """`ports.Sessions`. `sleep` takes seconds; it and `random_bytes` pace what is tried again."""

    def __init__(
        self,
        client: Client,
        prefix: str,
        *,
        sleep: Callable[[float], None],
        random_bytes: RandomBytes,
    ) -> None:
        self._client = client
        self._sessions = f"{prefix}-checkout_sessions"
        self._reservations = f"{prefix}-idempotency_keys"
        self._events = f"{prefix}-webhook_events"
        self._persistent = Persistent(sleep, random_bytes)

    def create(self, session: Session, reservation: Reservation | None) -> Reservation | None:
        put_session = put_new(self._sessions, session_item(session), "id")
        if reservation is None:
            try:
                self._persistent.ask(self._client.put_item, **put_session)
            except ClientError as error:
                found = failed_item(error)
                if found is None or session_from(found).writer != session.writer:
                    raise Unavailable(_TAKEN) from error
            return None
        absent_or_expired = "(attribute_not_exists(#key) OR #expires_at <= :now)"
        put_reservation = {
            "TableName": self._reservations,
            "Item": reservation_item(reservation),
            "ConditionExpression": absent_or_expired,
            "ExpressionAttributeNames": {"#key": "key", "#expires_at": "expires_at"},
            "ExpressionAttributeValues": {":now": instant(reservation.created_at)},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        try:
            self._transact({"Put": put_reservation}, {"Put": put_session})
        except ClientError as error:
            held = failed_item(error, index=0)
            if held is None:
                raise Unavailable(_TAKEN) from error
            winner = reservation_from(held)
            return None if winner.writer == reservation.writer else winner
        return None

    def get(self, session_id: str) -> Session | None:
        item = _get(self._client, self._sessions, id=text(session_id))
        return session_from(item) if item else None

    def save(self, change: Change, event: WebhookEvent | None = None) -> Session:
        """As the port says. Raises LookupError where there is no such session at all."""
        if event is not None and change.by_attempt:
            raise ValueError("a change by attempt does not know its version, so it makes no event")
        request = update(self._sessions, change)
        try:
            if event is None:
                answer = self._persistent.ask(
                    self._client.update_item, **request, ReturnValues="ALL_NEW"
                )
                return session_from(answer["Attributes"])
            put_event = put_new(self._events, event_item(event), "id")
            self._transact({"Update": request}, {"Put": put_event})
        except ClientError as error:
            return self._stale_unless_ours(error, change)
        return change.after

    def page(
        self,
        merchant: str,
        *,
        limit: int,
        after: str | None,
        created_from: datetime | None,
        created_before: datetime | None,
    ) -> SessionPage:
        """As the port says; `limit` is 1..100. One index query and one batch read."""
        if not 1 <= limit <= PAGE_MAX:
            raise ValueError(f"limit must be 1..{PAGE_MAX}")
        lowest = position(created_from) if created_from else _FIRST_POSITION
        highest = min(position(created_before) if created_before else _LAST_POSITION, after or ":")
        if lowest > highest:
            return SessionPage((), None)
        found = ask(
            self._client.query,
            TableName=self._sessions,
            IndexName="by_merchant",
            KeyConditionExpression="#merchant = :merchant AND #created_key BETWEEN :low AND :high",
            ExpressionAttributeNames={"#merchant": "merchant", "#created_key": "created_key"},
            ExpressionAttributeValues={
                ":merchant": text(merchant),
                ":low": text(lowest),
                ":high": text(highest),
            },
            ScanIndexForward=False,
            # One more tells whether there are more; BETWEEN includes `after` itself, seen already.
            Limit=limit + (1 if after is None else 2),
        )
        rows = [row for row in found["Items"] if row["created_key"]["S"] != after]
        more = len(rows) > limit
        rows = rows[:limit]
        sessions = self._batch_get([row["id"]["S"] for row in rows])
        return SessionPage(
            tuple(sessions[row["id"]["S"]] for row in rows if row["id"]["S"] in sessions),
            rows[-1]["created_key"]["S"] if more else None,
        )

    def due(self, now: datetime, *, limit: int) -> tuple[str, ...]:
        """As the port says. One query a shard, each of `limit` keys, since all may be in one."""
        rows: list[tuple[int, str]] = []
        for shard in range(DUE_SHARDS):
            rows += self._due_in(str(shard), now, limit)
        return tuple(session_id for _, session_id in sorted(rows)[:limit])

    def _due_in(self, shard: str, now: datetime, limit: int) -> list[tuple[int, str]]:
        """(due_at, id) of a shard's longest due; a page of a query may end early."""
        rows: list[tuple[int, str]] = []
        start: dict[str, Any] = {}
        while len(rows) < limit:
            found = ask(
                self._client.query,
                TableName=self._sessions,
                IndexName="due",
                KeyConditionExpression="#due_shard = :shard AND #due_at <= :now",
                ExpressionAttributeNames={"#due_shard": "due_shard", "#due_at": "due_at"},
                ExpressionAttributeValues={":shard": text(shard), ":now": instant(now)},
                Limit=limit - len(rows),
                **start,
            )
            rows += [(int(row["due_at"]["N"]), row["id"]["S"]) for row in found["Items"]]
            if "LastEvaluatedKey" not in found:
                break
            start = {"ExclusiveStartKey": found["LastEvaluatedKey"]}
        return rows

    def _batch_get(self, session_ids: list[str]) -> dict[str, Session]:
        """Strong reads of up to 100 sessions; a missing one is not in the answer."""
        sessions: dict[str, Session] = {}
        keys = [{"id": text(session_id)} for session_id in session_ids]
        without_progress = 0
        while keys:
            request = {self._sessions: {"Keys": keys, "ConsistentRead": True}}
            answer = ask(self._client.batch_get_item, RequestItems=request)
            items = answer["Responses"].get(self._sessions, [])
            sessions.update((item["id"]["S"], session_from(item)) for item in items)
            keys = answer.get("UnprocessedKeys", {}).get(self._sessions, {}).get("Keys", [])
            if keys and not items:
                without_progress += 1
                if without_progress == _NO_PROGRESS_MAX:
                    raise Unavailable("The data store is not answering.")
                self._persistent.pause(without_progress)
        return sessions

    def _transact(self, *items: dict[str, Any]) -> None:
        self._persistent.ask(self._client.transact_write_items, **transaction(*items))

    @staticmethod
    def _stale_unless_ours(error: ClientError, change: Change) -> Session:
        """What a failed condition says: our own write, whose answer was lost, or the winner."""
        item = failed_item(error, index=0)
        if not condition_failed(error, index=0):
            raise Unavailable(_TAKEN) from error
        if item is None:
            raise LookupError("no such session") from None
        current = session_from(item)
        if current.writer != change.after.writer:
            raise StaleSession(current) from None
        return current


class DynamoMerchants:
    """`ports.Merchants`. One guard row per wallet keeps a wallet from having two merchants."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._merchants = f"{prefix}-merchants"
        self._keys = f"{prefix}-api_keys"

    def add(self, merchant: Merchant, key: ApiKey) -> Merchant | None:
        guard = {"id": _guard_id(merchant.wallet_address), "merchant": text(merchant.id)}
        request = transaction(
            {"Put": put_new(self._merchants, guard, "id")},
            {"Put": put_new(self._merchants, merchant_item(merchant), "id")},
            {"Put": put_new(self._keys, key_item(key), "hash")},
        )
        try:
            ask(self._client.transact_write_items, **request)
        except ClientError as error:
            held = failed_item(error, index=0)
            if held is None:
                raise Unavailable(_TAKEN) from error
            return None if held["merchant"]["S"] == merchant.id else self._of_guard(held)
        return None

    def replace(self, merchant: Merchant) -> None:
        """Raises LookupError where there is no such merchant."""
        try:
            ask(
                self._client.put_item,
                TableName=self._merchants,
                Item=merchant_item(merchant),
                ConditionExpression="attribute_exists(#id)",
                ExpressionAttributeNames={"#id": "id"},
            )
        except ClientError as error:
            if not condition_failed(error):
                raise
            raise LookupError("no such merchant") from None

    def get(self, merchant_id: str) -> Merchant | None:
        item = _get(self._client, self._merchants, id=text(merchant_id))
        return merchant_from(item) if item else None

    def find_by_wallet(self, wallet_address: str) -> Merchant | None:
        guard = _get(self._client, self._merchants, id=_guard_id(wallet_address))
        return self._of_guard(guard) if guard else None

    def add_key(self, key: ApiKey) -> None:
        # The same hash is the same key: writing it again after a lost answer is no harm.
        ask(self._client.put_item, TableName=self._keys, Item=key_item(key))

    def find_key(self, key_hash: str) -> ApiKey | None:
        item = _get(self._client, self._keys, hash=text(key_hash))
        return key_from(item) if item else None

    def touch_key(self, key: ApiKey, now: datetime) -> None:
        if key.last_used_at is not None and key.last_used_at > now - _TOUCH_EVERY:
            return
        exists = "attribute_exists(#hash)"
        stale = "(attribute_not_exists(#last_used_at) OR #last_used_at <= :minute_ago)"
        try:
            ask(
                self._client.update_item,
                TableName=self._keys,
                Key={"hash": text(key.hash)},
                UpdateExpression="SET #last_used_at = :now",
                ConditionExpression=f"{exists} AND {stale}",
                ExpressionAttributeNames={"#hash": "hash", "#last_used_at": "last_used_at"},
                ExpressionAttributeValues={
                    ":now": instant(now),
                    ":minute_ago": instant(now - _TOUCH_EVERY),
                },
            )
        except (CheckoutError, *AWS_ERRORS):
            return  # the time of last use is a courtesy; the request is what counts

    def _of_guard(self, guard: Item) -> Merchant:
        merchant = self.get(guard["merchant"]["S"])
        if merchant is None:
            raise LookupError("a wallet's guard row names a merchant that does not exist")
        return merchant


class DynamoDatabase:
    """`ports.Database`: one cheap read. How long it may take is up to the client's time limits."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._table = f"{prefix}-merchants"

    def ping(self) -> bool:
        try:
            _get(self._client, self._table, id=text("ping"))
        except (CheckoutError, *AWS_ERRORS):
            return False
        return True


def _get(client: Client, table: str, **key: Value) -> Item | None:
    answer = ask(client.get_item, TableName=table, Key=key, ConsistentRead=True)
    item: Item | None = answer.get("Item")
    return item


def _guard_id(wallet_address: str) -> Value:
    return text(f"wallet:{wallet_address}")
