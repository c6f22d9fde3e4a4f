"""Resource server: check a request's authorization, then pass it to `receiving` or `paying`.

The checks have the same order as in Rafiki: the OpenAPI schema, the wallet address, the token, the
signature.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from open_payments.transports import Response
from sandbox.wallets import answers, listing, paying, receiving, schemas, verifier
from sandbox.wallets.answers import resource
from sandbox.wallets.backend import Backend
from sandbox.wallets.call import Call, is_id
from sandbox.wallets.listing import Access
from sandbox.wallets.provider import Provider
from sandbox.wallets.schema import Schema, failure
from sandbox.wallets.state import Grant

_KINDS = {
    "incoming-payments": "incoming payment",
    "quotes": "quote",
    "outgoing-payments": "outgoing payment",
}


def answer(backend: Backend, provider: Provider, call: Call) -> Response:
    """Route by the path after the tenant."""
    parts = call.segments()[1:]
    match (call.method, parts):
        case ("GET", ["incoming-payments", payment_id]) if "authorization" not in call.headers:
            wallet = _wallet_of(backend, provider, "incoming-payments", payment_id)
            backend.linger(wallet)
            return receiving.public(backend, provider, payment_id)
        case ("POST", [("incoming-payments" | "quotes" | "outgoing-payments") as collection]):
            return _create(backend, provider, call, collection)
        case ("GET", ["outgoing-payment-grant"]):
            _require_signature_headers(call)
            grant = _introspect(backend, provider, call, "outgoing-payment", "create", None)
            _check_signature(backend, call, None, grant)
            return paying.spent(backend, provider, grant)
        case ("GET", [("incoming-payments" | "outgoing-payments") as collection]):
            return _list(backend, provider, call, collection)
        case ("GET", [collection, item_id]) if collection in _KINDS:
            access = _reach(backend, provider, call, collection, item_id, "read")
            reader = {
                "incoming-payments": receiving.get,
                "quotes": paying.get_quote,
                "outgoing-payments": paying.get_payment,
            }[collection]
            return reader(backend, provider, access, item_id)
        case ("POST", ["incoming-payments", payment_id, "complete"]):
            _reach(backend, provider, call, "incoming-payments", payment_id, "complete")
            return receiving.complete(backend, provider, payment_id)
    raise answers.plain(404, "Not Found")


def _create(backend: Backend, provider: Provider, call: Call, collection: str) -> Response:
    body = call.json()
    schema, create = {
        "incoming-payments": (schemas.INCOMING_PAYMENT, receiving.create),
        "quotes": (schemas.QUOTE, paying.create_quote),
        "outgoing-payments": (schemas.OUTGOING_PAYMENT, paying.create_payment),
    }[collection]
    _validate(body or {}, schema)
    _require_signature_headers(call)
    wallet = body["walletAddress"]
    _check_wallet(backend, provider, wallet)
    grant = _introspect(backend, provider, call, collection.removesuffix("s"), "create", wallet)
    _check_signature(backend, call, body, grant)
    backend.linger(wallet)
    return create(backend, provider, Access(grant, wallet, "create"), body)


def _list(backend: Backend, provider: Provider, call: Call, collection: str) -> Response:
    page = listing.Page.of(call)
    _require_signature_headers(call)
    wallet = call.query["wallet-address"]
    _check_wallet(backend, provider, wallet)
    if not provider.rules.lists:
        raise answers.plain(404, "Not Found")
    grant = _introspect(backend, provider, call, collection.removesuffix("s"), "list", wallet)
    _check_signature(backend, call, None, grant)
    backend.linger(wallet)
    lister = receiving.list_all if collection == "incoming-payments" else paying.list_all
    return lister(backend, provider, Access(grant, wallet, "list"), page)


def _reach(
    backend: Backend, provider: Provider, call: Call, collection: str, item_id: str, action: str
) -> Access:
    """Check that the request has the right to do `action` to an existing item."""
    if collection != "incoming-payments" or action != "read":
        _require_signature_headers(call)
    wallet = _wallet_of(backend, provider, collection, item_id)
    grant = _introspect(backend, provider, call, collection.removesuffix("s"), action, wallet)
    _check_signature(backend, call, call.json(), grant)
    backend.linger(wallet)
    return Access(grant, wallet, action)


def _wallet_of(backend: Backend, provider: Provider, collection: str, item_id: str) -> str:
    state = backend.state
    collections: dict[str, Mapping[str, Any]] = {
        "incoming-payments": state.incoming,
        "quotes": state.quotes,
        "outgoing-payments": state.outgoing,
    }
    if collection == "outgoing-payments" and not is_id(item_id):
        raise answers.plain(500, "Internal Server Error")
    found = collections[collection].get(item_id)
    gone = collection == "incoming-payments" and found and backend.has_vanished(found)
    if found is None or gone or found.provider != provider.name:
        description = f"Failed to get wallet address from {_KINDS[collection]}"
        raise resource(401, "Unauthorized", details={"description": description, "id": item_id})
    wallet: str = found.wallet
    return wallet


def _check_wallet(backend: Backend, provider: Provider, wallet: str) -> None:
    gone = backend.account(wallet) is None or backend.is_gone(wallet)
    if gone or backend.provider_of(wallet) != provider:
        raise resource(400, "Could not get wallet address")


def _introspect(
    backend: Backend, provider: Provider, call: Call, kind: str, action: str, wallet: str | None
) -> Grant:
    as_uri = provider.auth_origin
    presented = call.token()
    if presented is None:
        raise resource(401, "Missing or invalid authorization header value", as_uri=as_uri)
    token = backend.state.tokens.get(presented)
    grant = backend.state.grants[token.grant_id] if token else None
    now = backend.time_at(provider.name)
    chance = provider.rules.loses_tokens
    if token is not None and chance and backend.random_bytes(1)[0] < 256 * chance:
        token.expires_at = min(token.expires_at, now)
    if token is None or grant is None or grant.provider != provider.name or token.expires_at <= now:
        raise resource(403, "Inactive Token", as_uri=as_uri)
    for item in grant.access:
        right = action in item["actions"] or f"{action}-all" in item["actions"]
        own = wallet is None or item.get("identifier", wallet) == wallet
        if item["type"] == kind and right and own:
            return grant
    raise resource(403, "Insufficient Grant", as_uri=as_uri)


def _check_signature(backend: Backend, call: Call, body: Any, grant: Grant) -> None:
    client = {"walletAddress": grant.client} if grant.client else {"jwk": grant.jwk}
    kid = verifier.key_id(call.headers)
    if kid is None:
        raise resource(401, "Signature validation error: missing keyId in signature input")
    if grant.client is not None and backend.clients.keys(grant.client) is None:
        description = "Signature validation error: could not retrieve client keys"
        raise resource(401, description, details={"client": client})
    key = backend.clients.key_of(grant, kid)
    if key is None:
        description = "Signature validation error: could not find key in list of client keys"
        raise resource(401, description, details={"client": client, "keyIdInSignature": kid})
    if not verifier.verify(call.method, call.url, call.headers, body, key):
        description = "Signature validation error: provided signature is invalid"
        raise resource(401, description, details={"keyIdInSignature": kid, "client": client})


def _require_signature_headers(call: Call) -> None:
    for name in ("signature-input", "signature"):
        if name not in call.headers:
            raise listing.invalid(f"must have required property '{name}'")


def _validate(body: Any, schema: Schema) -> None:
    found = failure(body, schema)
    if found is not None:
        raise listing.invalid(found)
