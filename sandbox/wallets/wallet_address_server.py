"""Wallet address server: an account's public document and keys, without authorization."""

from __future__ import annotations

from open_payments.transports import Response
from sandbox.wallets import answers
from sandbox.wallets.backend import Backend
from sandbox.wallets.call import Call
from sandbox.wallets.provider import Provider
from sandbox.wallets.state import Account

_JSON_TYPES = {"application/json", "application/*", "*/*"}


def answer(backend: Backend, provider: Provider, call: Call) -> Response:
    """Return the document or keys of a wallet address, or its redirect to another provider.

    The path's case and a trailing slash are ignored.
    """
    if call.method not in {"GET", "HEAD"}:
        raise answers.plain(404, "Not Found")
    if not _accepts_json(call.headers.get("accept", "*/*")):
        raise answers.plain(406, "Not Acceptable")
    path = call.path.removesuffix("/").lower()
    wanted = f"{provider.origin}{path.removesuffix('/jwks.json')}"
    account = backend.account(wanted)
    if account is None or backend.is_gone(account.id):
        raise answers.plain(404, "Not Found")
    backend.linger(account.id)
    if path.endswith("/jwks.json"):
        return answers.ok({"keys": account.keys})
    name = backend.behaviour(account.id).redirects_to
    for other in backend.state.accounts.values() if name else ():
        if other.id.endswith(f"/{name}") and backend.provider_of(other.id) != provider:
            return Response(302, {"location": other.id}, b"")
    return answers.ok(_document(provider, account))


def _document(provider: Provider, account: Account) -> dict[str, str | int]:
    return {
        "id": account.id,
        "publicName": account.public_name,
        "assetCode": account.asset_code,
        "assetScale": account.asset_scale,
        "authServer": provider.auth_server,
        "resourceServer": provider.resource_server,
    }


def _accepts_json(accept: str) -> bool:
    return any(item.split(";")[0].strip().lower() in _JSON_TYPES for item in accept.split(","))
