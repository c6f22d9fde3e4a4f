"""Demo: a purchase over HTTP as merchant and customer, and a refund as the merchant.

The demo needs no browser, and prints one line for each step. Every step checks its result. The
first wrong result ends the demo and is reported.
"""

from __future__ import annotations

import html
import re
import ssl
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

import httpx2

from checkout.domain.ground.grammar import TEST_WALLETS
from open_payments.models import Amount
from sandbox.place import Place
from sandbox.terminal import say

PRICE: Final = Amount(2000, "USD", 2)
_REDIRECTS_MAX: Final = 10
_PATIENCE: Final = 30.0  # seconds
# How many times _PATIENCE the demo waits for the outcome of a payment, which may be known only 35 s
# after the incoming payment was closed.
_OUTCOMES: Final = 3
_FORM: Final = re.compile(r'<form method="post" action="([^"]+)"')
_FORM_TOKEN: Final = re.compile(r'name="form_token" value="([^"]+)"')
_APPROVAL: Final = re.compile(r'<a class="button(?: quiet)?" href="([^"]+)" rel="noreferrer">')
_WAIT: Final = "<h1>One moment</h1>"
_REFRESH: Final = re.compile(r"\s*(\d+)")
_SHOP: Final = "https://shop.example"


class DemoFailed(Exception):
    """A step had an unexpected result; the message contains the result."""


class Shopping(Protocol):
    """The checkout's address, and the CA file for the checkout's and the wallets' certificates."""

    @property
    def checkout(self) -> str: ...

    @property
    def ca_file(self) -> Path: ...


