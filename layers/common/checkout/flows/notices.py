"""Find the cases that need a person at the merchant, and e-mail members about these cases.

A person may have to look at payments, webhook endpoints, keys or the refund budget. The cases are
not stored, but found in the records each time, so a solved case is no longer shown.

If the operator has set a sender, a member can choose topics, a pace and a language, and enter an
e-mail address. No notices are sent to the address until the member, while signed in, has confirmed
it by a link. For each of these members, the scheduled sweep looks for new cases from time to time.
A look has these steps:

    1  Read the member and find the cases. A revoked member gets no more e-mails.
    2  Write the cases to be sent and the time of the next look, if the record is still as it was
       read. If two processes look at the same time, only one can write, and only this one goes on.
    3  Send one e-mail with all cases.
    4  If the mail service refuses the e-mail, write that it was not sent, so that the next look
       sends it.

If the mail service does not answer, or the process dies after step 2, the e-mail may not have been
sent. It is not sent again, but the banner in the dashboard still shows the cases. Cases that were
solved before step 1 are not in the e-mail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
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
from checkout.domain.ground.ids import (
    api_key_hash,
    mandate_id,
    new_invitation_token,
    new_nonce,
    subscriber_id,
)
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
from checkout.domain.merchant.people import Actor, Member, Right, may
from checkout.domain.merchant.reach import Effect, allows, require
from checkout.domain.merchant.record import ApiKey, Merchant
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Problem
from checkout.domain.payment.mandate import Mandate
from checkout.domain.reports.search_terms import NEEDS_SOMEBODY
from checkout.domain.session.note import needs_somebody
from checkout.domain.session.record import Session, Status, order_number
from checkout.domain.session.withdrawal import waits
from checkout.domain.webhooks.record import Delivery, Endpoint, WebhookEvent
from checkout.flows import audit, limits, mailing, merchants
from checkout.flows.idempotency import Reserve
from checkout.ports import Notice
from checkout.services import DashboardServices, PayServices
from open_payments.errors import Reason

SESSIONS_MAX: Final = 100  # sessions in a page of the index
ROUNDS: Final = 3  # pages of flagged sessions that are read
NEWEST: Final = 10  # newest sessions, or events of an endpoint, that show the present state
FAILS: Final = 3  # an endpoint is failing after this many failed attempts in a row
SOON: Final = timedelta(days=7)  # a key in use is shown if it ends within this time
NEW_FOR: Final = timedelta(days=3)  # a webhook address set by somebody else is shown this long
BUDGET: Final = "Refund budget"
AnyServices = DashboardServices | PayServices
_REFUSED: Final = (Reason.CLIENT_UNKNOWN, Reason.BAD_SIGNATURE)


class Case(StrEnum):
    """The cases that need a person, the most urgent first."""

    PARTIAL_PAYMENT = "partial_payment"
    UNDECIDED = "undecided"
    LATE_PAYMENT = "late_payment"
    OVERPAID = "overpaid"
    WITHDRAWAL = "withdrawal"
    WALLET_KEY = "wallet_key"
    ENDPOINT_SET = "endpoint_set"
    ENDPOINT_DISABLED = "endpoint_disabled"
    ENDPOINT_FAILING = "endpoint_failing"
    BUDGET_OVER = "budget_over"
    KEY_ENDS = "key_ends"


@dataclass(frozen=True, slots=True)
class ActionItem:
    """One case that needs a person.

    `target` is the id of the session, endpoint, key or budget. `name` is its name on the pages.
    `at` is when the case began or, for a key, when the key ends.
    """

    case: Case
    target: str
    name: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ActionItems:
    """The cases that need a person, in the order of `Case`.

    If `more` is true, there may be further cases that are not in `found`.
    """

    found: tuple[ActionItem, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class Health:
    """The state of an endpoint.

    `last` is the newest delivery attempt, or None. `failing_since` is when the endpoint began to
    fail, or None if it does not fail.
    """

    last: Delivery | None
    failing_since: datetime | None


def action_items(services: AnyServices, key: Actor) -> ActionItems:
    """Return the cases at the actor's merchant that need a person now.

    Raise Unavailable, and ResourceMissing for a merchant that no longer exists.
    """
    merchant, now = services.merchants.latest(key.merchant), services.clock.now()
    if merchant is None:
        raise ResourceMissing("No such merchant.")
    sessions, more = _sessions(services, key)
    found = [
        *sessions,
        *_wallet_key(services, key, merchant),
        *_endpoints(services, key, merchant),
        *_budget(services.mandates.get(mandate_id(merchant.id)), now),
        *_keys(services.api_keys.of(merchant.id), now),
    ]
    order = list(Case)
    return ActionItems(
        tuple(sorted(found, key=lambda need: (order.index(need.case), need.at))), more
    )


def _sessions(services: AnyServices, key: Actor) -> tuple[list[ActionItem], bool]:
    found: list[ActionItem] = []
    after = None
    for _ in range(ROUNDS):
        page = services.sessions.page(
            key.lists,
            limit=SESSIONS_MAX,
            after=after,
            created_from=None,
            created_before=None,
            search=NEEDS_SOMEBODY,
        )
        flagged = [each for each in page.records if each.needs_attention]
        notes = services.notes.of(each.id for each in flagged) if flagged else {}
        found += [_need(each) for each in flagged if needs_somebody(each, notes.get(each.id))]
        found += _withdrawals(services, page.records)
        after = page.next_key
        if after is None:
            break
    return found, after is not None


def _need(session: Session) -> ActionItem:
    case = Case(session.attention) if session.attention else Case.OVERPAID
    return ActionItem(case, session.id, order_number(session) or session.id, session.updated_at)


def _withdrawals(services: AnyServices, sessions: tuple[Session, ...]) -> Iterator[ActionItem]:
    """Yield the withdrawals that wait for the shop."""
    paid = {each.id: each for each in sessions if each.status is Status.COMPLETED}
    filed = services.withdrawals.of(paid) if paid else {}
    for session_id, withdrawal in filed.items():
        session = paid[session_id]
        if waits(session, withdrawal):
            named = order_number(session) or session_id
            yield ActionItem(Case.WITHDRAWAL, session_id, named, withdrawal.at)


def _wallet_key(services: AnyServices, key: Actor, merchant: Merchant) -> Iterator[ActionItem]:
    """Yield a case if a provider refused the merchant's key and none has accepted the key since."""
    page = services.sessions.page(
        key.lists, limit=NEWEST, after=None, created_from=None, created_before=None
    )
    steps = [each for session in page.records for each in session.history]
    for step in sorted(steps, key=lambda each: each.at, reverse=True):
        if step.event in (Event.PREPARED, Event.PAYMENT_INTENDED):  # a provider accepted the key
            return
        name, _, kind = (step.note or "").partition(": ")
        if name == Problem.MERCHANT_WALLET_ERROR and kind.partition(" ")[0] in _REFUSED:
            yield ActionItem(Case.WALLET_KEY, merchant.key_id, merchant.key_id, step.at)
            return


