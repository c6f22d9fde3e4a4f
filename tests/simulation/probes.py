"""Count how often each check had something to look at.

FoundationDB fails a campaign whose coverage probes were not hit. Here, each condition that can end
in a violation is a probe: just before its last operand is evaluated, it is counted. So a check that
`if waiting and late: fail(…)` makes is counted where somebody waited, and one whose precondition
never held is known as NEVER HAPPENED. Nobody has to remember to count: the functions of the
simulator's own modules are compiled once more, with the counting in them.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

COUNTS: Final[Counter[str]] = Counter()
FAILS: Final = ("fail", "_fail", "violate")


def hit(name: str) -> bool:
    """Count the probe, and let the condition go on."""
    COUNTS[name] += 1
    return False


def install(modules: Iterable[ModuleType]) -> list[str]:
    """Have the checks of these modules counted. Return their names."""
    names = []
    for module in modules:
        for function in _functions(module):
            names += _instrument(function)
    return sorted(set(names))


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    for each in vars(module).copy().values():
        own = getattr(each, "__module__", None) == module.__name__
        found = vars(each).values() if isinstance(each, type) and own else [each] if own else ()
        for one in found:
            written = isinstance(one, FunctionType) and one.__code__.co_filename == module.__file__
            if written:
                yield one


def _instrument(function: FunctionType) -> list[str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    probes = _Probes()
    tree = ast.fix_missing_locations(probes.visit(tree))
    if not probes.names or function.__code__.co_freevars:
        return []
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
    compiled = compile(tree, function.__code__.co_filename, "exec", dont_inherit=True)
    code = next(each for each in compiled.co_consts if isinstance(each, CodeType))
    function.__globals__["_probe_hit"] = hit
    function.__code__ = code.replace(co_flags=function.__code__.co_flags)
    return probes.names


class _Probes(ast.NodeTransformer):
    """Puts a probe before the last operand of each condition whose branch is a violation."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._guarded: set[int] = set()
        self._in_conditions: set[str] = set()

    def visit_If(self, node: ast.If) -> Any:
        for each in node.body:
            for name in _violations(each):
                self._guarded.add(id(name))
                node.test = self._probed(node.test, str(name.value))
        self.generic_visit(node)
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        """A violation that no condition of its own guards is counted by the whole function."""
        for name in _violations(node):
            if id(name) not in self._guarded:
                self._guarded.add(id(name))
                self.names.append(str(name.value))
        self.generic_visit(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        before = len(self.names)
        self.generic_visit(node)
        bare = [name for name in self.names[before:] if name not in self._in_conditions]
        node.body[:0] = [ast.Expr(_call(name)) for name in dict.fromkeys(bare)]
        return node

    def _probed(self, test: ast.expr, name: str) -> ast.expr:
        self.names.append(name)
        self._in_conditions.add(name)
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            *first, last = test.values
            return ast.BoolOp(ast.And(), [*first, ast.BoolOp(ast.Or(), [_call(name), last])])
        return ast.BoolOp(ast.Or(), [_call(name), test])


def _violations(statement: ast.stmt) -> Iterator[ast.Constant]:
    """The names of the violations that this statement itself reports."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not call.args:
        return
    called = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if called in FAILS and isinstance(call.args[0], ast.Constant):
        yield call.args[0]


def _call(name: str) -> ast.expr:
    return ast.Call(ast.Name("_probe_hit", ast.Load()), [ast.Constant(name)], [])
