"""Errors as customers and programs get them.

Refuses to repeat a flow's own sentence to a customer: an error's code names the text, which every
catalogue has. A code without a text of its own is told in general words.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from fastapi import Request, Response

from checkout.domain.errors import CheckoutError
from checkout.domain.grammar import SESSION_ID
from checkout.flows.payment import reconcile
from checkout.web import Problem, problem_json
from pay import pages, render
from pay.inputs import FormPost, form_post, sent_by_form

# A refused form is shown as its page with the reason on it, where there is such a page.
_SHOWN_IN_PLACE: Final = frozenset({400, 409, 424, 429})


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
    session = reconcile.view(form.services, form.session_id)
    now_shown = pages.seen(form.services, request, session)
    known = f"fault.{problem.code}" in now_shown.reader.texts
    return pages.stage_page(
        request,
        now_shown,
        status=problem.status,
        headers=dict(problem.headers),
        alert=pages.Alert(
            problem.code if known else "other", at_field=problem.param == "wallet_address"
        ),
        typed=form.typed,
    )


def _problem_page(request: Request, problem: Problem) -> Response:
    reads = pages.reader_of(request)
    name = f"error.{problem.code}"
    return render.page(
        request,
        reads,
        "error.html",
        status=problem.status,
        headers=dict(problem.headers),
        name=name if name in reads.texts else "error.other",
        back=_back(request) if problem.status != 404 else None,
        request_id=problem.request_id,
    )


def _back(request: Request) -> str | None:
    """The session's page, relative to `request`: an error knows no base address."""
    session_id: str = request.path_params.get("session_id", "")
    if not SESSION_ID.fullmatch(session_id):
        return None
    rest = request.url.path.partition(f"/{session_id}/")[2]
    return "../" * (rest.count("/") + 1 if rest else 0) + session_id


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
