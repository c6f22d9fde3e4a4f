"""Sell a bag of coffee with the native API, in plain Python: there is nothing to install.

API_BASE is the checkout (`make dev`: http://localhost:4000), API_KEY is your key, and
WEBHOOK_SECRET the secret of your webhook endpoint. Run it with `python shop.py`.
"""

import hmac
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_hex
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

PORT = int(os.environ.get("PORT", "3000"))
HOME = f"http://localhost:{PORT}/"
SESSIONS = os.environ["API_BASE"] + "/api/checkout/sessions"
KEY, SECRET = os.environ["API_KEY"], os.environ["WEBHOOK_SECRET"]
paid: set[str] = set()  # a real shop has a database, also for the events that it has seen


def ask(url: str, body: dict | None = None, order: str = "") -> dict:
    """Send a request to the checkout. The order's number makes a repeated one harmless."""
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    if order:
        headers["Idempotency-Key"] = order
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, headers), timeout=20) as answer:
        return json.load(answer)


def verify(body: bytes, signature: str) -> bool:
    """Return whether the checkout has sent this raw body within the last five minutes."""
    parts = [part.partition("=")[::2] for part in signature.split(",")]
    sent_at = dict(parts).get("t", "")
    expected = hmac.digest(SECRET.encode(), f"{sent_at}.".encode() + body, "sha256").hex()
    given = [value for name, value in parts if name == "v1"]
    genuine = any(hmac.compare_digest(expected.encode(), each.encode()) for each in given)
    return genuine and abs(time.time() - int(sent_at)) <= 300


class Shop(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/":
            self.answer('<form method="post" action="/buy"><button>Buy, 20.00 USD</button></form>')
        elif parts.path == "/thanks":
            session = ask(f"{SESSIONS}/{parse_qs(parts.query)['session'][0]}")
            done = session["status"] == "completed"
            self.answer("Paid, thank you." if done else "Your payment is on its way.")
        elif parts.path == "/orders":
            self.answer(json.dumps(sorted(paid)))
        else:
            self.answer("not found", 404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if self.path == "/buy":
            self.answer("", 303, Location=self.buy("order-" + token_hex(4))["url"])
        elif not verify(body, self.headers["Checkout-Signature"] or ""):
            self.answer("wrong signature", 400)
        else:
            event = json.loads(body)
            if event["status"] == "completed":
                paid.add(event["metadata"]["order"])
            self.answer("")

    def buy(self, order: str) -> dict:
        price = {"currency": "usd", "unit_amount": 1000, "product_data": {"name": "Coffee, 1 kg"}}
        body = {
            "mode": "payment",
            "line_items": [{"price_data": price, "quantity": 2}],
            "metadata": {"order": order},
            "success_url": HOME + "thanks?session={CHECKOUT_SESSION_ID}",
            "cancel_url": HOME,
        }
        return ask(SESSIONS, body, order)

    def answer(self, text: str, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "text/html; charset=utf-8", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", PORT), Shop).serve_forever()
