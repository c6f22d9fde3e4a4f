"""Verify HTTP message signatures as `@interledger/http-signature-utils` does.

That package differs from RFC 9421. It requires the label `sig1`. The signature must cover @method,
@target-uri, and `authorization` if that header is sent, but not necessarily the body. The digest is
computed over the re-serialized body. The signature's age is ignored.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from sandbox.wallets import javascript

_INPUT = re.compile(r'sig1=(\((?:"[^"\s]+"(?: "[^"\s]+")*)?\)(?:;[^,"]*(?:"[^"]*")?)*)')
_SIGNATURE = re.compile(r"sig1=:([A-Za-z0-9+/=]+):")
_KEY_ID = re.compile(r';keyid="([^"]*)"')
_DIGEST = re.compile(r"(sha-256|sha-512)=:([A-Za-z0-9+/=]+):")


def key_id(headers: Mapping[str, str]) -> str | None:
    """Return the key id in the signature's parameters; `headers` has lower-case names."""
    found = _KEY_ID.search(headers.get("signature-input", ""))
    return found[1] if found else None


def has_valid_headers(headers: Mapping[str, str], body: Any) -> bool:
    """Check that the signature covers the required parts and that a covered digest matches `body`.

    `body` is the parsed JSON, or None if the request has no body.
    """
    covered = _covered(headers.get("signature-input", ""))
    if covered is None or "signature" not in headers:
        return False
    if any(name != name.lower() for name in covered):
        return False
    if not {"@method", "@target-uri"} <= set(covered):
        return False
    if "authorization" in headers and "authorization" not in covered:
        return False
    return "content-digest" not in covered or _digest_fits(headers, body)


def verify(
    method: str, url: str, headers: Mapping[str, str], body: Any, jwk: Mapping[str, str]
) -> bool:
    """Check that `jwk`'s private key signed the request; `url` is the URL that the server sees."""
    if not has_valid_headers(headers, body):
        return False
    parameters = _INPUT.fullmatch(headers["signature-input"])
    signature = _SIGNATURE.fullmatch(headers["signature"])
    if parameters is None or signature is None:
        return False
    base = _signature_base(method, url, headers, parameters[1])
    if base is None:
        return False
    try:
        x = jwk["x"]
        key = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(x + "=" * (-len(x) % 4)))
        key.verify(base64.b64decode(signature[1], validate=True), base.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def _covered(signature_input: str) -> list[str] | None:
    """Return the covered components, split in the same simple way as in Rafiki's package."""
    _, label, rest = signature_input.partition("sig1=")
    if not label:
        return None
    return [re.sub(r'[()"]', "", item) for item in rest.split(";")[0].split(" ")]


def _digest_fits(headers: Mapping[str, str], body: Any) -> bool:
    if body is None or not {"content-digest", "content-length", "content-type"} <= headers.keys():
        return False
    found = _DIGEST.fullmatch(headers["content-digest"])
    if found is None:
        return False
    canonical = javascript.stringify(body).encode()
    expected = hashlib.new(found[1].replace("-", ""), canonical).digest()
    try:
        return base64.b64decode(found[2], validate=True) == expected
    except binascii.Error:
        return False


def _signature_base(
    method: str, url: str, headers: Mapping[str, str], parameters: str
) -> str | None:
    parts = urlsplit(url)
    derived = {
        "@method": method,
        "@target-uri": url,
        "@authority": parts.netloc,
        "@path": parts.path,
        "@query": f"?{parts.query}",
    }
    lines = []
    for name in re.findall(r'"([^"]+)"', parameters.split(")")[0]):
        value = derived.get(name, headers.get(name))
        if value is None:
            return None
        lines.append(f'"{name}": {value.strip()}')
    lines.append(f'"@signature-params": {parameters}')
    return "\n".join(lines)
