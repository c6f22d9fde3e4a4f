"""Seals secrets for storage: AES-256-GCM under keys that scrypt derives from ENCRYPTION_KEY.

Each process derives a key only once, when the first secret needs it, and never per request. During
a rotation, ENCRYPTION_KEY can contain two keys: the first one encrypts, and both can decrypt
(docs/operating.md). A ciphertext can be opened only in the place (table, record, field) for which
it was sealed, so a changed or moved ciphertext is refused. Errors contain no plaintext and no key.
Source: decisions.md "Service", ENCRYPTION_KEY.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import logging
import re
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from botocore.exceptions import BotoCoreError, ClientError
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from checkout import telemetry
from checkout.adapters.runtime import SystemClock
from checkout.domain.ground.errors import Unavailable
from checkout.domain.ground.ids import RandomBytes, session_ref
from checkout.ports import Clock, SecretUnreadable

# Running processes use a new key after this time, or when they read the first ciphertext made with
# this key.
REFRESH: Final = timedelta(minutes=5)
# If ciphertexts have an unknown key, a process reads ENCRYPTION_KEY again at most this often.
UNKNOWN_PAUSE: Final = timedelta(seconds=10)

_KEY_FORMAT: Final = re.compile(r"[0-9A-Fa-f]{64}")
_KEY_ID_FORMAT: Final = re.compile(r"[0-9a-f]{8}")
_KEYS_MAX: Final = 2
# ENCRYPTION_KEY has 256 random bits, so a fixed salt is safe. The specification requires scrypt,
# which takes about 25 ms, once.
_SALT: Final = b"checkout-sessions/data-key/v1"
_N, _R, _P = 2**14, 8, 1
_NONCE_SIZE: Final = 12  # bytes, NIST SP 800-38D section 8.2
_VERSION: Final = "v1"
_REFUSAL: Final = "the sealed value does not open at this place"
_BAD_KEY: Final = (
    "ENCRYPTION_KEY must be 64 hexadecimal characters, or two such keys with a comma between them, "
    "the new one first."
)

logger = logging.getLogger(__name__)


def derive(secret: str) -> bytes:
    """Return the data key, 32 bytes, from 64 hexadecimal characters (RFC 7914)."""
    return hashlib.scrypt(bytes.fromhex(secret), salt=_SALT, n=_N, r=_R, p=_P, dklen=32)


class AesVault:
    """Encrypts secrets for storage.

    `place` is the table, record and field, and a ciphertext opens only in this place. `key_source`
    returns ENCRYPTION_KEY. The vault calls it at the first use, then after each `REFRESH` (five
    minutes) while the vault is in use, and for a ciphertext with an unknown key. If `key_source`
    fails, a known key stays in use. `derive` is a parameter so that a test can count its calls.
    """

    def __init__(
        self,
        key_source: Callable[[], str],
        random_bytes: RandomBytes,
        *,
        clock: Clock | None = None,
        derive: Callable[[str], bytes] = derive,
    ) -> None:
        self._key_source = key_source
        self._random_bytes = random_bytes
        self._clock = clock or SystemClock()
        self._derive = derive
        self._lock = threading.Lock()
        self._keys: tuple[str, ...] = ()
        self._ciphers: dict[str, tuple[str, AESGCM]] = {}
        self._asked_at: datetime | None = None
        self._missed_at: datetime | None = None

    def seal(self, plain: str, *, place: tuple[str, str, str]) -> str:
        """Return `v1.<key id>.<nonce and ciphertext>`. Raise `errors.Unavailable` without a key."""
        key_id, cipher = self._newest()
        nonce = self._random_bytes(_NONCE_SIZE)
        sealed = nonce + cipher.encrypt(nonce, plain.encode(), _associated(place))
        return f"{_VERSION}.{key_id}.{base64.urlsafe_b64encode(sealed).decode().rstrip('=')}"

    def open(self, sealed: str, *, place: tuple[str, str, str]) -> str:
        """Decrypt `sealed`.

        Raises `errors.Unavailable` if the key cannot be read, and SecretUnreadable if the
        ciphertext was made for another place or with an unknown key. SecretUnreadable is counted
        and logged, and triggers an alarm.
        """
        try:
            return self._open(sealed, place)
        except SecretUnreadable as error:
            telemetry.count("SecretsUnreadable")
            table, record, name = place
            said = (
                {"session": session_ref(record)} if record.startswith("cs_") else {"record": record}
            )
            logger.error(str(error), extra={"table": table, "field": name, **said})
            raise

    def _open(self, sealed: str, place: tuple[str, str, str]) -> str:
        version, _, rest = sealed.partition(".")
        key_id, _, encoded = rest.partition(".")
        if version != _VERSION:
            raise SecretUnreadable(_REFUSAL)
        cipher = self._cipher(key_id)
        if cipher is None:
            raise SecretUnreadable("the value was sealed under another ENCRYPTION_KEY")
        try:
            padded = encoded + "=" * (-len(encoded) % 4)
            raw = base64.b64decode(padded, altchars=b"-_", validate=True)
            plain = cipher.decrypt(raw[:_NONCE_SIZE], raw[_NONCE_SIZE:], _associated(place))
        except (binascii.Error, InvalidTag, ValueError):
            raise SecretUnreadable(_REFUSAL) from None
        return plain.decode()

    def inner(self, key: str) -> AesVault:
        """Return a vault that uses `key` (64 random hexadecimal characters) without deriving it."""
        return AesVault(lambda: key, self._random_bytes, clock=self._clock, derive=bytes.fromhex)

    def is_current(self, sealed: str) -> bool:
        """Return whether `sealed` was made with the key that `seal` uses now.

        Raises `errors.Unavailable`.
        """
        return sealed.startswith(f"{_VERSION}.{self._newest()[0]}.")

    def _newest(self) -> tuple[str, AESGCM]:
        with self._lock:
            self._refreshed()
            return self._derived(self._keys[0])

    def _cipher(self, key_id: str) -> AESGCM | None:
        if not _KEY_ID_FORMAT.fullmatch(key_id):
            return None
        with self._lock:
            just_read = self._refreshed()
            found = self._find(key_id)
            now = self._clock.now()
            if found is None and not just_read and _passed(UNKNOWN_PAUSE, self._missed_at, now):
                self._missed_at = now
                self._read(now)
                found = self._find(key_id)
            return found

    def _find(self, key_id: str) -> AESGCM | None:
        """Return the key with this id, or None. Derive older keys only if the newest is not it."""
        for key in self._keys:
            known, cipher = self._derived(key)
            if known == key_id:
                return cipher
        return None

    def _derived(self, key: str) -> tuple[str, AESGCM]:
        if key not in self._ciphers:
            data_key = self._derive(key)
            key_id = hashlib.sha256(data_key).hexdigest()[:8]
            self._ciphers[key] = (key_id, AESGCM(data_key))
        return self._ciphers[key]

    def _refreshed(self) -> bool:
        """Read the keys again if it is time to do so. Return whether they were read just now."""
        now = self._clock.now()
        if not self._keys:
            self._read(now)
            return True
        if not _passed(REFRESH, self._asked_at, now):
            return False
        try:
            self._read(now)
        except Unavailable:
            logger.warning("ENCRYPTION_KEY could not be read again; the known key stays in use")
        return True

    def _read(self, now: datetime) -> None:
        self._asked_at = now
        try:
            self._keys = _parsed(self._key_source())
        except Unavailable:
            telemetry.count("KeyUnreadable")
            raise
        self._ciphers = {key: self._ciphers[key] for key in self._keys if key in self._ciphers}


class SecretsClient(Protocol):
    """The part of boto3's Secrets Manager client that this module uses."""

    def get_secret_value(self, **request: Any) -> dict[str, Any]: ...


def key_from_secrets_manager(client: SecretsClient, secret_id: str) -> Callable[[], str]:
    """Return a key source that reads the secret at each call. It raises `errors.Unavailable`."""

    def read() -> str:
        try:
            secret: str = client.get_secret_value(SecretId=secret_id)["SecretString"]
        except (ClientError, BotoCoreError) as error:
            raise Unavailable("The key service is not answering.") from error
        return secret

    return read


def _parsed(text: str) -> tuple[str, ...]:
    keys = tuple(text.lower().split(","))
    if len(keys) > _KEYS_MAX or not all(_KEY_FORMAT.fullmatch(key) for key in keys):
        raise Unavailable(_BAD_KEY)
    return keys


def _passed(pause: timedelta, since: datetime | None, now: datetime) -> bool:
    return since is None or now - since >= pause


def _associated(place: tuple[str, str, str]) -> bytes:
    """Return a place as a JSON list, so that two different places never have the same bytes."""
    return json.dumps(place, separators=(",", ":")).encode()
