"""What no test may do: assert what is always true, and import another test module.

And what a test that fails tells: what differs though it prints alike, and why a field is missing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from checkout.domain.session.customer_details import CustomerDetails
from tests.support.merchant_api import Answer
from tests.support.sources import REPOSITORY, files, parsed

# True if not empty, whatever is in it: `any`, `all`, `len` or `==` ask for more.
_LITERALS = ast.List | ast.Tuple | ast.Set | ast.Dict | ast.JoinedStr
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_WITH_ITSELF = ast.Eq | ast.Is | ast.LtE | ast.GtE
# What may be another thing the second time.
_ACTS = ast.Call | ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr


def always_true(node: ast.AST) -> bool:
    return isinstance(node, ast.Assert) and _cannot_fail(node.test)


def _cannot_fail(test: ast.expr) -> bool:
    """Return whether it, or a part that `and` and `or` join, is true whatever the product does."""
    if isinstance(test, ast.BoolOp):
        return any(_cannot_fail(each) for each in test.values)
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _with_itself(test.left, test.ops[0], test.comparators[0])
    return isinstance(test, _LITERALS | _COMPREHENSIONS | ast.Lambda)


def _with_itself(left: ast.expr, by: ast.cmpop, right: ast.expr) -> bool:
    """Return whether a thing is compared with itself, or a length with a least of zero."""
    if isinstance(by, ast.GtE) and isinstance(right, ast.Constant) and right.value == 0:
        return isinstance(left, ast.Call) and ast.unparse(left.func) == "len"
    if not isinstance(by, _WITH_ITSELF) or type(left) is not type(right):
        return False
    acts = any(isinstance(each, _ACTS) for each in ast.walk(left))
    return not acts and ast.dump(left) == ast.dump(right)


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


def test_no_assertion_is_always_true() -> None:
    assert found()["always true"] == []


def test_no_module_imports_a_test_module() -> None:
    assert found()["import"] == []


TOOTHLESS = """
[x for x in y]; (x, "why"); {**x}; x or True; x and "why"; f"{x}"; lambda: x; x == x
x.y[0] <= x.y[0]; len(x) >= 0; 1
"""
MEANT = """
x; any(x for x in y); x == y; x() == x(); next(x) is next(x); len(x) >= 1; x != x; x or y
x and not y; x <= y <= x; False; x[0] == x[1]; x.y == x.z
"""


@pytest.mark.parametrize(("tests", "noticed"), [(TOOTHLESS, True), (MEANT, False)])
def test_an_assertion_that_cannot_fail_is_noticed(tests: str, noticed: bool) -> None:
    for each in tests.replace("\n", ";").strip(";").split(";"):
        [node] = ast.parse(f"assert {each.strip()}").body
        assert always_true(node) is noticed, each


def test_an_import_of_a_test_module_is_noticed() -> None:
    text = "assert x, [y]\nfrom tests.a.test_b import c\nfrom tests.a import b"
    assert [imports_a_test(each) for each in ast.parse(text).body] == [False, True, False]


def test_a_failure_names_the_fields_that_differ_and_are_not_printed() -> None:
    ana = CustomerDetails(email="ana@example.com", name="Ana")
    bea = CustomerDetails(email="bea@example.com", name="Ana")
    with pytest.raises(AssertionError) as failed:
        assert [{"of": (1, ana)}] == [{"of": (1, bea)}]
    assert "0.of.1.email" in str(failed.value)
    for hidden in ("ana@", "bea@", "1.name"):
        assert hidden not in str(failed.value)


def test_a_field_that_a_refusal_lacks_fails_with_the_refusals_words() -> None:
    refused = Answer(400, {}, '{"error":{"code":"amount_too_small"}}')
    with pytest.raises(KeyError, match=r"no amount in 400 .*amount_too_small"):
        assert refused.json["amount"] == 500
