"""Sell a bag of coffee with Flask and Stripe's own library, paid from a wallet.

API_BASE is the checkout (`make dev`: http://localhost:4000), API_KEY is your key, and
WEBHOOK_SECRET the secret of your webhook endpoint. Run it with `flask --app shop run`.
"""

import os

import stripe
from flask import Flask, redirect, request

stripe.api_base = os.environ["API_BASE"]  # the one line that differs from a shop on Stripe
stripe.api_key = os.environ["API_KEY"]

app = Flask(__name__)
paid: set[str] = set()  # a real shop has a database


@app.get("/")
def basket() -> str:
    return '<form method="post" action="/buy"><button>Buy coffee, 20.00 USD</button></form>'


@app.post("/buy")
def buy():
    price = {"currency": "usd", "unit_amount": 1000, "product_data": {"name": "Coffee, 1 kg"}}
    session = stripe.checkout.Session.create(
        mode="payment",
        line_items=[{"price_data": price, "quantity": 2}],
        client_reference_id="order-1",
        success_url=request.url_root + "thanks?session={CHECKOUT_SESSION_ID}",
        cancel_url=request.url_root,
    )
    return redirect(session.url, code=303)


@app.get("/thanks")
def thanks() -> str:
    session = stripe.checkout.Session.retrieve(request.args["session"])
    return "Paid, thank you." if session.payment_status == "paid" else "Your payment is on its way."


@app.post("/hooks")
def hooks():
    signature, secret = request.headers["Stripe-Signature"], os.environ["WEBHOOK_SECRET"]
    try:
        event = stripe.Webhook.construct_event(request.data, signature, secret)
    except stripe.SignatureVerificationError:
        return "wrong signature", 400
    if event["type"] == "checkout.session.completed":
        paid.add(event["data"]["object"]["client_reference_id"])
    return ""


@app.get("/orders")
def orders() -> list[str]:
    return sorted(paid)
