"""Follow the clock: tell of sessions that it has ended, and count them, without writing them.

A session that nobody gave a wallet ends by the clock alone (`Session.left_to_clock`). It is in the
index under its expiry since its creation. Two walks along the index pass each such session once.
The first writes the end, with its event, where the merchant wants that event, as soon as the time
has come. The second counts the session, when nothing can change it any more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from checkout.domain.errors import Unavailable
from checkout.domain.session import CLOCK_IS_FINAL_AFTER, Session
from checkout.domain.tally import DayTally, tallied
from checkout.domain.webhooks import EXPIRED
from checkout.flows.payment.sessions import conclude
from checkout.flows.schedule.sweep import place_of
from checkout.ports.services import PayServices
from checkout.ports.sessions import Walk

STRETCH: Final = 90  # sessions; a transaction has room for as many days, and the walk's mark

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


def run(services: PayServices, *, until: datetime) -> Followed:
    """Take both walks as far as the clock has come, the shards side by side.

    Begins no stretch after `until`.
    """
    total = Followed()
    for walk in Walk:
        total.plus(follow(services, walk, until=until))
    return total


def follow(services: PayServices, walk: Walk, *, until: datetime) -> Followed:
    """Take one walk."""
    total = Followed()
    along = partial(_follow, services, walk, until)
    for part in services.side_by_side(along, services.tallies.shards):
        total.plus(part)
    return total


def _follow(services: PayServices, walk: Walk, until: datetime, shard: int) -> Followed:
    """Take the walk along one shard; a shard that fails stops no other."""
    done = Followed()
    now = services.clock.now()
    to = now if walk is Walk.TELL else now - CLOCK_IS_FINAL_AFTER
    try:
        while services.clock.now() < until:
            stretch = services.tallies.ahead(walk, shard, to, limit=STRETCH)
            if stretch is None:
                break
            done.failed += stretch.unreadable
            ended = [each for each in stretch.sessions if each.left_to_clock]
            tallies: tuple[DayTally, ...] = ()
            if walk is Walk.TELL:
                _tell(services, ended, done)
            else:
                tallies = tallied(ended)
            if not services.tallies.passed(stretch, tallies):
                return done  # another round is here
            done.counted += len(ended) if walk is Walk.COUNT else 0
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
    endpoint = merchant.endpoint if merchant is not None else None
    return endpoint is not None and endpoint.wants(EXPIRED)
