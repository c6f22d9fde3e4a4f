"""Wallets of strangers: the sandbox's providers, with answers that a test changes on their way."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

from checkout.domain.session.record import Session, Status
from open_payments.transports import Request, Response
from tests.support.flows import World

Change = Callable[[dict[str, Any]], None]


@dataclass
class Hostile:
    """`Network.handle` with changed answers, and with servers of a test's own.

    `changes` are by a part of the URL; `servers` answer in place of the network, by the URL's
    start. `seen` has all requests, with their headers.
    """

    network: Any
    changes: list[tuple[str, Change]] = field(default_factory=list)
    servers: dict[str, Callable[[Request], Response]] = field(default_factory=dict)
    seen: list[Request] = field(default_factory=list)

    def handle(self, request: Request) -> Response:
        self.seen.append(request)
        for start, server in self.servers.items():
            if request.url.startswith(start):
                return server(request)
        response: Response = self.network.handle(request)
        for part, change in self.changes:
            if part in request.url and response.body.startswith(b"{"):
                members = json.loads(response.body)
                change(members)
                response = replace(response, body=json.dumps(members).encode())
        return response

    def to(self, start: str) -> list[Request]:
        """Return the requests to one server."""
        return [request for request in self.seen if request.url.startswith(start)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)


def hostile(world: World) -> Hostile:
    """Put the strangers between the product and the sandbox's wallets."""
    found = Hostile(world.network)
    world.transport.network = cast(Any, found)
    return found


def assert_open_and_unpaid(world: World, session: Session) -> None:
    """Nothing else happened: no approval, no payment, no money."""
    after = world.session(session.id)
    assert after.status is Status.OPEN
    assert (after.outgoing_payment, after.token, after.grant, after.interact_url) == (None,) * 4
    assert not world.transport.count("POST", "/outgoing-payments")
    assert world.received() == 0
