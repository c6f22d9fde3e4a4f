"""Wallet providers for tests and the local world: a strict imitation of a Rafiki server's Open
Payments surface.

`network.Network` is the whole of it as one synchronous function of a request;
`world.default_network` fills it with two providers and their accounts; `server` puts it behind
sockets. It shares the request and error types of `checkout.open_payments` and none of its
behaviour, so that it cannot repeat a mistake of our client.
"""
