"""`python -m benchmarks.ratios`: compare the CPU of events and of cold starts with their bounds.

`benchmarks.cpu` and `benchmarks.cold` run three times each, in processes of their own. The command
exits with 1 if a ratio is above its bound in two of the three runs. With --write, the tables of the
last run go into docs/performance.md.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from docs.tables import refreshed

RUNS: Final = 3
BEYOND: Final = 2  # runs
PAGE: Final = Path(__file__).parents[1] / "docs" / "performance.md"


class Row(NamedTuple):
    """A row of a table that has the columns `ratio` and `at most`."""

    name: str
    ratio: float
    bound: float | None  # None: the row is what the others are compared with


def tables(printed: str) -> list[str]:
    """Return the Markdown tables in a benchmark's output."""
    parts = printed.split("\n\n")
    return [part.strip() for part in parts if part.lstrip().startswith("|")]


def rows(table: str) -> Iterator[Row]:
    """Yield the rows of a table. Raise ValueError if it has no column `ratio` or `at most`."""
    header, _, *lines = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()
    )
    ratio, bound = header.index("ratio"), header.index("at most")
    for cells in lines:
        yield Row(f"{header[0]}: {cells[0]}", float(cells[ratio]), _number(cells[bound]))


def beyond(runs: list[list[Row]]) -> list[str]:
    """Return a line for each row that is beyond its bound in `BEYOND` of the runs."""
    ratios: dict[str, list[float]] = {}
    for row in (row for run in runs for row in run):
        ratios.setdefault(row.name, []).append(row.ratio)
    return [
        f"{name}: {', '.join(map(str, ratios[name]))} (at most {bound})"
        for name, _, bound in runs[0]
        if bound is not None and sum(each > bound for each in ratios[name]) >= BEYOND
    ]


def written(page: str, name: str, found: list[str]) -> str:
    """Return the page with these tables at the mark `name`. Raise ValueError without the mark."""
    return refreshed(page, {name: lambda: "\n\n".join(found)})


def main(arguments: list[str]) -> int:
    over = []
    for name in ("cpu", "cold"):
        printed = []
        for _ in range(RUNS):
            done = subprocess.run(
                [sys.executable, "-m", f"benchmarks.{name}"],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            print(done.stdout, flush=True)
            printed.append(tables(done.stdout))
        over += beyond([[row for table in run for row in rows(table)] for run in printed])
        if "--write" in arguments:
            PAGE.write_text(written(PAGE.read_text("utf-8"), name, printed[-1]), "utf-8")
    for each in over:
        print(f"BEYOND ITS BOUND {each}")
    return int(bool(over))


def _number(cell: str) -> float | None:
    return float(cell) if cell else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
