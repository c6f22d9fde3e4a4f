"""Create a session, and store the answer to its idempotency key with it.

No wallet is called here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from checkout.domain.ground.errors import IdempotencyKeyReused, MerchantSuspended, ParameterInvalid
from checkout.domain.ground.grammar import is_http
from checkout.domain.ground.ids import new_nonce, new_session_id
from checkout.domain.merchant.reach import SUSPENDED, Effect, require
from checkout.domain.merchant.record import ApiKey, Merchant
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.new import NewSession
from checkout.domain.session.public import public_session
from checkout.domain.session.record import Session
from checkout.flows import merchants
from checkout.flows.idempotency import Answer, Posted, Reserve, answer, json_text
from checkout.flows.session import details
from checkout.ports import KeyHeld, Reservation
from checkout.services import Services


def create_session(
    services: Services,
    key: ApiKey,
    new: NewSession,
    idempotency_key: str | None,
    request_id: str | None = None,
) -> Answer:
    """Store an open session and the native API's answer, and return the answer.

    `request_id` is the id of the API request. Once the session can be paid, a search finds the
    session by this id.

    Raises IdempotencyKeyInvalid, IdempotencyKeyReused, MerchantSuspended, MerchantUnproven, and the
    errors of `NewSession.opened`.
    """
    posted = Posted(
        merchant=key.merchant,
        key=idempotency_key,
        fingerprint="" if idempotency_key is None else new.fingerprint(),
        render=partial(native_answer, services),
        status=201,
        lasting=key.suspended is None,
    )
    return answer(
        services, posted, lambda reserve: open_session(services, key, new, reserve, request_id)
    )


def open_session(
    services: Services,
    key: ApiKey,
    new: NewSession,
    reserve: Reserve[Session] | None,
    request_id: str | None = None,
) -> Session:
    """Store an open session. First store the answer to its idempotency key, which `reserve` makes.

    Raises KeyHeld, MerchantSuspended, MerchantUnproven, Unavailable, and the errors of
    `NewSession.opened`. Raises ParameterInvalid if an e-mail address is given but cannot be
    encrypted.
    """
    if key.suspended is not None:
        _refuse(services, key)
    merchant = _keyed_merchant(services, key, new)

    def opened(**made: Any) -> Session:
        session = new.opened(
            key, base_is_http=is_http(services.base_url), request_id=request_id, **made
        )
        if merchant is None or new.customer_email is None:
            return session
        given = CustomerDetails(email=new.customer_email)
        sealed = details.seal_by_api(services, merchant, session.id, given)
        return replace(session, **sealed.fields)

    session = opened(
        session_id=new_session_id(services.random_bytes, test=services.test),
        writer=new_nonce(services.random_bytes),
        now=services.clock.now(),
    )
    reservation = None
    if reserve is not None:
        answered = reserve(session, session.writer)
        reservation = replace(answered, session=session.id, created_at=session.created_at)
    held = services.sessions.create(session, reservation)
    if held is not None:
        assert reservation is not None
        if held.fingerprint == reservation.fingerprint:
            _make_sure(services, opened, held)
        raise KeyHeld(held)
    return session


def _refuse(services: Services, key: ApiKey) -> NoReturn:
    """Raise the error that says why a suspended API key cannot create sessions.

    Only now is the merchant's record read, because it shows who can end the suspension.
    """
    require(merchants.get(services.merchants, key.merchant), Effect.SALE)
    raise MerchantSuspended(SUSPENDED)


def _keyed_merchant(services: Services, key: ApiKey, new: NewSession) -> Merchant | None:
    """Return the merchant if its encryption key for customers' details is needed, otherwise None.

    Raises ParameterInvalid if the merchant has no encryption key that this process can use.
    """
    if new.customer_email is None:
        return None
    if services.details_keys is None:
        raise ParameterInvalid(
            "This checkout cannot encrypt the e-mail address, because its operator has not set "
            "DETAILS_KMS_KEY.",
            param="customer_email",
        )
    merchant = services.merchants.get(key.merchant)
    if merchant is None or merchant.details_key_kms is None:
        raise ParameterInvalid(
            "Your shop has no key for encrypting customers' details yet. To create the key, make a "
            "payment link in the dashboard that asks for details.",
            param="customer_email",
        )
    return merchant


def _make_sure(services: Services, opened: Callable[..., Session], held: Reservation) -> None:
    """Store the session of a stored answer, if the first process has not done so.

    The session gets the id and the times that the stored answer has. Raises IdempotencyKeyReused if
    such a session would already have expired.
    """
    if held.session is None or services.sessions.get(held.session) is not None:
        return
    session = opened(session_id=held.session, writer=held.writer, now=held.created_at)
    if session.overdue(services.clock.now()):
        raise IdempotencyKeyReused(
            "The first request with this Idempotency-Key was interrupted. Use a new key.",
            param="Idempotency-Key",
        )
    services.sessions.create(session, None)


def native_answer(services: Services, session: Session) -> str:
    """Return the body of the native API's answers about one session."""
    now = services.clock.now()
    return json_text(public_session(session, base_url=services.base_url, now=now))
