"""Sign-ins, challenges, counters and refused requests in DynamoDB.

These records are in the table of the idempotency keys. This table is for records that expire and
that are found by a hash (docs/decisions/0004).
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Final

from botocore.exceptions import ClientError

from checkout.adapters.aws import AWS_ERRORS, ask
from checkout.adapters.dynamo.client import Client, Store, get
from checkout.adapters.dynamo.codec import (
    Codec,
    Value,
    instant,
    milliseconds,
    number,
    number_from,
    text,
)
from checkout.adapters.dynamo.conditions import condition_failed, met, put_version
from checkout.adapters.dynamo.index_keys import ttl
from checkout.domain.ground.errors import CheckoutError
from checkout.domain.merchant.failed_requests import KEPT, FailedRequests
from checkout.domain.merchant.people import SignIn

_SIGN_IN: Final = Codec(SignIn, names={"id": "key"})


class DynamoSignIns(Store):
    """Stores the sign-ins to the dashboard.

    Keys begin with `sign-in#`, as no hash of an idempotency key does. `courtesy` is a client with
    short timeouts for optional writes.
    """

    def __init__(self, client: Client, prefix: str, *, courtesy: Client | None = None) -> None:
        super().__init__(client, prefix)
        self._courtesy = courtesy or client

    def add(self, sign_in: SignIn) -> None:
        # The same id is the same sign-in, so writing it again after a lost answer does no harm.
        place = {"key": _sign_in_key(sign_in.id), "ttl": ttl(sign_in.ends_at)}
        item = _SIGN_IN.encode(sign_in) | place
        ask(self._client.put_item, TableName=self._reservations, Item=item)

    def get(self, sign_in_id: str) -> SignIn | None:
        """Read the sign-in with strong consistency."""
        item = get(self._client, self._reservations, key=_sign_in_key(sign_in_id))
        if item is None or "ended" in item:
            return None
        return _SIGN_IN.decode({**item, "key": text(sign_in_id)})

    def seen(self, sign_in: SignIn, now: datetime) -> None:
        """Record the use of the sign-in. Best effort: a failure never fails the request."""
        still_there = "attribute_exists(#key) AND attribute_not_exists(#ended)"
        try:
            ask(
                self._courtesy.update_item,
                TableName=self._reservations,
                Key={"key": _sign_in_key(sign_in.id)},
                UpdateExpression="SET #seen_at = :now, #ttl = :ttl",
                ConditionExpression=still_there,
                ExpressionAttributeNames={
                    "#key": "key",
                    "#ended": "ended",
                    "#seen_at": "seen_at",
                    "#ttl": "ttl",
                },
                ExpressionAttributeValues={
                    ":now": instant(now),
                    ":ttl": ttl(sign_in.seen(now).ends_at),
                },
            )
        except (CheckoutError, *AWS_ERRORS):
            return  # the sign-in then ends at most a minute earlier

    def end(self, sign_in_id: str) -> None:
        """End the sign-in. The next request with it is rejected."""
        ask(
            self._client.update_item,
            TableName=self._reservations,
            Key={"key": _sign_in_key(sign_in_id)},
            UpdateExpression="SET #ended = :yes",
            ExpressionAttributeNames={"#ended": "ended"},
            ExpressionAttributeValues={":yes": {"BOOL": True}},
        )


class DynamoChallenges(Store):
    """Stores the challenges that passkeys sign: one for each browser and purpose at a time.

    Keys begin with `challenge#`, as no hash of an idempotency key does.
    """

    def put(self, place: str, challenge: bytes, until: datetime) -> None:
        item = {
            "key": _challenge_key(place),
            "challenge": {"B": challenge},
            "until": instant(until),
            "ttl": ttl(until),
        }
        ask(self._client.put_item, TableName=self._reservations, Item=item)

    def look(self, place: str, now: datetime) -> bytes | None:
        """Return the challenge that `take` would return, but do not use it up."""
        item = get(self._client, self._reservations, key=_challenge_key(place))
        if item is None or "taken_at" in item:
            return None
        ended = number_from(item["until"]) <= milliseconds(now)
        return None if ended else bytes(item["challenge"]["B"])

    def take(self, place: str, now: datetime) -> bytes | None:
        """Return the challenge of this browser and purpose once, if it has not expired."""
        untaken = "attribute_exists(#key) AND attribute_not_exists(#taken_at) AND #until > :now"
        names = {"#key": "key", "#taken_at": "taken_at", "#until": "until"}
        try:
            answer = ask(
                self._client.update_item,
                TableName=self._reservations,
                Key={"key": _challenge_key(place)},
                UpdateExpression="SET #taken_at = :now",
                ConditionExpression=untaken,
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={":now": instant(now)},
                ReturnValues="ALL_NEW",
            )
        except ClientError as error:
            if not condition_failed(error):
                raise
            return None
        return bytes(answer["Attributes"]["challenge"]["B"])


class DynamoCounters(Store):
    """Stores counters that all processes share. Each counter is kept for a limited time.

    Keys begin with `attempts#`, as no hash of an idempotency key does.
    """

    def attempt(self, counter: str, *, limit: int, until: datetime, by: int = 1) -> bool:
        """Add to a counter, or return False without adding if the sum would exceed `limit`.

        Exception: the first addition always succeeds. The name `counter` includes the counter's
        time window, which ends at `until`.
        """
        room = "attribute_not_exists(#count) OR #count <= :room"
        return met(
            self._client.update_item,
            TableName=self._reservations,
            Key={"key": _counter_key(counter)},
            UpdateExpression="SET #ttl = :ttl ADD #count :by",
            ConditionExpression=room,
            ExpressionAttributeNames={"#count": "count", "#ttl": "ttl"},
            ExpressionAttributeValues={
                ":by": number(by),
                ":room": number(max(limit - by, 0)),
                ":ttl": ttl(until),
            },
        )

    def give_back(self, counter: str, by: int = 1) -> None:
        """Subtract from a counter, if it is at least `by`. Best effort: raises nothing."""
        try:
            met(
                self._client.update_item,
                TableName=self._reservations,
                Key={"key": _counter_key(counter)},
                UpdateExpression="ADD #count :less",
                ConditionExpression="#count >= :by",
                ExpressionAttributeNames={"#count": "count"},
                ExpressionAttributeValues={":less": number(-by), ":by": number(by)},
            )
        except (CheckoutError, *AWS_ERRORS):
            return  # harmless, because the counter soon expires with its window


def _counter_key(counter: str) -> Value:
    digest = hashlib.sha256(counter.encode()).hexdigest()  # its name may contain a client's address
    return text(f"attempts#{digest}")


def _sign_in_key(sign_in_id: str) -> Value:
    return text(f"sign-in#{sign_in_id}")


def _challenge_key(place: str) -> Value:
    return text(f"challenge#{place}")


REFUSED_ROW: Final = "refused#"
_REFUSALS: Final = Codec(FailedRequests, groups={"entries": ("entries",)})


class DynamoFailedRequests(Store):
    """Stores the newest refused requests of each API key, for at least a day after the newest.

    Keys begin with `refused#`, as no hash of an idempotency key does. The client has short
    timeouts, so that no request waits long for this store.
    """

    def of(self, key_id: str) -> FailedRequests:
        """Read the refused requests of a key. If there are none, the record has version 0."""
        item = get(self._client, self._reservations, key=_refusals_key(key_id))
        return (
            _REFUSALS.decode({**item, "key": text(key_id)}) if item else FailedRequests(key=key_id)
        )

    def put(self, refusals: FailedRequests) -> bool:
        """Write the record over its previous version, or as a first version if none is stored.

        Returns False if somebody else has written meanwhile.
        """
        newest = refusals.entries[-1].at
        place = {"key": _refusals_key(refusals.key), "ttl": ttl(newest + KEPT)}
        item = _REFUSALS.encode(refusals) | place
        request = put_version(self._reservations, item, "key", refusals.version)
        return met(self._client.put_item, **request)


def _refusals_key(key_id: str) -> Value:
    return text(REFUSED_ROW + key_id)
