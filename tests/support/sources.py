"""The repository's own files, and its modules parsed, for tests of how they are written."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
NOT_OURS = {"node_modules", "__pycache__"}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def functions_of(path: Path) -> set[str]:
    """Return the names of a module's functions."""
    return {node.name for node in parsed(path).body if isinstance(node, ast.FunctionDef)}


def files(ending: str, *folders: str) -> Iterator[Path]:
    """Yield our own files below these folders whose name ends so, sorted.

    It enters no hidden folder and no installed package. A build or an installation that runs beside
    the tests writes and deletes files there.
    """
    for folder in folders:
        found = []
        for place, below, names in os.walk(REPOSITORY / folder):
            below[:] = [each for each in below if each[0] != "." and each not in NOT_OURS]
            found += [Path(place, each) for each in names if each.endswith(ending)]
        yield from sorted(found)


def nodes(*folders: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield each node of the modules below these folders, with its module's path."""
    for path in files(".py", *folders):
        name = str(path.relative_to(REPOSITORY))
        yield from ((name, node) for node in ast.walk(parsed(path)))
