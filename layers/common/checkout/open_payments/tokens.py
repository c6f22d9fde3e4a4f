"""Tokens of grants that need no approval, kept in this process and renewed by rotation.

A rotation whose answer is lost has killed the old token, so none is ever repeated: after any failed
rotation a new grant is requested. Tokens of interactive grants are not kept, and nothing outlives
the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from checkout.open_payments.client import Access, OpenPayments
from checkout.open_payments.errors import OpenPaymentsError, Reason, Refused
from checkout.open_payments.models import AccessToken

T = TypeVar("T")

_MARGIN: Final = timedelta(
    seconds=30
)  # longer than a call, so that a token does not expire on its way
_MOST: Final = 1024  # customers choose the servers: their number is bounded here


@dataclass(slots=True)
class _Slot:
    lock: AbstractContextManager[Any]
    token: AccessToken | None = field(default=None, repr=False)


class TokenKeeper:
    """One per process; safe between threads. `now` gives aware times.

    A thread waits for a `new_lock` while another renews the same token.
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        new_lock: Callable[[], AbstractContextManager[Any]] = threading.Lock,
    ) -> None:
        self._now = now
        self._new_lock = new_lock
        self._lock = threading.Lock()
        self._slots: dict[tuple[str, str, str, str, Access], _Slot] = {}

    def use(
        self,
        client: OpenPayments,
        auth_server: str,
        resource_server: str,
        access: Access,
        call: Callable[[AccessToken], T],
    ) -> T:
        """Call `call` with a token for `access`; with a kept token this sends nothing else.

        `call` sends it to `resource_server` only, and each has a token of its own: a stranger may
        name an honest authorization server beside their own resource server.
        If the server says that the token is inactive (which certainly had no effect), the
        token is renewed once and `call` is made once more. Raises what the calls raise.
        """
        slot = self._slot(client, auth_server, resource_server, access)
        token = self._valid(slot, client, auth_server, access)
        try:
            return call(token)
        except Refused as refusal:
            if refusal.reason is not Reason.TOKEN_INACTIVE:
                raise
        token = self._renewed(slot, token, client, auth_server, access)
        try:
            return call(token)
        except Refused as refusal:
            if refusal.reason is Reason.TOKEN_INACTIVE:
                self._forget(slot, token)
            raise

    def _slot(
        self, client: OpenPayments, auth_server: str, resource_server: str, access: Access
    ) -> _Slot:
        identity = client.identity
        key = (identity.wallet_address, identity.key_id, auth_server, resource_server, access)
        with self._lock:
            slot = self._slots.pop(key, None) or _Slot(self._new_lock())
            self._slots[key] = slot  # last in, last out
            if len(self._slots) > _MOST:
                del self._slots[next(iter(self._slots))]
            return slot

    def _valid(
        self, slot: _Slot, client: OpenPayments, auth_server: str, access: Access
    ) -> AccessToken:
        token = slot.token
        if token is not None and (
            token.expires_at is None or token.expires_at - _MARGIN > self._now()
        ):
            return token
        return self._renewed(slot, token, client, auth_server, access)

    def _renewed(
        self,
        slot: _Slot,
        stale: AccessToken | None,
        client: OpenPayments,
        auth_server: str,
        access: Access,
    ) -> AccessToken:
        """Return a token other than `stale`: another thread's, a rotated or a new one."""
        with slot.lock:
            if slot.token is not None and slot.token is not stale:
                return slot.token
            old, slot.token = slot.token, None
            if old is not None:
                with suppress(OpenPaymentsError):
                    slot.token = client.rotate_token(auth_server, old)
            if slot.token is None:
                slot.token = client.request_grant(auth_server, access)
            return slot.token

    def _forget(self, slot: _Slot, token: AccessToken) -> None:
        with slot.lock:
            if slot.token is token:
                slot.token = None
