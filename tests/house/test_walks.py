"""A test that reads the repository's files does not meet those that something else is writing."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support import sources
from tests.support.sources import files, parsed

# These walk through a folder that the test itself has made or built.
OWN_FOLDERS = ("tests/artifacts/", "tests/sandbox/test_artifacts.py", "tests/support/sources.py")


def test_hidden_folders_and_installed_packages_are_not_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in (".aws-sam/deps", "node_modules/one", "docs/.cache", "docs/node_modules", "docs/a"):
        (tmp_path / each).mkdir(parents=True)
        (tmp_path / each / "page.md").touch()
    (tmp_path / "page.md").touch()
    monkeypatch.setattr(sources, "REPOSITORY", tmp_path)
    assert list(files(".md", ".")) == [tmp_path / "docs/a/page.md", tmp_path / "page.md"]


def test_only_files_of_tests_sources_walks_through_the_repository() -> None:
    found = [
        f"{path}:{node.lineno}"
        for path in files(".py", "tests", "docs")
        if not str(path.relative_to(sources.REPOSITORY)).startswith(OWN_FOLDERS)
        if re.search(r"\.(rglob|walk)\(", path.read_text("utf-8"))
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr == "rglob" or ast.unparse(node.func) == "os.walk"
    ]
    assert found == []
