"""Authorization server (GNAP): grants, their continuation and cancellation, and tokens.

The checks have the same order as in Rafiki, because the order decides which error is returned for a
request with two faults.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from open_payments.transports import Response
from sandbox.wallets import answers, schemas, verifier
from sandbox.wallets.answers import gnap, ok
from sandbox.wallets.backend import Backend
from sandbox.wallets.call import Call, is_id
from sandbox.wallets.clients import find
from sandbox.wallets.interaction import behaviour
from sandbox.wallets.provider import Provider
from sandbox.wallets.schema import failure
from sandbox.wallets.state import Grant, GrantState, Interaction, Token

BUSY = "Defined query timeout of 10000ms exceeded when running query."


def answer(backend: Backend, provider: Provider, call: Call) -> Response:
    """Route by path: `/{tenant}`, `/continue/{id}`, `/token/{id}`."""
    match (call.method, call.segments()):
        case ("POST", [tenant]) if tenant:
            return _request_grant(backend, provider, call, tenant)
        case ("POST", ["continue", grant_id]):
            return _continue(backend, provider, call, grant_id)
        case ("DELETE", ["continue", grant_id]):
            return _cancel(backend, call, grant_id)
        case ("POST", ["token", manage_id]):
            return _rotate(backend, provider, call, manage_id)
        case ("DELETE", ["token", manage_id]):
            del backend.state.tokens[_managed(backend, provider, call, manage_id).value]
            return answers.no_content()
    raise answers.plain(404, "Not Found")


# --- the grant request ---


def _request_grant(backend: Backend, provider: Provider, call: Call, tenant: str) -> Response:
    body = call.json()
    _validate(body or {}, schemas.GRANT)
    if tenant != provider.tenant:
        raise gnap(404, "invalid_request", "Not Found")
    client, jwk = _identity(provider, body["client"])
    _check_client_signature(backend, call, body, client, jwk)
    access: list[dict[str, Any]] = body["access_token"]["access"]
    _check_limits(access)
    interactive = [item for item in access if _needs_consent(item)]
    if any("identifier" not in item for item in interactive if item["type"] != "quote"):
        raise gnap(400, "invalid_request", "access identifier required")
    if interactive and "interact" not in body:
        raise gnap(400, "invalid_request", "missing required request field 'interact'")
    grant = Grant(
        id=backend.new_id(),
        provider=provider.name,
        client=client,
        jwk=jwk,
        access=access,
        continue_token=backend.random_bytes(10).hex().upper(),
        last_asked=backend.time_at(provider.name),
        state=GrantState.APPROVED,
    )
    if not interactive:
        backend.state.grants[grant.id] = grant
        return _issue(backend, provider, grant)
    finish = body["interact"].get("finish")
    grant.interaction = _interaction(backend, provider, client, access, finish)
    grant.state = GrantState.PENDING
    backend.state.grants[grant.id] = grant
    return _pending(backend, provider, grant, grant.interaction)


def _identity(provider: Provider, client: Any) -> tuple[str | None, dict[str, str] | None]:
    if isinstance(client, str):
        if not provider.rules.client_strings:
            raise _invalid("body.client must be object")
        return client, None
    if not provider.rules.client_objects:
        raise _invalid("body.client must be string")
    return client.get("walletAddress"), client.get("jwk")


def _check_client_signature(
    backend: Backend, call: Call, body: Any, client: str | None, jwk: dict[str, str] | None
) -> None:
    if not verifier.has_valid_headers(call.headers, body):
        raise gnap(401, "invalid_client", "invalid signature headers")
    kid = verifier.key_id(call.headers)
    if kid is None:
        raise gnap(401, "invalid_client", "invalid signature input")
    key = find([jwk] if jwk else backend.clients.keys(client or ""), kid)
    if key is None:
        raise gnap(400, "invalid_client", "could not determine client")
    if not verifier.verify(call.method, call.url, call.headers, body, key):
        raise gnap(401, "invalid_client", "invalid signature")


def _check_limits(access: list[dict[str, Any]]) -> None:
    if any({"debitAmount", "receiveAmount"} <= item.get("limits", {}).keys() for item in access):
        raise gnap(400, "invalid_request", "only one access amount allowed")


def _needs_consent(item: dict[str, Any]) -> bool:
    return item["type"] == "outgoing-payment" or "list-all" in item["actions"]


def _interaction(
    backend: Backend,
    provider: Provider,
    client: str | None,
    access: list[dict[str, Any]],
    finish: Any,
) -> Interaction:
    if client is None:
        raise gnap(
            400, "invalid_client", "JWK client identifier cannot be used for interactive grants"
        )
    shown = backend.clients.display(client)
    if shown is None:
        raise gnap(400, "invalid_client", "missing required request field 'client'")
    wallet = next((item["identifier"] for item in access if "identifier" in item), "")
    return Interaction(
        id=backend.new_id(),
        nonce=backend.random_bytes(8).hex().upper(),
        ref=backend.new_id(),
        client_name=shown[0],
        client_uri=shown[1],
        expires_at=backend.time_at(provider.name) + backend.behaviour(wallet).interaction_life,
        finish_uri=finish["uri"] if finish else None,
        client_nonce=finish["nonce"] if finish else None,
    )


def _pending(
    backend: Backend, provider: Provider, grant: Grant, interaction: Interaction
) -> Response:
    query = urlencode({"clientName": interaction.client_name, "clientUri": interaction.client_uri})
    page = f"{backend.pages_origin}/interact/{interaction.id}/{interaction.nonce}?{query}"
    return ok(
        {
            "interact": {"redirect": page, "finish": interaction.nonce},
            "continue": _continuation(provider, grant) | {"wait": provider.rules.wait},
        }
    )


# --- continuation ---


def _continue(backend: Backend, provider: Provider, call: Call, grant_id: str) -> Response:
    body = call.json()
    _validate(body or {}, schemas.CONTINUE)
    grant = _continued(backend, call, body, grant_id)
    ref = (body or {}).get("interact_ref")
    if ref is None:
        return _poll(backend, provider, grant)
    interaction = grant.interaction
    _stumble(backend, grant)
    refused = {GrantState.REJECTED, GrantState.REVOKED}
    if interaction is None or interaction.ref != ref or grant.state in refused:
        raise gnap(404, "invalid_continuation", "grant not found")
    if _too_fast(backend, provider, grant):
        raise gnap(400, "too_fast", 'continued grant faster than "wait" period')
    if grant.state is not GrantState.APPROVED:
        raise gnap(401, "request_denied", "grant interaction not approved")
    return _issue(backend, provider, grant)


def _stumble(backend: Backend, grant: Grant) -> None:
    """Fail for some time after the approval, if the wallet's behavior defines this."""
    approved_at = grant.interaction.chosen_at if grant.interaction else None
    how = behaviour(backend, grant)
    if approved_at is None or backend.now() >= approved_at + how.stumbles:
        return
    if how.stumbles_at_keys:
        raise gnap(400, "invalid_client", "could not determine client")
    raise answers.plain(502, "Bad Gateway")


