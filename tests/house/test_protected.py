"""Check that protected values are what tests/support/protected.py says; tests ask there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.support.protected import IN_THE_CODE
from tests.support.sources import REPOSITORY, files, parsed

PATCHES = {"delitem", "setattr", "setitem"}  # of pytest.MonkeyPatch
MUTATES = REPOSITORY / "tests/simulation/mutants.py"


def taken(module: ast.Module) -> Iterator[str]:
    """Yield each protected value that a module takes from the code, with the line.

    A test may replace such a value for its time.
    """
    names = {each.rpartition(".")[2] for each in IN_THE_CODE}
    modules: dict[str, str] = {}
    patched = {
        id(argument)
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in PATCHES
        for argument in node.args
    }
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                modules[alias.asname or alias.name] = name
                if name in IN_THE_CODE:
                    yield f"{node.lineno} {name}"
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and node.attr in names and id(node) not in patched:
            first, _, rest = ast.unparse(node).partition(".")
            if (name := f"{modules.get(first, first)}.{rest}") in IN_THE_CODE:
                yield f"{node.lineno} {name}"


@pytest.mark.parametrize("name", IN_THE_CODE)
def test_a_protected_value_is_what_was_written_a_second_time(name: str) -> None:
    module, _, constant = name.rpartition(".")
    place = import_module(module)
    assert getattr(place, constant) == IN_THE_CODE[name]
    assert place.__file__ is not None
    made = [node for node in parsed(Path(place.__file__)).body if isinstance(node, ast.AnnAssign)]
    named = {ast.unparse(node.target) for node in made}
    assert constant in named, "it is made elsewhere: tests could take it from there"


def test_no_test_takes_a_protected_value_from_the_code() -> None:
    named = re.compile("|".join(rf"\b{each.rpartition('.')[2]}\b" for each in IN_THE_CODE))
    found = [
        f"{path.relative_to(REPOSITORY)}:{each}"
        for path in files(".py", "tests")
        if path != MUTATES and named.search(path.read_text("utf-8"))
        for each in taken(parsed(path))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("from checkout.domain.payment.in_flight import IN_DOUBT_AFTER as DOUBT", 1),
        ("from checkout.flows.payment import approval\nassert x == approval.LEASE", 1),
        ("from dashboard import app\nwanted = [*app.NEEDED]", 1),
        ("import dashboard.app\nwanted = dashboard.app.NEEDED.items()", 1),
        ("from dashboard import app\npatch.delitem(app.NEEDED, 'x')", 0),
        ("from tests.support.protected import LEASE\nassert x == LEASE", 0),
    ],
)
def test_it_is_seen_however_it_is_taken(source: str, lines: int) -> None:
    assert len(list(taken(ast.parse(source)))) == lines
