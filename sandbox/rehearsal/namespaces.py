"""Rehearsal of a deployment: Linux namespaces in which its host names have public addresses.

The deployed functions connect only to https servers on port 443 of public addresses, and inside
Lambda no setting changes this. So the rehearsal's wallets have public addresses, which are bound to
the loopback interface of a network namespace. Requests to these addresses cannot leave the machine,
and the machine's own network, hosts file and trust store are not changed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

_INSIDE: Final = "REHEARSAL_NAMESPACES"
_HOSTS: Final = "/etc/hosts"
_NEEDED: Final = ("unshare", "ip", "mount")


class NamespacesUnavailable(Exception):
    """Namespaces are not available; the message names what is missing."""


def inside() -> bool:
    """Return whether this process already runs in the namespaces."""
    return _INSIDE in os.environ


def enter(module: str) -> NoReturn:
    """Replace this process by `python -m module` in new namespaces.

    Raises NamespacesUnavailable.
    """
    for program in _NEEDED:
        if shutil.which(program) is None:
            raise NamespacesUnavailable(
                f"`{program}` is needed (packages util-linux, iproute2, mount)."
            )
    unshare = ["unshare", "--map-root-user", "--net", "--mount"]
    tried = subprocess.run([*unshare, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        raise NamespacesUnavailable(
            f"Linux user and network namespaces are needed: {tried.stderr.strip()}"
        )
    command = [*unshare, sys.executable, "-m", module]
    os.execvpe(command[0], command, {**os.environ, _INSIDE: "1"})  # noqa: S606 - no shell needed


def configure(names: Mapping[str, str], scratch: Path) -> None:
    """Assign the addresses to loopback and map the host names, which are the keys, to them.

    Raises NamespacesUnavailable.
    """
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
        raise NamespacesUnavailable(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
