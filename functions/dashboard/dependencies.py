"""Dependencies of the routes: services, the visitor, the signed-in key, and verified forms.

Tests replace the services with `app.dependency_overrides`. A form is accepted only if its Origin is
ours and its token follows from the browser's cookie.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Annotated, Final, Generic, TypeVar

from fastapi import Depends, Request

from checkout import wiring
from checkout.domain.errors import ContentTypeInvalid, IdempotencyKeyReused, ParameterInvalid
from checkout.domain.grammar import NONCE
from checkout.domain.ids import new_nonce
from checkout.domain.merchant import Merchant
from checkout.domain.people import Actor
from checkout.domain.providers import name_of
from checkout.flows.idempotency import Posted, Reserve, answer, fingerprint_of, json_text
from checkout.flows.merchant import needs, sign_in
from checkout.flows.merchant.sign_in import SignedIn
from checkout.open_payments.urls import split
from checkout.pages import FORM, form_fields, media_type
from checkout.ports.services import DashboardServices
from checkout.web import body_bytes
from dashboard import rights
from dashboard.multipart import parts
from dashboard.texts import OVERLAPS, USED_ALREADY

T = TypeVar("T")

FORM_WITH_FILE: Final = "multipart/form-data"
TOKEN_FIELD: Final = "form_token"
NAME_FIELD: Final = "form_name"


@dataclass(frozen=True, slots=True)
class Owner:
    """The merchant of the signed-in key, for the head of each page.

    `provider` is that of the wallet: its name if pages offer it, or its host.
    """

    name: str
    wallet: str
    currency: str
    provider: str


@dataclass(frozen=True, slots=True)
class Visit:
    """A browser, before the sign-in is checked.

    `home` is the path of the dashboard. `token` is in the browser's cookie, or will be if `fresh`.
    `form_name` is new in each request: the forms of its page make something once (`once`).
    """

    home: str
    cookie: str
    secure: bool
    token: str = field(repr=False)
    fresh: bool
    form_name: str

    @property
    def form_token(self) -> str:
        return sign_in.form_token(self.token)


async def services() -> DashboardServices:
    """Return the services of this process."""
    return wiring.dashboard_services()


Injected = Annotated[DashboardServices, Depends(services)]


async def visit(injected: Injected, request: Request) -> Visit:
    """Return the visit, and keep it for the pages, which send its cookie and its form token.

    The prefix `__Host-` makes browsers refuse the cookie from any other host and without TLS; the
    local world has no TLS.
    """
    base = split(injected.base_url)
    secure = base.scheme == "https"
    cookie = "__Host-dashboard" if secure else "dashboard"
    token = request.cookies.get(cookie, "")
    fresh = not sign_in.is_token(token)
    if fresh:
        token = sign_in.new_token(injected.random_bytes)
    name = new_nonce(injected.random_bytes)
    found = Visit(f"{base.path}/dashboard", cookie, secure, token, fresh, name)
    request.state.visit = found
    return found


Visited = Annotated[Visit, Depends(visit)]


async def signed_in(injected: Injected, visited: Visited, request: Request) -> SignedIn:
    """Return the browser's sign-in, and keep its actor and merchant for the navigation bar.

    Raise ApiKeyMissing, ApiKeyInvalid, and PermissionMissing without the right that the route
    needs. Every route that needs a sign-in comes through here.
    """
    found = sign_in.signed_in(injected, None if visited.fresh else visited.token)
    merchant = injected.known_merchants.get(found.actor.merchant)
    request.state.key = found.actor
    request.state.owner = _owner(injected, merchant) if merchant else None
    rights.require(request, found.actor)
    request.state.needs = partial(needs.of, injected, found.actor)
    request.state.session = injected.sessions.get
    return found


def _owner(injected: DashboardServices, merchant: Merchant) -> Owner:
    wallet = merchant.wallet_address
    offered = (*merchant.providers, *injected.providers)
    return Owner(
        name=merchant.name,
        wallet=wallet,
        currency=merchant.asset_code,
        provider=name_of(wallet, offered) or split(wallet).authority or wallet,
    )


async def signed_in_key(found: Annotated[SignedIn, Depends(signed_in)]) -> Actor:
    """Return the key or member with which the browser is signed in."""
    return found.actor


async def posted(injected: Injected, visited: Visited, request: Request) -> dict[str, str]:
    """Return the fields of our own form, without its token and name.

    Raise ParameterInvalid, ContentTypeInvalid, BodyTooLarge.
    """
    fields = await posted_fields(injected, request)
    verify_token(visited, fields)
    return fields


async def posted_fields(injected: DashboardServices, request: Request) -> dict[str, str]:
    """Return the fields of a form whose token is still to be verified. Raise as `posted` does.

    The form's name is kept with the request, for `once`.
    """
    _require(request, injected, FORM)
    fields = await form_fields(request)
    request.state.form_name = fields.pop(NAME_FIELD, "")
    return fields


def verify_token(visited: Visit, fields: dict[str, str]) -> None:
    """Take the token out of `fields`. Raise ParameterInvalid unless it is this browser's."""
    _verify(visited, fields.pop(TOKEN_FIELD, "").encode())


