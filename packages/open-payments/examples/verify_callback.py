"""The return page of a shop: only the wallet that was asked can send the customer there.

    python verify_callback.py

Serves `/return?order=…` on port 8000, for grants that `keep` stored before.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from urllib.parse import parse_qsl
from wsgiref.simple_server import make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from open_payments import PendingGrant, errors

orders = sqlite3.connect(":memory:", check_same_thread=False)
orders.execute("CREATE TABLE waiting (number TEXT PRIMARY KEY, pending TEXT NOT NULL)")


def keep(number: str, pending: PendingGrant) -> None:
    """Store the grant of an order before the customer leaves. The text is a secret."""
    orders.execute("INSERT INTO waiting VALUES (?, ?)", (number, pending.dump()))


def returned(query: str) -> tuple[str, str]:
    """Return the status of the page, and its text, for the query of a return."""
    members = dict(parse_qsl(query))
    found = orders.execute(
        "SELECT pending FROM waiting WHERE number = ?", (members.get("order", ""),)
    ).fetchone()
    if found is None:
        return "404 Not Found", "There is no such order."
    try:
        reference = PendingGrant.load(found[0]).verify(members)
    except errors.Declined:
        return "200 OK", "You did not approve the payment. Nothing was paid."
    except errors.NotFromThisServer:
        return "403 Forbidden", "This link does not come from your wallet. Nothing was paid."
    return "200 OK", f"Approved: the shop can now redeem {reference[:4]}…"


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    status, text = returned(environ["QUERY_STRING"])
    start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [text.encode()]


if __name__ == "__main__":
    make_server("127.0.0.1", 8000, app).serve_forever()
