"""Tell members by e-mail what needs somebody, where the operator has set a sender.

A member chooses topics, a pace and a language, and gives an address, which gets nothing before it
is confirmed by a link, signed in as that member. The sweep looks at each of them when it is due:

    1  Read the member and what needs somebody, anew. One who was revoked is told nothing more.
    2  Write what is about to be told and the next look, if the record is still as it was read: one
       of two processes goes on.
    3  Send one e-mail with all of it.
    4  If the mail service has refused it, write that it was not told, so the next look tells it.

An e-mail without an answer, or a process that dies after 2, may have sent it: nothing is ever told
twice, and the strip in the dashboard stays. Nothing is told that was solved before 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Final

from checkout.domain.ground.errors import (
    Conflict,
    EmailInvalid,
    MailRefused,
    ParameterInvalid,
    ResourceMissing,
)
from checkout.domain.ground.grammar import email_of
from checkout.domain.ground.ids import api_key_hash, new_invitation_token, new_nonce, subscriber_id
from checkout.domain.ground.languages import LANGUAGES
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.notices import (
    CONFIRM_WITHIN,
    Pace,
    Subscriber,
    Told,
    Topic,
    remembered,
)
from checkout.domain.merchant.people import Member, Right, may
from checkout.domain.merchant.reach import Effect, allows, require
from checkout.flows import audit, limits, mailing, merchants
from checkout.flows.idempotency import Reserve
from checkout.flows.merchant import needs
from checkout.flows.merchant.needs import Case, Need
from checkout.ports.mail import Notice
from checkout.ports.services import DashboardServices, PayServices

Chosen = tuple[Subscriber, str | None]
REFUSED_AGAIN: Final = timedelta(hours=1)  # after the mail service has refused an e-mail
TOPICS: Final[dict[Case, Topic]] = {
    Case.PARTIAL_PAYMENT: Topic.PAYMENTS,
    Case.UNDECIDED: Topic.PAYMENTS,
    Case.LATE_PAYMENT: Topic.PAYMENTS,
    Case.OVERPAID: Topic.PAYMENTS,
    Case.WITHDRAWAL: Topic.PAYMENTS,
    Case.WALLET_KEY: Topic.WALLET,
    Case.ENDPOINT_SET: Topic.WEBHOOKS,
    Case.ENDPOINT_DISABLED: Topic.WEBHOOKS,
    Case.ENDPOINT_FAILING: Topic.WEBHOOKS,
    Case.BUDGET_OVER: Topic.ENDS,
    Case.BUDGET_REQUESTED: Topic.ENDS,
    Case.KEY_ENDS: Topic.ENDS,
}


def of(services: DashboardServices, member: Member) -> Subscriber | None:
    """Return what the member has chosen, or None."""
    found = services.subscribers.get(subscriber_id(member.id))
    return found if found is not None and found.look_at is not None else None


def choose(
    services: DashboardServices,
    member: Member,
    *,
    client: str,
    address: str,
    topics: Collection[Topic],
    pace: Pace,
    language: str,
    reserve: Reserve[Chosen] | None = None,
) -> Chosen:
    """Store the choice; return it, and the token of the link that confirms an address that is new.

    `client` is the network address that asks. The caller sends the link to `asked`. The record that
    `reserve` makes is written with the choice. Raise MerchantUnproven, MerchantSuspended,
    EmailInvalid, ParameterInvalid, RateLimited, Conflict, and KeyHeld with `reserve`.
    """
    if services.mail is None:
        raise ParameterInvalid("This service sends no e-mail.")
    require(merchants.get(services.merchants, member.merchant), Effect.CONFIRMATION)
    checked = email_of(address)
    if checked is None:
        raise EmailInvalid("This is not an e-mail address, like name@shop.example.", param="email")
    if not topics:
        raise ParameterInvalid("Choose what you want to be told.", param="topics")
    if language not in LANGUAGES:
        raise ParameterInvalid("Choose a language.", param="language")
    now = services.clock.now()
    before = services.subscribers.get(subscriber_id(member.id)) or Subscriber(
        id=subscriber_id(member.id),
        merchant=member.merchant,
        member=member.id,
        topics=(),
        pace=pace,
        language=language,
        writer="",
        version=0,
    )
    after = before.changed(
        writer=new_nonce(services.random_bytes),
        topics=tuple(each for each in Topic if each in topics),
        pace=pace,
        language=language,
    )
    token = None
    if checked != before.address:
        limits.admit_letter(services, member, client=client, to=checked, now=now)
        token = new_invitation_token(services.random_bytes)
        until = now + CONFIRM_WITHIN
        after = replace(after, asked=checked, asked_hash=api_key_hash(token), asked_until=until)
    else:
        after = replace(after, asked=None, asked_hash=None, asked_until=None)
    # Without a confirmed address there is nothing to look at before the link has ended.
    look_at = after.asked_until if after.address is None else after.next_look(now)
    after = replace(after, look_at=look_at)
    reservation = reserve((after, token), after.writer) if reserve else None
    if not services.subscribers.put(after, reservation):
        raise Conflict("Your notices have changed in the meantime. Check them and try again.")
    audit.note(services, member, Action.SETTINGS_CHANGED, "notices")
    return after, token


def confirm(services: DashboardServices, member: Member, token: str) -> Subscriber:
    """Begin to use the address whose link has this token. Raise ParameterInvalid, Conflict."""
    found, now = of(services, member), services.clock.now()
    presented = api_key_hash(token)
    asked = found.asked_hash if found is not None and found.waits_at(now) else None
    if found is None or asked is None or not compare_digest(asked, presented):
        raise ParameterInvalid("This link is not valid any more. Save your notices again.")
    after = found.changed(
        writer=new_nonce(services.random_bytes),
        address=found.asked,
        asked=None,
        asked_hash=None,
        asked_until=None,
    )
    after = replace(after, look_at=now if after.pace is Pace.AT_ONCE else after.next_look(now))
    if not services.subscribers.put(after):
        raise Conflict("Your notices have changed in the meantime. Try again.")
    return after


def stop(services: DashboardServices, member: Member) -> None:
    """Tell the member nothing more, and forget their address. Raise Conflict."""
    found = of(services, member)
    if found is None:
        return
    if not services.subscribers.put(found.stopped(writer=new_nonce(services.random_bytes))):
        raise Conflict("Your notices have changed in the meantime. Try again.")
    audit.note(services, member, Action.SETTINGS_CHANGED, "notices")


def look(services: PayServices, known: Subscriber) -> Subscriber:
    """Tell the subscriber what is new, if that is due. Return the record as it is then.

    Raise Unavailable, and ResourceMissing for a merchant who is no more.
    """
    now = services.clock.now()
    if known.look_at is None or now < known.look_at:
        return known
    member = services.people.member(known.member)
    unconfirmed = known.address is None and not known.waits_at(now)
    if member is None or unconfirmed or not _may_know(member, known):
        services.subscribers.put(known.stopped(writer=new_nonce(services.random_bytes)))
        return known
    if known.address is None or services.mail is None or services.write_notice is None:
        return _written(services, known, known.told)
    merchant = services.merchants.latest(member.merchant)
    if merchant is None:
        raise ResourceMissing("No such merchant.")
    if not allows(merchant, Effect.NOTICE):
        return _written(services, known, known.told)
    found = needs.of(services, replace(member, parts=merchant.parts))
    marked = {_mark(each): each for each in found.found}
    told = remembered(known.told, marked, now, all_read=not found.more)
    before = {each.mark for each in told}
    new = {
        mark: each
        for mark, each in marked.items()
        if mark not in before and TOPICS[each.case] in known.topics
    }
    claimed = _written(services, known, (*told, *(Told(mark, now) for mark in new)))
    if not new or claimed is known:
        return claimed
    notice = Notice(
        to=known.address,
        language=known.language,
        shop=merchant.name,
        counts=_counts(new.values()),
        needs=f"{services.base_url}/dashboard/needs",
        settings=f"{services.base_url}/dashboard/notices",
    )
    try:
        mailing.send(services.mail, merchant, Effect.NOTICE, services.write_notice(notice))
    except MailRefused as refused:
        if not refused.maybe_sent:
            return _written(services, claimed, told, again=now + REFUSED_AGAIN)
    return claimed


def _written(
    services: PayServices,
    known: Subscriber,
    told: tuple[Told, ...],
    *,
    again: datetime | None = None,
) -> Subscriber:
    """Write what was told and the next look. Return `known` itself if another process was first."""
    after = known.changed(
        writer=new_nonce(services.random_bytes),
        told=told,
        look_at=again or known.next_look(services.clock.now()),
    )
    return after if services.subscribers.put(after) else known


def _may_know(member: Member, known: Subscriber) -> bool:
    same = member.merchant == known.merchant
    return member.active and same and may(member, Right.READ)


def _mark(need: Need) -> str:
    """Return what tells one thing from all others, in little space, and nothing of what it is."""
    return f"{need.case} {api_key_hash(need.target)[:12]}"


def _counts(found: Collection[Need]) -> tuple[tuple[str, int], ...]:
    numbers = Counter(each.case for each in found)
    return tuple((case.value, numbers[case]) for case in Case if case in numbers)
