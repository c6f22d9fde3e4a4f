"""Give routes their services, and count the requests of their client.

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


def counted(services: PayServices, request: Request) -> str:
    """Return the client that asks, after counting it: before anything is read. Raise RateLimited.

    It is called by the routes: as a dependency it would take longer than what it does.
    """
    found = client_of(request, services.edge_secret)
    limits.admit(services, REQUEST, found)
    return found
