"""URLs and ids are parsed in the grammar modules and nowhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.support.sources import REPOSITORY, nodes

GRAMMARS = {
    "layers/common/checkout/domain/ground/grammar.py",
    "packages/open-payments/src/open_payments/urls.py",
}
PARSERS = {"urlsplit", "urlparse", "urldefrag", "SplitResult"}
# A pattern of a URL, of a loopback name or of an id. Times and secrets in logs are redacted by
# looser patterns, which are no grammar.
BY_HAND = re.compile(r"\w\)?\??://|localhost|127\\\.|A-Za-z\]\{(?:22|43)\}")


def _by_hand(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            if name in PARSERS:
                yield name
        case ast.Constant(value="localhost" | "127.0.0.1" | "[::1]" as host):
            yield host
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"))):
            texts = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
            yield from (each for each in texts if isinstance(each, str) and BY_HAND.search(each))


def test_no_module_besides_the_grammars_takes_urls_or_ids_apart() -> None:
    found = [
        (path, each)
        for path, node in nodes("layers", "packages/open-payments/src", "functions")
        for each in _by_hand(node)
    ]
    assert all((REPOSITORY / each).exists() for each in GRAMMARS)
    assert [each for each in found if each[0] not in GRAMMARS] == []


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
    assert any(each for node in ast.walk(ast.parse(source)) for each in _by_hand(node))
