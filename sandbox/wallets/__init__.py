"""Wallets: Open Payments providers for the local world and the tests, as strict as a Rafiki server.

    defaults.py                      the default network: two providers and their accounts
    network.py                       router: one synchronous function of a request
    wallet_address_server.py auth_server.py resource_server.py (receiving.py, paying.py)
                                     the servers of a provider
    pages.py interaction.py          the pages for people, and a customer's consent
    backend.py state.py money.py     accounts, payments and exchange rates
    server.py certificates.py        the network behind TLS sockets

It shares the request and error types of `open_payments` and none of its behaviour, so that
it cannot share a mistake with our client.
"""
