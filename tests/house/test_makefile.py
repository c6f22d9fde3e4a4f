"""The Makefile is readable, and variables reach the commands as they were typed."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
MAKEFILE: Final = (ROOT / "Makefile").read_text("utf-8")
TYPED: Final = {
    "NAME": 'Bob\'s "$(id)" & `shop`',
    "WALLET": "$wallet.example/shop",
    "KEY_ID": "k$1",
    "PRIVATE_KEY": "my keys/private $HOME.key",
}
SETUP: Final = ("--name", "NAME", "--wallet-address", "WALLET")
KEYS: Final = ("--key-id", "KEY_ID", "--private-key", "PRIVATE_KEY")


def made(folder: Path, target: str, *arguments: str, **environment: str) -> list[str]:
    """Return the arguments that the target's program got; a script stands for each program."""
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("checkout", "python"):
        (programs / name).write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        (programs / name).chmod(0o755)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    installed = ("-o", ".venv/run-stamp", "-o", ".venv-cloud/stamp")
    command = ["make", "-s", "-C", str(folder), "-f", str(ROOT / "Makefile"), *installed]
    done = subprocess.run(
        [*command, target, *arguments],
        env=inherited | {"DATABASE_URL": "dynamodb:///x"} | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if not line.startswith("make")]


@pytest.mark.parametrize("inherited", [True, False])
def test_a_merchant_is_created_with_what_was_typed(tmp_path: Path, inherited: bool) -> None:
    given = [] if inherited else [f"{name}={value}" for name, value in TYPED.items()]
    got = made(tmp_path, "merchant", *given, **(TYPED if inherited else {}))
    assert got == ["setup", *(TYPED.get(each, each) for each in SETUP + KEYS), "--by-make"]


def test_the_demo_pays_from_the_wallet_that_was_typed(tmp_path: Path) -> None:
    got = made(tmp_path, "demo", "WALLET=$localhost:4101/alice")
    assert got == ["-m", "sandbox", "demo", "--wallet", "$localhost:4101/alice"]


def test_the_demo_refunds_what_was_typed(tmp_path: Path) -> None:
    got = made(tmp_path, "demo", "REFUND=5.00")
    assert got == ["-m", "sandbox", "demo", "--refund", "5.00"]


def test_the_demo_without_a_wallet_names_none(tmp_path: Path) -> None:
    assert made(tmp_path, "demo") == ["-m", "sandbox", "demo"]


def test_help_shows_each_target_in_a_group_and_the_most_used_first() -> None:
    done = subprocess.run(["make", "-s", "-C", ROOT], capture_output=True, text=True, check=True)
    shown = [line for line in done.stdout.splitlines() if line]
    assert shown[0].startswith("⭐")
    assert [line for line in shown if not line.startswith(" ")][1:]  # more groups
    listed = {line.split()[0] for line in shown if line.startswith(" ")}
    assert listed == set(re.findall(r"^([a-z-]+):(?! export)", MAKEFILE, re.MULTILINE)) - {"help"}
    phony = " ".join(re.findall(r"^\.PHONY: (.*)", MAKEFILE, re.MULTILINE)).split()
    assert sorted(phony) == sorted(listed | {"help"})
