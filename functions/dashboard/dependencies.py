"""What the routes are given: the services, the visitor, who is signed in, and forms that were
proven to be ours. Tests put their own services in with `app.dependency_overrides`.

Refuses a form from anywhere else: its Origin must be ours, and its token must follow from the
browser's cookie.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import Annotated, Final
from urllib.parse import parse_qsl

from fastapi import Depends, Request

from checkout import wiring
from checkout.domain.errors import ContentTypeInvalid, ParameterInvalid
from checkout.flows.merchant import sign_in
from checkout.flows.merchant.sign_in import SignedIn
from checkout.open_payments.urls import split
from checkout.ports.services import DashboardServices
from checkout.web import PARAM_MAX, body_bytes
from dashboard.multipart import parts

FORM: Final = "application/x-www-form-urlencoded"
FORM_WITH_FILE: Final = "multipart/form-data"
TOKEN_FIELD: Final = "form_token"


@dataclass(frozen=True, slots=True)
class Visit:
    """A browser before it is known whose: `home` is the dashboard's path; `token` what its cookie
    holds, or is to be given (`fresh`).
    """

    home: str
    cookie: str
    secure: bool
    token: str = field(repr=False)
    fresh: bool

    @property
    def form_token(self) -> str:
        return sign_in.form_token(self.token)


async def services() -> DashboardServices:
    return wiring.dashboard_services()


Injected = Annotated[DashboardServices, Depends(services)]


async def visit(injected: Injected, request: Request) -> Visit:
    """`__Host-` makes browsers refuse the cookie from anywhere but this host over TLS; the local
    world has no TLS.
    """
    base = split(injected.base_url)
    secure = base.scheme == "https"
    cookie = "__Host-dashboard" if secure else "dashboard"
    token = request.cookies.get(cookie, "")
    fresh = not sign_in.is_token(token)
    if fresh:
        token = sign_in.new_token(injected.random_bytes)
    found = Visit(f"{base.path}/dashboard", cookie, secure, token, fresh)
    request.state.visit = found
    return found


Visited = Annotated[Visit, Depends(visit)]


async def signed_in(injected: Injected, visited: Visited, request: Request) -> SignedIn:
    token = None if visited.fresh else visited.token
    request.state.who = sign_in.signed_in(injected, token)
    found: SignedIn = request.state.who
    return found


async def posted(injected: Injected, visited: Visited, request: Request) -> dict[str, str]:
    """A form's fields, without its token. Raises ParameterInvalid, ContentTypeInvalid,
    BodyTooLarge.
    """
    _require(request, injected, FORM)
    fields = form_fields(await body_bytes(request))
    request.state.fields = fields
    _prove(visited, fields.pop(TOKEN_FIELD, "").encode())
    return fields


async def uploaded(injected: Injected, visited: Visited, request: Request) -> dict[str, bytes]:
    """As `posted`, of a form with a file."""
    _require(request, injected, FORM_WITH_FILE)
    fields = parts(request.headers["content-type"], await body_bytes(request))
    _prove(visited, fields.pop(TOKEN_FIELD, b""))
    return fields


def _require(request: Request, injected: DashboardServices, media_type: str) -> None:
    base = split(injected.base_url)
    if request.headers.get("origin") != f"{base.scheme}://{base.authority}":
        raise ParameterInvalid(f"Forms are taken from {base.scheme}://{base.authority} only.")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != media_type:
        raise ContentTypeInvalid(f"Send the form as {media_type}.")


def _prove(visited: Visit, presented: bytes) -> None:
    if visited.fresh or not hmac.compare_digest(presented, visited.form_token.encode()):
        raise ParameterInvalid("This page was open for too long. Reload it and try again.")


def form_fields(raw: bytes) -> dict[str, str]:
    """What is not UTF-8 becomes U+FFFD. Raises ParameterInvalid for a doubled field."""
    pairs = parse_qsl(raw.decode("utf-8", "replace"), keep_blank_values=True, errors="replace")
    fields = dict(pairs)
    if len(fields) != len(pairs):
        twice = next(name for name, _ in pairs if [n for n, _ in pairs].count(name) > 1)
        raise ParameterInvalid("This field is given twice.", param=twice[:PARAM_MAX])
    return fields


Who = Annotated[SignedIn, Depends(signed_in)]
Form = Annotated[dict[str, str], Depends(posted)]
FormWithFile = Annotated[dict[str, bytes], Depends(uploaded)]
