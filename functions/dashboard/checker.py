"""The signature checker: what was found, in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastapi import Request, Response

from checkout.domain.signature_check import Finding
from checkout.flows.webhooks.signature_check import HEADERS_MAX, Checked
from dashboard.pages import page

_SECRET: Final = {
    "current": "your current secret",
    "before": "the secret before your current one, which still signs for a while",
    "ended": "a secret that you have replaced and that signs no more",
}
# What a sentence says; the braces are filled from the finding.
_SAID: Final[dict[str, str]] = {
    "right": "The signature is right: it was made with {secret}, over exactly this body, at the "
    "time that the header names.",
    "old": "It was signed {seconds} seconds ago. Libraries accept 300 seconds: a server that "
    "verifies later, or whose clock is fast, refuses it.",
    "future": "Its timestamp is {seconds} seconds ahead of our clock. Libraries accept 300.",
    "time_changed": "The timestamp is wrong by {seconds} seconds: the signature was made with "
    "{secret} for another second than the header names. Hand the header on as it came.",
    "body": "The body was changed on its way to your check: the signature was made with {secret} "
    "over other bytes. Verify the raw bytes of the request, before anything reads them.",
    "signature_changed": "The signature itself was changed: its character {position} is wrong. The "
    "body and the time are those that {secret} has signed.",
    "secret": "The signature was not made with any of your secrets. Compare the secret that your "
    "server has with the one that you were shown here, or make a new one.",
    "body_differs": "The body is not the one that we sent, either.",
    "unknown": "None of your secrets leads to this signature, and there is no event here to "
    "compare the body with. Paste the line Checkout-Event-Id (or webhook-id) as well.",
    "no_signature": "There is no v1 signature in the header.",
    "no_time": "The header's timestamp is not a number of seconds.",
    "no_event_id": "The line webhook-id is missing: it is part of what was signed.",
}
_CHANGE: Final = {
    "bom": "Yours begins with a byte order mark.",
    "spaces": "Yours has spaces or line ends around it.",
    "written_anew": "Yours is the same JSON, written anew with other spaces or escapes.",
}


@dataclass(frozen=True, slots=True)
class Sentence:
    good: bool
    text: str
    detail: str | None


def checker(
    request: Request,
    typed: dict[str, str],
    *,
    checked: Checked | None = None,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    return page(
        request,
        "checker.html",
        status=status,
        section="/webhooks",
        headers_max=HEADERS_MAX,
        typed_headers=typed.get("headers", ""),
        typed_body=typed.get("body", ""),
        found=[_sentence(finding) for finding in checked.findings] if checked else [],
        event=checked.event if checked else None,
        alert=alert,
    )


def _sentence(finding: Finding) -> Sentence:
    text = _SAID[finding.code].format(
        secret=_SECRET.get(finding.secret or "", ""),
        seconds=finding.seconds,
        position=finding.position,
    )
    parts = [_CHANGE[finding.change]] if finding.change else []
    if finding.ours is not None:
        parts.append(
            f"The first difference is at byte {finding.position}: we sent {finding.ours}, "
            f"you have {finding.yours}."
        )
    return Sentence(finding.good, text, " ".join(parts) or None)
