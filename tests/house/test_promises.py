"""What pages, e-mails and guides promise is tied to the test that fails once it is not so.

promises.toml lists the promises. A feature that contradicts one has a sentence or a test to change.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sources import REPOSITORY, files, functions_of, parsed

LISTED: dict[str, str | list[str]] = tomllib.loads(
    Path(__file__).with_name("promises.toml").read_text("utf-8")
)
NAMED = {each for tests in LISTED.values() for each in ([tests] if str(tests) == tests else tests)}
# In guides, "only" and "cannot" mostly tell where a feature ends.
IN_GUIDES = re.compile(r"\b(?:never|not (?:been )?stored|by your server)\b", re.IGNORECASE)
ON_PAGES = re.compile(rf"{IN_GUIDES.pattern}|\b(?:only|cannot|nobody can)\b", re.IGNORECASE)
# What promises nothing: states, faults, instructions, labels.
IDLE = re.compile(
    r"cannot be (?:undone|read|printed|opened|followed|paid|made smaller)|browser cannot"
    r"|if they cannot|only (?:a )?part\b|only in part|only \{\} arrived|only your questions"
    r"|digits only|read only|ask only|approve it only|never (?:used|arrived|happened|mind)",
    re.IGNORECASE,
)
# For those who work on the product, of wallets that break promises, with a list of its own.
NO_GUIDES = {"development", "performance", "proving-day", "releasing", "sandbox", "security"}


def catalogue(path: Path) -> str:
    return "\n".join(re.findall(r'(?m)^msgstr(?:\[\d\])? "(.*)"$', path.read_text("utf-8")))


def template(path: Path) -> str:
    plain = re.sub(r"(?s)\{#.*?#\}|<script.*?</script>|\{%.*?%\}", "", path.read_text("utf-8"))
    return re.sub(r"<[^>]*>", "", plain)


def module(path: Path) -> str:
    """Return the texts in a module, without its docstrings, and with "…" for each value."""
    nodes = list(ast.walk(parsed(path)))
    filled = [each.values for each in nodes if isinstance(each, ast.JoinedStr)]
    apart = {each.value for each in nodes if isinstance(each, ast.Expr)}.union(*filled)
    plain: list[list[ast.expr]] = [
        [each] for each in nodes if isinstance(each, ast.Constant) and each not in apart
    ]
    return "\n".join(
        "".join(str(each.value) if isinstance(each, ast.Constant) else "…" for each in parts)
        for parts in [*filled, *plain]
    )


def guide(path: Path) -> str:
    return re.sub(r"(?s)```.*?```|`never`", "", path.read_text("utf-8"))


def sources() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the text of each page, e-mail and guide, and the words that make a promise there."""
    yield catalogue(REPOSITORY / "functions/pay/locale/en.po"), ON_PAGES
    for path in files(".html", "functions/dashboard/templates", "sandbox/wallets/templates"):
        yield template(path), ON_PAGES
    for path in files(".py", "functions/dashboard"):
        yield module(path), ON_PAGES
    guides = [each for each in (REPOSITORY / "docs").glob("*.md") if each.stem not in NO_GUIDES]
    for path in [REPOSITORY / "README.md", *guides]:
        yield guide(path), IN_GUIDES


def unlisted(text: str, words: re.Pattern[str]) -> list[str]:
    """Return the words of promises that are not listed, each with what is around it."""
    rest = IDLE.sub("", " ".join(text.split()))
    for piece in sorted(LISTED, key=len, reverse=True):
        rest = rest.replace(piece, "")
    return [rest[max(0, each.start() - 60) : each.end() + 60] for each in words.finditer(rest)]


def test_each_promise_is_listed_with_a_test() -> None:
    assert [each for text, words in sources() for each in unlisted(text, words)] == []


def test_each_listed_promise_is_made() -> None:
    said = " ".join(" ".join(text.split()) for text, _ in sources())
    assert [piece for piece in LISTED if piece not in said] == []


@pytest.mark.parametrize("name", sorted(NAMED))
def test_each_test_of_a_promise_exists(name: str) -> None:
    path, _, function = name.partition("::")
    assert function in functions_of(REPOSITORY / path)


def test_a_promise_that_is_not_listed_is_noticed() -> None:
    for text in ("We never ask.", "It is\nnot stored.", "Made by your server", "You cannot pay."):
        assert unlisted(text, ON_PAGES), text
    assert unlisted("This cannot be undone. We never see your password.", ON_PAGES) == []
    assert unlisted("Only members see it.", IN_GUIDES) == []
