"""The sign-in page, and signing out."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from checkout.clients import client_of
from checkout.domain.errors import CheckoutError, RateLimited
from checkout.flows.merchant import sign_in
from dashboard.dependencies import (
    Form,
    Injected,
    SignIn,
    Visited,
    posted_fields,
    verify_token,
)
from dashboard.rendering import page, refused, safe_next, see, set_cookie

router = APIRouter()


@router.get("/sign-in")
async def sign_in_form(request: Request) -> Response:
    return _form(request, request.query_params.get("next", ""))


@router.post("/sign-in")
async def sign_in_with_key(services: Injected, visit: Visited, request: Request) -> Response:
    fields: dict[str, str] = {}
    try:
        fields = await posted_fields(services, request)
        verify_token(visit, fields)
        client = client_of(request, services.edge_secret)
        signed_in = sign_in.sign_in(services, fields.get("api_key", ""), client=client)
    except CheckoutError as error:
        wait = {"Retry-After": str(error.retry_after)} if isinstance(error, RateLimited) else None
        return refused(error, _form, request, fields.get("next", ""), headers=wait)
    response = see(visit, safe_next(fields.get("next", "")))
    set_cookie(response, visit, signed_in.token)
    return response


@router.post("/sign-out")
async def sign_out(services: Injected, visit: Visited, signed_in: SignIn, _: Form) -> Response:
    sign_in.sign_out(services, signed_in)
    response = see(visit, "/sign-in")
    response.delete_cookie(visit.cookie, secure=visit.secure, httponly=True, samesite="lax")
    return response


def _form(
    request: Request,
    next_page: str,
    *,
    alert: str | None = None,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    return page(
        request, "sign_in.html", status=status, headers=headers, next=next_page, alert=alert
    )
