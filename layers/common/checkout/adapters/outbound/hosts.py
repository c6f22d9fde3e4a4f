"""Check whether the service may send requests to a host that a merchant enters."""

from __future__ import annotations

import socket
from typing import Final

from open_payments.transports.addresses import Resolve, is_host, is_permitted, look_up

WITHIN: Final = 3.0  # seconds
_HTTPS_PORT: Final = 443


class ResolvedHosts:
    """`ports.Hosts` with the system's resolver, which must answer within `WITHIN` seconds."""

    def __init__(
        self, *, allow_loopback: bool = False, resolve: Resolve = socket.getaddrinfo
    ) -> None:
        self._allow_loopback = allow_loopback
        self._resolve = resolve

    def permitted(self, host: str) -> bool:
        if not is_host(host):  # requests to this host would be refused
            return False
        try:
            found = list(look_up(self._resolve, host, _HTTPS_PORT, WITHIN))
        except Exception:  # noqa: BLE001 - after any error the name has no address
            return False
        return bool(found) and all(
            is_permitted(address, allow_loopback=self._allow_loopback) for address in found
        )
