"""Pages for people: all wallets, an account's statement, its keys, and the consent page.

The pages are plain forms without scripts. There is no sign-in: anybody who can open the pages acts
as the customer.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from open_payments.signatures import SigningKey
from open_payments.transports import Response
from sandbox.wallets import answers, interaction, intervals, schemas
from sandbox.wallets.backend import Backend
from sandbox.wallets.behaviours import BEHAVIOURS
from sandbox.wallets.call import Call
from sandbox.wallets.interaction import NoInteraction, NoRedirect
from sandbox.wallets.schema import failure
from sandbox.wallets.state import Account, Grant, GrantState, Interaction, Money

_HEADERS: Final = {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    # With no-referrer, browsers would send "Origin: null" with the forms, which are then refused.
    "referrer-policy": "same-origin",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "frame-ancestors 'none'",
}
# Wallets that people open: their currencies with scales, and the greatest number of such wallets.
OPENED: Final = {"USD": ("USD", 2), "EUR": ("EUR", 2), "JPY": ("JPY", 0)}
OPENED_MAX: Final = 300
_IN_USE: Final = timedelta(hours=1)  # a wallet is not deleted within this time of its last payment
NAME_MAX: Final = 40  # characters
_KEY_MAX: Final = 256  # characters of a key's JSON; keys never expire
_TEMPLATES: Final = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
)


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new key pair: its id, and the private key (PEM, and as base64), which is shown once."""

    kid: str
    pem: str
    encoded: str


def answer(backend: Backend, call: Call) -> Response:
    """Return the page at the request's path."""
    if call.method == "POST" and not _same_origin(call):
        return answers.text(403, "Forbidden")
    match (call.method, call.segments()):
        case ("GET", []):
            return _start(backend)
        case ("POST", ["accounts"]):
            return _open(backend, call)
        case ("GET", ["account"]):
            return _account(backend, call)
        case ("GET", ["keys"]):
            return _keys(backend, call)
        case ("POST", ["keys"]):
            return _change_keys(backend, call)
        case (_, ["interact", interaction_id, nonce, *rest]):
            return _interact(backend, call, interaction_id, nonce, rest)
    return _missing(backend)


def _start(backend: Backend) -> Response:
    accounts = backend.state.accounts.values()
    grouped = [
        (
            provider,
            [
                each
                for each in accounts
                if each.opened_at is None and backend.provider_of(each.id) == provider
            ],
        )
        for provider in backend.providers.values()
    ]
    descriptions = {name: each.description for name, each in BEHAVIOURS.items()}
    return _page(
        backend, "start.html", providers=grouped, descriptions=descriptions, currencies=OPENED
    )


def _account(backend: Backend, call: Call) -> Response:
    account = backend.account(call.query.get("address", ""))
    if account is None:
        return _missing(backend)
    state = backend.state
    sent = [each for each in reversed(state.outgoing.values()) if each.wallet == account.id]
    received = [
        each
        for each in reversed(state.incoming.values())
        if each.wallet == account.id and not backend.has_vanished(each)
    ]
    return _page(
        backend,
        "account.html",
        account=account,
        provider=backend.provider_of(account.id),
        description=BEHAVIOURS[account.behaviour].description,
        sent=sent,
        received=received,
        receivers={each.receiver: _name_of(backend, each.receiver) for each in sent},
        now=backend.now(),
    )


def _open(backend: Backend, call: Call) -> Response:
    """Open a new wallet for anybody, because other shops may use the existing wallets.

    If there are OPENED_MAX wallets, the least recently used one is deleted first. If all were used
    within the last hour, the answer is 409.
    """
    form = _form(call)
    name = " ".join(form.get("name", "").split())[:NAME_MAX]
    asset = OPENED.get(form.get("currency", ""))
    if not name or asset is None or not name.isprintable():
        return answers.text(400, "A wallet needs a name and one of the currencies.")
    opened = [each for each in backend.state.accounts.values() if each.opened_at is not None]
    if len(opened) >= OPENED_MAX:
        idle = next(iter(backend.idle_accounts()), None)
        if idle is None or (idle.entries and idle.entries[-1].at + _IN_USE > backend.now()):
            return answers.text(409, "All wallets that there may be are in use. Try again later.")
        backend.delete_account(idle.id)
    provider = list(backend.providers.values())[-1]
    address = f"{provider.origin}/w-{backend.random_bytes(6).hex()}"
    balance = 10_000 * 10 ** asset[1]
    backend.add_account(Account(address, name, *asset, balance, opened_at=backend.now()))
    return _redirect(303, f"{_root(backend)}/account?{urlencode({'address': address})}")


# --- keys ---


def _keys(
    backend: Backend, call: Call, problem: str | None = None, generated: NewKey | None = None
) -> Response:
    account = backend.account(call.query.get("address", ""))
    if account is None:
        return _missing(backend)
    status = 400 if problem else 200
    return _page(
        backend, "keys.html", status, account=account, problem=problem, generated=generated
    )


