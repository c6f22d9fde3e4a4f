"""Declare the routes of both APIs: the scope that each needs, and what it does.

A declared route is called a door. The dashboard's routes declare their rights beside their code.
docs/tables.py writes the routes of the APIs and of the dashboard into docs/security.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from checkout.domain.merchant.people import Right, Scope

Need = TypeVar("Need", Right, Scope)


@dataclass(frozen=True, slots=True)
class Door(Generic[Need]):
    """A route: the right or the scope that it `needs`, and what it moves, changes or reveals.

    `limit` describes what an actor (a key or a person) with a refund limit can do at this route;
    None if limits do not apply.
    """

    needs: Need
    does: str
    limit: str | None = None


COUNTED: Final = "up to the limit"
OWN: Final = "what they have requested, up to the limit"

OPEN: Final = frozenset(  # routes that need no key
    {
        ("GET", "/api/health"),
        ("GET", "/clients/{client_id}"),
        ("HEAD", "/clients/{client_id}"),
        ("GET", "/clients/{client_id}/jwks.json"),
        ("HEAD", "/clients/{client_id}/jwks.json"),
    }
)
API: Final[Mapping[tuple[str, str], Door[Scope]]] = {
    ("POST", "/api/checkout/sessions"): Door(Scope.WRITE, "asks a customer for money"),
    ("GET", "/api/checkout/sessions"): Door(Scope.READ, "customers' details"),
    ("GET", "/api/checkout/sessions/{session_id}"): Door(Scope.READ, "customers' details"),
    ("GET", "/api/checkout/sessions/{session_id}/attempts"): Door(Scope.READ, "customers' wallets"),
    ("POST", "/api/checkout/sessions/{session_id}/expire"): Door(Scope.MANAGE, "ends a session"),
    ("POST", "/api/checkout/sessions/{session_id}/cancel"): Door(Scope.MANAGE, "ends a session"),
    ("POST", "/api/checkout/sessions/{session_id}/accept_as_paid"): Door(
        Scope.MANAGE, "accepts a smaller amount as paid"
    ),
    ("POST", "/api/checkout/sessions/{session_id}/give_up"): Door(Scope.MANAGE, "ends a session"),
    ("POST", "/api/checkout/refunds"): Door(
        Scope.REFUND, "sends money to a customer from the budget, without an approval", COUNTED
    ),
    ("GET", "/api/checkout/refunds"): Door(Scope.READ, "customers' wallets"),
    ("GET", "/api/checkout/refunds/{refund_id}"): Door(Scope.READ, "customers' wallets"),
    ("POST", "/api/checkout/refunds/{refund_id}/cancel"): Door(
        Scope.REFUND, "withholds a refund from its customer, or removes a note", OWN
    ),
    ("POST", "/v1/checkout/sessions"): Door(Scope.WRITE, "asks a customer for money"),
    ("GET", "/v1/checkout/sessions"): Door(Scope.READ, "customers' details"),
    ("GET", "/v1/checkout/sessions/{session_id}"): Door(Scope.READ, "customers' details"),
    ("POST", "/v1/checkout/sessions/{session_id}"): Door(Scope.WRITE, "a session's metadata"),
    ("POST", "/v1/checkout/sessions/{session_id}/expire"): Door(Scope.MANAGE, "ends a session"),
    ("GET", "/v1/checkout/sessions/{session_id}/line_items"): Door(Scope.READ, "what is sold"),
    ("GET", "/v1/payment_intents"): Door(Scope.READ, "customers' details"),
    ("GET", "/v1/payment_intents/{payment_id}"): Door(Scope.READ, "customers' details"),
    ("GET", "/v1/charges"): Door(Scope.READ, "customers' details"),
    ("GET", "/v1/charges/{charge_id}"): Door(Scope.READ, "customers' details"),
    ("GET", "/v1/payment_methods/{method_id}"): Door(Scope.READ, "customers' details"),
    ("GET", "/v1/balance_transactions/{transaction_id}"): Door(Scope.READ, "what was received"),
    ("GET", "/v1/prices"): Door(Scope.READ, "nothing: there is no catalog"),
    ("GET", "/v1/prices/{price_id}"): Door(Scope.READ, "what is sold"),
    ("GET", "/v1/products"): Door(Scope.READ, "nothing: there is no catalog"),
    ("GET", "/v1/products/{product_id}"): Door(Scope.READ, "what is sold"),
    ("POST", "/v1/refunds"): Door(
        Scope.REFUND, "sends money to a customer from the budget, without an approval", COUNTED
    ),
    ("GET", "/v1/refunds"): Door(Scope.READ, "customers' details"),
    ("GET", "/v1/refunds/{refund_id}"): Door(Scope.READ, "customers' details"),
    ("POST", "/v1/refunds/{refund_id}"): Door(Scope.REFUND, "a refund's metadata", OWN),
    ("POST", "/v1/refunds/{refund_id}/cancel"): Door(
        Scope.REFUND, "withholds a refund from its customer, or removes a note", OWN
    ),
    ("GET", "/v1/events"): Door(Scope.READ, "customers' details"),
    ("GET", "/v1/events/{event_id}"): Door(Scope.READ, "customers' details"),
    ("GET", "/v1/balance"): Door(Scope.READ, "nothing: no money is held"),
    ("GET", "/v1/account"): Door(Scope.READ, "the merchant"),
    ("GET", "/v1/accounts"): Door(Scope.READ, "nothing: there are none"),
    ("GET", "/v1/accounts/{account}"): Door(Scope.READ, "the merchant"),
    ("GET", "/v1/webhook_endpoints"): Door(Scope.READ, "addresses of webhooks"),
    ("POST", "/v1/webhook_endpoints"): Door(
        Scope.MANAGE, "later events to an address; details only if the key may read"
    ),
    ("GET", "/v1/webhook_endpoints/{identity}"): Door(Scope.READ, "an address of webhooks"),
    ("POST", "/v1/webhook_endpoints/{identity}"): Door(
        Scope.MANAGE, "later events to an address; details only if the key may read"
    ),
    ("DELETE", "/v1/webhook_endpoints/{identity}"): Door(Scope.MANAGE, "ends later events"),
}
