"""Render pages from templates, and errors as pages.

All text is escaped, and no attribute contains script or style. Templates receive stored records,
with texts and sums about them. The grants and tokens in a record are encrypted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from markupsafe import Markup
from starlette.routing import Match

from checkout import wiring
from checkout.domain.ground.errors import CheckoutError, RateLimited
from checkout.domain.ground.json_values import timestamp
from checkout.domain.merchant.people import Actor, rights_of
from checkout.domain.session.record import Session
from checkout.flows.notices import ActionItems, action_items
from checkout.pages import nonce_of, see_other
from checkout.templates import templates
from checkout.web import ErrorResponse, status_of
from dashboard.banner import Banner, banner_of
from dashboard.dependencies import PREFIX, BrowserSession, lacks_scope
from dashboard.texts import KEY_MOVES_NO_MONEY

_TEMPLATES: Final = templates(Path(__file__).parent / "templates")
FIRST: Final = "/overview"  # the page after a sign-in, if the browser requested no other page
# After a sign-in, the browser is redirected only to a path that matches this pattern.
_NEXT: Final = re.compile(r"(?:/[A-Za-z0-9_-]+)*(?:\?[A-Za-z0-9_=&%.+~-]*)?")


def _time(at: datetime, zone: str = "") -> Markup:
    """Return a time as an HTML element. The page's script shows it in the reader's time zone."""
    text = f"{at.day} {at:%b %Y, %H:%M:%S}{zone}"
    return Markup('<time datetime="{}">{}</time>').format(timestamp(at), text)


_TEMPLATES.globals |= {"time": _time, "when": partial(_time, zone=" UTC")}


def page(
    request: Request,
    template: str,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
    **values: Any,
) -> Response:
    """Render `template` with these values.

    The value `section` is the path of the page's entry in the navigation bar. By default the page
    has the banner of the cases that need a person. A page that shows these cases itself gives its
    own value for `needs`, or None.
    """
    visit: BrowserSession | None = getattr(request.state, "visit", None)
    key: Actor | None = getattr(request.state, "key", None)
    context = {
        "nonce": nonce_of(request),
        "test_wallets": wiring.test_wallets(),
        "home": visit.home if visit else None,
        "form_token": visit.form_token if visit else "",
        "form_name": visit.form_name if visit else "",
        "sections": request.app.state.sections if key else (),
        "section": None,
        "who": key.label if key else None,
        "may": rights_of(key) if key else (),
        "no_money": KEY_MOVES_NO_MONEY if key and lacks_scope(key) else None,
        "needs": _strip(request) if key and "needs" not in values else None,
        "owner": getattr(request.state, "owner", None),
        **values,
    }
    html = _TEMPLATES.get_template(template).render(context)
    response = HTMLResponse(html, status, headers)
    if visit is not None and visit.fresh:
        set_cookie(response, visit, visit.token)
    return response


def wait_page(request: Request, seconds: int) -> Response:
    """Return a page that reloads this address after `seconds`, which asks the wallet again."""
    again = f"{request.url.path}?{request.url.query}"
    return page(request, "refund_wait.html", section="", seconds=seconds, again=again)


def strip(request: Request) -> ActionItems | None:
    """Return the cases that need a person, or None if they cannot be read.

    The cases are read once for each request. If they cannot be read, the page has no banner.
    """
    if not hasattr(request.state, "found"):
        try:
            request.state.found = action_items(request.state.services, request.state.key)
        except CheckoutError:
            request.state.found = None
    found: ActionItems | None = request.state.found
    return found


def _strip(request: Request) -> Banner | None:
    found = strip(request) if hasattr(request.state, "services") else None
    return banner_of(found, partial(session_of, request)) if found else None


def session_of(request: Request, session_id: str) -> Session | None:
    """Return a session that needs a person, or None if the session cannot be read now."""
    try:
        found: Session | None = request.state.services.sessions.get(session_id)
    except CheckoutError:
        return None
    return found


def see(visit: BrowserSession, path: str = "") -> Response:
    """Return a 303 to `path` under the dashboard."""
    return see_other(visit.home + path)


def set_cookie(response: Response, visit: BrowserSession, token: str) -> None:
    """Set the browser's cookie."""
    response.set_cookie(visit.cookie, token, secure=visit.secure, httponly=True, samesite="lax")


def safe_next(path: str) -> str:
    """Return `path` if it is a path under the dashboard, otherwise ""."""
    return path if _NEXT.fullmatch(path) else ""


def show_again(error: CheckoutError, show: Callable[..., Response], **given: Any) -> Response:
    """Return the page of a rejected form: `show(**given)` with the reason in `alert`.

    If there were too many requests, the response has Retry-After, in seconds. Instead of the page,
    raise `error` itself if the service has failed or the page cannot be rendered.
    """
    status = status_of(error)
    if status >= 500:
        raise error
    try:
        response = show(**given, alert=error.message, status=status)
    except CheckoutError:
        raise error from None
    if isinstance(error, RateLimited):
        response.headers["Retry-After"] = str(error.retry_after)
    return response


def render_problem(request: Request, problem: ErrorResponse) -> Response:
    """Return the response to an error: a redirect to the sign-in for a 401, or an error page."""
    visit: BrowserSession | None = getattr(request.state, "visit", None)
    if visit is not None and problem.status == 401:
        return see(visit, f"/sign-in?next={quote(_requested(request))}")
    home = visit.home if visit else _relative_home(request)
    return page(
        request,
        "error.html",
        status=problem.status,
        headers=dict(problem.headers),
        problem=problem,
        home=home,
        room=f"{home}{_room(request)}" if home and problem.status == 405 else None,
    )


def _relative_home(request: Request) -> str | None:
    """Return the dashboard's path relative to `request`, if an error came before the visit."""
    _, found, rest = request.url.path.partition(PREFIX)
    return "../" * rest.count("/") + PREFIX[1:] if found else None


def _room(request: Request) -> str:
    """Return the path of the page with this form: the nearest page at or above the form's path."""
    path = request.scope["path"].partition(PREFIX)[2]
    while path:
        scope = {**request.scope, "method": "GET", "path": PREFIX + path}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes):
            return quote(path)
        path = path.rpartition("/")[0]
    return FIRST


def _requested(request: Request) -> str:
    """Return the requested path, or "" for a form, which is not sent again after the sign-in."""
    if request.method != "GET":
        return ""
    path = request.url.path.partition(PREFIX)[2]
    return safe_next(f"{path}?{request.url.query}" if request.url.query else path)
