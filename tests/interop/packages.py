"""Python packages that are not ours, each set in a folder of its own, installed once."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

PACKAGES: Final = Path(__file__).parent / ".packages"
REPOSITORY: Final = Path(__file__).parents[2]

# Current, and one release of each of the last three major versions.
STRIPE: Final = ("stripe==16.1.0", "stripe==15.6.2", "stripe==14.4.2", "stripe==13.2.1")
FLASK: Final = ("flask==3.1.3", "stripe==16.1.0")
DJANGO: Final = ("django==5.2.19", "django-payments[stripe]==4.1.0", "stripe==12.5.2")
DJ_STRIPE: Final = ("django==5.2.19", "dj-stripe==2.11.0", "stripe==15.6.2")
STRIPE_RUBY: Final = ("stripe", "19.5.0")
CLIENT_GENERATOR: Final = ("openapi-python-client==0.29.1",)
# Its models can refuse what a document does not describe; those of the other cannot.
MODEL_GENERATOR: Final = ("datamodel-code-generator==0.89.0",)


def installed(*requirements: str) -> Path:
    """Return the folder with these packages and what they need."""

    def install(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder)]
        options = ["--disable-pip-version-check", "--no-warn-script-location"]
        subprocess.run([*pip, *options, *requirements], check=True, timeout=300)

    return _made("_".join(requirements).replace("==", "-").replace("[stripe]", ""), install)


def gem(name: str, version: str) -> Path:
    """Return the folder with this gem. Skips the test where there is no registry of gems."""
    program = shutil.which("gem")
    if program is None:
        assert "CI" not in os.environ, "CI must have Ruby"
        pytest.skip("Ruby is not installed: apt-get install ruby")

    def install(folder: Path) -> None:
        command = [program, "install", name, "--version", version, "--no-document"]
        command += ["--install-dir", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if "Unable to download data" in done.stderr:
            pytest.skip(f"no registry of gems can be reached: {name} was not run")
        assert done.returncode == 0, done.stderr

    return _made(f"gem_{name}-{version}", install)


def _made(name: str, install: Callable[[Path], None]) -> Path:
    """Return the folder of this name, installed whole, by one process at a time."""
    folder = PACKAGES / name
    PACKAGES.mkdir(exist_ok=True)
    with (PACKAGES / "lock").open("w") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            install(partial)
            partial.rename(folder)
    return folder


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a Python process that finds these packages before all others."""
    return {**os.environ, "PYTHONPATH": str(folder), "PYTHONWARNINGS": "ignore", **more}
