"""Dependencies of the routes. Tests replace them with `app.dependency_overrides`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from fastapi import Depends, Request

from checkout import wiring
from checkout.adapters.clock import SystemClock
from checkout.domain.merchant import ApiKey
from checkout.flows.merchant import authentication
from checkout.ports.services import Services

_STARTED_AT: Final = SystemClock().now()


async def services() -> Services:
    """Return the services of this process."""
    return wiring.api_services()


async def started_at() -> datetime:
    """Return the time at which this process started."""
    return _STARTED_AT


Injected = Annotated[Services, Depends(services)]
Started = Annotated[datetime, Depends(started_at)]


def api_key(services: Services, request: Request) -> ApiKey:
    """Return the key of the Authorization header. Raise as `authenticate` does.

    It is called by the routes: as a dependency it would take longer than what it does besides
    reading the key.
    """
    return authentication.authenticate(
        services, request.headers.get("authorization"), request.method
    )


def idempotency_key(request: Request) -> str | None:
    """Return the key by which a repeated request is known."""
    return request.headers.get("idempotency-key")
