"""Every parameter of Stripe's requests, as its Python library's types list them."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

from stripe._request_options import RequestOptions
from stripe._stripe_object import UntypedStripeObject
from typing_extensions import is_typeddict

Path = tuple[str, ...]
Names = dict[str, Any]


def create_session() -> dict[Path, list[str]]:
    return parameters("checkout._session_create_params", "SessionCreateParams")


def parameters(module: str, kind: str) -> dict[Path, list[str]]:
    """Return the values to try by path; `0` is the first of a list, `some` a name of a map."""
    found = _all(module, kind).items()
    return {path: list(dict.fromkeys(filter(None, values))) for path, values in found}


def emptyable(module: str, kind: str) -> list[Path]:
    """Return the paths that an empty value unsets."""
    return [path for path, values in _all(module, kind).items() if "" in values]


def _all(module: str, kind: str) -> dict[Path, list[str]]:
    names: Final = {**vars(typing), **vars(import_module(f"stripe.params.{module}"))}
    found: dict[Path, list[str]] = {}
    for path, values in _of(names[kind], (), names):
        found.setdefault(path, []).extend(values)
    return found


def _of(kind: Any, path: Path, names: Names) -> Iterator[tuple[Path, list[str]]]:
    for name, hint in kind.__annotations__.items():
        if path or name not in RequestOptions.__annotations__:
            yield from _values(hint, (*path, name), names)


def _values(hint: Any, path: Path, names: Names) -> Iterator[tuple[Path, list[str]]]:
    hint = _resolved(hint, names)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if is_typeddict(hint):
        yield from _of(hint, path, names)
    elif origin is list:
        yield from _values(arguments[0], (*path, "0"), names)
    elif origin is dict:
        yield (*path, "some"), ["text"]
    elif origin is UntypedStripeObject:
        return  # another spelling of a map
    elif origin is typing.Literal:
        yield path, [str(each) for each in arguments]
    elif arguments:
        for each in arguments:
            yield from _values(each, path, names)
    elif hint is not type(None):
        yield path, {bool: ["true", "false"], int: ["1"], float: ["1.5"]}.get(hint, ["text"])


def _resolved(hint: Any, names: Names) -> Any:
    text = hint.__forward_arg__ if isinstance(hint, typing.ForwardRef) else hint
    return eval(text, names) if isinstance(text, str) else hint  # noqa: S307 - of a pinned package
