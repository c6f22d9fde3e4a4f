"""The audit log: write an entry after each act, and list the entries a page at a time."""

from __future__ import annotations

from typing import Final

from checkout.domain.ground.grammar import NONCE
from checkout.domain.ground.ids import new_nonce
from checkout.domain.merchant.audit import Action, AuditEntry
from checkout.domain.merchant.people import Actor
from checkout.domain.merchant.record import ApiKey
from checkout.flows import cursors
from checkout.flows.cursors import CursorPage
from checkout.services import DashboardServices

PAGE: Final = 50


def note(
    services: DashboardServices, key: Actor, action: Action, target: str | None = None
) -> None:
    """Write an entry for an `action` on `target` by the actor `key`, an API key or a member."""
    services.audit.add(
        AuditEntry(
            id=new_nonce(services.random_bytes),
            merchant=key.merchant,
            at=services.clock.now(),
            action=action,
            actor_id=key.id,
            actor_name=key.name,
            key_last_four=key.last_four if isinstance(key, ApiKey) else None,
            target=target,
        )
    )


def list_page(
    services: DashboardServices, key: Actor, cursor: str | None
) -> CursorPage[AuditEntry]:
    """Return a page of the merchant's entries, newest first. Raise CursorInvalid."""
    after = cursors.position_of(key.merchant, cursor, NONCE)
    page = services.audit.page(key.merchant, limit=PAGE, after=after)
    return cursors.with_cursor(key.merchant, page)
