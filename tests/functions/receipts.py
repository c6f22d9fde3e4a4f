"""A paid session whose customer asks for a receipt."""

from __future__ import annotations

from typing import Any

from checkout.domain.session.record import Session
from tests.support.hosted_pages import Answer, Customer, line

TO = "eva.muster+shop@customer.example"


def paid(buyer: Customer, **changes: Any) -> Session:
    fields = {
        "metadata_json": '{"order_number": "B-42"}',
        "line_items": (line("House beans", unit_amount=775, quantity=2), line("Filter papers")),
    }
    return buyer.put_in("completed", **{**fields, **changes})


def ask(buyer: Customer, session: Session, email: str = TO, **options: Any) -> Answer:
    return buyer.ask("POST", f"/pay/{session.id}/receipt", data={"email": email}, **options)
