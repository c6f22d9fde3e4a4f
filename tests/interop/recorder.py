"""A pytest plugin: every request of our client goes to the file RECORD_REQUESTS, a line each.

`-p tests.interop.recorder`. Nothing about the requests is changed. Only tests in `SUITE` are
recorded: others make requests that are wrong on purpose, or repeat the same ones.
"""

from __future__ import annotations

import json
import os
from typing import Any, Final

from open_payments import exchange
from open_payments.models import ClientIdentity
from open_payments.signatures import public_x
from open_payments.transports import Request, Response, Transport

SUITE: Final = ("tests/flows", "packages/open-payments/tests", "tests/functions")


class _Recording:
    def __init__(self, transport: Transport, identity: ClientIdentity | None) -> None:
        self._transport = transport
        self._identity = identity

    def send(self, request: Request, *, timeout: float) -> Response:
        if os.environ.get("PYTEST_CURRENT_TEST", "").startswith(SUITE):
            self._record(request)
        return self._transport.send(request, timeout=timeout)

    def _record(self, request: Request) -> None:
        line: dict[str, Any] = {
            "method": request.method,
            "url": request.url,
            "headers": dict(request.headers),
            "body": request.body.decode() if request.body is not None else None,
            "key": self._jwk(),
        }
        with open(os.environ["RECORD_REQUESTS"], "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _jwk(self) -> dict[str, str] | None:
        if self._identity is None:
            return None
        x = public_x(self._identity.private_key)
        kid = self._identity.key_id
        return {"kid": kid, "alg": "EdDSA", "kty": "OKP", "crv": "Ed25519", "x": x}


class _RecordingExchange(exchange.Exchange):
    def __init__(self, transport: Transport, identity: ClientIdentity | None, **more: Any) -> None:
        super().__init__(_Recording(transport, identity), identity, **more)


def pytest_configure() -> None:
    from open_payments import protocol

    setattr(protocol, "Exchange", _RecordingExchange)  # noqa: B010 - not a name that it exports
