"""Keys that encrypt customers' details. AWS KMS encrypts ("wraps") these keys for storage.

KMS encrypts a merchant's key with an encryption context that consists of the merchant and the
purpose. The IAM policy of a function allows only this purpose, so the function cannot decrypt other
ciphertexts that were made with the same KMS key. CloudTrail logs each use. Source:
docs/decisions/0017.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from checkout import telemetry
from checkout.adapters.aws import AWS_ERRORS, code
from checkout.domain.ground.errors import Unavailable
from checkout.ports import SecretUnreadable

if TYPE_CHECKING:
    from checkout.adapters.vault import AesVault

PURPOSE: Final = "customer-details"  # the same as in the policies of template.yaml
KNOWN_MAX: Final = 1000  # merchants whose key a process keeps in memory
_REFUSAL: Final = "a merchant's key for customers' details does not open"
_WRONG: Final = ("IncorrectKeyException", "InvalidCiphertextException", "InvalidKeyUsageException")


logger = logging.getLogger(__name__)


class KmsDetailsKeys:
    """Wraps merchants' keys for customers' details, and decrypts details with these keys.

    Functions that cannot read ENCRYPTION_KEY use this class. A wrapped key can be unwrapped only
    for its merchant. `key_id` is the id of the KMS key. `client` creates the KMS client at the
    first use, because most processes decrypt no details. `under` returns the vault that encrypts
    with the given key (64 hexadecimal characters).
    """

    def __init__(
        self, client: Callable[[], Any], key_id: str, under: Callable[[str], AesVault]
    ) -> None:
        self._client = client
        self._key_id = key_id
        self._under = under
        self._known = lru_cache(KNOWN_MAX)(self._opened)

    def wrap(self, key: str, *, merchant: str) -> str:
        """Return the wrapped form of `key`, which is 64 hexadecimal characters.

        Raises `errors.Unavailable`.
        """
        asked = {"Plaintext": bytes.fromhex(key), "EncryptionContext": _context(merchant)}
        try:
            answer = self._client().encrypt(KeyId=self._key_id, **asked)
        except AWS_ERRORS as error:
            raise Unavailable("The key service is not answering.") from error
        return base64.b64encode(answer["CiphertextBlob"]).decode()

    def vault(self, wrapped: str, *, merchant: str) -> AesVault:
        """Return the vault that uses this key. Raises `errors.Unavailable`, SecretUnreadable."""
        return self._known(wrapped, merchant)[0]

    def key(self, wrapped: str, *, merchant: str) -> str:
        """Return the unwrapped key. Raises the same errors as `vault`."""
        return self._known(wrapped, merchant)[1]

    def _opened(self, wrapped: str, merchant: str) -> tuple[AesVault, str]:
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
        except ValueError:  # not base64
            raise _unreadable() from None
        key = answer["Plaintext"].hex()
        return self._under(key), key


def _unreadable() -> SecretUnreadable:
    telemetry.count("SecretsUnreadable")
    logger.error(_REFUSAL)
    return SecretUnreadable(_REFUSAL)


def _context(merchant: str) -> dict[str, str]:
    return {"merchant": merchant, "purpose": PURPOSE}
