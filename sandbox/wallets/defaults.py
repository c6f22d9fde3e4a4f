"""Default network of the tests and of `make dev`: two providers and their accounts.

Cedar Bank has customers in EUR and the wallets that misbehave; Harbor Wallet has the shops and
customers in USD.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from sandbox.wallets.behaviours import BEHAVIOURS
from sandbox.wallets.clients import no_fetch
from sandbox.wallets.network import Network
from sandbox.wallets.provider import Provider, Rules
from sandbox.wallets.state import Account

PORT_BASE: Final = 4100

_CEDAR_TENANT: Final = "438fa74a-fa7d-4317-9ced-dde32ece1787"
_HARBOR_TENANT: Final = "cf5fd7d3-1eb1-4041-8e43-ba45747e9e5d"

# path, public name, asset code, asset scale, balance
_CEDAR: Final = (
    ("alice", "Alice", "EUR", 2, 10_000_00),
    ("carol", "Carol", "EUR", 2, 500_00),
    ("jpy", "Yuki", "JPY", 0, 1_000_000),
    ("scale9", "Nadia", "EUR", 9, 10_000 * 10**9),
    ("shop-eur", "Cedar Books", "EUR", 2, 0),
)
_HARBOR: Final = (
    ("shop", "Harbor Coffee", "USD", 2, 0),
    ("shop-eur", "Harbor Prints", "EUR", 2, 0),
    ("shop-jpy", "Harbor Tea", "JPY", 0, 0),
    ("shop-kwd", "Harbor Pearls", "KWD", 3, 0),
    ("shop-scale9", "Harbor Nano", "USD", 9, 0),
    ("bob", "Bob", "USD", 2, 10_000_00),
)


def on_localhost(port: int) -> str:
    """Return the origin of a provider's server in the local world."""
    return f"https://localhost:{port}"


def default_network(
    now: Callable[[], datetime],
    random_bytes: Callable[[int], bytes],
    *,
    port_base: int = PORT_BASE,
    origin: Callable[[int], str] = on_localhost,
    pages_origin: str | None = None,
    rules: Rules | None = None,
    fetch: Callable[[str], bytes] = no_fetch,
    sleep: Callable[[float], None] = lambda _: None,
) -> Network:
    """Return a network of two providers, by default on localhost.

    The pages are at `port_base`, Cedar Bank at +1 (authorization server +2), Harbor Wallet at +101
    (+102). `origin`, a function of these ports, and `pages_origin` choose other addresses.
    """
    rules = rules or Rules()
    cedar = _provider("cedar", "Cedar Bank", port_base + 1, origin, _CEDAR_TENANT, rules)
    harbor = _provider("harbor", "Harbor Wallet", port_base + 101, origin, _HARBOR_TENANT, rules)
    network = Network(
        now,
        random_bytes,
        providers=(cedar, harbor),
        pages_origin=pages_origin or f"http://localhost:{port_base}",
        fetch=fetch,
        sleep=sleep,
    )
    for provider, accounts in ((cedar, _CEDAR), (harbor, _HARBOR)):
        for path, name, code, scale, balance in accounts:
            network.add_account(Account(f"{provider.origin}/{path}", name, code, scale, balance))
    for behaviour in BEHAVIOURS:
        if behaviour != "normal":
            name = behaviour.replace("-", " ").capitalize()
            balance = 0 if behaviour in {"no-funds", "redirects"} else 10_000_00
            network.add_account(
                Account(f"{cedar.origin}/{behaviour}", name, "EUR", 2, balance, behaviour)
            )
    return network


def _provider(
    name: str, title: str, port: int, origin: Callable[[int], str], tenant: str, rules: Rules
) -> Provider:
    return Provider(
        name=name,
        title=title,
        origin=origin(port),
        auth_origin=origin(port + 1),
        tenant=tenant,
        rules=rules,
    )
