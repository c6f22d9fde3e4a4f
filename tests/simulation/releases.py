"""Two releases that serve at once: some processes of a world run the last release's own code.

The code is an archive (tests/released). It is imported under another name, so that both are in one
interpreter. Actors call today's functions; with the services of the last release, the function of
the same name there is called. Arguments and results are made anew in the classes of the other
release, by their names: in reality, JSON, forms and rows go from one to the other.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, partial
from importlib import import_module
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Final, NamedTuple
from unittest.mock import patch
from zipfile import ZipFile

from checkout.adapters.dynamo import index_keys
from checkout.flows.payment import approval
from checkout.flows.session import prepare
from tests import released

ROOTS: Final = ("checkout", "open_payments")  # packages
LAST: Final = "_of_the_last_release"  # after the name of a package
SHARE: Final = 0.5  # of a world's processes
# The checks that the last release does not pass yet. Each line says why that does no harm.
NOT_YET: Final[frozenset[str]] = frozenset()
# Classes that have another name in the other release.
_RENAMED: Final[dict[str, str]] = {}
_IMPORT: Final = re.compile(rf"^(\s*(?:from|import)) ({'|'.join(ROOTS)})\b", re.MULTILINE)
_WIRING: Final = "tests.support.services"  # in the archive, it lies beside the package
# Tests set these to other values for a world.
_CONSTANTS: Final = (
    (index_keys, ("URGENT_SHARDS", "DUE_SHARDS", "_TTL_DELAY")),
    (prepare, ("LEASE",)),
    (approval, ("LEASE",)),
)
# By whose name the actors and the world call flows.
_CALLED: Final = {
    "tests.simulation.actors": (
        "approve",
        "cleanup",
        "close",
        "create_session",
        "expiries",
        "lookup",
        "prepare",
        "purchase",
        "reconcile",
        "sweep",
    ),
    "tests.simulation.sim_world": ("deliver",),
}


class NotThereYet(Exception):
    """The last release has no such function: API Gateway knows no route, and nobody answers."""


class Release(NamedTuple):
    """One release. `module` returns its module of a name; `port` has a port of today's serve it."""

    module: Callable[[str], Any]
    port: Callable[[Any], Any]


class _Importer(MetaPathFinder, InspectLoader):
    """Imports the archive's packages under names that end in `LAST`, in their own imports too."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory()  # for the files that modules read beside them
        with ZipFile(released.CODE) as archive:
            archive.extractall(self._folder.name)
            self._sources = {each: archive.read(each).decode() for each in archive.namelist()}

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> Any:
        if not _is_last(name):
            return None
        package = self.is_package(name)
        file = self._file(name, "/__init__.py" if package else ".py")
        spec = ModuleSpec(name, self, origin=f"{self._folder.name}/{file}", is_package=package)
        spec.has_location = True  # sets `__file__`
        return spec

    def is_package(self, fullname: str) -> bool:
        return self._file(fullname, "/__init__.py") in self._sources

    def get_source(self, fullname: str) -> str:
        file = self._file(fullname, "/__init__.py" if self.is_package(fullname) else ".py")
        if file not in self._sources:
            raise ModuleNotFoundError(fullname)
        return _IMPORT.sub(rf"\1 \2{LAST}", self._sources[file])

    @staticmethod
    def _file(name: str, ending: str) -> str:
        path = _today(name).replace(".", "/") + ending
        return released.WIRING if path == f"{ROOTS[0]}/{released.WIRING}" else path


def _is_last(module: str) -> bool:
    return module.partition(".")[0].endswith(LAST)


def _today(module: str) -> str:
    """Return today's name of a module of the last release."""
    return module.replace(LAST, "", 1)


def _last(module: str) -> str:
    """Return the name of today's module in the last release."""
    root, dot, rest = module.partition(".")
    return f"{root}{LAST}{dot}{rest}"


@cache
def _importer() -> _Importer:
    found = _Importer()
    sys.meta_path.append(found)
    return found


