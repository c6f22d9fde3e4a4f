"""Follow the clock: tell of sessions that it has ended, and count all that ended, unwritten.

A session that nobody gave a wallet ends by the clock alone (`Session.left_to_clock`). It is in the
index under its expiry since its creation. Two walks along the index pass each such session once.
The first writes the end, with its event, where the merchant wants that event, as soon as the time
has come. The second counts the session, when nothing can change it any more. A third walk counts
those whose end was written, as long after the end. Walks pass what they count in the transaction
that adds to the days, so rounds that die or overlap count nothing twice and miss nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from checkout.domain.errors import Unavailable
from checkout.domain.session import CLOCK_IS_FINAL_AFTER, Session
from checkout.domain.tally import DayTally, tallied
from checkout.domain.webhooks import EXPIRED
from checkout.flows.payment.sessions import conclude
from checkout.flows.schedule.sweep import place_of
from checkout.ports.services import PayServices
from checkout.ports.sessions import Marks, Walk

STRETCH: Final = 90  # sessions; a transaction has room for as many days, and the walk's mark
# Where few sessions end, those of so long are counted together: each time costs four write units.
GATHERED: Final = timedelta(minutes=5)

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Followed:
    """The counts of one round. `told` counts the sessions whose end was written, with its event."""

    told: int = 0
    counted: int = 0
    failed: int = 0

    def plus(self, other: Followed) -> None:
        self.told += other.told
        self.counted += other.counted
        self.failed += other.failed


def run(services: PayServices, *, until: datetime, walks: Iterable[Walk] = Walk) -> Followed:
    """Take these walks as far as the clock has come, the shards side by side.

    Begins no stretch after `until`.
    """
    total = Followed()
    try:
        marks = services.tallies.marks()
    except Exception as error:  # noqa: BLE001 - what the round has swept is still reported
        logger.warning("following the clock failed, will retry: %s", place_of(error))
        return Followed(failed=1)
    for walk in walks:
        along = partial(_follow, services, walk, marks, until)
        for part in services.side_by_side(along, services.tallies.shards):
            total.plus(part)
    return total


def _follow(
    services: PayServices, walk: Walk, marks: Marks, until: datetime, shard: int
) -> Followed:
    """Take the walk along one shard; a shard that fails stops no other."""
    done = Followed()
    since = marks.get((walk, shard))
    now = services.clock.now()
    telling = walk is Walk.TELL
    to = now if telling else now - CLOCK_IS_FINAL_AFTER
    gathered = timedelta(0) if telling else GATHERED
    try:
        while services.clock.now() < until:
            stretch = services.tallies.ahead(
                walk, shard, to, since=since, limit=STRETCH, gathered=gathered
            )
            if stretch is None:
                break
            done.failed += stretch.unreadable
            written = walk is Walk.ENDS  # else the other lane has it by now, or it goes on
            ended = [
                each
                for each in stretch.sessions
                if each.over_at is not None and each.left_to_clock is not written
            ]
            tallies: tuple[DayTally, ...] = ()
            if telling:
                _tell(services, ended, done)
            else:
                tallies = tallied(ended)
            if not services.tallies.passed(stretch, tallies):
                return done  # another round is here
            since = stretch.to
            done.counted += 0 if telling else len(ended)
            if not stretch.more:
                break
    except Exception as error:  # noqa: BLE001 - the others go on
        logger.warning("following the clock failed, will retry: %s", place_of(error))
        done.failed += 1
    return done


def _tell(services: PayServices, ended: Iterable[Session], done: Followed) -> None:
    """Write the ends that merchants want to be told. Raises Unavailable: then none is passed."""
    for session in ended:
        if session.terminal or not _wanted(services, session.merchant):
            continue
        try:
            conclude(services, session)
            done.told += 1
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - one poisoned record stops no other
            logger.warning("expiring a session failed: %s", place_of(error))
            done.failed += 1


def _wanted(services: PayServices, merchant_id: str) -> bool:
    merchant = services.merchants.get(merchant_id)
    return merchant is not None and any(each.wants(EXPIRED) for each in merchant.endpoints)
