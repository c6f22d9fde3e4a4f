"""Write e-mails in text and HTML: receipts and acknowledgements to customers, notices to members.

E-mails exist in the same languages as the customers' pages, and have no pictures. E-mails to
customers contain neither a link to the session nor the session's id, because anyone who knows the
id can open the order's page. The shop finds the payment by the numbers in the e-mail, with the
search in the dashboard. E-mails to members do not name orders, customers, keys or servers. Members
see these names in the dashboard after they sign in.
"""

from __future__ import annotations

from typing import Final

from checkout import wiring
from checkout.domain.ground.grammar import email_of
from checkout.domain.ground.names import JOINERS
from checkout.domain.merchant.record import Merchant
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.record import Session
from checkout.domain.session.withdrawal import Withdrawal
from checkout.pages import Moment
from checkout.ports import Email, Notice
from pay import render, view
from pay.language import reader
from pay.view import Contact, Shown

# Direction marks around inserted words are removed, because some mail programs show them as boxes.
_ISOLATES: Final = {0x2066: None, 0x2067: None, 0x2068: None, 0x2069: None}


def receipt(shown: Shown, to: str, *, stored: bool, contact: str | None) -> Email:
    """Return the receipt of a completed session.

    `stored` means that the address `to` is stored with the order. Replies go to `contact` if it is
    an e-mail address.
    """
    t = shown.reader.texts
    subject = t.text("letter.plain", shop=shown.shop)
    if shown.order_number:
        subject = t.text("letter.order", number=shown.order_number, shop=shown.shop)
    return _email(
        shown,
        to,
        subject=subject,
        title=t["completed.title"],
        lead=t.text("completed.lead", shop=shown.shop),
        facts=_facts(shown),
        why=t["letter.why.order" if stored else "letter.why"],
        contact=contact,
    )


def acknowledgement(
    session: Session, merchant: Merchant, filed: Withdrawal, said: CustomerDetails
) -> Email:
    """Return a withdrawal's acknowledgement, in the language of the page where it was filed."""
    reads = reader(wished=session.locale, accepted=filed.language or "", default=merchant.locale)
    base_url = wiring.base_url()
    seen = view.shown(session, merchant, reads, base_url=base_url, now=filed.at)
    return withdrawal(seen, said, at=view.moment(filed.at, reads), contact=merchant.contact)


def withdrawal(shown: Shown, said: CustomerDetails, *, at: Moment, contact: str | None) -> Email:
    """Return the acknowledgement of a withdrawal: what the customer has `said`, and when (`at`).

    The e-mail goes to the address in `said`.
    """
    t = shown.reader.texts
    assert said.email is not None
    facts = [
        (t["withdrawal.statement"], t.text("time", time=at.text)),
        (t["order.number"], shown.order_number),
        (t["buy.name"], said.name),
        (t["completed.paid"], shown.price.debit if shown.price else None),
        (t["completed.payment"], shown.payment),
        (t["foot.company"], shown.foot.company if shown.foot else None),
    ]
    return _email(
        shown,
        said.email,
        subject=t.text("withdrawal.subject", shop=shown.shop),
        title=t["withdrawal.title"],
        lead=t.text("withdrawal.filed", shop=shown.shop),
        facts=[(label, value) for label, value in facts if value],
        why=t["withdrawal.why"],
        contact=contact,
    )


def _email(
    shown: Shown,
    to: str,
    *,
    subject: str,
    title: str,
    lead: str,
    facts: list[tuple[str, str]],
    why: str,
    contact: str | None,
) -> Email:
    t = shown.reader.texts
    test = [t["test"]] if wiring.test_wallets() else []
    ask = shown.contact or shown.home
    lines = [
        lead,
        "",
        *(f"{label}: {value}" for label, value in facts),
        "",
        *(f"{each.quantity} × {each.name}: {each.total}" for each in shown.lines),
        f"{t['order.total']}: {shown.total}",
        "",
        *([f"{t.text('ask', shop=shown.shop)} {ask.text}"] if ask else []),
        why,
    ]
    return Email(
        to=to,
        subject=one_line(" – ".join([*test, subject])),
        text="\n".join([*test, *map(one_line, lines), ""]),
        html=render.text(
            "letter.html",
            reader=shown.reader,
            s=shown,
            title=title,
            lead=lead,
            facts=facts,
            why=why,
        ),
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
        (t["completed.elsewhere"], shown.elsewhere),
        (
            t["completed.at"],
            t.text("time", time=shown.completed_at.text) if shown.completed_at else None,
        ),
        (t["price.wallet"], shown.wallet),
        (t["completed.payment"], shown.payment),
        (t["foot.company"], shown.foot.company if shown.foot else None),
    ]
    return [(label, value) for label, value in found if value]


def one_line(text: str) -> str:
    """Return `text` as one line without unprintable characters, but keep joiners within words."""
    shown = text.translate(_ISOLATES)
    return "".join(each if each.isprintable() or each in JOINERS else " " for each in shown)


def notice_email(notice: Notice) -> Email:
    """Return the e-mail of a notice. For each kind of case, one line states the number of cases."""
    reads = reader(wished=notice.language, accepted="", default=None)
    t = reads.texts
    lines = [f"{t[f'notice.{case}']}: {number}" for case, number in notice.counts]
    return _member_email(
        notice.to,
        notice.language,
        title=t.text("notice.subject", shop=notice.shop),
        lead=t["notice.lead"],
        lines=lines,
        link=Contact(notice.needs, t["notice.open"]),
        why=t["notice.why"],
        more=Contact(notice.settings, t["notice.change"]),
    )


def confirmation(to: str, *, language: str, page: str) -> Email:
    """Return the e-mail with the link that confirms an address.

    The e-mail contains no text from the shop, because its recipient may not have asked for it.
    """
    t = reader(wished=language, accepted="", default=None).texts
    return _member_email(
        to,
        language,
        title=t["notice.confirm.subject"],
        lead=t["notice.confirm.lead"],
        lines=[],
        link=Contact(page, t["notice.confirm.open"]),
        why=t["notice.confirm.why"],
        more=None,
    )


def _member_email(
    to: str,
    language: str,
    *,
    title: str,
    lead: str,
    lines: list[str],
    link: Contact,
    why: str,
    more: Contact | None,
) -> Email:
    reads = reader(wished=language, accepted="", default=None)
    test = [reads.texts["test"]] if wiring.test_wallets() else []
    parts = [*test, lead, *lines, "", f"{link.text}: {link.href}", "", why]
    if more is not None:
        parts.append(f"{more.text}: {more.href}")
    html = render.text(
        "notice.html",
        reader=reads,
        title=title,
        lead=lead,
        lines=lines,
        link=link,
        why=why,
        more=more,
    )
    return Email(
        to=to,
        subject=one_line(" – ".join([*test, title])),
        text="\n".join([*map(one_line, parts), ""]),
        html=html,
    )