def _endpoints(services: AnyServices, key: Actor, merchant: Merchant) -> Iterator[ActionItem]:
    now = services.clock.now()
    for endpoint in merchant.endpoints:
        identity = endpoint.id
        at, by = endpoint.set_at, endpoint.set_by
        if at is not None and by not in (None, key.id) and now < at + NEW_FOR:
            yield ActionItem(Case.ENDPOINT_SET, identity, endpoint.url.partition("?")[0], at)
        if endpoint.disabled_at is not None:
            yield ActionItem(Case.ENDPOINT_DISABLED, identity, endpoint.url, endpoint.disabled_at)
            continue
        since = health(services, key, merchant, endpoint).failing_since
        if since is not None:
            yield ActionItem(Case.ENDPOINT_FAILING, identity, endpoint.url, since)


def health(services: AnyServices, key: Actor, merchant: Merchant, endpoint: Endpoint) -> Health:
    """Return the health of an endpoint of the merchant, by its newest events."""
    further = endpoint in merchant.further_endpoints
    page = services.events.page(key.lists, limit=NEWEST, endpoint=endpoint.id if further else None)
    made = _made(page.records, endpoint)
    return Health(made[-1] if made else None, failing_since(page.records, endpoint))


def failing_since(events: tuple[WebhookEvent, ...], endpoint: Endpoint) -> datetime | None:
    """Return when the endpoint began to fail, or None if its newest attempts did not all fail."""
    made = _made(events, endpoint)
    good = [number for number, each in enumerate(made) if each.succeeded]
    failed = made[good[-1] + 1 :] if good else made
    return failed[0].at if len(failed) >= FAILS else None


