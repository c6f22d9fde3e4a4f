"""Every answer of the hosted page: HTML from one template per stage, redirects, and the two JSON
answers.

Refuses to trust: all text is escaped, and a template sees `view.Shown`, never a session.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from checkout.domain.errors import CheckoutError, ResourceMissing
from checkout.domain.money import Amount
from checkout.domain.public import timestamp
from checkout.domain.session import Problem as SessionProblem
from checkout.domain.session import Session
from checkout.flows import reconcile
from checkout.flows.approve import Finish
from checkout.ports import PayServices
from checkout.web import Problem, problem_json
from pay.headers import nonce_of
from pay.inputs import FormPost, form_post, sent_by_form
from pay.texts import ENGLISH, text
from pay.view import Shown, Stage, paths_of, shown, stage_of

COUNTDOWN: Final = 5  # seconds on the confirmation before the shop is opened
_TEMPLATES: Final = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals["t"] = text
_SESSION_ID: Final = re.compile(r"cs_[0-9A-Za-z]{22}")
# The `result` of a callback without approval (Rafiki; RFC 9635 has none): what the customer reads.
_NOTICES: Final = {"grant_rejected": "declined", "invalid_interaction": "timed_out"}
# A refused form is shown as its page with the reason on it, where there is such a page.
_SHOWN_IN_PLACE: Final = frozenset({400, 409, 424, 429})
# A wallet that could not even be found is not offered again.
_WALLET_UNKNOWN: Final = frozenset(
    {SessionProblem.WALLET_INVALID.value, SessionProblem.WALLET_UNREACHABLE.value}
)


@dataclass(frozen=True, slots=True)
class Alert:
    """What went wrong, and what to do. `at_field`: it is about the typed wallet address."""

    title: str
    lead: str
    at_field: bool = False


def session_page(services: PayServices, request: Request, session: Session) -> Response:
    """The page of the session's stage."""
    now_shown = _shown(services, session)
    return _stage_page(request, now_shown, alert=_problem_alert(now_shown))


def confirmation(services: PayServices, request: Request, session: Session) -> Response:
    """The page after paying; a session that is not there yet, or any more, has another.

    The way on to the shop is counted down by script only: without it nothing could stop the clock
    ("Stay on this page", WCAG 2.2.1), so there is the link alone.
    """
    now_shown = _shown(services, session)
    if now_shown.stage not in (Stage.CONFIRMING, Stage.COMPLETED):
        return _see(now_shown.paths.page)
    return _stage_page(request, now_shown, countdown=COUNTDOWN)


def prepared(services: PayServices, session: Session, *, by_form: bool) -> Response:
    """After a wallet submission: JSON, or for a form the way to the page with the price.

    Amounts are written as Open Payments writes them: `value` is a string of digits, because it may
    exceed what JSON numbers keep exactly.
    """
    if by_form:
        return _see(paths_of(session, services.base_url).page)
    assert session.quote is not None
    expires_at = session.quote.expires_at
    quote = {
        "debit_amount": _wire(session.quote.debit),
        "receive_amount": _wire(session.quote.receive),
        "expires_at": timestamp(expires_at) if expires_at else None,
    }
    return JSONResponse(
        {"status": session.status.value, "interact_url": session.interact_url, "quote": quote}
    )


def status_json(services: PayServices, session: Session) -> Response:
    """`next` is the confirmation's URL once a payment is under way or done, else null: the
    session's own page shows it.
    """
    after = stage_of(session) in (Stage.CONFIRMING, Stage.COMPLETED)
    success = f"{services.base_url}/pay/{session.id}/success"
    return JSONResponse({"status": session.status.value, "next": success if after else None})


def returned(services: PayServices, request: Request, finish: Finish) -> Response:
    """After a grant callback. Where the wallet wants more time, the browser brings it back."""
    if not finish.wait_seconds:
        return _see(paths_of(finish.session, services.base_url).home)
    # No address in the header: the browser asks for this one again, and it is written nowhere.
    headers = {"Refresh": str(finish.wait_seconds)}
    return _html(request, "wait.html", headers=headers, seconds=finish.wait_seconds)


