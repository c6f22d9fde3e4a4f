"""The form in which authorization servers accept the member `client` of a grant request.

Open Payments 1.3 made `client` an object and deprecated the string. Older servers accept only the
string. A server shows which form it accepts only by refusing the other one.
"""

from __future__ import annotations

import threading
from typing import Final

_MOST: Final = 1024  # customers choose the servers, so the number of remembered ones is limited


class ClientForms:
    """The form that each server wants, learned from its answers; the string goes first.

    With `object_first`, the object goes first. A process has one instance, which its threads share.
    """

    def __init__(self, *, object_first: bool = False) -> None:
        self._object_first = object_first
        self._lock = threading.Lock()
        self._others: dict[str, None] = {}  # the servers that want the other form

    def wants_object(self, auth_server: str) -> bool:
        return (auth_server in self._others) is not self._object_first

    def learn(self, auth_server: str, *, wants_object: bool) -> None:
        """Remember the form that `auth_server` has accepted."""
        with self._lock:
            self._others.pop(auth_server, None)
            if wants_object is not self._object_first:
                self._others[auth_server] = None
            if len(self._others) > _MOST:
                del self._others[next(iter(self._others))]
