"""Read the sentences that people read: docstrings, comments, messages, documentation and pages."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.sources import REPOSITORY, files, parsed

CODE = (
    "layers",
    "functions",
    "sandbox",
    "operations",
    "benchmarks",
    "examples",
    "tests",
    "docs",
    "plugins",
)
# Tests quote texts of others, so of their strings only docstrings and comments are prose.
WITHOUT_MESSAGES = ("tests/",)
# Not written by us, or kept word for word.
QUOTED = ("docs/reference/spec.md", "CODE_OF_CONDUCT.md", "/data/")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
SENTENCE_END = re.compile(r"(?<=[.!?])[)”’\"']*\s+(?=[A-Z“‘\"'`(*…])")
COMMENT = re.compile(r"(?:^|\s)#:?\s(.*)$")
MARKUP = re.compile(r"<!--.*?-->|\{#.*?#\}|\{%.*?%\}|<(script|style)\b.*?</\1>", re.DOTALL)


@dataclass(frozen=True)
class Sentence:
    """A sentence, and the place where its paragraph begins."""

    place: str
    text: str


def sentences() -> Iterator[Sentence]:
    """Yield the sentences of all files that people read."""
    for path, line, text in _paragraphs():
        for each in SENTENCE_END.split(" ".join(text.split())):
            yield Sentence(f"{path}:{line}", each)


def _paragraphs() -> Iterator[tuple[str, int, str]]:
    for path, name in _files(".py", *CODE):
        yield from ((name, line, text) for line, text in _of_python(path, name))
    for path, name in _files(".md", "."):
        yield from ((name, line, text) for line, text in _of_markdown(path))
    for path, name in (*_files(".html", "functions", "sandbox"), *_files(".js", "functions")):
        text = MARKUP.sub("\n\n", path.read_text("utf-8")) if name.endswith(".html") else ""
        yield from ((name, 1, each) for each in re.split(r"<[^>]*>|\n\n", text))
    for path, name in (*_files(".yaml", "."), *_files(".yml", "."), *_files("Makefile", ".")):
        yield from ((name, line, text) for line, text in _of_comments(path))
    po = REPOSITORY / "functions/pay/locale/en.po"
    for number, line in enumerate(po.read_text("utf-8").splitlines(), 1):
        if line.startswith(("msgstr", '"')):
            yield "functions/pay/locale/en.po", number, line.partition('"')[2].rstrip('"')


def _files(ending: str, *folders: str) -> Iterator[tuple[Path, str]]:
    for path in files(ending, *folders):
        name = str(path.relative_to(REPOSITORY))
        if not any(each in name for each in QUOTED):
            yield path, name


def _of_python(path: Path, name: str) -> Iterator[tuple[int, str]]:
    tree = parsed(path)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
            docstrings.add(id(node.body[0].value))  # type: ignore[attr-defined]
            yield from ((node.body[0].lineno, each) for each in text.split("\n\n"))
    if not name.startswith(WITHOUT_MESSAGES):
        yield from _strings(tree, docstrings)
    yield from _python_comments(path)


def _strings(tree: ast.Module, docstrings: set[int]) -> Iterator[tuple[int, str]]:
    """Yield the other strings of some words, a formatted one whole."""
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    for node in ast.walk(tree):
        if id(node) in inside or id(node) in docstrings:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [each.value if isinstance(each, ast.Constant) else "…" for each in node.values]
            yield node.lineno, "".join(str(each) for each in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def _python_comments(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the comments, lines below each other as one."""
    first, last, text = 0, 0, ""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
        if token.type != tokenize.COMMENT:
            continue
        own_line = token.line.strip().startswith("#")
        if text and own_line and token.start[0] == last + 1:
            text += " " + token.string.lstrip("#: ")
        else:
            if text:
                yield first, text
            first, text = token.start[0], token.string.lstrip("#: ")
        last = token.start[0]
    if text:
        yield first, text


def _of_comments(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the comments and descriptions of a file in YAML, or of a Makefile."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if found := COMMENT.search(line) or re.search(r"(?:Description: |##\s)(.*)$", line):
            yield number, found[1]


def _of_markdown(path: Path) -> Iterator[tuple[int, str]]:
    """Yield paragraphs and cells of tables. Headings and code are not sentences."""
    first, text, code = 0, "", False
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        stripped = line.strip()
        fence = stripped.startswith("```")
        begins = re.match(r"([-*]|\d+\.)\s", stripped)
        if fence or code or not stripped or begins or stripped.startswith(("#", "|", "<!--")):
            if text:
                yield first, text
            text = ""
        code ^= fence
        if fence or code or stripped.startswith(("#", "<!--")):
            continue
        if stripped.startswith("|"):
            yield from ((number, cell.strip()) for cell in re.split(r"(?<!\\)\|", stripped))
        elif stripped:
            first, text = (first, f"{text} {stripped}") if text else (number, stripped)
    if text:
        yield first, text
