"""The shop's notes and the customers' withdrawals in DynamoDB: rows in the sessions' table.

Each record has a row of its own, separate from its session (docs/howto/add-a-note.md). The row's id
is a prefix and the session's id. A note is in no index. A withdrawal is in the list of sessions
that need a person, and in the index `due` until it is acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Generic, TypeVar

from checkout.adapters.dynamo.client import Client, PacedStore, get
from checkout.adapters.dynamo.codec import Codec, Item, instant, text, text_from
from checkout.adapters.dynamo.conditions import met, put_version
from checkout.adapters.dynamo.index_keys import LATER, due_shard, needing_somebody, ttl
from checkout.domain.session.note import Note
from checkout.domain.session.record import Session
from checkout.domain.session.retention import RETENTION, note_kept_until
from checkout.domain.session.withdrawal import Withdrawal

T = TypeVar("T", Note, Withdrawal)

NOTE_ROW: Final = "note#"  # prefix of a note's id
WITHDRAWAL_ROW: Final = "withdrawal#"
# `merchant` is the key of the list of sessions, which must not contain these rows.
_NAMES: Final = {"merchant": "owner", "session": "id"}
_NOTE: Final = Codec(Note, names=_NAMES)
_WITHDRAWAL: Final = Codec(Withdrawal, names=_NAMES)


def _decoded(codec: Codec[T], row: str, item: Item) -> T:
    return codec.decode(item | {"id": text(text_from(item["id"]).removeprefix(row))})


note_from: Final = partial(_decoded, _NOTE, NOTE_ROW)
withdrawal_from: Final = partial(_decoded, _WITHDRAWAL, WITHDRAWAL_ROW)


class _Rows(PacedStore, Generic[T]):
    """The rows with one prefix, one for each session."""

    _codec: Codec[T]
    _row: str

    def __init__(
        self, client: Client, prefix: str, *, retention: timedelta = RETENTION, **paced: Any
    ) -> None:
        super().__init__(client, prefix, **paced)
        self._retention = retention

    def get(self, session_id: str) -> T | None:
        """Read the record with strong consistency."""
        item = get(self._client, self._sessions, id=text(self._row + session_id))
        return _decoded(self._codec, self._row, item) if item else None

    def of(self, session_ids: Iterable[str]) -> Mapping[str, T]:
        """Read the records of at most 100 sessions, by the sessions' ids."""
        ids = [self._row + each for each in session_ids]
        rows = self._persistent.batch_get(self._client, self._sessions, ids).values()
        found = [_decoded(self._codec, self._row, each) for each in rows]
        return {each.session: each for each in found}

    def _put(self, record: T, at: datetime, place: Item) -> bool:
        kept_until = ttl(note_kept_until(at, self._retention))
        place = place | {"id": text(self._row + record.session), "ttl": kept_until}
        item = self._codec.encode(record) | place
        return met(self._client.put_item, **put_version(self._sessions, item, "id", record.version))


class DynamoNotes(_Rows[Note]):
    """Stores one note for each session."""

    _codec = _NOTE
    _row = NOTE_ROW

    def put(self, note: Note) -> bool:
        """Write the note over its previous version, or as a first version if none is stored.

        Returns False if another person has written meanwhile.
        """
        return self._put(note, note.at, {})


class DynamoWithdrawals(_Rows[Withdrawal]):
    """Stores one withdrawal for each session."""

    _codec = _WITHDRAWAL
    _row = WITHDRAWAL_ROW

    def put(self, withdrawal: Withdrawal, session: Session | None) -> bool:
        """Write the withdrawal over its previous version, or as a first one if none is stored.

        From then on the withdrawal's session, if it still exists, is listed among those that need a
        person (domain/reports/search_terms.py). Returns False if another process has written
        meanwhile.
        """
        place = {} if session is None else needing_somebody(session)
        if withdrawal.acknowledge_at is not None:
            place["due_shard"] = text(LATER + due_shard(self._row + withdrawal.session))
            place["due_at"] = instant(withdrawal.acknowledge_at)
        return self._put(withdrawal, withdrawal.at, place)