async def uploaded(injected: Injected, visited: Visited, request: Request) -> dict[str, bytes]:
    """Return the fields of a form that may have a file. Raise as `posted` does."""
    if media_type(request) == FORM:
        return {
            name: value.encode()
            for name, value in (await posted(injected, visited, request)).items()
        }
    _require(request, injected, FORM_WITH_FILE)
    fields = parts(request.headers["content-type"], await body_bytes(request))
    _verify(visited, fields.pop(TOKEN_FIELD, b""))
    fields.pop(NAME_FIELD, None)
    return fields


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """What a form has made, and its place. It is None if another request with this form made it."""

    place: str
    made: T | None


def once(
    services: DashboardServices,
    request: Request,
    key: Actor,
    form: dict[str, str],
    act: Callable[[Reserve[T] | None], T],
    place: Callable[[T], str],
) -> Done[T]:
    """Do what a verified form asks for, once for the name with which its page was rendered.

    `place` names what `act` has made. A form that was sent before, with the same fields, gets the
    same place. A form without a name is done each time. Raise IdempotencyKeyReused if it was sent
    with other fields, and the errors of `act`.
    """
    made: T | None = None

    def make(reserve: Reserve[T] | None) -> T:
        nonlocal made
        made = act(reserve)
        return made

    path, name = request.url.path, request.state.form_name
    named = NONCE.fullmatch(name) is not None
    posted_form: Posted[T] = Posted(
        merchant=key.merchant,
        key=f"form-{fingerprint_of(path, name)}" if named else None,
        # The name, which is not stored, keeps what was typed from being guessed by it.
        fingerprint=fingerprint_of(path, [name, form]),
        render=lambda done: json_text(place(done)),  # erasing a customer reads JSON
        status=303,
    )
    try:
        done = answer(services, posted_form, make)
    except IdempotencyKeyReused:
        raise IdempotencyKeyReused(USED_ALREADY) from None
    return Done(json.loads(done.body), made)


def overlap_of(form: dict[str, str]) -> timedelta:
    """Return the time for which the replaced key or secret stays valid. Raise ParameterInvalid."""
    typed = form.get("overlap", "")
    if typed not in OVERLAPS:
        raise ParameterInvalid("Choose how long the old one stays valid.", param="overlap")
    return timedelta(seconds=int(typed))


def _require(request: Request, injected: DashboardServices, wanted: str) -> None:
    base = split(injected.base_url)
    if request.headers.get("origin") != f"{base.scheme}://{base.authority}":
        raise ParameterInvalid(f"Forms are accepted from {base.scheme}://{base.authority} only.")
    if media_type(request) != wanted:
        raise ContentTypeInvalid(f"Send the form as {wanted}.")


def _verify(visited: Visit, presented: bytes) -> None:
    if visited.fresh:
        raise ParameterInvalid(
            "Your browser did not send this page's cookie. Allow cookies for this site, reload the "
            "page and try again."
        )
    if not hmac.compare_digest(presented, visited.form_token.encode()):
        raise ParameterInvalid("This page has expired. Reload it and try again.")


SignIn = Annotated[SignedIn, Depends(signed_in)]
Key = Annotated[Actor, Depends(signed_in_key)]
Form = Annotated[dict[str, str], Depends(posted)]
FormWithFile = Annotated[dict[str, bytes], Depends(uploaded)]
