"""Declare the sending of e-mail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Letter:
    """An e-mail with a text and an HTML part. Replies go to `reply_to`."""

    to: str
    subject: str
    text: str
    html: str
    reply_to: str | None = None


class Mail(Protocol):
    """Sends from the address that the operator has set."""

    def send(self, letter: Letter) -> None:
        """Send the e-mail, once. Raises MailRefused."""
        ...
