"""Declare the stores of what people say of a session: notes of the shop, the withdrawal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from checkout.domain.note import Note
from checkout.domain.session import Session
from checkout.domain.withdrawal import Withdrawal


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


class Withdrawals(Protocol):
    """Store one withdrawal for each session."""

    def get(self, session_id: str) -> Withdrawal | None:
        """Read the withdrawal, strongly consistent."""
        ...

    def of(self, session_ids: Iterable[str]) -> Mapping[str, Withdrawal]:
        """Read the withdrawals of at most 100 sessions, by the sessions' ids."""
        ...

    def put(self, withdrawal: Withdrawal, session: Session | None) -> bool:
        """Write it if the stored version is one less; a first version if there is none.

        From then on its session is among those that need somebody (domain/search.py), if there
        still is one. Returns False if somebody else has written meanwhile.
        """
        ...
