"""The pages on which to request a refund, see its price, approve it in the wallet, or cancel it.

If the customer's wallet cannot accept a refund, the shop can send the customer a link to a page
that asks for another wallet. A refund can also be paid from the refund budget, an amount a month
that the merchant has approved in advance. The first part of this module has the texts about
refunds, which the page of the transaction also uses.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Response
from pydantic import Field

from checkout.domain.ground.errors import CheckoutError, PermissionMissing
from checkout.domain.ground.money import from_minor_units
from checkout.domain.ground.typed_amount import typed_amount
from checkout.domain.merchant import doors
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import Actor, Right
from checkout.domain.payment.machine import HistoryEntry
from checkout.domain.payment.mandate import MandateEvent, MandateStatus
from checkout.domain.refund.record import (
    ELSEWHERE_MAX,
    AmountMode,
    Reason,
    Refund,
    RefundEvent,
    RefundProblem,
    RefundStatus,
)
from checkout.flows.idempotency import Reserve
from checkout.flows.refund import budget_request
from checkout.flows.refund import request as refunds
from checkout.flows.refund.request import NewRefund
from checkout.flows.session import lookup
from checkout.pages import callback_of
from checkout.ports import StaleRecord
from checkout.services import DashboardServices
from dashboard.dependencies import Done, Form, Page, PageRequest
from dashboard.forms import OR_NONE, Fields, Text, message
from dashboard.rendering import page, see, wait_page
from dashboard.routing import PageRouter
from dashboard.transaction import transaction_page
from dashboard.view import plain, readable
from open_payments.models import Amount

STATUS: Final[Mapping[RefundStatus, str]] = {
    RefundStatus.NEEDS_APPROVAL: "Waiting for your approval",
    RefundStatus.SENDING: "Sending",
    RefundStatus.SUCCEEDED: "Refunded",
    RefundStatus.FAILED: "Failed, partly sent",
    RefundStatus.CANCELED: "Canceled",
    RefundStatus.PAID_ELSEWHERE: "Paid back elsewhere",
}
# The CSS class of the badge, which determines the badge's color.
BADGE: Final[Mapping[RefundStatus, str]] = {
    RefundStatus.NEEDS_APPROVAL: "warn",
    RefundStatus.SENDING: "processing",
    RefundStatus.SUCCEEDED: "completed",
    RefundStatus.FAILED: "bad",
    RefundStatus.CANCELED: "canceled",
    RefundStatus.PAID_ELSEWHERE: "completed",
}
PLANNED: Final = ("To be sent", "processing")
PROBLEM: Final[Mapping[RefundProblem, str]] = {
    RefundProblem.CUSTOMER_WALLET_UNREACHABLE: "The customer's wallet did not answer.",
    RefundProblem.CUSTOMER_WALLET_REFUSED: "The customer's wallet refused the money.",
    RefundProblem.MERCHANT_WALLET_ERROR: "Your wallet did not answer, or refused the request.",
    RefundProblem.APPROVAL_UNUSABLE: "Your last approval could not be used. Nothing was sent.",
    RefundProblem.PRICE_CHANGED: "The price had risen above what you approved. Nothing was sent. "
    "Look at the new price.",
    RefundProblem.OVER_BUDGET: "This refund costs more than your refund budget has left this "
    "month.",
    RefundProblem.TOO_DEAR: "This refund costs more above its amount than your refund budget "
    "allows without your approval.",
    RefundProblem.NO_BUDGET: "Your refund budget has ended, or has to be approved again.",
    RefundProblem.OTHER_WALLET: "This refund goes to a different wallet than the one that paid, so "
    "it needs your approval.",
    RefundProblem.NOT_SENT: "Your wallet did not pay. Perhaps it did not have enough money, or the "
    "customer's wallet did not accept the payment. Nothing was sent.",
    RefundProblem.SENT_IN_PART: "Only a part was sent. The rest can be refunded again.",
    RefundProblem.NOT_APPROVED: "Nobody approved it within 30 days.",
}
_PROBLEMS: Final = frozenset[str](RefundProblem)
STEP: Final[Mapping[str, str]] = {
    RefundEvent.REQUESTED: "The refund was requested",
    RefundEvent.NOTED: "It was noted that the customer was paid back elsewhere",
    RefundEvent.APPROVAL_ASKED: "Your wallet was asked for your approval",
    RefundEvent.APPROVAL_CLAIMED: "You came back from your wallet with an approval",
    RefundEvent.APPROVAL_KEPT: "Your wallet could not process the approval at that moment; the "
    "approval was kept",
    RefundEvent.APPROVAL_LOST: "The approval could not be used",
    RefundEvent.CLAIM_OFFERED: "A link was created with which the customer can name another wallet",
    RefundEvent.CLAIMED: "The customer has named another wallet",
    RefundEvent.BUDGET_CHOSEN: "The payment from your refund budget was scheduled",
    RefundEvent.BUDGET_WAITS: "Another attempt to pay it from your refund budget was scheduled",
    RefundEvent.BUDGET_PASSED: "It could not be paid from your refund budget",
    RefundEvent.BUDGET_INTENDED: "The payment was sent to your wallet, from your refund budget",
    RefundEvent.PAYMENT_INTENDED: "The payment was sent to your wallet",
    RefundEvent.PAYMENT_CREATED: "Your wallet accepted the payment",
    RefundEvent.ROTATION_STARTED: "Started to renew the access to the payment",
    RefundEvent.TOKEN_RENEWED: "The access to the payment was renewed",
    RefundEvent.TOKEN_LOST: "Your wallet has ended the access to the payment",
    RefundEvent.NOTHING_SENT: "It was proven that nothing was sent",
    RefundEvent.SUCCEEDED: "Refunded",
    RefundEvent.FAILED: "Ended after a part was sent",
    RefundEvent.CANCEL_REQUESTED: "The refund was canceled",
    RefundEvent.EXPIRY_PASSED: "The refund was canceled, because nobody approved it",
    RefundEvent.HELD: "The service was restored from a copy, and this refund was held",
    RefundEvent.METADATA_CHANGED: "Its metadata was changed",
    RefundEvent.ERASED: "The customer's wallet was erased on request",
}
BAD: Final = frozenset[str](
    {
        RefundEvent.APPROVAL_LOST,
        RefundEvent.BUDGET_PASSED,
        RefundEvent.TOKEN_LOST,
        RefundEvent.NOTHING_SENT,
        RefundEvent.FAILED,
    }
)
WAITING: Final = (
    "The payment may have been sent. We ask your wallet until it shows the result. If it shows no "
    "payment, this takes up to 15 minutes. Nothing is ever sent twice."
)
REDEEMING: Final = (
    "You have approved this refund, and we are asking your wallet to pay it. If nothing is sent "
    "within a minute, you can approve it again here."
)
TO_BE_PAID: Final = "This refund will be paid from your refund budget within a minute or two."
TRIED_AGAIN: Final = (
    "A wallet did not answer. The refund is tried again from your refund budget for a day and a "
    "half, and then waits for your approval. You can also approve or cancel it now."
)
READ_AGAIN: Final = (
    "Your wallet has ended our access to this payment, so we cannot see its result. Approve once "
    "more. This approval only allows us to read your payments, and pays nothing."
)
UNCONFIRMED: Final = (
    "Your wallet has sent it. The customer's wallet has not confirmed that it arrived."
)
# For each state of the budget: the text, the class of the badge, and an explanation.
BUDGET: Final[Mapping[MandateStatus, tuple[str, str, str]]] = {
    MandateStatus.PENDING: (
        "Not approved yet",
        "",
        "Each refund waits for an approval in your wallet. With a budget, refunds are paid at "
        "once.",
    ),
    MandateStatus.ACTIVE: (
        "Active",
        "completed",
        "Refunds are paid from the budget, without an approval for each one. A refund that exceeds "
        "the budget, or that costs more above its amount than the budget allows, waits for its own "
        "approval.",
    ),
    MandateStatus.LOST: (
        "Needs a new approval",
        "attention",
        "The connection was lost while the access to your wallet was renewed, so you have to "
        "approve the budget again. Until then, each refund waits for its own approval.",
    ),
    MandateStatus.REVOKED: (
        "Needs a new approval",
        "attention",
        "Your wallet has ended the access. Until you approve it again, each refund waits for its "
        "own approval.",
    ),
    MandateStatus.ENDED: (
        "Ended",
        "canceled",
        "You have ended the budget. Each refund waits for an approval in your wallet.",
    ),
}
SILENT: Final = (
    "Your wallet has not answered for a day. Refunds are tried again for a while, and then wait "
    "for your approval."
)
BUDGET_STEP: Final[Mapping[str, str]] = {
    MandateEvent.BEGUN: "The setup of the budget began",
    MandateEvent.REQUESTED: "Your server asked for a budget",
    MandateEvent.APPROVAL_ASKED: "Your wallet was asked for your approval",
    MandateEvent.APPROVAL_CLAIMED: "You came back from your wallet with an approval",
    MandateEvent.APPROVAL_KEPT: "Your wallet could not process the approval at that moment; the "
    "approval was kept",
    MandateEvent.APPROVAL_LOST: "The approval could not be used",
    MandateEvent.APPROVED: "You approved it",
    MandateEvent.ROTATED: "The access to your wallet works again",
    MandateEvent.LOST: "The access to your wallet was lost",
    MandateEvent.REVOKED: "Your wallet has ended the access",
    MandateEvent.ENDED: "The budget was ended",
}
BUDGET_BAD: Final = frozenset[str](
    {MandateEvent.APPROVAL_LOST, MandateEvent.LOST, MandateEvent.REVOKED}
)


def status_of(refund: Refund) -> tuple[str, str]:
    """Return the text of the refund's status, and the class of its badge."""
    if refund.status is RefundStatus.NEEDS_APPROVAL and not refund.approval_waits:
        return PLANNED
    return STATUS[refund.status], BADGE[refund.status]


