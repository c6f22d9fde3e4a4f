"""The repository's own modules, parsed, for tests of how they are written."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def nodes(*folders: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield each node of the modules below these folders, with its module's path."""
    for path in sorted(each for folder in folders for each in (REPOSITORY / folder).rglob("*.py")):
        name = str(path.relative_to(REPOSITORY))
        if "/." in name or "/node_modules/" in name:  # packages that a test has installed
            continue
        yield from ((name, node) for node in ast.walk(parsed(path)))
