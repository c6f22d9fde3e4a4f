# mypy: ignore-errors
"""Refund a payment with stripe-python as a shop's server does. It runs by itself.

It prints the refund's id, waits for a line, and reads the refund again, which was approved.
"""

import os
import sys

import stripe

stripe.api_base, stripe.api_key = os.environ["API_BASE"], os.environ["API_KEY"]
payment = os.environ["PAYMENT"]


def refused(call, error):
    try:
        call()
    except stripe.StripeError as raised:
        assert type(raised) is error, raised  # noqa: PT017 - no test: it runs by itself
        return raised
    raise AssertionError("it was accepted")


other_key = os.environ["OTHER_KEY"]
by_other = refused(
    lambda: stripe.Refund.create(payment_intent=payment, api_key=other_key),
    stripe.PermissionError,
)
assert by_other.http_status == 403
once = {"idempotency_key": f"refund of {payment}"}
given = {"payment_intent": payment, "amount": 500, "reason": "requested_by_customer"}
refund = stripe.Refund.create(**given, metadata={"case": "7", "gone": "1"}, **once)
assert stripe.Refund.create(**given, metadata={"case": "7", "gone": "1"}, **once).id == refund.id
assert (refund.status, refund.amount, refund.currency) == ("pending", 500, "usd")
changed = stripe.Refund.modify(refund.id, metadata={"gone": "", "more": "2"})
assert (changed.metadata["case"], changed.metadata["more"]) == ("7", "2")
assert "gone" not in changed.metadata
too_much = refused(
    lambda: stripe.Refund.create(payment_intent=payment, amount=1_000_000),
    stripe.InvalidRequestError,
)
assert too_much.param == "amount"
print(refund.id, flush=True)
sys.stdin.readline()
done = stripe.Refund.retrieve(refund.id, expand=["charge"])
assert done.status == "succeeded", done
assert done.charge.amount_refunded == 500, done.charge
assert [each.id for each in stripe.Refund.list(payment_intent=payment)] == [refund.id]
intent = stripe.PaymentIntent.retrieve(payment, expand=["latest_charge.balance_transaction"])
assert intent.latest_charge.amount_refunded == 500
received = intent.latest_charge.balance_transaction
assert (received.fee, received.net) == (0, received.amount), received
assert stripe.BalanceTransaction.retrieve(done.balance_transaction).source == refund.id
assert stripe.PaymentMethod.retrieve(intent.payment_method).type == "custom"
since = {"gte": intent.latest_charge.created}
assert intent.latest_charge.id in [each.id for each in stripe.Charge.list(created=since)]
assert refund.id in [each.id for each in stripe.Refund.list(created={"gte": refund.created})]
other = stripe.Refund.create(payment_intent=payment)
assert other.amount == 1500
assert stripe.Refund.cancel(other.id).status == "canceled"
session = stripe.checkout.Session.list(payment_intent=payment).data[0]
if hasattr(stripe.checkout.Session, "modify"):
    assert stripe.checkout.Session.modify(session.id, metadata={"a": "1"}).metadata["a"] == "1"
account = stripe.Account.retrieve()
assert (account.object, account.default_currency) == ("account", "usd")
print("done", flush=True)
