"""What no test may do: assert what is always true, and import another test module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from tests.support.sources import REPOSITORY, files, parsed

# True if not empty, whatever is in it: `any`, `all`, `len` or `==` ask for more.
_LITERALS = ast.List | ast.Tuple | ast.Set | ast.Dict
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def always_true(node: ast.AST) -> bool:
    return isinstance(node, ast.Assert) and isinstance(node.test, _LITERALS | _COMPREHENSIONS)


def imports_a_test(node: ast.AST) -> bool:
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return False
    of = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    names = [of + each.name for each in node.names]
    return any(each.startswith("tests.") and ".test_" in each for each in names)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements in it, and enter no expression: these are nearly all nodes."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for each in getattr(node, name, ()):
            yield each
            yield from statements(each)


@cache
def found() -> dict[str, list[str]]:
    """Return where each is done, by its name."""
    places: dict[str, list[str]] = {"always true": [], "import": []}
    for path in files(".py", "tests"):
        for node in statements(parsed(path)):
            if always_true(node) or imports_a_test(node):
                kind = "always true" if isinstance(node, ast.Assert) else "import"
                line = getattr(node, "lineno", 0)
                places[kind].append(f"{path.relative_to(REPOSITORY)}:{line}")
    return places


def test_no_assertion_is_of_a_list_or_a_comprehension() -> None:
    assert found()["always true"] == []


def test_no_module_imports_a_test_module() -> None:
    assert found()["import"] == []


def test_both_are_noticed() -> None:
    text = (
        "assert [x for x in y]\nassert x, [y]\nfrom tests.a.test_b import c\nfrom tests.a import b"
    )
    assert [always_true(each) for each in ast.parse(text).body] == [True, False, False, False]
    assert [imports_a_test(each) for each in ast.parse(text).body] == [False, False, True, False]
