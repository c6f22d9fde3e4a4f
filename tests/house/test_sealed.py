"""A test that looks for a text in what is sealed looks for one that chance does not write."""

from __future__ import annotations

import ast
import re

from tests.support.sources import REPOSITORY, files, parsed

# A sealed text is some hundred random characters of base64. Three letters that are given stand in
# one of a thousand such texts, and in one of eighty where case does not matter.
LONG_ENOUGH = 5
WHOLE = {"repr", "lower", "casefold"}  # what makes one text of everything that is stored


def _makes_one_text(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else ast.unparse(called)
        return name in WHOLE
    return isinstance(node, ast.JoinedStr)


def test_no_short_text_is_looked_for_in_what_is_stored() -> None:
    found = [
        f"{path.relative_to(REPOSITORY)}:{node.lineno} {node.left.value!r}"
        for path in files(".py", "tests")
        if re.search(rf"""["']\w{{1,{LONG_ENOUGH - 1}}}["'] not in""", path.read_text("utf-8"))
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.NotIn)
        if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        if node.left.value.isalnum() and len(node.left.value) < LONG_ENOUGH
        if _makes_one_text(node.comparators[0])
    ]
    assert found == []
