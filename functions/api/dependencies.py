"""Dependencies of the routes. Tests replace them with `app.dependency_overrides`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Depends, Header, Request

from checkout import wiring
from checkout.adapters.clock import SystemClock
from checkout.domain.merchant import ApiKey
from checkout.flows.merchant import authentication
from checkout.ports.services import Services
from checkout.web import json_object

_STARTED_AT: Final = SystemClock().now()


async def services() -> Services:
    """Return the services of this process."""
    return wiring.api_services()


async def started_at() -> datetime:
    """Return the time at which this process started."""
    return _STARTED_AT


Injected = Annotated[Services, Depends(services)]
Started = Annotated[datetime, Depends(started_at)]


async def api_key(
    injected: Injected, request: Request, authorization: Annotated[str | None, Header()] = None
) -> ApiKey:
    """Return the key of the Authorization header. Raise as `authenticate` does."""
    return authentication.authenticate(injected, authorization, request.method)


Key = Annotated[ApiKey, Depends(api_key)]
Body = Annotated[dict[str, Any], Depends(json_object)]
IdempotencyKey = Annotated[str | None, Header()]
