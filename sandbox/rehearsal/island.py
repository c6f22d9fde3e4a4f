"""A network that ends at this process: Linux namespaces of its own, in which the names of the
rehearsal have public addresses.

The deployed functions call https on port 443 of public addresses and nothing else (no setting
changes that inside Lambda), so the wallets of the rehearsal have such addresses, bound to the
island's loopback interface. Nothing that is asked there can leave the machine, and nothing of the
machine's own network, hosts file or trust store is touched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

_ON_IT: Final = "REHEARSAL_ISLAND"
_HOSTS: Final = "/etc/hosts"
_NEEDED: Final = ("unshare", "ip", "mount")


class NoIsland(Exception):
    """Namespaces cannot be had here; the message says what they need."""


def reached() -> bool:
    """Whether this process lives on the island already."""
    return _ON_IT in os.environ


def go(module: str) -> NoReturn:
    """Become `python -m module` on the island. Raises NoIsland."""
    for program in _NEEDED:
        if shutil.which(program) is None:
            raise NoIsland(f"`{program}` is needed (packages util-linux, iproute2, mount).")
    unshare = ["unshare", "--map-root-user", "--net", "--mount"]
    tried = subprocess.run([*unshare, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        raise NoIsland(f"Linux user and network namespaces are needed: {tried.stderr.strip()}")
    command = [*unshare, sys.executable, "-m", module]
    os.execvpe(command[0], command, {**os.environ, _ON_IT: "1"})  # noqa: S606 - no shell is wanted


def settle(names: Mapping[str, str], scratch: Path) -> None:
    """Give the names their addresses. Raises NoIsland."""
    hosts = scratch / "hosts"
    lines = [f"{address} {name}\n" for name, address in names.items()]
    hosts.write_text("127.0.0.1 localhost\n" + "".join(lines), "utf-8")
    _run("ip", "link", "set", "lo", "up")
    for address in names.values():
        _run("ip", "address", "add", f"{address}/32", "dev", "lo")
    _run("mount", "--bind", str(hosts), _HOSTS)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoIsland(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
