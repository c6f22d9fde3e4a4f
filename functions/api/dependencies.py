"""Dependencies of the routes. Tests replace them with `app.dependency_overrides`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Final

from fastapi import Depends, Request

from api import refusals
from api.requests import refuse_query
from checkout import wiring
from checkout.adapters.runtime import SystemClock
from checkout.domain.merchant.record import ApiKey
from checkout.flows.merchant import api_keys
from checkout.services import Services

_STARTED_AT: Final = SystemClock().now()


async def services() -> Services:
    """Return the services of this process."""
    return wiring.api_services()


async def started_at() -> datetime:
    """Return the time at which this process started."""
    return _STARTED_AT


Injected = Annotated[Services, Depends(services)]
Started = Annotated[datetime, Depends(started_at)]


def api_key(services: Services, request: Request, query: Sequence[str] | None = ()) -> ApiKey:
    """Return the key of the Authorization header.

    Raise as `authenticate` does, and ParameterUnknown for a parameter in the address that is not
    in `query`; with None the route checks them itself. The routes call it themselves, because a
    dependency of FastAPI costs more time than this function.
    """
    key = api_keys.authenticate(
        services,
        request.headers.get("authorization"),
        request.method,
        request.scope["route"].path,
        known=partial(refusals.remember, services, request),
    )
    if query is not None:
        refuse_query(request, *query)
    return key


def idempotency_key(request: Request) -> str | None:
    """Return the key that marks a repeated request."""
    return request.headers.get("idempotency-key")
