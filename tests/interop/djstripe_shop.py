# mypy: ignore-errors
"""A Django shop with dj-stripe, whole and unmodified: its settings name another address of the API.

It creates its own webhook endpoint for HOOKS, serves dj-stripe's webhook view on PORT, and prints
the view's path and where its customer pays. Then it refunds a part of the payment and prints the
refund's id, for its merchant to approve. It ends when dj-stripe's tables know both. It runs by
itself, without this repository.
"""

import io
import json
import os
import threading
import time
import uuid
from wsgiref.simple_server import make_server

import django
import stripe
from django.conf import settings
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.db import connections
from django.urls import include, path

PORT = int(os.environ["PORT"])
settings.configure(
    ALLOWED_HOSTS=["*"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["FILE"]}},
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    DJSTRIPE_FOREIGN_KEY_TO_FIELD="id",
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "djstripe"],
    # Its tables are made from its models. Its own migrations end with the same, after 45 s.
    MIGRATION_MODULES={"djstripe": None},
    ROOT_URLCONF=__name__,
    SECRET_KEY="a test's",
    STRIPE_API_HOST=os.environ["API_BASE"],
    STRIPE_LIVE_MODE=False,
    STRIPE_TEST_SECRET_KEY=os.environ["API_KEY"],
    USE_TZ=True,
)
django.setup()

from djstripe import models  # noqa: E402 - after the settings

urlpatterns = [path("stripe/", include("djstripe.urls", namespace="djstripe"))]

call_command("migrate", run_syncdb=True, verbosity=0)


def sync(*names: str) -> None:
    """Run dj-stripe's own command; it fails if one object of these models cannot be stored."""
    call_command("djstripe_sync_models", *names, fail_on_error=True, stdout=io.StringIO())


# Its models of what a checkout has, in the order in which its guide names them.
SYNCED = (
    "Account", "Session", "PaymentIntent", "Charge", "Refund", "Event", "WebhookEndpoint",
)  # fmt: skip
sync(*SYNCED)
assert models.Account.objects.count() == 1
before = models.Session.objects.count()

own = str(uuid.uuid4())
made = models.WebhookEndpoint._api_create(
    url=os.environ["HOOKS"],
    enabled_events=["checkout.session.completed", "checkout.session.expired",
                    "payment_intent.succeeded", "charge.refunded", "customer.subscription.updated"],
    metadata={"djstripe_uuid": own},
)  # fmt: skip
hook = models.WebhookEndpoint.sync_from_stripe_data(made)
assert (str(hook.djstripe_uuid), hook.secret[:6]) == (own, "whsec_")
assert "customer.subscription.updated" in hook.enabled_events

price = {"currency": "usd", "unit_amount": 1000, "product_data": {"name": "Tea " * 160}}
session = models.Session._api_create(
    mode="payment",
    line_items=[{"price_data": price, "quantity": 2}],
    success_url="https://shop.example/thanks",
    client_reference_id="order-7",
    metadata={"order": "7"},
)
assert models.Session.sync_from_stripe_data(session).status == "open"
gone = models.Session._api_create(
    mode="payment",
    line_items=[{"price_data": price, "quantity": 1}],
    success_url="https://shop.example/thanks",
)
where = f"/stripe/webhook/{own}/"
server = make_server("127.0.0.1", PORT, get_wsgi_application())
threading.Thread(target=server.serve_forever, daemon=True).start()
print(where, session["url"], flush=True)

stripe.checkout.Session.expire(
    gone["id"], api_key=os.environ["API_KEY"], stripe_version=stripe.api_version
)


def told(*wanted: str) -> None:
    """Wait until the webhook view has processed these types of events, and no others."""
    for _ in range(600):
        found = list(models.WebhookEventTrigger.objects.filter(valid=True))
        if {each.event.type for each in found if each.processed} == set(wanted):
            break
        connections.close_all()
        time.sleep(0.1)
    assert {each.event.type for each in found} == set(wanted), [each.traceback for each in found]
    assert all(each.processed and not each.exception for each in found)


WANTED = ("checkout.session.completed", "payment_intent.succeeded", "checkout.session.expired")
told(*WANTED)

# So far, only the events have told it.
paid = models.Session.objects.get(id=session["id"])
assert (paid.status, paid.stripe_data["payment_status"]) == ("complete", "paid")
assert (paid.stripe_data["amount_total"], paid.metadata) == (2000, {"order": "7"})
assert models.Session.objects.get(id=gone["id"]).status == "expired"
payment = models.PaymentIntent.objects.get(id=paid.stripe_data["payment_intent"]).stripe_data
assert (payment["status"], payment["amount_received"], payment["currency"]) == (
    "succeeded", 2000, "usd",
)  # fmt: skip

asked = models.Refund._api_create(payment_intent=payment["id"], amount=500)
print(asked["id"], flush=True)
told(*WANTED, "charge.refunded")
charge = models.Charge.objects.get(id=payment["latest_charge"]).stripe_data
assert (charge["amount"], charge["amount_refunded"], charge["refunded"]) == (2000, 500, False)

# And what its command reads, whole and again.
for _ in range(2):
    sync(*SYNCED)
assert models.Session.objects.count() == before + 2
assert {each.type for each in models.Event.objects.all()} >= {*WANTED, "charge.refunded"}
assert models.Charge.objects.get().payment_intent.id == payment["id"]
refund = models.Refund.objects.get().stripe_data
assert (refund["id"], refund["amount"], refund["status"], refund["charge"]) == (
    asked["id"], 500, "succeeded", charge["id"],
)  # fmt: skip
print(json.dumps({each: getattr(models, each).objects.count() for each in SYNCED}), flush=True)
