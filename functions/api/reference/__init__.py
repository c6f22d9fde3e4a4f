"""The reference that /docs serves: pages made by docs/openapi/page.py, their style and script.

This module is loaded at the first request for a page, so that it does not slow down the API.
"""

from __future__ import annotations

from functools import cache
from html import escape
from pathlib import Path
from typing import Final

from fastapi import Request, Response

from checkout import wiring
from checkout.adapters.runtime import system_random
from checkout.domain.ground.errors import ResourceMissing
from checkout.web import ErrorResponse, application, lambda_handler, problem_json

_HERE: Final = Path(__file__).parent
# The address that the stored pages have in place of the deployment's own address.
_EXAMPLE: Final = "https://checkout.example"
_HTML: Final = "text/html; charset=utf-8"
_FILES: Final = {
    "": ("index.html", _HTML),
    "/v1": ("v1.html", _HTML),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/script.js": ("script.js", "text/javascript; charset=utf-8"),
    "/openapi.json": ("openapi.json", "application/json"),
    "/openapi-v1.json": ("openapi-v1.json", "application/json"),
}
_TEST: Final = '<aside class="test">Test: no real money</aside>'
_TRY_IT: Final = "<!-- test wallet -->"
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Strict-Transport-Security": "max-age=31536000",
}


def _problem(request: Request, found: ErrorResponse) -> Response:
    return problem_json(request, found, wiring.doc_url(found.code))


app = application(
    random_bytes=system_random, render=_problem, elsewhere="The reference is at /docs."
)


@app.get("/docs{rest:path}")
async def page(rest: str) -> Response:
    """Return a page of the reference. The route needs no key: all merchants get the same page."""
    if rest not in _FILES:
        raise ResourceMissing("There is no such page. The reference is at /docs.")
    name, media_type = _FILES[rest]
    text = _text(name, wiring.base_url(), wiring.test_wallets())
    return Response(text, media_type=media_type, headers=_HEADERS)


@cache
def _text(name: str, base_url: str, test_wallets: str) -> str:
    text = (_HERE / name).read_text("utf-8")
    if test_wallets and name.endswith(".html"):
        text = text.replace("<body>", f"<body>\n{_TEST}", 1)
    wallet = f"<code>{escape(test_wallets)}/cedar/alice</code>"
    text = text.replace(_TRY_IT, f"<li>Pay from {wallet} to try it.</li>" if test_wallets else "")
    return text.replace(_EXAMPLE, base_url) if base_url else text


handler = lambda_handler(app)
