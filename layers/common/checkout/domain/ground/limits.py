"""The limits for one client (docs/decisions/0011).

A client is a network address (`client_address.py`). Strangers may share one, so a limit never
blocks a proven right, such as signing in with a correct key.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final


@dataclass(frozen=True, slots=True)
class Rule:
    """Allow `burst` at once and one more after each `every`, in each process separately."""

    name: str
    burst: int
    every: timedelta


# Any request for the hosted page, which costs a few milliseconds and a read.
REQUEST: Final = Rule("request", burst=40, every=timedelta(milliseconds=200))
# Requests of open pages for their state have their own budget: many customers behind one address
# must not use up the budget for their forms.
POLL: Final = Rule("poll", burst=40, every=timedelta(milliseconds=100))
# A purchase that begins at a payment link writes a session.
PURCHASE: Final = Rule("purchase", burst=10, every=timedelta(seconds=30))
# Receipts by e-mail, which are also counted by session.
RECEIPT: Final = Rule("receipt", burst=6, every=timedelta(minutes=5))
# Refused requests that a process logs for an API key.
REFUSAL: Final = Rule("refusal", burst=10, every=timedelta(seconds=6))
# Only wrong keys, passkeys and invitations count: 20 in 15 minutes.
WRONG_KEY: Final = Rule("wrong key", burst=20, every=timedelta(seconds=45))
# Each use of a passkey begins with a write.
CHALLENGE: Final = Rule("challenge", burst=20, every=timedelta(seconds=6))

# Requests to wallets occupy a process until servers of the client's choice answer. So all processes
# count them together, in windows of WINDOW, which costs a call to the store. This call is saved for
# the first requests of a client in this process, at a provider that this process knows.
WINDOW: Final = timedelta(seconds=10)
# The limits of a client's unpaid items of one stock in half an hour: the divisor of its use cases a
# minute, and of the items left (at least two items), so that a few clients do not empty a stock.
ITEMS_SHARE: Final = 3
LEFT_SHARE: Final = 4
ITEMS_LEAST: Final = 2
# Sign-ups of new shops in a DAY: from one address, and all together, because a flood may come from
# many addresses.
DAY: Final = timedelta(days=1)
SIGN_UPS: Final = 5
SIGN_UPS_OF_ALL: Final = 500
# E-mails in a DAY to unconfirmed addresses: by the member who requests them, the shop, the network
# address, and to one mailbox. All processes count all of them together.
LETTERS_OF_MEMBER: Final = 5
LETTERS_OF_SHOP: Final = 10
LETTERS_OF_CLIENT: Final = 20
LETTERS_TO_MAILBOX: Final = 3
# Lists that a merchant's keys request by the API in one WINDOW. All processes count them together,
# except for the merchant's first in a process.
LISTS: Final = 50
LIST: Final = Rule("list", burst=1, every=timedelta(minutes=5))
SUBMISSION: Final = Rule("submission", burst=1, every=timedelta(minutes=5))
LOOK_UP: Final = Rule("look-up", burst=1, every=timedelta(minutes=5))
RETURN: Final = Rule("return", burst=1, every=timedelta(minutes=5))
# A provider is known for this long after a payment with it was completed. This is less than
# `every`, so that a client does not profit from its own payment.
KNOWN_FOR: Final = timedelta(minutes=4)
