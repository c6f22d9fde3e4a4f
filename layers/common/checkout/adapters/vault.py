"""Seals secrets for storage: AES-256-GCM under one key that scrypt derives from ENCRYPTION_KEY.

The derivation happens once per process, at the first secret, and never per request. A ciphertext
opens only at the place (table, record, field) that it was sealed for. Refuses what was tampered
with or moved. No plaintext and no key is in an error. Source: decisions.md "Service",
ENCRYPTION_KEY.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import threading
from collections.abc import Callable
from typing import Any, Final, Protocol

from botocore.exceptions import BotoCoreError, ClientError
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from checkout.domain.errors import Unavailable
from checkout.ports import RandomBytes

_KEY_FORMAT: Final = re.compile(r"[0-9A-Fa-f]{64}")
# ENCRYPTION_KEY has 256 random bits of its own, so a fixed salt loses nothing; the cost is what the
# specification asks for: about 25 ms, once.
_SALT: Final = b"checkout-sessions/data-key/v1"
_N, _R, _P = 2**14, 8, 1
_NONCE_SIZE: Final = 12  # bytes, NIST SP 800-38D section 8.2
_VERSION: Final = "v1"
_REFUSAL: Final = "the sealed value does not open at this place"


def derive(secret: str) -> bytes:
    """The data key, 32 bytes, from 64 hexadecimal characters. Raises ValueError (RFC 7914)."""
    if not _KEY_FORMAT.fullmatch(secret):
        raise ValueError("ENCRYPTION_KEY must be 64 hexadecimal characters.")
    return hashlib.scrypt(bytes.fromhex(secret), salt=_SALT, n=_N, r=_R, p=_P, dklen=32)


class AesVault:
    """`ports.Vault`. `key_source` returns ENCRYPTION_KEY; asked at the first use, and again only
    after it failed. `derive` is a parameter so that a test can count.
    """

    def __init__(
        self,
        key_source: Callable[[], str],
        random_bytes: RandomBytes,
        *,
        derive: Callable[[str], bytes] = derive,
    ) -> None:
        self._key_source = key_source
        self._random_bytes = random_bytes
        self._derive = derive
        self._lock = threading.Lock()
        self._known: tuple[str, AESGCM] | None = None

    def seal(self, plain: str, *, place: tuple[str, str, str]) -> str:
        """`v1.<key id>.<nonce and ciphertext>`; the key id is there for a rotation to come.

        Raises `errors.Unavailable` when the key cannot be had.
        """
        key_id, cipher = self._key()
        nonce = self._random_bytes(_NONCE_SIZE)
        sealed = nonce + cipher.encrypt(nonce, plain.encode(), _associated(place))
        return f"{_VERSION}.{key_id}.{base64.urlsafe_b64encode(sealed).decode().rstrip('=')}"

    def open(self, sealed: str, *, place: tuple[str, str, str]) -> str:
        """As the port says; ValueError also for another ENCRYPTION_KEY's ciphertext."""
        key_id, cipher = self._key()
        version, _, rest = sealed.partition(".")
        sealed_under, _, encoded = rest.partition(".")
        if version != _VERSION:
            raise ValueError(_REFUSAL)
        if sealed_under != key_id:
            raise ValueError("the value was sealed under another ENCRYPTION_KEY")
        try:
            padded = encoded + "=" * (-len(encoded) % 4)
            raw = base64.b64decode(padded, altchars=b"-_", validate=True)
            plain = cipher.decrypt(raw[:_NONCE_SIZE], raw[_NONCE_SIZE:], _associated(place))
        except (binascii.Error, InvalidTag, ValueError):
            raise ValueError(_REFUSAL) from None
        return plain.decode()

    def _key(self) -> tuple[str, AESGCM]:
        with self._lock:
            if self._known is None:
                data_key = self._derive(self._key_source())
                key_id = hashlib.sha256(data_key).hexdigest()[:8]
                self._known = (key_id, AESGCM(data_key))
            return self._known


class SecretsClient(Protocol):
    """What of boto3's Secrets Manager client is used."""

    def get_secret_value(self, **request: Any) -> dict[str, Any]: ...


def key_from_secrets_manager(client: SecretsClient, secret_id: str) -> Callable[[], str]:
    """A key source that reads the secret when it is asked. It raises `errors.Unavailable`."""

    def read() -> str:
        try:
            secret: str = client.get_secret_value(SecretId=secret_id)["SecretString"]
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("The key service is not answering.") from error
        return secret

    return read


def _associated(place: tuple[str, str, str]) -> bytes:
    """A JSON list: no two places have the same bytes."""
    return json.dumps(place, separators=(",", ":")).encode()
