"""Write the e-mails to members: notices of cases that need them, and the link for a new address.

They are here because they are in the languages of the customers' pages. They name no order,
customer, key or server: the dashboard does, after a sign-in.
"""

from __future__ import annotations

from dataclasses import dataclass

from checkout import wiring
from checkout.ports import Email, Notice
from pay import render
from pay.language import reader
from pay.letters import one_line


@dataclass(frozen=True, slots=True)
class Link:
    """A link on a page or in an e-mail."""

    href: str
    text: str


def notice_letter(notice: Notice) -> Email:
    """Return the e-mail of a notice, one line for each case with its number."""
    reads = reader(wished=notice.language, accepted="", default=None)
    t = reads.texts
    lines = [f"{t[f'notice.{case}']}: {number}" for case, number in notice.counts]
    return _letter(
        notice.to,
        notice.language,
        title=t.text("notice.subject", shop=notice.shop),
        lead=t["notice.lead"],
        lines=lines,
        link=Link(notice.needs, t["notice.open"]),
        why=t["notice.why"],
        more=Link(notice.settings, t["notice.change"]),
    )


def confirmation(to: str, *, language: str, page: str) -> Email:
    """Return the e-mail with the link that confirms an address.

    It has no text of the shop, because its recipient may not have asked for it.
    """
    t = reader(wished=language, accepted="", default=None).texts
    return _letter(
        to,
        language,
        title=t["notice.confirm.subject"],
        lead=t["notice.confirm.lead"],
        lines=[],
        link=Link(page, t["notice.confirm.open"]),
        why=t["notice.confirm.why"],
        more=None,
    )


def _letter(
    to: str,
    language: str,
    *,
    title: str,
    lead: str,
    lines: list[str],
    link: Link,
    why: str,
    more: Link | None,
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
