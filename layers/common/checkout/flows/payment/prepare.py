"""The customer gives a wallet address: everything up to the approval is prepared (design.md W1 to
W4, C1 to C6).

Nothing here can move money. Any failure puts the session back to `open` with the reason on it, and
the customer may try again; the stored incoming payment is used again unless it was closed or has
expired.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from checkout.domain.errors import (
    AmountTooSmallForWallet,
    CheckoutError,
    MerchantWalletError,
    PaymentInProgress,
    RateLimited,
    ResourceMissing,
    SessionBusy,
    SessionUnexpectedState,
    WalletInvalid,
    WalletUnavailable,
    WalletUnreachable,
)
from checkout.domain.ids import new_nonce
from checkout.domain.merchant import Merchant
from checkout.domain.session import (
    INCOMING_PAYMENT_GRACE,
    SUBMISSIONS_MAX,
    SUBMISSIONS_WINDOW,
    IncomingPaymentRef,
    Problem,
    QuoteRef,
    Session,
    Status,
)
from checkout.domain.transitions import Event, IllegalTransition, advance
from checkout.flows.payment import sealed
from checkout.flows.payment.sessions import clean_up, load, settle
from checkout.flows.wire import as_customer, as_wallet, from_wire, to_wire
from checkout.open_payments import errors as op
from checkout.open_payments import models
from checkout.open_payments.client import Access, OpenPayments
from checkout.open_payments.wallet_address import parse
from checkout.ports.services import PayServices
from checkout.ports.sessions import StaleSession

# API Gateway gives up after 30 s; the lease outlives whoever might still be working (seconds).
DEADLINE: Final = timedelta(seconds=24)
LEASE: Final = timedelta(seconds=45)


@dataclass(frozen=True, slots=True)
class _Work:
    """What the steps of one preparation share."""

    services: PayServices
    client: OpenPayments
    merchant: Merchant


def submit_wallet(services: PayServices, session_id: str, typed: str) -> Session:
    """Prepare the payment from the wallet that the customer `typed`.

    Returns the session awaiting approval, with its quote and interact URL. Raises WalletInvalid,
    WalletUnreachable, WalletUnavailable, AmountTooSmallForWallet, MerchantWalletError (the session
    is open again), SessionBusy, SessionUnexpectedState, PaymentInProgress, RateLimited,
    ResourceMissing (nothing changed).
    """
    try:
        url = parse(typed, allow_ports=services.allow_loopback)
    except ValueError as error:
        raise WalletInvalid(str(error), param="wallet_address") from None
    session = settle(services, load(services, session_id))
    merchant = services.merchants.get(session.merchant)
    if merchant is None:
        raise ResourceMissing("No such checkout session.")
    session = _claim(services, session)
    try:
        client = services.wallets.client(merchant, deadline=services.clock.now() + DEADLINE)
        return _prepare(_Work(services, client, merchant), session, url)
    except StaleSession as stale:  # our lease lapsed, or the merchant ended the session meanwhile
        raise refusal(stale.current, services.clock.now()) from None
    except CheckoutError as error:
        _give_up(services, session, _problem(error))
        raise
    except BaseException:
        _give_up(services, session, Problem.PREPARATION_INTERRUPTED)
        raise


def refusal(session: Session, now: datetime) -> CheckoutError:
    """Why a wallet cannot be submitted to `session` as it is."""
    status = session.status_at(now)
    if session.payment_in_flight or session.phase is not None:
        return PaymentInProgress("A payment for this session is being confirmed.")
    if status is Status.PREPARING:
        return SessionBusy("This session is being prepared by another request; try again shortly.")
    return SessionUnexpectedState(
        f"The session is {status}; a wallet can be submitted only while it is open or "
        "awaiting_approval."
    )


def _claim(services: PayServices, session: Session) -> Session:
    """W1. Takes the lease on the preparation; everything of an earlier approval goes in the same
    write.
    """
    now = services.clock.now()
    recent = tuple(at for at in session.submissions if now - at < SUBMISSIONS_WINDOW)
    try:
        change = advance(
            session,
            Event.WALLET_SUBMITTED,
            now=now,
            writer=new_nonce(services.random_bytes),
            lease_until=now + LEASE,
            submissions=(*recent, now),
        )
    except IllegalTransition:
        raise refusal(session, now) from None
    if len(recent) >= SUBMISSIONS_MAX:
        wait = SUBMISSIONS_WINDOW - (now - recent[0])
        raise RateLimited(
            "Too many wallet submissions for this session; wait a little.",
            retry_after=int(wait.total_seconds()) + 1,
        )
    try:
        claimed = services.sessions.save(change)
    except StaleSession as stale:
        raise refusal(stale.current, services.clock.now()) from None
    clean_up(services, change)
    return claimed


def _prepare(work: _Work, session: Session, url: str) -> Session:
    wallet = _resolve(work.client, url)
    session, fresh = _ensure_incoming_payment(work, session, wallet)
    assert session.incoming_payment is not None
    try:
        quote = request_quote(work.services, work.client, session, session.incoming_payment.id)
    except op.Refused as refused:
        if fresh or refused.reason is not op.Reason.INVALID_RECEIVER:
            raise quote_error(refused) from None
        session = _replace_dead_incoming_payment(work, session)
        quote = _first_quote(work, session)
    except op.OpenPaymentsError as error:
        raise quote_error(error) from None
    session = _store(work, session, quote=quote)  # W3
    return _request_approval(work, session, wallet, quote)


def _resolve(client: OpenPayments, url: str) -> models.WalletAddress:
    """C1. The document's `id` is used from here on, not what was typed."""
    try:
        return client.get_wallet_address(url)
    except op.UntrustedAnswer:
        message = "There is no Open Payments wallet at this address."
    except op.Refused as refused:
        if refused.reason is op.Reason.BUSY:
            raise WalletUnreachable(
                "The wallet provider is busy; try again shortly.", param="wallet_address"
            ) from None
        message = "The wallet provider does not know this wallet address."
    except op.OpenPaymentsError:
        raise WalletUnreachable(
            "The wallet provider could not be reached.", param="wallet_address"
        ) from None
    raise WalletInvalid(message, param="wallet_address")


