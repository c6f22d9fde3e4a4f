# mypy: ignore-errors
"""A Django shop with django-payments' Stripe provider, unmodified but for `stripe.api_base`.

It prints where its customer pays, serves the provider's webhook on PORT, waits until the payment is
confirmed, cancels another one, and refunds a part. It runs by itself, without this repository.
"""

import json
import os
import threading
import time
from decimal import Decimal
from wsgiref.simple_server import make_server

import django
import stripe
from django.apps import AppConfig
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connection, connections

PORT = int(os.environ["PORT"])
stripe.api_base = os.environ["API_BASE"]


class Shop(AppConfig):
    name, label, path = "__main__", "shop", os.path.dirname(__file__)


provider = {"api_key": os.environ["API_KEY"], "endpoint_secret": os.environ["WEBHOOK_SECRET"]}
settings.configure(
    ALLOWED_HOSTS=["*"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["FILE"]}},
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    INSTALLED_APPS=["payments", "__main__.Shop"],
    PAYMENT_HOST=f"127.0.0.1:{PORT}",
    PAYMENT_MODEL="shop.Payment",
    PAYMENT_USES_SSL=False,
    PAYMENT_VARIANTS={"default": ("payments.stripe.StripeProviderV3", provider)},
    ROOT_URLCONF="payments.urls",
    SECRET_KEY="a test's",
    USE_TZ=True,
)
django.setup()

import payments.core  # noqa: E402
from payments import PaymentError, PaymentStatus, RedirectNeeded  # noqa: E402 - after the settings
from payments.core import provider_factory  # noqa: E402
from payments.models import BasePayment  # noqa: E402


class Payment(BasePayment):
    class Meta:
        app_label = "shop"

    def get_success_url(self) -> str:
        return f"http://127.0.0.1:{PORT}/done"

    get_failure_url = get_success_url


with connection.schema_editor() as editor:
    editor.create_model(Payment)
payment = Payment.objects.create(
    variant="default", currency="USD", total=Decimal("20.00"), billing_email="ada@shop.example"
)
assert payment.status == PaymentStatus.WAITING
try:
    payment.get_form()
except RedirectNeeded as redirect:
    print(redirect, flush=True)
server = make_server("127.0.0.1", PORT, get_wsgi_application())
threading.Thread(target=server.serve_forever, daemon=True).start()
for _ in range(600):
    payment.refresh_from_db()
    if payment.status == PaymentStatus.CONFIRMED:
        break
    connections.close_all()
    time.sleep(0.1)
assert payment.status == PaymentStatus.CONFIRMED, payment.status
assert payment.captured_amount == payment.total
other = Payment.objects.create(variant="default", currency="USD", total=Decimal("5.00"))
try:
    other.get_form()
except RedirectNeeded:
    assert other.transaction_id
provider_factory("default").cancel(other)
print(payment.status, stripe.checkout.Session.retrieve(other.transaction_id).status, flush=True)
try:
    payment.refund(Decimal("5.00"))
except PaymentError as error:
    refused = str(error)
assert "scope" in refused, refused
provider["api_key"] = os.environ["REFUND_KEY"]
payments.core.PROVIDER_CACHE.clear()
payment.refund(Decimal("5.00"))
print(json.loads(payment.attrs.refund)["id"], payment.captured_amount, flush=True)
