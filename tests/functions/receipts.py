"""A paid session whose customer asks for a receipt."""

from __future__ import annotations

import re
from typing import Any

from checkout.domain.session.record import Session
from checkout.ports import Email
from tests.support.hosted_pages import Answer, Customer, line

TO = "eva.muster+shop@customer.example"


def paid(buyer: Customer, **changes: Any) -> Session:
    fields = {
        "metadata_json": '{"order_number": "B-42"}',
        "line_items": (line("House beans", unit_amount=775, quantity=2), line("Filter papers")),
    }
    return buyer.put_in("completed", **{**fields, **changes})


def facts_of(letter: Email, *, but: tuple[str, ...]) -> list[str]:
    """Return what stands behind the labels of a letter, without these, if it has a digit."""
    lines = (each.partition(": ")[::2] for each in letter.text.splitlines())
    return [said for label, said in lines if label not in but and re.search("[0-9]", said)]


def ask(buyer: Customer, session: Session, email: str = TO, **options: Any) -> Answer:
    return buyer.ask("POST", f"/pay/{session.id}/receipt", data={"email": email}, **options)
