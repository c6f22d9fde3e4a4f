"""What no test module may do: assert what is always true, and import another test module."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
# True if not empty, whatever is in it: ask for any(), all(), len() or ==.
ALWAYS_TRUE = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp)
ALWAYS_TRUE += (ast.GeneratorExp, ast.JoinedStr, ast.Lambda)
TREES = {
    path.relative_to(TESTS): ast.parse(path.read_text("utf-8"))
    for path in TESTS.rglob("*.py")
    if not {"node_modules", ".packages"} & set(path.parts)
}


def test_no_assertion_is_of_a_list_or_a_comprehension() -> None:
    found = [
        f"{path}:{node.lineno}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert) and isinstance(node.test, ALWAYS_TRUE)
    ]
    assert found == []


def test_no_module_imports_a_test_module() -> None:
    found = [
        f"{path}:{node.lineno}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
        for full in [f"{getattr(node, 'module', '')}.{name.name}"]
        if full.startswith("tests.") and ".test_" in full
    ]
    assert found == []
    assert len(TREES) > 300
