# mypy: ignore-errors
"""Use /v1 with whichever stripe-python is installed, as a shop's server does; print what was seen.

Its input is JSON: the ids of sessions that exist. It runs by itself, without this repository.
"""

import json
import os
import sys
import time
import uuid

import stripe

stripe.api_base = os.environ["API_BASE"]
stripe.api_key = os.environ["API_KEY"]
stripe.max_network_retries = 2
Session = stripe.checkout.Session


def purchase(amount: int = 1000, **more: object) -> dict:
    price = {"currency": "usd", "unit_amount": amount, "product_data": {"name": "Tea"}}
    return {
        "mode": "payment",
        "line_items": [{"price_data": price, "quantity": 2}],
        "success_url": "https://shop.example/thanks?s={CHECKOUT_SESSION_ID}",
        "metadata": {"order": "7"},
        **more,
    }


def refused(call: object, error: type, **facts: object) -> None:
    """Fail unless the call raises this type of error, with these facts."""
    found = None
    try:
        call()
    except stripe.StripeError as raised:
        found = raised
    assert type(found) is error, found
    assert found.request_id.startswith("req_"), found
    for name, value in facts.items():
        assert getattr(found, name) == value, (name, found)


key = str(uuid.uuid4())
created = Session.create(**purchase(), idempotency_key=key)
assert (created.object, created.status, created.amount_total) == ("checkout.session", "open", 2000)
assert (created.metadata["order"], created.livemode) == ("7", False)
# Fields that its types say are always there.
for name in ("automatic_tax", "created", "custom_fields", "custom_text", "expires_at", "id",
             "livemode", "mode", "object", "payment_method_types", "payment_status",
             "shipping_options"):  # fmt: skip
    assert created[name] is not None, name

again = Session.create(**purchase(), idempotency_key=key)
assert again.id == created.id
assert again.last_response.headers["Idempotent-Replayed"] == "true"
other = purchase(999)
refused(
    lambda: Session.create(**other, idempotency_key=key), stripe.IdempotencyError, http_status=400
)

read = Session.retrieve(created.id, expand=["line_items", "payment_intent"])
assert read.line_items.data[0].price.unit_amount == 1000
assert read.payment_intent is None
assert [each.quantity for each in Session.list_line_items(created.id, limit=5)] == [2]
price = stripe.Price.retrieve(read.line_items.data[0].price.id)
assert (price.unit_amount, stripe.Product.retrieve(price.product).name) == (1000, "Tea")
assert stripe.Price.list(limit=3, active=True).data == []

Refused = stripe.InvalidRequestError
by_id = purchase(line_items=[{"price": "price_1", "quantity": 1}])
bad = {"param": "line_items[0][price]", "http_status": 400}
refused(lambda: Session.create(**by_id), Refused, **bad)
refused(lambda: Session.create(**purchase(customer="cus_1")), Refused, param="customer")
missing = {"code": "resource_missing", "http_status": 404}
refused(lambda: Session.retrieve("cs_nobody"), Refused, **missing)
wrong = {"api_key": "sk_wrong"}
refused(lambda: Session.retrieve(created.id, **wrong), stripe.AuthenticationError, http_status=401)

# The money would go to the platform's own wallet.
forbidden = {"http_status": 403}  # this error has no code in the library
as_other = {"stripe_account": "acct_1"}
refused(lambda: Session.create(**purchase(), **as_other), stripe.PermissionError, **forbidden)
# This key may not refund.
payment = created.id.replace("cs_", "pi_")
refused(
    lambda: stripe.Refund.create(payment_intent=payment, amount=5),
    stripe.PermissionError,
    **forbidden,
)
assert stripe.Refund.list(payment_intent=payment).data == []
refused(lambda: stripe.Refund.retrieve("re_nobody"), Refused, **missing)

end = str(uuid.uuid4())
expired = Session.expire(created.id, idempotency_key=end)
assert expired.status == "expired"
assert Session.expire(created.id, idempotency_key=end).status == "expired"
refused(lambda: Session.expire(created.id), Refused, code="session_unexpected_state")

# Through all sessions, page by page, while more are created.
known, new, seen = set(json.load(sys.stdin)), [], []
for number, session in enumerate(Session.list(limit=50).auto_paging_iter()):
    seen.append(session.id)
    if number % 25 == 0:
        new.append(Session.create(**purchase()).id)
assert len(seen) == len(set(seen)), "seen twice"
assert known <= set(seen), "missed"
assert len(known) >= 250
# And back, from the oldest: the new ones are found too.
backwards = [each.id for each in Session.list(limit=100, ending_before=seen[-1]).auto_paging_iter()]
assert len(backwards) == len(set(backwards))
assert {*new, *seen[:-1]} <= set(backwards)
assert [each.id for each in Session.list(limit=1, created={"gte": int(time.time()) + 60})] == []

assert stripe.Balance.retrieve().available[0].amount == 0
assert stripe.Event.list(limit=3).object == "list"
version = getattr(stripe, "VERSION", None) or stripe._version.VERSION
print(f"stripe-python {version}: {len(seen)} sessions, {len(new)} created while paging")
