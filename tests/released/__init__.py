"""The last release: its records, and its own code (docs/howto/change-a-record.md).

    records.json    samples of all kinds of records, as the last release stores them
    code.zip        its two packages, its `kinds.py` as the main file, and its `WIRING`

The code is a file and no commit, because a clone in CI has no history, and a source package none
at all. `python -m tests.released` makes today's code the last release. tests/simulation/releases.py
has it serve beside today's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, Final

import checkout
import open_payments
from tests.released import kinds

FOLDER: Final = Path(__file__).parent
CODE: Final = FOLDER / "code.zip"
RECORDS: Final = FOLDER / "records.json"
WIRING: Final = "wiring_in_tests.py"  # tests/support/services.py, under a name of its own
_MADE: Final = (1980, 1, 1, 0, 0, 0)  # the same files make the same archive


def write() -> None:
    """Make today's code the last release."""
    written = json.dumps(kinds.written(), ensure_ascii=False, indent=0, sort_keys=True)
    RECORDS.write_text(written + "\n", "utf-8")
    pack(CODE, Path(kinds.__file__), product())


def product() -> dict[str, Path]:
    """Return the files of the product, and of its wiring in tests, by their names in an archive."""
    found: dict[str, Path] = {}
    for package in (checkout, open_payments):  # the second is a link, which `**` would not follow
        root = Path(package.__path__[0]).resolve().parent
        for kind in ("py", "json"):
            files = root.glob(f"{package.__name__}/**/*.{kind}")
            found |= {str(each.relative_to(root)): each for each in files}
    return {**found, WIRING: FOLDER.parent / "support/services.py"}


def pack(archive: Path, main: Path, files: dict[str, Path]) -> None:
    """Write an archive that runs as `kinds.py` over these files."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as found:
        for name, file in sorted({**files, "__main__.py": main}.items()):
            found.writestr(zipfile.ZipInfo(name, _MADE), file.read_bytes(), zipfile.ZIP_DEFLATED)


def last_release_reads(stored: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return what the last release's own code reads, and would write again."""
    done = subprocess.run(
        [sys.executable, str(CODE)],
        input=json.dumps(stored),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ""},
        check=False,
    )
    assert not done.returncode, done.stderr
    answer: dict[str, list[dict[str, Any]]] = json.loads(done.stdout)
    return answer
