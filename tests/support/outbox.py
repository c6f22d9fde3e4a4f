"""An outbox: the mail service of tests, which keeps its letters."""

from __future__ import annotations

from checkout.domain.ground.errors import MailRefused
from checkout.ports.mail import Letter


class Outbox:
    """`ports.Mail` that keeps the letters, and refuses them while it is `broken`."""

    def __init__(self) -> None:
        self.letters: list[Letter] = []
        self.broken = False

    def send(self, letter: Letter) -> None:
        if self.broken:
            raise MailRefused("The mail service did not take the e-mail.")
        self.letters.append(letter)
