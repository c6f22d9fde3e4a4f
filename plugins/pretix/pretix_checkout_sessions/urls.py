"""The plugin's addresses: the webhook endpoint, and the customer's ways to and from the page."""

from django.urls import path
from pretix.multidomain import event_url

from pretix_checkout_sessions import views

_PAYMENT = r"(?P<order>[^/]+)/(?P<tag>[0-9a-f]+)/(?P<payment>[0-9]+)/$"

urlpatterns = [
    path("_checkoutsessions/webhook/<str:organizer>/", views.webhook, name="webhook"),
]

event_patterns = [
    event_url(f"^checkoutsessions/pay/{_PAYMENT}", views.pay, name="pay", require_live=False),
    event_url(
        f"^checkoutsessions/return/{_PAYMENT}", views.came_back, name="return", require_live=False
    ),
]
