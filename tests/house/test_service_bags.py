"""Count the service bags, and the places that build them."""

from __future__ import annotations

import ast

from tests.support.sources import REPOSITORY, nodes, parsed

BAGS = {"Services", "PayServices", "DashboardServices"}
PLACES_MAX = 6


def test_there_are_three_bags() -> None:
    module = parsed(REPOSITORY / "layers/common/checkout/ports/services.py")
    assert {node.name for node in module.body if isinstance(node, ast.ClassDef)} == BAGS


def test_they_are_built_in_few_places() -> None:
    places = [
        f"{path}:{node.lineno}"
        for path, node in nodes("layers", "functions", "sandbox", "benchmarks", "tests")
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", getattr(node.func, "attr", "")) in BAGS
    ]
    assert 3 <= len(places) <= PLACES_MAX, places
