"""Write the receipt as an e-mail: a subject, and the same facts as text and as HTML.

It has no link to the session and not its id, of which the address is made that shows the order. Nor
has it pictures.
"""

from __future__ import annotations

from typing import Final

from checkout import wiring
from checkout.domain.grammar import email_of
from checkout.domain.ids import session_ref
from checkout.ports.mail import Letter
from pay import render
from pay.view import Shown

# Direction marks around inserted words: some mail programs show them as boxes.
_ISOLATES: Final = {0x2066: None, 0x2067: None, 0x2068: None, 0x2069: None}


def receipt(shown: Shown, to: str, *, contact: str | None) -> Letter:
    """Return the receipt of a completed session.

    Replies go to `contact` if it is an e-mail address.
    """
    t = shown.reader.texts
    subject = t.text("letter.plain", shop=shown.shop)
    test = [t["test"]] if wiring.test_wallets() else []
    if shown.order_number:
        subject = t.text("letter.order", number=shown.order_number, shop=shown.shop)
    html = render.text("letter.html", reader=shown.reader, s=shown, facts=_facts(shown))
    return Letter(
        to=to,
        subject=one_line(" – ".join([*test, subject])),
        text="\n".join([*test, *_lines(shown), ""]),
        html=html,
        reply_to=email_of(contact) if contact else None,
    )


def _facts(shown: Shown) -> list[tuple[str, str]]:
    """Return the labels and values of the receipt, the order number first."""
    t = shown.reader.texts
    found = [
        (t["order.number"], shown.order_number),
        (t["completed.paid"], shown.price.debit if shown.price else None),
        (t.text("completed.received", shop=shown.shop), shown.received),
        (t["completed.refunded"], shown.refunded),
        (t["completed.refunding"], shown.refunding),
        (
            t["completed.at"],
            t.text("time", time=shown.completed_at.text) if shown.completed_at else None,
        ),
        (t["price.wallet"], shown.wallet),
        (t["completed.payment"], shown.payment),
        (t["reference"], session_ref(shown.reference)),
    ]
    return [(label, value) for label, value in found if value]


def _lines(shown: Shown) -> list[str]:
    t = shown.reader.texts
    ask = shown.contact or shown.home
    lines = [
        t.text("completed.lead", shop=shown.shop),
        "",
        *(f"{label}: {value}" for label, value in _facts(shown)),
        "",
        *(f"{each.quantity} × {each.name}: {each.total}" for each in shown.lines),
        f"{t['order.total']}: {shown.total}",
        "",
        *([f"{t.text('ask', shop=shown.shop)} {ask.text}"] if ask else []),
        t["letter.why"],
    ]
    return [one_line(each) for each in lines]


def one_line(text: str) -> str:
    """Return `text` as one line without unprintable characters."""
    shown = text.translate(_ISOLATES)
    return "".join(each if each.isprintable() else " " for each in shown)
