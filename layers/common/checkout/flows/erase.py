"""Erase a customer from all stored records, for the operator.

The operator identifies the customer by a wallet, an e-mail address or a session.

Each record is written only if it has not changed since it was read. So an erasure can run at the
same time as checkouts and the scheduled sweep, and can be stopped and started again. Some records
still need the customer's data, for example for a payment in flight. These are left as they are and
counted; a later run can erase the customer from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

from checkout.domain.erasure import (
    Customer,
    body_without_wallet,
    event_without_wallet,
    gave_email,
    has_email,
    in_session,
    refund_without,
    without_wallet,
)
from checkout.domain.ground.errors import Conflict, Unavailable
from checkout.domain.ground.grammar import SESSION_ID
from checkout.domain.merchant.audit import AuditEntry
from checkout.domain.payment.events import Event
from checkout.domain.payment.machine import Change
from checkout.domain.refund.record import Refund, RefundEvent
from checkout.domain.reports.search_terms import same_text
from checkout.domain.session.customer_details import NONE_GIVEN
from checkout.domain.session.note import Note
from checkout.domain.session.record import Session
from checkout.domain.session.withdrawal import Withdrawal
from checkout.domain.webhooks.record import EventStatus, WebhookEvent
from checkout.flows.payment import writes
from checkout.flows.retry_on_conflict import retry_on_conflict
from checkout.flows.session import details
from checkout.flows.session.lookup import write_clock
from checkout.ports import Reservation, SecretUnreadable, StaleRecord
from checkout.services import DashboardServices

if TYPE_CHECKING:
    from checkout.adapters.dynamo.erasure import DynamoRecords

TELL_EVERY: Final = 10_000  # records

T = TypeVar("T")


class Kept(StrEnum):
    """The reason why this run has not erased the customer from a record."""

    NOT_ENDED = "sessions that have not ended"
    IN_FLIGHT = "sessions with a payment under way, or partly paid"
    UNACCOUNTED = "ended sessions whose received amount is not certain yet"
    REFUNDING = "refunds that have not ended"
    NOT_DELIVERED = "webhook events that are still to be delivered"
    BUSY = "records that other requests were changing"
    UNREADABLE = "rows that cannot be read"


@dataclass(slots=True)
class Report:
    """The counts of one run: records read, and erased, both by kind; records kept, by reason."""

    read: Counter[str] = field(default_factory=Counter)
    erased: Counter[str] = field(default_factory=Counter)
    kept: Counter[Kept] = field(default_factory=Counter)

    @property
    def complete(self) -> bool:
        return not self.kept


def with_email(services: DashboardServices, records: DynamoRecords, email: str) -> Customer:
    """Return the customer with this e-mail address and the sessions in which it was given.

    The customer or a shop may have given the address. If the customer gave it when withdrawing from
    a purchase, the purchase's session is included, too, unless that session has another e-mail
    address. The customer's wallets are not included, because other people may pay with the same
    wallets. Raises Unavailable, also if the key that encrypts a merchant's customers' details
    cannot be decrypted.
    """
    marks: dict[str, str | None] = {}
    withdrawn = {
        each.session
        for each in records.withdrawals()
        if each is not None and _said_email(services, each, email)
    }
    theirs: set[str] = set()
    for session in records.sessions():
        if session is None:  # a row that cannot be read; `erase` counts these rows
            continue
        if session.merchant not in marks:
            marks[session.merchant] = _mark(services, session.merchant, email)
        gave = gave_email(session, email, marks[session.merchant])
        if gave or (session.id in withdrawn and not has_email(session)):
            theirs.add(session.id)
    return Customer(
        emails=(email,), sessions=frozenset(theirs), withdrawals=frozenset(withdrawn - theirs)
    )


def _mark(services: DashboardServices, merchant_id: str, email: str) -> str | None:
    merchant = services.merchants.get(merchant_id)
    try:
        return None if merchant is None else details.mark(services.vault, merchant, email)
    except SecretUnreadable:
        raise Unavailable(
            f"The key of {merchant_id} for customers' details cannot be decrypted."
        ) from None


def _said_email(services: DashboardServices, withdrawal: Withdrawal, email: str) -> bool:
    """Return whether this address was given in the withdrawal."""
    merchant = services.merchants.get(withdrawal.merchant)
    try:
        said = details.opened_said(services.vault, merchant, withdrawal) if merchant else NONE_GIVEN
    except SecretUnreadable:
        raise Unavailable(f"The withdrawal from {withdrawal.session} does not open.") from None
    return said.email is not None and same_text(said.email) == same_text(email)


def erase(
    services: DashboardServices,
    records: DynamoRecords,
    customer: Customer,
    *,
    on_progress: Callable[[Report], None],
) -> Report:
    """Go through all records, erase this customer, and call `on_progress` now and then.

    After it raises `errors.Unavailable`, another run erases the rest.
    """
    report = Report()
    erased: set[str] = set()  # ids of sessions whose customer was erased, in this or an earlier run
    withdrawn: dict[str, Session] = {}
    for session in _each(records.sessions(), "sessions", report, on_progress):
        if session.id in customer.withdrawals:
            withdrawn[session.id] = session
        if _is_erased(_erase_session(services, session, customer, report)):
            erased.add(session.id)
    for refund in _each(records.refunds(), "refunds", report, on_progress):
        _erase_refund(services, refund, customer, report, theirs=refund.session in erased)
    for event in _each(records.events(), "webhook events", report, on_progress):
        _erase_event(services, event, customer, report, theirs=event.session in erased)
    for entry in _each(records.audit_entries(), "audit entries", report, on_progress):
        _erase_entry(services, entry, customer, report)
    for filed in _each(records.withdrawals(), "withdrawals", report, on_progress):
        _erase_withdrawal(services, filed, customer, report, withdrawn.get(filed.session))
    for note in _each(records.notes(), "notes", report, on_progress):
        _erase_note(services, note, customer, report)
    for answer in _each(records.answers(), "stored answers", report, on_progress):
        theirs = not erased.isdisjoint(SESSION_ID.findall(answer.body))
        _erase_answer(records, answer, customer, report, theirs=theirs)
    on_progress(report)
    return report


def _each(
    records: Iterable[T | None], kind: str, report: Report, on_progress: Callable[[Report], None]
) -> Iterator[T]:
    for record in records:
        report.read[kind] += 1
        if report.read.total() % TELL_EVERY == 0:
            on_progress(report)
        if record is None:
            report.kept[Kept.UNREADABLE] += 1
        else:
            yield record


def _erase_session(
    services: DashboardServices, session: Session, customer: Customer, report: Report
) -> Session:
    """Erase the customer from a session, unless it still needs the customer's data.

    The note and the withdrawal of the session are erased first. If this run stopped after the
    session, a later run would skip the session, and with it the note. Return the session as stored.
    """
    theirs = customer.gave(session)
    if not theirs and not in_session(session, customer):
        return session

    def erased(current: Session) -> Change[Session] | None:
        if not in_session(current, customer) or _needed(current) is not None:
            return None
        return without_wallet(writes.change(services, current, Event.ERASED), customer)

    try:
        session = write_clock(services, session)
        if theirs and _needed(session) is None:
            _clear_note(services, session.id, report)
            _clear_withdrawal(services, session.id, session, report)
        if not in_session(session, customer):
            return session
        session = writes.write_decided(services, session, erased)
    except StaleRecord:
        report.kept[Kept.BUSY] += 1
        return session
    reason = _needed(session)
    if reason is None:
        report.erased["sessions"] += 1
    else:
        report.kept[reason] += 1
    return session


def _is_erased(session: Session) -> bool:
    """Return whether the session's customer was erased, in this run or an earlier one."""
    nobody = session.customer is None and session.customer_details is None
    return nobody and session.happened(Event.ERASED)


