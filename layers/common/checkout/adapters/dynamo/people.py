"""Members, invitations and the audit log in DynamoDB: rows in the table of API keys.

Because members are in the same table as keys, a sign-in reads only one row, whether a key or a
member signs in. Subscribers to notices are rows in the sessions' table, because the index `due`,
which the sweep reads, belongs to that table.

The index of the API keys also lists a merchant's members, invitations and audit log, with a
separate query for each list (docs/decisions/0004). A merchant always keeps an owner, even if two
owners revoke each other at the same moment, because each revocation checks in its transaction that
another owner stays. A reservation is an idempotency record (`ports.Reservation`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

from checkout.adapters.aws import ask
from checkout.adapters.dynamo.client import Client, Store, all_of, get
from checkout.adapters.dynamo.codec import Codec, Item, Value, instant, text, text_from
from checkout.adapters.dynamo.conditions import (
    failed_item,
    met,
    put,
    put_new,
    put_next,
    put_version,
    transaction,
)
from checkout.adapters.dynamo.index_keys import LATER, due_shard, ttl
from checkout.adapters.dynamo.merchants import merchant_item
from checkout.domain.ground.grammar import position
from checkout.domain.merchant.audit import AuditEntry
from checkout.domain.merchant.notices import Subscriber
from checkout.domain.merchant.people import Invitation, Member, Role
from checkout.domain.merchant.record import Merchant
from checkout.domain.session.retention import RETENTION
from checkout.ports import Clock, Page, Reservation

_MEMBER: Final = Codec(Member, names={"parts": "shards"})
_INVITATION: Final = Codec(Invitation)
_STILL_OPEN: Final = "attribute_not_exists(#ended_at) AND #expires_at > :at"


class DynamoPeople(Store):
    """Stores members and invitations. If a method returns False, it has written nothing.

    Keys begin with `member#` and `invitation#`, as no hash of an API key does. A revoked member
    and an ended invitation are kept for `retention`.
    """

    def __init__(self, client: Client, prefix: str, *, retention: timedelta = RETENTION) -> None:
        super().__init__(client, prefix)
        self._retention = retention

    def member(self, member_id: str) -> Member | None:
        """Read a member with strong consistency."""
        item = get(self._client, self._keys, hash=_member_key(member_id))
        return member_from(item) if item else None

    def invitation(self, token_hash: str) -> Invitation | None:
        """Read an invitation by its token's hash, with strong consistency."""
        item = get(self._client, self._keys, hash=_invitation_key(token_hash))
        return invitation_from(item) if item else None

    def members_of(self, merchant_id: str) -> tuple[Member, ...]:
        """Return all members of a merchant, in no order. The index lags a little."""
        return all_of(self._client, self._keys, f"member#{merchant_id}", member_from)

    def invitations_of(self, merchant_id: str) -> tuple[Invitation, ...]:
        """Return the merchant's invitations, in no order. The index lags a little."""
        return all_of(self._client, self._keys, f"invitation#{merchant_id}", invitation_from)

    def invite(self, invitation: Invitation, reservation: Reservation | None = None) -> None:
        """Write a new invitation, and the reservation in the same transaction. Raises KeyHeld."""
        # The same hash is the same invitation, so writing it again after a lost answer does no
        # harm.
        request = {"TableName": self._keys, "Item": self._invitation_item(invitation)}
        put(self._client, request, self._reservations, reservation)

    def withdraw(self, ended: Invitation) -> bool:
        """Write the end of the invitation, if the stored invitation has no end yet."""
        return met(
            self._client.update_item, **self._ending(ended, "attribute_not_exists(#ended_at)")
        )

    def join(self, member: Member, accepted: Invitation, inviter: Member | None = None) -> bool:
        """Write the member and the end of their invitation, or nothing.

        The invitation must still be open at the time of the write. If a member has sent the
        invitation, that member (`inviter`) must be an active owner.
        """
        new = put_new(self._keys, self._member_item(member), "hash")
        owners = [] if inviter is None else [self._still_owner(inviter)]
        return self._put(new, {"Update": self._ending(accepted, _STILL_OPEN)}, *owners)

    def found(self, merchant: Merchant, member: Member, accepted: Invitation | None = None) -> bool:
        """Write a new merchant with its first member, and the end of the invitation, if any.

        The invitation must still be open at the time of the write. The wallet is not reserved for
        the merchant.
        """
        new = put_new(self._keys, self._member_item(member), "hash")
        shop = put_new(self._merchants, merchant_item(merchant), "id")
        ends = [] if accepted is None else [{"Update": self._ending(accepted, _STILL_OPEN)}]
        return self._put(new, {"Put": shop}, *ends)

    def replace(self, member: Member, kept: Member | None = None) -> bool:
        """Write the member over the previous version, if `kept` is an active owner."""
        next_one = put_next(self._keys, self._member_item(member), member.version)
        return self._put(next_one, *([] if kept is None else [self._still_owner(kept)]))

    def _put(self, put: dict[str, Any], *others: dict[str, Any]) -> bool:
        """Write a member and `others` in a transaction. Return False if a condition failed."""
        try:
            ask(self._client.transact_write_items, **transaction({"Put": put}, *others))
        except ClientError as error:
            written: Item = put["Item"]
            return failed_item(error) == written  # then an earlier try of this call wrote it
        return True

    def _still_owner(self, kept: Member) -> dict[str, Any]:
        still_owner = "#role = :owner AND attribute_not_exists(#revoked_at)"
        return {
            "ConditionCheck": {
                "TableName": self._keys,
                "Key": {"hash": _member_key(kept.id)},
                "ConditionExpression": still_owner,
                "ExpressionAttributeNames": {"#role": "role", "#revoked_at": "revoked_at"},
                "ExpressionAttributeValues": {":owner": text(Role.OWNER)},
            }
        }

    def _ending(self, ended: Invitation, condition: str) -> dict[str, Any]:
        """Return the update that ends an invitation, if it exists and meets `condition`."""
        assert ended.ended_at is not None
        names = {"#hash": "hash", "#ended_at": "ended_at", "#ttl": "ttl"}
        if "#expires_at" in condition:
            names["#expires_at"] = "expires_at"
        return {
            "TableName": self._keys,
            "Key": {"hash": _invitation_key(ended.hash)},
            "UpdateExpression": "SET #ended_at = :at, #ttl = :ttl",
            "ConditionExpression": f"attribute_exists(#hash) AND {condition}",
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": {
                ":at": instant(ended.ended_at),
                ":ttl": ttl(ended.ended_at + self._retention),
            },
        }

    def _member_item(self, member: Member) -> Item:
        place = {
            "hash": _member_key(member.id),
            "merchant": text(f"member#{member.merchant}"),
        }
        if member.revoked_at is not None:
            place["ttl"] = ttl(member.revoked_at + self._retention)
        return _MEMBER.encode(member) | place

    def _invitation_item(self, invitation: Invitation) -> Item:
        return _INVITATION.encode(invitation) | {
            "hash": _invitation_key(invitation.hash),
            "merchant": text(f"invitation#{invitation.merchant}"),
            "ttl": ttl(invitation.expires_at),
        }


