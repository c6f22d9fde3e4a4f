"""Serve only the wallet providers, until the process is stopped.

`python -m sandbox.wallets --port-base N --state DIR`
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sandbox.wallets import certificates
from sandbox.wallets.defaults import PORT_BASE, default_network
from sandbox.wallets.network import Network
from sandbox.wallets.server import Sleeper, WalletServers


def main() -> int:
    """Serve until SIGINT or SIGTERM. Exit codes: 0 stopped, 1 could not start."""
    options = _options()
    folder: Path = options.state
    now = datetime.now(UTC)
    sleeper = Sleeper()
    network = default_network(
        lambda: datetime.now(UTC), os.urandom, port_base=options.port_base, sleep=sleeper
    )
    saved = folder / "wallets.json"
    try:
        restore(network, saved)
        found = certificates.ensure(folder, now)
        servers = WalletServers(network, found.server_context(), sleeper)
    except (OSError, ValueError) as error:
        print(f"sandbox wallets: {error}", file=sys.stderr)
        return 1
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    servers.start()
    print(f"wallets        {network.pages_origin}/")
    for provider in network.providers.values():
        print(f"{provider.title:<14} {provider.origin} (authorization {provider.auth_origin})")
    print(f"CA file        {found.authority}", flush=True)
    while not stop.wait(1):
        save(servers.changes(), saved)
    servers.close()
    save(servers.changes(), saved)
    return 0


def restore(network: Network, path: Path) -> None:
    """Load the file that `save` wrote, if it exists.

    Raises ValueError if the file does not match `network`; the message says what to do next.
    """
    try:
        network.load(dict(json.loads(path.read_bytes())))
    except FileNotFoundError:
        return
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            f"{path} does not match these wallets; remove it to start afresh"
        ) from None


def save(data: dict[str, Any] | None, path: Path) -> None:
    """Write a network's dump to `path` atomically; do nothing for None (no changes)."""
    if data is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(data), "utf-8")
    partial.replace(path)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m sandbox.wallets", description="Serve the wallet providers alone."
    )
    parser.add_argument("--port-base", type=int, default=PORT_BASE, help="port of the pages")
    parser.add_argument(
        "--state",
        type=Path,
        default=Path(".sandbox/wallets"),
        help="folder for data and certificates",
    )
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
