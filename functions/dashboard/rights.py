"""Declare the right that each route and form of the dashboard needs, in one place.

`dependencies.signed_in` checks it. A route that is not declared is refused to everybody. The routes
in OPEN, for signing in or up and for invitations, need no sign-in.
"""

from __future__ import annotations

from typing import Final

from fastapi import Request

from checkout.domain.errors import PermissionMissing
from checkout.domain.people import Actor, Right, may

OPEN: Final = frozenset(
    {
        ("GET", "/sign-in"),
        ("POST", "/sign-in"),
        ("POST", "/sign-in/options"),
        ("POST", "/sign-in/passkey"),
        ("GET", "/sign-up"),
        ("POST", "/sign-up"),
        ("POST", "/sign-up/options"),
        ("POST", "/sign-up/passkey"),
        ("GET", "/sign-up/{token}"),
        ("GET", "/invitation/{token}"),
        ("POST", "/invitation/{token}"),
        ("POST", "/invitation/{token}/options"),
    }
)
NEEDED: Final[dict[tuple[str, str], Right]] = {
    ("GET", ""): Right.READ,
    ("GET", "/overview"): Right.READ,
    ("GET", "/transactions/{session_id}"): Right.READ,
    ("GET", "/transactions/{session_id}/packing"): Right.READ,
    ("POST", "/transactions/{session_id}/expire"): Right.MANAGE,
    ("POST", "/transactions/{session_id}/cancel"): Right.MANAGE,
    ("POST", "/transactions/{session_id}/accept_as_paid"): Right.MANAGE,
    ("POST", "/transactions/{session_id}/give_up"): Right.MANAGE,
    ("POST", "/transactions/{session_id}/refund"): Right.REFUND,
    ("POST", "/transactions/{session_id}/paid_elsewhere"): Right.REFUND,
    ("GET", "/refunds/{refund_id}"): Right.READ,
    ("POST", "/refunds/{refund_id}/prepare"): Right.REFUND,
    ("POST", "/refunds/{refund_id}/budget"): Right.MANAGE,
    ("POST", "/refunds/{refund_id}/cancel"): Right.REFUND,
    ("POST", "/refunds/{refund_id}/claim"): Right.REFUND,
    ("GET", "/refunds/{refund_id}/callback"): Right.REFUND,
    ("GET", "/budget"): Right.READ,
    ("POST", "/budget"): Right.MANAGE,
    ("GET", "/budget/callback"): Right.MANAGE,
    ("POST", "/budget/end"): Right.MANAGE,
    ("POST", "/transactions/{session_id}/note"): Right.NOTE,
    ("POST", "/transactions/{session_id}/dealt-with"): Right.MANAGE,
    ("POST", "/transactions/{session_id}/withdrawal"): Right.MANAGE,
    ("POST", "/wallet/confirm"): Right.MANAGE,
    ("GET", "/wallet/callback"): Right.MANAGE,
    ("GET", "/needs"): Right.READ,
    ("GET", "/notices"): Right.READ,  # one's own, as the next four
    ("POST", "/notices"): Right.READ,
    ("POST", "/notices/stop"): Right.READ,
    ("GET", "/notices/confirm/{token}"): Right.READ,
    ("POST", "/notices/confirm/{token}"): Right.READ,
    ("GET", "/statement"): Right.READ,
    ("GET", "/statement.csv"): Right.READ,
    ("GET", "/export"): Right.READ,
    ("GET", "/export/{file}.csv"): Right.READ,
    ("GET", "/links"): Right.READ,
    ("POST", "/links"): Right.MANAGE,
    ("GET", "/links/{link_id}"): Right.READ,
    ("POST", "/links/{link_id}/stop"): Right.MANAGE,
    ("POST", "/links/{link_id}/start"): Right.MANAGE,
    ("POST", "/links/{link_id}/stock"): Right.MANAGE,
    ("GET", "/links/{link_id}/qr"): Right.READ,
    ("GET", "/links/{link_id}/poster"): Right.READ,
    ("GET", "/keys"): Right.READ,
    ("GET", "/keys/{key_id}/refused"): Right.READ,
    ("POST", "/keys"): Right.INTEGRATE,
    ("POST", "/keys/{key_id}/roll"): Right.INTEGRATE,
    ("POST", "/keys/{key_id}/revoke"): Right.INTEGRATE,
    ("GET", "/webhooks"): Right.READ,
    ("POST", "/webhooks"): Right.INTEGRATE,
    ("POST", "/webhooks/remove"): Right.INTEGRATE,
    ("POST", "/webhooks/enable"): Right.INTEGRATE,
    ("POST", "/webhooks/roll"): Right.INTEGRATE,
    ("POST", "/webhooks/test"): Right.INTEGRATE,
    ("POST", "/webhooks/resend-failed"): Right.INTEGRATE,
    ("GET", "/webhooks/{event_id}"): Right.READ,
    ("POST", "/webhooks/{event_id}/resend"): Right.INTEGRATE,
    ("GET", "/webhooks/check"): Right.READ,
    ("POST", "/webhooks/check"): Right.READ,  # it only compares
    ("GET", "/people"): Right.READ,
    ("POST", "/people"): Right.MANAGE,
    ("POST", "/people/key-sign-in"): Right.MANAGE,
    ("POST", "/people/invitations/{invitation_id}/withdraw"): Right.MANAGE,
    ("POST", "/people/{member_id}/role"): Right.MANAGE,
    ("POST", "/people/{member_id}/refunds"): Right.MANAGE,
    ("POST", "/people/{member_id}/revoke"): Right.MANAGE,
    ("GET", "/settings"): Right.READ,
    ("POST", "/settings"): Right.MANAGE,
    ("GET", "/settings/logo"): Right.READ,
    ("GET", "/settings/preview"): Right.READ,
    ("GET", "/audit"): Right.READ,
    ("POST", "/sign-out"): Right.READ,  # it ends only one's own sign-in
}
PREFIX: Final = "/dashboard"


def require(request: Request, actor: Actor) -> None:
    """Raise PermissionMissing unless the actor has the right that this route needs."""
    path = request.scope["route"].path.removeprefix(PREFIX)
    needed = NEEDED.get((request.method, path))
    if needed is None or not may(actor, needed):
        raise PermissionMissing(
            f"Your role, {actor.role}, does not allow this. Ask an owner of your shop."
        )