def _erase_refund(
    services: DashboardServices,
    refund: Refund,
    customer: Customer,
    report: Report,
    *,
    theirs: bool,
) -> None:
    """Erase the customer from an ended refund. A pending refund still needs the customer's wallet.

    `theirs` means that the customer of the refund's session was erased. In that case, the refund's
    wallet is erased even if it is not one of the wallets of `customer`.
    """
    if not (theirs and refund.wallet) and not customer.received(refund):
        return
    if not refund.terminal:
        report.kept[Kept.REFUNDING] += 1
        return
    try:
        writes.commit(
            services, refund_without(writes.change(services, refund, RefundEvent.ERASED), customer)
        )
    except StaleRecord:
        report.kept[Kept.BUSY] += 1
    else:
        report.erased["refunds"] += 1


def _erase_entry(
    services: DashboardServices, entry: AuditEntry, customer: Customer, report: Report
) -> None:
    """Erase the customer from an entry of the audit log."""
    cleaned = customer.cleaned(entry)
    if cleaned is not entry:
        services.audit.add(cleaned)
        report.erased["audit entries"] += 1


def _erase_answer(
    records: DynamoRecords, answer: Reservation, customer: Customer, report: Report, *, theirs: bool
) -> None:
    """Erase the customer from a stored answer to a request with an `Idempotency-Key`.

    `theirs` means that the customer of a session in the answer was erased.
    """
    body = body_without_wallet(answer.body, customer, theirs=theirs)
    if body != answer.body:
        records.replace_answer(replace(answer, body=body))
        report.erased["stored answers"] += 1


