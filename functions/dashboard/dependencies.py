"""FastAPI dependencies of the routes.

They give a route its request, with the services, the browser's visit, the signed-in actor (member
or API key) and the verified form. Tests replace the services with `app.dependency_overrides`. A
form is accepted only if its Origin is ours and its token matches the browser's cookie.

FastAPI inspects each dependency of each route while a Lambda function starts. So a route has only
one dependency, which calls the others as functions.

Forms with a file (multipart/form-data, RFC 7578) are parsed by code in this module. It keeps every
byte of a part, and takes time linear in the form's length. The standard library's mail parser would
follow nested parts to any depth.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, Generic, TypeVar

from fastapi import Depends, Request

from checkout import wiring
from checkout.client_address import client_of
from checkout.domain.ground.errors import (
    ContentTypeInvalid,
    IdempotencyKeyReused,
    ParameterInvalid,
    PermissionMissing,
)
from checkout.domain.ground.grammar import NONCE
from checkout.domain.ground.ids import new_nonce
from checkout.domain.ground.providers import name_of
from checkout.domain.ground.typed_amount import typed_amount
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.people import RIGHTS, Actor, Right, may
from checkout.domain.merchant.record import Merchant
from checkout.flows import audit
from checkout.flows.idempotency import Posted, Reserve, answer, fingerprint_of, json_text
from checkout.flows.people import sign_in
from checkout.flows.people.sign_in import SignedIn
from checkout.pages import FORM, form_fields, media_type
from checkout.services import DashboardServices
from checkout.web import Model, body_bytes, validated
from dashboard.texts import KEY_MOVES_NO_MONEY, USED_ALREADY
from open_payments.urls import split

_BOUNDARY: Final = re.compile(r"boundary=\"?([0-9A-Za-z'()+_,./:=?-]{1,70})\"?")
_NAME: Final = re.compile(rb'content-disposition: *form-data; *name="([^"\r\n]*)"', re.IGNORECASE)
_HEAD_MAX: Final = 1_024  # bytes of a part's headers in which the field's name is searched


def parts(content_type: str, raw: bytes) -> dict[str, bytes]:
    """Return the fields of a multipart form by name. Raise ParameterInvalid if it is malformed."""
    boundary = _BOUNDARY.search(content_type)
    if boundary is None:
        raise ParameterInvalid("The Content-Type of the form has no boundary.")
    found: dict[str, bytes] = {}
    for part in (b"\r\n" + raw).split(b"\r\n--" + boundary[1].encode())[1:]:
        head, _, content = part.partition(b"\r\n\r\n")
        named = _NAME.search(head[:_HEAD_MAX])
        if named is None:
            continue  # the closing boundary
        name = named[1].decode("utf-8", "replace")
        if name in found:
            raise ParameterInvalid("A field is given twice.")
        found[name] = content
    return found


T = TypeVar("T")
AnyRequest = TypeVar("AnyRequest", bound="OpenRequest")

PREFIX: Final = "/dashboard"
FORM_WITH_FILE: Final = "multipart/form-data"
TOKEN_FIELD: Final = "form_token"
NAME_FIELD: Final = "form_name"
FILE_FIELD: Final = "logo"  # the field of the only form with a file


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A browser, before the sign-in is checked.

    `home` is the path of the dashboard. `token` comes from the browser's cookie. If `fresh` is
    true, the browser had no such cookie, and the response sets one. `form_name` is new in each
    request, so that each form on a page acts only once (`PageRequest.once`).
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


async def visit(injected: Injected, request: Request) -> BrowserSession:
    """Return the visit, and store it in the request, so that the page can send cookie and token.

    Every route of the dashboard depends on this function (`app.py`).

    Because of the prefix `__Host-`, browsers accept the cookie only from our host and with TLS.
    Under `make dev` there is no TLS, so the cookie has no prefix.
    """
    base = split(injected.base_url)
    secure = base.scheme == "https"
    cookie = "__Host-dashboard" if secure else "dashboard"
    token = request.cookies.get(cookie, "")
    fresh = not sign_in.is_token(token)
    if fresh:
        token = sign_in.new_token(injected.random_bytes)
    name = new_nonce(injected.random_bytes)
    found = BrowserSession(f"{base.path}/dashboard", cookie, secure, token, fresh, name)
    request.state.visit = found
    return found


def signed_in(injected: DashboardServices, request: Request) -> SignedIn:
    """Return the browser's sign-in, and store its actor and merchant for the navigation bar.

    Raise ApiKeyMissing, ApiKeyInvalid, and PermissionMissing if the actor lacks the right that the
    route needs. Every route that needs a sign-in depends on this function.
    """
    visited: BrowserSession = request.state.visit
    found = sign_in.signed_in(injected, None if visited.fresh else visited.token)
    merchant = injected.known_merchants.get(found.actor.merchant)
    request.state.key = found.actor
    request.state.owner = (merchant, _provider(injected, merchant)) if merchant else None
    _require_right(request, found.actor)
    request.state.services = injected
    return found


def _require_right(request: Request, actor: Actor) -> None:
    """Raise PermissionMissing unless the actor has the right that the route declares.

    A route without a declared right is refused.
    """
    path = request.scope["route"].path.removeprefix(PREFIX)
    needed: Right | None = request.app.state.needed.get((request.method, path))
    if needed in (Right.REFUND, Right.OWN) and lacks_scope(actor):
        raise PermissionMissing(KEY_MOVES_NO_MONEY)
    if needed is None or not may(actor, needed):
        raise PermissionMissing(
            f"Your role, {actor.role}, does not allow this. Ask an owner of your shop."
        )


def lacks_scope(actor: Actor) -> bool:
    """Return whether the actor is a key with the rights of an owner, but without scope `refund`."""
    return Right.OWN in RIGHTS[actor.role] and not actor.moves_money


def _provider(injected: DashboardServices, merchant: Merchant) -> str:
    """Return the name of the wallet's provider if our pages offer it, otherwise its host."""
    wallet, offered = merchant.wallet_address, (*merchant.providers, *injected.providers)
    return name_of(wallet, offered) or split(wallet).authority or wallet


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """The `place` (path) to show after a form, and the result of the form.

    `made` is the result, or None if an earlier request with the same form has made the result.
    """

    place: str
    made: T | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRequest:
    """A request from a browser that does not have to be signed in.

    `form` has the fields of the form, without its token and name; `file` is the form's file.
    """

    services: DashboardServices
    http: Request
    visit: BrowserSession
    form: dict[str, str] = field(default_factory=dict, repr=False)
    file: bytes = field(default=b"", repr=False)

    @property
    def client(self) -> str:
        """The client's address or network, by which requests are limited."""
        return client_of(self.http, self.services.edge_secret)

    def read(self, model: type[Model]) -> Model:
        """Return the form's fields as `model`. Raise the error for the first wrong field."""
        return validated(model, self.form)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest(OpenRequest):
    """A request from a signed-in API key or member (`key`) with the right that the route needs."""

    signed_in: SignedIn

    @property
    def key(self) -> Actor:
        return self.signed_in.actor

    def note(self, action: Action, target: str | None = None) -> None:
        """Write an entry to the audit log, immediately after the action."""
        audit.note(self.services, self.key, action, target)

    def amount(self, name: str) -> int:
        """Return a typed amount in minor units of the shop's currency. Raise ParameterInvalid."""
        typed, code = self.form.get(name, ""), self.key.asset_code
        return typed_amount(typed, currency=code, wallet_scale=self.key.asset_scale, param=name)

    def once(self, act: Callable[[Reserve[T] | None], T], place: Callable[[T], str]) -> Done[T]:
        """Call `act` only once for each rendered form, which has a name of its own.

        `place` returns the path of the page to show, given the result of `act`. If the form is sent
        again with the same fields, `act` is not called, and the place is the same as before. A form
        without a name calls `act` each time. Raise IdempotencyKeyReused if the form was already
        sent with other fields, and the errors of `act`.
        """
        made: T | None = None

        def make(reserve: Reserve[T] | None) -> T:
            nonlocal made
            made = act(reserve)
            return made

        path, name = self.http.url.path, self.http.state.form_name
        named = NONCE.fullmatch(name) is not None
        posted_form: Posted[T] = Posted(
            merchant=self.key.merchant,
            key=f"form-{fingerprint_of(path, name)}" if named else None,
            # The name is hashed with the fields but not stored. So nobody can find the fields by
            # hashing guesses.
            fingerprint=fingerprint_of(path, [name, self.form]),
            render=lambda done: json_text(place(done)),  # an erasure parses this as JSON
            status=303,
        )
        try:
            done = answer(self.services, posted_form, make)
        except IdempotencyKeyReused:
            raise IdempotencyKeyReused(USED_ALREADY) from None
        return Done(json.loads(done.body), made)


