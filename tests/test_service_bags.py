"""Count the service bags, and the places that build them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
BAGS = {"Services", "PayServices", "DashboardServices"}
PLACES_MAX = 6


def _trees(*folders: str) -> Iterator[tuple[str, ast.AST]]:
    for folder in folders:
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            yield str(path.relative_to(REPOSITORY)), ast.parse(path.read_text("utf-8"))


def test_there_are_three_bags() -> None:
    module = ast.parse((REPOSITORY / "layers/common/checkout/ports/services.py").read_text("utf-8"))
    assert {node.name for node in ast.walk(module) if isinstance(node, ast.ClassDef)} == BAGS


def test_they_are_built_in_few_places() -> None:
    places = [
        f"{path}:{node.lineno}"
        for path, tree in _trees("layers", "functions", "sandbox", "benchmarks", "tests")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", getattr(node.func, "attr", "")) in BAGS
    ]
    assert 3 <= len(places) <= PLACES_MAX, places
