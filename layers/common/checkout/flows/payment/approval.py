"""Request the payer's approval, verify its callback, and claim and redeem the approval once.

The approval is an interactive grant (RFC 9635) with limits. After the payer has approved, their
wallet sends the browser back with an `interact_ref`, which the checkout redeems once for an access
token. After a temporary error, the approval is kept for another try; an abandoned approval is
canceled. Sales, refunds and budgets all use this module
(docs/decisions/0028-one-engine-for-approvals-and-payments.md). The writes W5 to W7 and the calls C6
to C8 are those of domain/session/transitions.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from checkout.domain.ground.errors import CallbackInvalid
from checkout.domain.ground.ids import new_nonce
from checkout.domain.payment.in_flight import Problem
from checkout.domain.payment.machine import Change
from checkout.domain.record_kinds import subject_of
from checkout.flows.payment.instruct import P, intend, usable_quote
from checkout.flows.payment.sealed import Grant, pending_grant
from checkout.flows.payment.wallet_calls import WalletCalls
from checkout.flows.payment.writes import change, move, write_decided
from checkout.ports import StaleRecord
from checkout.services import PayServices, Services
from open_payments import errors as op
from open_payments import interaction
from open_payments.interaction import Limits
from open_payments.models import AccessToken, WalletAddress

if TYPE_CHECKING:
    from checkout.domain.payment.mandate import Mandate
    from checkout.domain.refund.record import Refund
    from checkout.domain.session.record import Session

A = TypeVar("A", "Session", "Refund", "Mandate")  # the kinds of records that wait for an approval
T = TypeVar("T")
# A function that returns the fields that store a problem in the record, and before them a note for
# the record's history. The error is None if the problem is that the price has risen.
Blame = Callable[[Any, Problem, op.OpenPaymentsError | None], tuple[str, dict[str, Any]]]

LEASE: Final = timedelta(seconds=45)  # outlives any process that may still be working
TOO_FAST_PAUSE: Final = 5.0  # seconds to wait after the error `too_fast`
STUMBLE_PAUSE: Final = 2.0  # seconds to wait after another temporary error
# A failed call is repeated only if this much time is left, which is enough for a slow answer and
# then the payment.
ROOM: Final = timedelta(seconds=12)
# If redeeming an approval fails with a temporary error, the browser tries again for this long.
KEPT_FOR: Final = timedelta(minutes=3)
KEPT_PAUSE: Final = 10  # seconds until the browser calls the URL again


@dataclass(frozen=True, slots=True)
class CallbackResult(Generic[T]):
    """The record after a callback.

    If `wait_seconds` is above 0, nothing was done, or the wallet had a temporary error. In both
    cases the browser must call the same URL again after that time. The server does not wait itself,
    because any number of copies of the request can arrive before one of them claims the approval.
    `asks` means that nothing was done because the approval was begun in another browser, so the
    customer in this browser has to confirm first. `verified` means that the browser came back with
    the session's approval, and that the customer has confirmed if a confirmation was necessary.
    """

    record: T
    wait_seconds: int = 0
    asks: bool = False
    verified: bool = False


def ask(
    calls: WalletCalls, payer: WalletAddress, *, limits: Limits | None, finish_uri: str
) -> tuple[Grant, str]:
    """Request the grant (C6). Return it with the URL of the page where the payer approves it.

    If the limits contain a receiver and a debit, the grant allows only a payment to this receiver
    for this debit. Without limits, the grant allows only reading payments. Raises open_payments
    errors.
    """
    nonce = new_nonce(calls.services.random_bytes)
    pending = calls.client.request_payment_grant(
        payer, limits=limits, finish_uri=finish_uri, nonce=nonce
    )
    grant = Grant(
        client_nonce=nonce,
        finish_nonce=pending.finish_nonce,
        continuation=pending.continuation,
    )
    return grant, pending.interact_url


def verify(grant: Grant, payer: WalletAddress, *, interact_ref: str, presented_hash: str) -> None:
    """Raise CallbackInvalid unless the payer's provider has made this callback for this grant."""
    matched = interaction.matches(
        presented_hash,
        client_nonce=grant.client_nonce,
        finish_nonce=grant.finish_nonce,
        interact_ref=interact_ref,
        grant_url=payer.auth_server,
        continue_uri=grant.continuation.uri,
    )
    if matched is None:
        raise CallbackInvalid("This answer does not belong to the approval that we asked for.")


def returned(
    services: PayServices,
    record: Session | Refund | Mandate,
    payer: WalletAddress | None,
    *,
    interact_ref: str,
    presented_hash: str,
) -> Grant | None:
    """Return the pending grant of this callback, or None if no grant is pending.

    Raises CallbackInvalid for a callback that does not verify, without any write or wallet call.
    """
    grant = pending_grant(services.vault, record)
    if grant is None or payer is None:
        return None
    verify(grant, payer, interact_ref=interact_ref, presented_hash=presented_hash)
    return grant


def claim(
    services: Services,
    record: A,
    planned: Callable[[A, datetime], dict[str, Any]] = lambda current, now: {},
) -> A:
    """Claim the record's approval (W5), by taking a lease that ends after LEASE.

    Only the process with the lease redeems the approval. If another process has written the record
    first, the claim is tried again, unless that process has changed the approval or claimed it. In
    these two cases, and after too many tries, raises StaleRecord, which contains the stored record.
    `planned` returns further fields for the claimed record. Raises IllegalTransition if the state
    of the record allows no claim.
    """

    def claimed(current: A) -> Change[A]:
        now = services.clock.now()  # read again for each try, because the lease begins with it
        lost = current is not record and current.lease_live(now)
        if current.grant != record.grant or lost:
            raise StaleRecord(current)
        event, more = subject_of(current.id).events.APPROVAL_CLAIMED, planned(current, now)
        return change(services, current, event, lease_until=now + LEASE, **more)

    return write_decided(services, record, claimed)


