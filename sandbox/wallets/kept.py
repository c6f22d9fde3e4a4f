"""State of a test stage's wallets between requests: one compressed record with a version.

A DynamoDB item can have at most 400 kB, and each change writes the whole item. So the state is kept
small by deleting old parts: first expired records, then the oldest payments and grants, then
wallets that people have opened, beginning with the least recently used. A test stage need not keep
its history.
"""

from __future__ import annotations

import json
import zlib
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from sandbox.wallets.network import Network
from sandbox.wallets.state import GrantState, State

MOST: Final = 100_000  # bytes of the compressed record
_SOON: Final = timedelta(days=1)  # after its expiry, no client reads a record again
_ENTRIES: Final = 50  # lines of an account's statement
_HALVINGS: Final = 20  # after these, at most one record of each kind is left, and money on its way
_ID: Final = "state"
# Bytes. A record that unpacks to more was not written by this module.
_UNPACKED_MAX: Final = 50_000_000


class Conflict(Exception):
    """Another process has written the state since it was read."""


class Client(Protocol):
    """The two calls of boto3's DynamoDB client that are used here."""

    def get_item(self, **request: Any) -> Any: ...
    def put_item(self, **request: Any) -> Any: ...


class Table:
    """The record in the table `name`: its version and its bytes."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    def read(self) -> tuple[int, bytes]:
        """Return the version and the bytes; version 0 before the first write."""
        answer = self._client.get_item(
            TableName=self._name, Key={"id": {"S": _ID}}, ConsistentRead=True
        )
        item = answer.get("Item")
        return (0, b"") if item is None else (int(item["version"]["N"]), bytes(item["data"]["B"]))

    def write(self, version: int, data: bytes) -> None:
        """Write `data` as the version after `version`, 0 for the first write.

        Raises Conflict if the stored version is no longer `version`.
        """
        item = {"id": {"S": _ID}, "version": {"N": str(version + 1)}, "data": {"B": data}}
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(id)"}
        if version:
            condition = {
                "ConditionExpression": "version = :version",
                "ExpressionAttributeValues": {":version": {"N": str(version)}},
            }
        try:
            self._client.put_item(TableName=self._name, Item=item, **condition)
        except Exception as error:
            if type(error).__name__ == "ConditionalCheckFailedException":
                raise Conflict from None
            raise


class Kept:
    """The state of a network, kept in a table."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._loaded = ""

    def load(self, network: Network) -> int:
        """Load the state into a new network; return its version."""
        version, data = self._table.read()
        if version:
            network.load(json.loads(zlib.decompressobj().decompress(data, _UNPACKED_MAX)))
        self._loaded = _text(network)
        return version

    def save(self, network: Network, version: int) -> None:
        """Write the state if it has changed since `load`. Delete old records if it is too large.

        Raises Conflict if the stored version is no longer `version`.
        """
        if _text(network) == self._loaded:
            return
        now = network.now()
        forget_what_has_run_out(network.state, now)
        packed = _packed(network)
        for _ in range(_HALVINGS):
            if len(packed) <= MOST:
                break
            forget_the_oldest(network.state)
            packed = _packed(network)
        while len(packed) > MOST and (idle := network.idle_accounts()):
            for account in idle[: (len(idle) + 1) // 2]:
                network.delete_account(account.id)
            packed = _packed(network)
        self._table.write(version, packed)


def forget_what_has_run_out(state: State, now: datetime) -> None:
    """Delete old statement lines, and the records that expired more than a day ago."""
    for account in state.accounts.values():
        del account.entries[:-_ENTRIES]
    moving = {each.quote_id for each in state.outgoing.values() if each.settles_at is not None}
    for quote in list(state.quotes.values()):
        if quote.expires_at + _SOON < now and quote.id not in moving:
            del state.quotes[quote.id]
    # A token of an approved grant stays, because a client can rotate it long after its expiry.
    for token in list(state.tokens.values()):
        grant = state.grants.get(token.grant_id)
        if grant is None or (grant.interaction is None and token.expires_at + _SOON < now):
            del state.tokens[token.value]
    used = {each.grant_id for each in state.tokens.values()}
    used |= {each.grant_id for each in state.outgoing.values() if each.settles_at is not None}
    for other in list(state.grants.values()):
        until = other.last_asked
        if other.state in {GrantState.PENDING, GrantState.APPROVED} and other.interaction:
            until = other.interaction.expires_at
        if other.id not in used and until + _SOON < now:
            del state.grants[other.id]


def forget_the_oldest(state: State) -> None:
    """Delete the older half of the payments, quotes, grants and statement lines.

    Records of money on its way stay. The last line of an account's statement also stays, because it
    has the time of the account's last use.
    """
    for account in state.accounts.values():
        del account.entries[: len(account.entries) // 2]
    held = {each.receiver for each in state.packets}
    held |= {
        each.receiver.rsplit("/", 1)[-1]
        for each in state.outgoing.values()
        if each.settles_at is not None
    }
    moving = {each.id for each in state.outgoing.values() if each.settles_at is not None}
    kinds: list[tuple[dict[str, Any], set[str]]] = [
        (state.incoming, held),
        (state.outgoing, moving),
        (state.quotes, {state.outgoing[each].quote_id for each in moving}),
        (state.grants, {state.outgoing[each].grant_id for each in moving}),
    ]
    for records, stay in kinds:
        for record in list(records)[: (len(records) + 1) // 2]:
            if record not in stay:
                del records[record]
    for token in [each for each in state.tokens.values() if each.grant_id not in state.grants]:
        del state.tokens[token.value]


def _text(network: Network) -> str:
    return json.dumps(network.dump(), separators=(",", ":"))


def _packed(network: Network) -> bytes:
    return zlib.compress(_text(network).encode(), 9)
