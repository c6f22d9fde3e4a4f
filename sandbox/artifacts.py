"""Rehearsal and deployment: trim and compile the artifacts of `sam build`.

`python -m sandbox.artifacts .aws-sam/build` makes every cold start shorter. It compiles the pages'
templates. It adds bytecode that Python uses without comparing it to the source file's date, because
SAM's archives set every date to 1980, and Lambda cannot write new bytecode to /opt and /var/task.
It removes botocore's descriptions of services that the product never calls, and Babel's data of
languages that the pages do not have. The command rejects any Python version but that of the
functions, because the functions would ignore other bytecode.
"""

from __future__ import annotations

import compileall
import os
import shutil
import subprocess
import sys
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Final

from checkout.domain.ground.languages import LANGUAGES

RUNTIME: Final = (3, 13)
# The AWS services of the clients in checkout/wiring.py.
SERVICES: Final = {"dynamodb", "kms", "secretsmanager", "sesv2", "sqs"}


class Unusable(Exception):
    """The artifacts cannot be finished; the message contains the reason."""


def finish(build: Path) -> None:
    """Trim and compile every artifact in the output folder of `sam build`. Raises Unusable."""
    if sys.version_info[:2] != RUNTIME:
        raise Unusable(f"Python {'.'.join(map(str, RUNTIME))} is needed, not {sys.version}")
    for data in build.glob("*/python/botocore/data"):
        _trim(data)
    for data in build.glob("*/python/babel/locale-data"):
        _trim_locales(data)
    _compile_templates(build)
    for artifact in (each for each in build.iterdir() if each.is_dir()):
        # Remove the bytecode that developers' runs have left, for any Python version.
        for stale in list(artifact.rglob("__pycache__")):
            shutil.rmtree(stale)
        compiled = compileall.compile_dir(
            artifact,
            quiet=1,
            # The paths as deployed, so that a traceback contains no path of this machine.
            stripdir=str(artifact),
            prependdir="/opt" if (artifact / "python").is_dir() else "/var/task",
            invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
        )
        if not compiled:
            raise Unusable(f"{artifact.name} contains a module that does not compile")


def _compile_templates(build: Path) -> None:
    """Compile each function's templates, with the version of Jinja that will load them."""
    folders = [str(each) for each in build.glob("*Function/*/templates")]
    if not folders:
        return
    layers = os.pathsep.join(str(build / name / "python") for name in ("CommonLayer", "PayLayer"))
    script = (
        "import sys, pathlib; from checkout.templates import compile_all\n"
        "for each in sys.argv[1:]: compile_all(pathlib.Path(each))"
    )
    done = subprocess.run(  # -S: without the packages of this environment
        [sys.executable, "-S", "-c", script, *folders],
        env=os.environ | {"PYTHONPATH": layers, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    if done.returncode:
        raise Unusable("a template does not compile")


def _trim(data: Path) -> None:
    services = {each.name for each in data.iterdir() if each.is_dir()}
    if missing := SERVICES - services:
        raise Unusable(f"botocore does not describe {', '.join(sorted(missing))}")
    for service in services - SERVICES:
        shutil.rmtree(data / service)


def _trim_locales(data: Path) -> None:
    """Keep only root.dat and the files of the pages' languages, such as de.dat and de_CH.dat."""
    for file in data.glob("*.dat"):
        if file.stem.partition("_")[0] not in {*LANGUAGES, "root"}:
            file.unlink()


if __name__ == "__main__":
    try:
        finish(Path(sys.argv[1]))
    except Unusable as unusable:
        sys.exit(f"Finishing the artifacts failed: {unusable}.")
