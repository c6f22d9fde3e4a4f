"""Requests to an ASGI app, in this thread and one event loop: one thread a request took 12 ms."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import httpx2

_free = threading.Lock()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def _answer(request: Coroutine[Any, Any, httpx2.Response]) -> httpx2.Response:
    """Run a request.

    A request that starts while another request or another loop, such as Playwright's, runs gets a
    thread and a loop of its own.
    """
    if asyncio._get_running_loop() is None and _free.acquire(blocking=False):
        try:
            return _loop().run_until_complete(request)
        finally:
            _free.release()
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(asyncio.run, request).result()


class Client:
    """A client that keeps cookies, and follows redirects only if it is asked to.

    It asks from a network `address`. An exception of the app is raised.
    """

    def __init__(
        self,
        app: Any,
        *,
        base_url: str,
        address: str = "testclient",
        headers: Mapping[str, str] | None = None,
        follow_redirects: bool = False,
    ) -> None:
        self._transport = httpx2.ASGITransport(app=app, client=(address, 4711))
        self._client = httpx2.AsyncClient(
            transport=self._transport,
            base_url=base_url,
            headers={"user-agent": "testclient", **(headers or {})},
            follow_redirects=follow_redirects,
        )

    @property
    def cookies(self) -> httpx2.Cookies:
        return self._client.cookies

    def move_to(self, address: str) -> None:
        """Send further requests from another network address."""
        self._transport.client = (address, 4711)

    def request(self, method: str, url: str, **options: Any) -> httpx2.Response:
        return _answer(self._client.request(method, url, **options))

    def get(self, url: str, **options: Any) -> httpx2.Response:
        return self.request("GET", url, **options)

    def post(self, url: str, **options: Any) -> httpx2.Response:
        return self.request("POST", url, **options)