def not_approved(
    services: PayServices, request: Request, session: Session, result: str
) -> Response:
    """Back from the wallet without an approval, by the wallet's unsigned word `result`."""
    now_shown = _shown(services, session)
    if now_shown.stage not in (Stage.OPEN, Stage.AWAITING_APPROVAL):
        return _see(now_shown.paths.home)
    notice = _NOTICES.get(result, "not_approved")
    alert = Alert(text(f"notice.{notice}"), text("notice.next"))
    return _stage_page(request, now_shown, alert=alert, returned=True)


def render_problem(request: Request, problem: Problem) -> Response:
    """An error: JSON to programs, the form's own page to a form, else a page of its own."""
    if _wants_json(request):
        return problem_json(request, problem)
    form = form_post(request)
    if form is not None and problem.status in _SHOWN_IN_PLACE:
        with suppress(
            CheckoutError
        ):  # no such session, or no store: then the error is all there is
            return _form_again(request, form, problem)
    return _problem_page(request, problem)


def _form_again(request: Request, form: FormPost, problem: Problem) -> Response:
    now_shown = _shown(form.services, reconcile.view(form.services, form.session_id))
    return _stage_page(
        request,
        now_shown,
        status=problem.status,
        headers=dict(problem.headers),
        alert=_error_alert(problem),
        typed=form.typed,
    )


def _wants_json(request: Request) -> bool:
    """The two addresses that programs use; a browser's form is told by its type or by what it
    accepts.
    """
    if request.url.path.endswith("/status"):
        return True
    if not request.url.path.endswith("/wallet") or sent_by_form(request):
        return False
    json_sent = "json" in request.headers.get("content-type", "")
    return json_sent or "text/html" not in request.headers.get("accept", "")


def _shown(services: PayServices, session: Session) -> Shown:
    merchant = services.merchants.get(session.merchant)
    if merchant is None:
        raise ResourceMissing("No such checkout session.")
    now = services.clock.now()
    return shown(session, shop=merchant.name, base_url=services.base_url, now=now)


def _problem_alert(now_shown: Shown) -> Alert | None:
    """Why the session is open again."""
    if now_shown.stage is not Stage.OPEN or now_shown.problem is None:
        return None
    name = f"problem.{now_shown.problem}"
    return Alert(text(name), text(f"{name}.next"))


def _error_alert(problem: Problem) -> Alert:
    name = f"error.{problem.code}"
    title = text(name if name in ENGLISH else "error.other")
    return Alert(title, problem.message, at_field=problem.param == "wallet_address")


def _stage_page(
    request: Request,
    now_shown: Shown,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
    **values: Any,
) -> Response:
    again = now_shown.wallet if now_shown.problem not in _WALLET_UNKNOWN else None
    context = {"alert": None, "countdown": None, "returned": False, "typed": again or "", **values}
    name = f"{now_shown.stage.value}.html"
    return _html(request, name, status=status, headers=headers, s=now_shown, **context)


def _problem_page(request: Request, problem: Problem) -> Response:
    name = f"error.{problem.code}"
    name = name if f"{name}.lead" in ENGLISH else "error.other"
    return _html(
        request,
        "error.html",
        status=problem.status,
        headers=dict(problem.headers),
        name=name,
        back=_back(request) if problem.status != 404 else None,
        request_id=problem.request_id,
    )


def _back(request: Request) -> str | None:
    """The session's page, relative to `request`: an error knows no base address."""
    session_id: str = request.path_params.get("session_id", "")
    if not _SESSION_ID.fullmatch(session_id):
        return None
    rest = request.url.path.partition(f"/{session_id}/")[2]
    return "../" * (rest.count("/") + 1 if rest else 0) + session_id


def _html(
    request: Request,
    template: str,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
    **values: Any,
) -> Response:
    html = _TEMPLATES.get_template(template).render(nonce=nonce_of(request), **values)
    return HTMLResponse(html, status, headers)


def _see(path: str) -> Response:
    """303: the browser asks with GET, whatever it asked with before."""
    return RedirectResponse(path, 303)


def _wire(amount: Amount) -> dict[str, str | int]:
    return {
        "value": str(amount.value),
        "asset_code": amount.asset_code,
        "asset_scale": amount.asset_scale,
    }
