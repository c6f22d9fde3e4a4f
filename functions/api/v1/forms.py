"""Parse the parameters of /v1, sent as form fields or as JSON, according to parity.py's table.

A refused or unknown parameter raises an error with the parameter's name. The names of ignored
parameters are collected, so that the response can list them. A leaf is one value with its path: for
`a[b][0]=c`, the path is ('a', 'b', '0').
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final
from urllib.parse import parse_qsl

from api.requests import AMOUNT_FORM, NULL_CHARACTER, TIME_FORM
from api.v1.parity import Does, Parameter, ParameterKind
from checkout.domain.ground.errors import (
    CheckoutError,
    ParameterInvalid,
    ParameterInvalidInteger,
    ParameterUnknown,
)
from checkout.web import PARAM_MAX, no_parameter

PARAMETERS_MAX: Final = 20_000  # a valid body of 256 KiB cannot have more
DEPTH_MAX: Final = 10

_NAME: Final = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,5}")
_WHOLE: Final = re.compile(r"-?[0-9]{1,15}")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.\[\]]{1,100}")
_TIMES: Final = ("created", "expires_at")
_INSTEAD: Final = {"expires_in_seconds": "expires_at"}  # the native API's name and the name in /v1

Path = tuple[str, ...]
Leaf = tuple[Path, Any]


@dataclass(frozen=True, slots=True)
class Parsed:
    """The parsed parameters of a request.

    `values` has the accepted values in nested objects and lists, `ignored` the names of ignored
    parameters, and `given` all parameters as sent. `unset` has the paths that were sent with an
    empty value to remove the stored value: one key of metadata, all metadata, or a text.
    """

    values: dict[str, Any]
    ignored: tuple[str, ...]
    given: tuple[tuple[str, str], ...]
    unset: tuple[Path, ...] = ()

    def expands(self, name: str) -> bool:
        """Return whether `expand` names this object, or an object inside it."""
        return any(f"{each}.".startswith(f"{name}.") for each in self.values.get("expand", ()))

    def expands_nothing(self) -> None:
        """Raise ParameterInvalid if the request asks to expand anything."""
        if self.values.get("expand"):
            raise ParameterInvalid("Nothing can be expanded here.", param="expand[0]")


@dataclass(slots=True)
class _Node:
    row: Parameter | None = None
    children: dict[str, _Node] = field(default_factory=dict)


def from_form(raw: str) -> list[Leaf]:
    """Return the leaves of a form or a query string. Raises ParameterInvalid."""
    try:
        pairs = parse_qsl(
            raw, keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX
        )
    except ValueError:
        raise ParameterInvalid("The parameters are not form-encoded UTF-8.") from None
    return list(_numbered(pairs))


def from_json(value: dict[str, Any]) -> list[Leaf]:
    """Return the leaves of a JSON object, without nulls and empty objects."""
    return list(_leaves((), value))


def parsed(leaves: Iterable[Leaf], rows: Sequence[Parameter]) -> Parsed:
    """Parse the leaves according to the rows of the table.

    Raises ParameterUnknown, ParameterInvalid, ParameterInvalidInteger.
    """
    tree, leaves = _tree(tuple(rows)), list(leaves)
    off = _switched_off(tree, leaves)
    found: dict[Path, Any] = {}
    ignored: list[str] = []
    unset: list[Path] = []
    given: list[tuple[str, str]] = []
    for path, value in leaves:
        name, shown = bracketed(path), _text(value)
        given.append((name, shown))
        if "\0" in f"{name}{shown}":
            raise ParameterInvalid(NULL_CHARACTER, param=name)
        row = _row(tree, path)
        if row is None:
            raise _misplaced(tree, path)
        # An empty value removes the stored value. Stripe calls this "unset".
        unused = any(path[: len(each)] == each for each in off) or not shown
        if row.does is not Does.TAKEN and unused:
            ignored.append(name)
            continue
        if row.does is Does.REFUSED:
            raise ParameterInvalid(f"This parameter is not supported. {row.text}", param=name)
        if row.only and shown not in row.only:
            raise ParameterInvalid(_only(row), param=name)
        if row.does is Does.IGNORED:
            ignored.append(name)
        elif path in found:
            raise _twice(path)
        elif not shown and (row.unsets or row.path.endswith("[*]") or row.only == ("",)):
            unset.append(path)
        else:
            found[path] = _typed(row, value, path)
    names = tuple(dict.fromkeys(ignored))
    return Parsed(_nested(found), names, tuple(sorted(given)), tuple(unset))


def _only(row: Parameter) -> str:
    """Return the error message that lists the only values that a row accepts."""
    allowed = [f"`{each}`" if each else "an empty value" for each in row.only]
    if row.does is Does.TAKEN and len(allowed) > 1:
        return f"This must be {', '.join(allowed[:-1])} or {allowed[-1]}."
    said = " or ".join(allowed)
    text = "" if row.text == f"Only {said}." else f" {row.text}"
    return f"Only {said} is supported.{text}"


def _switched_off(tree: _Node, leaves: Iterable[Leaf]) -> list[Path]:
    """Return the paths of objects with `enabled` false, whose other parameters have no effect."""
    found = []
    for path, value in leaves:
        row = _row(tree, path)
        if row and path[-1] == "enabled" and _text(value) in row.only and row.only == ("false",):
            found.append(path[:-1])
    return found


def bracketed(path: Sequence[str]) -> str:
    """Write the path ('line_items', '0', 'quantity') as line_items[0][quantity]."""
    return (path[0] + "".join(f"[{part}]" for part in path[1:]))[:PARAM_MAX]


def with_brackets(param: str) -> str:
    """Rewrite line_items[0].price_data.currency as line_items[0][price_data][currency]."""
    first, *rest = re.split(r"\.(?![^\[]*\])", param)  # a key of metadata may have a period
    return first + "".join(f"[{part}]" for part in rest)


def _numbered(pairs: Iterable[tuple[str, str]]) -> Iterator[Leaf]:
    """Yield the leaves of name-value pairs such as `a[b][0]=…`.

    Empty brackets stand for an index, from 0 on. The index goes up when the name behind the
    brackets has already occurred at it: `a[][b]` twice is `a[0][b]` and `a[1][b]`.
    """
    seen: dict[Path, set[Path]] = {}
    current: dict[Path, int] = {}
    for name, value in pairs:
        found = _NAME.fullmatch(name)
        if found is None:
            raise ParameterInvalid("The name is malformed.", param=name[:PARAM_MAX] or None)
        parts = [found[1], *re.findall(r"\[([^\[\]]*)\]", found[2])]
        if len(parts) > DEPTH_MAX:
            raise ParameterUnknown("There is no such parameter.", param=name[:PARAM_MAX])
        path: Path = ()
        for number, part in enumerate(parts):
            if part:
                path = (*path, part)
                continue
            rest = tuple(parts[number + 1 :])
            index = current.get(path, 0)
            if rest in seen.setdefault((*path, str(index)), set()):
                index += 1
            current[path] = index
            seen.setdefault((*path, str(index)), set()).add(rest)
            path = (*path, str(index))
        yield path, value


def _leaves(path: Path, value: Any) -> Iterator[Leaf]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves((*path, name), item)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves((*path, str(number)), item)
    elif value is not None:
        yield path, value


@cache
def _tree(rows: tuple[Parameter, ...]) -> _Node:
    root = _Node()
    for row in rows:
        node = root
        for part in re.split(r"[\[\]]+", row.path.replace("[]", "[#]").rstrip("]")):
            node = node.children.setdefault(part, _Node())
        node.row = row
    return root


def _row(node: _Node, path: Path) -> Parameter | None:
    """Return the table's row of this path, or of the nearest parent that is ignored or refused."""
    above: Parameter | None = None
    for part in path:
        index = node.children.get("#") if _INDEX.fullmatch(part) else None
        following = node.children.get(part) or index or node.children.get("*")
        if following is None:
            return above
        node = following
        if node.row is not None and node.row.does is not Does.TAKEN:
            above = node.row
    return node.row or above


