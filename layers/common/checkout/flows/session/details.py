"""Store, seal and open the details that a customer gives on the page of a session.

Details are sealed, that is, encrypted. They are kept for years, so sealing all of them again after
each rotation of ENCRYPTION_KEY would be too much work. Instead, each merchant has a key for the
details of its customers. Only this key is sealed with ENCRYPTION_KEY, and sealed again after a
rotation (flows/merchant/rotation.py). The API cannot read ENCRYPTION_KEY. It uses another copy of
the merchant's key, which AWS KMS encrypts ("wraps") with the key DETAILS_KMS_KEY (decision 17).

Details are stored in one conditional write. Corrections are accepted only until the customer gives
a wallet. From then on, the search has rows for the e-mail address, the name and the postal code,
which a correction would make wrong. No wallet is called here.
"""

from __future__ import annotations

import hmac
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypedDict

from checkout.domain.ground.errors import (
    CheckoutError,
    PaymentInProgress,
    SessionBusy,
    SessionUnexpectedState,
    Unavailable,
)
from checkout.domain.ground.ids import RandomBytes
from checkout.domain.merchant.record import Merchant, details_key_place
from checkout.domain.payment.events import Event
from checkout.domain.payment.machine import IllegalTransition
from checkout.domain.reports.search_terms import same_text, spoken, spoken_text
from checkout.domain.session.customer_details import NONE_GIVEN, CustomerDetails, from_json
from checkout.domain.session.record import Session, Status
from checkout.domain.session.withdrawal import Withdrawal
from checkout.flows import merchants
from checkout.flows.payment import writes
from checkout.flows.retry_on_conflict import TRIES
from checkout.flows.session.lookup import apply_clock
from checkout.ports import SecretUnreadable, StaleRecord
from checkout.services import DashboardServices, PayServices, Services

if TYPE_CHECKING:
    from checkout.adapters.details_keys import KmsDetailsKeys
    from checkout.adapters.vault import AesVault

DETAILS: Final = "customer_details"
FURTHER: Final = "customer_further"
WITHDRAWAL: Final = "withdrawal"
_KEY_SIZE: Final = 32  # bytes
_MARK_SIZE: Final = 32  # hexadecimal characters
_SPOKEN: Final = "customer_spoken"  # what a customer can say on the telephone: name, postal code
_NOTHING: Final = NONE_GIVEN.further_json()


class KeyFields(TypedDict):
    """The merchant's fields with its key for details: sealed, and wrapped by KMS for the API."""

    details_key: str
    details_key_kms: str | None


def new_keys(
    vault: AesVault, keys: KmsDetailsKeys | None, random_bytes: RandomBytes, merchant_id: str
) -> KeyFields:
    """Return the fields of a new key for details, for this merchant. Raises Unavailable."""
    key = random_bytes(_KEY_SIZE).hex()
    return {
        "details_key": vault.seal(key, place=details_key_place(merchant_id)),
        "details_key_kms": keys.wrap(key, merchant=merchant_id) if keys is not None else None,
    }


def wrap_key(services: DashboardServices, merchant_id: str) -> None:
    """Store the wrapped key for details if DETAILS_KMS_KEY was set after the merchant's setup.

    Raises Conflict, Unavailable.
    """

    def with_key(current: Merchant) -> Merchant:
        if current.details_key_kms is None and services.details_keys is not None:
            return current.changed(
                details_key_kms=wrapped_again(services.vault, services.details_keys, current)
            )
        return current

    merchants.change(services.merchants, merchant_id, with_key)


def wrapped_again(vault: AesVault, keys: KmsDetailsKeys | None, merchant: Merchant) -> str | None:
    """Return the merchant's wrapped key for details.

    The stored wrapped key is returned if KMS can unwrap it. Otherwise, the key is wrapped now.
    Without `keys`, the stored wrapped key is returned unchecked, or None if there is none.

    Raises SecretUnreadable if the sealed key cannot be decrypted, and Unavailable.
    """
    before = merchant.details_key_kms
    if keys is None:
        return before
    if before is not None:
        with suppress(SecretUnreadable):  # wrapped by another KMS key, for example before a move
            keys.vault(before, merchant=merchant.id)
            return before
    return keys.wrap(_key(vault, merchant), merchant=merchant.id)


