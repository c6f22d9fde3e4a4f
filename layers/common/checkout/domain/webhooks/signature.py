"""Webhook signature headers in two schemes, from the same secrets over the same bytes.

There are two schemes so that merchants can verify with libraries that they already have.
`Checkout-Signature: t=<Unix seconds>,v1=<hex>[,v1=<hex>]` is HMAC-SHA256 of `t.body`, keyed with
the whole secret string (spec.md "Events"; as Stripe's SDKs verify it). `webhook-signature:
v1,<base64>[ v1,<base64>]` is HMAC-SHA256 of `id.timestamp.body`, keyed with the bytes after
`whsec_` (Standard Webhooks). While a secret is being rolled (replaced), each header has one
signature for the old secret and one for the new secret.

`check` diagnoses a signature that a merchant's program refused: it compares the pasted headers and
body with what this service signs. It never shows a computed signature, only whether the given one
differs in a few characters, and where.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from checkout.domain.ground.grammar import id_pattern

_PREFIX: Final = "whsec_"
_BYTES: Final = 32


def new_webhook_secret(random_bytes: Callable[[int], bytes]) -> str:
    return _PREFIX + base64.b64encode(random_bytes(_BYTES)).decode()


def signed_headers(
    event_id: str, event_type: str, body: str, *, secrets: Sequence[str], now: datetime
) -> dict[str, str]:
    """Return all headers of an attempt at `now`. `secrets` are in plain text, newest first."""
    at = str(int(now.timestamp()))
    by_stripe = [hex_signature(at, body, secret) for secret in secrets]
    by_standard = [standard_signature(event_id, at, body, secret) for secret in secrets]
    return {
        "Content-Type": "application/json",
        "Checkout-Signature": ",".join([f"t={at}", *(f"v1={each}" for each in by_stripe)]),
        "Checkout-Event-Id": event_id,
        "Checkout-Event-Type": event_type,
        "webhook-id": event_id,
        "webhook-timestamp": at,
        "webhook-signature": " ".join(f"v1,{each}" for each in by_standard),
    }


def stripe_header(body: str, *, secrets: Sequence[str], now: datetime) -> dict[str, str]:
    """Return `Stripe-Signature` of an attempt at `now`; `secrets` as in `signed_headers`.

    The `v1` of the newest secret is the last one. Stripe's libraries try every `v1`, but some
    handlers keep only the last one, and during a roll the merchant changes to the new secret.
    """
    at = str(int(now.timestamp()))
    signatures = [f"v1={hex_signature(at, body, secret)}" for secret in reversed(secrets)]
    return {"Stripe-Signature": ",".join([f"t={at}", *signatures])}


def hex_signature(at: str, body: str, secret: str) -> str:
    """Return a `v1` of Checkout-Signature; `at` is the time as it is written in the header."""
    return _hmac(secret.encode(), f"{at}.{body}").hex()


def standard_signature(event_id: str, at: str, body: str, secret: str) -> str:
    """Return a `v1` of webhook-signature."""
    return base64.b64encode(_hmac(_key(secret), f"{event_id}.{at}.{body}")).decode()


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), hashlib.sha256)


TOLERANCE: Final = timedelta(minutes=5)  # the age that verifying libraries accept
NEAR: Final = 600  # `check` tries all times that are this many seconds from a timestamp
_HOURS: Final = 14  # the largest distance of a time zone from UTC
_FEW: Final = 4  # a signature that differs in up to this many characters is called damaged
_ID: Final = re.compile(rf'"id"\s*:\s*"({id_pattern("cs", "evt")})"')
_TIME: Final = re.compile(r"[0-9]{1,13}")
# A header as a server receives it, or as a program prints it, in quotes and with a comma.
_LINE: Final = re.compile(
    r"^[ \t{]*[\"']?([A-Za-z-]+)[\"']?[ \t]*:[ \t]*[\"']?(.*?)[\"']?[ \t\r},]*$", re.MULTILINE
)
_COMBINED: Final = re.compile(r"\s*t=([^,\s]*)((?:\s*,\s*v[0-9]+=[^,\s]*)*)\s*")


@dataclass(frozen=True, slots=True)
class PastedHeaders:
    """The headers that a merchant has pasted.

    In the scheme of Checkout-Signature, `event_id` is None unless Checkout-Event-Id was also
    pasted.
    """

    standard: bool
    time: str
    signatures: tuple[str, ...]
    event_id: str | None


@dataclass(frozen=True, slots=True)
class Secret:
    """`name` is shown on the page; `plain` is never shown."""

    name: str
    plain: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`code` selects the sentence (dashboard/webhooks.py); the other fields are its values."""

    code: str
    good: bool = False
    secret: str | None = None
    seconds: int | None = None
    position: int | None = None
    ours: str | None = None
    yours: str | None = None
    change: str | None = None