def _poll(backend: Backend, provider: Provider, grant: Grant) -> Response:
    if _too_fast(backend, provider, grant):
        raise gnap(400, "too_fast", 'polled grant faster than "wait" period')
    if grant.interaction is None or grant.interaction.finish_uri is not None:
        raise gnap(401, "request_denied", "grant cannot be polled")
    if grant.state is GrantState.PENDING:
        grant.last_asked = backend.time_at(provider.name)
        return ok({"continue": _continuation(provider, grant) | {"wait": provider.rules.wait}})
    if grant.state is not GrantState.APPROVED:
        raise gnap(401, "request_denied", "grant cannot be polled")
    return _issue(backend, provider, grant)


def _cancel(backend: Backend, call: Call, grant_id: str) -> Response:
    grant = _continued(backend, call, call.json(), grant_id)
    grant.state = GrantState.REVOKED
    tokens = backend.state.tokens
    for token in [token for token in tokens.values() if token.grant_id == grant.id]:
        del tokens[token.value]
    return answers.no_content()


def _continued(backend: Backend, call: Call, body: Any, grant_id: str) -> Grant:
    """Check a continuation request's token and signature; return its grant."""
    if not verifier.has_valid_headers(call.headers, body):
        raise gnap(401, "invalid_client", "invalid signature headers")
    grant = backend.state.grants.get(grant_id)
    if (
        grant is None
        or grant.continue_token != call.token()
        or grant.state is GrantState.REVOKED
        or call.origin != backend.providers[grant.provider].auth_origin
    ):
        raise gnap(401, "invalid_continuation", "invalid grant")
    _check_grant_signature(backend, call, body, grant)
    return grant


