"""Parts that all functions with pages share: security headers, forms, redirects and callbacks.

`PageHeaders` adds the headers to every response, errors and redirects included. Each function has
its own content security policy with the placeholder `{nonce}`, so that inline styles and scripts
run only with the nonce of their response (`nonce_of`). A policy can also have the placeholder
`{pictures}` for further origins from which the response's page shows pictures (`allow_pictures`).
functions/api does not import this module.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from checkout.domain.ground.errors import CallbackInvalid, ParameterInvalid
from checkout.domain.ground.ids import RandomBytes
from checkout.web import BODY_MAX, PARAM_MAX, body_bytes

FORM: Final = "application/x-www-form-urlencoded"
_NONCE_BYTES: Final = 16
# Two years, for this host only, because the header must not affect the merchant's other hosts.
_TRANSPORT_SECURITY: Final = "max-age=63072000"


@dataclass(frozen=True, slots=True)
class Moment:
    """A time on a page: `iso` for machines, `text` in UTC for people."""

    iso: str
    text: str


@dataclass(frozen=True, slots=True)
class PageHeaders:
    """Middleware that adds the headers of a page; it must be the outermost.

    `policy` is the Content-Security-Policy with the placeholders `{nonce}` and `{pictures}`, and
    `referrer` is the Referrer-Policy.
    """

    app: ASGIApp
    random_bytes: RandomBytes
    policy: str
    referrer: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        nonce = base64.b64encode(self.random_bytes(_NONCE_BYTES)).decode()
        state = scope.setdefault("state", {})
        state |= {"nonce": nonce, "headers": {}, "pictures": "", "policy": self.policy}

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["content-security-policy"] = state["policy"].format(
                    nonce=nonce, pictures=state["pictures"]
                )
                headers["referrer-policy"] = self.referrer
                headers["x-robots-tag"] = "noindex"
                if scope.get("scheme") == "https":  # not allowed over http (RFC 6797, 7.2)
                    headers["strict-transport-security"] = _TRANSPORT_SECURITY
                if message["status"] == 200:
                    headers.update(state["headers"])
            await send(message)

        await self.app(scope, receive, send_with_headers)


def nonce_of(request: Request) -> str:
    """Return the nonce of the response's policy."""
    found: str = request.scope["state"]["nonce"]
    return found


def allow_pictures(request: Request, origins: Iterable[str]) -> None:
    """Allow pictures from these origins (as returned by `urls.origin`) on the response's page."""
    request.scope["state"]["pictures"] = "".join(f" {each}" for each in dict.fromkeys(origins))


def use_policy(request: Request, policy: str) -> None:
    """Use this Content-Security-Policy, which contains `{nonce}`, for the response.

    The policy is also used if the response is an error.
    """
    request.scope["state"]["policy"] = policy


def on_success_header(request: Request, header: str, value: str) -> None:
    """Override the response header `header` if the response is a 200."""
    request.scope["state"]["headers"][header] = value


def see_other(path: str) -> Response:
    """Return a 303 to `path`, which the browser follows with GET."""
    return RedirectResponse(path, 303)


def media_type(request: Request) -> str:
    """Return the media type of the body, in lower case and without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def form_fields(request: Request, *, most: int = BODY_MAX) -> dict[str, str]:
    """Return the fields of a URL-encoded form; bytes that are not UTF-8 become U+FFFD.

    Raise ParameterInvalid for a duplicate field, and BodyTooLarge beyond `most` bytes.
    """
    raw = (await body_bytes(request, most=most)).decode("utf-8", "replace")
    fields: dict[str, str] = {}
    for name, value in parse_qsl(raw, keep_blank_values=True, errors="replace"):
        if name in fields:
            raise ParameterInvalid("This field is given twice.", param=name[:PARAM_MAX])
        fields[name] = value
    return fields


_NAMES: Final = ("interact_ref", "hash", "result")


@dataclass(frozen=True, slots=True)
class GrantCallback:
    """A wallet's callback: a reference with its hash (RFC 9635, 4.2.1), or an unsigned `result`."""

    interact_ref: str = ""
    hash: str = ""
    result: str | None = None


def callback_of(request: Request) -> GrantCallback:
    """Return the callback's parameters; `result` is ignored if a reference and its hash are given.

    Raise CallbackInvalid for a missing or doubled parameter.
    """
    query = request.query_params
    if any(len(query.getlist(name)) > 1 for name in _NAMES):
        raise CallbackInvalid("The wallet's answer has a parameter twice.")
    interact_ref, presented = query.get("interact_ref", ""), query.get("hash", "")
    if interact_ref and presented:
        return GrantCallback(interact_ref=interact_ref, hash=presented)
    if interact_ref or presented or not query.get("result"):
        raise CallbackInvalid("The wallet's answer is incomplete.")
    return GrantCallback(result=query["result"])
