"""The errors of the product. A table in `web.py` maps each error to its HTTP status.

    CheckoutError
    ├── ParameterMissing ParameterUnknown ParameterInvalid ParameterInvalidInteger
    ├── UrlInvalid InvalidJson CursorInvalid
    ├── AmountTooSmall AmountTooLarge AmountNotRepresentable CurrencyMismatch CurrencyNotSupported
    ├── SessionUnexpectedState SessionBusy PaymentInProgress ResourceMissing RateLimited
    ├── RefundUnexpectedState
    ├── WebhookUnexpectedState KeyUnexpectedState MemberUnexpectedState Conflict
    ├── IdempotencyKeyInvalid IdempotencyKeyReused
    ├── ApiKeyMissing ApiKeyInvalid PasskeyInvalid PermissionMissing
    ├── MerchantSuspended MerchantUnproven
    ├── MethodNotAllowed BodyTooLarge ContentTypeInvalid
    ├── WalletUnreachable WalletInvalid WalletUnavailable AmountTooSmallForWallet
    ├── MerchantWalletError
    ├── CallbackInvalid
    ├── EmailInvalid ReceiptsUsedUp MailRefused
    └── Unavailable

`code` is stable and public (decisions.md "Errors"). A message is written for people and contains no
secret.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

# Finds an error of the key service (KMS) that is quoted in the message of another service's error,
# as in …kms.model.DisabledException.
_OF_KEY: Final = re.compile(r"\.([A-Z][A-Za-z]{2,40}Exception)\b")


class CheckoutError(Exception):
    """The base of all errors. `param` is the request field at fault, as the request spells it."""

    code: ClassVar[str]

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


class ParameterMissing(CheckoutError):
    code = "parameter_missing"


class ParameterUnknown(CheckoutError):
    code = "parameter_unknown"


class ParameterInvalid(CheckoutError):
    code = "parameter_invalid"


class ParameterInvalidInteger(CheckoutError):
    code = "parameter_invalid_integer"


class UrlInvalid(CheckoutError):
    code = "url_invalid"


class InvalidJson(CheckoutError):
    code = "invalid_json"


class AmountTooSmall(CheckoutError):
    code = "amount_too_small"


class AmountTooLarge(CheckoutError):
    code = "amount_too_large"


class AmountNotRepresentable(CheckoutError):
    code = "amount_not_representable"


class CurrencyMismatch(CheckoutError):
    code = "currency_mismatch"


class CurrencyNotSupported(CheckoutError):
    code = "currency_not_supported"


class CursorInvalid(CheckoutError):
    code = "cursor_invalid"


class SessionUnexpectedState(CheckoutError):
    """The session's status does not allow the request.

    The message names this status and the statuses that allow the request.
    """

    code = "session_unexpected_state"


class SessionBusy(CheckoutError):
    """Another request is working on this session; the same request may succeed in a moment."""

    code = "session_busy"


class RefundUnexpectedState(CheckoutError):
    """The refund's status, or the amount that can still be refunded, does not allow the request."""

    code = "refund_unexpected_state"


class WebhookUnexpectedState(CheckoutError):
    """The state of the webhook endpoint, or of an event, does not allow the request."""

    code = "webhook_unexpected_state"


class KeyUnexpectedState(CheckoutError):
    """The state of the API key, or of all the merchant's keys, does not allow the request."""

    code = "key_unexpected_state"


class MemberUnexpectedState(CheckoutError):
    """The state of a member, an invitation, or all members together does not allow the request."""

    code = "member_unexpected_state"


class Conflict(CheckoutError):
    """Other requests are changing the same keys, people, settings or event; try again shortly."""

    code = "conflict"


class PaymentInProgress(CheckoutError):
    """A payment may be under way, so the session cannot be ended."""

    code = "payment_in_progress"


class EmailInvalid(CheckoutError):
    code = "email_invalid"


class ReceiptsUsedUp(CheckoutError):
    """The receipt of this session has already been sent three times, the maximum."""

    code = "receipts_used_up"


