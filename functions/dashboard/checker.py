"""The signature checker: explain in plain words why a merchant's server rejects a webhook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastapi import Response

from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import Right
from checkout.domain.webhooks.signature import Finding
from checkout.flows.webhooks import signature_check
from checkout.flows.webhooks.signature_check import HEADERS_MAX, Diagnosis
from dashboard.dependencies import Form, Page, PageRequest
from dashboard.forms import Fields
from dashboard.rendering import page
from dashboard.routing import PageRouter

router = PageRouter(prefix="/webhooks/check")
_SECRET: Final = {
    "current": "your current secret",
    "before": "your previous secret, which is still valid for a while",
    "ended": "a secret that you have replaced and that is no longer valid",
}
# The text of each finding, with placeholders for its values.
_TEXT: Final[dict[str, str]] = {
    "right": (
        "The signature is valid: it was made with {secret}, over exactly this body, at the time "
        "in the header."
    ),
    "old": "It was signed {seconds} seconds ago. Libraries accept up to 300 seconds: a server that "
    "verifies later than that, or whose clock is fast, rejects it.",
    "future": "Its timestamp is {seconds} seconds ahead of our clock. Libraries accept up to 300.",
    "time_changed": (
        "The timestamp is off by {seconds} seconds: the signature was made with {secret} for "
        "another time than the one in the header. Pass the header on unchanged."
    ),
    "body": "The body was changed before your server verified it: the signature was made with "
    "{secret} over other bytes. Verify the raw bytes of the request, before you parse them.",
    "signature_changed": "The signature itself was changed: its character {position} is wrong. The "
    "body and the time match what {secret} has signed.",
    "secret": "The signature was not made with any of your secrets. Compare the secret on your "
    "server with the one that was shown here, or create a new one.",
    "body_differs": "The body also differs from the one that we sent.",
    "unknown": "The signature matches none of your secrets, and there is no event here to compare "
    "the body with. Also paste the line Checkout-Event-Id (or webhook-id).",
    "no_signature": "There is no v1 signature in the header.",
    "no_time": "The header's timestamp is not a number of seconds.",
    "no_event_id": "The line webhook-id is missing: it is part of what was signed.",
}
_CHANGE: Final = {
    "bom": "Yours begins with a byte order mark.",
    "spaces": "Yours has spaces or line breaks around it.",
    "written_anew": "Yours is the same JSON, serialized again with different spaces or escapes.",
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """A finding in words."""

    good: bool
    text: str
    detail: str | None


class CheckForm(Fields):
    """The lines of the request's head that belong to the signature, and its body."""

    headers: str
    body: str


def _page(
    request: PageRequest,
    *,
    checked: Diagnosis | None = None,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    typed = request.read(CheckForm)
    return page(
        request.http,
        "checker.html",
        status=status,
        section="/webhooks",
        headers_max=HEADERS_MAX,
        typed_headers=typed.headers,
        typed_body=typed.body,
        found=[_sentence(finding) for finding in checked.findings] if checked else [],
        event=checked.event if checked else None,
        alert=alert,
    )


@router.page("", Door(Right.READ, "nothing"))
async def check_form(request: Page) -> Response:
    return _page(request)


@router.form("", Door(Right.READ, "nothing: it only compares"), again=_page)
async def check(request: Form) -> Response:
    typed, merchant = request.read(CheckForm), request.key.merchant
    checked = signature_check.explain(
        request.services, merchant, headers=typed.headers, body=typed.body
    )
    return _page(request, checked=checked)


def _sentence(finding: Finding) -> Sentence:
    text = _TEXT[finding.code].format(
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
