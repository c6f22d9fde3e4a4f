"""The limits for one client (docs/decisions/0011).

A client is identified by its network address (`client_address.py`). Strangers may share an address,
so a limit never blocks somebody who has proven a right, for example by signing in with a correct
key.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final


@dataclass(frozen=True, slots=True)
class Rule:
    """Allow `burst` uses at once, and one more after each interval `every`, in each process."""

    name: str
    burst: int
    every: timedelta


# All requests for the hosted page. Each costs a few milliseconds and one read.
REQUEST: Final = Rule("request", burst=40, every=timedelta(milliseconds=200))
# Open pages ask for their state again and again. These requests have a limit of their own, so that
# many customers behind one address do not use up the limit for their forms.
POLL: Final = Rule("poll", burst=40, every=timedelta(milliseconds=100))
# Purchases that begin at a payment link. Each writes a session.
PURCHASE: Final = Rule("purchase", burst=10, every=timedelta(seconds=30))
# Sales that begin at a till (links.py). All sales of a till come from one network address.
TILL: Final = Rule("till", burst=30, every=timedelta(seconds=5))
# Receipts by e-mail. A second limit applies to each session.
RECEIPT: Final = Rule("receipt", burst=6, every=timedelta(minutes=5))
# Refused requests that a process stores for an API key.
REFUSAL: Final = Rule("refusal", burst=10, every=timedelta(seconds=6))
# Only wrong keys, passkeys and invitations use up this limit: 20 in 15 minutes.
WRONG_KEY: Final = Rule("wrong key", burst=20, every=timedelta(seconds=45))
# Uses of passkeys. Each begins with a write to the store.
CHALLENGE: Final = Rule("challenge", burst=20, every=timedelta(seconds=6))

# A request to a wallet occupies a process until the wallet's server, which the client chooses,
# answers. So all processes share one limit for such requests, in windows of WINDOW. Counting a
# request costs a call to the database. Exception: a process does not count a client's first request
# in five minutes (SUBMISSION, LOOK_UP, RETURN below) to a provider with which this process has
# recently completed a payment.
WINDOW: Final = timedelta(seconds=10)
# A client's limit for unpaid items of one stock in half an hour, so that a few clients do not empty
# the stock. The limit is the smaller of two numbers. The first is the setting CLIENT_LIMIT (a
# client's actions that call wallets, in a minute) divided by ITEMS_SHARE. The second is the number
# of items left divided by LEFT_SHARE, but at least ITEMS_LEAST.
ITEMS_SHARE: Final = 3
LEFT_SHARE: Final = 4
ITEMS_LEAST: Final = 2
# Sign-ups of new shops in a DAY: from one address, and from all addresses together, because a flood
# may come from many addresses.
DAY: Final = timedelta(days=1)
SIGN_UPS: Final = 5
SIGN_UPS_OF_ALL: Final = 500
# E-mails in a DAY to unconfirmed addresses: requested by one member, by one shop, or from one
# network address, and sent to one mailbox. All processes share these limits.
LETTERS_OF_MEMBER: Final = 5
LETTERS_OF_SHOP: Final = 10
LETTERS_OF_CLIENT: Final = 20
LETTERS_TO_MAILBOX: Final = 3
# The number of lists that a merchant's API keys can request in one WINDOW, in all processes
# together. The first list that a process reads for a merchant in five minutes is not counted.
LISTS: Final = 50
LIST: Final = Rule("list", burst=1, every=timedelta(minutes=5))
SUBMISSION: Final = Rule("submission", burst=1, every=timedelta(minutes=5))
LOOK_UP: Final = Rule("look-up", burst=1, every=timedelta(minutes=5))
RETURN: Final = Rule("return", burst=1, every=timedelta(minutes=5))
# How long a payment with a provider counts as recent (see WINDOW). This time is shorter than
# `every` above. So when a client can again make an uncounted request, the client's own payment is
# no longer recent.
KNOWN_FOR: Final = timedelta(minutes=4)