def last(module: str) -> Any:
    """Return the last release's module of a name; of tests, it has `_WIRING` only."""
    _importer()
    wiring = f"{ROOTS[0]}.{released.WIRING.removesuffix('.py')}"
    return import_module(_last(wiring if module == _WIRING else module))


def of_last(thing: Any) -> bool:
    """Return whether an object is one of the last release's classes."""
    return _is_last(type(thing).__module__)


def crossed(value: Any, *, back: bool) -> Any:
    """Return `value` in the classes of the last release, or `back` in today's.

    A field that the other release does not know is left out. Raises `NotThereYet` for a class that
    it does not know, ValueError for an unknown value of an enumeration.
    """
    go = partial(crossed, back=back)
    if isinstance(value, tuple | list | frozenset | set) and not hasattr(value, "_fields"):
        return type(value)(map(go, value))
    if isinstance(value, dict):
        return {go(key): go(each) for key, each in value.items()}
    made_by = type(value).__module__
    if not _is_last(made_by) if back else made_by.partition(".")[0] not in ROOTS:
        return value
    there = _counterpart(type(value), back=back)
    if isinstance(value, Enum):
        return there(value.value)
    if isinstance(value, BaseException):
        made = there.__new__(there, *value.args)
        made.__dict__.update({name: go(each) for name, each in vars(value).items()})
        return made
    if is_dataclass(value):
        held = {each.name: go(getattr(value, each.name)) for each in fields(value) if each.init}
        known = {each.name for each in fields(there) if each.init}
        return there(**{name: each for name, each in held.items() if name in known})
    if hasattr(value, "_fields"):
        return there(*map(go, value))
    return value  # with behaviour of its own: `Across` is for these


def _counterpart(kind: type, *, back: bool) -> Any:
    module = kind.__module__
    try:
        found = import_module(_today(module)) if back else last(module)
        return getattr(found, _RENAMED.get(kind.__qualname__, kind.__qualname__))
    except (ModuleNotFoundError, AttributeError):
        raise NotThereYet(f"{module}.{kind.__qualname__}") from None


class Across:
    """A port of today's world, for the last release."""

    def __init__(self, port: Any) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        return partial(_across, found, back=True) if callable(found) else crossed(found, back=False)


TODAYS: Final = Release(import_module, lambda port: port)
THE_LAST: Final = Release(last, Across)


def _across(function: Callable[..., Any], *given: Any, back: bool, **named: Any) -> Any:
    """Call a function of the other release, and have what goes and comes cross.

    `back`: the last release calls one of today's.
    """
    there = partial(crossed, back=back)
    here = partial(crossed, back=not back)
    try:
        return here(function(*there(given), **there(named)))
    except Exception as error:  # noqa: BLE001 - each crosses
        raise here(error) from None


class _ByServices:
    """A module of flows, or one function, that has the release of its services do the work."""

    def __init__(self, today: Any, find: Callable[[], Any]) -> None:
        self._today = today
        self._find = find

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._today, name)
        if isinstance(found, type) or not callable(found):
            return found
        return _ByServices(found, lambda: getattr(self._find(), name))

    def __call__(self, services: Any, *given: Any, **named: Any) -> Any:
        if not of_last(services):
            return self._today(services, *given, **named)
        try:
            function = self._find()
        except (ModuleNotFoundError, AttributeError):
            raise NotThereYet(str(self._today)) from None
        return _across(partial(function, services), *given, back=False, **named)


@contextmanager
def serving() -> Iterator[None]:
    """Have flows be those of the services' release, and today's constants be the last one's too."""
    with ExitStack() as undo:
        for name, called in _CALLED.items():
            module = import_module(name)
            for each in called:
                undo.enter_context(patch.object(module, each, _by_services(vars(module)[each])))
        for today, constants in _CONSTANTS:
            values = {each: getattr(today, each) for each in constants}
            undo.enter_context(patch.multiple(last(today.__name__), **values))
        yield


def _by_services(found: Any) -> _ByServices:
    if isinstance(found, ModuleType):
        return _ByServices(found, partial(last, found.__name__))
    module, name = found.__module__, found.__name__
    return _ByServices(found, lambda: getattr(last(module), name))