def _misplaced(tree: _Node, path: Path) -> CheckoutError:
    """Return the error for a path without a row: an unknown name, or a value of another shape.

    The message shows an example, made from the first names that the object accepts.
    """
    node = tree
    for number, part in enumerate(path):
        above = bracketed(path[:number]) if number else ""
        index = node.children.get("#") if _INDEX.fullmatch(part) else None
        following = node.children.get(part) or index
        if following is not None:
            node = following
        elif "#" in node.children:
            inner = f"[{part}]" if part in node.children["#"].children else ""
            text = f"`{above}` is a list: write `{above}[0]{inner}`."
            return ParameterInvalid(text, param=bracketed(path))
        elif number and not node.children:
            text = f"`{above}` takes one value, with nothing inside."
            return ParameterInvalid(text, param=bracketed(path))
        else:
            return ParameterUnknown(_unknown(node, part), param=bracketed(path))
    name = bracketed(path)
    must = "This must be a list" if "#" in node.children else f"`{name}` must be an object"
    return ParameterInvalid(f"{must}: send `{name}{_example(node)}=…`.", param=name)


def _example(node: _Node) -> str:
    """Return the brackets that lead from an object or a list to the first value in it."""
    if not node.children:
        return ""
    name, inside = next(iter(node.children.items()))
    shown = {"#": "0" if inside.children else "", "*": "key"}.get(name, name)
    return f"[{shown}]{_example(inside)}"


