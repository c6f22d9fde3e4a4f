"""Find the builds of `make artifacts`: these tests build nothing themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _built(folder: str) -> Path:
    found = ROOT / ".aws-sam" / folder
    if not (found / "template.yaml").exists():
        pytest.fail(f"Nothing is built in {found}: run `make artifacts`.")
    return found


@pytest.fixture(scope="session")
def shipped() -> Path:
    """Return the build that `make deploy` would deploy."""
    return _built("build")


@pytest.fixture(scope="session")
def runnable() -> Path:
    """The same for this machine's processor."""
    return _built("rehearsal")
