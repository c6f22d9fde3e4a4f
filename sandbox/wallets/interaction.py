"""Interaction of a grant: the customer approves or declines, perhaps too late or a second time."""

from __future__ import annotations

import base64
import hashlib
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from sandbox.wallets.backend import Backend
from sandbox.wallets.behaviours import Behaviour, Consent
from sandbox.wallets.state import Grant, GrantState, Interaction


class NoInteraction(Exception):
    """No interaction has this URL."""


class NoRedirect(Exception):
    """The customer stays at the wallet, because the client polls or the wallet never redirects."""


def find(backend: Backend, interaction_id: str, nonce: str) -> tuple[Grant, Interaction]:
    """Return the grant and interaction at `/interact/{id}/{nonce}`. Raises NoInteraction."""
    for grant in backend.state.grants.values():
        own = grant.interaction
        if own is not None and (own.id, own.nonce) == (interaction_id, nonce):
            return grant, own
    raise NoInteraction


def decide(backend: Backend, interact_url: str, *, approve: bool) -> str:
    """Choose on the consent page; return the client's URL to which the customer is redirected.

    Raises NoInteraction for an unknown URL, NoRedirect if the wallet does not redirect.
    """
    parts = urlsplit(interact_url).path.split("/")
    grant, interaction = find(backend, parts[-2], parts[-1])
    choose(backend, grant, interaction, approve=approve)
    return finish(backend, grant, interaction)


def obstacle(backend: Backend, grant: Grant, interaction: Interaction) -> str | None:
    """Return the reason why the customer can no longer decide, in Rafiki's words, or None."""
    if interaction.chosen or grant.state is GrantState.REVOKED:
        return "invalid interaction"
    if backend.time_at(grant.provider) >= interaction.expires_at:
        return "interaction expired"
    return None


def choose(backend: Backend, grant: Grant, interaction: Interaction, *, approve: bool) -> None:
    """Record the customer's first choice. Ignore a second choice, and any after the expiry."""
    if obstacle(backend, grant, interaction) is not None:
        return
    approved = approve and behaviour(backend, grant).consent is not Consent.DECLINE
    interaction.chosen = True
    interaction.chosen_at = backend.now()
    grant.state = GrantState.APPROVED if approved else GrantState.REJECTED


def finish(backend: Backend, grant: Grant, interaction: Interaction) -> str:
    """Return the URL that the customer is redirected to. Raises NoRedirect."""
    if interaction.finish_uri is None:
        raise NoRedirect
    if grant.state is GrantState.REVOKED or (
        not interaction.chosen and backend.time_at(grant.provider) >= interaction.expires_at
    ):
        return refusal(backend, grant, interaction)
    if behaviour(backend, grant).consent is Consent.NO_RETURN:
        raise NoRedirect
    if grant.state is GrantState.REJECTED:
        return _with_query(interaction.finish_uri, {"result": "grant_rejected"})
    if not interaction.chosen:
        return _with_query(interaction.finish_uri, {"result": "grant_invalid"})
    found = {"hash": _hash(backend, grant, interaction), "interact_ref": interaction.ref}
    return _with_query(interaction.finish_uri, found)


def refusal(backend: Backend, grant: Grant, interaction: Interaction) -> str:
    """Return the redirect URL if the customer opens an interaction too late or again.

    Raises NoRedirect.
    """
    if interaction.finish_uri is None:
        raise NoRedirect
    message = obstacle(backend, grant, interaction) or "invalid interaction"
    query = {"result": "invalid_interaction", "message": message}
    return _with_query(interaction.finish_uri, query)


def behaviour(backend: Backend, grant: Grant) -> Behaviour:
    """Return the behavior of the wallet whose consent is requested."""
    wallet = next((item["identifier"] for item in grant.access if "identifier" in item), "")
    return backend.behaviour(wallet)


def _hash(backend: Backend, grant: Grant, interaction: Interaction) -> str:
    provider = backend.providers[grant.provider]
    endpoint = f"{provider.auth_origin}/" if provider.rules.hash_over_root else provider.auth_server
    text = f"{interaction.client_nonce}\n{interaction.nonce}\n{interaction.ref}\n{endpoint}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _with_query(url: str, found: dict[str, str]) -> str:
    """Set query parameters like `URLSearchParams.set`, which re-encodes the existing ones."""
    parts = urlsplit(url)
    query = [
        pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] not in found
    ]
    encoded = urlencode([*query, *found.items()], safe="*").replace("~", "%7E")
    return urlunsplit(parts._replace(query=encoded))
