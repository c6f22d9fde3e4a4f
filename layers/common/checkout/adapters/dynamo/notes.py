"""`ports.Notes` on DynamoDB: rows beside the sessions, in no index (docs/howto/add-a-note.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Final

from checkout.adapters.aws import Persistent
from checkout.adapters.dynamo.client import Client, get
from checkout.adapters.dynamo.codec import Codec
from checkout.adapters.dynamo.conditions import met, put_new, put_next
from checkout.adapters.dynamo.places import ttl
from checkout.adapters.dynamo.wire import Item, text, text_from
from checkout.domain.note import Note
from checkout.domain.retention import RETENTION, note_kept_until
from checkout.ports.runtime import RandomBytes

NOTE_ROW: Final = "note#"  # prefix of the id of a note
# `merchant` is the key of the list of sessions, which must not contain notes.
_NOTE: Final = Codec(Note, names={"merchant": "owner", "session": "id"})


def note_from(item: Item) -> Note:
    """Return the note of a row."""
    return _NOTE.decode(item | {"id": text(text_from(item["id"]).removeprefix(NOTE_ROW))})


class DynamoNotes:
    """Ids are `note#` and the session's id."""

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
        self._table = f"{prefix}-checkout_sessions"
        self._persistent = Persistent(sleep, random_bytes)
        self._retention = retention

    def get(self, session_id: str) -> Note | None:
        item = get(self._client, self._table, id=text(NOTE_ROW + session_id))
        return note_from(item) if item else None

    def of(self, session_ids: Iterable[str]) -> Mapping[str, Note]:
        ids = [NOTE_ROW + each for each in session_ids]
        found = self._persistent.batch_get(self._client, self._table, ids)
        return {note.session: note for note in map(note_from, found.values())}

    def put(self, note: Note) -> bool:
        kept_until = note_kept_until(note.at, self._retention)
        place = {"id": text(NOTE_ROW + note.session), "ttl": ttl(kept_until)}
        item = _NOTE.encode(note) | place
        if note.version == 1:
            return met(self._client.put_item, **put_new(self._table, item, "id"))
        return met(self._client.put_item, **put_next(self._table, item, note.version))