def _made(events: tuple[WebhookEvent, ...], endpoint: Endpoint) -> list[Delivery]:
    """Return the finished attempts to deliver these events, oldest first."""
    made = [
        each
        for event in events
        if endpoint.was_there(event.created_at)
        for each in event.deliveries
        if each.duration_ms is not None
    ]
    return sorted(made, key=lambda each: each.at)


def _budget(mandate: Mandate | None, now: datetime) -> Iterator[ActionItem]:
    """Yield a case if the refund budget has ended.

    Also yield a case if the wallet has not answered, for a day, the requests to renew the budget's
    token.
    """
    if mandate is None:
        return
    if mandate.gone:
        yield ActionItem(
            Case.BUDGET_OVER, mandate.id, BUDGET, mandate.over_at or mandate.updated_at
        )
    elif mandate.rotating is not None and mandate.silent(now):
        yield ActionItem(Case.BUDGET_OVER, mandate.id, BUDGET, mandate.rotating)


def _keys(keys: tuple[ApiKey, ...], now: datetime) -> Iterator[ActionItem]:
    """Yield a case for each API key that was used recently and ends soon."""
    for each in keys:
        ends, used = each.lasts_until, each.last_used_at
        if ends is None or used is None or not each.active_at(now):
            continue
        if ends <= now + SOON and used > now - SOON:
            yield ActionItem(Case.KEY_ENDS, each.id, each.label, ends)


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
    Case.KEY_ENDS: Topic.ENDS,
}


def of(services: DashboardServices, member: Member) -> Subscriber | None:
    """Return the member's choice of notices, or None."""
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
    """Store a member's choice of notices. Return the choice, and the token of a confirmation link.

    The caller sends this link to the new address, which is in the field `asked`. The token is None
    if the address is already confirmed. `client` is the browser's network address. `reserve` makes
    the stored answer to the request's idempotency key, which is written together with the choice.
    Raise MerchantUnproven, MerchantSuspended, EmailInvalid, ParameterInvalid, RateLimited,
    Conflict, and KeyHeld with `reserve`.
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
    # Without a confirmed address, there is nothing to do before the link expires.
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
    """End the member's notices, and delete the member's address. Raise Conflict."""
    found = of(services, member)
    if found is None:
        return
    if not services.subscribers.put(found.stopped(writer=new_nonce(services.random_bytes))):
        raise Conflict("Your notices have changed in the meantime. Try again.")
    audit.note(services, member, Action.SETTINGS_CHANGED, "notices")


def look(services: PayServices, known: Subscriber) -> Subscriber:
    """Send the subscriber the new cases if a look is due. Return the record as it is afterwards.

    Raise Unavailable, and ResourceMissing for a merchant that no longer exists.
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
    found = action_items(services, replace(member, parts=merchant.parts))
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
    """Write the cases and the time of the next look.

    Return the written record, or `known` itself if another process has written first.
    """
    after = known.changed(
        writer=new_nonce(services.random_bytes),
        told=told,
        look_at=again or known.next_look(services.clock.now()),
    )
    return after if services.subscribers.put(after) else known


def _may_know(member: Member, known: Subscriber) -> bool:
    same = member.merchant == known.merchant
    return member.active and same and may(member, Right.READ)


def _mark(need: ActionItem) -> str:
    """Return a short mark that identifies a case without describing it."""
    return f"{need.case} {api_key_hash(need.target)[:12]}"


def _counts(found: Collection[ActionItem]) -> tuple[tuple[str, int], ...]:
    numbers = Counter(each.case for each in found)
    return tuple((case.value, numbers[case]) for case in Case if case in numbers)
