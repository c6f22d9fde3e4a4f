"""The audit log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter, Request, Response

from checkout.domain.audit import AuditEntry
from checkout.flows import audit
from checkout.pages import Moment
from dashboard.dependencies import Injected, Key
from dashboard.rendering import page
from dashboard.texts import ACTION
from dashboard.view import moment

router = APIRouter()
# Records with a page of their own, by the prefix of their ids.
_PAGES: Final = {"cs": "transactions", "evt": "webhooks", "plink": "links", "re": "refunds"}


@dataclass(frozen=True, slots=True)
class EntryRow:
    """An entry. `page` is the path of the target's own page, if there is one."""

    at: Moment
    action: str
    target: str | None
    page: str | None
    by: str


@router.get("/audit")
async def audit_log(services: Injected, request: Request, key: Key) -> Response:
    listed = audit.list_page(services, key, request.query_params.get("cursor") or None)
    return page(
        request,
        "audit.html",
        section="/audit",
        rows=[_row(entry) for entry in listed.entries],
        next_cursor=listed.next_cursor,
    )


def _row(entry: AuditEntry) -> EntryRow:
    target = entry.target or ""
    folder = _PAGES.get(target.partition("_")[0])
    return EntryRow(
        at=moment(entry.at),
        action=ACTION[entry.action],
        target=entry.target,
        page=f"/{folder}/{target}" if folder else None,
        by=_by(entry),
    )


def _by(entry: AuditEntry) -> str:
    """Return the actor's name at that time, with a key's last four digits or a member's id."""
    mark = entry.actor_id if entry.key_last_four is None else f"…{entry.key_last_four}"
    return f"{entry.actor_name} ({mark})"
