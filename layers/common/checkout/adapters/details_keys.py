"""`ports.DetailsKeys` on AWS KMS.

A merchant's key is encrypted by KMS with an encryption context that names the merchant and the
purpose. The policy of a function allows this purpose only, so the function can open no other
ciphertext of the KMS key; CloudTrail shows each use. Source: docs/decisions/0017.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from botocore.exceptions import ClientError

from checkout import telemetry
from checkout.adapters.aws import AWS_ERRORS, code
from checkout.domain.errors import Unavailable
from checkout.ports.runtime import SecretUnreadable, Vault

PURPOSE: Final = "customer-details"  # as the policies in template.yaml have it
KNOWN_MAX: Final = 1000  # merchants whose key a process remembers
_REFUSAL: Final = "a merchant's key for customers' details does not open"
_WRONG: Final = ("IncorrectKeyException", "InvalidCiphertextException", "InvalidKeyUsageException")


logger = logging.getLogger(__name__)


class KmsDetailsKeys:
    """Uses the KMS key `key_id`.

    `client` is called at the first use, because most processes open no details; `under` makes the
    vault of a key of 64 hexadecimal characters.
    """

    def __init__(
        self, client: Callable[[], Any], key_id: str, under: Callable[[str], Vault]
    ) -> None:
        self._client = client
        self._key_id = key_id
        self._under = under
        self._known = lru_cache(KNOWN_MAX)(self._opened)

    def wrap(self, key: str, *, merchant: str) -> str:
        asked = {"Plaintext": bytes.fromhex(key), "EncryptionContext": _context(merchant)}
        try:
            answer = self._client().encrypt(KeyId=self._key_id, **asked)
        except AWS_ERRORS as error:
            raise Unavailable("The key service is not answering.") from error
        return base64.b64encode(answer["CiphertextBlob"]).decode()

    def vault(self, wrapped: str, *, merchant: str) -> Vault:
        return self._known(wrapped, merchant)[0]

    def key(self, wrapped: str, *, merchant: str) -> str:
        return self._known(wrapped, merchant)[1]

    def _opened(self, wrapped: str, merchant: str) -> tuple[Vault, str]:
        try:
            answer = self._client().decrypt(
                KeyId=self._key_id,
                CiphertextBlob=base64.b64decode(wrapped, validate=True),
                EncryptionContext=_context(merchant),
            )
        except AWS_ERRORS as error:
            if isinstance(error, ClientError) and code(error) in _WRONG:
                raise _unreadable() from None
            raise Unavailable("The key service is not answering.") from error
        except ValueError:  # no base64
            raise _unreadable() from None
        key = answer["Plaintext"].hex()
        return self._under(key), key


def _unreadable() -> SecretUnreadable:
    telemetry.count("SecretsUnreadable")
    logger.error(_REFUSAL)
    return SecretUnreadable(_REFUSAL)


def _context(merchant: str) -> dict[str, str]:
    return {"merchant": merchant, "purpose": PURPOSE}