def _unknown(node: _Node, name: str) -> str:
    """Return the error message for a name that this object does not have."""
    if name in _INSTEAD and _INSTEAD[name] in node.children:
        return f"There is no such parameter. Use `{_INSTEAD[name]}` (Unix seconds)."
    first, *rest = re.findall(r"[^\[\].]+", name) or [""]
    if rest and first in node.children:
        plain = _PLAIN.fullmatch(name)
        shown = bracketed((first, *rest)) if plain else "line_items[0][quantity]"
        return f"Write nested names with brackets: `{shown}`; in JSON, nest objects."
    return no_parameter(
        name, [each for each, below in node.children.items() if each.isidentifier() and _has(below)]
    )


def _has(node: _Node) -> bool:
    """Return whether the table accepts a parameter at this node or below it."""
    taken = node.row is not None and node.row.does is Does.TAKEN
    return taken or any(map(_has, node.children.values()))


def _typed(row: Parameter, value: Any, path: Path) -> Any:
    name, shown = bracketed(path), _text(value)
    if row.kind is ParameterKind.INTEGER:
        if isinstance(value, str) and _WHOLE.fullmatch(value):
            return int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if row.path.endswith("[unit_amount]"):
            raise ParameterInvalidInteger(AMOUNT_FORM, param=name)
        if path[0] in _TIMES:
            raise ParameterInvalidInteger(TIME_FORM, param=name)
        raise ParameterInvalidInteger("This must be a whole number: digits only.", param=name)
    if row.kind is ParameterKind.BOOLEAN:
        if shown not in ("true", "false"):
            raise ParameterInvalid("This must be true or false.", param=name)
        return shown == "true"
    if not isinstance(value, str) and not row.path.endswith("[*]"):
        raise ParameterInvalid("This must be a string.", param=name)
    if not shown:
        raise ParameterInvalid("This value is empty: leave the parameter out.", param=name)
    return shown


def _twice(path: Path) -> CheckoutError:
    return ParameterInvalid("This parameter is given twice.", param=bracketed(path))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def _nested(found: dict[Path, Any]) -> dict[str, Any]:
    """Turn the flat values into nested objects and lists.

    An object whose keys are all numbers becomes a list, in the order of these numbers. Raises
    ParameterInvalid if a parameter has both a plain value and values in brackets.
    """
    root: dict[str, Any] = {}
    for path, value in found.items():
        place: Any = root
        for part in path[:-1]:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise _twice(path)
        if path[-1] in place:
            raise _twice(path)
        place[path[-1]] = value
    return {name: _listed(name, value) for name, value in root.items()}


def _listed(name: str, value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if name != "metadata" and all(_INDEX.fullmatch(each) for each in value):
        return [_listed("", value[each]) for each in sorted(value, key=int)]
    return {
        each: item if name == "metadata" else _listed(each, item) for each, item in value.items()
    }