class Demo:
    """A purchase by the owner of `wallet` from the merchant of `api_key`, who must sell in USD.

    `say` is called with one line per step. The demo waits `patience` seconds for each answer and
    state, and _OUTCOMES times as long for the outcome of the payment.
    """

    def __init__(
        self,
        place: Shopping,
        *,
        api_key: str,
        wallet: str,
        say: Callable[[str], None] = say,
        patience: float = _PATIENCE,
    ) -> None:
        self._place = place
        self._patience = patience
        self._wallet = wallet
        self._say = say
        trust = ssl.create_default_context(cafile=str(place.ca_file))
        self._http = httpx2.Client(verify=trust, trust_env=False, timeout=patience)
        self._api = f"{place.checkout}/api/checkout/sessions"
        self._api_key = api_key
        self._authorization = {"Authorization": f"Bearer {api_key}"}

    def run(self, *, refund: str | None = None) -> None:
        """Make a purchase, then refund an amount, such as "5.00". Raises DemoFailed."""
        try:
            with self._http:
                session_id = self._buy()
                if refund is not None:
                    self._refund(session_id, refund)
        except httpx2.HTTPError as error:
            raise DemoFailed(f"no response: {error}") from None

    def end(self, how: str) -> None:
        """Create a session and end it; `how` is `expire` or `cancel`. Raises DemoFailed."""
        try:
            with self._http:
                session = self._create()
                url = f"{self._api}/{session['id']}/{how}"
                ended = self._json(self._http.post(url, headers=self._authorization), 200)
        except httpx2.HTTPError as error:
            raise DemoFailed(f"no response: {error}") from None
        self._say(f"session   {ended['id']} is {ended['status']}")

    def _buy(self) -> str:
        """Buy one thing, and return the session's id."""
        session = self._create()
        page = session["url"]
        self._expect(self._http.get(page), 200)
        self._say(f"page      {page}")
        prepared = self._json(
            self._http.post(f"{page}/wallet", json={"wallet_address": self._wallet}), 200
        )
        debit, receive = (
            _amount(prepared["quote"][name]) for name in ("debit_amount", "receive_amount")
        )
        self._say(f"wallet    {self._wallet}: pays {debit}, the shop receives {receive}")
        callback = self._approve(prepared["interact_url"])
        self._come_back(callback)
        done = self._wait(session["id"], page)
        received = self._received(done["incoming_payment"])
        if done["amount_total"] != PRICE.value or received != PRICE:
            raise DemoFailed(f"the shop's wallet received {received}, not {PRICE}")
        self._say(f"demo: completed {done['id']} debit {debit} received {received}")
        return str(session["id"])

    def _refund(self, session_id: str, amount: str) -> None:
        """Refund `amount` in the dashboard, with an approval in the merchant's wallet."""
        home = f"{self._place.checkout}/dashboard"
        self._post_form(f"{home}/sign-in", f"{home}/sign-in", api_key=self._api_key)
        page = f"{home}/transactions/{session_id}"
        asked = self._post_form(page, f"{page}/refund", amount=amount)
        approval = _APPROVAL.search(asked.text)
        if approval is None:
            raise DemoFailed(f"the refund has no price: {_alert(asked.text)}")
        refund_id = asked.url.path.rpartition("/")[2]
        self._say(f"refund    {asked.url}")
        callback = self._approve(html.unescape(approval[1]), who="the shopkeeper")
        deadline = time.monotonic() + self._patience
        while _WAIT in self._http.get(callback).text:
            if time.monotonic() > deadline:
                raise DemoFailed("the merchant's wallet still asks to wait")
            time.sleep(1)
        refund = self._wait_for_refund(refund_id)
        gets = _amount(refund["customer_receives"])
        self._say(f"demo: refunded {refund_id} cost {_amount(refund['cost'])} returned {gets}")

    def _wait_for_refund(self, refund_id: str) -> dict[str, Any]:
        """Poll until the refund has ended; return it."""
        deadline = time.monotonic() + self._patience
        url = f"{self._place.checkout}/api/checkout/refunds/{refund_id}"
        while True:
            refund = self._json(self._http.get(url, headers=self._authorization), 200)
            waits = refund["pending_reason"] == "processing"
            if not waits or time.monotonic() > deadline:
                break
            time.sleep(0.5)
        if refund["status"] != "succeeded":
            why = refund["failure_reason"] or refund["pending_reason"]
            raise DemoFailed(f"the refund is {refund['status']}: {why}")
        return refund

    def _post_form(self, page: str, action: str, **fields: str) -> httpx2.Response:
        """Send a form of the dashboard's page, and return the page to which it leads."""
        shown = self._http.get(page)
        token = _FORM_TOKEN.search(shown.text)
        if shown.status_code != 200 or token is None:
            raise DemoFailed(f"{page} answered {shown.status_code}, without a form")
        answer = self._http.post(
            action,
            data={"form_token": token[1], **fields},
            headers={"Origin": self._place.checkout},
            follow_redirects=True,
        )
        if answer.status_code != 200:
            raise DemoFailed(f"{action} answered {answer.status_code}: {_alert(answer.text)}")
        return answer

    def _create(self) -> dict[str, Any]:
        product = {"price_data": {"currency": PRICE.asset_code.lower(), "unit_amount": PRICE.value}}
        product["price_data"]["product_data"] = {"name": "House beans"}
        body = {
            "mode": "payment",
            "line_items": [product],
            "success_url": f"{_SHOP}/thanks?session={{CHECKOUT_SESSION_ID}}",
            "cancel_url": f"{_SHOP}/basket",
        }
        headers = {**self._authorization, "Idempotency-Key": f"demo-{uuid.uuid4()}"}
        session = self._json(self._http.post(self._api, json=body, headers=headers), 201)
        self._say(f"session   {session['id']} is {session['status']}")
        return session

    def _approve(self, interact_url: str, who: str = "the customer") -> str:
        """Press "Approve" at the wallet of `who`; return the URL that the wallet redirects to."""
        consent = self._http.get(interact_url, follow_redirects=True)
        form = _FORM.search(consent.text)
        if consent.status_code != 200 or form is None:
            raise DemoFailed(f"the wallet's consent page returned {consent.status_code}")
        self._say(f"consent   {consent.url}")
        answer = self._http.post(consent.url.join(form[1]), data={"choice": "approve"})
        for _ in range(_REDIRECTS_MAX):
            if not answer.has_redirect_location:
                break
            target = str(answer.url.join(answer.headers["location"]))
            ours = target.startswith(f"{self._place.checkout}/")
            if ours and f"{TEST_WALLETS}/" not in target:
                self._say(f"approved  the wallet sends {who} back")
                return target
            answer = self._http.get(target)
        raise DemoFailed(f"the wallet does not redirect the customer back ({answer.status_code})")

    def _come_back(self, callback: str) -> None:
        deadline = time.monotonic() + self._patience
        while time.monotonic() < deadline:
            answer = self._http.get(callback)
            if answer.status_code == 303:
                self._say(f"callback  {answer.headers['location']}")
                return
            again = _REFRESH.match(answer.headers.get("refresh", ""))
            if answer.status_code != 200 or again is None:
                said = re.search(r"<h1[^>]*>(.*?)</h1>", answer.text, re.DOTALL)
                reason = " ".join(said[1].split()) if said else "no heading"
                raise DemoFailed(f"not approved: the checkout says “{reason}”")
            time.sleep(int(again[1]))
        raise DemoFailed(f"the checkout is still waiting after {self._patience:.0f} s")

    def _wait(self, session_id: str, page: str) -> dict[str, Any]:
        """Poll until the payment is settled, like the page in the browser; return the session."""
        deadline = time.monotonic() + self._patience * _OUTCOMES
        while True:
            status = self._json(self._http.get(f"{page}/status"), 200)["status"]
            if status != "processing" or time.monotonic() > deadline:
                break
            time.sleep(0.5)
        url = f"{self._api}/{session_id}"
        session = self._json(self._http.get(url, headers=self._authorization), 200)
        self._say(f"session   {session_id} is {session['status']}")
        if session["status"] == "open":
            raise DemoFailed("the payment failed: no money arrived, and another wallet can pay now")
        if session["status"] == "processing":
            seconds = self._patience * _OUTCOMES
            raise DemoFailed(f"no outcome after {seconds:.0f} s; the session's page will show it")
        if session["status"] != "completed":
            raise DemoFailed(f"the session is {session['status']}, not completed")
        return session

    def _received(self, incoming_payment: str) -> Amount:
        """Return the received amount from the incoming payment's public view."""
        found = self._json(self._http.get(incoming_payment), 200)["receivedAmount"]
        return Amount(int(found["value"]), found["assetCode"], found["assetScale"])

    def _json(self, answer: httpx2.Response, status: int) -> dict[str, Any]:
        self._expect(answer, status)
        found: dict[str, Any] = answer.json()
        return found

    @staticmethod
    def _expect(answer: httpx2.Response, status: int) -> None:
        if answer.status_code != status:
            raise DemoFailed(
                f"{answer.request.method} {answer.url} answered {answer.status_code}, "
                f"not {status}: {answer.text[:300]}"
            )


def _amount(wire: dict[str, Any]) -> Amount:
    return Amount(int(wire["value"]), wire["asset_code"], wire["asset_scale"])


def _alert(page: str) -> str:
    """Return the text of the alert on a page of the dashboard."""
    said = re.search(r'role="alert".*?<p>(.*?)</p>', page, re.DOTALL)
    return html.unescape(said[1]) if said else "no reason"


def world_answers(place: Place) -> bool:
    """Return whether a local world (`make dev`) is running at this place."""
    try:
        health = httpx2.get(f"{place.checkout}/api/health", trust_env=False, timeout=5)
        return health.json().get("status") == "healthy" and place.api_key_file.exists()
    except (httpx2.HTTPError, ValueError, AttributeError):
        return False
