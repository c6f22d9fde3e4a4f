"""HTTP Message Signatures (RFC 9421) in the form of the reference client.

The label, and the order of components and parameters, follow the reference client, because deployed
servers accept less than the RFC allows. `sign` refuses a URL or a key id that cannot be signed, and
never changes the body.
"""

from __future__ import annotations

import base64
import hashlib
import re

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from open_payments.models import ClientIdentity
from open_payments.transport import Request
from open_payments.urls import target_uri

_LABEL = "sig1"  # the only label that deployed servers look for
_KEY_ID = re.compile(
    r"[\x21\x23-\x3a\x3c-\x5b\x5d-\x7e]{1,256}"
)  # no space, quote, semicolon, backslash


def sign(request: Request, identity: ClientIdentity, *, created: int) -> Request:
    """Return `request` with its final URL and the headers that sign it.

    Adds Signature-Input, Signature and the headers that describe the body. `created` is in Unix
    seconds. The signature covers the method, the URL, Authorization if present, and, if there is a
    body, its digest, length and type. Raises ValueError for a URL or key id that cannot be signed.

    Source: RFC 9421; https://openpayments.dev/identity/http-signatures/
    """
    if not _KEY_ID.fullmatch(identity.key_id):
        raise ValueError(
            "the key id must be 1 to 256 printable characters without space, quote or ';'"
        )
    url = target_uri(request.url)
    headers = dict(request.headers)
    covered = {"@method": request.method, "@target-uri": url}
    for name, value in headers.items():
        if name.lower() == "authorization":
            covered["authorization"] = value
    if request.body is not None:
        headers |= {
            "Content-Digest": content_digest(request.body),
            "Content-Length": str(len(request.body)),
            "Content-Type": "application/json",
        }
        for name in ("Content-Digest", "Content-Length", "Content-Type"):
            covered[name.lower()] = headers[name]
    components = " ".join(f'"{name}"' for name in covered)
    parameters = f'({components});keyid="{identity.key_id}";created={created}'
    lines = [f'"{name}": {value}' for name, value in covered.items()]
    lines.append(f'"@signature-params": {parameters}')
    key = Ed25519PrivateKey.from_private_bytes(identity.private_key)
    signature = base64.b64encode(key.sign("\n".join(lines).encode())).decode()
    headers["Signature-Input"] = f"{_LABEL}={parameters}"
    headers["Signature"] = f"{_LABEL}=:{signature}:"
    return Request(request.method, url, headers, request.body)


def content_digest(body: bytes) -> str:
    """Return the Content-Digest field value of `body` with SHA-512 (RFC 9530)."""
    return f"sha-512=:{base64.b64encode(hashlib.sha512(body).digest()).decode()}:"
