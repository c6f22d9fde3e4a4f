"""What the routes are given. Tests put their own in with `app.dependency_overrides`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Depends, Header

from checkout import wiring
from checkout.adapters.clock import SystemClock
from checkout.domain.merchant import ApiKey
from checkout.flows.merchant import authentication
from checkout.ports.services import Services
from checkout.web import json_object

_STARTED_AT: Final = SystemClock().now()


async def services() -> Services:
    return wiring.api_services()


async def started_at() -> datetime:
    """When this process started."""
    return _STARTED_AT


Injected = Annotated[Services, Depends(services)]
Started = Annotated[datetime, Depends(started_at)]


async def api_key(
    injected: Injected, authorization: Annotated[str | None, Header()] = None
) -> ApiKey:
    return authentication.authenticate(injected, authorization)


Key = Annotated[ApiKey, Depends(api_key)]
Body = Annotated[dict[str, Any], Depends(json_object)]
