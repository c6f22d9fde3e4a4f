"""README.md and docs/: generated tables, layout, links and line length."""

from __future__ import annotations

import json
import re
import runpy
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from babel import Locale

from checkout.domain.ground.languages import LANGUAGES
from checkout.domain.payment.mandate_transitions import MANDATE_TRANSITIONS
from checkout.domain.refund.transitions import REFUND_TRANSITIONS
from checkout.domain.session.transitions import TRANSITIONS
from checkout.domain.webhooks.event_types import OPTIONAL, PING, REFUND_CREATED
from sandbox.cloud import table_definitions
from sandbox.webhooks import EVENTS
from tests.support.sources import files

REPOSITORY = Path(__file__).parents[2]
LINE_MAX = 120
PAGES = [
    REPOSITORY / "README.md",
    *files(".md", "docs"),
    *sorted(REPOSITORY.glob("plugins/*/README.md")),
]
LINKING = sorted(
    {*PAGES, *REPOSITORY.glob("*.md"), *REPOSITORY.glob("tests/*.md"), *files(".md", "packages")}
)
TABLES: dict[str, Any] = runpy.run_path(str(REPOSITORY / "docs" / "tables.py"))


def name(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines outside of code blocks."""
    in_code = False
    for number, line in enumerate(page.read_text("utf-8").splitlines(), start=1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code:
            yield number, line


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of the page's headings."""
    found: set[str] = set()
    for _, line in prose(page):
        if heading := re.match(r"#+ (.*)", line):
            text = re.sub(r"[^\w\- ]", "", heading[1].lower())
            found.add(text.replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", TABLES["PAGES"])
def test_tables_are_up_to_date(page: str) -> None:
    text = (REPOSITORY / page).read_text("utf-8")
    assert TABLES["refreshed"](text, TABLES["PAGES"][page]) == text, "run `make docs`"


def test_decisions_are_numbered_without_gaps() -> None:
    records = sorted(REPOSITORY.glob("docs/decisions/*.md"))
    numbers = [int(record.name[:4]) for record in records]
    assert numbers == list(range(1, len(records) + 1))
    for number, record in zip(numbers, records, strict=True):
        assert record.read_text("utf-8").startswith(f"# {number}. ")


def test_the_order_of_writes_tells_each_write_and_call_once() -> None:
    steps = [f"W{number}" for number in range(1, 9)] + [f"C{number}" for number in range(1, 10)]
    assert sorted(
        re.findall(r"(?:^ {4}|\.   )([WC]\d)  (?=[A-Zop-])", TABLES["order"](), re.M)
    ) == (sorted(steps))


def test_a_missing_mark_is_reported() -> None:
    with pytest.raises(ValueError, match="one place for the table x"):
        TABLES["refreshed"]("no mark", {"x": str})


def test_every_meaning_is_of_an_error_code() -> None:
    table = TABLES["errors"]()
    assert {code for code in TABLES["MEANINGS"] if f"`{code}`" not in table} == set()


def test_repository_layout_names_what_exists() -> None:
    text = (REPOSITORY / "docs" / "development.md").read_text("utf-8")
    tree = text.split("## Repository layout")[1].split("```")[1]
    parent = ""
    for line in tree.strip("\n").splitlines():
        entry = line.split()[0]
        parent = parent if line.startswith(" ") else entry
        path = REPOSITORY / (parent + entry if line.startswith(" ") else entry)
        assert path.exists(), path


def test_lines_are_short() -> None:
    """Tables, headings, code, and text without a blank before the limit cannot be wrapped."""
    too_long = [
        f"{name(page)}:{number}"
        for page in PAGES
        for number, line in prose(page)
        if len(line) > LINE_MAX
        and not line.startswith(("|", "#"))
        and " " in line[:LINE_MAX].strip()
    ]
    assert too_long == []


TWICE = re.compile(r"(?<![\w.-])([A-Za-z]{2,})(?:\s|#)+\1(?![\w-])")


def written(path: Path) -> str:
    """Return the sentences of a page, or the comments and docstrings of a module."""
    if path.suffix == ".md":
        return re.sub(r"`[^`]*`", "`", "\n".join(line for _, line in prose(path)))
    text = ""
    with path.open("rb") as source:
        for each in tokenize.tokenize(source.readline):
            if each.type == tokenize.COMMENT:
                # A comment on lines of its own goes on in the next line; one beside code does not.
                text += each.string + (" " if each.line.lstrip()[0] == "#" else " | ")
            elif each.type == tokenize.STRING and each.string.startswith('"""'):
                text += f"| {each.string} | "
            elif each.type not in (tokenize.NL, tokenize.INDENT):
                text += "| "
    return text


def test_no_word_is_written_twice_in_a_row() -> None:
    assert TWICE.search("the same the\n# the same")
    assert not TWICE.search("in in-memory tables")
    folders = ("layers", "functions", "sandbox", "operations", "packages", "tests", "benchmarks")
    pages = [*LINKING, *files(".py", *folders)]
    assert [
        f"{name(page)}: {found[0]}" for page in pages for found in TWICE.finditer(written(page))
    ] == []


# What a how-to page writes as its example, and places that a name goes into.
NOT_THERE = {
    "checkout/domain/customer.py",
    "checkout/adapters/dynamo/customers.py",
    "functions/pay/locale/it.po",
    "functions/pay/locale/LANGUAGE.po",
    "functions/dashboard/NAME.py",
    "functions/dashboard/templates/NAME.html",
}


def test_each_module_that_a_page_names_is_there() -> None:
    """The references of the standard name files of other projects."""
    kinds = ("py", "mjs", "html", "po", "yaml", "toml")
    there = {f"/{name(path)}" for kind in kinds for path in files(f".{kind}", ".")}
    named = re.compile(rf"`(?:\./)?([\w./-]+\.(?:{'|'.join(kinds)}))(?:::?[\w.-]+)?`")
    pages = [page for page in LINKING if page.parent.name not in {"reference", "spec"}]
    assert {
        f"{name(page)} names {found}"
        for page in pages
        for found in set(named.findall(page.read_text("utf-8"))) - NOT_THERE
        if page.name != "CHANGELOG.md" and not any(each.endswith(f"/{found}") for each in there)
    } == set()


def test_relative_links_resolve() -> None:
    broken = []
    for page in LINKING:
        for number, line in prose(page):
            for target in re.findall(r"\]\(([^)]+)\)", re.sub(r"`[^`]*`", "", line)):
                path, _, anchor = target.partition("#")
                linked = (page.parent / path).resolve() if path else page
                if re.match(r"[a-z]+:", target):
                    continue
                if not linked.exists() or (anchor and anchor not in anchors(linked)):
                    broken.append(f"{name(page)}:{number} links to {target}")
    assert broken == []


def test_the_index_lists_every_page() -> None:
    index = (REPOSITORY / "docs" / "README.md").read_text("utf-8")
    for page in (REPOSITORY / "docs").glob("*.*"):
        if page.suffix in {".md", ".json"} and page.name != "README.md":
            assert f"({page.name})" in index, page.name


def test_every_language_is_listed() -> None:
    listed = (REPOSITORY / "docs" / "pages.md").read_text("utf-8")
    for tag in LANGUAGES:
        assert str(Locale.parse(tag).english_name) in listed, tag


def test_every_table_is_listed() -> None:
    listed = (REPOSITORY / "docs" / "reference" / "design.md").read_text("utf-8")
    for table in table_definitions("here"):
        assert table["TableName"].removeprefix("here-") in listed


def test_pictures_are_small() -> None:
    pictures = list((REPOSITORY / "docs" / "images").iterdir())
    assert len(pictures) == 3
    for picture in pictures:
        assert picture.stat().st_size <= 60_000, picture.name


def test_the_api_page_shows_each_field_of_the_session_and_of_its_creation() -> None:
    text = (REPOSITORY / "docs" / "api.md").read_text("utf-8")
    schemas = json.loads((REPOSITORY / "docs" / "openapi.json").read_text("utf-8"))["components"]
    [response] = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    assert list(json.loads(response)) == list(schemas["schemas"]["Session"]["properties"])
    request = text.partition("-d '")[2].partition("'")[0]
    described = {*json.loads(request), *re.findall(r"^- \*\*`(\w+)`\*\*", text, re.MULTILINE)}
    assert described == set(schemas["schemas"]["CreateSession"]["properties"])


def test_the_webhooks_page_lists_each_event_type() -> None:
    text = (REPOSITORY / "docs" / "webhooks.md").read_text("utf-8")
    table = text.partition("| `Checkout-Event-Type` |")[2].partition("\n\n")[0]
    listed = dict(re.findall(r"^\| `([\w.]+)` \|.*\| (.+) \|$", table, re.MULTILINE))
    tables = [
        *TRANSITIONS.values(),
        *REFUND_TRANSITIONS.values(),
        *MANDATE_TRANSITIONS.values(),
    ]
    types = {
        PING,
        REFUND_CREATED,
        *(each for row in tables for each in (row.webhook, row.beside) if each),
    }
    sent = {each: "if you ask for it" if each in OPTIONAL else "always" for each in types}
    assert listed == sent | {PING: "by hand, from the dashboard"}


@pytest.mark.parametrize("page", ["Makefile", "docs/sandbox.md", "docs/webhooks.md"])
def test_each_event_that_can_be_triggered_is_named(page: str) -> None:
    text = (REPOSITORY / page).read_text("utf-8")
    [line] = [line for line in text.splitlines() if "EVENT=completed" in line]
    assert set(EVENTS) <= set(re.findall(r"\w+", line))
