"""Wallet keys for tests, as a wallet's developer page makes them."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from open_payments.signatures import public_x

KEY_ID = "3a1c1d2e-0000-4000-8000-000000000001"


def new_key_pair(key_id: str) -> tuple[str, dict[str, str]]:
    """A private key as a wallet lets its owner download it, and the JWK that it registers."""
    key = Ed25519PrivateKey.generate()
    raw = key.private_bytes_raw()
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    jwk = {"kid": key_id, "alg": "EdDSA", "kty": "OKP", "crv": "Ed25519", "x": public_x(raw)}
    return pem, jwk
