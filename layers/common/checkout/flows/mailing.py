"""Send a shop's e-mails. All e-mails are sent from here."""

from __future__ import annotations

from checkout.domain.merchant.reach import Effect, require
from checkout.domain.merchant.record import Merchant
from checkout.ports import Email, Mail


def send(mail: Mail, merchant: Merchant, effect: Effect, letter: Email) -> None:
    """Send the e-mail, once. Raise MerchantUnproven, MerchantSuspended, MailRefused."""
    require(merchant, effect)
    mail.send(letter)
