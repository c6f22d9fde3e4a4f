"""Behaviors of wallet addresses: one that pays, and test cases that each fail in one way.

The test cases are like the test cards of a card processor. The start page of the wallets shows the
descriptions.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from fractions import Fraction
from typing import Final


class Consent(StrEnum):
    """Possible outcomes of the consent page."""

    ASK = "ask"
    DECLINE = "decline"
    NO_RETURN = "no_return"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The behavior of a wallet address.

    Addresses, consent and quotes: `redirects_to` is the name of another provider's wallet, to which
    the wallet address redirects. For the time `stumbles` after an approval, the server cannot
    continue the grant and answers 502, or with `stumbles_at_keys` reports that it cannot read the
    client's keys. `dearer` is the cost of a second quote relative to the first. With `keeps_quotes`
    the wallet accepts expired quotes.

    Sending: `delivered` is the share of the payment that arrives, in `parts` of equal size, the
    time `parts_apart` apart. A part arrives `in_flight` after it was sent, even if the incoming
    payment was closed meanwhile. With `sends_when_closed` the wallet sends when the incoming
    payment is closed, or just before it expires. With `ends_with_quote` a payment fails if nothing
    was sent before its quote's end. With `fails` a payment fails at once, and nothing is sent.
    After `receiver_away_after` parts, the receiver cannot be read any more and counts as closed.
    `pays_others` is the number of payments to others that follow each payment.

    False reports: `short_by` is the number of the receiver's units that are missing from a payment
    reported as complete; `over_by` units arrive in excess. The wallet shows `claims` times the real
    debit, and the share `admits` of the arrived amount as sent. `claims_failure` reports a failure
    after everything is sent, `claims_failure_early` from the start. With `hides_payments` the
    wallet shows none of its payments. With `phantom` it answers 201 but makes no payment; with
    `refuses_accepted` it pays but answers 403.

    Others: with `paid_from_outside` somebody else pays the incoming payment once this wallet has
    quoted it. With `closed_from_outside` somebody else closes the incoming payment when the wallet
    is instructed to pay. With `keeps_open` the receiver's provider refuses to close it.

    The last fields are for a wallet that receives, such as a customer's wallet in a refund. A
    payment to it has the behavior `paid_like`; with `paid_like_once`, only the first payment. With
    `gone`, the wallet no longer exists once it has paid. With `shows_nothing`, its incoming
    payments always show 0.
    """

    description: str
    consent: Consent = Consent.ASK
    answers_after: int = 0  # seconds, at every request about this wallet
    interaction_life: timedelta = timedelta(minutes=10)
    quote_life: timedelta = timedelta(minutes=5)
    tells_quote_expiry: bool = True
    peered: bool = True
    redirects_to: str | None = None
    minimum_too_high: bool = False
    dearer: Fraction = Fraction(1)
    dies_after_create: bool = False
    delivered: Fraction = Fraction(1)
    delivers_after: timedelta = timedelta(0)
    claims_failure: bool = False
    claims_failure_early: bool = False
    parts: int = 1
    parts_apart: timedelta = timedelta(0)
    in_flight: timedelta = timedelta(0)
    keeps_quotes: bool = False
    phantom: bool = False
    refuses_accepted: bool = False
    short_by: int = 0
    over_by: int = 0
    claims: Fraction = Fraction(1)
    hides_payments: bool = False
    pays_others: int = 0
    sends_when_closed: bool = False
    paid_from_outside: bool = False
    keeps_open: bool = False
    ends_with_quote: bool = False
    receiver_away_after: int | None = None
    closed_from_outside: bool = False
    fails: bool = False
    admits: Fraction = Fraction(1)
    stumbles: timedelta = timedelta(0)
    stumbles_at_keys: bool = False
    paid_like: str | None = None
    paid_like_once: bool = False
    gone: bool = False
    shows_nothing: bool = False


