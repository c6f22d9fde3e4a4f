"""The names of all checks, and of those that a test shows a violation by hand.

Each check must have noticed one: a seeded bug's (mutants.py) or one by hand (test_checks.py and its
neighbours). `make simulate-mutants` names the checks that neither has shown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
FAILS: Final = ("_fail", "_violate", "fail", "violate", "Violation")


def names() -> set[str]:
    """Return the names that the simulator's own modules give to violations."""
    return {
        str(node.args[0].value)
        for module in _modules(of_tests=False)
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)
        if getattr(node.func, "attr", getattr(node.func, "id", "")) in FAILS
    }


def by_hand() -> set[str]:
    """Return the texts in the simulator's tests, among which are the names that they expect."""
    return {
        node.value
        for module in _modules(of_tests=True)
        for node in ast.walk(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def never(caught: Iterable[str]) -> list[str]:
    """Return the checks that nothing has shown to notice, where seeded bugs have shown `caught`."""
    return sorted(names() - by_hand() - set(caught))


def _modules(*, of_tests: bool) -> Iterator[ast.Module]:
    for path in sorted(FOLDER.glob("*.py")):
        if path.name.startswith("test_") is of_tests:
            yield ast.parse(path.read_text("utf-8"))