def _ensure_incoming_payment(
    work: _Work, session: Session, wallet: models.WalletAddress
) -> tuple[Session, bool]:
    """C2, C3, W2. The stored incoming payment while it lives, else a new one; True: it is new."""
    customer = as_customer(wallet)
    stored = session.incoming_payment
    if stored is not None and work.services.clock.now() < stored.expires_at:
        return _store(work, session, customer=customer), False
    return _store(work, session, customer=customer, incoming_payment=_create(work, session)), True


def _create(work: _Work, session: Session) -> IncomingPaymentRef:
    merchant, amount = work.merchant, to_wire(session.receive)
    expires_at = session.expires_at + INCOMING_PAYMENT_GRACE
    try:
        created = work.services.wallets.tokens.use(
            work.client,
            merchant.auth_server,
            Access.INCOMING_PAYMENT,
            lambda token: work.client.create_incoming_payment(
                merchant.resource_server, token, amount=amount, expires_at=expires_at
            ),
        )
    except op.OpenPaymentsError:
        raise MerchantWalletError(
            "The shop's wallet provider is not available right now."
        ) from None
    # The provider may have shortened its life; what it says is what holds.
    return IncomingPaymentRef(id=created.id, expires_at=created.expires_at or expires_at)


def _replace_dead_incoming_payment(work: _Work, session: Session) -> Session:
    """The stored incoming payment takes no money any more: a new one, if it is certain that it
    holds none.
    """
    assert session.incoming_payment is not None
    stored = session.incoming_payment.id
    try:
        seen = work.services.wallets.tokens.use(
            work.client,
            work.merchant.auth_server,
            Access.INCOMING_PAYMENT,
            lambda token: work.client.get_incoming_payment(stored, token),
        )
        alive = not seen.completed or seen.received.value > 0
    except op.Refused as refused:
        alive = refused.reason is not op.Reason.NOT_FOUND
    except op.OpenPaymentsError:
        alive = True
    if alive:
        raise _not_connected()
    return _store(work, session, incoming_payment=_create(work, session))


def _first_quote(work: _Work, session: Session) -> QuoteRef:
    assert session.incoming_payment is not None
    try:
        return request_quote(work.services, work.client, session, session.incoming_payment.id)
    except op.OpenPaymentsError as error:
        raise quote_error(error) from None


