"""Ask for the payer's approval, verify it, claim it and redeem it once, or cancel it.

The approval is an interactive grant (RFC 9635) with limits.
"""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Final, TypeVar

from checkout.domain.errors import CallbackInvalid
from checkout.domain.ids import new_nonce
from checkout.domain.machine import Change
from checkout.domain.payment import InFlight
from checkout.domain.session_events import Event
from checkout.flows.payment.instruct import CHECK_AFTER, SEND_WITHIN
from checkout.flows.payment.sealed import Grant
from checkout.flows.payment.visit import WalletVisit
from checkout.flows.payment.writes import change, write_decided
from checkout.open_payments import errors as op
from checkout.open_payments import interaction
from checkout.open_payments.limits import Limits
from checkout.open_payments.models import AccessToken, WalletAddress
from checkout.ports.services import Services
from checkout.ports.sessions import StaleSession

R = TypeVar("R", bound=InFlight)

LEASE: Final = timedelta(seconds=45)  # outlives any process that may still be working
TOO_FAST_TRIES: Final = 2
TOO_FAST_PAUSE: Final = 5.0  # extra seconds to wait after `too_fast`


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
    StaleSession with the winner, and IllegalTransition.
    """

    def claimed(current: R) -> Change[R]:
        if current.grant != record.grant or current.phase is not None:
            raise StaleSession(current)
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
    """Redeem the interact_ref (C7). Only "too fast" leaves it valid, so only that is repeated.

    Raises open_payments errors.
    """
    tries = 0
    while True:
        try:
            return visit.client.continue_grant(
                payer, grant.continuation, interact_ref=interact_ref, limits=limits
            )
        except op.Refused as refused:
            tries += 1
            if refused.reason is not op.Reason.TOO_FAST or tries >= TOO_FAST_TRIES:
                raise
            visit.services.clock.sleep(TOO_FAST_PAUSE)


def cancel(visit: WalletVisit, auth_server: str, grant: Grant) -> None:
    """Cancel a grant that was given up, best effort: nothing depends on it."""
    with contextlib.suppress(op.OpenPaymentsError):
        visit.client.cancel_grant(auth_server, grant.continuation)
