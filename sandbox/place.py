"""Local world (checkout, wallets, shop on one machine): its ports, addresses and folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DEFAULT_PORT: Final = 4000
DEFAULT_WAIT: Final = 5  # seconds, as in Rafiki
_LONGEST: Final = 60
_HIGHEST: Final = 65_535 - 566
_ROOT: Final = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Place:
    """Location of a local world: all ports are offsets from `base`, all files are in `folder`.

    `wait` is the number of seconds that wallets make the checkout wait before it continues a grant.
    """

    base: int
    folder: Path
    wait: int = DEFAULT_WAIT

    @property
    def checkout(self) -> str:
        return f"http://localhost:{self.base}"

    @property
    def shop_port(self) -> int:
        return self.base + 10

    @property
    def shop(self) -> str:
        return f"http://localhost:{self.shop_port}"

    @property
    def listener_port(self) -> int:
        """Return the port of `python -m sandbox listen`, unused by the local world itself."""
        return self.base + 11

    @property
    def outbox_port(self) -> int:
        return self.base + 12

    @property
    def outbox(self) -> str:
        return f"http://localhost:{self.outbox_port}"

    @property
    def wallets_port(self) -> int:
        return self.base + 100

    @property
    def wallets(self) -> str:
        return f"http://localhost:{self.wallets_port}"

    @property
    def customer_wallet(self) -> str:
        return f"https://localhost:{self.base + 101}/alice"

    @property
    def merchant_wallet(self) -> str:
        return f"https://localhost:{self.base + 201}/shop"

    @property
    def emulator_port(self) -> int:
        return self.base + 566

    @property
    def bob(self) -> str:
        """Return a wallet address that no merchant uses yet, so that a shop can sign up with it."""
        return f"{self.merchant_wallet.rpartition('/')[0]}/bob"

    def ports(self) -> dict[int, str]:
        """Return every port of the local world with its use."""
        return {
            self.base: "the checkout",
            self.shop_port: "the shop",
            self.outbox_port: "the outbox",
            self.wallets_port: "the wallets' pages",
            self.base + 101: "Cedar Bank",
            self.base + 102: "Cedar Bank's authorization server",
            self.base + 201: "Harbor Wallet",
            self.base + 202: "Harbor Wallet's authorization server",
            self.emulator_port: "the AWS emulator",
        }

    @property
    def api_key_file(self) -> Path:
        return self.folder / "api-key"

    @property
    def wallets_folder(self) -> Path:
        return self.folder / "wallets"

    @property
    def environment_file(self) -> Path:
        return self.folder / "env"

    @property
    def ca_file(self) -> Path:
        """Return the CA file that the wallet providers' certificates are checked against."""
        return self.folder / "ca.pem"


def default_place() -> Place:
    """Return the place that SANDBOX_PORT, SANDBOX_WAIT and SANDBOX_STATE (a folder) describe.

    Each base port has its own data. Raises ValueError.
    """
    text = os.environ.get("SANDBOX_PORT", str(DEFAULT_PORT))
    if not text.isdecimal() or not 1024 <= int(text) <= _HIGHEST:
        raise ValueError(f"SANDBOX_PORT must be a number from 1024 to {_HIGHEST}.")
    base = int(text)
    wait = os.environ.get("SANDBOX_WAIT", str(DEFAULT_WAIT))
    if not wait.isdecimal() or not 1 <= int(wait) <= _LONGEST:
        raise ValueError(f"SANDBOX_WAIT must be 1 to {_LONGEST} seconds.")
    root = Path(os.environ.get("SANDBOX_STATE", _ROOT / ".sandbox"))
    return Place(base, root / str(base), int(wait))
