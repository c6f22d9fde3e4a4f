"""Declare the store of notes on sessions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from checkout.domain.note import Note


class Notes(Protocol):
    """Store one note for each session."""

    def get(self, session_id: str) -> Note | None:
        """Read the note, strongly consistent."""
        ...

    def of(self, session_ids: Iterable[str]) -> Mapping[str, Note]:
        """Read the notes of at most 100 sessions, by the sessions' ids."""
        ...

    def put(self, note: Note) -> bool:
        """Write the note if the stored version is one less; a first version if there is none.

        Returns False if somebody else has written meanwhile.
        """
        ...
