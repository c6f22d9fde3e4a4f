"""The paths of the dashboard: parse, call one flow, render. Every post is a form of ours (`Form`),
every page but the sign-in somebody's (`Who`).
"""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request, Response

from checkout.domain.audit import Action
from checkout.flows import audit, look
from checkout.flows.merchant import export, figures, search, sign_in
from checkout.flows.payment import sessions
from checkout.flows.payment.sessions import Listed
from dashboard import pages, view
from dashboard.dependencies import Form, Injected, Visited, Who, visit
from dashboard.inputs import ExportFile, Filtered, Understood

router = APIRouter(prefix="/dashboard", dependencies=[Depends(visit)])
NOTHING = Listed((), None)


@router.get("/sign-in")
async def sign_in_form(request: Request) -> Response:
    return pages.sign_in_page(request, next_page=request.query_params.get("next", ""))


@router.post("/sign-in")
async def sign_in_with_key(
    services: Injected, visited: Visited, request: Request, form: Form
) -> Response:
    address = request.client.host if request.client else ""
    who = sign_in.sign_in(services, form.get("api_key", ""), address=address)
    return pages.signed_in(visited, who, form.get("next", ""))


@router.post("/sign-out")
async def sign_out(services: Injected, visited: Visited, who: Who, _: Form) -> Response:
    sign_in.sign_out(services, who)
    return pages.signed_out(visited)


@router.get("")
async def transactions(
    services: Injected, request: Request, who: Who, filters: Filtered
) -> Response:
    key, text, query = who.key, filters.text, filters.query
    found = NOTHING if filters.wrong else search.find(services, key, text, query)
    tallies = figures.days(services, key, first=filters.first, last=filters.last)
    return pages.transactions(services, request, who, filters, found, tallies)


@router.get("/transactions/{session_id}")
async def transaction(services: Injected, request: Request, who: Who, session_id: str) -> Response:
    session = sessions.get(services, who.key, session_id)
    return pages.transaction(services, request, session, webhook=look.event_of(services, session))


@router.post("/transactions/{session_id}/expire")
async def expire(
    services: Injected, visited: Visited, who: Who, session_id: str, _: Form
) -> Response:
    session = sessions.expire(services, who.key, session_id)
    audit.note(services, who.key, Action.SESSION_EXPIRED, session.id)
    return pages.see(visited, f"/transactions/{session.id}")


@router.post("/transactions/{session_id}/cancel")
async def cancel(
    services: Injected, visited: Visited, who: Who, session_id: str, _: Form
) -> Response:
    session = sessions.cancel(services, who.key, session_id)
    audit.note(services, who.key, Action.SESSION_CANCELED, session.id)
    return pages.see(visited, f"/transactions/{session.id}")


@router.get("/export")
async def export_page(
    services: Injected, request: Request, who: Who, filters: Understood
) -> Response:
    part = export.part(services, who.key, filters.text, filters.query)
    return pages.export(request, filters, part)


@router.get("/export/{file}.csv")
async def export_file(
    services: Injected, who: Who, file: ExportFile, filters: Understood, append: str = ""
) -> Response:
    part = export.part(services, who.key, filters.text, filters.query)
    export.note(services, who.key, filters.query, f"{file}.csv")
    return pages.csv_file(services, who, file, part, titles=not append)


@router.get("/audit")
async def audit_log(services: Injected, request: Request, who: Who) -> Response:
    listed = audit.list_page(services, who.key, request.query_params.get("cursor"))
    rows = [view.audit_row(entry) for entry in listed.entries]
    more = listed.next_cursor
    return pages.page(request, "audit.html", section="/audit", rows=rows, next_cursor=more)