def _check_grant_signature(backend: Backend, call: Call, body: Any, grant: Grant) -> None:
    key = backend.clients.key_of(grant, verifier.key_id(call.headers) or "")
    if key is None:
        raise gnap(400, "invalid_client", "could not determine client")
    if not verifier.verify(call.method, call.url, call.headers, body, key):
        raise gnap(401, "invalid_client", "invalid signature")


def _too_fast(backend: Backend, provider: Provider, grant: Grant) -> bool:
    wait = timedelta(seconds=provider.rules.wait)
    return backend.time_at(provider.name) < grant.last_asked + wait


# --- tokens ---


def _rotate(backend: Backend, provider: Provider, call: Call, manage_id: str) -> Response:
    if not provider.rules.rotates:
        raise answers.plain(404, "Not Found")
    old = _managed(backend, provider, call, manage_id)
    if provider.rules.busy and backend.random_bytes(1)[0] < 256 * provider.rules.busy:
        raise gnap(404, "invalid_rotation", BUSY)
    del backend.state.tokens[old.value]
    return ok({"access_token": _new_token(backend, provider, backend.state.grants[old.grant_id])})


def _managed(backend: Backend, provider: Provider, call: Call, manage_id: str) -> Token:
    """Return the token with the management URI `/token/{manage_id}`, even if it has expired.

    An expired token is deleted after the time `token_kept`. The URI and the client's signature
    authorize the request. The token's value in the header is not compared.
    """
    body = call.json()
    if not verifier.has_valid_headers(call.headers, body):
        raise gnap(401, "invalid_client", "invalid signature headers")
    if not is_id(manage_id):
        raise answers.plain(500, "Internal Server Error")
    tokens = backend.state.tokens
    token = next((each for each in tokens.values() if each.manage_id == manage_id), None)
    kept_from = backend.time_at(provider.name) - provider.rules.token_kept
    if token is not None and token.expires_at <= kept_from:
        del tokens[token.value]
        token = None
    if token is None:
        raise gnap(401, "invalid_client", "invalid access token")
    _check_grant_signature(backend, call, body, backend.state.grants[token.grant_id])
    return token


def _issue(backend: Backend, provider: Provider, grant: Grant) -> Response:
    grant.state = GrantState.ISSUED
    return ok(
        {
            "access_token": _new_token(backend, provider, grant),
            "continue": _continuation(provider, grant),
        }
    )


def _new_token(backend: Backend, provider: Provider, grant: Grant) -> dict[str, Any]:
    life = provider.rules.token_life
    token = Token(
        value=backend.random_bytes(10).hex().upper(),
        manage_id=backend.new_id(),
        grant_id=grant.id,
        expires_at=backend.time_at(provider.name) + life,
    )
    backend.state.tokens[token.value] = token
    return {
        "access": grant.access,
        "value": token.value,
        "manage": f"{provider.auth_origin}/token/{token.manage_id}",
        "expires_in": int(life.total_seconds()),
    }


def _continuation(provider: Provider, grant: Grant) -> dict[str, Any]:
    return {
        "access_token": {"value": grant.continue_token},
        "uri": f"{provider.auth_origin}/continue/{grant.id}",
    }


def _validate(body: Any, schema: dict[str, Any]) -> None:
    found = failure(body, schema)
    if found is not None:
        raise _invalid(found)


def _invalid(found: str) -> answers.Refusal:
    # The authorization server's validation errors have no `code`.
    return answers.Refusal(
        ok({"error": {"description": f"Received error validating OpenAPI request: {found}"}}, 400)
    )
