"""Request the payer's approval, verify it, claim it and redeem it once, keep it or cancel it.

The approval is an interactive grant (RFC 9635) with limits. All kinds of records go through here:
sales, refunds and budgets (docs/decisions/0028-one-engine-for-approvals-and-payments.md).
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
from open_payments.limits import Limits
from open_payments.models import AccessToken, WalletAddress

if TYPE_CHECKING:
    from checkout.domain.payment.mandate import Mandate
    from checkout.domain.refund.record import Refund
    from checkout.domain.session.record import Session

A = TypeVar("A", "Session", "Refund", "Mandate")  # the kinds of records that wait for an approval
T = TypeVar("T")
# Returns the note on a problem, and the fields that show it. The error is None for a dearer price.
Blame = Callable[[Any, Problem, op.OpenPaymentsError | None], tuple[str, dict[str, Any]]]

LEASE: Final = timedelta(seconds=45)  # outlives any process that may still be working
TOO_FAST_PAUSE: Final = 5.0  # extra seconds to wait after `too_fast`
STUMBLE_PAUSE: Final = 2.0  # seconds after another temporary error
# A request asks again only with this time left: for a slow answer, and for the payment after it.
ROOM: Final = timedelta(seconds=12)
# After a temporary error at the approval, the browser tries it again for this long.
KEPT_FOR: Final = timedelta(minutes=3)
KEPT_PAUSE: Final = 10  # seconds until the browser comes again


@dataclass(frozen=True, slots=True)
class CallbackResult(Generic[T]):
    """The record after a callback.

    If `wait_seconds` is above 0, nothing was done, or the wallet had a temporary error: the same
    URL must be called again after that time. The browser waits, because any number of copies may
    come before one of them has the claim. With `asks` nothing was done either: the approval was
    begun in another browser, so this one's customer has to confirm first. `verified`: the
    customer's browser came back with the session's approval, and has confirmed if it had to.
    """

    record: T
    wait_seconds: int = 0
    asks: bool = False
    verified: bool = False


def ask(
    calls: WalletCalls, payer: WalletAddress, *, limits: Limits | None, finish_uri: str
) -> tuple[Grant, str]:
    """Request the grant that the payer approves (C6); return it with the page of the approval.

    With a receiver and a debit as limits it can pay only that; without limits it can only read
    payments. Raises open_payments errors.
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
    """Return the pending grant of this callback, or None if no grant waits.

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
    """Take the lease on the continuation of the record's grant (W5).

    Other writes may come first, but not another approval or claim. `planned` returns further fields
    of the claimed record. Raises StaleRecord with the winner, and IllegalTransition.
    """

    def claimed(current: A) -> Change[A]:
        now = services.clock.now()  # of the written claim, not of an attempt that lost its race
        lost = current is not record and current.lease_live(now)
        if current.grant != record.grant or lost:
            raise StaleRecord(current)
        event, more = subject_of(current.id).events.APPROVAL_CLAIMED, planned(current, now)
        return change(services, current, event, lease_until=now + LEASE, **more)

    return write_decided(services, record, claimed)


def redeem_and_intend(
    calls: WalletCalls, record: P, grant: Grant, interact_ref: str, blame: Blame, **changes: Any
) -> tuple[P, AccessToken | None]:
    """Redeem a claimed approval (C7), and write the intent to pay by it (W6) with `changes`.

    Returns the record and the token that pays. Without a token the approval is kept or lost.
    Raises StaleRecord, IllegalTransition.
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
    """Keep an approval after a temporary error of the wallet, or lose it."""
    kept = kept_until(calls.services, error, record.approve_until)
    if kept is None:
        return _lose(calls, record, grant, blame(record, Problem.APPROVAL_UNUSABLE, error))
    note, _ = blame(record, Problem.WALLET_UNREACHABLE, error)
    event = subject_of(record.id).events.APPROVAL_KEPT
    return move(calls.services, record, event, note=note, approve_until=kept)


def _lose(calls: WalletCalls, record: P, grant: Grant, blamed: tuple[str, dict[str, Any]]) -> P:
    """Delete the approval: no payment was instructed by it, so none can follow."""
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
    """Redeem the interact_ref (C7), again after temporary errors. Raises open_payments errors."""
    return in_spite_of_stumbles(
        calls,
        lambda: calls.client.continue_grant(
            payer, grant.continuation, interact_ref=interact_ref, limits=limits
        ),
    )


def in_spite_of_stumbles(calls: WalletCalls, call: Callable[[], T]) -> T:
    """Make a call that an approval depends on, again after temporary errors while there is time.

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
    """Return whether the call may be made again after this error: the interact_ref may be valid.

    It may if no answer came, the server failed or was busy, or could not read our keys. If it was
    redeemed and the answer is lost, the next redemption is refused, which does no harm.
    """
    if isinstance(error, op.Refused):
        return error.of_key or error.reason in (op.Reason.TOO_FAST, op.Reason.BUSY)
    return not isinstance(error, op.UntrustedAnswer)


def kept_until(
    services: Services, error: op.OpenPaymentsError, approve_until: datetime | None
) -> datetime | None:
    """Return until when an approval is kept after a temporary error of the wallet.

    `approve_until` is the end from an earlier error, if any. None if the error is not temporary, or
    no time is left: then the approval is lost.
    """
    if not stumbled(error):
        return None
    now = services.clock.now()
    until = min(approve_until or now + KEPT_FOR, now + KEPT_FOR)
    return until if now + timedelta(seconds=KEPT_PAUSE) < until else None


def cancel(calls: WalletCalls, auth_server: str, grant: Grant) -> None:
    """Cancel an abandoned grant, best effort, because nothing depends on it."""
    with contextlib.suppress(op.OpenPaymentsError):
        calls.client.cancel_grant(auth_server, grant.continuation)
