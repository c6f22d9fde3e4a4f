"""Tokens of grants that need no approval, kept in this process and renewed by rotation.

If the answer to a rotation is lost, the old token may be invalid. So after any failed rotation
a new grant is requested. Tokens of interactive grants are not kept. The
kept tokens are lost when the process ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, TypeVar

from open_payments.errors import OpenPaymentsError, Reason, Refused
from open_payments.models import AccessToken
from open_payments.protocol import Access, OpenPayments

T = TypeVar("T")
_Rotate = Callable[[AccessToken], AccessToken]
_Ask = Callable[[], AccessToken]

_MARGIN: Final = timedelta(
    seconds=30
)  # longer than a call, so that a token does not expire during it
_MOST: Final = 1024  # customers choose the servers, so the number of kept tokens is limited


@dataclass(slots=True)
class _Slot:
    lock: AbstractContextManager[Any]
    token: AccessToken | None = field(default=None, repr=False)


class TokenKeeper:
    """The tokens of a process, which its threads can share. `now` returns aware times.

    While one thread renews a token, others that need it wait for a lock made by `new_lock`.
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        new_lock: Callable[[], AbstractContextManager[Any]] = threading.Lock,
    ) -> None:
        self._now = now
        self._new_lock = new_lock
        self._lock = threading.Lock()
        self._slots: dict[tuple[str, str, str, str, Access, str], _Slot] = {}

    def use(
        self,
        client: OpenPayments,
        auth_server: str,
        resource_server: str,
        access: Access,
        call: Callable[[AccessToken], T],
        *,
        wallet: str | None = None,
    ) -> T:
        """Call `call` with a token for `access`. With a kept token, no other request is sent.

        `wallet` is the wallet that the grant names, as for `OpenPayments.request_grant`. `call`
        must send the token only to `resource_server`. Each resource server has a token of its own,
        because a hostile wallet may name an honest authorization server beside its own resource
        server. If the server says that the token is inactive, the call certainly had no effect; so
        the token is renewed once and `call` is made once more. Raises the errors of the calls.
        """
        slot = self._slot(client, auth_server, resource_server, access, wallet)
        ask = partial(client.request_grant, auth_server, access, wallet=wallet)
        rotate = partial(client.rotate_token, auth_server)
        token = self._valid(slot, rotate, ask)
        try:
            return call(token)
        except Refused as refusal:
            if refusal.reason is not Reason.TOKEN_INACTIVE:
                raise
        token = self._renewed(slot, token, rotate, ask)
        try:
            return call(token)
        except Refused as refusal:
            if refusal.reason is Reason.TOKEN_INACTIVE:
                self._forget(slot, token)
            raise

    def _slot(
        self,
        client: OpenPayments,
        auth_server: str,
        resource_server: str,
        access: Access,
        wallet: str | None,
    ) -> _Slot:
        own = client.identity
        named = wallet or own.wallet_address
        key = (own.client, own.key_id, auth_server, resource_server, access, named)
        with self._lock:
            slot = self._slots.pop(key, None) or _Slot(self._new_lock())
            self._slots[key] = slot  # at the end, because slots are dropped from the front
            if len(self._slots) > _MOST:
                del self._slots[next(iter(self._slots))]
            return slot

    def _valid(self, slot: _Slot, rotate: _Rotate, ask: _Ask) -> AccessToken:
        token = slot.token
        if token is not None and (
            token.expires_at is None or token.expires_at - _MARGIN > self._now()
        ):
            return token
        return self._renewed(slot, token, rotate, ask)

    def _renewed(
        self, slot: _Slot, stale: AccessToken | None, rotate: _Rotate, ask: _Ask
    ) -> AccessToken:
        """Return a token other than `stale`: another thread's, a rotated or a new one."""
        with slot.lock:
            if slot.token is not None and slot.token is not stale:
                return slot.token
            old, slot.token = slot.token, None
            if old is not None:
                with suppress(OpenPaymentsError):
                    slot.token = rotate(old)
            if slot.token is None:
                slot.token = ask()
            return slot.token

    def _forget(self, slot: _Slot, token: AccessToken) -> None:
        with slot.lock:
            if slot.token is token:
                slot.token = None
