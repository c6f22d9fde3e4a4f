"""The effects that a shop can have on outsiders, and when each effect is allowed.

Anybody can sign up with any name and any wallet address. So until the owner of the wallet has
confirmed the wallet (flows/people/ownership.py), a shop cannot reach anybody but its own people.
`Effect` lists the effects on outsiders; docs/security.md shows them as a table. The code in
`flows` checks each effect that is not always allowed.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Final

from checkout.domain.ground.errors import CheckoutError, MerchantSuspended, MerchantUnproven
from checkout.domain.merchant.record import Merchant, Ownership

SUSPENDED: Final = (
    "The operator of this checkout has suspended your sales, or has paused the sales of all "
    "merchants. Payments that have already begun can still finish. Ask the operator for the "
    "reason."
)
UNPROVEN: Final = (
    "Your shop's wallet is not confirmed yet. Until its owner confirms it at /dashboard, the shop "
    "cannot sell, invite people, or send e-mails or webhooks."
)


class Standing(StrEnum):
    """Whether the owner of the shop's wallet is proven, and whether the shop may sell.

    A shop that the operator refuses before its wallet is confirmed stays unproven.
    """

    UNPROVEN = "unproven"
    SUSPENDED = "suspended"
    PROVEN = "proven"


_ALWAYS: Final = tuple(Standing)
_KNOWN: Final = (Standing.SUSPENDED, Standing.PROVEN)
_SELLING: Final = (Standing.PROVEN,)


class Effect(Enum):
    """An effect: its description, whom it reaches, and the standings in which it is allowed.

    A suspended shop cannot begin anything new with customers. The sales that it has already made
    continue, because its owner is known and its customers have rights.
    """

    CONFIRMATION = ("e-mail that confirms an address for notices", "any address", _KNOWN)
    NOTICE = ("e-mail of what needs somebody", "a confirmed address of a member", _KNOWN)
    RECEIPT = ("e-mail with the receipt", "any address", _KNOWN)
    WITHDRAWAL = ("e-mail that acknowledges a withdrawal", "any address", _KNOWN)
    TEST_EVENT = ("webhook, a test event", "any server", _KNOWN)
    EVENT = ("webhook, an event", "any server", _KNOWN)
    HOST = ("look-up of the host of a webhook URL", "name servers", _ALWAYS)
    LINK = ("page of a payment link", "anybody", _KNOWN)
    INVITATION = ("page of a member's invitation", "anybody with its link", _KNOWN)
    NEW_LINK = ("new payment link", "anybody", _KNOWN)
    SALE = ("new session, its page and its events", "customers", _SELLING)
    CUSTOMER = ("requests to the wallet that a customer names", "any wallet", _SELLING)
    BUDGET = ("request for a refund budget", "the shop's wallet", _KNOWN)
    OWN_WALLET = ("reading the shop's wallet address", "the shop's wallet", _ALWAYS)
    PROOF = ("request to confirm the wallet", "the shop's wallet", (Standing.UNPROVEN,))
    CLIENT = ("client document, which wallets read", "anybody", _ALWAYS)

    def __init__(self, what: str, to: str, standings: tuple[Standing, ...]) -> None:
        self.what = what
        self.to = to
        self.standings = standings


def standing(merchant: Merchant) -> Standing:
    """Return the merchant's standing. A merchant that the operator has set up is proven."""
    if merchant.ownership in (Ownership.UNPROVEN, Ownership.REFUSED):
        return Standing.UNPROVEN
    return Standing.PROVEN if merchant.suspended is None else Standing.SUSPENDED


def allows(merchant: Merchant, effect: Effect) -> bool:
    """Return whether the merchant may cause this effect now."""
    return standing(merchant) in effect.standings


def refusal(merchant: Merchant, effect: Effect) -> CheckoutError | None:
    """Return the error for an effect that the merchant may not cause now; None if it may."""
    if allows(merchant, effect):
        return None
    if merchant.ownership is Ownership.UNPROVEN:
        return MerchantUnproven(UNPROVEN)
    return MerchantSuspended(SUSPENDED)


def require(merchant: Merchant, effect: Effect) -> None:
    """Raise MerchantUnproven or MerchantSuspended if the merchant may not cause this effect now."""
    if error := refusal(merchant, effect):
        raise error
