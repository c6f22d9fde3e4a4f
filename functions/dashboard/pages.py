"""Every answer of the dashboard: HTML from templates, redirects, and the cookie.

Refuses to trust: all text is escaped, no attribute holds script or style, and a template sees what
`view.py` made for it, never a record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from checkout.domain.errors import CheckoutError
from checkout.domain.session import Session
from checkout.domain.tally import DayTally
from checkout.domain.webhooks import WebhookEvent
from checkout.flows.merchant.export import Part
from checkout.flows.merchant.sign_in import SignedIn
from checkout.flows.payment.sessions import Listed
from checkout.page_headers import nonce_of
from checkout.ports.services import DashboardServices
from checkout.web import Problem
from dashboard import csv_files, view
from dashboard.dependencies import Visit
from dashboard.figures import figures
from dashboard.inputs import Filters
from dashboard.texts import STATUS
from dashboard.transaction import delivered, shown

# What the bar at the top leads to: path under /dashboard, and its words.
SECTIONS: Final = (
    ("", "Transactions"),
    ("/keys", "API keys"),
    ("/webhooks", "Webhooks"),
    ("/settings", "Settings"),
    ("/audit", "Audit log"),
)
_TEMPLATES: Final = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
# Where a sign-in may lead back to: a page of ours, as the browser wrote it.
_NEXT: Final = re.compile(r"(?:/[A-Za-z0-9_-]+)*(?:\?[A-Za-z0-9_=&%.+~-]*)?")


def page(
    request: Request,
    template: str,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
    **values: Any,
) -> Response:
    """`template` for whoever is signed in. `section` is the path of the bar's entry that it belongs
    to.
    """
    visit: Visit | None = getattr(request.state, "visit", None)
    who: SignedIn | None = getattr(request.state, "who", None)
    context = {
        "nonce": nonce_of(request),
        "home": visit.home if visit else None,
        "form_token": visit.form_token if visit else "",
        "sections": SECTIONS if who else (),
        "section": None,
        "key": who.key if who else None,
        **values,
    }
    html = _TEMPLATES.get_template(template).render(context)
    response = HTMLResponse(html, status, headers)
    if visit is not None and visit.fresh:
        give_cookie(response, visit, visit.token)
    return response


def see(visit: Visit, path: str = "") -> Response:
    """303 to a path under the dashboard: the browser asks with GET, whatever it asked with."""
    return RedirectResponse(visit.home + path, 303)


def transactions(
    services: DashboardServices,
    request: Request,
    who: SignedIn,
    filters: Filters,
    found: Listed,
    tallies: Sequence[DayTally],
) -> Response:
    now = services.clock.now()
    stopped = filters.query.filters and found.next_cursor is not None and found.looked_to
    return page(
        request,
        "transactions.html",
        status=400 if filters.wrong else 200,
        section="",
        filters=filters,
        statuses=[(status.value, words) for status, words in STATUS.items()],
        rows=[view.row(session, now=now) for session in found.sessions],
        next_cursor=found.next_cursor,
        looked_to=view.moment(found.looked_to) if stopped and found.looked_to else None,
        figures=figures(tallies, who.key),
    )


def transaction(
    services: DashboardServices,
    request: Request,
    session: Session,
    *,
    webhook: WebhookEvent | None,
) -> Response:
    seen = shown(session, now=services.clock.now(), base_url=services.base_url)
    told = delivered(webhook) if webhook else None
    return page(request, "transaction.html", section="", s=seen, webhook=told)


def export(request: Request, filters: Filters, part: Part) -> Response:
    return page(request, "export.html", section="", filters=filters, part=view.part(part))


def csv_file(
    services: DashboardServices, who: SignedIn, file: str, whole: Part, *, titles: bool
) -> Response:
    """As much of the part as fits; `Export-Next` says where to go on."""
    now = services.clock.now()
    text, count = csv_files.written(file, whole.sessions, now=now, titles=titles)
    part = whole.cut(who.key, count)
    headers = {
        "Content-Disposition": f'attachment; filename="{file}.csv"',
        "Export-Count": str(count),
    }
    if part.next_cursor is not None:
        headers["Export-Next"] = part.next_cursor
    return Response(text, media_type="text/csv", headers=headers)


def sign_in_page(request: Request, *, next_page: str, **values: Any) -> Response:
    return page(request, "sign_in.html", next=next_page, **{"alert": None, **values})


def signed_in(visit: Visit, who: SignedIn, next_page: str) -> Response:
    """To the page that was asked for, with the cookie of the new sign-in."""
    response = see(visit, safe_next(next_page))
    give_cookie(response, visit, who.token)
    return response


def signed_out(visit: Visit) -> Response:
    response = see(visit, "/sign-in")
    response.delete_cookie(visit.cookie, secure=visit.secure, httponly=True, samesite="lax")
    return response


def give_cookie(response: Response, visit: Visit, token: str) -> None:
    response.set_cookie(visit.cookie, token, secure=visit.secure, httponly=True, samesite="lax")


def safe_next(path: str) -> str:
    """`path` if it is one under the dashboard, else its first page."""
    return path if _NEXT.fullmatch(path) else ""


def render_problem(request: Request, problem: Problem) -> Response:
    """An error: the way to sign in, the sign-in form again, or a page of its own."""
    visit: Visit | None = getattr(request.state, "visit", None)
    if visit is not None and request.url.path.endswith("/sign-in") and problem.status < 500:
        return sign_in_page(
            request,
            next_page=getattr(request.state, "fields", {}).get("next", ""),
            alert=problem.message,
            status=problem.status,
            headers={name: value for name, value in problem.headers.items() if name[0] == "R"},
        )
    again = getattr(request.state, "again", None)
    if again is not None and problem.status < 500:
        with suppress(CheckoutError):  # no store: then the error is all there is
            return cast(Response, again(problem))
    if visit is not None and problem.status == 401:
        return see(visit, f"/sign-in?next={quote(_asked_for(request))}")
    return page(
        request,
        "error.html",
        status=problem.status,
        headers=dict(problem.headers),
        problem=problem,
    )


def refused_with(request: Request, show: Callable[..., Response], *given: Any) -> None:
    """Should the form be refused, its page is shown again: `show(*given)` with the reason in
    `alert` and the error's `status`.
    """

    def again(problem: Problem) -> Response:
        return show(*given, alert=problem.message, status=problem.status)

    request.state.again = again


def _asked_for(request: Request) -> str:
    """What was asked for, under the dashboard; a form's is not asked again."""
    if request.method != "GET":
        return ""
    path = request.url.path.partition("/dashboard")[2]
    return safe_next(f"{path}?{request.url.query}" if request.url.query else path)