@dataclass(frozen=True, slots=True)
class Sealed:
    """A customer's details for one session, as two sealed texts; None if nothing was given.

    `mark` is the lookup text that finds the session by the e-mail address. `marks` are the lookup
    texts of the names and postal codes.
    """

    details: str | None = None
    further: str | None = None
    mark: str | None = None
    marks: tuple[str, ...] | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """Return the fields of the session that store the details."""
        return {f"customer_{name}": value for name, value in asdict(self).items()}


def seal(vault: AesVault, merchant: Merchant, session_id: str, details: CustomerDetails) -> Sealed:
    """Return the details sealed for this session.

    Raises SecretUnreadable, and Unavailable while the merchant's key cannot be read.
    """
    if details == NONE_GIVEN:
        return Sealed()
    key = _key(vault, merchant)
    return _sealed(vault.inner(key), key, session_id, details)


def seal_by_api(
    services: Services, merchant: Merchant, session_id: str, details: CustomerDetails
) -> Sealed:
    """Return the details sealed for this session. This function is for the API, which has no vault.

    Raises Unavailable.
    """
    keys, wrapped = services.details_keys, merchant.details_key_kms
    if keys is None or wrapped is None:
        raise Unavailable("The shop's settings are being read again; try again in a minute.")
    try:
        inner = keys.vault(wrapped, merchant=merchant.id)
        key = keys.key(wrapped, merchant=merchant.id)
    except SecretUnreadable:  # the operator gets an alarm
        raise Unavailable("The shop's key for customers' details cannot be decrypted.") from None
    return _sealed(inner, key, session_id, details)


def _sealed(inner: AesVault, key: str, session_id: str, details: CustomerDetails) -> Sealed:
    further = details.further_json()
    return Sealed(
        inner.seal(details.to_json(), place=_place(session_id, DETAILS)),
        inner.seal(further, place=_place(session_id, FURTHER)) if further != _NOTHING else None,
        _mark(key, "customer_email", same_text(details.email)) if details.email else None,
        tuple(_mark(key, _SPOKEN, each) for each in spoken(details)) or None,
    )


def seal_said(vault: AesVault, merchant: Merchant, session_id: str, said: CustomerDetails) -> str:
    """Return the name and e-mail address of a withdrawal, sealed. Raises as `seal` does."""
    inner = vault.inner(_key(vault, merchant))
    return inner.seal(said.to_json(), place=_place(session_id, WITHDRAWAL))


def opened_said(vault: AesVault, merchant: Merchant, withdrawal: Withdrawal) -> CustomerDetails:
    """Return the name and the e-mail address in a withdrawal, which are empty after an erasure.

    Raises SecretUnreadable, and Unavailable while the key cannot be read.
    """
    if withdrawal.said is None:
        return NONE_GIVEN
    inner = vault.inner(_key(vault, merchant))
    place = _place(withdrawal.session, WITHDRAWAL)
    return from_json(inner.open(withdrawal.said, place=place))


def mark(vault: AesVault, merchant: Merchant, email: str) -> str:
    """Return the lookup text for finding the merchant's sessions that have this e-mail address.

    The text is a keyed hash, so that a reader of the index can neither read nor guess addresses.
    """
    return _mark(_key(vault, merchant), "customer_email", same_text(email))


def spoken_mark(vault: AesVault, merchant: Merchant, typed: str) -> str | None:
    """Return the lookup text for a typed name or postal code, or None for other texts.

    The text is a keyed hash, like the one for an e-mail address.
    """
    text = spoken_text(typed)
    return _mark(_key(vault, merchant), _SPOKEN, text) if text else None


def browser_proof(vault: AesVault, merchant: Merchant, session_id: str, act: str) -> str | None:
    """Return a proof, for a browser's cookie, that this browser has done `act` in the session.

    The proof has 128 bits in hexadecimal digits, and cannot be made without the merchant's key for
    details. Returns None if this key cannot be decrypted; then the details cannot be shown, either.
    Raises Unavailable while the key cannot be read.
    """
    try:
        key = bytes.fromhex(_key(vault, merchant))
    except SecretUnreadable:
        return None
    said = f"customer_browser\n{session_id}\n{act}"
    return hmac.digest(key, said.encode(), "sha256")[:16].hex()


def opened(vault: AesVault, merchant: Merchant | None, session: Session) -> CustomerDetails:
    """Return the details of a session's customer, which may be empty.

    Raises SecretUnreadable, and Unavailable while the key cannot be read.
    """
    if session.customer_details is None or merchant is None:
        return NONE_GIVEN
    return _opened(vault.inner(_key(vault, merchant)), session)


