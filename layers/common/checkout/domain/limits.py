"""The limits on what one client may cause (docs/decisions/0007).

A client is a network address (`clients.py`). Strangers may share one, so a limit never keeps
anybody from what they have proven to be theirs, such as signing in with a right key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Rule:
    """`burst` at once and one more every `every` seconds, in each process by itself.

    If it is `shared`, a client with more than that may go on within a number per minute that is
    counted for all processes together.
    """

    name: str
    burst: int
    every: float
    shared: bool = False


# Any request for the hosted page: it costs a few milliseconds and a read.
REQUEST: Final = Rule("request", burst=100, every=0.05)
# These hold a process for as long as servers of the client's choice take to answer. The first ones
# cost no call to the store, so that an ordinary purchase stays within its budget.
SUBMISSION: Final = Rule("submission", burst=1, every=300, shared=True)
RETURN: Final = Rule("return", burst=2, every=300, shared=True)
CHECK: Final = Rule("check", burst=5, every=60, shared=True)
# Wrong keys only: 20 in 15 minutes.
WRONG_KEY: Final = Rule("wrong key", burst=20, every=45)
