"""Mandates as DynamoDB items: rows among the sessions, like refunds, whose transactions they join.

A mandate is in the index `due` while its token has to be renewed. It is kept for good: there is one
of each merchant.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

from checkout.adapters.aws import ask
from checkout.adapters.dynamo.client import Client, get
from checkout.adapters.dynamo.codec import Codec, Item, instant, text
from checkout.adapters.dynamo.conditions import failed_item, put_new, update_whole
from checkout.adapters.dynamo.places import LATER, due_shard
from checkout.domain.payment.machine import Change
from checkout.domain.payment.mandate import Mandate

_APART: Final = ("id", "merchant", "status", "version", "writer", "grant", "handle", "token")
_NAMES: Final = [each for each in Mandate.__dataclass_fields__ if each not in _APART]
# `merchant` is the key of the list of sessions, which must not contain mandates.
_MANDATE: Final = Codec(
    Mandate,
    names={"merchant": "owner"},
    deflated=("grant", "handle", "token"),
    groups={"mandate": _NAMES},
    later="later_json",
)
_MAYBE: Final = ("grant", "handle", "token", "due_shard", "due_at")

mandate_from: Final = _MANDATE.decode


def mandate_item(mandate: Mandate) -> Item:
    """Return the mandate's item, with the attributes of its index."""
    place = {}
    if mandate.needed_at is not None:
        place["due_shard"] = text(LATER + due_shard(mandate.id))
        place["due_at"] = instant(mandate.needed_at)
    return _MANDATE.encode(mandate) | place


def update(table: str, change: Change[Mandate], _: timedelta) -> dict[str, Any]:
    """Return the UpdateItem of a changed mandate, over the version that was read."""
    return update_whole(table, _MANDATE.encode(change.before), mandate_item(change.after), _MAYBE)


class DynamoMandates:
    """Reads mandates, and begins them; `DynamoSessions.save` changes them.

    Ids begin with `man_`, unlike the id of any session.
    """

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._table = f"{prefix}-checkout_sessions"

    def get(self, mandate_id: str) -> Mandate | None:
        """Read the mandate, strongly consistent."""
        item = get(self._client, self._table, id=text(mandate_id))
        return mandate_from(item) if item else None

    def begin(self, mandate: Mandate) -> Mandate:
        """Store a mandate that is new; return it, or the one that is there already."""
        try:
            ask(self._client.put_item, **put_new(self._table, mandate_item(mandate), "id"))
        except ClientError as error:
            found = failed_item(error)
            assert found is not None
            return mandate_from(found)
        return mandate
