from __future__ import annotations

import re
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
MAKEFILE = (REPOSITORY / "Makefile").read_text("utf-8")


def test_bare_make_says_what_each_target_does() -> None:
    done = subprocess.run(
        ["make", "--no-print-directory"],  # these tests are themselves run by make
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    told = {line.split()[0] for line in done.stdout.splitlines()}
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.M)
    assert phony is not None
    assert told == set(phony[1].split()) - {"help"}


def test_the_four_that_a_newcomer_needs_are_marked() -> None:
    assert re.findall(r"^(\w+):.*## ⭐", MAKEFILE, re.M) == ["dev", "test", "lint", "check"]


def test_no_target_is_longer_than_three_lines() -> None:
    for block in re.findall(r"^\S+:.*\n((?:\t.*\n)+)", MAKEFILE, re.M):
        assert block.count("\n") <= 3, block


def test_trying_the_shop_installs_nothing_that_only_developers_need() -> None:
    needs = dict(re.findall(r"^([a-z-]+): (.*?) ##", MAKEFILE, re.M))
    for target in ("dev", "demo", "listen", "trigger", "merchant"):
        assert needs[target] == "$(RUN)"
    [run] = re.findall(r"^RUN := (.*)$", MAKEFILE, re.M)
    assert run.split() == [".venv/run-stamp", ".venv-cloud/stamp"]
    assert re.search(r"^\.venv/run-stamp: requirements\.txt$", MAKEFILE, re.M)


def test_each_installation_says_what_it_does() -> None:
    for name, recipe in re.findall(r"^(\.venv[\w-]*)/\w*-?stamp:.*\n((?:\t.*\n)+)", MAKEFILE, re.M):
        assert f"into {name}" in recipe
