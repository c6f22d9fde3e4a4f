"""A software authenticator: makes passkeys and signs with them as a browser's device would.

Its answers can be made wrong, so that each check of the product can be tried.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

_PRESENT, _VERIFIED, _BACKED_UP, _ATTESTED = 0x01, 0x04, 0x18, 0x40


def b64(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Authenticator:
    """One device with one passkey. `verifies`: it verifies its user."""

    origin: str
    host: str = ""
    credential: bytes = b"c" * 32
    count: int = 0
    counts: bool = True
    verifies: bool = True
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    user: bytes = b""

    def create(self, options: dict[str, Any], **changes: Any) -> str:
        """Answer the options of a registration."""
        self.user = unb64(options["user"]["id"])
        attested = {"fmt": "none", "attStmt": {}, "authData": self._data(_ATTESTED)}
        response = {
            "clientDataJSON": self._client("webauthn.create", options),
            "attestationObject": b64(cbor2.dumps(attested)),
        }
        return self._answer(response, changes)

    def get(self, options: dict[str, Any], **changes: Any) -> str:
        """Answer the options of a sign-in."""
        assert options.get("allowCredentials", []) == [], "no name is asked"
        data, client = self._data(), self._client("webauthn.get", options)
        signed = data + hashlib.sha256(unb64(client)).digest()
        response = {
            "clientDataJSON": client,
            "authenticatorData": b64(data),
            "signature": b64(self.key.sign(signed, ec.ECDSA(hashes.SHA256()))),
            "userHandle": b64(self.user),
        }
        return self._answer(response, changes)

    def _answer(self, response: dict[str, str], changes: dict[str, Any]) -> str:
        name = b64(self.credential)
        response |= {part: value for part, value in changes.items() if part in response}
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": response})

    def _client(self, kind: str, options: dict[str, Any]) -> str:
        said = {"type": kind, "challenge": options["challenge"], "origin": self.origin}
        return b64(json.dumps(said).encode())

    def _data(self, flags: int = 0) -> bytes:
        self.count += self.counts
        flags |= _PRESENT | _BACKED_UP | (_VERIFIED if self.verifies else 0)
        host = self.host or self.origin.partition("://")[2].partition(":")[0]
        data = hashlib.sha256(host.encode()).digest() + bytes([flags])
        data += (self.count if self.counts else 0).to_bytes(4, "big")
        if flags & _ATTESTED:
            size = len(self.credential).to_bytes(2, "big")
            data += bytes(16) + size + self.credential + self._public()
        return data

    def _public(self) -> bytes:
        """Return the public key as COSE has it (RFC 9053): EC2, ES256, P-256."""
        numbers = self.key.public_key().public_numbers()
        x, y = numbers.x.to_bytes(32, "big"), numbers.y.to_bytes(32, "big")
        return cbor2.dumps({1: 2, 3: -7, -1: 1, -2: x, -3: y})
