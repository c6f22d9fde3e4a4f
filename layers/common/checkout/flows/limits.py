"""Rate limits per client and per merchant. If the client is None, nothing is limited."""

from __future__ import annotations

import math
from datetime import datetime

from checkout.domain.ground.errors import RateLimited
from checkout.domain.ground.grammar import mailbox
from checkout.domain.ground.limits import (
    DAY,
    LETTERS_OF_CLIENT,
    LETTERS_OF_MEMBER,
    LETTERS_OF_SHOP,
    LETTERS_TO_MAILBOX,
    LIST,
    Rule,
)
from checkout.domain.merchant.people import Member
from checkout.services import Services


def admit(services: Services, rule: Rule, client: str) -> None:
    """Count one more request from `client` in this process. Raises RateLimited."""
    _refuse(services.limits.take(rule, client))


def admit_work(services: Services, rule: Rule, client: str | None, *, provider: str) -> None:
    """Count one more use case that will send requests to wallets of `provider`.

    Most use cases are counted in the store, in a count that all processes share. Exception: if this
    process has recently completed a payment with this provider, use cases within `rule` are counted
    in this process's memory only. Raises RateLimited.
    """
    if client is None:
        return
    first = services.limits.take(rule, client) == 0
    if not (first and services.limits.knows(provider)):
        _refuse(services.limits.take_shared(client))


def admit_list(services: Services, merchant: str) -> None:
    """Count one more list request of a merchant's programs. Raises RateLimited.

    Each process counts a merchant's first list request in a period (`LIST`) in its own memory only.
    It counts further requests in the store. So most merchants cause no call to the store.
    """
    if services.limits.take(LIST, merchant) > 0:
        _refuse(services.limits.take_list(merchant), "for lists with this merchant's keys")


def admit_sign_up(services: Services, client: str) -> None:
    """Count one more sign-up from `client` today. Raises RateLimited."""
    _refuse(services.limits.take_sign_up(client))


def admit_letter(
    services: Services, member: Member, *, client: str, to: str, now: datetime
) -> None:
    """Count one more e-mail today to an unconfirmed address. Raises RateLimited.

    The limit for the mailbox (`to`) is checked last, so that e-mails that another limit refuses do
    not count against the mailbox.
    """
    counted = (
        (f"by {member.id}", LETTERS_OF_MEMBER),
        (f"by {member.merchant}", LETTERS_OF_SHOP),
        (f"from {client}", LETTERS_OF_CLIENT),
        (f"to {mailbox(to)}", LETTERS_TO_MAILBOX),
    )
    for about, most in counted:
        today = f"{about} {now.date().isoformat()}"
        if not services.limits.take_letter(today, most=most, until=now + DAY):
            raise RateLimited(
                "Too many e-mail addresses were entered today. Try again tomorrow.",
                retry_after=3600,
            )


def admit_items(services: Services, link: str, client: str, items: int, *, left: int) -> None:
    """Count the items that `client` takes from a link's stock. Raises RateLimited."""
    _refuse(services.limits.take_items(link, client, items, left=left))


def admits_work(services: Services, client: str | None) -> bool:
    """Count one more use case that will send requests to wallets. Return whether it may start."""
    return client is None or services.limits.take_shared(client) == 0


def _refuse(wait: float, which: str = "from this network address") -> None:
    if wait > 0:
        raise RateLimited(
            f"There were too many requests {which}; try again later.",
            retry_after=math.ceil(wait),
        )