def redeem_and_intend(
    calls: WalletCalls, record: P, grant: Grant, interact_ref: str, blame: Blame, **changes: Any
) -> tuple[P, AccessToken | None]:
    """Redeem a claimed approval (C7), and write the intent to pay (W6).

    `changes` are further fields for W6. Returns the record and the token for the payment. The token
    is None if no payment can be made now: the approval was kept for another try, or is lost. Raises
    StaleRecord, IllegalTransition.
    """
    assert record.payer is not None
    assert record.incoming_payment is not None
    assert record.quote is not None
    payer, receiver, held = record.payer, record.incoming_payment.id, record.quote
    allowed = Limits(receiver=receiver, debit_amount=held.debit)
    try:
        token = redeem(calls, grant, interact_ref, payer=payer, limits=allowed)
    except op.OpenPaymentsError as error:
        return keep_or_lose(calls, record, grant, error, blame), None
    receive, debit = record.fixed
    try:
        quote = in_spite_of_stumbles(
            calls,
            lambda: usable_quote(
                calls, held, payer, receiver=receiver, receive=receive, debit=debit
            ),
        )
    except op.OpenPaymentsError as error:
        return _lose(calls, record, grant, blame(record, Problem.APPROVAL_UNUSABLE, error)), None
    if quote is None:
        return _lose(calls, record, grant, blame(record, Problem.PRICE_CHANGED, None)), None
    return intend(calls.services, record, quote, token, **changes), token


def keep_or_lose(
    calls: WalletCalls, record: P, grant: Grant, error: op.OpenPaymentsError, blame: Blame
) -> P:
    """Keep an approval for another try if the wallet's error is temporary; otherwise delete it."""
    kept = kept_until(calls.services, error, record.approve_until)
    if kept is None:
        return _lose(calls, record, grant, blame(record, Problem.APPROVAL_UNUSABLE, error))
    note, _ = blame(record, Problem.WALLET_UNREACHABLE, error)
    event = subject_of(record.id).events.APPROVAL_KEPT
    return move(calls.services, record, event, note=note, approve_until=kept)


def _lose(calls: WalletCalls, record: P, grant: Grant, blamed: tuple[str, dict[str, Any]]) -> P:
    """Delete the approval. No payment was instructed with it, so no payment can follow."""
    assert record.payer is not None
    auth_server, (note, fields) = record.payer.auth_server, blamed
    event = subject_of(record.id).events.APPROVAL_LOST
    record = move(calls.services, record, event, note=note, **fields)
    cancel(calls, auth_server, grant)
    return record


def redeem(
    calls: WalletCalls,
    grant: Grant,
    interact_ref: str,
    *,
    payer: WalletAddress,
    limits: Limits | None,
) -> AccessToken:
    """Redeem the interact_ref (C7); retry after temporary errors. Raises open_payments errors."""
    return in_spite_of_stumbles(
        calls,
        lambda: calls.client.continue_grant(
            payer, grant.continuation, interact_ref=interact_ref, limits=limits
        ),
    )


def in_spite_of_stumbles(calls: WalletCalls, call: Callable[[], T]) -> T:
    """Make a call that an approval depends on; retry after temporary errors while time is left.

    Raises open_payments errors.
    """
    clock = calls.services.clock
    while True:
        try:
            return call()
        except op.OpenPaymentsError as error:
            too_fast = isinstance(error, op.Refused) and error.reason is op.Reason.TOO_FAST
            pause = TOO_FAST_PAUSE if too_fast else STUMBLE_PAUSE
            if (
                not stumbled(error)
                or clock.now() + timedelta(seconds=pause) > calls.deadline - ROOM
            ):
                raise
            clock.sleep(pause)


def stumbled(error: op.OpenPaymentsError) -> bool:
    """Return whether the error is temporary, so that the interact_ref may be valid in another call.

    An error is temporary if no answer came, or if the server failed, was busy or could not read our
    keys. If the server has redeemed the interact_ref and only its answer was lost, the next call is
    refused, which does no harm.
    """
    if isinstance(error, op.Refused):
        return error.of_key or error.reason in (op.Reason.TOO_FAST, op.Reason.BUSY)
    return not isinstance(error, op.UntrustedAnswer)


def kept_until(
    services: Services, error: op.OpenPaymentsError, approve_until: datetime | None
) -> datetime | None:
    """Return the time until which an approval is kept after a temporary error of the wallet.

    If an earlier error has already set this time, it is `approve_until`. Returns None if the
    approval is lost, because the error is not temporary or no time is left.
    """
    if not stumbled(error):
        return None
    now = services.clock.now()
    until = min(approve_until or now + KEPT_FOR, now + KEPT_FOR)
    return until if now + timedelta(seconds=KEPT_PAUSE) < until else None


def cancel(calls: WalletCalls, auth_server: str, grant: Grant) -> None:
    """Cancel an abandoned grant. Ignores errors, because nothing depends on the cancellation."""
    with contextlib.suppress(op.OpenPaymentsError):
        calls.client.cancel_grant(auth_server, grant.continuation)
