"""Prepare a payment from the wallet address that the customer gives (W1 to W4, C1 to C6).

Nothing here can move money. After a failure the session is `open` again, with the reason, and the
customer can try again. If the session already has an incoming payment, the incoming payment is read
first, and used again unless it was paid or closed. If the customer's wallet rejects it as receiver,
it is read once more. domain/session/transitions.py describes the writes (W) and calls (C).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from checkout.domain.ground.errors import (
    AmountTooSmallForWallet,
    CheckoutError,
    MerchantWalletError,
    PaymentInProgress,
    RateLimited,
    SessionBusy,
    SessionUnexpectedState,
    WalletInvalid,
    WalletUnavailable,
    WalletUnreachable,
)
from checkout.domain.ground.limits import SUBMISSION
from checkout.domain.ground.providers import NO_SUCH_WALLET
from checkout.domain.ground.typed_address import NotAnAddress, wallet_url
from checkout.domain.merchant.reach import Effect, allows
from checkout.domain.merchant.record import Merchant
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import (
    FENCE,
    INCOMING_PAYMENT_GRACE,
    IncomingPaymentRef,
    Problem,
)
from checkout.domain.payment.machine import IllegalTransition
from checkout.domain.session.record import (
    SUBMISSIONS_MAX,
    SUBMISSIONS_WINDOW,
    Session,
    Status,
)
from checkout.flows import limits, merchants
from checkout.flows.payment import approval, instruct, proof, sealed
from checkout.flows.payment.wallet_calls import WalletCalls
from checkout.flows.payment.writes import change, commit, move
from checkout.flows.session import unsolicited_payments
from checkout.flows.session.lookup import apply_clock, load
from checkout.ports import StaleRecord
from checkout.services import PayServices
from open_payments import errors as op
from open_payments.interaction import Limits
from open_payments.models import Quote, WalletAddress
from open_payments.protocol import OpenPayments
from open_payments.urls import authority

# For all calls together, because the customer's wallet decides how long each call takes.
DEADLINE: Final = timedelta(seconds=12)
LEASE: Final = timedelta(seconds=45)  # outlives any process that may still be working


def submit_wallet(
    services: PayServices, session_id: str, typed: str, *, client: str | None = None
) -> Session:
    """Prepare the payment from the wallet address that the customer `typed`.

    `client` is the customer's network address. Returns the session, which awaits approval and has a
    quote and an interact URL (the wallet's page for the approval). If its incoming payment was paid
    from outside meanwhile, the session is completed or processing instead.

    Raises WalletInvalid, WalletUnreachable, WalletUnavailable, AmountTooSmallForWallet and
    MerchantWalletError; after one of these, the session is open again if W1 was written. Also
    raises SessionBusy, SessionUnexpectedState, PaymentInProgress, RateLimited and ResourceMissing;
    after one of these, nothing has changed.
    """
    url = address_in(services, typed)
    session = apply_clock(services, load(services, session_id))
    if session.lacks_details and session.status_at(services.clock.now()) is Status.OPEN:
        raise SessionUnexpectedState(
            "The shop asks for details of the customer. Give these details before the wallet."
        )
    merchant = _paid_to(services, session)
    if not allows(merchant, Effect.CUSTOMER):
        raise MerchantWalletError("The operator of this checkout has suspended the shop's sales.")
    session = _claim(services, session, url, client, typed, merchant)
    try:
        return _prepare(WalletCalls.begin(services, merchant, within=DEADLINE), session, url)
    except StaleRecord as stale:  # our lease lapsed, or the merchant ended the session meanwhile
        raise refusal(stale.current, services.clock.now()) from None
    except IllegalTransition as illegal:  # time ran out meanwhile
        raise refusal(apply_clock(services, illegal.record), services.clock.now()) from None
    except CheckoutError as error:
        _give_up(services, session, _problem(error), error.__cause__)
        raise
    except BaseException:
        _give_up(services, session, Problem.PREPARATION_INTERRUPTED)
        raise


def address_in(services: PayServices, typed: str) -> str:
    """Return the URL of the wallet address that a customer `typed`. Raises WalletInvalid."""
    try:
        return wallet_url(typed, allow_ports=services.allow_loopback)
    except NotAnAddress as error:
        raise WalletInvalid(
            str(error), param="wallet_address", mistake=error.mistake, character=error.character
        ) from None


def _paid_to(services: PayServices, session: Session) -> Merchant:
    """Return the merchant, with the client and wallet that created the session's incoming payment.

    Only the client that created an incoming payment can read it, at the wallet where it was
    created. Without an incoming payment, the returned merchant has the present client and wallet.
    Raises ResourceMissing, Unavailable.
    """
    if session.incoming_payment is not None:
        return merchants.of(services.merchants, session)
    return merchants.get(services.merchants, session.merchant)


def refusal(session: Session, now: datetime) -> CheckoutError:
    """Return the error for a wallet address submitted to `session` in its present state."""
    status = session.status_at(now)
    if session.payment_in_flight or session.phase is not None:
        return PaymentInProgress("A payment for this session is being confirmed.")
    if status is Status.PREPARING:
        return SessionBusy("This session is being prepared by another request; try again shortly.")
    if status in (Status.OPEN, Status.AWAITING_APPROVAL):  # the caller's lease has lapsed
        return SessionBusy("Another request has changed this session meanwhile; try again.")
    return SessionUnexpectedState(
        f"The session is {status}; a wallet can be submitted only while it is open or "
        "awaiting_approval."
    )


def _claim(
    services: PayServices,
    session: Session,
    url: str,
    client: str | None,
    typed: str,
    merchant: Merchant,
) -> Session:
    """Take the lease on the preparation (W1), so that only this process prepares.

    The same write removes an earlier approval, and stores the number of the merchant's client and
    wallet (`identity`), before the first call to a wallet.
    """
    now = services.clock.now()
    recent = tuple(at for at in session.submissions if now - at < SUBMISSIONS_WINDOW)
    try:
        claim = change(
            services,
            session,
            Event.WALLET_SUBMITTED,
            lease_until=now + LEASE,
            look_at=now + LEASE,
            submissions=(*recent, now),
            typed=typed,
            identity=merchant.identity or None,
        )
    except IllegalTransition:
        raise refusal(session, now) from None
    if len(recent) >= SUBMISSIONS_MAX:
        wait = SUBMISSIONS_WINDOW - (now - recent[0])
        raise RateLimited(
            "Too many wallet submissions for this session; wait a little.",
            retry_after=int(wait.total_seconds()) + 1,
        )
    limits.admit_work(services, SUBMISSION, client, provider=authority(url))
    try:
        return commit(services, claim)
    except StaleRecord as stale:
        raise refusal(stale.current, services.clock.now()) from None


def _prepare(calls: WalletCalls, session: Session, url: str) -> Session:
    session = _check_incoming_payment(calls, session)
    if session.status is not Status.PREPARING:
        return session
    if (session.identity or 0) != calls.merchant.identity:
        calls = calls.of(merchants.of(calls.services.merchants, session))
    wallet = resolve(calls.client, url)
    session = _ensure_incoming_payment(calls, session, wallet)
    assert session.customer is not None
    assert session.incoming_payment is not None
    try:
        quote = instruct.request_quote(
            calls, session.customer, receiver=session.incoming_payment.id, receive=session.receive
        )
    except op.OpenPaymentsError as error:
        if isinstance(error, op.Refused) and error.reason is op.Reason.INVALID_RECEIVER:
            session = _paid_meanwhile(calls, session)
            if session.status is not Status.PREPARING:
                return session
        raise quote_error(error) from error
    session = _store(calls, session, quote=quote)  # W3
    return _request_approval(calls, session, wallet, quote)


def resolve(client: OpenPayments, url: str) -> WalletAddress:
    """Read the wallet address's document (C1). After this, the document's `id` is the address used.

    Raises WalletInvalid, WalletUnreachable.
    """
    try:
        return client.get_wallet_address(url)
    except op.BadRedirect:
        message = "This wallet address redirects too often, or to an address that is not usable."
    except op.UntrustedAnswer:
        message = "There is no Open Payments wallet at this address."
    except op.NoSuchHost:
        message = "There is no wallet at this address: no such host exists."
    except op.Refused as refused:
        if refused.reason is op.Reason.BUSY:
            raise WalletUnreachable(
                "The wallet provider is busy; try again shortly.", param="wallet_address"
            ) from None
        if refused.status not in NO_SUCH_WALLET:
            raise WalletUnreachable(
                f"The wallet provider refused to answer this checkout ({refused.status}).",
                param="wallet_address",
                refused=True,
            ) from refused
        message = "The wallet provider does not know this wallet address."
    except op.OpenPaymentsError:
        raise WalletUnreachable(
            "The wallet provider could not be reached.", param="wallet_address"
        ) from None
    raise WalletInvalid(message, param="wallet_address")


def _check_incoming_payment(calls: WalletCalls, session: Session) -> Session:
    """Check an incoming payment that was used before, which may have been paid or closed since.

    If money has arrived, returns the session completed or processing. If the incoming payment is
    closed without money, raises MerchantWalletError until it has been closed for the time FENCE,
    because money can still arrive until then. After that time, removes the incoming payment from
    the session, so that a new one is created with the merchant's present client and wallet. If the
    incoming payment cannot be read, it is used again, because the quote shows whether it can be
    paid.
    """
    if session.incoming_payment is None:
        return session
    try:
        seen = proof.read(calls, session)
    except op.OpenPaymentsError:
        return session
    if seen.received > 0:
        return unsolicited_payments.found(calls, session, seen)
    if not seen.closed:
        return session
    if session.closed_at is None:
        session = _store(calls, session, closed_at=calls.services.clock.now())
    if session.closed_at is None or seen.begun_at < session.closed_at + FENCE:
        raise MerchantWalletError(
            "The shop's wallet provider has closed the incoming payment. Try again in a minute."
        )
    now = merchants.get(calls.services.merchants, session.merchant)
    identity = now.identity or None
    return _store(calls, session, incoming_payment=None, closed_at=None, identity=identity)


def _paid_meanwhile(calls: WalletCalls, session: Session) -> Session:
    """Return the session completed or processing if its incoming payment has received money.

    This read is necessary because a customer's wallet also rejects an incoming payment as receiver
    if somebody has just paid it from outside.
    """
    try:
        seen = proof.read(calls, session)
    except op.OpenPaymentsError:
        return session
    return unsolicited_payments.found(calls, session, seen)


def _ensure_incoming_payment(
    calls: WalletCalls, session: Session, wallet: WalletAddress
) -> Session:
    """Store the customer's wallet. Create an incoming payment if there is none (C2, C3, W2)."""
    customer = replace(wallet, public_name=None)  # the name is not shown anywhere
    if session.incoming_payment is not None:
        return _store(calls, session, customer=customer)
    return _store(calls, session, customer=customer, incoming_payment=_create(calls, session))


def _create(calls: WalletCalls, session: Session) -> IncomingPaymentRef:
    expires_at = session.expires_at + INCOMING_PAYMENT_GRACE
    try:
        created = calls.at_merchant(
            lambda token: calls.client.create_incoming_payment(
                calls.merchant.resource_server, token, amount=session.receive, expires_at=expires_at
            )
        )
    except op.OpenPaymentsError as error:
        if isinstance(error, op.Refused) and error.of_key:
            raise _key_refused() from error
        raise MerchantWalletError(
            "The shop's wallet provider is not available right now."
        ) from error
    # The provider may have set an earlier expiry, so the expiry in its answer is stored.
    return IncomingPaymentRef(id=created.id, expires_at=created.expires_at or expires_at)


def quote_error(error: op.OpenPaymentsError) -> CheckoutError:
    """Return the error to show to the customer after a failed quote."""
    if isinstance(error, op.NotSent):
        return WalletUnreachable(
            "The wallet provider could not be reached.", param="wallet_address"
        )
    if isinstance(error, op.Refused):
        if error.reason is op.Reason.AMOUNT_TOO_SMALL:
            return AmountTooSmallForWallet(
                "The amount is too small for this wallet to send.", param="wallet_address"
            )
        if error.of_key:
            return _key_refused()
        if error.reason is op.Reason.INVALID_RECEIVER:
            return _not_connected()
    return WalletUnavailable(
        "The wallet provider cannot prepare this payment right now.", param="wallet_address"
    )


def _key_refused() -> MerchantWalletError:
    return MerchantWalletError("The shop's wallet keys could not be verified right now.")


def _not_connected() -> WalletUnavailable:
    return WalletUnavailable(
        "This wallet cannot pay this shop: the two providers are not connected.",
        param="wallet_address",
    )


def _request_approval(
    calls: WalletCalls, session: Session, wallet: WalletAddress, quote: Quote
) -> Session:
    """Request the grant that the customer approves (C6), and store the grant (W4).

    The grant is limited to this receiver and to the quoted debit, so it allows no other payment.
    """
    services = calls.services
    assert session.incoming_payment is not None
    try:
        grant, page = approval.ask(
            calls,
            wallet,
            limits=Limits(receiver=session.incoming_payment.id, debit_amount=quote.debit),
            finish_uri=f"{services.base_url}/pay/{session.id}/grant/callback",
        )
    except op.OpenPaymentsError as error:
        raise quote_error(error) from error
    return move(
        services,
        session,
        Event.PREPARED,
        grant=sealed.seal_grant(services.vault, session.id, grant),
        interact_url=page,
    )


def _store(calls: WalletCalls, session: Session, **references: Any) -> Session:
    """Store an external reference as soon as it exists (W2, W3)."""
    return move(calls.services, session, Event.REFERENCE_STORED, **references)


def _problem(error: CheckoutError) -> Problem:
    try:
        return Problem(error.code)
    except ValueError:
        return Problem.PREPARATION_INTERRUPTED


def note_of(problem: Problem, error: BaseException | None) -> str:
    """Return a failure's note for the history: the problem, then the provider's answer.

    The note has the whole answer only if the provider refused the merchant's key. If the provider
    refused to show a wallet address, the note has the HTTP status instead. For other errors, the
    note has the type of the error.
    """
    if isinstance(error, op.Refused) and error.of_key:
        return f"{problem.value}: {error.reason.value} ({error.answered})"
    if isinstance(error, op.Refused) and problem is Problem.WALLET_UNREACHABLE:
        return f"{problem.value}: refused with {error.status}"
    return problem.value if error is None else f"{problem.value}: {type(error).__name__}"


def _give_up(
    services: PayServices, claimed: Session, problem: Problem, cause: BaseException | None = None
) -> None:
    """Open the session again if this process still has the lease (W4'). Never raises.

    Without the lease, nothing is written, because another process has taken the session over and
    decided it, or the sweep decides later.
    """
    try:
        session = services.sessions.get(claimed.id)
        if session is None or session.lease_until != claimed.lease_until:
            return
        note = note_of(problem, cause)
        move(services, session, Event.PREPARATION_FAILED, note=note, problem=problem)
    except (CheckoutError, StaleRecord, IllegalTransition):
        return  # the lease lapses, and the sweep or the next visit opens the session again
