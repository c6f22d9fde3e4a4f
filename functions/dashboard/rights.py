"""Declare each route and form of the dashboard: the right that it needs, and what it does.

`dependencies.signed_in` checks the right, and the flows check the limits. docs/tables.py prints the
table into docs/security.md. A route that is not declared is refused to everybody. The routes in
OPEN, for signing in or up and for invitations, need no sign-in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fastapi import Request

from checkout.domain import doors
from checkout.domain.doors import Door
from checkout.domain.errors import PermissionMissing
from checkout.domain.people import RIGHTS, Actor, Right, may
from dashboard.texts import KEY_MOVES_NO_MONEY

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
DOORS: Final[Mapping[tuple[str, str], Door[Right]]] = {
    ("GET", ""): Door(Right.READ, "customers' details"),
    ("GET", "/overview"): Door(Right.READ, "sums"),
    ("GET", "/transactions/{session_id}"): Door(Right.READ, "customers' details"),
    ("GET", "/transactions/{session_id}/packing"): Door(Right.READ, "customers' details"),
    ("POST", "/transactions/{session_id}/expire"): Door(Right.MANAGE, "ends a session"),
    ("POST", "/transactions/{session_id}/cancel"): Door(Right.MANAGE, "ends a session"),
    ("POST", "/transactions/{session_id}/accept_as_paid"): Door(
        Right.MANAGE, "takes less money as paid"
    ),
    ("POST", "/transactions/{session_id}/give_up"): Door(Right.MANAGE, "ends a session"),
    ("POST", "/transactions/{session_id}/refund"): Door(
        Right.REFUND, "money to a customer, from the budget without a person", doors.COUNTED
    ),
    ("POST", "/transactions/{session_id}/paid_elsewhere"): Door(
        Right.REFUND, "lowers what can be refunded", doors.COUNTED
    ),
    ("GET", "/refunds/{refund_id}"): Door(Right.READ, "customers' wallets"),
    ("POST", "/refunds/{refund_id}/prepare"): Door(
        Right.REFUND, "asks the shop's wallet for an approval", doors.OWN
    ),
    ("POST", "/refunds/{refund_id}/budget"): Door(
        Right.OWN, "money to a customer, without a limit"
    ),
    ("POST", "/refunds/{refund_id}/cancel"): Door(
        Right.REFUND, "keeps a refund from its customer, takes a note back", doors.OWN
    ),
    ("POST", "/refunds/{refund_id}/claim"): Door(
        Right.REFUND, "lets whoever has the link name the wallet that gets a refund", doors.OWN
    ),
    ("GET", "/refunds/{refund_id}/callback"): Door(
        Right.REFUND, "money to a customer, as the shop's wallet has approved", doors.OWN
    ),
    ("GET", "/budget"): Door(Right.READ, "the budget"),
    ("POST", "/budget"): Door(Right.OWN, "asks the shop's wallet for the budget"),
    ("GET", "/budget/callback"): Door(Right.OWN, "begins the budget"),
    ("POST", "/budget/end"): Door(Right.OWN, "ends the budget"),
    ("POST", "/transactions/{session_id}/note"): Door(Right.NOTE, "a private note"),
    ("POST", "/transactions/{session_id}/dealt-with"): Door(
        Right.MANAGE, "whether a payment needs somebody"
    ),
    ("POST", "/transactions/{session_id}/withdrawal"): Door(
        Right.MANAGE, "whether a withdrawal is answered"
    ),
    ("POST", "/wallet/confirm"): Door(Right.MANAGE, "asks the shop's wallet for a proof"),
    ("GET", "/wallet/callback"): Door(Right.MANAGE, "lets the shop sell"),
    ("GET", "/needs"): Door(Right.READ, "what needs somebody"),
    ("GET", "/notices"): Door(Right.READ, "one's own notices"),
    ("POST", "/notices"): Door(Right.READ, "e-mail to an address of one's own"),
    ("POST", "/notices/stop"): Door(Right.READ, "one's own notices"),
    ("GET", "/notices/confirm/{token}"): Door(Right.READ, "one's own notices"),
    ("POST", "/notices/confirm/{token}"): Door(Right.READ, "e-mail to an address of one's own"),
    ("GET", "/statement"): Door(Right.READ, "sums"),
    ("GET", "/statement.csv"): Door(Right.READ, "sums"),
    ("GET", "/export"): Door(Right.READ, "the files"),
    ("GET", "/export/{file}.csv"): Door(Right.READ, "customers' details"),
    ("GET", "/links"): Door(Right.READ, "payment links"),
    ("POST", "/links"): Door(Right.MANAGE, "asks customers for money"),
    ("GET", "/links/{link_id}"): Door(Right.READ, "a payment link"),
    ("POST", "/links/{link_id}/stop"): Door(Right.MANAGE, "a payment link"),
    ("POST", "/links/{link_id}/start"): Door(Right.MANAGE, "a payment link"),
    ("POST", "/links/{link_id}/stock"): Door(Right.MANAGE, "how many are sold"),
    ("GET", "/links/{link_id}/qr"): Door(Right.READ, "a payment link"),
    ("GET", "/links/{link_id}/poster"): Door(Right.READ, "a payment link"),
    ("GET", "/keys"): Door(Right.READ, "the names of keys"),
    ("GET", "/keys/{key_id}/refused"): Door(Right.READ, "a key's refused requests"),
    ("POST", "/keys"): Door(Right.INTEGRATE, "a key, with the scopes that its maker can give"),
    ("POST", "/keys/{key_id}/roll"): Door(
        Right.INTEGRATE, "a key, with the scopes that its maker can give"
    ),
    ("POST", "/keys/{key_id}/revoke"): Door(Right.INTEGRATE, "ends a key"),
    ("GET", "/webhooks"): Door(Right.READ, "addresses and deliveries of webhooks"),
    ("POST", "/webhooks"): Door(Right.INTEGRATE, "later events, with details, to an address"),
    ("POST", "/webhooks/remove"): Door(Right.INTEGRATE, "ends later events"),
    ("POST", "/webhooks/enable"): Door(Right.INTEGRATE, "later events to a known address"),
    ("POST", "/webhooks/roll"): Door(Right.INTEGRATE, "a signing secret"),
    ("POST", "/webhooks/test"): Door(Right.INTEGRATE, "an event to a known address"),
    ("POST", "/webhooks/resend-failed"): Door(Right.INTEGRATE, "events to a known address"),
    ("GET", "/webhooks/{event_id}"): Door(Right.READ, "an event, with the customer's wallet"),
    ("POST", "/webhooks/{event_id}/resend"): Door(Right.INTEGRATE, "an event to a known address"),
    ("GET", "/webhooks/check"): Door(Right.READ, "nothing"),
    ("POST", "/webhooks/check"): Door(Right.READ, "nothing: it only compares"),
    ("GET", "/people"): Door(Right.READ, "the names of people"),
    ("POST", "/people"): Door(Right.OWN, "rights to a person"),
    ("POST", "/people/key-sign-in"): Door(Right.OWN, "whether keys sign in"),
    ("POST", "/people/invitations/{invitation_id}/withdraw"): Door(Right.OWN, "rights of a person"),
    ("POST", "/people/{member_id}/role"): Door(Right.OWN, "rights of a person"),
    ("POST", "/people/{member_id}/refunds"): Door(Right.OWN, "the limit of a person"),
    ("POST", "/people/{member_id}/revoke"): Door(Right.OWN, "rights of a person"),
    ("GET", "/settings"): Door(Right.READ, "settings"),
    ("POST", "/settings"): Door(
        Right.MANAGE, "what customers see, and where they are sent back to"
    ),
    ("GET", "/settings/logo"): Door(Right.READ, "the logo"),
    ("GET", "/settings/preview"): Door(Right.READ, "the page of the customers"),
    ("GET", "/audit"): Door(Right.READ, "who did what"),
    ("POST", "/sign-out"): Door(Right.READ, "ends one's own sign-in"),
}
NEEDED: Final[dict[tuple[str, str], Right]] = {place: door.needs for place, door in DOORS.items()}
PREFIX: Final = "/dashboard"


def lacks_scope(actor: Actor) -> bool:
    """Return whether this is an owner's key that lacks the scope `refund` alone."""
    return Right.OWN in RIGHTS[actor.role] and not actor.moves_money


def require(request: Request, actor: Actor) -> None:
    """Raise PermissionMissing unless the actor has the right that this route needs."""
    path = request.scope["route"].path.removeprefix(PREFIX)
    needed = NEEDED.get((request.method, path))
    if needed in (Right.REFUND, Right.OWN) and lacks_scope(actor):
        raise PermissionMissing(KEY_MOVES_NO_MONEY)
    if needed is None or not may(actor, needed):
        raise PermissionMissing(
            f"Your role, {actor.role}, does not allow this. Ask an owner of your shop."
        )
