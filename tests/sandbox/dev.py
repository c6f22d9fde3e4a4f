"""The sandbox's commands as a developer runs them: in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx2

from sandbox.place import Place

REPOSITORY = Path(__file__).parent.parent.parent
SANDBOX = (sys.executable, "-m", "sandbox")


class Dev:
    """`python -m sandbox dev`, or `make dev`, at a place of its own."""

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
        out, _ = self.process.communicate(timeout=20)
        self.said.append(out)

    @property
    def text(self) -> str:
        return "".join(self.said)

    def get(self, path: str) -> httpx2.Response:
        key = self.place.api_key_file.read_text()
        headers = {"Authorization": f"Bearer {key}"}
        return httpx2.get(f"{self.place.checkout}{path}", headers=headers, trust_env=False)


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
    out, _ = process.communicate(timeout=60)
    return process.returncode, out
