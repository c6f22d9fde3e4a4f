"""Passkeys with the library py_webauthn, which is loaded at the first use of a passkey.

Browsers are not trusted: an answer is first parsed strictly, and the passkey is refused after any
error of the library. Source: W3C Web Authentication, Level 3, sections 7.1 and 7.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from checkout.domain.ground.errors import InvalidJson
from checkout.domain.ground.strict_json import parse_object
from checkout.domain.merchant.people import Passkey
from checkout.ports import PasskeyRefused
from open_payments.urls import host_and_port, split

_ID_MAX: Final = 1023  # bytes (section 5.8.3)
_TIMEOUT: Final = 120_000  # milliseconds that the browser waits for the person to act
# No attestation (a statement about the device) is requested. So browsers send none, or one that the
# passkey itself has signed.
_ATTESTATIONS: Final = ("none", "packed")


@dataclass(frozen=True, slots=True)
class PresentedPasskey:
    """A passkey that a browser presents: the ids of the passkey and its member, unverified."""

    passkey: str
    member: str


class WebAuthnPasskeys:
    """Makes the options for WebAuthn, and verifies the JSON texts that browsers return.

    A passkey is accepted only if the passkey was used at the origin of `base_url` and if the device
    has verified the person. The host of `base_url` is WebAuthn's relying party.
    """

    def __init__(self, base_url: str) -> None:
        base = split(base_url)
        authority = base.authority or ""
        self._origin = f"{base.scheme}://{authority}"
        self._host = host_and_port(authority)[0]

    def creation_options(self, member_id: str, name: str, challenge: bytes) -> str:
        import webauthn
        from webauthn.helpers.structs import (
            AuthenticatorSelectionCriteria,
            ResidentKeyRequirement,
            UserVerificationRequirement,
        )

        options = webauthn.generate_registration_options(
            rp_id=self._host,
            rp_name="Checkout dashboard",
            user_id=member_id.encode(),
            user_name=name,
            user_display_name=name,
            challenge=challenge,
            timeout=_TIMEOUT,
            authenticator_selection=AuthenticatorSelectionCriteria(
                resident_key=ResidentKeyRequirement.REQUIRED,
                user_verification=UserVerificationRequirement.REQUIRED,
            ),
        )
        return webauthn.options_to_json(options)

    def request_options(self, challenge: bytes) -> str:
        import webauthn
        from webauthn.helpers.structs import UserVerificationRequirement

        options = webauthn.generate_authentication_options(
            rp_id=self._host,
            challenge=challenge,
            timeout=_TIMEOUT,
            user_verification=UserVerificationRequirement.REQUIRED,
        )
        return webauthn.options_to_json(options)

    def created(self, answer: str, challenge: bytes) -> Passkey:
        """Return the new passkey. Raises PasskeyRefused."""
        with _refusing():
            import webauthn
            from webauthn.helpers import (
                bytes_to_base64url,
                parse_attestation_object,
                parse_registration_credential_json,
            )

            credential = parse_registration_credential_json(_parsed(answer))
            _require_here(credential.response.client_data_json)
            if not 0 < len(credential.raw_id) <= _ID_MAX:
                raise PasskeyRefused("an id of no length that WebAuthn allows")
            attested = parse_attestation_object(credential.response.attestation_object)
            if attested.fmt not in _ATTESTATIONS:
                raise PasskeyRefused("an attestation that was not requested")
            done = webauthn.verify_registration_response(
                credential=credential,
                expected_challenge=challenge,
                expected_rp_id=self._host,
                expected_origin=self._origin,
                require_user_verification=True,
            )
            return Passkey(
                id=bytes_to_base64url(done.credential_id),
                public_key=done.credential_public_key,
                sign_count=done.sign_count,
            )

    def presented(self, answer: str) -> PresentedPasskey:
        """Return the passkey's id and its unverified member. Raises PasskeyRefused."""
        with _refusing():
            from webauthn.helpers import (
                bytes_to_base64url,
                parse_authentication_credential_json,
            )

            credential = parse_authentication_credential_json(_parsed(answer))
            member = (credential.response.user_handle or b"").decode("ascii")
            return PresentedPasskey(passkey=bytes_to_base64url(credential.raw_id), member=member)

    def used(self, answer: str, challenge: bytes, passkey: Passkey) -> Passkey:
        """Return the passkey with its new counter. Raises PasskeyRefused."""
        with _refusing():
            import webauthn
            from webauthn.helpers import parse_authentication_credential_json

            credential = parse_authentication_credential_json(_parsed(answer))
            _require_here(credential.response.client_data_json)
            done = webauthn.verify_authentication_response(
                credential=credential,
                expected_challenge=challenge,
                expected_rp_id=self._host,
                expected_origin=self._origin,
                credential_public_key=passkey.public_key,
                credential_current_sign_count=passkey.sign_count,
                require_user_verification=True,
            )
            return Passkey(
                id=passkey.id, public_key=passkey.public_key, sign_count=done.new_sign_count
            )


def _parsed(answer: str) -> dict[str, Any]:
    return parse_object(answer.encode())


def _require_here(client_data: bytes) -> None:
    """Raise PasskeyRefused if the passkey was used in a frame within another site's page."""
    if parse_object(client_data).get("crossOrigin", False) is not False:
        raise PasskeyRefused("a frame in a page of another site")


@contextmanager
def _refusing() -> Iterator[None]:
    """Raise PasskeyRefused for any error in a browser's answer."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from webauthn.helpers.exceptions import WebAuthnException

    try:
        yield
    except (WebAuthnException, InvalidJson, UnsupportedAlgorithm) as error:
        raise PasskeyRefused(type(error).__name__) from error
    # Errors that untrusted bytes cause in the library, and that the library does not handle.
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise PasskeyRefused(type(error).__name__) from error
