"""The paths of the API keys: /dashboard/keys."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request, Response

from checkout.flows.merchant import api_keys
from dashboard.dependencies import Form, Injected, Visited, Who, visit
from dashboard.keys import keys, overlap_of
from dashboard.pages import refused_with, see

router = APIRouter(prefix="/dashboard/keys", dependencies=[Depends(visit)])


@router.get("")
async def list_keys(services: Injected, request: Request, who: Who) -> Response:
    return keys(services, request, who.key)


@router.post("")
async def create(services: Injected, request: Request, who: Who, form: Form) -> Response:
    refused_with(request, keys, services, request, who.key)
    made = api_keys.create(services, who.key, name=form.get("name", ""))
    return keys(services, request, who.key, made=made)


@router.post("/{key_id}/roll")
async def roll(services: Injected, request: Request, who: Who, key_id: str, form: Form) -> Response:
    refused_with(request, keys, services, request, who.key)
    made = api_keys.roll(services, who.key, key_id, overlap=overlap_of(form))
    return keys(services, request, who.key, made=made)


@router.post("/{key_id}/revoke")
async def revoke(
    services: Injected, visited: Visited, request: Request, who: Who, key_id: str, _: Form
) -> Response:
    refused_with(request, keys, services, request, who.key)
    api_keys.revoke(services, who.key, key_id)
    return see(visited, "/keys")