BEHAVIOURS: Final[dict[str, Behaviour]] = {
    "normal": Behaviour("Payments succeed."),
    "decline": Behaviour(
        "The consent page declines, whatever the customer chooses.", consent=Consent.DECLINE
    ),
    "no-funds": Behaviour("The payment is accepted, then fails: the account is empty."),
    "slow": Behaviour("Every response takes 3 seconds.", answers_after=3),
    "quote-expired": Behaviour("Quotes expire after 1 second.", quote_life=timedelta(seconds=1)),
    "redirects": Behaviour(
        "The wallet address redirects (302) to Bob's wallet at the other provider, as an address "
        "on a customer's own domain may. Bob pays.",
        redirects_to="bob",
    ),
    "unpeered": Behaviour("Not connected to any shop: quotes are refused.", peered=False),
    "no-return": Behaviour(
        "After approving, the customer is not redirected back.", consent=Consent.NO_RETURN
    ),
    "dies-after-create": Behaviour(
        "Payments succeed, but the connection breaks before the response.", dies_after_create=True
    ),
    "never-credits": Behaviour(
        "The payment is accepted and never fails, but nothing arrives.", delivered=Fraction(0)
    ),
    "partial": Behaviour(
        "Half of the money arrives, then the payment fails.", delivered=Fraction(1, 2)
    ),
    "late": Behaviour("The money arrives after 20 seconds.", delivers_after=timedelta(seconds=20)),
    "expensive-renewal": Behaviour(
        "A second quote for the same purchase costs 10 % more.", dearer=Fraction(11, 10)
    ),
    "interact-timeout": Behaviour(
        "The time to approve runs out immediately.", interaction_life=timedelta(0)
    ),
    "stumbles": Behaviour(
        "Its server fails for 30 seconds after the approval (502). Then payments succeed.",
        stumbles=timedelta(seconds=30),
    ),
    "reads-no-keys": Behaviour(
        "It cannot read the shop's keys for 30 seconds after the approval. Then payments succeed.",
        stumbles=timedelta(seconds=30),
        stumbles_at_keys=True,
    ),
    "too-small": Behaviour(
        "Every amount is below this wallet's minimum: quotes are refused.", minimum_too_high=True
    ),
    "says-failed": Behaviour("Payments succeed, but are reported as failed.", claims_failure=True),
    "no-quote-expiry": Behaviour(
        "Quotes never expire and have no expiry date.",
        quote_life=timedelta(days=3650),
        tells_quote_expiry=False,
    ),
    "one-short": Behaviour(
        "One minor unit less than quoted arrives, and the payment is reported as complete.",
        short_by=1,
    ),
    "one-over": Behaviour("One minor unit more than quoted arrives.", over_by=1),
    "boasts": Behaviour(
        "Pays as any wallet does, and says that it cost a tenth more.", claims=Fraction(11, 10)
    ),
    "paid-from-outside": Behaviour(
        "Somebody else pays the shop as soon as this wallet is chosen.", paid_from_outside=True
    ),
    "closed-from-outside": Behaviour(
        "Somebody else closes the shop's incoming payment before this wallet pays it.",
        closed_from_outside=True,
    ),
    "never-closes": Behaviour(
        "Nothing arrives, and the shop's wallet refuses to close the incoming payment.",
        delivered=Fraction(0),
        keeps_open=True,
    ),
    "held": Behaviour(
        "The payment is accepted, held until its quote has ended, and then fails.",
        delivers_after=timedelta(minutes=6),
        ends_with_quote=True,
    ),
    "receiver-away": Behaviour(
        "The shop's wallet does not answer at the moment of sending: the payment is reported as "
        "complete, and nothing was sent.",
        receiver_away_after=0,
    ),
    "stops-midway": Behaviour(
        "The shop's wallet does not answer after half of the money: the payment is reported as "
        "complete, and a half was sent.",
        parts=2,
        parts_apart=timedelta(seconds=1),
        receiver_away_after=1,
    ),
    "fails": Behaviour("The payment is accepted, then fails, with nothing sent.", fails=True),
    "freezes": Behaviour(
        "This wallet's server stops after half of the money: the payment is reported as complete, "
        "and as a quarter.",
        parts=2,
        parts_apart=timedelta(seconds=1),
        receiver_away_after=1,
        admits=Fraction(1, 2),
    ),
    "refund-fails": Behaviour("Pays. A refund to it fails.", paid_like="fails"),
    "refund-hangs": Behaviour(
        "Pays. A refund to it is accepted and never fails, but nothing arrives.",
        paid_like="never-credits",
    ),
    "refund-partial": Behaviour(
        "Pays. Of a refund to it a half arrives, and the shop's wallet reports it as complete.",
        paid_like="stops-midway",
    ),
    "refund-gone": Behaviour("Pays, and then there is no wallet at this address.", gone=True),
    "refund-away": Behaviour(
        "Pays. At the first refund to it its server is away for a second: the shop's wallet "
        "reports it as complete, and nothing was sent. The next one arrives.",
        paid_like="receiver-away",
        paid_like_once=True,
    ),
    "refund-unseen": Behaviour(
        "Pays. A refund to it arrives, but it says for ever that nothing has.", shows_nothing=True
    ),
    "refund-freezes": Behaviour(
        "Pays. Of a refund to it a half arrives; the shop's wallet reports a quarter.",
        paid_like="freezes",
    ),
}
