"""Router of the wallet providers: pass each request to the server to which its URL belongs."""

from __future__ import annotations

from open_payments.errors import NotSent
from open_payments.transports import Request, Response
from sandbox.wallets import auth_server, interaction, pages, resource_server, wallet_address_server
from sandbox.wallets.answers import Refusal
from sandbox.wallets.backend import Backend
from sandbox.wallets.call import Call


class Network(Backend):
    """Wallet providers as one synchronous function from request to response."""

    def handle(self, request: Request) -> Response:
        """Return the response of the provider that serves the URL's origin.

        Raises `NotSent` for any other origin, and `OutcomeUnknown` if a wallet closes the
        connection without an answer.
        """
        call = Call.of(request, servers=self.origins())
        self.advance()
        try:
            for provider in self.providers.values():
                if call.origin == provider.auth_origin:
                    return auth_server.answer(self, provider, call)
                if call.origin == provider.origin:
                    if call.path.startswith(f"/{provider.tenant}/"):
                        return resource_server.answer(self, provider, call)
                    return wallet_address_server.answer(self, provider, call)
        except Refusal as refusal:
            return refusal.response
        raise NotSent(f"no provider at {call.origin}")

    def handle_page(self, request: Request) -> Response:
        """Return a page for people: accounts, keys, consent."""
        self.advance()
        return pages.answer(self, Call.of(request, servers=[self.pages_origin]))

    def approve(self, interact_url: str) -> str:
        """Approve as the customer; return the URL to which the wallet redirects.

        Raises `interaction.NoInteraction` for an unknown URL. Raises `interaction.NoRedirect` if
        the wallet does not redirect; the choice is recorded all the same.
        """
        self.advance()
        return interaction.decide(self, interact_url, approve=True)

    def decline(self, interact_url: str) -> str:
        """Decline as the customer; otherwise like `approve`."""
        self.advance()
        return interaction.decide(self, interact_url, approve=False)
