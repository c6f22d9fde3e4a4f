"""Every sentence that a customer reads, in one place, by name. The templates hold none.

`{…}` are filled in by the page. Names: `page.what`, `error.CODE`, `problem.PROBLEM`,
`notice.NOTICE`.
"""

from __future__ import annotations

from typing import Final

ENGLISH: Final[dict[str, str]] = {
    # every page
    "site": "Checkout",
    "order": "Your order",
    "order.quantity": "{quantity} × {price}",
    "order.total": "Total",
    "reference": "Reference",
    "shop.leave": "Return to the shop without paying",
    "shop.back": "Return to the shop",
    "not_charged": "You have not been charged.",
    "time": "{time} UTC",
    "offline": "No answer. Check your connection and try again.",
    # the wallet form
    "wallet.label": "Your wallet address",
    "wallet.hint": "For example $wallet.example/alice or https://wallet.example/alice. "
    "Your bank, digital wallet or mobile money account shows it to you.",
    "wallet.submit": "See the price",
    "wallet.again": "Try again",
    "wallet.new_price": "Get a new price",
    "wallet.other": "Use another wallet",
    "wallet.busy": "Asking your wallet provider for the price…",
    # open
    "open.title": "Pay {total} to {shop}",
    "open.lead": "You will see what it costs in your currency before you approve anything.",
    # preparing
    "preparing.title": "Preparing your payment",
    "preparing.lead": "We are asking your wallet provider for the price. "
    "This page goes on by itself.",
    "preparing.look": "Look again",
    # awaiting_approval
    "awaiting_approval.title": "You pay {debit}",
    "awaiting_approval.lead": "Approve the payment at your wallet provider. "
    "Nothing is paid before you do.",
    "awaiting_approval.debit": "You pay",
    "awaiting_approval.receive": "{shop} receives",
    "awaiting_approval.wallet": "From your wallet",
    "awaiting_approval.until": "Price valid until",
    "awaiting_approval.left": "{time} left",
    "awaiting_approval.run_out": "This price has run out. If it has risen when you approve, "
    "nothing is paid, and you are asked again.",
    "awaiting_approval.continue": "Continue to {host}",
    "awaiting_approval.no_link": "Your wallet provider gave no usable address to approve at. "
    "Use another wallet.",
    "awaiting_approval.resume": "Go back to {host}",
    # confirming
    "confirming.title": "Confirming your payment",
    "confirming.lead": "Your wallet provider has the payment. We are waiting until the money shows "
    "at the shop. Do not pay again.",
    "confirming.close": "You may close this page: the shop is told as soon as the payment is "
    "confirmed. This page keeps checking.",
    "confirming.look": "Check now",
    "confirming.partial": "Only part of the money has arrived",
    "confirming.partial_lead": "{received} of {receive} reached the shop. Do not pay again: "
    "contact {shop} and give the reference below.",
    "confirming.slow": "This takes longer than usual",
    "confirming.slow_lead": "A wallet provider does not answer. We keep checking.",
    # completed, and the confirmation
    "completed.title": "Paid. Thank you!",
    "completed.lead": "Your payment to {shop} is complete.",
    "completed.paid": "You paid",
    "completed.received": "{shop} received",
    "completed.wallet": "From your wallet",
    "completed.at": "Completed",
    "completed.continue": "Continue now",
    "completed.stay": "Stay on this page",
    "completed.countdown": "You are taken back to the shop in {seconds} s.",
    "completed.stayed": "You stay on this page.",
    # expired, canceled
    "expired.title": "This checkout has expired",
    "expired.lead": "Its time ran out before it was paid. Start again at the shop.",
    "canceled.title": "This checkout was canceled",
    "canceled.lead": "The shop canceled it, and it can no longer be paid.",
    "no_money": "No payment has reached the shop for it.",
    # the callback: the wallet asks us to wait
    "wait.title": "Your wallet asks us to wait a moment",
    "wait.lead": "You approved the payment. We go on in {seconds} s by ourselves.",
    "wait.look": "Go on",
    # back from the wallet without an approval
    "notice.declined": "You declined the payment at your wallet.",
    "notice.timed_out": "The time to approve the payment at your wallet ran out.",
    "notice.not_approved": "Your wallet sent you back without an approval.",
    "notice.next": "Try again, or use another wallet.",
    # why a session is open again
    "problem.wallet_unreachable": "Your wallet provider did not answer.",
    "problem.wallet_unreachable.next": "Try again in a moment, or use another wallet.",
    "problem.wallet_invalid": "There is no wallet at the address you gave.",
    "problem.wallet_invalid.next": "Check the address and try again.",
    "problem.wallet_unavailable": "That wallet cannot make this payment.",
    "problem.wallet_unavailable.next": "Use another wallet, or try again later.",
    "problem.amount_too_small_for_wallet": "The amount is too small for that wallet to send.",
    "problem.amount_too_small_for_wallet.next": "Use another wallet.",
    "problem.merchant_wallet_error": "The shop's wallet provider is not available right now.",
    "problem.merchant_wallet_error.next": "Try again in a few minutes, or contact the shop.",
    "problem.preparation_interrupted": "Preparing the payment was interrupted.",
    "problem.preparation_interrupted.next": "Try again.",
    "problem.approval_unusable": "Your approval did not reach us in time, or could not be used.",
    "problem.approval_unusable.next": "Try again, and approve the payment once more.",
    "problem.price_changed": "The price rose above what you approved, so nothing was paid.",
    "problem.price_changed.next": "See the new price, and approve it if you agree.",
    "problem.payment_refused": "Your wallet provider refused the payment.",
    "problem.payment_refused.next": "Check that your wallet holds enough money and try again, "
    "or use another wallet.",
    "problem.payment_failed": "The payment failed: no money reached the shop, and none can any "
    "more.",
    "problem.payment_failed.next": "Check your wallet. Should it show the payment as made, ask "
    "your wallet provider; else try again, or use another wallet.",
    # a form that was refused; the reason follows
    "error.wallet_invalid": "This wallet address does not work.",
    "error.wallet_unreachable": "We could not reach your wallet provider.",
    "error.wallet_unavailable": "This wallet cannot make the payment.",
    "error.amount_too_small_for_wallet": "This wallet cannot make the payment.",
    "error.merchant_wallet_error": "The shop cannot take payments right now.",
    "error.rate_limited": "Too many tries.",
    "error.session_busy": "One moment.",
    "error.payment_in_progress": "A payment is already under way.",
    "error.session_unexpected_state": "This checkout has moved on.",
    # pages that are nothing but an error
    "error.resource_missing": "There is no such checkout",
    "error.resource_missing.lead": "Check the address, or start again at the shop.",
    "error.method_not_allowed": "This address cannot be opened like this",
    "error.method_not_allowed.lead": "Go back to the checkout.",
    "error.body_too_large": "That was too much",
    "error.body_too_large.lead": "Go back to the checkout and try again.",
    "error.content_type_invalid": "We could not read what was sent",
    "error.content_type_invalid.lead": "Go back to the checkout and try again.",
    "error.callback_invalid": "This answer does not belong to this checkout",
    "error.callback_invalid.lead": "Nothing was changed by it. Go back to the checkout to see "
    "where your payment stands.",
    "error.unavailable": "We are not available right now",
    "error.unavailable.lead": "Nothing is lost. Try again in a moment.",
    "error.internal_error": "Something went wrong on our side",
    "error.internal_error.lead": "Try again in a moment.",
    "error.other": "We could not read what was sent",
    "error.other.lead": "Go back to the checkout and try again.",
    "error.back": "Back to the checkout",
    "error.request": "Request",
}


def text(name: str, **values: object) -> str:
    """The sentence `name`, with `values` filled in. KeyError where there is none."""
    return ENGLISH[name].format(**values)