def steps_of(
    history: Sequence[HistoryEntry], words: Mapping[str, str], bad: Container[str]
) -> list[tuple[datetime, str, str | None, bool]]:
    """Return the time, text and note of each step of a history, and whether the step is bad.

    If a note is the name of a problem, the text of that problem is returned instead.
    """
    return [
        (
            each.at,
            words.get(each.event, each.event.replace("_", " ")),
            PROBLEM[RefundProblem(each.note)] if each.note in _PROBLEMS else each.note,
            each.event in bad,
        )
        for each in history
    ]


router = PageRouter()


class RefundForm(Fields):
    """A refund. No amount means all that is left. `how` is "now" if the budget is to pay it."""

    amount: Text
    mode: Annotated[AmountMode | None, OR_NONE, message("Choose one of the form's values.")]
    reason: Annotated[Reason | None, OR_NONE, message("Choose one of the form's values.")]
    wallet: Text
    how: str


class ElsewhereForm(Fields):
    """The text that describes how the customer was paid back."""

    how: Annotated[
        Text,
        Field(min_length=1, max_length=ELSEWHERE_MAX),
        message(
            f"Say how you have paid your customer back, in at most {ELSEWHERE_MAX} characters."
        ),
    ]


def _page(
    request: PageRequest,
    refund_id: str,
    *,
    alert: str | None = None,
    link: str | None = None,
    status: int = 200,
) -> Response:
    services, key = request.services, request.key
    refund = refunds.get(services, key, refund_id)
    if refund.payment_in_flight:
        from checkout.flows.refund import reconcile

        try:
            refund = reconcile.step(services.paying(), refund)
        except StaleRecord:
            refund = refunds.get(services, key, refund_id)
    return page(
        request.http,
        "refund.html",
        status=status,
        section="",
        alert=alert,
        link=link,
        refund=refund,
        r=_shown(services, key, refund),
    )


