"""A transport over your own `httpx.Client`, which does NOT refuse internal addresses.

Use it where strangers do not choose the servers, with a proxy, a client certificate or a mock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import httpx

from open_payments import __version__
from open_payments.errors import NotSent, OutcomeUnknown
from open_payments.transports import Request, Response
from open_payments.transports.connections import Stopped, built
from open_payments.urls import target

_MAX_ANSWER_BYTES: Final = 256 * 1024
_USUAL: Final = {"User-Agent": f"open-payments/{__version__}", "Accept-Encoding": "identity"}
# httpx raises these before the first byte of the request is written.
_BEFORE: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)


class HttpxTransport:
    """`open_payments.transports.Transport` with `client`. Thread-safe, as `httpx.Client` is.

    Sends exactly the bytes that were signed: no cookie, no header and no authentication of `client`
    is added, and no redirect is followed. Do not give `client` a transport that repeats requests.
    """

    def __init__(
        self, client: httpx.Client, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._monotonic = monotonic

    def send(self, request: Request, *, timeout: float) -> Response:
        """Send `request` once. `timeout`, in seconds, limits each step and the reading.

        Raises NotSent if no connection was made or the URL cannot be sent as it is, and
        OutcomeUnknown for every later failure.
        """
        until = self._monotonic() + timeout
        limits = httpx.Timeout(timeout).as_dict()
        try:
            made = built(request, target(request.url), usual=_USUAL, extensions={"timeout": limits})
        except (Stopped, ValueError) as error:
            raise NotSent(str(error)) from None
        try:
            return self._exchange(made, until)
        except _BEFORE as error:
            failed: NotSent | OutcomeUnknown = NotSent(type(error).__name__)
        except Stopped as error:
            failed = OutcomeUnknown(str(error))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            failed = OutcomeUnknown(type(error).__name__)
        # Raised here, so that the error of httpx, which has the request, is not the context.
        raise failed

    def _exchange(self, request: httpx.Request, until: float) -> Response:
        answer = self._client.send(request, stream=True, auth=None, follow_redirects=False)
        try:
            body = b""
            # The answers of `httpx.MockTransport` have been read already.
            read = answer.is_stream_consumed
            for chunk in [answer.content] if read else answer.iter_raw():
                body += chunk
                if len(body) > _MAX_ANSWER_BYTES:
                    raise Stopped("answer too big")
                if self._monotonic() > until:
                    raise Stopped("out of time")
            if answer.headers.get("content-encoding", "identity").lower() != "identity":
                raise Stopped("compressed answer")
            return Response(answer.status_code, dict(answer.headers.items()), body)
        finally:
            answer.close()
