"""The values that protect money, secrets and rights, written a second time.

A test that takes such a value from the code that it tests cannot fail when the value is wrong. So
tests take it from here, and tests/house/test_protected.py compares it with the code.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from checkout.domain.merchant.people import Right, Role

# --- money: the times that the order of writes rests on (docs/payments.md) ---

FENCE: Final = timedelta(seconds=35)  # between the close of an incoming payment and the last read
SEND_WITHIN: Final = timedelta(seconds=5)  # of the intent
CHECK_AFTER: Final = timedelta(seconds=5)
LEASE: Final = timedelta(seconds=45)  # of a preparation and of an approval
PREPARE_WITHIN: Final = timedelta(seconds=12)
APPROVE_WITHIN: Final = timedelta(seconds=20)
RECONCILE_WITHIN: Final = timedelta(seconds=20)
CLEAN_UP_WITHIN: Final = timedelta(seconds=3)
LAST_CHECK: Final = timedelta(seconds=25)  # before the end of a round of the sweep
QUOTE_MARGIN: Final = timedelta(seconds=10)
WAIT_MARGIN: Final = timedelta(seconds=30)
ENDLESS_QUOTE: Final = timedelta(minutes=10)
IN_DOUBT_AFTER: Final = timedelta(seconds=30)
GRACE: Final = timedelta(minutes=15)  # that an incoming payment outlives its session
NEVER_CLOSED_AFTER: Final = timedelta(hours=24)
STRAY_404: Final = timedelta(minutes=15)  # for which no unpaid "not found" is believed
ACCOUNT_FOR: Final = timedelta(days=7)  # money that comes after the end
CLOCK_IS_FINAL_AFTER: Final = timedelta(minutes=5)
KEY_LIFETIME: Final = timedelta(hours=24)  # of an idempotency key
HELD_FOR: Final = timedelta(minutes=30)  # an item of a payment link
PAYMENTS_PAGES: Final = 3  # of a wallet's payments that are searched
TOTAL_MAX: Final = 999_999_999_999_999
TOLERANCE_MAX: Final = 1_000_000_000
ROUNDED_FROM: Final = 10  # units, of which a conversion may lose one
ATTEMPTS_KEPT: Final = 20

# --- webhooks ---

DELIVERY_TIMEOUT: Final = timedelta(seconds=10)
DELIVERY_LEASE: Final = timedelta(seconds=30)
DELIVERY_ATTEMPTS: Final = 11
DELIVERIES_KEPT: Final = 50
# What an event in Stripe's form is given when it is sent; all else stays as it happened.
FILLED: Final = {
    "charge": {"billing_details", "shipping"},
    "payment_intent": {"shipping"},
    "checkout.session": {
        *("collected_information", "custom_fields", "customer_details", "shipping_details"),
    },
}

# --- secrets, and the lives of what lets somebody in ---

SECRETS: Final = ("grant", "token", "interact_url")  # of a session, gone with their phase
SIGN_IN_IDLE: Final = timedelta(minutes=30)
SIGN_IN_LONGEST: Final = timedelta(hours=12)
INVITATION_LASTS: Final = timedelta(days=7)
CHALLENGE_LASTS: Final = timedelta(minutes=5)
OVERLAP_MAX: Final = timedelta(days=7)  # of an old key or webhook secret with the new one
KNOWN_FOR: Final = timedelta(minutes=4)  # a wallet provider that a payment was made at

# --- rights in the dashboard ---

RIGHTS: Final = {
    Role.SUPPORT: {Right.READ, Right.NOTE},
    Role.DEVELOPER: {Right.READ, Right.NOTE, Right.INTEGRATE},
    Role.OWNER: {*(Right.READ, Right.NOTE, Right.INTEGRATE, Right.REFUND, Right.MANAGE, Right.OWN)},
}
OPEN: Final = {  # to everybody
    ("GET", "/sign-in"),
    ("POST", "/sign-in"),
    ("POST", "/sign-in/options"),
    ("POST", "/sign-in/passkey"),
    ("GET", "/sign-up"),
    ("POST", "/sign-up"),
    ("POST", "/sign-up/options"),
    ("POST", "/sign-up/passkey"),
    ("GET", "/sign-up/{token}"),
    ("GET", "/invitation/{token}"),
    ("POST", "/invitation/{token}"),
    ("POST", "/invitation/{token}/options"),
}
SHOWN: Final = {  # to every role
    "",
    "/transactions/{session_id}",
    "/transactions/{session_id}/packing",
    "/needs",
    "/notices",
    "/notices/confirm/{token}",
    "/overview",
    "/statement",
    "/statement.csv",
    "/export",
    "/export/{file}.csv",
    "/refunds/{refund_id}",
    "/budget",
    "/links",
    "/links/{link_id}",
    "/links/{link_id}/qr",
    "/links/{link_id}/poster",
    "/keys",
    "/keys/{key_id}/refused",
    "/webhooks",
    "/webhooks/{event_id}",
    "/people",
    "/settings",
    "/settings/logo",
    "/settings/preview",
    "/audit",
}
FORMS_OF_ALL: Final = {
    "/sign-out",
    "/notices",  # one's own, as the next two
    "/notices/stop",
    "/notices/confirm/{token}",
}
FORMS_OF_WRITERS: Final = {"/transactions/{session_id}/note"}  # of private notes: every role
FORMS_OF_DEVELOPERS: Final = {
    "/keys",
    "/keys/{key_id}/roll",
    "/keys/{key_id}/revoke",
    "/webhooks",
    "/webhooks/remove",
    "/webhooks/enable",
    "/webhooks/roll",
    "/webhooks/test",
    "/webhooks/resend-failed",
    "/webhooks/{event_id}/resend",
}
FORMS_OF_REFUNDERS: Final = {  # owners, and members with a limit
    "/transactions/{session_id}/refund",
    "/transactions/{session_id}/paid_elsewhere",
    "/refunds/{refund_id}/prepare",
    "/refunds/{refund_id}/cancel",
    "/refunds/{refund_id}/claim",
}
FORMS_OF_MONEY_AND_PEOPLE: Final = {  # owners, and keys that may refund
    "/refunds/{refund_id}/budget",
    "/budget",
    "/budget/end",
    "/people",
    "/people/key-sign-in",
    "/people/invitations/{invitation_id}/withdraw",
    "/people/{member_id}/role",
    "/people/{member_id}/refunds",
    "/people/{member_id}/revoke",
}
FORMS_OF_OWNERS: Final = FORMS_OF_MONEY_AND_PEOPLE | {
    "/wallet/confirm",
    "/transactions/{session_id}/expire",
    "/transactions/{session_id}/cancel",
    "/transactions/{session_id}/accept_as_paid",
    "/transactions/{session_id}/give_up",
    "/transactions/{session_id}/dealt-with",
    "/transactions/{session_id}/withdrawal",
    "/links",
    "/links/{link_id}/stop",
    "/links/{link_id}/start",
    "/links/{link_id}/stock",
    "/settings",
}
NEEDED: Final = {
    **{("GET", path): Right.READ for path in SHOWN},
    **{("POST", path): Right.READ for path in FORMS_OF_ALL},
    **{("POST", path): Right.NOTE for path in FORMS_OF_WRITERS},
    **{("POST", path): Right.INTEGRATE for path in FORMS_OF_DEVELOPERS},
    **{("POST", path): Right.REFUND for path in FORMS_OF_REFUNDERS},
    **{("POST", path): Right.MANAGE for path in FORMS_OF_OWNERS},
    **{("POST", path): Right.OWN for path in FORMS_OF_MONEY_AND_PEOPLE},
    ("GET", "/refunds/{refund_id}/callback"): Right.REFUND,  # it sends the money
    ("GET", "/wallet/callback"): Right.MANAGE,  # after it the shop sells
    ("GET", "/budget/callback"): Right.OWN,  # it lets refunds be paid
}

IN_THE_CODE: Final[dict[str, object]] = {
    "checkout.domain.payment.in_flight.FENCE": FENCE,
    "checkout.domain.session.transitions.SECRETS": SECRETS,
    "checkout.domain.payment.in_flight.IN_DOUBT_AFTER": IN_DOUBT_AFTER,
    "checkout.domain.payment.in_flight.INCOMING_PAYMENT_GRACE": GRACE,
    "checkout.domain.payment.in_flight.NEVER_CLOSED_AFTER": NEVER_CLOSED_AFTER,
    "checkout.domain.session.record.CLOCK_IS_FINAL_AFTER": CLOCK_IS_FINAL_AFTER,
    "checkout.domain.session.attempts.KEPT_MAX": ATTEMPTS_KEPT,
    "checkout.domain.links.HELD_FOR": HELD_FOR,
    "checkout.domain.ground.limits.KNOWN_FOR": KNOWN_FOR,
    "checkout.domain.merchant.record.TOLERANCE_MAX": TOLERANCE_MAX,
    "checkout.domain.ground.money.ROUNDED_FROM": ROUNDED_FROM,
    "checkout.domain.ground.money.TOTAL_MAX": TOTAL_MAX,
    "checkout.domain.merchant.people.RIGHTS": RIGHTS,
    "checkout.domain.merchant.people.INVITATION_LASTS": INVITATION_LASTS,
    "checkout.domain.merchant.people.CHALLENGE_LASTS": CHALLENGE_LASTS,
    "checkout.domain.merchant.people.IDLE": SIGN_IN_IDLE,
    "checkout.domain.merchant.people.LONGEST": SIGN_IN_LONGEST,
    "checkout.domain.webhooks.record.ATTEMPTS_MAX": DELIVERY_ATTEMPTS,
    "checkout.domain.webhooks.record.DELIVERIES_MAX": DELIVERIES_KEPT,
    "checkout.domain.webhooks.record.LEASE": DELIVERY_LEASE,
    "checkout.domain.webhooks.record.TIMEOUT": DELIVERY_TIMEOUT,
    "checkout.flows.idempotency.LIFETIME": KEY_LIFETIME,
    "checkout.flows.merchant.api_keys.OVERLAP_MAX": OVERLAP_MAX,
    "checkout.flows.webhooks.endpoints.OVERLAP_MAX": OVERLAP_MAX,
    "checkout.flows.payment.instruct.CHECK_AFTER": CHECK_AFTER,
    "checkout.flows.session.approve.DEADLINE": APPROVE_WITHIN,
    "checkout.flows.payment.approval.LEASE": LEASE,
    "checkout.flows.payment.instruct.QUOTE_MARGIN": QUOTE_MARGIN,
    "checkout.flows.payment.instruct.SEND_WITHIN": SEND_WITHIN,
    "checkout.flows.payment.cleanup.DEADLINE": CLEAN_UP_WITHIN,
    "checkout.flows.session.prepare.DEADLINE": PREPARE_WITHIN,
    "checkout.flows.session.prepare.LEASE": LEASE,
    "checkout.flows.session.reconcile.ACCOUNT_FOR": ACCOUNT_FOR,
    "checkout.flows.session.reconcile.DEADLINE": RECONCILE_WITHIN,
    "checkout.flows.payment.schedule.ENDLESS_QUOTE": ENDLESS_QUOTE,
    "checkout.flows.payment.schedule.WAIT_MARGIN": WAIT_MARGIN,
    "checkout.flows.payment.instruct.LIST_PAGES_MAX": PAYMENTS_PAGES,
    "checkout.flows.payment.proof.STRAY_404": STRAY_404,
    "dashboard.app.NEEDED": NEEDED,
    "expirer.app.LAST_CHECK": LAST_CHECK,
}
