"""Ed25519 keys: read, generated, and published as a key set.

Source: RFC 8037 (keys), RFC 7517 (key sets), RFC 8410 (PEM).
"""

from __future__ import annotations

import base64
import binascii
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


def public_jwk(identity: ClientIdentity) -> Jwk:
    """Return the public half of the key that signs for `identity`."""
    return Jwk(identity.key_id, public_x(identity.private_key))


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
