"""The limits on what one client may cause (docs/decisions/0009).

A client is a network address (`clients.py`). Strangers may share one, so a limit never keeps
anybody from what they have proven to be theirs, such as signing in with a right key.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final


@dataclass(frozen=True, slots=True)
class Rule:
    """`burst` at once and one more `every` so often, in each process by itself."""

    name: str
    burst: int
    every: timedelta


# Any request for the hosted page: it costs a few milliseconds, and a read.
REQUEST: Final = Rule("request", burst=40, every=timedelta(milliseconds=200))
# A purchase that begins at a payment link writes a session.
PURCHASE: Final = Rule("purchase", burst=10, every=timedelta(seconds=30))
# Receipts by e-mail, which are also counted by session.
RECEIPT: Final = Rule("receipt", burst=6, every=timedelta(minutes=5))
# Wrong keys, passkeys and invitations only: 20 in 15 minutes.
WRONG_KEY: Final = Rule("wrong key", burst=20, every=timedelta(seconds=45))
# Beginnings of a use of a passkey, each of which is a write.
CHALLENGE: Final = Rule("challenge", burst=20, every=timedelta(seconds=6))

# Work at wallets holds a process for as long as servers of the client's choice take to answer. So
# all processes together count it, in windows of WINDOW: a call to the store. This is saved for the
# first ones of a client, in this process, with a provider that this process knows.
WINDOW: Final = timedelta(seconds=10)
ITEMS_SHARE: Final = 3  # of the works a minute: items of one stock in half an hour
SUBMISSION: Final = Rule("submission", burst=1, every=timedelta(minutes=5))
RETURN: Final = Rule("return", burst=1, every=timedelta(minutes=5))
# A provider is known for so long after a payment with it was completed: less than `every`, so that
# a client does not profit from what it has paid itself.
KNOWN_FOR: Final = timedelta(minutes=4)
