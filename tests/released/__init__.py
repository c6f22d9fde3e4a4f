"""The last release's records, and its own reader (docs/howto/change-a-record.md).

    records.json    samples of all kinds of records, as the last release stores them
    reader.zip      the part of its code that stores and reads them, and its `kinds.py`

The reader is a file and no commit, because a clone in CI has no history, and a source package none
at all. `python -m tests.released` makes today's code the last release.
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
from tests.released import kinds

FOLDER: Final = Path(__file__).parent
READER: Final = FOLDER / "reader.zip"
RECORDS: Final = FOLDER / "records.json"
_MADE: Final = (1980, 1, 1, 0, 0, 0)  # the same files make the same archive


def write() -> None:
    """Make today's code the last release."""
    written = json.dumps(kinds.written(), ensure_ascii=False, indent=0, sort_keys=True)
    RECORDS.write_text(written + "\n", "utf-8")
    pack(READER, Path(kinds.__file__), modules())


def modules() -> dict[str, Path]:
    """Return the files of the product that storing a record needs, by their names in an archive."""
    code = f"import runpy, sys; runpy.run_path({kinds.__file__!r}); print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    root = Path(checkout.__file__).parents[1]
    found = {}
    for name in said.stdout.split():
        if name.partition(".")[0] == "checkout":
            path = name.replace(".", "/")
            path = f"{path}/__init__.py" if (root / path).is_dir() else f"{path}.py"
            found[path] = root / path
    return found


def pack(archive: Path, main: Path, files: dict[str, Path]) -> None:
    """Write an archive that runs as `kinds.py` over these files."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as found:
        for name, file in sorted({**files, "__main__.py": main}.items()):
            found.writestr(zipfile.ZipInfo(name, _MADE), file.read_bytes(), zipfile.ZIP_DEFLATED)


def last_release_reads(stored: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return what the last release's own code reads, and would write again."""
    done = subprocess.run(
        [sys.executable, str(READER)],
        input=json.dumps(stored),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ""},
        check=False,
    )
    assert not done.returncode, done.stderr
    answer: dict[str, list[dict[str, Any]]] = json.loads(done.stdout)
    return answer
