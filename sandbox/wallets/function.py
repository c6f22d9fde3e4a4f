"""The wallets of a test stage, as one Lambda function behind the stage's HTTP API.

TEST_WALLETS is the address of the wallets. The pages are at its root, the providers' wallet
addresses and resources at `/cedar` and `/harbor`, and their authorization servers at `/cedar-auth`
and `/harbor-auth`. The table WALLETS_TABLE has one record with the whole state. Each request is
handled on a copy of that state, and then the copy is written. If another process has written
meanwhile, the request is handled again on the new state. So many processes behave like one
single-threaded server.
"""

from __future__ import annotations

import base64
import os
import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

from open_payments.errors import NotSent, OutcomeUnknown
from open_payments.transports import Request, Response, Transport
from sandbox.wallets.defaults import PORT_BASE, default_network
from sandbox.wallets.kept import Conflict, Kept, Table
from sandbox.wallets.network import Network

_PATIENCE: Final = 5.0  # seconds for a client's document, as in Rafiki
_ATTEMPTS: Final = 12
_PAUSE: Final = 0.05  # seconds; the longest pause after the first conflict
_BODY_MAX: Final = 64 * 1024  # bytes of a request, and of a client's document


class TestWallets:
    """The wallets below the address `base`, with their state in the table of `kept`.

    `public` reads clients' documents. `sleep(seconds)` is called for slow wallets and after
    conflicts.
    """

    __test__ = False  # pytest would collect the class as a test because of its name

    def __init__(
        self,
        base: str,
        kept: Kept,
        public: Transport,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        random_bytes: Callable[[int], bytes] = os.urandom,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._base = base
        self._kept = kept
        self._public = public
        self._now = now
        self._random_bytes = random_bytes
        self._sleep = sleep

    def answer(self, request: Request) -> Response:
        """Handle a request. Return 502 if the wallet hangs up, 503 after too many conflicts."""
        if len(request.body or b"") > _BODY_MAX:
            return Response(413, {}, b"")
        documents: dict[str, bytes] = {}
        for attempt in range(_ATTEMPTS):
            waits: list[float] = []
            network = self._network(documents, waits)
            version = self._kept.load(network)
            try:
                answer = self._handled(network, request)
            except OutcomeUnknown:
                # The HTTP API cannot close the connection without an answer. A client treats a 502
                # in the same way: the outcome is unknown.
                answer = Response(502, {}, b"")
            try:
                self._kept.save(network, version)
            except Conflict:
                self._sleep(random.random() * _PAUSE * 2 ** min(attempt, 4))  # noqa: S311 - a pause
                continue
            self._sleep(sum(waits))
            return answer
        return Response(503, {"retry-after": "1"}, b"")

    def _handled(self, network: Network, request: Request) -> Response:
        servers = sorted(network.origins()[1:], key=len, reverse=True)
        if any(request.url.startswith(f"{each}/") for each in servers):
            return network.handle(request)
        return network.handle_page(request)

    def _network(self, documents: dict[str, bytes], waits: list[float]) -> Network:
        """Return the wallets in their initial state.

        `documents` caches clients' documents, and `waits` collects the seconds of `sleep`.
        """
        servers = {
            PORT_BASE + 1: f"{self._base}/cedar",
            PORT_BASE + 2: f"{self._base}/cedar-auth",
            PORT_BASE + 101: f"{self._base}/harbor",
            PORT_BASE + 102: f"{self._base}/harbor-auth",
        }

        def fetch(url: str) -> bytes:
            """Return a client's document, from the cache if the request is handled again."""
            if url not in documents:
                documents[url] = self._document(url)
            return documents[url]

        return default_network(
            self._now,
            self._random_bytes,
            origin=servers.__getitem__,
            pages_origin=self._base,
            fetch=fetch,
            sleep=waits.append,
        )

    def _document(self, url: str) -> bytes:
        """Return the document at a client's URL. Raises OSError if it cannot be read."""
        asked = Request("GET", url, {"Accept": "application/json"})
        try:
            answer = self._public.send(asked, timeout=_PATIENCE)
        except (NotSent, OutcomeUnknown) as error:
            raise OSError(str(error)) from None
        if answer.status != 200 or len(answer.body) > _BODY_MAX:
            raise OSError(f"{url} answers {answer.status}")
        return answer.body


def request_of(event: Mapping[str, Any], base: str) -> Request:
    """Return the request of an HTTP API's event (payload 2.0), with the URL that was signed.

    The URL has scheme and host of `base`, because the event may have another host.
    """
    parts = urlsplit(base)
    query = event.get("rawQueryString", "")
    url = f"{parts.scheme}://{parts.netloc}{event['rawPath']}{'?' if query else ''}{query}"
    body = event.get("body") or ""
    raw = base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()
    method = event["requestContext"]["http"]["method"]
    return Request(method, url, dict(event.get("headers", {})), raw or None)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer a request of the HTTP API."""
    del context
    answer = _wallets().answer(request_of(event, os.environ["TEST_WALLETS"]))
    return {
        "statusCode": answer.status,
        "headers": dict(answer.headers),
        "body": base64.b64encode(answer.body).decode(),
        "isBase64Encoded": True,
    }


@cache
def _wallets() -> TestWallets:
    import boto3

    from checkout.version import VERSION
    from open_payments.transports.public import PublicTransport

    table = Table(boto3.client("dynamodb"), os.environ["WALLETS_TABLE"])
    public = PublicTransport(
        user_agent=f"checkout-sessions/{VERSION}", max_answer_bytes=2 * _BODY_MAX
    )
    return TestWallets(os.environ["TEST_WALLETS"], Kept(table), public)
