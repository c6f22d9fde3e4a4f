"""KMS with one key, for the two calls that the product makes."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from botocore.exceptions import ClientError
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.support import aws_calls

KEY_ID: Final = "arn:aws:kms:eu-central-1:000000000000:key/stack"
_NONCE: Final = 12  # bytes


class HandKms:
    """A ciphertext opens only with the encryption context under which it was made.

    While `error` is set, every call fails with this code. `calls` are their names.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.error: str | None = None
        self._key = AESGCM(b"k" * 32)

    def encrypt(self, **asked: Any) -> dict[str, Any]:
        self._called("encrypt", asked)
        nonce = hashlib.sha256(asked["Plaintext"]).digest()[:_NONCE]
        sealed = self._key.encrypt(nonce, asked["Plaintext"], _context(asked))
        return {"CiphertextBlob": nonce + sealed}

    def decrypt(self, **asked: Any) -> dict[str, Any]:
        self._called("decrypt", asked)
        blob = asked["CiphertextBlob"]
        try:
            opened = self._key.decrypt(blob[:_NONCE], blob[_NONCE:], _context(asked))
        except (InvalidTag, ValueError):
            raise _error("InvalidCiphertextException") from None
        return {"Plaintext": opened}

    def _called(self, name: str, asked: dict[str, Any]) -> None:
        assert asked["KeyId"] == KEY_ID
        aws_calls.note("kms", name, asked)
        self.calls.append(name)
        if self.error is not None:
            raise _error(self.error)


def _error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}}, "Decrypt")


def _context(asked: dict[str, Any]) -> bytes:
    return json.dumps(asked["EncryptionContext"], sort_keys=True).encode()
