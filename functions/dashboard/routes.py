"""The paths of the dashboard: parse, call one flow, render. Every post is a form of ours (`Form`),
every page but the sign-in somebody's (`Who`).
"""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request, Response

from checkout.flows import audit, sessions, sign_in
from checkout.flows.sessions import ListQuery
from dashboard import pages, view
from dashboard.dependencies import Form, Injected, Visited, Who, visit

router = APIRouter(prefix="/dashboard", dependencies=[Depends(visit)])


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
async def transactions(services: Injected, request: Request, who: Who) -> Response:
    listed = sessions.list_page(services, who.key, ListQuery(limit=25))
    now = services.clock.now()
    rows = [view.row(session, now=now) for session in listed.sessions]
    return pages.page(request, "transactions.html", section="", rows=rows)


@router.get("/audit")
async def audit_log(services: Injected, request: Request, who: Who) -> Response:
    listed = audit.list_page(services, who.key, request.query_params.get("cursor"))
    rows = [view.audit_row(entry) for entry in listed.entries]
    more = listed.next_cursor
    return pages.page(request, "audit.html", section="/audit", rows=rows, next_cursor=more)
