"""Check the wording of docstrings: they say what a thing is or does, not "What it does"."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
RELATIVE = {"what", "whatever", "who", "whoever", "whose", "how", "where", "wherever", "which"}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@pytest.mark.parametrize("folder", ["layers", "functions", "sandbox", "benchmarks", "tests"])
def test_no_docstring_opens_with_a_relative_clause(folder: str) -> None:
    opened = [
        f"{path.relative_to(REPOSITORY)}:{getattr(node, 'lineno', 1)} {text.splitlines()[0]}"
        for path in sorted((REPOSITORY / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node))
        if text.split()[0].strip(",.:'’").lower() in RELATIVE
    ]
    assert opened == []