def member_from(item: Item) -> Member:
    """Return the member of a row."""
    return _MEMBER.decode({**item, "merchant": _without_prefix(item["merchant"])})


def invitation_from(item: Item) -> Invitation:
    """Return the invitation of a row."""
    names = ("hash", "merchant")
    return _INVITATION.decode({**item, **{name: _without_prefix(item[name]) for name in names}})


def _member_key(member_id: str) -> Value:
    return text(f"member#{member_id}")


def _invitation_key(token_hash: str) -> Value:
    return text(f"invitation#{token_hash}")


def _without_prefix(value: Value) -> Value:
    return text(text_from(value).partition("#")[2])


# The attributes have names from the time when there were no members, so all actors were keys.
_ENTRY: Final = Codec(AuditEntry, names={"actor_id": "key_id", "actor_name": "key_name"})


class DynamoAudit(Store):
    """Stores each change made in the dashboard, and who made it.

    Keys begin with `audit#`, as no hash of an API key does. An entry is kept for `retention`,
    unlike API keys, which have no time to live.
    """

    def __init__(self, client: Client, prefix: str, *, retention: timedelta = RETENTION) -> None:
        super().__init__(client, prefix)
        self._retention = retention

    def add(self, entry: AuditEntry) -> None:
        # The same id is the same entry, so writing it again after a lost answer does no harm.
        place = {
            "hash": text(f"audit#{entry.id}"),
            "merchant": _audit_key(entry.merchant),
            "id": text(position(entry.at, entry.id)),
            "ttl": ttl(entry.at + self._retention),
        }
        item = _ENTRY.encode(entry) | place
        ask(self._client.put_item, TableName=self._keys, Item=item)

    def page(self, merchant: str, *, limit: int, after: str | None) -> Page[AuditEntry]:
        """Return a page of a merchant's audit entries, newest first.

        `after` is the position (`grammar.position`) of the entry at which the previous page ended,
        None for the first page.
        """
        found = ask(
            self._client.query,
            TableName=self._keys,
            IndexName="by_merchant",
            KeyConditionExpression="#merchant = :merchant AND #id < :after",
            ExpressionAttributeNames={"#merchant": "merchant", "#id": "id"},
            # ":" sorts behind every digit.
            ExpressionAttributeValues={
                ":merchant": _audit_key(merchant),
                ":after": text(after or ":"),
            },
            ScanIndexForward=False,
            Limit=limit + 1,  # one more, to see whether there are more
        )
        rows = found["Items"]
        return Page(
            tuple(map(entry_from, rows[:limit])),
            text_from(rows[limit - 1]["id"]) if len(rows) > limit else None,
        )


