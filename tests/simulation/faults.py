"""Faults at the two boundaries: their rates in this world, and their counts.

A fault is drawn before each call, from the world's own randomness. Once `off`, nothing goes wrong
any more (what is already on its way still comes).
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, TypeVar

Kind = TypeVar("Kind", bound=StrEnum)


class Http(StrEnum):
    """At the wallet providers."""

    UNREACHABLE = "http unreachable"  # certainly not sent
    REQUEST_LOST = "http request lost"  # no answer, no effect
    ANSWER_LOST = "http answer lost"  # the effect, no answer
    LATE = "http applied late"  # no answer, the effect up to 200 s later
    HANGS = "http hangs"  # the effect at once, the answer after the client has given up
    SLOW = "http slow answer"  # the effect at once, the answer just in time
    REFUSED = "http 4xx"  # by something in between: no effect
    BUSY = "http 408, 409, 425, 429"  # they say nothing: no effect, or one up to 200 s later
    FAILED = "http 5xx"  # with or without its effect
    GARBLED = "http garbled answer"  # the effect, and an answer that is cut short
    DOUBLED = "http delivered twice"  # at once or up to 200 s later
    DOWN = "http provider is down"  # for minutes: refuses connections, or a proxy answers for it


class Aws(StrEnum):
    """At DynamoDB."""

    THROTTLED = "aws throttled"
    CONFLICT = "aws transaction conflict"
    REQUEST_LOST = "aws request lost"
    ANSWER_LOST = "aws answer lost"
    SEEN_OWN = "aws own write seen"  # AWS's client repeats after a lost answer
    LATE = "aws applied late"


class Life(StrEnum):
    """Of the processes."""

    DIED = "process died"
    PAUSED = "process paused"
    KILLED = "process killed at its timeout"


class Around(StrEnum):
    """Of what surrounds them."""

    STALE_READ = "aws stale read"
    DENIED = "aws access denied"  # to the sweep, by a mistake in its rights, for minutes
    TASK_LOST = "clean-up lost"
    TASK_AGAIN = "clean-up tried again"
    OUTSIDE_FULL = "paid from outside: in full"
    OUTSIDE_PART = "paid from outside: a part"
    OUTSIDE_MORE = "paid from outside: more"
    OUTSIDE_CLOSED = "closed from outside"
    OUTSIDE_LATE = "paid from outside after the end"
    WALLET_GONE = "customer's wallet gone at its refund"
    BUDGET_REVOKED = "refund budget revoked in the wallet"
    WITNESS_FROZEN = "shop's wallet shows less than it sent"
    WALLET_LIES = "customer's wallet denies its refund"
    STUMBLED = "wallet cannot take an approval for a while"


class Wider(StrEnum):
    """Of what only some storms have (swarm.py)."""

    PARTIAL = "batch done in part"
    DELETED = "deleted by its time to live"
    OVERLOADED = "table overloaded"  # for up to two minutes: each write is throttled
    LAGS = "index minutes behind"
    STEPPED = "clock set between two requests"
    REPLICA = "read from a replica that was behind"
    KEYLESS = "the shop's key revoked for a while"
    MOVED = "wallet names other servers"
    LATER = "written by a later release"
    CROWDED = "lists of more pages than are read"
    DOWN_DAYS = "provider down for hours or days"
    TWICE = "task received twice at once"
    IDENTITY = "shop changed client, key or wallet"
    HOST_DOWN = "our client document unreachable"
    CROSSED = "others write while a callback is frozen"


HTTP_KINDS: Final = tuple(kind for kind in Http if kind is not Http.DOWN)
_TELLING: Final = (
    Http.REFUSED,
    Http.BUSY,
    Http.LATE,
    Http.ANSWER_LOST,
    Http.DOUBLED,
)  # come twice as often
_HTTP_DRAWN: Final = HTTP_KINDS + _TELLING
AWS_KINDS: Final = tuple(Aws)
LATE_MAX: Final = 200_000  # milliseconds
PAUSE_MAX: Final = 120_000  # longer than any lease
LAGS: Final = (0, 300, 3_000, 3_000)  # milliseconds that a read may be old by


@dataclass(frozen=True, slots=True)
class Rates:
    """Chances: per call to a wallet, per call to AWS, per switch point to die or to pause.

    Calls to wallets whose name holds `focus` fare worse, so that the few that matter most are hit
    often: `focused` is the chance of a fault, and of death or a pause just before or after.
    """

    http: float = 0.0
    aws: float = 0.0
    death: float = 0.0
    pause: float = 0.0
    focus: str = ""
    focused: float = 0.0
    always: Http | None = None  # the one fault of these calls; None: any
    down: str = ""  # the origin of a provider that is down, from and until (milliseconds)
    down_from: int = 0
    down_until: int = 0
    down_status: int = 0  # what a proxy answers for it; 0: nothing can be reached

    def at(self, call: str) -> Rates:
        """The chances around a call to a wallet."""
        if not self.focus or self.focus not in call:
            return self
        once = self.focused / 4
        return replace(
            self,
            http=max(self.http, self.focused),
            death=max(self.death, once),
            pause=max(self.pause, once),
        )


FOCI: Final = (
    "",
    *["POST outgoing-payments"] * 5,  # C8
    "GET outgoing-payments",  # the search for its payment
    "POST continue",
    "POST incoming-payments/complete",
    "GET incoming-payments",  # the witness
    "POST quotes",
)

# Sessions live for 5 minutes or more, their incoming payments for 15 more; a 404 for one is then
# taken for a proxy's for another 15 (witness.py).
DOWN_MAX: Final = 2_000_000  # milliseconds
OUTLASTS: Final = 1_300_000
STRAY: Final = 404
DOWN: Final = (*[""] * 6, "https://localhost:4101/", "https://localhost:4201/")

CALM: Final = Rates()
ONE_PERCENT: Final = Rates(http=0.01)


def storm(rng: random.Random) -> Rates:
    """Anything from a light breeze to a hurricane at one spot."""
    focus = FOCI[rng.randrange(len(FOCI))]
    down = DOWN[rng.randrange(len(DOWN))]
    down_from = rng.randrange(120_000)
    down_until = rng.randrange(down_from, (300_000, DOWN_MAX)[rng.randrange(2)])
    down_status = (0, 0, 502, STRAY)[rng.randrange(4)]
    if down_status == STRAY:  # beyond the end of an incoming payment, where it could be believed
        down_until = rng.randrange(OUTLASTS, DOWN_MAX)
    return Rates(
        down=down,
        down_from=down_from,
        down_until=down_until,
        down_status=down_status,
        focus=focus,
        focused=(0.3, 0.7)[rng.randrange(2)],
        always=_HTTP_DRAWN[rng.randrange(len(_HTTP_DRAWN))] if rng.random() < 0.5 else None,
        http=(0.0, 0.01, 0.05, 0.2)[rng.randrange(4)],
        aws=(0.0, 0.01, 0.05, 0.15)[rng.randrange(4)],
        death=(0.0, 0.001, 0.004, 0.01)[rng.randrange(4)],
        pause=(0.0, 0.002, 0.01, 0.02)[rng.randrange(4)],
    )


class Faults:
    def __init__(self, rng: random.Random, rates: Rates) -> None:
        self._rng = rng
        self.rates = rates
        self.counts: Counter[str] = Counter()

    def off(self) -> None:
        self.rates = CALM

    def http(self, call: str, url: str, now: int) -> Http | None:
        rates = self.rates
        if rates.down and url.startswith(rates.down) and rates.down_from <= now < rates.down_until:
            return self._counted(Http.DOWN)
        if not self._happens(rates.at(call).http):
            return None
        if rates.always is not None and rates.focus and rates.focus in call:
            return self._counted(rates.always)
        return self._counted(_HTTP_DRAWN[self._rng.randrange(len(_HTTP_DRAWN))])

    def aws(self, *, reads: bool) -> Aws | None:
        if not self._happens(self.rates.aws):
            return None
        kinds = (Aws.THROTTLED, Aws.REQUEST_LOST) if reads else AWS_KINDS
        return self._counted(kinds[self._rng.randrange(len(kinds))])

    def late(self) -> int:
        """Milliseconds that an effect comes late, up to LATE_MAX."""
        longest = (2_000, 20_000, LATE_MAX, LATE_MAX)[self._rng.randrange(4)]
        return self._rng.randrange(1, longest)

    def dies(self, near: str = "") -> bool:
        return self._happens(self.rates.at(near).death) and self._counted(Life.DIED) is Life.DIED

    def pause(self, near: str = "") -> int:
        """Milliseconds that the process is frozen for, mostly 0."""
        if not self._happens(self.rates.at(near).pause):
            return 0
        self._counted(Life.PAUSED)
        longest = (2_000, 20_000, PAUSE_MAX)[self._rng.randrange(3)]
        return self._rng.randrange(1, longest)

    def killed(self) -> None:
        self._counted(Life.KILLED)

    def happened(self, kind: Around | Wider, times: int = 1) -> None:
        """Count what was not drawn here."""
        self.counts[kind.value] += times

    def _happens(self, chance: float) -> bool:
        return chance > 0 and self._rng.random() < chance

    def _counted(self, kind: Kind) -> Kind:
        self.counts[kind.value] += 1
        return kind
