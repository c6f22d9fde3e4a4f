"""Render errors: JSON for programs, pages for customers.

A customer never sees a flow's own message. Instead, the error's code selects a text from the
catalog of the customer's language. A code without its own text gets a general text.
"""

from __future__ import annotations

import re
from typing import Any, Final

from fastapi import Request, Response

from checkout import wiring
from checkout.domain.ground.errors import CheckoutError, WalletInvalid
from checkout.domain.ground.grammar import EMAIL_MAX, LINK_ID, SESSION_ID
from checkout.domain.ground.typed_address import AddressMistake
from checkout.flows.links import purchase
from checkout.flows.session import reconcile
from checkout.pages import FORM, media_type, see_other
from checkout.services import PayServices
from checkout.web import ErrorResponse, problem_json, problem_of, request_id
from open_payments.urls import split
from pay import pages, render
from pay.view import Stage, shop_of

TYPED_SHOWN: Final = 2048  # characters of a typed wallet address that a page repeats
# If an error has one of these statuses, the rejected form is shown again with the reason.
# Otherwise, an error page is shown.
SHOWN_AGAIN: Final = frozenset({400, 409, 424, 429})
# The path of a session's or a link's page, followed by characters that do not belong to the path. A
# mail program, for example, may take the full stop behind an address for a part of the link.
_BEHIND: Final = "[\\s/.,;:!?)\\]>'\"»”’\u200b-\u200f\u2060\ufeff]+"
_MEANT: Final = re.compile(rf"/(pay/{SESSION_ID.pattern}|buy/{LINK_ID.pattern}){_BEHIND}\Z")


def sent_by_form(request: Request) -> bool:
    """Return whether the body is a form."""
    return media_type(request) == FORM


def form_again(
    error: CheckoutError,
    services: PayServices,
    request: Request,
    session_id: str,
    *,
    typed: str = "",
    at: str = "",
    email: str = "",
) -> Response:
    """Return the session's page with the reason why the form was rejected.

    `typed` and `email` are the wallet address and the e-mail address in the form. `at` is the
    address pattern (`Provider.form`) of the chosen provider, or "" if a whole address was typed.
    Raise `error` itself if it needs an error page, or if the session cannot be read.
    """
    problem = problem_of(error, request_id(request))
    if problem.status not in SHOWN_AGAIN:
        raise error
    try:
        session = reconcile.view(services, session_id)
        now_shown = pages.seen(services, request, session)
    except CheckoutError:
        raise error from None
    if session.lacks_details and now_shown.stage is Stage.OPEN:
        return see_other(now_shown.paths.page)  # the page that asks for the details
    if isinstance(error, WalletInvalid):
        bank = next((each.name for each in now_shown.offers if each.form == at), "")
        alert = pages.typing_alert(error, bank, typed)
        if error.mistake and AddressMistake(error.mistake).confidential:
            typed = ""
    else:
        alert = pages.refusal_alert(error, now_shown.reader.texts)
    values = {}
    if now_shown.stage is Stage.COMPLETED:
        values = pages.receipt_values(services, request, session, now_shown)
    return pages.stage_page(
        request,
        now_shown,
        status=problem.status,
        headers=dict(problem.headers),
        alert=alert,
        typed=typed[:TYPED_SHOWN],
        at=at,
        **{**values, "email": email[:EMAIL_MAX] or values.get("email", "")},
    )


def render_problem(request: Request, problem: ErrorResponse) -> Response:
    """Return the response to an error: JSON for programs, otherwise an error page.

    If an unknown path is the path of a page, followed by punctuation, redirect to this page.
    """
    if _wants_json(request):
        return problem_json(request, problem)
    meant = _MEANT.search(request.url.path) if problem.status == 404 else None
    if meant and request.method == "GET":
        return see_other(f"{split(wiring.base_url()).path}/{meant[1]}")
    headers = dict(problem.headers)
    if request.method == "GET" and "Retry-After" in headers:
        # A GET changes nothing, so the browser can repeat it. A Refresh header without a URL makes
        # the browser repeat the request. With a URL, a log could show the URL, which is secret.
        headers["Refresh"] = headers["Retry-After"]
    reads = pages.reader_of(request)
    name = f"error.{problem.code}"
    return render.page(
        request,
        reads,
        "error.html",
        status=problem.status,
        headers=headers,
        name=name if name in reads.texts else "error.other",
        back=_back(request) if problem.status != 404 else None,
        s=_shop(request) if problem.status < 500 else None,
        request_id=problem.request_id,
    )


def _shop(request: Request) -> dict[str, Any] | None:
    """Return the shop of the session or link, or None if the shop is unknown or cannot be read."""
    services: PayServices | None = getattr(request.state, "services", None)
    if services is None:
        return None
    session_id: str = request.path_params.get("session_id", "")
    link_id: str = request.path_params.get("link_id", "")
    try:
        if SESSION_ID.fullmatch(session_id):
            session = services.sessions.get(session_id)
            owner = session.merchant if session else None
        else:
            owner = purchase.shown_link(services, link_id).merchant
        merchant = services.merchants.get(owner) if owner else None
    except CheckoutError:
        return None
    return shop_of(merchant, None) if merchant else None


def _back(request: Request) -> str | None:
    """Return the path of the session's page relative to `request`, or None without a session."""
    session_id: str = request.path_params.get("session_id", "")
    if not SESSION_ID.fullmatch(session_id):
        return None
    rest = request.url.path.partition(f"/{session_id}/")[2]
    return "../" * (rest.count("/") + 1 if rest else 0) + session_id


def _wants_json(request: Request) -> bool:
    """Return whether a program sent the request.

    On a path for both programs and browsers, a browser is recognized by a form as the body, or by
    its Accept header.
    """
    if request.url.path.endswith("/status"):
        return True
    if not request.url.path.endswith("/wallet") or sent_by_form(request):
        return False
    json_sent = "json" in request.headers.get("content-type", "")
    return json_sent or "text/html" not in request.headers.get("accept", "")
