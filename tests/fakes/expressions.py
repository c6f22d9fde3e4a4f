"""DynamoDB's expression language, as much of it as the product writes: parsed, then evaluated.

Refuses everything else, bare attribute names too (many are reserved words; the product aliases
all of them).
Source: Amazon DynamoDB Developer Guide, "Condition and filter expressions", "Update expressions".
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeVar

T = TypeVar("T")
Value = dict[str, Any]
Item = dict[str, Value]
Node = tuple[Any, ...]  # ("and", left, right), ("=", operand, operand), ("path", "#a", "#b"), …

_TOKEN = re.compile(r"\s*(?:([#:]?[A-Za-z_][A-Za-z0-9_]*)|(<=|>=|[=<>(),.+]))")
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    **{"=": operator.eq, "<": operator.lt, "<=": operator.le},
    **{">": operator.gt, ">=": operator.ge},
}
_PREDICATES = ("attribute_exists", "attribute_not_exists")


class BadExpression(Exception):
    """DynamoDB answers ValidationException, or this fake does not know the form."""


@dataclass(frozen=True)
class Update:
    """`adds` are kept as assignments of a sum, whose missing operand counts as zero."""

    sets: tuple[tuple[Node, Node], ...]
    removes: tuple[Node, ...]
    adds: tuple[tuple[Node, Node], ...] = ()


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = list(_tokens(source))
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if not token or (expected is not None and token.upper() != expected):
            raise BadExpression(f"expected {expected or 'more'}, found {token!r}: {self.source}")
        self.at += 1
        return token

    def accept(self, word: str) -> bool:
        if self.peek().upper() != word:
            return False
        self.at += 1
        return True

    def end(self) -> None:
        if self.peek():
            raise BadExpression(f"unexpected {self.peek()!r}: {self.source}")

    def either(self) -> Node:
        node = self.both()
        while self.accept("OR"):
            node = ("or", node, self.both())
        return node

    def both(self) -> Node:
        node = self.predicate()
        while self.accept("AND"):
            node = ("and", node, self.predicate())
        return node

    def predicate(self) -> Node:
        if self.accept("("):
            node = self.either()
            self.take(")")
            return node
        if self.peek() in _PREDICATES:
            name = self.take()
            self.take("(")
            path = self.path()
            self.take(")")
            return (name, path)
        left = self.operand()
        if self.accept("BETWEEN"):
            low = self.operand()
            self.take("AND")
            return ("between", left, low, self.operand())
        comparison = self.take()
        if comparison not in _COMPARISONS:
            raise BadExpression(f"unknown comparison {comparison!r}: {self.source}")
        return (comparison, left, self.operand())

    def operand(self) -> Node:
        if self.peek().startswith(":"):
            return ("value", self.take())
        return self.path()

    def path(self) -> Node:
        names = [self.take()]
        while self.accept("."):
            names.append(self.take())
        if not all(name.startswith("#") for name in names):
            raise BadExpression(f"a name without an alias: {self.source}")
        return ("path", *names)

    def update(self) -> Update:
        sets = self.listed("SET", self.assignment)
        removes = self.listed("REMOVE", self.path)
        adds = self.listed("ADD", lambda: (self.path(), self.operand()))
        self.end()
        if not sets and not removes and not adds:
            raise BadExpression(f"neither SET nor REMOVE nor ADD: {self.source}")
        return Update(sets, removes, adds)

    def listed(self, word: str, one: Callable[[], T]) -> tuple[T, ...]:
        found = [one()] if self.accept(word) else []
        while found and self.accept(","):
            found.append(one())
        return tuple(found)

    def assignment(self) -> tuple[Node, Node]:
        target = self.path()
        self.take("=")
        node = self.operand()
        if self.accept("+"):
            node = ("+", node, self.operand())
        return target, node


def _tokens(source: str) -> Iterator[str]:
    at, end = 0, len(source.rstrip())
    while at < end:
        found = _TOKEN.match(source, at)
        if found is None:
            raise BadExpression(f"cannot read {source[at:]!r}")
        at = found.end()
        yield found[1] or found[2]


@lru_cache(maxsize=1_000)
def parse_condition(source: str) -> Node:
    parser = _Parser(source)
    node = parser.either()
    parser.end()
    return node


@lru_cache(maxsize=1_000)
def parse_update(source: str) -> Update:
    return _Parser(source).update()


@lru_cache(maxsize=10_000)
def aliases(node: Any) -> frozenset[str]:
    """The #names and :values that an expression uses."""
    if isinstance(node, Update):
        return aliases(node.sets) | aliases(node.removes) | aliases(node.adds)
    if isinstance(node, tuple):
        return frozenset().union(*(aliases(part) for part in node))
    return frozenset({node} if node[0] in "#:" else ())


