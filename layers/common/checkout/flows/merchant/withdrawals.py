"""Mark a customer's withdrawal as answered by the shop, or as open again."""

from __future__ import annotations

from dataclasses import replace

from checkout.domain.ground.errors import Conflict, ParameterInvalid
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.people import Actor
from checkout.flows import audit
from checkout.flows.checkout import lookup, withdrawal
from checkout.ports.services import DashboardServices


def answer(services: DashboardServices, key: Actor, session_id: str, *, done: bool) -> None:
    """Write the mark. Raise ResourceMissing, ParameterInvalid without a withdrawal, Conflict."""
    session = lookup.own(services, key, session_id)
    before = services.withdrawals.get(session.id)
    if before is None:
        raise ParameterInvalid(withdrawal.NONE)
    after = replace(before, answered_by=key.label if done else None, version=before.version + 1)
    if not services.withdrawals.put(after, session):
        raise Conflict("Somebody else has changed the withdrawal meanwhile. Look at it again.")
    action = Action.DEALT_WITH if done else Action.OPENED_AGAIN
    audit.note(services, key, action, session.id)
