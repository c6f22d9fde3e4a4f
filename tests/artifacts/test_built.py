"""Test the build file by file: for the right processor, small enough, and with bytecode."""

from __future__ import annotations

import _imp
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.artifacts import SERVICES
from sandbox.template import resources

pytestmark = pytest.mark.artifacts

LAYERS = ("CommonLayer", "PayLayer")
WALLETS = "test-wallets/TestWalletsFunction"
MOST = 60 * 10**6  # bytes of a layer, unzipped
AARCH64 = 183  # e_machine, ELF
MAGIC = b"\xf3\r\r\n"  # of Python 3.13's bytecode
UNCHECKED_HASH = 0b01  # PEP 552


def artifacts(build: Path) -> Iterator[Path]:
    found = {*resources("AWS::Serverless::Function"), *LAYERS}
    assert found == {each.name for each in build.iterdir() if each.is_dir()}
    yield from (build / name for name in found)
    yield build.parent / WALLETS


def test_what_is_shipped_holds_libraries_for_arm64_only(shipped: Path) -> None:
    libraries = {}
    for each in (path for path in shipped.rglob("*") if path.is_file()):
        with each.open("rb") as file:
            header = file.read(20)
        if header.startswith(b"\x7fELF"):
            libraries[each] = int.from_bytes(header[18:20], "little")
    assert len(libraries) >= 4  # cryptography, cffi, pydantic-core, MarkupSafe
    assert set(libraries.values()) == {AARCH64}
    named = {path.name for path in libraries} | {path.name for path in shipped.rglob("*.so")}
    assert not [name for name in named if "x86_64" in name or "darwin" in name]


@pytest.mark.parametrize("layer", LAYERS)
def test_each_layer_is_at_most_60_mb_unzipped(shipped: Path, layer: str) -> None:
    size = sum(each.stat().st_size for each in (shipped / layer).rglob("*") if each.is_file())
    print(f"{layer}: {size / 10**6:.1f} MB")
    assert size <= MOST


def test_every_module_has_bytecode_that_is_used_whatever_the_files_date_is(shipped: Path) -> None:
    modules = 0
    for artifact in artifacts(shipped):
        for source in artifact.rglob("*.py"):
            compiled = source.parent / "__pycache__" / f"{source.stem}.cpython-313.pyc"
            header = compiled.read_bytes()[:16]
            assert header[:4] == MAGIC, source
            assert int.from_bytes(header[4:8], "little") == UNCHECKED_HASH, source
            key = int.from_bytes(MAGIC, "little")
            assert header[8:] == _imp.source_hash(key, source.read_bytes()), source
            modules += 1
    assert modules > 1000


def test_no_bytecode_of_another_python_and_no_path_of_the_builders_machine(shipped: Path) -> None:
    here = str(shipped).encode()
    for artifact in artifacts(shipped):
        for compiled in artifact.rglob("*.pyc"):
            assert ".cpython-313." in compiled.name
            assert here not in compiled.read_bytes(), compiled


def test_botocore_describes_the_services_that_are_called_and_no_other(shipped: Path) -> None:
    data = shipped / "CommonLayer" / "python" / "botocore" / "data"
    assert {each.name for each in data.iterdir() if each.is_dir()} == SERVICES


def test_neither_a_test_nor_the_sandbox_is_shipped(shipped: Path) -> None:
    ours = {each.name for name in LAYERS for each in (shipped / name / "python").iterdir()}
    for function in resources("AWS::Serverless::Function"):
        ours |= {each.name for each in (shipped / function).iterdir()}
    assert not ours & {"tests", "sandbox", "moto", "pytest"}
    assert {"checkout", "pay"} <= ours


def test_a_test_stages_function_has_the_wallets_and_nothing_else_of_the_sandbox(
    shipped: Path,
) -> None:
    whole = shipped.parent / WALLETS
    assert {each.name for each in whole.iterdir()} == {"sandbox"}
    assert {each.name for each in (whole / "sandbox").iterdir()} == {
        "__init__.py",
        "__pycache__",
        "wallets",
    }
