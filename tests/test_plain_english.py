"""Check the wording of docstrings: they say what a thing is or does, not "What it does"."""

from __future__ import annotations

import ast

import pytest

from tests.sources import nodes

RELATIVE = {"what", "whatever", "who", "whoever", "whose", "how", "where", "wherever", "which"}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@pytest.mark.parametrize(
    "folder", ["layers", "functions", "sandbox", "operations", "benchmarks", "tests"]
)
def test_no_docstring_opens_with_a_relative_clause(folder: str) -> None:
    opened = [
        f"{path}:{getattr(node, 'lineno', 1)} {text.splitlines()[0]}"
        for path, node in nodes(folder)
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node))
        if text.split()[0].strip(",.:'’").lower() in RELATIVE
    ]
    assert opened == []
