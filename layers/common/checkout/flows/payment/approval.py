"""Ask for the payer's approval, verify it, claim it and redeem it once, keep it or cancel it.

The approval is an interactive grant (RFC 9635) with limits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, TypeVar

from checkout.domain.ground.errors import CallbackInvalid
from checkout.domain.ground.ids import new_nonce
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import InFlight
from checkout.domain.payment.machine import Change
from checkout.flows.payment.instruct import CHECK_AFTER, SEND_WITHIN
from checkout.flows.payment.sealed import Grant
from checkout.flows.payment.visit import WalletVisit
from checkout.flows.payment.writes import change, write_decided
from checkout.open_payments import errors as op
from checkout.open_payments import interaction
from checkout.open_payments.limits import Limits
from checkout.open_payments.models import AccessToken, WalletAddress
from checkout.ports import StaleRecord
from checkout.services import Services

R = TypeVar("R", bound=InFlight)
T = TypeVar("T")

LEASE: Final = timedelta(seconds=45)  # outlives any process that may still be working
TOO_FAST_PAUSE: Final = 5.0  # extra seconds to wait after `too_fast`
STUMBLE_PAUSE: Final = 2.0  # seconds after another stumble
# A request asks again only while it has this left: for a slow answer, and for the payment after it.
ROOM: Final = timedelta(seconds=12)
# A wallet that cannot take an approval just now is asked again for this long, by the browser.
KEPT_FOR: Final = timedelta(minutes=3)
KEPT_PAUSE: Final = 10  # seconds until the browser comes again


def ask(
    visit: WalletVisit, payer: WalletAddress, *, limits: Limits | None, finish_uri: str
) -> tuple[Grant, str]:
    """Ask for the grant that the payer approves (C6); return it with the page of the approval.

    With a receiver and a debit as its limits it can pay nothing else; without limits it can only
    read payments. Raises open_payments errors.
    """
    nonce = new_nonce(visit.services.random_bytes)
    pending = visit.client.request_payment_grant(
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


def claim(services: Services, record: R) -> R:
    """Take the lease on the continuation of the record's grant (W5).

    A check for money from outside may come first; another approval or claim may not. Raises
    StaleRecord with the winner, and IllegalTransition.
    """

    def claimed(current: R) -> Change[R]:
        if current.grant != record.grant or current.phase is not None:
            raise StaleRecord(current)
        now = services.clock.now()  # of the claim that is written, not of one that lost its race
        return change(
            services,
            current,
            Event.APPROVAL_CLAIMED,
            lease_until=now + LEASE,
            look_at=current.look_at or now + SEND_WITHIN + CHECK_AFTER,  # as W6, which leaves it
        )

    return write_decided(services, record, claimed)


def redeem(
    visit: WalletVisit,
    grant: Grant,
    interact_ref: str,
    *,
    payer: WalletAddress,
    limits: Limits | None,
) -> AccessToken:
    """Redeem the interact_ref (C7), in spite of stumbles. Raises open_payments errors."""
    return in_spite_of_stumbles(
        visit,
        lambda: visit.client.continue_grant(
            payer, grant.continuation, interact_ref=interact_ref, limits=limits
        ),
    )


def in_spite_of_stumbles(visit: WalletVisit, call: Callable[[], T]) -> T:
    """Make a call that an approval depends on; after a stumble again, while the visit has time.

    Raises open_payments errors.
    """
    clock = visit.services.clock
    while True:
        try:
            return call()
        except op.OpenPaymentsError as error:
            too_fast = isinstance(error, op.Refused) and error.reason is op.Reason.TOO_FAST
            pause = TOO_FAST_PAUSE if too_fast else STUMBLE_PAUSE
            if (
                not stumbled(error)
                or clock.now() + timedelta(seconds=pause) > visit.deadline - ROOM
            ):
                raise
            clock.sleep(pause)


def stumbled(error: op.OpenPaymentsError) -> bool:
    """Return whether the call may be made again after this error: the interact_ref may be valid.

    It may if no answer came, the server failed or was busy, or could not read our keys. If it was
    redeemed and the answer is lost, the next redemption is refused, and nothing is worse.
    """
    if isinstance(error, op.Refused):
        return error.of_key or error.reason in (op.Reason.TOO_FAST, op.Reason.BUSY)
    return not isinstance(error, op.UntrustedAnswer)


def kept_until(services: Services, approve_until: datetime | None) -> datetime | None:
    """Return until when an approval is kept that the wallet could not take just now.

    `approve_until` is when it ends already, if that is known. None if no time is left to ask again:
    then it is lost.
    """
    now = services.clock.now()
    until = min(approve_until or now + KEPT_FOR, now + KEPT_FOR)
    return until if now + timedelta(seconds=KEPT_PAUSE) < until else None


def cancel(visit: WalletVisit, auth_server: str, grant: Grant) -> None:
    """Cancel a grant that was given up, best effort: nothing depends on it."""
    with contextlib.suppress(op.OpenPaymentsError):
        visit.client.cancel_grant(auth_server, grant.continuation)