def known(services: Services, sessions: Iterable[Session]) -> Mapping[str, CustomerDetails]:
    """Return the customers' details in these sessions, by session id. This is for the API.

    Nothing is read for sessions without details. Details that cannot be decrypted are left out, and
    the operator gets an alarm. Raises Unavailable.
    """
    found: dict[str, CustomerDetails] = defaultdict(lambda: NONE_GIVEN)
    vaults: dict[str, AesVault | None] = {}
    for each in sessions:
        if each.customer_details is None:
            continue
        with suppress(SecretUnreadable):
            if each.merchant not in vaults:
                vaults[each.merchant] = None
                vaults[each.merchant] = _vault_of_api(services, each.merchant)
            vault = vaults[each.merchant]
            if vault is not None:
                found[each.id] = _opened(vault, each)
    return found


def _vault_of_api(services: Services, merchant_id: str) -> AesVault | None:
    """Return the vault for a merchant's details, or None if the API cannot open one."""
    merchant = services.merchants.get(merchant_id)
    if merchant is None or merchant.details_key_kms is None or services.details_keys is None:
        return None
    return services.details_keys.vault(merchant.details_key_kms, merchant=merchant.id)


def _opened(inner: AesVault, session: Session) -> CustomerDetails:
    assert session.customer_details is not None
    further = session.customer_further
    return from_json(
        inner.open(session.customer_details, place=_place(session.id, DETAILS)),
        further and inner.open(further, place=_place(session.id, FURTHER)),
    )


def _key(vault: AesVault, merchant: Merchant) -> str:
    return vault.open(merchant.details_key, place=details_key_place(merchant.id))


def _mark(key: str, what: str, text: str) -> str:
    said = f"{what}\n{text}"
    return hmac.digest(bytes.fromhex(key), said.encode(), "sha256").hex()[:_MARK_SIZE]


def _place(session_id: str, name: str) -> tuple[str, str, str]:
    return ("checkout_sessions", session_id, name)


def may_give(services: PayServices, session: Session) -> bool:
    """Return whether the customer may give details now, or correct them."""
    if not session.collect or session.wallet_given:
        return False
    try:
        writes.change(services, session, Event.DETAILS_GIVEN)
    except IllegalTransition:
        return False
    return True


def give(services: PayServices, session: Session, given: CustomerDetails) -> Session:
    """Store the details in place of earlier details. Return the session.

    An e-mail address that the shop gave stays until the customer gives another one. The caller has
    checked the details against the session's `collect`, the list of details to ask for. Raises
    SessionUnexpectedState if the session asks for no details or has ended, SessionBusy while a
    wallet is being asked, PaymentInProgress, ResourceMissing, Unavailable. After an error nothing
    was stored.
    """
    if not session.collect:
        raise SessionUnexpectedState("This session asks for no details.")
    merchant = merchants.get(services.merchants, session.merchant)
    for _ in range(TRIES):
        session = apply_clock(services, session)
        if session.wallet_given:
            raise _refusal(session)
        kept = _with_known_email(services, merchant, session, given)
        sealed = seal(services.vault, merchant, session.id, kept)
        try:
            return writes.move(
                services,
                session,
                Event.DETAILS_GIVEN,
                details_at=services.clock.now(),
                **sealed.fields,
            )
        except IllegalTransition:
            raise _refusal(session) from None
        except StaleRecord as stale:
            session = stale.current
    raise SessionBusy("This session is being changed by other requests; try again shortly.")


def _with_known_email(
    services: PayServices, merchant: Merchant, session: Session, given: CustomerDetails
) -> CustomerDetails:
    """Return the details, with the shop's e-mail address if the customer has given none.

    If the shop's address cannot be decrypted, it is left out, so that the purchase can continue.
    The operator then gets an alarm.
    """
    if given.email is None and session.collect.email_known:
        with suppress(SecretUnreadable):
            stored = opened(services.vault, merchant, session)
            return replace(given, email=stored.email)
    return given


def _refusal(session: Session) -> CheckoutError:
    if session.payment_in_flight or session.phase is not None:
        return PaymentInProgress("A payment for this session is being confirmed.")
    if session.status is Status.PREPARING:
        return SessionBusy(
            "A wallet provider is being contacted for this session. Try again shortly."
        )
    return SessionUnexpectedState(
        f"The session is {session.status}. Details can be given only while it is open and no "
        "wallet has been given."
    )
