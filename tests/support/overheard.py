"""Record each secret in requests to wallets and in their answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from open_payments.transports import Request, Response

# Members of GNAP's requests and answers, except texts too short to be a secret.
SECRET_FIELDS: Final = ("finish", "nonce", "uri", "redirect", "value", "interact_ref", "manage")
SHORTEST: Final = 12


class Overheard:
    """Calls `made` with the name and the value of each; for a `CountingTransport`'s hooks."""

    def __init__(self, made: Callable[[str, str], object]) -> None:
        self._made = made

    def request(self, request: Request) -> None:
        for name in ("Authorization", "Signature"):
            if name in request.headers:
                self._made(name.lower(), request.headers[name].removeprefix("GNAP "))
        self._body(request.body)

    def response(self, request: Request, response: Response) -> None:
        self._body(response.body)

    def _body(self, raw: bytes | None) -> None:
        if raw and raw.startswith(b"{"):  # otherwise a page or a server's text
            self._collect(json.loads(raw))

    def _collect(self, value: Any, name: str = "") -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                self._collect(inner, key)
        elif isinstance(value, list):
            for inner in value:
                self._collect(inner)
        elif name in SECRET_FIELDS and isinstance(value, str) and len(value) >= SHORTEST:
            self._made(name, value)
