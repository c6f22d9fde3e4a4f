"""Refunds and mandates (merchants' refund budgets) in DynamoDB: rows in the sessions' table.

The records are in this table because they are written in the transactions of sessions. A refund is
in the index `due` while something is left to do for it, and in the index `by_search`, in the list
of its merchant's refunds. A mandate is in the index `due` while its token has to be renewed. Each
merchant has one mandate, which is never removed. All fields of a refund or a mandate, except those
in `_APART`, are one compressed attribute (codec.py).
"""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from botocore.exceptions import ClientError

from checkout.adapters.aws import ask
from checkout.adapters.dynamo import lists
from checkout.adapters.dynamo.client import PacedStore, Store, get
from checkout.adapters.dynamo.codec import Codec, Item, instant, text
from checkout.adapters.dynamo.conditions import failed_item, put_new, update_whole
from checkout.adapters.dynamo.index_keys import LATER, due_shard, owned, search_key, ttl
from checkout.domain.ground.grammar import position
from checkout.domain.ground.parts import Lists
from checkout.domain.payment.machine import Change
from checkout.domain.payment.mandate import Mandate
from checkout.domain.refund.record import Refund
from checkout.domain.reports.search_terms import REFUNDS
from checkout.ports import Page

R = TypeVar("R", Refund, Mandate)

# A refund is kept longer than its session, so that whoever finds the session also finds the refund.
KEPT_LONGER: Final = timedelta(days=30)
_SEALED: Final = ("grant", "handle", "token")
_APART: Final = ("id", "merchant", "part", "status", "version", "writer", *_SEALED)


def _codec(kind: type[R], group: str) -> Codec[R]:
    """Return the codec for small records, which are always written as a whole."""
    # `merchant` is the key of the list of sessions, which must not contain these records.
    return Codec(
        kind,
        names={"merchant": "owner"},
        deflated=_SEALED,
        groups={group: [each.name for each in fields(kind) if each.name not in _APART]},
        later="later_json",
    )


_REFUND: Final = _codec(Refund, "refund")
_OF_REFUND: Final = ("grant", "token", "due_shard", "due_at", "ttl")  # an item can lack these
_MANDATE: Final = _codec(Mandate, "mandate")
_OF_MANDATE: Final = (*_SEALED, "due_shard", "due_at")

refund_from: Final = _REFUND.decode
mandate_from: Final = _MANDATE.decode


def refund_item(refund: Refund, retention: timedelta) -> Item:
    """Return the refund's item, with the attributes for the indexes and the time to live."""
    place = {
        "search_key": owned(search_key(refund.merchant, REFUNDS), refund.part),
        "created_key": text(position(refund.created_at, refund.id)),
    }
    if refund.needed_at is not None:
        first = refund.payment_in_flight
        place["due_shard"] = text(("" if first else LATER) + due_shard(refund.id, urgent=first))
        place["due_at"] = instant(refund.needed_at)
    elif refund.ended_at is not None:
        place["ttl"] = ttl(refund.ended_at + retention + KEPT_LONGER)
    return _REFUND.encode(refund) | place


def update_refund(table: str, change: Change[Refund], retention: timedelta) -> dict[str, Any]:
    """Return the UpdateItem of a changed refund. It fails if another version is stored."""
    before, after = _REFUND.encode(change.before), refund_item(change.after, retention)
    return update_whole(table, before, after, _OF_REFUND)


def put_refund(table: str, refund: Refund, retention: timedelta) -> dict[str, Any]:
    """Return the PutItem of a new refund."""
    return put_new(table, refund_item(refund, retention), "id")


class DynamoRefunds(PacedStore):
    """Reads refunds. `DynamoSessions.save` writes them.

    Ids begin with `re_`, as no id of a session does.
    """

    def get(self, refund_id: str) -> Refund | None:
        """Read the refund with strong consistency."""
        item = get(self._client, self._sessions, id=text(refund_id))
        return refund_from(item) if item else None

    def of(self, refund_ids: tuple[str, ...]) -> tuple[Refund, ...]:
        """Read refunds in the order of the ids, strongly consistent, 100 in each request.

        Missing refunds are left out.
        """
        return tuple(self._in_order(self._sessions, refund_ids, refund_from))

    def page(
        self,
        of: Lists,
        *,
        limit: int,
        after: str | None,
        created_from: datetime | None = None,
        created_before: datetime | None = None,
    ) -> Page[Refund]:
        """Return a page of a merchant's refunds, newest first; `limit` is 1 to 100.

        `after` is the position of the refund at which the previous page ended, None for the first
        page. The index lags a little.
        """
        found = lists.page(
            self._client,
            self._sessions,
            "by_search",
            search_key(of.merchant, REFUNDS),
            shards=of.parts,
            limit=limit,
            after=after,
            created_from=created_from,
            created_before=created_before,
        )
        shown = self._in_order(self._sessions, found.ids, refund_from)
        return Page(tuple(shown), found.next_key)


def mandate_item(mandate: Mandate) -> Item:
    """Return the mandate's item, with the attributes for its index."""
    place = {}
    if mandate.needed_at is not None:
        place["due_shard"] = text(LATER + due_shard(mandate.id))
        place["due_at"] = instant(mandate.needed_at)
    return _MANDATE.encode(mandate) | place


def update_mandate(table: str, change: Change[Mandate], _: timedelta) -> dict[str, Any]:
    """Return the UpdateItem of a changed mandate. It fails if another version is stored."""
    before, after = _MANDATE.encode(change.before), mandate_item(change.after)
    return update_whole(table, before, after, _OF_MANDATE)


class DynamoMandates(Store):
    """Reads mandates and creates them. `DynamoSessions.save` changes them.

    Ids begin with `man_`, as no id of a session does.
    """

    def get(self, mandate_id: str) -> Mandate | None:
        """Read the mandate with strong consistency."""
        item = get(self._client, self._sessions, id=text(mandate_id))
        return mandate_from(item) if item else None

    def begin(self, mandate: Mandate) -> Mandate:
        """Store a new mandate and return it, or return the mandate that is already stored."""
        try:
            ask(self._client.put_item, **put_new(self._sessions, mandate_item(mandate), "id"))
        except ClientError as error:
            found = failed_item(error)
            assert found is not None
            return mandate_from(found)
        return mandate
