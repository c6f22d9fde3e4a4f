from __future__ import annotations

import re
import shutil
import sys
from importlib.util import source_hash
from pathlib import Path

import jinja2
import pytest
from jinja2 import UndefinedError

from checkout.templates import templates
from sandbox import artifacts
from sandbox.artifacts import SERVICES, Unusable, finish

WIRING = Path(__file__).parents[2] / "layers" / "common" / "checkout" / "wiring.py"


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """Lay out the output of `sam build`: a function and a layer, with a developer's leftovers."""
    function, layer = tmp_path / "ApiFunction" / "api", tmp_path / "CommonLayer" / "python"
    for folder in (function / "__pycache__", *(layer / "botocore/data" / s for s in SERVICES)):
        folder.mkdir(parents=True)
    (layer / "botocore" / "data" / "ec2").mkdir()
    (layer / "botocore" / "data" / "endpoints.json").write_text("{}")
    (function / "app.py").write_text("handler = print\n")
    (function / "__pycache__" / "app.cpython-310.pyc").write_bytes(b"old")
    return tmp_path


@pytest.fixture
def of_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "RUNTIME", sys.version_info[:2])


@pytest.mark.usefixtures("of_this_python")
def test_each_module_gets_bytecode_that_is_used_without_a_look_at_its_date(build: Path) -> None:
    finish(build)
    [compiled] = build.rglob("*.pyc")
    header = compiled.read_bytes()[:16]
    assert header[4:8] == b"\x01\0\0\0"  # by hash, unchecked (PEP 552)
    assert header[8:] == source_hash((build / "ApiFunction/api/app.py").read_bytes())
    assert str(build).encode() not in compiled.read_bytes()
    assert b"/var/task/api/app.py" in compiled.read_bytes()


@pytest.mark.usefixtures("of_this_python")
def test_services_that_are_never_called_are_left_out(build: Path) -> None:
    finish(build)
    left = {each.name for each in (build / "CommonLayer/python/botocore/data").iterdir()}
    assert left == {*SERVICES, "endpoints.json"}


@pytest.mark.usefixtures("of_this_python")
def test_locale_data_of_other_languages_is_left_out(build: Path) -> None:
    data = build / "PayLayer/python/babel/locale-data"
    data.mkdir(parents=True)
    for name in ("root", "de", "de_CH", "pt_BR", "den", "zh_Hant", "nl"):
        (data / f"{name}.dat").write_bytes(b"")
    finish(build)
    assert {each.stem for each in data.iterdir()} == {"root", "de", "de_CH", "pt_BR"}


def test_they_are_those_that_the_product_makes_clients_of() -> None:
    called = re.findall(r'boto3\.client\(\s*"(\w+)"', WIRING.read_text("utf-8"))
    assert set(called) == SERVICES


@pytest.mark.usefixtures("of_this_python")
def test_a_botocore_that_does_not_know_a_service_is_refused(build: Path) -> None:
    (build / "CommonLayer/python/botocore/data/sqs").rmdir()
    with pytest.raises(Unusable, match="sqs"):
        finish(build)


@pytest.mark.usefixtures("of_this_python")
def test_a_module_that_does_not_compile_is_refused(
    build: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (build / "ApiFunction/api/broken.py").write_text("def\n")
    with pytest.raises(Unusable, match="ApiFunction"):
        finish(build)
    assert "broken.py" in capsys.readouterr().out


def test_another_python_than_the_runtimes_is_refused(
    build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "RUNTIME", (3, 99))
    with pytest.raises(Unusable, match=r"3\.99 is needed"):
        finish(build)
    assert len(list(build.rglob("*.pyc"))) == 1


@pytest.fixture
def with_templates(build: Path) -> Path:
    """Add the layers that compile templates, and a function that has one."""
    pages = build / "PayFunction" / "pay" / "templates"
    pages.mkdir(parents=True)
    (pages / "base.html").write_text("<b>{% block inner %}{% endblock %}</b>")
    (pages / "page.html").write_text(
        "{% extends 'base.html' %}{% block inner %}{{ s }}{% endblock %}"
    )
    packages = Path(jinja2.__file__).parents[1]
    layer = build / "PayLayer" / "python"
    layer.mkdir(parents=True)
    for name in ("jinja2", "markupsafe"):
        shutil.copytree(packages / name, layer / name)
    ours = build / "CommonLayer" / "python" / "checkout"
    ours.mkdir()
    for module in ("__init__.py", "templates.py"):
        shutil.copy(WIRING.parent / module, ours)
    return pages


@pytest.mark.usefixtures("of_this_python")
def test_templates_are_compiled_and_then_read_from_nowhere_else(with_templates: Path) -> None:
    finish(with_templates.parents[2])
    for source in with_templates.glob("*.html"):
        source.unlink()
    shown = templates(with_templates).get_template("page.html")
    assert shown.render(s="<i>") == "<b>&lt;i&gt;</b>"
    with pytest.raises(UndefinedError):
        shown.render()


@pytest.mark.usefixtures("of_this_python")
def test_a_template_that_does_not_compile_is_refused(with_templates: Path) -> None:
    (with_templates / "broken.html").write_text("{% if %}")
    with pytest.raises(Unusable, match="template"):
        finish(with_templates.parents[2])
