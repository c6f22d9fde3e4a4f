"""Dependencies of the routes: services, and the client, whose requests are counted.

Tests replace the services with `app.dependency_overrides`.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from checkout import wiring
from checkout.clients import client_of
from checkout.domain.limits import REQUEST
from checkout.flows import limits
from checkout.ports.services import PayServices


async def services() -> PayServices:
    """Return the services of this process."""
    return wiring.pay_services()


Injected = Annotated[PayServices, Depends(services)]


async def client(injected: Injected, request: Request) -> str:
    """Return the client that asks, who is counted before anything is read. Raise RateLimited."""
    found = client_of(request, injected.edge_secret)
    limits.admit(injected, REQUEST, found)
    return found


Client = Annotated[str, Depends(client)]
