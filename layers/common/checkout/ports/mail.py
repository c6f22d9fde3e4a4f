"""Declare the sending of e-mail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from checkout.domain.merchant.record import Merchant
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.record import Session
from checkout.domain.session.withdrawal import Withdrawal


@dataclass(frozen=True, slots=True)
class Letter:
    """An e-mail with a text and an HTML part. Replies go to `reply_to`."""

    to: str
    subject: str
    text: str
    html: str
    reply_to: str | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """The content of an e-mail to a member: how many things need somebody, by their case.

    `needs` and `settings` are pages of the dashboard. No order, customer, key or address of a
    server is in it: e-mail is read by many machines.
    """

    to: str
    language: str
    shop: str
    counts: tuple[tuple[str, int], ...]
    needs: str
    settings: str


WriteNotice = Callable[[Notice], Letter]
WriteAcknowledgement = Callable[[Session, Merchant, Withdrawal, CustomerDetails], Letter]


class Mail(Protocol):
    """Sends from the address that the operator has set."""

    def send(self, letter: Letter) -> None:
        """Send the e-mail, once. Raises MailRefused."""
        ...