def request_quote(
    services: PayServices, client: OpenPayments, session: Session, receiver: str
) -> QuoteRef:
    """C4, C5. What the customer's wallet asks for paying `receiver` in full. Raises open_payments
    errors.
    """
    assert session.customer is not None
    wallet = as_wallet(session.customer)
    quote = services.wallets.tokens.use(
        client,
        wallet.auth_server,
        Access.QUOTE,
        lambda token: client.create_quote(
            wallet, token, receiver=receiver, receive=to_wire(session.receive)
        ),
    )
    return QuoteRef(
        id=quote.id,
        debit=from_wire(quote.debit),
        receive=from_wire(quote.receive),
        expires_at=quote.expires_at,
    )


def quote_error(error: op.OpenPaymentsError) -> CheckoutError:
    """A failed quote in the customer's terms."""
    if isinstance(error, op.NotSent):
        return WalletUnreachable(
            "The wallet provider could not be reached.", param="wallet_address"
        )
    if isinstance(error, op.Refused):
        if error.reason is op.Reason.AMOUNT_TOO_SMALL:
            return AmountTooSmallForWallet(
                "The amount is too small for this wallet to send.", param="wallet_address"
            )
        if error.reason in (op.Reason.CLIENT_UNKNOWN, op.Reason.BAD_SIGNATURE):
            return MerchantWalletError("The shop's wallet keys could not be verified right now.")
        if error.reason is op.Reason.INVALID_RECEIVER:
            return _not_connected()
    return WalletUnavailable(
        "The wallet provider cannot prepare this payment right now.", param="wallet_address"
    )


def _not_connected() -> WalletUnavailable:
    return WalletUnavailable(
        "This wallet cannot pay this shop: the two providers are not connected.",
        param="wallet_address",
    )


def _request_approval(
    work: _Work, session: Session, wallet: models.WalletAddress, quote: QuoteRef
) -> Session:
    """C6, W4. The grant is limited to this receiver and to the quoted debit, so it can never pay
    anything else.
    """
    services = work.services
    assert session.incoming_payment is not None
    nonce = new_nonce(services.random_bytes)
    try:
        pending = work.client.request_payment_grant(
            wallet,
            receiver=session.incoming_payment.id,
            debit=to_wire(quote.debit),
            finish_uri=f"{services.base_url}/pay/{session.id}/grant/callback",
            nonce=nonce,
        )
    except op.OpenPaymentsError as error:
        raise quote_error(error) from None
    grant = sealed.Grant(
        client_nonce=nonce,
        finish_nonce=pending.finish_nonce,
        continuation=pending.continuation,
    )
    return _save(
        work,
        session,
        Event.PREPARED,
        grant=sealed.seal_grant(services.vault, session.id, grant),
        interact_url=pending.interact_url,
    )


def _store(work: _Work, session: Session, **references: Any) -> Session:
    """W2, W3. Each external reference is stored as it comes."""
    return _save(work, session, Event.REFERENCE_STORED, **references)


def _save(work: _Work, session: Session, event: Event, **changes: Any) -> Session:
    services = work.services
    now = services.clock.now()
    try:
        writer = new_nonce(services.random_bytes)
        change = advance(session, event, now=now, writer=writer, **changes)
    except IllegalTransition:  # time ran out meanwhile
        raise StaleSession(settle(services, session)) from None
    return services.sessions.save(change)


def _problem(error: CheckoutError) -> Problem:
    try:
        return Problem(error.code)
    except ValueError:
        return Problem.PREPARATION_INTERRUPTED


def _give_up(services: PayServices, claimed: Session, problem: Problem) -> None:
    """W4'. Back to open, while the lease is still ours; else whoever took over has decided. Never
    raises.
    """
    try:
        session = services.sessions.get(claimed.id)
        if session is None or session.lease_until != claimed.lease_until:
            return
        change = advance(
            session,
            Event.PREPARATION_FAILED,
            now=services.clock.now(),
            writer=new_nonce(services.random_bytes),
            note=problem.value,
            problem=problem,
        )
        services.sessions.save(change)
    except (CheckoutError, StaleSession, IllegalTransition):
        return  # the lease lapses, and the sweep or the next visit opens it
