# mypy: ignore-errors
"""Recover events with stripe-python as Stripe's guide tells it. It runs by itself.

Source: docs.stripe.com, "Process undelivered webhook events". First it creates an endpoint for each
URL of its arguments. Then each line that it reads is the id of the last event before the outage; it
prints the ids of those that the recipe finds, in a line of JSON.
"""

import json
import os
import sys

import stripe

stripe.api_base, stripe.api_key = os.environ["API_BASE"], os.environ["API_KEY"]
TYPES = ["checkout.session.completed", "checkout.session.expired"]
for url in sys.argv[1:]:
    stripe.WebhookEndpoint.create(url=url, enabled_events=TYPES)
print("ready", flush=True)
for line in sys.stdin:
    events = stripe.Event.list(ending_before=line.strip(), types=TYPES, delivery_success=False)
    found = [
        {"id": each.id, "pending": each.pending_webhooks} for each in events.auto_paging_iter()
    ]
    print(json.dumps(found), flush=True)
