"""Outbox: replaces Amazon SES on a developer's machine; shows the e-mails on a page.

The outbox keeps the e-mails in memory. It accepts the request `SendEmail` of the SES API v2 at
/v2/email/outbound-emails. No e-mail leaves this machine.
"""

from __future__ import annotations

import html
import json
import threading
import uuid
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from sandbox.server import Answer, Incoming

BODY_MAX: Final = 1_000_000  # bytes
_KEPT: Final = 50
_SEND: Final = ("POST", "/v2/email/outbound-emails")
# The browser applies an e-mail's styles, but runs no scripts and loads no external content.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_STYLE: Final = (
    ":root{color-scheme:light dark}body{max-width:48rem;margin:2rem auto;padding:0 1rem;"
    "font:1rem/1.5 system-ui,sans-serif}pre{white-space:pre-wrap;overflow-wrap:anywhere}"
    "article{border-top:1px solid #8888;margin-top:1.5rem}"
)


@dataclass(frozen=True, slots=True)
class _Kept:
    sender: str
    to: str
    reply_to: str
    subject: str
    text: str
    html: str


class Outbox:
    """The e-mails since the local world started, newest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: deque[_Kept] = deque(maxlen=_KEPT)

    def answer(self, request: Incoming) -> Answer:
        """Store an e-mail, or return the page with the list of e-mails or with one e-mail."""
        if (request.method, request.target) == _SEND:
            return self._take(request.body)
        with self._lock:
            kept = list(self._kept)
        number = request.target.strip("/")
        if request.method != "GET":
            return _page("This is not there.", 404)
        if not number:
            return _page(_listed(kept))
        if number.isdecimal() and int(number) < len(kept):
            return Answer(200, _HEADERS, kept[int(number)].html.encode())
        return _page("This is not there.", 404)

    def _take(self, body: bytes) -> Answer:
        try:
            kept = _read(json.loads(body))
        except (ValueError, KeyError, TypeError, IndexError):
            return Answer(400, _JSON, b'{"message":"This is not an e-mail."}')
        with self._lock:
            self._kept.appendleft(kept)
        return Answer(200, _JSON, json.dumps({"MessageId": str(uuid.uuid4())}).encode())


def _read(sent: dict[str, Any]) -> _Kept:
    simple = sent["Content"]["Simple"]
    [to] = sent["Destination"]["ToAddresses"]
    return _Kept(
        sender=sent["FromEmailAddress"],
        to=to,
        reply_to=", ".join(sent.get("ReplyToAddresses", [])),
        subject=simple["Subject"]["Data"],
        text=simple["Body"]["Text"]["Data"],
        html=simple["Body"]["Html"]["Data"],
    )


def _listed(kept: list[_Kept]) -> str:
    rows = "".join(
        f"<article><h2>{html.escape(each.subject)}</h2><p>From {html.escape(each.sender)} to "
        f"{html.escape(each.to)}; replies to {html.escape(each.reply_to or 'nobody')} · "
        f'<a href="/{number}">as HTML</a></p><pre>{html.escape(each.text)}</pre></article>'
        for number, each in enumerate(kept)
    )
    return rows or "<p>No e-mail yet. Pay something, and have the receipt sent.</p>"


def _page(body: str, status: int = 200) -> Answer:
    document = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Outbox</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style><h1>Outbox</h1>{body}</html>"
    )
    return Answer(status, _HEADERS, document.encode())


_HEADERS: Final = [
    ("content-type", "text/html; charset=utf-8"),
    ("cache-control", "no-store"),
    ("content-security-policy", _POLICY),
    ("x-content-type-options", "nosniff"),
]
_JSON: Final = [("content-type", "application/json")]
