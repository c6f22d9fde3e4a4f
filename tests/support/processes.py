"""Processes for tests: a running local world, the sandbox's commands, and the ports of both.

The entry point for a test with processes of its own: `local_world` is shop, checkout, dashboard and
wallets as `make dev` starts them, `Dev` and `run` are the sandbox's commands as a developer starts
them, and `ended` waits for a process.
"""

from __future__ import annotations

import fcntl
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2

from sandbox.place import Place
from sandbox.server import Answer, AsgiServer, Incoming
from tests.support.sources import REPOSITORY

# Seconds. A world ends in three, on a busy machine in more.
ENDS_WITHIN: Final = 90.0


def ended(process: subprocess.Popen[str]) -> str:
    """Wait for the process to end, and return the rest of its output.

    Kills one that hangs and raises AssertionError with its output, in which Python's fault handler
    prints the stack of each thread (tests/conftest.py switches it on).
    """
    try:
        return process.communicate(timeout=ENDS_WITHIN)[0]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        said = process.communicate()[0]
        raise AssertionError(f"{process.args!r} timed out, and said:\n{said}") from None


# --- ports

# The ports of a local world, and those of wallets that are served without one (sandbox/wallets).
_WORLD = Place(0, Path(), 0)
OFFSETS = {*_WORLD.ports(), _WORLD.listener_port, 1, 2}
# Not the tests' own seed, with which two workers would choose the same ports at once.
_chance = random.SystemRandom()
# One byte for each port: the process that has locked it has the port. Locks end with their process.
_locks = os.open(
    Path(tempfile.gettempdir()) / f"checkout-sessions-test-ports-{os.getuid()}",
    os.O_CREAT | os.O_RDWR,
)
_ours: set[int] = set()


def free_base() -> int:
    """Return a base of which every port of the local world is free.

    No other call, in this process or another one, gets one of these ports while this process lives.
    """
    for _ in range(200):
        base = _chance.randrange(20_000, 32_000)  # below those that systems give to clients
        ports = {base + offset for offset in OFFSETS}
        if ports.isdisjoint(_ours) and _reserved(ports) and _unused(ports):
            return base
    raise AssertionError("no free ports")