def presented(pasted: str) -> PastedHeaders | None:
    """Parse header lines, or the value of Checkout-Signature alone; None for other texts."""
    lines = {name.lower(): value for name, value in _LINE.findall(pasted)}
    value = lines.get("checkout-signature", pasted if not lines else "")
    event_id = lines.get("webhook-id") or lines.get("checkout-event-id")
    found = _COMBINED.fullmatch(value)
    if found is not None:
        pairs = [part.strip().partition("=") for part in found[2].split(",") if part.strip()]
        signatures = tuple(signature for name, _, signature in pairs if name == "v1")
        return PastedHeaders(False, found[1], signatures, event_id)
    if "webhook-signature" in lines:
        pairs = [part.partition(",") for part in lines["webhook-signature"].split()]
        signatures = tuple(signature for name, _, signature in pairs if name == "v1")
        time = lines.get("webhook-timestamp", "")
        return PastedHeaders(True, time, signatures, lines.get("webhook-id"))
    return None


def id_in(body: str) -> str | None:
    """Return the id in a body, even if the body is no longer valid JSON.

    It is the id of a session, or of a test event.
    """
    found = _ID.search(body)
    return found[1] if found else None


def check(
    given: PastedHeaders, body: str, *, secrets: Sequence[Secret], sent: str | None, now: datetime
) -> tuple[Finding, ...]:
    """Return the problems, the most important first, or only that the signature is correct.

    `sent` is the stored body of this event, if it is known.
    """
    if not given.signatures:
        return (Finding(code="no_signature"),)
    if not _TIME.fullmatch(given.time):
        return (Finding(code="no_time"),)
    if given.standard and not given.event_id:
        return (Finding(code="no_event_id"),)
    bodies = {"": body} | ({"sent": sent} if sent is not None else {})
    bodies |= {name: text for name, text in _variants(body) if text not in bodies.values()}
    for name, text in bodies.items():
        if secret := _signer(given, int(given.time), text, secrets):
            return (*_differences(name, body, sent, secret), *_age(given, now, secret))
    signed = sent if sent is not None else body
    for time in _other_times(int(given.time)):
        if secret := _signer(given, time, signed, secrets):
            off = Finding(code="time_changed", secret=secret, seconds=int(given.time) - time)
            return (off, *(_differences("sent", body, sent, secret) if signed != body else ()))
    return _unsigned(given, body, secrets=secrets, sent=sent)


def _unsigned(
    given: PastedHeaders, body: str, *, secrets: Sequence[Secret], sent: str | None
) -> tuple[Finding, ...]:
    """Report that no secret made this signature for this body, at the given time or near it."""
    for text in (body, *([sent] if sent is not None else [])):
        for secret in secrets:
            expected = _sign(given, int(given.time), text, secret)
            for signature in given.signatures:
                if place := _damaged(expected, signature):
                    return (Finding(code="signature_changed", secret=secret.name, position=place),)
    if sent is None:
        return (Finding(code="unknown"),)
    different = _difference(body, sent)
    return (Finding(code="secret"), *([different] if different else []))


