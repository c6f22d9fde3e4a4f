from __future__ import annotations

import runpy
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent


def test_the_readmes_tables_are_those_of_the_code() -> None:
    refreshed = runpy.run_path(str(REPOSITORY / "docs" / "tables.py"))["refreshed"]
    text = (REPOSITORY / "README.md").read_text("utf-8")
    assert refreshed(text) == text, "run `make docs`"


def test_the_tables_on_deploying_are_those_of_the_template() -> None:
    tables = runpy.run_path(str(REPOSITORY / "docs" / "tables.py"))
    text = (REPOSITORY / "docs" / "deploying.md").read_text("utf-8")
    assert tables["refreshed"](text, tables["OF_DEPLOYING"]) == text, "run `make docs`"


def test_the_readmes_tree_names_folders_that_exist() -> None:
    text = (REPOSITORY / "README.md").read_text("utf-8")
    tree = text.split("## The house")[1].split("```")[1]
    names = [line.split()[0] for line in tree.strip().splitlines()]
    parent = ""
    for line, name in zip(tree.strip("\n").splitlines(), names, strict=True):
        parent = parent if line.startswith(" ") else name
        path = REPOSITORY / (parent + name if line.startswith(" ") else name)
        assert path.exists(), path


def test_every_link_of_the_documentation_leads_to_a_file() -> None:
    import re

    for document in [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text("utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
