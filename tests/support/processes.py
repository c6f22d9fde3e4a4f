"""Wait for the processes that tests start to end, and say where one stands that does not."""

from __future__ import annotations

import signal
import subprocess
from typing import Final

# Seconds. A world ends in three, on a busy machine in more.
ENDS_WITHIN: Final = 90.0


def ended(process: subprocess.Popen[str]) -> str:
    """Wait for the process to end, and return the rest of its output.

    Kills one that hangs and raises AssertionError with its output, in which Python's fault handler
    prints the stack of each thread (tests/conftest.py switches it on).
    """
    try:
        return process.communicate(timeout=ENDS_WITHIN)[0]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        said = process.communicate()[0]
        raise AssertionError(f"{process.args!r} timed out, and said:\n{said}") from None
