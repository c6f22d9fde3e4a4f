"""HTTP server on loopback for a plain function from request to response (uvicorn in a thread)."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import uvicorn

from sandbox.wallets.certificates import Certificates

THREADS: Final = 32
STARTED_WITHIN: Final = 10.0  # seconds
Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request. `target` is the path and query as sent; `client` is an IP address."""

    method: str
    target: str
    headers: Headers
    body: bytes = b""
    client: str = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Answer:
    """A response; Content-Length is added when it is sent."""

    status: int
    headers: Headers
    body: bytes = b""


class AsgiServer:
    """Server that calls `answer` for each request, from `start` to `close`; https with `tls`.

    `answer` runs in `threads` worker threads. Reading stops once a body has more than `body_max`
    bytes, and `answer` gets the longer body so that it can reject it. Raises OSError if the port is
    taken.
    """

    def __init__(
        self,
        port: int,
        answer: Callable[[Incoming], Answer],
        *,
        body_max: int,
        tls: Certificates | None = None,
        threads: int = THREADS,
    ) -> None:
        self._answer = answer
        self._body_max = body_max
        self._workers = ThreadPoolExecutor(threads, thread_name_prefix=f"http-{port}")
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._app,
                host="127.0.0.1",
                port=port,
                http="h11",
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                date_header=True,
                proxy_headers=False,
                h11_max_incomplete_event_size=64 * 1024,
                timeout_graceful_shutdown=1,
                ssl_certfile=tls.certificate if tls else None,
                ssl_keyfile=tls.key if tls else None,
            )
        )
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", port))
        except OSError:
            self._socket.close()
            raise

    def start(self) -> None:
        """Start the server. It is listening when this returns."""
        self._socket.listen(128)
        self._thread.start()

    def close(self) -> None:
        """Stop listening; requests in progress have a second to finish."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(STARTED_WITHIN)
        self._socket.close()
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _serve(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    async def _app(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        body = bytearray()
        more = True
        while more and len(body) <= self._body_max:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        query = scope["query_string"].decode("latin-1")
        path = scope["raw_path"].decode("latin-1")
        request = Incoming(
            method=scope["method"],
            target=f"{path}?{query}" if query else path,
            headers=[(k.decode("latin-1"), v.decode("latin-1")) for k, v in scope["headers"]],
            body=bytes(body),
            client=scope["client"][0] if scope.get("client") else "127.0.0.1",
        )
        loop = asyncio.get_running_loop()
        answer = await loop.run_in_executor(self._workers, self._answer, request)
        headers = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in answer.headers]
        if answer.status not in (204, 304):
            headers.append((b"content-length", str(len(answer.body)).encode()))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})