def _reserved(ports: Iterable[int]) -> bool:
    """Lock the ports against other processes; return whether none has one of them."""
    try:
        for port in ports:
            fcntl.lockf(_locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            _ours.add(port)
    except OSError:
        return False
    return True


def _unused(ports: Iterable[int]) -> bool:
    try:
        for port in ports:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


# --- the local world

READY_WITHIN: Final = 60  # seconds, of which a slow machine may use some


@contextmanager
def local_world(state: Path, *, bought: bool = False) -> Iterator[Place]:
    """As `make dev` starts it, on ports of its own; its data lies in `state`. `bought`: with one
    purchase of Alice's.
    """
    base = free_base()
    environment = {**os.environ, "SANDBOX_PORT": str(base), "SANDBOX_STATE": str(state)}
    paths = [REPOSITORY / "layers/common", REPOSITORY / "functions", REPOSITORY]
    environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    sandbox = [sys.executable, "-m", "sandbox"]
    world = subprocess.Popen([*sandbox, "dev"], env=environment, stdout=subprocess.PIPE, text=True)
    place = Place(base, state / str(base))
    try:
        _wait_for(place.shop, world)
        if bought:
            subprocess.run([*sandbox, "demo"], env=environment, check=True, capture_output=True)
        yield place
    finally:
        world.terminate()
        ended(world)


def call(
    place: Place, path: str = "", body: Any = None, *, key: str | None = None, **query: Any
) -> httpx2.Response:
    """Ask the local world's API about its sessions; with a body or an action, by POST."""
    return httpx2.request(
        "GET" if body is None else "POST",
        f"{place.checkout}/api/checkout/sessions{path}",
        json=body,
        params=query,
        headers={"Authorization": f"Bearer {key or own_key(place)}"},
        trust_env=False,
    )


def own_key(place: Place) -> str:
    return place.api_key_file.read_text("utf-8").strip()


def _wait_for(address: str, world: subprocess.Popen[str]) -> None:
    for _ in range(READY_WITHIN * 10):
        try:
            if httpx2.get(address, trust_env=False).status_code == 200:
                return
        except httpx2.TransportError:
            pass
        try:
            world.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        break
    raise AssertionError("the local world did not start")


# --- commands

SANDBOX = (sys.executable, "-m", "sandbox")


class Dev:
    """`python -m sandbox dev`, or `make dev`, with its own ports and folder."""

    def __init__(
        self, state: Path, base: int, *, program: tuple[str, ...] = SANDBOX, **environment: str
    ) -> None:
        self.place = Place(base, state / str(base))
        self.process = sandbox(state, base, "dev", program=program, environment=environment)
        self.said: list[str] = []
        self._read_until("API key")

    def _read_until(self, word: str) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            if line.startswith(word):
                return
        raise AssertionError(f"it ended before it was ready: {self.text}")

    def end(self, number: signal.Signals = signal.SIGINT) -> None:
        """Send the signal to the process group, like a terminal; add the last output to `said`."""
        os.killpg(self.process.pid, number)
        self.said.append(ended(self.process))

    def cli(self, command: str) -> str:
        """Run the operator's command line with the world's settings; return what it prints."""
        settings, python = self.place.environment_file, sys.executable
        done = subprocess.run(  # noqa: S602 - the file of settings is for a shell
            f". '{settings}' && exec '{python}' -m checkout.cli {command}",
            shell=True,
            cwd=REPOSITORY / "layers/common",
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def new_merchant(self, name: str, wallet: str, pages: str) -> str:
        """Set up a merchant with a new key of the wallet, made at `pages`; return its API key."""
        file = self.place.folder / f"{name}.pem"
        key_id = new_key(pages, wallet, file)
        said = self.cli(
            f"setup --name {name} --wallet-address {wallet} --key-id {key_id}"
            f" --private-key '{file}'"
        )
        found = re.search(r"sk_\w+", said)
        assert found is not None, said
        return found[0]

    @property
    def text(self) -> str:
        return "".join(self.said)

    def get(self, path: str) -> httpx2.Response:
        key = self.place.api_key_file.read_text()
        headers = {"Authorization": f"Bearer {key}"}
        return httpx2.get(f"{self.place.checkout}{path}", headers=headers, trust_env=False)


def new_key(pages: str, wallet: str, file: Path) -> str:
    """Generate a key at the wallets' pages, save its private half to `file`; return its id."""
    made = httpx2.post(
        f"{pages}/keys", params={"address": wallet}, data={"do": "generate"}, trust_env=False
    ).text
    key_id = re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", made)
    pem = re.search(r"-----BEGIN PRIVATE KEY-----.*?-----END PRIVATE KEY-----", made, re.S)
    assert key_id is not None
    assert pem is not None
    assert key_id.start() < pem.start()
    file.write_text(pem[0])
    return key_id[0]


def sandbox(
    state: Path,
    base: int,
    *command: str,
    program: tuple[str, ...] = SANDBOX,
    environment: dict[str, str] | None = None,
) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        **(environment or {}),
        "SANDBOX_STATE": str(state),
        "SANDBOX_PORT": str(base),
        "PYTHONPATH": "layers/common:functions",
    }
    return subprocess.Popen(
        [*program, *command],
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run(state: Path, base: int, *command: str) -> tuple[int, str]:
    process = sandbox(state, base, *command)
    out = ended(process)
    return process.returncode, out


class Local:
    """The developer's own server."""

    def __init__(self, port: int, *, status: int = 200) -> None:
        self.got: list[Incoming] = []
        self.status = status
        self._server = AsgiServer(port, self._answer, body_max=100_000)
        self._server.start()

    def _answer(self, request: Incoming) -> Answer:
        self.got.append(request)
        return Answer(self.status, [("content-type", "text/plain")], b"seen")

    def types(self) -> list[str]:
        return sorted(dict(each.headers)["checkout-event-type"] for each in self.got)

    def close(self) -> None:
        self._server.close()
