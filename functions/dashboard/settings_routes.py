"""The paths of the settings: /dashboard/settings."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request, Response

from checkout.flows.merchant import settings as flow
from dashboard.dependencies import Form, FormWithFile, Injected, Visited, Who, visit
from dashboard.pages import refused_with, see
from dashboard.settings import color_of, logo, previewed, settings

router = APIRouter(prefix="/dashboard/settings", dependencies=[Depends(visit)])
SAVED = "/settings?saved=1"


@router.get("")
async def settings_page(services: Injected, request: Request, who: Who) -> Response:
    return settings(services, request, who)


@router.post("")
async def look(
    services: Injected, visited: Visited, request: Request, who: Who, form: Form
) -> Response:
    refused_with(request, settings, services, request, who, form)
    name, locale, color = form.get("name", ""), form.get("locale", ""), color_of(form)
    flow.look(services, who.key, name=name, accent_color=color, locale=locale)
    return see(visited, SAVED)


@router.post("/return-hosts")
async def return_hosts(
    services: Injected, visited: Visited, request: Request, who: Who, form: Form
) -> Response:
    refused_with(request, settings, services, request, who, form)
    flow.limit_return_hosts(services, who.key, form.get("return_hosts", ""))
    return see(visited, SAVED)


@router.get("/logo")
async def show_logo(services: Injected, who: Who) -> Response:
    return logo(services, who)


@router.post("/logo")
async def put_logo(
    services: Injected, visited: Visited, request: Request, who: Who, form: FormWithFile
) -> Response:
    refused_with(request, settings, services, request, who)
    flow.put_logo(services, who.key, form.get("logo", b""))
    return see(visited, SAVED)


@router.post("/logo/remove")
async def remove_logo(services: Injected, visited: Visited, who: Who, _: Form) -> Response:
    flow.remove_logo(services, who.key)
    return see(visited, SAVED)


@router.get("/preview")
async def show_preview(
    services: Injected, visited: Visited, request: Request, who: Who
) -> Response:
    return previewed(services, request, visited, who)