def _clear_note(services: DashboardServices, session_id: str, report: Report) -> None:
    """Empty the note on a session of this customer, because the note may describe the customer."""
    note = services.notes.get(session_id)
    if note is None or not (note.text or note.tags):
        return
    _put_note(services, replace(note, text="", tags=()), report)


def _erase_withdrawal(
    services: DashboardServices,
    filed: Withdrawal,
    customer: Customer,
    report: Report,
    session: Session | None,
) -> None:
    """Erase the customer from a withdrawal whose session has another e-mail address."""
    if filed.session in customer.withdrawals:
        _clear_withdrawal(services, filed.session, session, report)


def _clear_withdrawal(
    services: DashboardServices, session_id: str, session: Session | None, report: Report
) -> None:
    """Erase the name and the e-mail address of a withdrawal of this customer.

    A withdrawal is kept some days longer than its session. `session` is None if the session was
    already deleted.
    """
    found = services.withdrawals.get(session_id)
    if found is None or found.said is None:
        return
    cleared = replace(found, said=None, version=found.version + 1)
    if services.withdrawals.put(cleared, session):
        report.erased["withdrawals"] += 1
    else:
        report.kept[Kept.BUSY] += 1


def _erase_note(
    services: DashboardServices, note: Note, customer: Customer, report: Report
) -> None:
    """Erase the customer from a note and its tags."""
    cleaned = customer.cleaned(note)
    if cleaned is not note:
        _put_note(services, cleaned, report)


def _put_note(services: DashboardServices, note: Note, report: Report) -> None:
    if services.notes.put(replace(note, version=note.version + 1)):
        report.erased["notes"] += 1
    else:
        report.kept[Kept.BUSY] += 1


def _needed(session: Session) -> Kept | None:
    """Return the reason why the session still needs its customer's data, or None."""
    if session.payment_in_flight:
        return Kept.IN_FLIGHT
    if not session.terminal:
        return Kept.NOT_ENDED
    return None if session.check_at is None else Kept.UNACCOUNTED


def _erase_event(
    services: DashboardServices,
    event: WebhookEvent,
    customer: Customer,
    report: Report,
    *,
    theirs: bool,
) -> None:
    """Erase the customer from an event that was delivered or given up.

    An event that is still to be delivered must name the customer, so the event is kept for a later
    run. `theirs` means that the customer of the event's session was erased. In that case, the
    stored responses of the webhook's receiver are erased, too, because they may repeat the
    customer's details. This applies even if the event's body names another wallet.
    """
    waits = theirs and event.status is EventStatus.PENDING
    if not waits and event_without_wallet(event, customer, theirs=theirs) is event:
        return

    def erased(current: WebhookEvent) -> WebhookEvent:
        if current.status is EventStatus.PENDING:
            return current
        return event_without_wallet(current, customer, theirs=theirs)

    try:
        after = retry_on_conflict(event, erased, services.events.save)
    except Conflict:
        report.kept[Kept.BUSY] += 1
        return
    if after.status is EventStatus.PENDING:
        report.kept[Kept.NOT_DELIVERED] += 1
    else:
        report.erased["webhook events"] += 1