async def open_request(injected: Injected, http: Request) -> OpenRequest:
    """Return the request of a page without a sign-in."""
    return OpenRequest(services=injected, http=http, visit=http.state.visit)


async def page_request(injected: Injected, http: Request) -> PageRequest:
    """Return the request of a page. Raise as `signed_in` does."""
    found = signed_in(injected, http)
    return PageRequest(services=injected, http=http, visit=http.state.visit, signed_in=found)


OpenPage = Annotated[OpenRequest, Depends(open_request)]
Page = Annotated[PageRequest, Depends(page_request)]


async def posted_fields(request: OpenRequest) -> dict[str, str]:
    """Return the fields of a form. The caller still has to verify the form's token.

    Store the form's name in the request, for `PageRequest.once`. Raise ParameterInvalid,
    ContentTypeInvalid, BodyTooLarge.
    """
    _require(request.http, request.services, FORM)
    fields = await form_fields(request.http)
    request.http.state.form_name = fields.pop(NAME_FIELD, "")
    return fields


def verify_token(visited: BrowserSession, fields: dict[str, str]) -> None:
    """Remove the token from `fields`. Raise ParameterInvalid unless it belongs to this browser."""
    _verify(visited, fields.pop(TOKEN_FIELD, "").encode())


async def _with_form(request: AnyRequest) -> AnyRequest:
    fields = await posted_fields(request)
    verify_token(request.visit, fields)
    return replace(request, form=fields)


