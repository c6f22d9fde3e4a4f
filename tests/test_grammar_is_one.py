"""URLs and ids are parsed in the grammar modules and nowhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GRAMMARS = {
    "layers/common/checkout/domain/grammar.py",
    "layers/common/checkout/open_payments/urls.py",
}
PARSERS = {"urlsplit", "urlparse", "urldefrag", "SplitResult"}
# A pattern of a URL, of a loopback name or of an id. Times and secrets in logs are redacted by
# looser patterns, which are no grammar.
BY_HAND = re.compile(r"\w\)?\??://|localhost|127\\\.|A-Za-z\]\{(?:22|43)\}")

Finding = tuple[int, str]


def _functions(tree: ast.AST) -> Iterator[Finding]:
    for node in ast.walk(tree):
        names = [node.id] if isinstance(node, ast.Name) else []
        names += [node.attr] if isinstance(node, ast.Attribute) else []
        names += [name.name for name in node.names] if isinstance(node, ast.ImportFrom) else []
        yield from ((getattr(node, "lineno", 0), name) for name in names if name in PARSERS)


def _patterns(tree: ast.AST) -> Iterator[Finding]:
    """The texts that a function of `re` is called with."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if not isinstance(call.func.value, ast.Name) or call.func.value.id != "re":
            continue
        for part in ast.walk(call):
            text = part.value if isinstance(part, ast.Constant) else None
            if isinstance(text, str) and BY_HAND.search(text):
                yield call.lineno, text


def _loopback(tree: ast.AST) -> Iterator[Finding]:
    """A host name of this machine, written as one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in ("localhost", "127.0.0.1", "[::1]"):
            yield node.lineno, str(node.value)


def _by_hand(source: str) -> list[Finding]:
    tree = ast.parse(source)
    return [*_functions(tree), *_patterns(tree), *_loopback(tree)]


def _modules() -> list[str]:
    found = [path for room in ("layers", "functions") for path in (ROOT / room).rglob("*.py")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def test_no_module_besides_the_grammars_takes_urls_or_ids_apart() -> None:
    modules = _modules()
    assert set(modules) >= GRAMMARS
    found = {name: _by_hand((ROOT / name).read_text()) for name in modules if name not in GRAMMARS}
    assert {name: findings for name, findings in found.items() if findings} == {}


@pytest.mark.parametrize(
    "source",
    [
        "from urllib.parse import urlsplit",
        "import urllib.parse\nurllib.parse.urlparse('x')",
        "import re\nre.compile(r'https?://(.*)')",
        "import re\nre.fullmatch('cs_[0-9A-Za-z]{22}', 'x')",
        "LOCAL = {'localhost', '[::1]'}",
    ],
)
def test_the_rule_sees_a_grammar_of_its_own(source: str) -> None:
    assert _by_hand(source)
