"""Render templates to HTML pages, with the reader's texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from fastapi import Request
from fastapi.responses import HTMLResponse

from checkout import wiring
from checkout.pages import nonce_of
from checkout.templates import templates
from pay.language import Reader

_TEMPLATES: Final = templates(Path(__file__).parent / "templates")


def page(
    request: Request,
    reader: Reader,
    template: str,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
    **values: Any,
) -> HTMLResponse:
    """Return `template` rendered, with the texts as `t`."""
    html = _TEMPLATES.get_template(template).render(
        nonce=nonce_of(request),
        reader=reader,
        t=reader.texts,
        test_wallets=wiring.test_wallets(),
        **values,
    )
    return HTMLResponse(html, status, headers)


def text(template: str, **values: Any) -> str:
    """Return `template` rendered as text, without a response around it."""
    return _TEMPLATES.get_template(template).render(test_wallets=wiring.test_wallets(), **values)
