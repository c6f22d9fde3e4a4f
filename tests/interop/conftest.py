"""Node, with the packages that are not ours; a local world, and the owner of its shop."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.place import Place
from tests.interop.refunding import Owner
from tests.support.node import with_packages
from tests.support.processes import local_world

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def node() -> str:
    """Node with the packages installed; their versions are printed."""
    found = with_packages(HERE)
    for name in json.loads((HERE / "package.json").read_text())["dependencies"]:
        text = (HERE / "node_modules" / name / "package.json").read_text()
        print(f"{name} {json.loads(text)['version']}")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    print(f"node {version.stdout.strip()}")
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with local_world(tmp_path_factory.mktemp("world")) as found:
        yield found


@pytest.fixture(scope="module")
def owner(place: Place) -> Iterator[Owner]:
    found = Owner(place)
    yield found
    found.leave()


@pytest.fixture(scope="module")
def seller(owner: Owner) -> str:
    """Return an API key that may do everything but refund."""
    return owner.new_key("full")
