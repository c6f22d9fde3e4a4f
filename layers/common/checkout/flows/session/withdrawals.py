"""File a customer's withdrawal from a purchase, acknowledge it, and mark it as answered.

A withdrawal asks the shop to pay back. Anyone with the page's address can file one, because a
withdrawal moves no money and the shop decides about it. Each session has one withdrawal at most, so
filing it again changes nothing.

The acknowledgement, an e-mail to the customer, is due until it is sent, or for the time `WITHIN` at
most:

    1  Write when the acknowledgement is due next, if the record is still as it was read. The first
       time, this is written with the withdrawal itself; later, by the scheduled sweep. If two
       processes do so at the same time, only one can write, and only this one continues.
    2  Send the acknowledgement.
    3  Write that it was sent.

If the mail service does not answer, or the process dies after step 2, the e-mail may be sent twice.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from checkout.domain.ground.errors import Conflict, MailRefused, ParameterInvalid, ResourceMissing
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.people import Actor
from checkout.domain.merchant.reach import Effect
from checkout.domain.merchant.record import Merchant
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.record import Session
from checkout.domain.session.withdrawal import Withdrawal, last_moment
from checkout.flows import audit, mailing
from checkout.flows.session import details, lookup
from checkout.ports import WriteAcknowledgement
from checkout.services import DashboardServices, PayServices

AGAIN: Final = timedelta(hours=1)  # until sending an acknowledgement is tried again
WITHIN: Final = timedelta(days=14)
NONE: Final = "There is no withdrawal from this purchase."


def find(services: PayServices, merchant: Merchant, session: Session) -> Withdrawal | None:
    """Return the filed withdrawal, or None. Nothing is read if the shop offers no withdrawals."""
    if last_moment(session, merchant.withdrawal_days) is None:
        return None
    return services.withdrawals.get(session.id)


def is_open(services: PayServices, merchant: Merchant, session: Session) -> bool:
    """Return whether the customer can withdraw now."""
    until = last_moment(session, merchant.withdrawal_days)
    return until is not None and services.clock.now() < until


def file(
    services: PayServices,
    merchant: Merchant,
    session: Session,
    said: CustomerDetails,
    *,
    language: str | None = None,
) -> tuple[Withdrawal, bool]:
    """Store the withdrawal. Return the stored one, and whether it is new.

    The caller acknowledges a new withdrawal in the `language` of the page. If the session already
    has a withdrawal, nothing is stored. Raises Unavailable, and ResourceMissing if the time for
    withdrawing is over.
    """
    if not is_open(services, merchant, session):
        raise ResourceMissing(NONE)
    now = services.clock.now()
    withdrawal = Withdrawal(
        session=session.id,
        merchant=session.merchant,
        at=now,
        acknowledge_at=now + AGAIN if services.mail is not None else None,
        language=language,
        said=details.seal_said(services.vault, merchant, session.id, said),
    )
    if services.withdrawals.put(withdrawal, session):
        return withdrawal, True
    filed = services.withdrawals.get(session.id)
    assert filed is not None, "a first version is refused only if there is one"
    return filed, False


def acknowledge(
    services: PayServices,
    merchant: Merchant,
    session: Session,
    filed: Withdrawal,
    write: WriteAcknowledgement,
) -> Withdrawal:
    """Send the acknowledgement, and write that it was sent. Return the record as stored then."""
    if services.mail is None:
        return filed
    said = details.opened_said(services.vault, merchant, filed)
    try:
        letter = write(session, merchant, filed, said)
        mailing.send(services.mail, merchant, Effect.WITHDRAWAL, letter)
    except MailRefused:
        return filed
    sent = replace(filed, acknowledge_at=None, version=filed.version + 1)
    if not services.withdrawals.put(sent, session):  # the shop has marked the withdrawal meanwhile
        latest = services.withdrawals.get(session.id)
        assert latest is not None, "a later version is refused only if there is another one"
        sent = replace(latest, acknowledge_at=None, version=latest.version + 1)
        services.withdrawals.put(sent, session)
    return sent


def acknowledge_if_due(services: PayServices, known: Withdrawal) -> Withdrawal:
    """Send a withdrawal's acknowledgement if it is still due; return the record after that.

    Raises Unavailable, and ResourceMissing if its session or merchant is missing.
    """
    now = services.clock.now()
    if known.acknowledge_at is None or now < known.acknowledge_at:
        return known
    session = services.sessions.get(known.session)
    merchant = services.merchants.latest(known.merchant)
    if session is None or merchant is None:
        raise ResourceMissing(NONE)
    over = known.said is None or now >= known.at + WITHIN
    next_at = None if over else now + AGAIN
    claimed = replace(known, acknowledge_at=next_at, version=known.version + 1)
    if not services.withdrawals.put(claimed, session):
        return known
    if over or services.write_acknowledgement is None:
        return claimed
    return acknowledge(services, merchant, session, claimed, services.write_acknowledgement)


def answer(services: DashboardServices, key: Actor, session_id: str, *, done: bool) -> None:
    """Mark the withdrawal as answered (`done`) or as open again.

    Raise ResourceMissing, Conflict, and ParameterInvalid if there is no withdrawal.
    """
    session = lookup.own(services, key, session_id)
    before = services.withdrawals.get(session.id)
    if before is None:
        raise ParameterInvalid(NONE)
    after = replace(before, answered_by=key.label if done else None, version=before.version + 1)
    if not services.withdrawals.put(after, session):
        raise Conflict("Somebody else has changed the withdrawal meanwhile. Look at it again.")
    action = Action.DEALT_WITH if done else Action.OPENED_AGAIN
    audit.note(services, key, action, session.id)