def _audit_key(merchant: str) -> Value:
    return text(f"audit#{merchant}")


def entry_from(item: Item) -> AuditEntry:
    """Return the entry of a row."""
    entry_id = text_from(item["hash"]).removeprefix("audit#")
    merchant = text_from(item["merchant"]).removeprefix("audit#")
    return _ENTRY.decode({**item, "id": text(entry_id), "merchant": text(merchant)})


STOPPED_KEPT: Final = timedelta(days=1)
# `merchant` is the key of the list of sessions, which must not contain subscribers.
_SUBSCRIBER: Final = Codec(Subscriber, names={"merchant": "owner"}, groups={"told": ("told",)})

subscriber_from: Final = _SUBSCRIBER.decode


class DynamoSubscribers(Store):
    """Stores one record for each member who has asked for notices.

    Ids begin with `ntc_`, as no id of a session does.
    """

    def __init__(self, client: Client, prefix: str, clock: Clock) -> None:
        super().__init__(client, prefix)
        self._clock = clock

    def get(self, subscriber_id: str) -> Subscriber | None:
        """Read the record with strong consistency."""
        item = get(self._client, self._sessions, id=text(subscriber_id))
        return subscriber_from(item) if item else None

    def put(self, subscriber: Subscriber, reservation: Reservation | None = None) -> bool:
        """Write the record over its previous version, or as a first version if none is stored.

        Returns False if somebody else has written meanwhile. The reservation is written in the same
        transaction. Raises KeyHeld.
        """
        item = self._item(subscriber)
        request = put_version(self._sessions, item, "id", subscriber.version)
        try:
            put(self._client, request, self._reservations, reservation)
        except ClientError as error:
            found = failed_item(error)  # it has our writer if an earlier try was stored
            return found is not None and found["writer"] == item["writer"]
        return True

    def _item(self, subscriber: Subscriber) -> Item:
        """Return the item, with the attributes of the index `due`, or its time to live."""
        item = _SUBSCRIBER.encode(subscriber)
        if subscriber.look_at is None:
            return item | {"ttl": ttl(self._clock.now() + STOPPED_KEPT)}
        return item | {
            "due_shard": text(LATER + due_shard(subscriber.id)),
            "due_at": instant(subscriber.look_at),
        }
