"""Keep test stages and all others apart: each asks the wallets of its own kind only."""

from __future__ import annotations

from checkout.open_payments.errors import NotSent
from checkout.open_payments.transport import Request, Response, Transport
from checkout.open_payments.urls import of_stage


class StageTransport:
    """`open_payments.transport.Transport` to the wallets of this stage, by way of another one.

    Every request to a wallet's servers comes through here, so it holds for each way to give a
    wallet address, and for what a wallet answers with. `test_wallets` as in `urls.of_stage`.
    """

    def __init__(self, transport: Transport, test_wallets: str) -> None:
        self._transport = transport
        self._test_wallets = test_wallets

    def send(self, request: Request, *, timeout: float) -> Response:
        """Send as the other transport does. Raises NotSent for a wallet of the other kind."""
        if not of_stage(request.url, self._test_wallets):
            raise NotSent(
                "a test stage asks only its own wallets"
                if self._test_wallets
                else "this is a wallet of a test stage, which has no real money"
            )
        return self._transport.send(request, timeout=timeout)
