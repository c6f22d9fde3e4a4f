"""Rehearsal of a deployment: a merchant opens each linked page of the dashboard.

The rehearsal enforces the functions' roles, so a page fails if its function has no permission to
read the records. Pages are found by their links, so pages that are added later are opened, too.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any, Final
from urllib.parse import parse_qsl, urljoin, urlsplit

from sandbox.rehearsal.stack import RehearsalFailed

HOME: Final = "/dashboard"
SIGN_IN: Final = f"{HOME}/sign-in"
PAGES_MAX: Final = 150
_ID: Final = re.compile(r"(?<=/)[a-z]+_[A-Za-z0-9_~-]{8,}|\d{4}(-\d\d)+")


def look_around(base: str, api_key: str, get: Callable[..., Any], post: Callable[..., Any]) -> int:
    """Sign in, create a payment link with a stock, and open each kind of page once.

    Return the number of opened pages. `get` and `post` are the methods of an HTTP client that keeps
    cookies and follows redirects.
    """

    def send(form: str, to: str, **fields: str) -> None:
        page = _opened(get(base + form), form)
        token = {"form_token": page.token}
        _opened(post(base + to, data=token | fields, headers={"Origin": base}), to)

    send(SIGN_IN, SIGN_IN, api_key=api_key)
    send(f"{HOME}/links", f"{HOME}/links", name="Tea", amount="5.00", stock="20", success_url="")
    waiting, kinds = deque([HOME]), {HOME}
    opened = 0
    while waiting:
        path = waiting.popleft()
        opened += 1
        for found in _opened(get(base + path), path).found:
            target = urlsplit(urljoin(f"{base}{path}", found))
            kind = _kind(target.path, target.query)
            inside = f"{target.scheme}://{target.netloc}" == base
            if inside and target.path.startswith(HOME) and kind not in kinds:
                kinds.add(kind)
                waiting.append(target.path + (f"?{target.query}" if target.query else ""))
        if opened > PAGES_MAX:
            raise RehearsalFailed(f"the dashboard has more than {PAGES_MAX} kinds of pages")
    return opened


def _kind(path: str, query: str) -> str:
    """Return a text that is equal for pages that differ only in a record, day or filter value."""
    names = sorted({name for name, _ in parse_qsl(query)})
    return _ID.sub("ID", path) + "?" * bool(names) + "&".join(names)


def _opened(answer: Any, path: str) -> _Page:
    if answer.status_code >= 400:
        raise RehearsalFailed(f"{path} of the dashboard answers {answer.status_code}")
    page = _Page()
    if answer.headers["content-type"].startswith("text/html"):
        page.feed(answer.text)
    if SIGN_IN in str(answer.url) and path != SIGN_IN:
        raise RehearsalFailed(f"{path} of the dashboard leads to the sign-in page")
    return page


class _Page(HTMLParser):
    """The URLs of a page's links, pictures and frames, and the token of its forms."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.token = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: value or "" for name, value in attrs}
        if held.get("name") == "form_token":
            self.token = held["value"]
        self.found += [held[name] for name in _leading(tag) if held.get(name)]


def _leading(tag: str) -> Iterator[str]:
    if tag == "a":
        yield "href"
    if tag in ("img", "iframe"):
        yield "src"
