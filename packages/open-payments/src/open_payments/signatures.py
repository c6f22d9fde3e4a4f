"""HTTP Message Signatures (RFC 9421) in the form of the reference client, bodies to sign, and keys.

The label, and the order of components and parameters, follow the reference client, because deployed
servers accept less than the RFC allows. `sign` refuses a URL or a key id that cannot be signed, and
never changes the body.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Self

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from open_payments.models import ClientIdentity, Jwk
from open_payments.transports import Request
from open_payments.urls import target_uri

# The reference server verifies Content-Digest over `JSON.stringify(JSON.parse(body))`, not over the
# bytes that it received. It would answer a body that this round trip changes with a 401 whose cause
# is hard to find.
_MAX_SAFE_INTEGER = 2**53 - 1
_INTEGER_LIKE = re.compile(r"0|[1-9][0-9]*")
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


def canonical(value: object) -> bytes:
    """Return the only encoding of `value` that survives the round trip, as UTF-8.

    `value` consists of dict, list, str, int, bool and None. Raises ValueError for floats, integers
    beyond 2^53-1, keys that look like integers (JavaScript moves them to the front), lone
    surrogates, and everything that JSON cannot represent.
    """
    _check(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _check(value: object) -> None:
    match value:
        case None | bool():
            return
        case str():
            _check_text(value)
        case int():
            if abs(value) > _MAX_SAFE_INTEGER:
                raise ValueError("an integer beyond 2^53-1 does not survive JavaScript")
        case list():
            for item in value:
                _check(item)
        case dict():
            for key, item in value.items():
                _check_key(key)
                _check(item)
        case _:
            raise ValueError(f"{type(value).__name__} has no canonical JSON")


def _check_key(key: object) -> None:
    if not isinstance(key, str):
        raise ValueError("an object key must be a string")
    if _INTEGER_LIKE.fullmatch(key):
        raise ValueError("an integer-like object key is reordered by JavaScript")
    _check_text(key)


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("text with a lone surrogate has no canonical JSON") from None


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key, and the id under which the client's `jwks.json` has the public half."""

    key_id: str
    private_key: bytes = field(repr=False)  # the raw 32 bytes

    @classmethod
    def generate(cls, key_id: str, *, random: Callable[[int], bytes] = secrets.token_bytes) -> Self:
        """Return a new key. `random(n)` returns n bytes that nobody can predict."""
        return cls(key_id, random(32))

    @classmethod
    def from_pem(cls, key_id: str, text: str) -> Self:
        """Return the key of a PEM text. Raises ValueError as `load_private_key` does."""
        return cls(key_id, load_private_key(text))

    def to_pem(self) -> str:
        """Return the secret key as PEM PKCS#8, without a passphrase."""
        key = Ed25519PrivateKey.from_private_bytes(self.private_key)
        return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    def jwk(self) -> Jwk:
        """Return the public half."""
        return Jwk(self.key_id, public_x(self.private_key))


def jwks(keys: Iterable[Jwk]) -> dict[str, list[dict[str, str]]]:
    """Return the JSON document that a client serves at `jwks.json` below its URL."""
    return {"keys": [key.members() for key in keys]}


def load_private_key(text: str) -> bytes:
    """Return the raw 32 bytes of an Ed25519 private key.

    `text` is PEM PKCS#8, or base64 of that PEM, which are the forms that wallets offer. Raises
    ValueError with a sentence for the operator, which never contains the text itself.
    """
    pem = text.strip()
    if "-----BEGIN" not in pem:
        try:
            pem = base64.b64decode("".join(pem.split()), validate=True).decode()
        except (binascii.Error, ValueError):
            pem = ""
    if "-----BEGIN" not in pem:
        raise ValueError(
            "This is not a PEM file. Use the private.key file that the wallet offered when the key "
            "was created; it begins with -----BEGIN PRIVATE KEY-----."
        )
    _require_one_key(pem)
    if "PUBLIC KEY-----" in pem:
        raise ValueError("This is the public key. Use the private key that belongs to it.")
    if "ENCRYPTED PRIVATE KEY-----" in pem:
        raise ValueError(
            "This private key is protected by a passphrase. Remove it first: "
            "openssl pkey -in private.key -out plain.key."
        )
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError(
            "This PEM file cannot be read as a private key in PKCS#8. Download it from the wallet "
            "again, or convert it: openssl pkey -in private.key -out pkcs8.key."
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(
            "This private key is not an Ed25519 key. Create a developer key at the wallet "
            "and use that."
        )
    raw = key.private_bytes_raw()
    _require_random(raw)
    return raw


def _require_one_key(pem: str) -> None:
    if pem.count("-----BEGIN") > 1:
        raise ValueError("There is more than one key in this file. Leave only the private key.")


def _require_random(raw: bytes) -> None:
    if len(set(raw)) == 1:  # a file that was overwritten, or an example
        raise ValueError("This private key is one byte repeated. Create a new key at the wallet.")


def public_x(private_key: bytes) -> str:
    """Return the public half of a raw private key as a JWK's `x` (RFC 8037).

    That is base64url without padding.
    """
    public = Ed25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw()
    return base64.urlsafe_b64encode(public).rstrip(b"=").decode()
