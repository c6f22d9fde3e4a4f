"""Serve an application on a loopback port, from this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn

STARTS_WITHIN: Final = 10  # seconds


@contextmanager
def serving(app: Any, port: int) -> Iterator[None]:
    """Serve the application until the end of the block."""
    config = uvicorn.Config(app, port=port, log_level="warning", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        for _ in range(STARTS_WITHIN * 100):
            if server.started:
                break
            time.sleep(0.01)
        assert server.started, "the application is not served"
        yield
    finally:
        server.should_exit = True
        thread.join()