class MailRefused(CheckoutError):
    """The mail service did not accept an e-mail.

    `maybe_sent` is true if the service did not answer, so that the e-mail may have been sent.
    """

    code = "mail_refused"

    def __init__(self, message: str, *, param: str | None = None, maybe_sent: bool = False) -> None:
        super().__init__(message, param=param)
        self.maybe_sent = maybe_sent


class ResourceMissing(CheckoutError):
    """The record does not exist, or belongs to another merchant; both cases get the same answer."""

    code = "resource_missing"


class RateLimited(CheckoutError):
    """Too many attempts; `retry_after` is in seconds."""

    code = "rate_limited"

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class IdempotencyKeyInvalid(CheckoutError):
    code = "idempotency_key_invalid"


class IdempotencyKeyReused(CheckoutError):
    code = "idempotency_key_reused"


class ApiKeyMissing(CheckoutError):
    code = "api_key_missing"


class ApiKeyInvalid(CheckoutError):
    """The key is unknown or revoked; both cases get the same answer."""

    code = "api_key_invalid"


class PasskeyInvalid(CheckoutError):
    """The passkey is unknown, its member was revoked, or its signature is wrong.

    All three cases get the same answer.
    """

    code = "passkey_invalid"


class PermissionMissing(CheckoutError):
    """The scopes of the API key, or the role of the person, do not allow the request."""

    code = "permission_missing"


class MerchantSuspended(CheckoutError):
    """The operator has suspended the merchant, or paused all sales."""

    code = "merchant_suspended"


class MerchantUnproven(CheckoutError):
    """The shop has signed up, but the owner of its wallet has not confirmed the wallet yet."""

    code = "merchant_unproven"


class MethodNotAllowed(CheckoutError):
    code = "method_not_allowed"


class BodyTooLarge(CheckoutError):
    code = "body_too_large"


class ContentTypeInvalid(CheckoutError):
    code = "content_type_invalid"


class WalletUnreachable(CheckoutError):
    """The customer's wallet provider did not give a usable answer.

    `refused` is true if the provider answered, but refused to give the wallet address document.
    """

    code = "wallet_unreachable"

    def __init__(self, message: str, *, param: str | None = None, refused: bool = False) -> None:
        super().__init__(message, param=param)
        self.refused = refused


class WalletInvalid(CheckoutError):
    """The text is not a wallet address, or there is no Open Payments wallet at that address.

    `mistake` is the mistake in the text (typed_address.py), or "" if the text is an address.
    `character` is the character at fault if the mistake is CHARACTER, otherwise "".
    """

    code = "wallet_invalid"

    def __init__(
        self, message: str, *, param: str | None = None, mistake: str = "", character: str = ""
    ) -> None:
        super().__init__(message, param=param)
        self.mistake = mistake
        self.character = character


class WalletUnavailable(CheckoutError):
    """The wallet exists but cannot make this payment: perhaps the wallets are not connected."""

    code = "wallet_unavailable"


class AmountTooSmallForWallet(CheckoutError):
    code = "amount_too_small_for_wallet"


class MerchantWalletError(CheckoutError):
    """The merchant's own wallet provider failed; the customer can do nothing about it."""

    code = "merchant_wallet_error"


class CallbackInvalid(CheckoutError):
    """The return from a wallet is incomplete or does not match the approval; nothing was done."""

    code = "callback_invalid"


class Unavailable(CheckoutError):
    """The database or the key service does not answer, or a secret cannot be decrypted.

    Nothing is lost, so the request can be repeated later.
    """

    code = "unavailable"


def cause(error: BaseException) -> str:
    """Return the root cause of a chain of exceptions, in a word or two for the log.

    The cause is AWS's error code, if there is one, otherwise the type of the innermost exception.
    If a table's encryption key cannot be used, the table's error message quotes the key service's
    error. The name of this error is then added; no other part of the message is used.
    """
    code = ""
    below: BaseException | None = error
    while below is not None:
        error, below = below, below.__cause__ or below.__context__
        answer = getattr(error, "response", None)
        said = answer.get("Error", {}) if isinstance(answer, dict) else {}
        code = said.get("Code", "") or code
        if of_key := _OF_KEY.search(said.get("Message", "")):
            code += f" ({of_key[1]})"
    return code or type(error).__name__
