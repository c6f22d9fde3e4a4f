"""The form in which authorization servers accept the member `client` of a grant request.

Open Payments 1.3 made `client` an object and deprecated the string. Older servers accept only the
string. A server shows which form it accepts only by refusing the other one.
"""

from __future__ import annotations

import threading
from typing import Final

_MOST: Final = 1024  # customers choose the servers, so the number of remembered ones is limited


class ClientForms:
    """The servers that want the object, learned from their answers; all others get the string.

    A process has one instance, which its threads can share.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._objects: dict[str, None] = {}

    def wants_object(self, auth_server: str) -> bool:
        return auth_server in self._objects

    def learn(self, auth_server: str, *, wants_object: bool) -> None:
        """Remember the form that `auth_server` has accepted."""
        with self._lock:
            self._objects.pop(auth_server, None)
            if wants_object:
                self._objects[auth_server] = None
            if len(self._objects) > _MOST:
                del self._objects[next(iter(self._objects))]
