"""Give the routes their services, and count the requests of each client.

Tests replace the services with `app.dependency_overrides`.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from checkout import wiring
from checkout.client_address import client_of
from checkout.domain.ground.limits import REQUEST, Rule
from checkout.flows import limits
from checkout.services import PayServices


async def services() -> PayServices:
    """Return the services of this process."""
    return wiring.pay_services()


Injected = Annotated[PayServices, Depends(services)]


def counted(services: PayServices, request: Request, rule: Rule = REQUEST) -> str:
    """Count the request against the limit `rule`, and return the client's network address.

    Raise RateLimited. Each route calls this function before it reads anything. The function is not
    a FastAPI dependency, because FastAPI would need more time than the function itself.
    """
    found = client_of(request, services.edge_secret)
    limits.admit(services, rule, found)
    request.state.services = services  # for error pages, which read the session's merchant
    return found