async def open_form(injected: Injected, http: Request) -> OpenRequest:
    """Return the request of a form without a sign-in. Raise as `posted_fields` does."""
    return await _with_form(await open_request(injected, http))


async def form_request(injected: Injected, http: Request) -> PageRequest:
    """Return the request of a form. Raise as `page_request` and `posted_fields` do."""
    return await _with_form(await page_request(injected, http))


async def form_with_file(injected: Injected, http: Request) -> PageRequest:
    """Return the request of a form that can contain a file. Raise as `form_request` does."""
    request = await page_request(injected, http)
    if media_type(request.http) == FORM:
        request = await _with_form(request)
        return replace(request, file=request.form.pop(FILE_FIELD, "").encode())
    _require(request.http, request.services, FORM_WITH_FILE)
    fields = parts(request.http.headers["content-type"], await body_bytes(request.http))
    _verify(request.visit, fields.pop(TOKEN_FIELD, b""))
    fields.pop(NAME_FIELD, None)
    file = fields.pop(FILE_FIELD, b"")
    form = {name: value.decode("utf-8", "replace") for name, value in fields.items()}
    return replace(request, form=form, file=file)


OpenForm = Annotated[OpenRequest, Depends(open_form)]
Form = Annotated[PageRequest, Depends(form_request)]
FormWithFile = Annotated[PageRequest, Depends(form_with_file)]


def _require(request: Request, injected: DashboardServices, wanted: str) -> None:
    base = split(injected.base_url)
    if request.headers.get("origin") != f"{base.scheme}://{base.authority}":
        raise ParameterInvalid(f"Forms are accepted from {base.scheme}://{base.authority} only.")
    if media_type(request) != wanted:
        raise ContentTypeInvalid(f"Send the form as {wanted}.")


def _verify(visited: BrowserSession, presented: bytes) -> None:
    if visited.fresh:
        raise ParameterInvalid(
            "Your browser did not send this page's cookie. Allow cookies for this site, reload the "
            "page and try again."
        )
    if not hmac.compare_digest(presented, visited.form_token.encode()):
        raise ParameterInvalid("This page has expired. Reload it and try again.")
