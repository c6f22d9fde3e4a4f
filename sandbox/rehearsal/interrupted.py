"""Remove a stage in a process that ends right after its first change to the account.

`python -m sandbox.rehearsal.interrupted STAGE --config FILE` exits with INTERRUPTED after the
change, and with 0 if nothing is left to change.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

from operations import remove
from operations.stages import Account, command, named

INTERRUPTED: Final = 75
_READS: Final = ("Describe", "Get", "List")


class Interrupted(Account):
    """An account whose first successful change ends the process."""

    def __init__(self) -> None:
        super().__init__()
        self._session.events.register("after-call.*.*", _end)


def _end(model: Any, http_response: Any, **rest: Any) -> None:
    """End the process after a successful change, as a crash would, without any cleanup."""
    if not model.name.startswith(_READS) and http_response.status_code < 300:
        print(f"interrupted after {model.name}", flush=True)
        os._exit(INTERRUPTED)


if __name__ == "__main__":
    stage, _ = named(sys.argv[1:])
    sys.exit(command(lambda: remove.remove(Interrupted(), stage)))
