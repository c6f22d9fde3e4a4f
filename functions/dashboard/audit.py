"""The page of the audit log."""

from __future__ import annotations

from typing import Final

from fastapi import Response

from checkout.domain.merchant.audit import AuditEntry
from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import Right
from checkout.flows import audit
from dashboard.dependencies import Page
from dashboard.rendering import page
from dashboard.routing import PageRouter

router = PageRouter(section=("/audit", "Audit log"))
# The path of the page of each kind of record that has one, by the prefix of the record's id.
_PAGES: Final = {"cs": "transactions", "evt": "webhooks", "plink": "links", "re": "refunds"}


@router.page("/audit", Door(Right.READ, "who did what"))
async def audit_log(request: Page) -> Response:
    cursor = request.http.query_params.get("cursor") or None
    listed = audit.list_page(request.services, request.key, cursor)
    return page(
        request.http,
        "audit.html",
        section="/audit",
        rows=[(each, _page(each), _by(each)) for each in listed.records],
        next_cursor=listed.next_cursor,
    )


def _page(entry: AuditEntry) -> str | None:
    """Return the path of the page about the entry's target, if there is one."""
    folder = _PAGES.get((entry.target or "").partition("_")[0])
    return f"/{folder}/{entry.target}" if folder else None


def _by(entry: AuditEntry) -> str:
    """Return the actor's name when it acted, with a key's last four digits or a member's id."""
    mark = entry.actor_id if entry.key_last_four is None else f"…{entry.key_last_four}"
    return f"{entry.actor_name} ({mark})"