@router.form(
    "/transactions/{session_id}/refund",
    Door(
        Right.REFUND,
        "sends money to a customer from the budget, without an approval",
        doors.COUNTED,
    ),
    again=transaction_page,
)
async def request_refund(request: Form, session_id: str) -> Response:
    """Request a refund, then either pay it from the budget or request its price."""
    done = _requested(request, _asked(request, session_id))
    refund = done.made
    if refund is None:  # the form was sent twice, and the first request does the rest
        return see(request.visit, done.place)
    if refund.budget_at is not None:
        from checkout.flows.refund import budget

        refund = budget.pay_now(request.services.paying(), refund)
    # If the price is above the most that the budget pays without a person, the page shows the price
    # and asks the merchant to confirm it. So no new price is requested.
    if refund.approval_waits and refund.problem is not RefundProblem.TOO_DEAR:
        return _prepared(request, refund.id)
    return see(request.visit, done.place)


@router.form(
    "/transactions/{session_id}/paid_elsewhere",
    Door(Right.REFUND, "lowers what can be refunded", doors.COUNTED),
    again=transaction_page,
)
async def note_paid_elsewhere(request: Form, session_id: str) -> Response:
    """Note that the customer was paid back by other means."""
    asked = _asked(request, session_id)
    asked = replace(asked, elsewhere=request.read(ElsewhereForm).how)
    return see(request.visit, _requested(request, asked).place)