def _differences(name: str, body: str, sent: str | None, secret: str) -> tuple[Finding, ...]:
    """Compare bodies. `name` identifies the signed body: the given one, `sent`, or a variant."""
    if name == "":
        return (Finding(code="right", good=True, secret=secret),)
    exactly = _difference(body, sent) if sent is not None else None
    if name == "sent":
        change = next((kind for kind, text in _variants(body) if text == sent), None)
        assert exactly is not None
        return (
            Finding(
                code="body",
                secret=secret,
                change=change,
                position=exactly.position,
                ours=exactly.ours,
                yours=exactly.yours,
            ),
        )
    return (Finding(code="body", secret=secret, change=name),)


def _age(given: PastedHeaders, now: datetime, secret: str) -> tuple[Finding, ...]:
    age = int(now.timestamp()) - int(given.time)
    if abs(age) <= TOLERANCE.total_seconds():
        return ()
    return (Finding(code="old" if age > 0 else "future", secret=secret, seconds=abs(age)),)


def _difference(body: str, sent: str) -> Finding | None:
    """Find where the bytes of `body` differ from those of `sent`; positions count from 1."""
    theirs, ours = body.encode("utf-8", "surrogatepass"), sent.encode()
    if theirs == ours:
        return None
    shorter = min(len(theirs), len(ours))
    place = next((i for i in range(shorter) if theirs[i] != ours[i]), shorter)
    return Finding(
        code="body_differs",
        position=place + 1,
        ours=_byte(ours, place),
        yours=_byte(theirs, place),
    )


def _byte(data: bytes, place: int) -> str:
    if place >= len(data):
        return "the end"
    value = data[place]
    return f"“{chr(value)}” (byte {value})" if 0x20 < value < 0x7F else f"byte {value}"


def _variants(body: str) -> Iterator[tuple[str, str]]:
    """Return the bodies that programs may have changed into this one."""
    yield "bom", body.removeprefix("\ufeff")
    yield "spaces", body.strip().lstrip("\ufeff").strip()
    try:
        parsed = json.loads(body.lstrip("\ufeff"))
        compact = json.dumps(parsed, separators=(",", ":"), ensure_ascii=False)
        compact.encode()
        yield "written_anew", compact
    except (ValueError, RecursionError):
        return


def _other_times(time: int) -> Iterator[int]:
    """Return times nearby, times in other time zones, and milliseconds read as seconds."""
    for distance in range(1, NEAR + 1):
        yield from (time - distance, time + distance)
    quarter = 900
    for zone in range(1, _HOURS * 4 + 1):
        yield from (time - zone * quarter, time + zone * quarter)
    if time >= 10**11:
        yield time // 1000


def _signer(given: PastedHeaders, time: int, body: str, secrets: Iterable[Secret]) -> str | None:
    """Return the name of the secret that made one of the signatures, compared in constant time."""
    for secret in secrets:
        expected = _sign(given, time, body, secret)
        if any(hmac.compare_digest(expected, _bytes(each)) for each in given.signatures):
            return secret.name
    return None


def _sign(given: PastedHeaders, time: int, body: str, secret: Secret) -> bytes:
    if given.standard:
        assert given.event_id is not None
        return standard_signature(given.event_id, str(time), body, secret.plain).encode()
    return hex_signature(str(time), body, secret.plain).encode()


def _bytes(signature: str) -> bytes:
    return signature.encode("utf-8", "surrogatepass")


def _damaged(expected: bytes, signature: str) -> int | None:
    """Return the first place (from 1) in which the two differ; None unless they differ in a few."""
    given = _bytes(signature)
    if len(given) != len(expected):
        return None
    places = [i for i in range(len(expected)) if given[i] != expected[i]]
    return places[0] + 1 if 0 < len(places) <= _FEW else None
