"""Check the package, what it depends on, and what `make dev` has to download."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any, Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from checkout.version import VERSION
from open_payments import __version__ as CLIENT_VERSION
from tests.support.sources import files

ROOT: Final = Path(__file__).parents[2]
PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
DEPENDENCIES: Final = [Requirement(each) for each in PROJECT["project"]["dependencies"]]
CLIENT: Final = ROOT / "packages/open-payments"
CLIENTS: Final[dict[str, Any]] = tomllib.loads((CLIENT / "pyproject.toml").read_text("utf-8"))
FUNCTIONS: Final = {each.name for each in (ROOT / "functions").iterdir()}
OURS: Final = FUNCTIONS | {"checkout", "open_payments", "sandbox"}
# Imported by name, and never without the package that brings it.
BROUGHT_BY: Final = {
    "botocore": "boto3",
    "httpcore": "httpx",
    "pydantic-core": "pydantic",
    "starlette": "fastapi",
    "typing-extensions": "pydantic",
}
PIN: Final = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


def imported(*folders: str) -> set[str]:
    """Return the distributions that the modules below these folders import.

    The rehearsal and what runs beside the emulator have an environment of their own.
    """
    elsewhere = {"rehearsal", "guarded_emulator.py"}
    sources = [path for path in files(".py", *folders) if not elsewhere & set(path.parts)]
    nodes = (each for path in sources for each in ast.walk(ast.parse(path.read_text("utf-8"))))
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    distributions = packages_distributions()
    outside = names - OURS - sys.stdlib_module_names
    return {canonicalize_name(distributions[name][0]) for name in outside}


def pins(path: str) -> dict[str, str]:
    return dict(PIN.findall((ROOT / path).read_text("utf-8")))


def test_the_package_declares_what_it_imports_and_nothing_else() -> None:
    declared = {canonicalize_name(each.name) for each in DEPENDENCIES}
    ours = {BROUGHT_BY.get(each, each) for each in imported("layers/common")}
    assert ours | {"open-payments"} == declared


def test_the_client_declares_what_it_imports_and_nothing_of_the_checkout() -> None:
    wanted = {Requirement(each).name for each in CLIENTS["project"]["dependencies"]}
    assert wanted == {"certifi", "cryptography", "httpx", "idna"}
    assert {BROUGHT_BY.get(each, each) for each in imported("packages/open-payments/src")} == wanted
    [ours] = [each for each in DEPENDENCIES if each.name == "open-payments"]
    assert ours.specifier.contains(CLIENT_VERSION)


def test_the_client_is_tested_with_the_versions_of_the_product() -> None:
    group = dict(each.split("==") for each in CLIENTS["dependency-groups"]["test"])
    assert group.items() <= pins("requirements-dev.txt").items()


def test_what_is_tested_and_deployed_is_within_the_ranges_of_the_package() -> None:
    tested = pins("requirements-dev.txt")
    for each in DEPENDENCIES:
        if each.name == "open-payments":
            continue
        assert each.specifier.contains(tested[canonicalize_name(each.name)]), each


def test_the_local_world_runs_on_its_own_requirements() -> None:
    assert imported("layers", "functions", "sandbox") <= pins("requirements.txt").keys()


def test_the_emulators_guard_imports_only_the_emulator_beside_the_standard_library() -> None:
    source = (ROOT / "sandbox/guarded_emulator.py").read_text("utf-8")
    names = set(re.findall(r"^ *(?:from|import) (\w+)", source, re.MULTILINE))
    assert names - sys.stdlib_module_names == {"ministack"}
    assert "ministack" in pins("sandbox/cloud-requirements.txt")


def test_what_only_developers_need_is_not_downloaded_to_try_the_shop() -> None:
    for path in ("requirements.txt", "sandbox/cloud-requirements.txt"):
        heavy = {"cfn-lint", "hypothesis", "moto", "mypy", "playwright", "pytest", "ruff", "stripe"}
        assert not heavy & pins(path).keys()
    assert "aws-sam-translator" not in pins("sandbox/cloud-requirements.txt")


@pytest.mark.parametrize(
    ("part", "lock"),
    [
        ("requirements.txt", "requirements-dev.txt"),
        ("layers/common/requirements.txt", "requirements.txt"),
        ("layers/pay/requirements.txt", "requirements.txt"),
        ("sandbox/cloud-requirements.txt", "sandbox/rehearsal-requirements.txt"),
    ],
)
def test_a_package_has_one_version_in_every_file(part: str, lock: str) -> None:
    assert pins(part).items() <= pins(lock).items()


def built(project: Path, target: Path) -> tuple[Path, set[str], str]:
    """Build a wheel as pip does, without a network; return it, its files and its entry points."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)],
        cwd=project,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        check=True,
    )
    [wheel] = target.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        points = [name for name in names if name.endswith(".dist-info/entry_points.txt")]
        return wheel, names, "".join(archive.read(each).decode() for each in points)


def test_the_wheel_holds_the_package_and_runs_by_itself(tmp_path: Path) -> None:
    [builder] = PROJECT["build-system"]["requires"]
    assert builder in PROJECT["dependency-groups"]["run"]
    wheel, names, scripts = built(ROOT, tmp_path / "checkout")
    client, _, _ = built(CLIENT, tmp_path / "client")
    assert wheel.name == f"checkout_sessions-{VERSION}-py3-none-any.whl"
    assert "checkout = checkout.cli:main" in scripts
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"checkout"}
    assert {"checkout/cli.py", "checkout/py.typed"} <= names
    version = subprocess.run(
        [sys.executable, "-m", "checkout.cli", "--version"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{wheel}:{client}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert version.stdout == f"checkout {VERSION}\n"


@pytest.mark.untraced
@pytest.mark.first
def test_the_client_works_where_there_is_nothing_but_its_wheel_and_its_tests(
    tmp_path: Path,
) -> None:
    assert CLIENTS["build-system"] == PROJECT["build-system"]
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    wheel, names, _ = built(CLIENT, tmp_path)
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"open_payments"}
    assert "open_payments/py.typed" in names
    assert wheel.stat().st_size < 60_000
    for each in ("tests", "conformance", "spec", "docs"):
        shutil.copytree(CLIENT / each, tmp_path / each, ignore=shutil.ignore_patterns("__*"))
    for each in ("pyproject.toml", "README.md"):
        shutil.copy(CLIENT / each, tmp_path)
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:randomly")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(wheel)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stdout[-2000:] + done.stderr[-2000:]


def test_the_wheel_of_the_plugin_names_itself_to_pretix(tmp_path: Path) -> None:
    folder = ROOT / "plugins/pretix"
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    assert project["build-system"] == PROJECT["build-system"]
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    wheel, names, points = built(folder, tmp_path)
    assert re.fullmatch("pretix_checkout_sessions-.*-py3-none-any.whl", wheel.name)
    assert "[pretix.plugin]\npretix_checkout_sessions = " in points
    modules = {f"pretix_checkout_sessions/{each.name}" for each in folder.glob("pretix_*/*.py")}
    assert modules == {name for name in names if name.endswith(".py")}
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_the_changelog_has_the_kinds_of_its_format_and_no_release_of_another_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    first, *releases = re.findall(r"^## (.*)$", changelog, re.MULTILINE)
    assert first == "Unreleased"
    assert not releases or re.fullmatch(rf"{re.escape(VERSION)} - \d{{4}}-\d\d-\d\d", releases[0])
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)$", changelog, re.MULTILINE)) <= kinds