@router.page("/refunds/{refund_id}", Door(Right.READ, "customers' wallets"))
async def one_refund(request: Page, refund_id: str) -> Response:
    """Show the refund. If it was sent and a check is due, check it first."""
    return _page(request, refund_id)


@router.form(
    "/refunds/{refund_id}/prepare",
    Door(Right.REFUND, "asks the shop's wallet for an approval", doors.OWN),
)
async def prepare(request: Form, refund_id: str) -> Response:
    """Request the price, and the address of the wallet's page for approving the refund."""
    return _prepared(request, refund_id)


@router.form(
    "/refunds/{refund_id}/budget",
    Door(Right.OWN, "sends money to a customer, without a limit"),
    again=_page,
)
async def pay_from_budget(request: Form, refund_id: str) -> Response:
    """Pay the refund from the budget, at the price that the page has shown."""
    from checkout.flows.refund import budget

    budget.choose(request.services.paying(), request.key, refund_id)
    return see(request.visit, f"/refunds/{refund_id}")


@router.form(
    "/refunds/{refund_id}/cancel",
    Door(Right.REFUND, "withholds a refund from its customer, or removes a note", doors.OWN),
    again=_page,
)
async def cancel(request: Form, refund_id: str) -> Response:
    refund = refunds.cancel(request.services, request.key, refund_id)
    request.note(Action.REFUND_CANCELED, refund.id)
    return see(request.visit, f"/refunds/{refund_id}")


@router.form(
    "/refunds/{refund_id}/claim",
    Door(
        Right.REFUND, "lets anybody with the link choose the wallet that gets a refund", doors.OWN
    ),
    again=_page,
)
async def offer_claim(request: Form, refund_id: str) -> Response:
    """Show a new link to the page on which the customer names another wallet."""
    from checkout.flows.refund import alternative_wallet  # this import loads the wallets' client

    offer = alternative_wallet.offer(request.services, request.key, refund_id)
    request.note(Action.CLAIM_OFFERED, refund_id)
    return _page(request, refund_id, link=offer.link)


@router.page(
    "/refunds/{refund_id}/callback",
    Door(Right.REFUND, "sends money to a customer, as approved in the shop's wallet", doors.OWN),
)
async def callback(request: Page, refund_id: str) -> Response:
    """Continue the approval with the parameters of the redirect from the merchant's wallet."""
    from checkout.flows.refund import approve  # this import loads the wallets' client

    services, key = request.services, request.key
    refunds.get(services, key, refund_id)
    returned = callback_of(request.http)
    if returned.result is not None:  # unsigned, so anybody may have sent it
        return _page(request, refund_id, alert="The refund was not approved.")
    done = approve.finish(
        services.paying(),
        key,
        refund_id,
        interact_ref=returned.interact_ref,
        presented_hash=returned.hash,
    )
    if done.wait_seconds:
        return wait_page(request.http, done.wait_seconds)
    return see(request.visit, f"/refunds/{refund_id}")


def _requested(request: PageRequest, asked: NewRefund) -> Done[Refund]:
    """Request a refund, or store a note of a refund by other means, only once for each form."""

    def act(reserve: Reserve[Refund] | None) -> Refund:
        refund = refunds.create(request.services, request.key, asked, reserve)
        action = Action.PAID_ELSEWHERE if refund.noted else Action.REFUND_REQUESTED
        request.note(action, refund.id)
        return refund

    return request.once(act, lambda refund: f"/refunds/{refund.id}")


def _prepared(request: PageRequest, refund_id: str) -> Response:
    from checkout.flows.refund import approve

    try:
        approve.prepare(request.services.paying(), request.key, refund_id)
    except CheckoutError as error:
        # The refund is already stored. So the problem is shown on its page, not on the form's.
        status = 403 if isinstance(error, PermissionMissing) else 200
        return _page(request, refund_id, alert=error.message, status=status)
    return see(request.visit, f"/refunds/{refund_id}")