def _change_keys(backend: Backend, call: Call) -> Response:
    account = backend.account(call.query.get("address", ""))
    if account is None:
        return _missing(backend)
    form = _form(call)
    if form.get("do") == "generate":
        return _keys(backend, call, generated=_generate(backend, account))
    try:
        jwk = json.loads(form.get("jwk", ""))
    except ValueError:
        return _keys(backend, call, "This is not valid JSON.")
    found = failure(jwk, schemas.JWK, "The key")
    if found is not None:
        return _keys(backend, call, f"{found}.")
    if len(json.dumps(jwk)) > _KEY_MAX:
        return _keys(backend, call, f"The key has more than {_KEY_MAX} characters.")
    backend.register_key(account.id, jwk)
    return _keys(backend, call)


def _generate(backend: Backend, account: Account) -> NewKey:
    raw = backend.random_bytes(32)
    key = SigningKey(backend.new_id(), raw)
    backend.register_key(account.id, key.jwk().members())
    pem = key.to_pem()
    return NewKey(key.key_id, pem, base64.b64encode(pem.encode()).decode())


# --- consent ---


def _interact(
    backend: Backend, call: Call, interaction_id: str, nonce: str, rest: list[str]
) -> Response:
    try:
        grant, own = interaction.find(backend, interaction_id, nonce)
    except NoInteraction:
        error = {"code": "unknown_interaction", "description": "unknown interaction"}
        return answers.ok({"error": error}, 400)
    path = f"{_root(backend)}/interact/{own.id}/{own.nonce}"
    try:
        match (call.method, rest):
            case ("GET", []):
                if own.chosen or grant.state is GrantState.REVOKED:
                    return _redirect(302, interaction.refusal(backend, grant, own))
                return _consent(backend, grant, own, path)
            case ("POST", []):
                approve = _form(call).get("choice") == "approve"
                interaction.choose(backend, grant, own, approve=approve)
                return _redirect(303, f"{path}/finish")
            case ("GET", ["finish"]):
                return _redirect(302, interaction.finish(backend, grant, own))
    except NoRedirect:
        return _page(
            backend,
            "done.html",
            202,
            provider=backend.providers[grant.provider],
            approved=grant.state in {GrantState.APPROVED, GrantState.ISSUED},
            client_name=own.client_name,
        )
    return _missing(backend)


def _consent(backend: Backend, grant: Grant, own: Interaction, path: str) -> Response:
    item = next(
        (each for each in grant.access if each["type"] == "outgoing-payment"), grant.access[0]
    )
    limits = item.get("limits", {})
    payer = backend.account(item.get("identifier", ""))
    receiver = backend.incoming_payment(limits.get("receiver", ""))
    receives = receiver.amount if receiver else None
    if "receiveAmount" in limits:
        receives = Money.of_json(limits["receiveAmount"])
    pays = item["type"] == "outgoing-payment" and "create" in item["actions"]
    interval = limits.get("interval")
    behaviour = interaction.behaviour(backend, grant)
    return _page(
        backend,
        "consent.html",
        provider=backend.providers[grant.provider],
        interaction=own,
        path=path,
        late=interaction.obstacle(backend, grant, own) is not None,
        payer=payer.public_name if payer else item.get("identifier", "no particular account"),
        pays=pays,
        most=Money.of_json(limits["debitAmount"]) if "debitAmount" in limits else None,
        receives=receives,
        often=intervals.frequency(interval) if interval else "once" if receiver else "in total",
        receiver=_name_of(backend, limits.get("receiver", "")) or "The receiver",
        description="" if behaviour is BEHAVIOURS["normal"] else behaviour.description,
    )


def _name_of(backend: Backend, receiver_url: str) -> str:
    """Return the name of the account of an incoming payment, or its URL if it is unknown."""
    payment = backend.state.incoming.get(receiver_url.rsplit("/", 1)[-1])
    return backend.state.accounts[payment.wallet].public_name if payment else receiver_url


def _same_origin(call: Call) -> bool:
    """Return whether a form comes from these pages. Tools, unlike browsers, send no Origin."""
    came = call.headers.get("origin")
    return came is None or call.origin == came or call.origin.startswith(f"{came}/")


def _form(call: Call) -> dict[str, str]:
    fields = parse_qs(call.raw.decode(errors="replace"), keep_blank_values=True)
    return {name: values[0] for name, values in fields.items()}


def _root(backend: Backend) -> str:
    """Return the path below which the pages are, "" if the pages have a host of their own."""
    return urlsplit(backend.pages_origin).path


def _page(backend: Backend, template: str, status: int = 200, **values: Any) -> Response:
    html = _TEMPLATES.get_template(template).render(values, root=_root(backend))
    return Response(status, _HEADERS, html.encode())


def _redirect(status: int, location: str) -> Response:
    return Response(status, {"location": location, "cache-control": "no-store"}, b"")


def _missing(backend: Backend) -> Response:
    return _page(backend, "missing.html", 404)
