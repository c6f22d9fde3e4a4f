"""Run the sandbox's commands like a developer, in processes of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx2

from sandbox.place import Place
from sandbox.server import Answer, AsgiServer, Incoming
from tests.support.processes import ended

REPOSITORY = Path(__file__).parent.parent.parent
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
