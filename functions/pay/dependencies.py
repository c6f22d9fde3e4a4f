"""The dependency of the routes. Tests replace it with `app.dependency_overrides`."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from checkout import wiring
from checkout.ports.services import PayServices


async def services() -> PayServices:
    """Return the services of this process."""
    return wiring.pay_services()


Injected = Annotated[PayServices, Depends(services)]
