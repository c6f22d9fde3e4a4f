"""Render templates to HTML pages, with the reader's texts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from fastapi import Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from checkout import wiring
from checkout.pages import nonce_of
from checkout.templates import templates
from pay.language import Reader

_FOLDER: Final = Path(__file__).parent / "templates"
# The parts that are removed from a script: comments on a line of their own, comments after code and
# two blanks, and the indentation of lines.
_NOT_RUN: Final = re.compile(r"^\s*//.*\n|  // .*$|^ +", re.MULTILINE)
# The parts that are removed from page.css: comments and white space.
_NOT_DRAWN: Final = re.compile(r"\s*/\*.*?\*/|^\s+|;? +(?=})| (?={)|(?<=[{;,]) ", re.M | re.DOTALL)


def without_comments(script: str) -> str:
    """Return `script` without its comments, which would make up a tenth of each page."""
    return _NOT_RUN.sub("", script)


def _own(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")


_TEMPLATES: Final = templates(_FOLDER)
_TEMPLATES.globals["script"] = Markup(without_comments(_own("page.js")))  # noqa: S704 - our own
_TEMPLATES.globals["turn_script"] = Markup(without_comments(_own("turn.js")))  # noqa: S704
_TEMPLATES.globals["style"] = Markup(_NOT_DRAWN.sub("", _own("page.css")))  # noqa: S704 - our own


def page(
    request: Request,
    reader: Reader,
    template: str,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
    **values: Any,
) -> HTMLResponse:
    """Render `template` as an HTML page, with the reader's texts as `t`."""
    html = _TEMPLATES.get_template(template).render(
        nonce=nonce_of(request),
        reader=reader,
        t=reader.texts,
        test_wallets=wiring.test_wallets(),
        **values,
    )
    return HTMLResponse(html, status, headers)


def text(template: str, **values: Any) -> str:
    """Render `template` as text, without a response around it."""
    return _TEMPLATES.get_template(template).render(test_wallets=wiring.test_wallets(), **values)
