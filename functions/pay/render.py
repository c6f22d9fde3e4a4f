"""HTML from the templates: the one environment, and what each page is given.

Refuses to trust: all text is escaped, and a name that a template asks for and nobody gave is an
error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from checkout.page_headers import nonce_of
from pay.language import Reader

_TEMPLATES: Final = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,  # a deployed template does not change
)


def page(
    request: Request,
    reader: Reader,
    template: str,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
    **values: Any,
) -> HTMLResponse:
    """`t` in the template is the reader's texts."""
    html = _TEMPLATES.get_template(template).render(
        nonce=nonce_of(request),
        reader=reader,
        t=reader.texts,
        **values,
    )
    return HTMLResponse(html, status, headers)
