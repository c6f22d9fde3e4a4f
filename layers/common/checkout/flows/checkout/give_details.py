"""Store the details that a customer gives on the page of a session that asks for them.

They are sealed and stored in one conditional write. Corrections are taken until the customer gives
a wallet: from then on the e-mail address has a row in the search. No wallet is called here.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from checkout.domain.ground.errors import (
    CheckoutError,
    PaymentInProgress,
    SessionBusy,
    SessionUnexpectedState,
)
from checkout.domain.merchant.record import Merchant
from checkout.domain.payment.events import Event
from checkout.domain.payment.machine import IllegalTransition
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.record import Session, Status
from checkout.flows import merchants
from checkout.flows.checkout import details
from checkout.flows.checkout.clock import apply_clock
from checkout.flows.payment import writes
from checkout.flows.retry_on_conflict import TRIES
from checkout.ports.runtime import SecretUnreadable
from checkout.ports.services import PayServices
from checkout.ports.sessions import StaleRecord


def may_give(services: PayServices, session: Session) -> bool:
    """Return whether details may be given to the session now, or corrected."""
    if not session.collect or session.wallet_given:
        return False
    try:
        writes.change(services, session, Event.DETAILS_GIVEN)
    except IllegalTransition:
        return False
    return True


def give(services: PayServices, session: Session, given: CustomerDetails) -> Session:
    """Store what was given in the place of what was given before; return the session.

    An e-mail address that the shop gave stays until the customer gives another one. The details
    must have been checked by what the session asks. Raises SessionUnexpectedState if it asks for
    none or has ended, SessionBusy while a wallet is asked, PaymentInProgress, ResourceMissing,
    Unavailable; then nothing was stored.
    """
    if not session.collect:
        raise SessionUnexpectedState("This session asks for no details.")
    merchant = merchants.get(services.merchants, session.merchant)
    for _ in range(TRIES):
        session = apply_clock(services, session)
        if session.wallet_given:
            raise _refusal(session)
        kept = _with_known_email(services, merchant, session, given)
        sealed = details.seal(services.vault, merchant, session.id, kept)
        try:
            return writes.move(
                services,
                session,
                Event.DETAILS_GIVEN,
                customer_details=sealed.details,
                customer_further=sealed.further,
                customer_mark=sealed.mark,
                details_at=services.clock.now(),
            )
        except IllegalTransition:
            raise _refusal(session) from None
        except StaleRecord as stale:
            session = stale.current
    raise SessionBusy("This session is being changed by other requests; try again shortly.")


def _with_known_email(
    services: PayServices, merchant: Merchant, session: Session, given: CustomerDetails
) -> CustomerDetails:
    """Return what was given, with the stored e-mail address if the shop gave one and they did not.

    One that does not open is left out: the operator gets an alarm, and the purchase goes on.
    """
    if given.email is None and session.collect.email_known:
        with suppress(SecretUnreadable):
            stored = details.opened(services.vault, merchant, session)
            return replace(given, email=stored.email)
    return given


def _refusal(session: Session) -> CheckoutError:
    if session.payment_in_flight or session.phase is not None:
        return PaymentInProgress("A payment for this session is being confirmed.")
    if session.status is Status.PREPARING:
        return SessionBusy("A wallet is being asked for this session; try again shortly.")
    return SessionUnexpectedState(
        f"The session is {session.status}; details can be given while it is open and nobody has "
        "given a wallet."
    )
