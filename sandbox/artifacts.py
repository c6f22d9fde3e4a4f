"""`python -m sandbox.artifacts .aws-sam/build`: what is done to the artifacts of `sam build` before
they are deployed.

Two things, because /opt and /var/task are read-only and each cold start pays for them: bytecode is
added that Python uses without asking for a file's date (SAM's archives date everything 1980), and
botocore's descriptions of services that the product never calls are left out. Run it with the
interpreter of the functions' runtime: it refuses any other, whose bytecode would be ignored.
"""

from __future__ import annotations

import compileall
import shutil
import sys
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Final

RUNTIME: Final = (3, 13)
# What checkout/wiring.py makes clients of.
SERVICES: Final = {"dynamodb", "secretsmanager", "sqs"}


class Unusable(Exception):
    """The artifacts cannot be finished; the message says why."""


def finish(build: Path) -> None:
    """Trim and compile every artifact in a folder that `sam build` has filled. Raises Unusable."""
    if sys.version_info[:2] != RUNTIME:
        raise Unusable(f"Python {'.'.join(map(str, RUNTIME))} is needed, not {sys.version}")
    for data in build.glob("*/python/botocore/data"):
        _trim(data)
    for artifact in (each for each in build.iterdir() if each.is_dir()):
        for stale in list(artifact.rglob("__pycache__")):  # a developer's, of any version
            shutil.rmtree(stale)
        compiled = compileall.compile_dir(
            artifact,
            quiet=1,
            # Where the files will be, so that a traceback tells nothing of this machine.
            stripdir=str(artifact),
            prependdir="/opt" if (artifact / "python").is_dir() else "/var/task",
            invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
        )
        if not compiled:
            raise Unusable(f"{artifact.name} holds a module that does not compile")


def _trim(data: Path) -> None:
    services = {each.name for each in data.iterdir() if each.is_dir()}
    if missing := SERVICES - services:
        raise Unusable(f"botocore does not describe {', '.join(sorted(missing))}")
    for service in services - SERVICES:
        shutil.rmtree(data / service)


if __name__ == "__main__":
    try:
        finish(Path(sys.argv[1]))
    except Unusable as unusable:
        sys.exit(f"The artifacts are not usable: {unusable}.")
