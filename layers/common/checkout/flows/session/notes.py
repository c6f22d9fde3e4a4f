"""Write a merchant's note on a session, the note's tags, and the mark "dealt with"."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from checkout.domain.ground.errors import Conflict, ParameterInvalid
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.people import Actor
from checkout.domain.session.note import TAG_MAX, TAGS_MAX, TEXT_MAX, Note, case_of, tags_of
from checkout.flows import audit
from checkout.flows.session import lookup
from checkout.services import DashboardServices

MEANWHILE: Final = (
    "Somebody else has changed the note in the meantime. Read their note, then save yours again."
)


def write(
    services: DashboardServices, key: Actor, session_id: str, *, read: str, text: str, tags: str
) -> None:
    """Write text and tags in place of those in version `read`, which is "0" if there was no note.

    Raise ResourceMissing, ParameterInvalid, and Conflict if another version was written meanwhile.
    """
    session = lookup.own(services, key, session_id)
    said, given = text.replace("\r\n", "\n").strip(), tags_of(tags)
    if len(said) > TEXT_MAX:
        raise ParameterInvalid(f"A note has at most {TEXT_MAX:,} characters.", param="text")
    if len(given) > TAGS_MAX or any(len(each) > TAG_MAX for each in given):
        raise ParameterInvalid(
            f"Give at most {TAGS_MAX} tags of at most {TAG_MAX} characters each.", param="tags"
        )
    before = services.notes.get(session.id)
    if read != str(before.version if before else 0):
        raise Conflict(MEANWHILE)
    _put(services, replace(_next(services, key, session.id, before), text=said, tags=given))
    audit.note(services, key, Action.NOTE_WRITTEN, session.id)


def deal_with(services: DashboardServices, key: Actor, session_id: str, *, done: bool) -> None:
    """Mark the session's case as dealt with, or as open again. A later case begins as open.

    Raise ResourceMissing, Conflict, and ParameterInvalid if the session does not need a person.
    """
    session = lookup.own(services, key, session_id)
    case = case_of(session)
    if case is None:
        raise ParameterInvalid("This session does not need a person.")
    before = services.notes.get(session.id)
    after = _next(services, key, session.id, before)
    _put(services, replace(after, dealt_with=case if done else None))
    audit.note(services, key, Action.DEALT_WITH if done else Action.OPENED_AGAIN, session.id)


def _next(services: DashboardServices, key: Actor, session_id: str, before: Note | None) -> Note:
    now = services.clock.now()
    if before is None:
        return Note(session=session_id, merchant=key.merchant, author=key.label, at=now)
    return replace(before, author=key.label, at=now, version=before.version + 1)


def _put(services: DashboardServices, note: Note) -> None:
    if not services.notes.put(note):
        raise Conflict(MEANWHILE)
