from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import TemplateNotFound, TemplateSyntaxError, UndefinedError

from checkout.templates import compile_all, templates


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "page.html").write_text("<b>{{ s }}</b>\n")
    return tmp_path


@pytest.mark.parametrize("compiled", [False, True])
def test_a_page_is_the_same_from_its_source_and_compiled(folder: Path, compiled: bool) -> None:
    if compiled:
        compile_all(folder)
        (folder / "page.html").unlink()
    page = templates(folder).get_template("page.html")
    assert page.render(s="<i>") == "<b>&lt;i&gt;</b>"
    with pytest.raises(UndefinedError):
        page.render()


def test_what_was_not_compiled_is_not_found(folder: Path) -> None:
    compile_all(folder)
    (folder / "new.html").write_text("new")
    with pytest.raises(TemplateNotFound):
        templates(folder).get_template("new.html")


def test_a_wrong_template_is_not_compiled(folder: Path) -> None:
    (folder / "wrong.html").write_text("{% if %}")
    with pytest.raises(TemplateSyntaxError):
        compile_all(folder)