class Expressions:
    """Evaluates with one request's names and values, and holds that each of them is used."""

    def __init__(
        self, names: Mapping[str, str] | None, values: Mapping[str, Value] | None, *nodes: Any
    ) -> None:
        self._names = names or {}
        self._values = values or {}
        used = aliases(nodes)
        given = set(self._names) | set(self._values)
        if used != given:
            raise BadExpression(f"undefined {used - given}, unused {given - used}")

    def holds(self, node: Node, item: Item) -> bool:
        kind: str = node[0]
        if kind == "and":
            return self.holds(node[1], item) and self.holds(node[2], item)
        if kind == "or":
            return self.holds(node[1], item) or self.holds(node[2], item)
        operands = [self.value(operand, item) for operand in node[1:]]
        if kind == "attribute_exists":
            return operands[0] is not None
        if kind == "attribute_not_exists":
            return operands[0] is None
        if any(operand is None for operand in operands):
            return False
        if kind == "between":
            self.require_order(node, operands[1], operands[2])
            value, low, high = operands
            return _compare("<=", low, value) and _compare("<=", value, high)
        return _compare(kind, operands[0], operands[1])

    @staticmethod
    def require_order(node: Node, low: Value, high: Value) -> None:
        if node[2][0] == node[3][0] == "value" and _compare(">", low, high):
            raise BadExpression("BETWEEN with its upper bound below its lower one")

    def value(self, node: Node, item: Item) -> Any:
        """The typed value of an operand, or None where the path leads nowhere."""
        if node[0] == "value":
            return self._values[node[1]]
        if node[0] == "+":
            left, right = (self.value(part, item) for part in node[1:])
            if left is None or "N" not in left or "N" not in right:
                raise BadExpression("arithmetic on what is no number")
            return {"N": str(Decimal(left["N"]) + Decimal(right["N"]))}
        *parents, last = self.path(node)
        place: Any = item
        for name in parents:
            place = place.get(name, {}).get("M", {})
        return place.get(last)

    def path(self, node: Node) -> list[str]:
        return [self._names[name] for name in node[1:]]

    def updated(self, update: Update, item: Item) -> Item:
        """A new item. Every right side is evaluated on the item as it was."""
        targets = [self.path(node) for node, _ in update.sets]
        targets += [self.path(node) for node in update.removes]
        targets += [self.path(node) for node, _ in update.adds]
        if any(len(target) > 1 for target in targets):
            raise BadExpression("writing inside of a map is not known here")
        if len({target[0] for target in targets}) < len(targets):
            raise BadExpression("two document paths overlap")
        result = dict(item)
        for node, source in update.sets:
            value = self.value(source, item)
            if value is None:
                raise BadExpression("the operand's attribute does not exist")
            result[self.path(node)[0]] = value
        for node, operand in update.adds:
            (name,) = self.path(node)
            known, more = item.get(name, {"N": "0"}), self.value(operand, item)
            if "N" not in known or "N" not in more:
                raise BadExpression("ADD to what is no number")
            result[name] = {"N": str(Decimal(known["N"]) + Decimal(more["N"]))}
        for node in update.removes:
            result.pop(self.path(node)[0], None)
        return result


def comparable(value: Value) -> Any:
    """A key of Python's order that sorts as DynamoDB does: numbers by size, text by UTF-8."""
    ((kind, inner),) = value.items()
    return Decimal(inner) if kind == "N" else inner


def _compare(kind: str, left: Value, right: Value) -> bool:
    if set(left) != set(right):  # other types are never equal, and never in order
        return False
    ((scalar, _),) = left.items()
    if scalar not in ("N", "S") and kind != "=":
        return False
    return _COMPARISONS[kind](comparable(left), comparable(right))
