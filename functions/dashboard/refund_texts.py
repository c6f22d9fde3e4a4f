"""The words of the refunds' pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from checkout.domain.payment.mandate import MandateEvent, MandateStatus
from checkout.domain.refund.record import Refund, RefundEvent, RefundProblem, RefundStatus

STATUS: Final[Mapping[RefundStatus, str]] = {
    RefundStatus.NEEDS_APPROVAL: "Waiting for your approval",
    RefundStatus.SENDING: "Sending",
    RefundStatus.SUCCEEDED: "Refunded",
    RefundStatus.FAILED: "Failed after a part",
    RefundStatus.CANCELED: "Canceled",
    RefundStatus.PAID_ELSEWHERE: "Paid back elsewhere",
}
# The class of the badge, which gives its color.
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
    RefundProblem.MERCHANT_WALLET_ERROR: "Your wallet did not answer, or refused.",
    RefundProblem.APPROVAL_UNUSABLE: "Your last approval could not be used. Nothing was sent.",
    RefundProblem.PRICE_CHANGED: "It had become more expensive than you approved. Nothing was "
    "sent; look at the new price.",
    RefundProblem.OVER_BUDGET: "It is more than your refund budget has left this month.",
    RefundProblem.TOO_DEAR: "It costs more than your refund budget may pay for it without you.",
    RefundProblem.NO_BUDGET: "Your refund budget has ended, or has to be approved again.",
    RefundProblem.OTHER_WALLET: "It goes to another wallet than the one that paid, so your refund "
    "budget did not pay it by itself.",
    RefundProblem.NOT_SENT: "Your wallet did not pay: perhaps there was not enough money in it, or "
    "the customer's wallet did not take it. Nothing was sent.",
    RefundProblem.SENT_IN_PART: "Only a part was sent. The rest can be refunded again.",
    RefundProblem.NOT_APPROVED: "Nobody approved it within 30 days.",
}
_PROBLEMS: Final = frozenset[str](RefundProblem)
STEP: Final[Mapping[str, str]] = {
    RefundEvent.REQUESTED: "The refund was requested",
    RefundEvent.NOTED: "It was noted that the customer was paid back elsewhere",
    RefundEvent.APPROVAL_ASKED: "Your wallet was asked for your approval",
    RefundEvent.APPROVAL_CLAIMED: "You came back from your wallet with an approval",
    RefundEvent.APPROVAL_KEPT: "Your wallet could not take the approval just then; it was kept",
    RefundEvent.APPROVAL_LOST: "The approval could not be used",
    RefundEvent.CLAIM_OFFERED: "A link was made on which the customer names another wallet",
    RefundEvent.CLAIMED: "The customer has named another wallet",
    RefundEvent.BUDGET_CHOSEN: "It is to be paid from your refund budget",
    RefundEvent.BUDGET_WAITS: "It was to be tried again from your refund budget",
    RefundEvent.BUDGET_PASSED: "Your refund budget did not pay it",
    RefundEvent.BUDGET_INTENDED: "The payment was sent to your wallet, from your refund budget",
    RefundEvent.PAYMENT_INTENDED: "The payment was sent to your wallet",
    RefundEvent.PAYMENT_CREATED: "Your wallet accepted the payment",
    RefundEvent.ROTATION_STARTED: "The access to the payment was about to be renewed",
    RefundEvent.TOKEN_RENEWED: "The access to the payment was renewed",
    RefundEvent.TOKEN_LOST: "Your wallet has ended the access to the payment",
    RefundEvent.NOTHING_SENT: "It is certain that nothing was sent",
    RefundEvent.SUCCEEDED: "Refunded",
    RefundEvent.FAILED: "Ended after a part was sent",
    RefundEvent.CANCEL_REQUESTED: "The refund was canceled",
    RefundEvent.EXPIRY_PASSED: "The refund was canceled, because nobody approved it",
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
    "The payment may have been sent. Your wallet is asked until it says what became of it. If it "
    "shows nothing, that takes up to 15 minutes; nothing is ever sent twice."
)
REDEEMING: Final = (
    "You have approved it, and your wallet is being asked for it. If nothing is sent within a "
    "minute, you can approve it again here."
)
TO_BE_PAID: Final = "It is paid from your refund budget within a minute or two."
TRIED_AGAIN: Final = (
    "A wallet did not answer. It is tried again from your refund budget for a day and a half, then "
    "it waits for your approval. You need not wait: you can approve it yourself, or cancel it."
)
READ_AGAIN: Final = (
    "Your wallet has ended our access to this payment, so we cannot see what became of it. Approve "
    "once more: this approval can only read your payments, and pays nothing."
)
UNCONFIRMED: Final = (
    "Your wallet has sent it. The customer's wallet has not confirmed that it arrived."
)
# Of the budget: its status, the class of the badge, and what that means.
BUDGET: Final[Mapping[MandateStatus, tuple[str, str, str]]] = {
    MandateStatus.PENDING: (
        "Not approved yet",
        "",
        "Each refund waits for an approval in your wallet. With a budget they are paid at once.",
    ),
    MandateStatus.ACTIVE: (
        "Active",
        "completed",
        "Refunds are paid from it without an approval of each. One that does not fit, or that "
        "costs more than the budget may add to its amount, waits for its own.",
    ),
    MandateStatus.LOST: (
        "To be approved again",
        "attention",
        "The connection broke while the access to your wallet was renewed, so it has to be "
        "approved again. Until then each refund waits for its own approval.",
    ),
    MandateStatus.REVOKED: (
        "To be approved again",
        "attention",
        "Your wallet has ended the access. Until you approve it again, each refund waits for its "
        "own approval.",
    ),
    MandateStatus.ENDED: (
        "Ended",
        "canceled",
        "You have ended it. Each refund waits for an approval in your wallet.",
    ),
}
NO_BUDGET: Final = BUDGET[MandateStatus.PENDING]
SILENT: Final = (
    "Your wallet has not answered for a day. Refunds are tried again, then wait for an approval."
)
BUDGET_STEP: Final[Mapping[str, str]] = {
    MandateEvent.BEGUN: "The budget was begun",
    MandateEvent.REQUESTED: "Your server asked for a budget",
    MandateEvent.APPROVAL_ASKED: "Your wallet was asked for your approval",
    MandateEvent.APPROVAL_CLAIMED: "You came back from your wallet with an approval",
    MandateEvent.APPROVAL_KEPT: "Your wallet could not take the approval just then; it was kept",
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
    """Return the refund's status in words, and the class of its badge."""
    if refund.status is RefundStatus.NEEDS_APPROVAL and not refund.approval_waits:
        return PLANNED
    return STATUS[refund.status], BADGE[refund.status]


def detail_of(note: str | None) -> str | None:
    """Return the note of a step; one that names a problem, in words."""
    return PROBLEM[RefundProblem(note)] if note in _PROBLEMS else note
