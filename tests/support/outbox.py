"""An outbox: the mail service of tests, which keeps its letters."""

from __future__ import annotations

from checkout.domain.ground.errors import MailRefused
from checkout.ports import Email


class Outbox:
    """`ports.Mail` that keeps the letters, and refuses them while it is `broken`."""

    def __init__(self) -> None:
        self.letters: list[Email] = []
        self.broken = False

    def send(self, letter: Email) -> None:
        if self.broken:
            raise MailRefused("The mail service did not take the e-mail.")
        self.letters.append(letter)
