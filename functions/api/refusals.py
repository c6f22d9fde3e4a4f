"""Tell the log of refused requests what an API key was refused, under /api and /v1."""

from __future__ import annotations

from functools import partial

from fastapi import Request

from checkout.domain.merchant import ApiKey
from checkout.domain.refusals import Refusal
from checkout.flows.merchant import refusals
from checkout.ports.services import Services
from checkout.web import ErrorResponse


def remember(services: Services, request: Request, key: ApiKey) -> None:
    """Remember whose request this is, until it is answered."""
    request.state.refused = partial(_note, services, request, key)


def note(request: Request, found: ErrorResponse, status: int) -> None:
    """Note the refusal of a request whose key is known. A fault of ours is not a refusal."""
    told = getattr(request.state, "refused", None)
    if told is not None and status < 500:
        told(found, status)


def _note(
    services: Services, request: Request, key: ApiKey, found: ErrorResponse, status: int
) -> None:
    refusal = Refusal(
        at=services.clock.now(),
        method=request.method,
        route=request.scope["route"].path,
        status=status,
        code=found.code,
        message=found.message,
        request_id=found.request_id,
        param=found.param,
    )
    refusals.note(services, key, refusal)
