"""Send the receipt of a completed session by e-mail, if the operator has set a sender.

Each receipt is counted before it is sent, so that one payment causes at most `RECEIPTS_MAX`
e-mails. The e-mail address is not stored in any record.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from checkout.domain.ground.errors import ReceiptsUsedUp, ResourceMissing
from checkout.domain.ground.limits import RECEIPT
from checkout.domain.merchant.reach import Effect
from checkout.domain.session.record import Session, Status
from checkout.flows import limits, mailing, merchants
from checkout.ports import Email
from checkout.services import PayServices

RECEIPTS_MAX: Final = 3
OFFERED_FOR: Final = timedelta(days=30)  # after the payment


def offered(services: PayServices, session: Session) -> bool:
    """Return whether the receipt can be sent by e-mail now."""
    if services.mail is None or session.status is not Status.COMPLETED:
        return False
    assert session.completed_at is not None
    return services.clock.now() < session.completed_at + OFFERED_FOR


def send(
    services: PayServices, session: Session, letter: Email, *, client: str, form: str | None = None
) -> None:
    """Send the session's receipt if it is offered, but only once for each `form`.

    `form` identifies the form on the page, so that submitting it twice sends no second receipt.
    Raises ResourceMissing, RateLimited, ReceiptsUsedUp and MailRefused.
    """
    if services.mail is None or session.completed_at is None or not offered(services, session):
        raise ResourceMissing("There is no receipt to send.")
    limits.admit(services, RECEIPT, client)
    merchant = merchants.get(services.merchants, session.merchant)
    until = session.completed_at + OFFERED_FOR
    taken = services.limits.take_letter
    if form is not None and not taken(f"{session.id} {form}", most=1, until=until):
        return
    if not taken(session.id, most=RECEIPTS_MAX, until=until):
        raise ReceiptsUsedUp("The receipt has already been sent three times, the maximum.")
    mailing.send(services.mail, merchant, Effect.RECEIPT, letter)
