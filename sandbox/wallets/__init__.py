"""Wallets: Open Payments providers for `make dev` and the tests, as strict as a Rafiki server.

    defaults.py                      the default network: two providers and their accounts
    network.py                       router: one synchronous function of a request
    wallet_address_server.py auth_server.py resource_server.py (receiving.py, paying.py)
                                     the servers of a provider
    pages.py interaction.py          the pages for people, and a customer's consent
    backend.py state.py money.py     accounts, payments and exchange rates
    server.py certificates.py        the network behind TLS sockets

Rafiki is the reference server of Open Payments. This package uses the request and error types of
the client `open_payments` but none of its logic, so that no mistake of the client is repeated here.
"""