def _asked(request: PageRequest, session_id: str) -> NewRefund:
    """Return the refund as typed into the form. Raise ParameterInvalid, ResourceMissing."""
    session = lookup.get(request.services, request.key, session_id)
    typed, amount = request.read(RefundForm), None
    if typed.amount:
        scale = session.receive.asset_scale
        amount = typed_amount(
            typed.amount, currency=session.currency, wallet_scale=scale, param="amount"
        )
    return NewRefund(
        session=session.id,
        amount=amount,
        mode=typed.mode,
        reason=typed.reason,
        wallet=typed.wallet or None,
        by_budget=typed.how == "now",
    )


def _shown(services: DashboardServices, key: Actor, refund: Refund) -> dict[str, Any]:
    """Return what the page shows in addition to the fields of the refund.

    `approval` is the wallet's page on which the merchant approves, as long as an approval is
    awaited. `budget` is the amount that would be left of this month's budget after the refund, if
    the budget can pay the refund's price. `claim` is the last day of a link with which the customer
    can name another wallet, if such a link can be created. `held` is the day on which the refund
    was held, that is, made to wait for a person because the tables were restored. `mine` is true if
    the person who looks at the page can change the refund.
    """
    now = services.clock.now()
    ready = refund.approve_until is not None and now < refund.approve_until
    waits = refund.approval_waits and not refund.lease_live(now)
    status, badge = status_of(refund)
    quote, amount = refund.quote, minor_of(refund, key, refund.amount)
    gets = quote.receive if quote else refund.give
    cost = refund.spent or (quote.debit if quote else None)
    return {
        "amount": amount,
        "badge": badge,
        "status": status,
        "waits": waits,
        "budget": _budget(services, key, refund),
        "approval": refund.interact_url if ready and waits else None,
        "claim": _claim_ends(refund, now),
        "mine": refunds.is_own(key, refund),
        "cost": readable(cost) if cost else None,
        "gets": readable(gets) if gets else None,
        "dearer": quote is not None and quote.debit.value * 10 > refund.cost.value * 11,
        "sent": minor_of(refund, key, refund.sent) if refund.sent else None,
        "held": _day(refund.held_at) if refund.held_at else None,
        "problem": PROBLEM[refund.problem] if refund.problem else None,
        "hint": _hint(refund, now),
        "mode": "The customer gets back what they paid"
        if refund.mode is AmountMode.AS_PAID
        else "It costs you exactly the amount",
        "metadata": [(name, plain(value)) for name, value in refund.metadata.items()],
        "steps": steps_of(refund.history, STEP, BAD),
    }


def _budget(services: DashboardServices, key: Actor, refund: Refund) -> str | None:
    """Return the budget that would be left after the refund; None if it cannot pay the refund."""
    waits = refund.approval_waits and not refund.payment_in_flight and not refund.claimed
    if refund.quote is None or not waits:
        return None
    mandate, debit = budget_request.find(services, key), refund.quote.debit
    if mandate is None or mandate.terms is None or not mandate.active:
        return None
    left = mandate.left(services.clock.now()) - debit.value
    if left < 0 or not debit.same_asset(mandate.terms.limit):
        return None
    return readable(Amount(left, debit.asset_code, debit.asset_scale))


def _claim_ends(refund: Refund, now: datetime) -> str | None:
    """Return the last day of a link for the customer, or None if no link can be created."""
    waits = refund.approval_waits and not refund.payment_in_flight and not refund.lease_live(now)
    return _day(refund.ends_at) if waits and now < refund.ends_at else None


def _day(at: datetime) -> str:
    return f"{at.day} {at:%b %Y}"


def minor_of(refund: Refund, key: Actor, value: int) -> str:
    """Return `value` minor units of the refund's currency as a text for people."""
    scale = key.asset_scale
    return readable(from_minor_units(value, currency=refund.currency, wallet_scale=scale))


def _hint(refund: Refund, now: datetime) -> str | None:
    if refund.lease_live(now):
        return REDEEMING
    if refund.budget_at is not None:
        return TRIED_AGAIN if refund.budget_tries else TO_BE_PAID
    if refund.payment_in_flight:
        return READ_AGAIN if refund.approval_waits else WAITING
    if refund.status is RefundStatus.SUCCEEDED and not refund.confirmed:
        return UNCONFIRMED
    return None
