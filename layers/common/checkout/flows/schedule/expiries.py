"""Follow the clock: report sessions that it has ended, and count all ended sessions.

A session without a wallet ends when its time is over (`Session.left_to_clock`). From its creation
on, it is in the index under its expiry. Two walks along the index pass each such session once. At
the expiry, the first walk writes the end with its event, if the merchant wants that event. The
second walk counts the session when nothing can change it any more. A third walk counts the sessions
whose end was written, after the same delay. A walk's mark moves in the same transaction that adds
to the daily figures. So no session is counted twice or missed if rounds die or overlap.

If an end cannot be written, it is not lost: the session is stored as unreported when the first walk
passes it, and the write is tried again each round.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Final

from checkout.domain.ground.errors import Unavailable
from checkout.domain.ground.ids import session_ref
from checkout.domain.ground.providers import Provider
from checkout.domain.reports.daily_totals import DayTotals, tallied
from checkout.domain.session.record import CLOCK_IS_FINAL_AFTER, Session
from checkout.domain.webhooks.event_types import EXPIRED
from checkout.flows.schedule.sweep import place_of
from checkout.flows.session.lookup import write_clock
from checkout.ports import Scan, ScanPositions
from checkout.services import PayServices

STRETCH: Final = 90  # sessions; a transaction has room for 90 days and the walk's mark
# If few sessions end, the ends within this time are counted together, because each count costs four
# write units.
GATHERED: Final = timedelta(minutes=5)
UNREPORTED_MAX: Final = (
    90  # of a shard; if there are more, the sessions are not the cause, so the walk waits
)

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Followed:
    """The counts of one round. `reported` sessions had their end written, with its event."""

    reported: int = 0
    counted: int = 0
    failed: int = 0

    def plus(self, other: Followed) -> None:
        self.reported += other.reported
        self.counted += other.counted
        self.failed += other.failed


def run(services: PayServices, *, until: datetime, walks: Iterable[Scan] = Scan) -> Followed:
    """Take these walks up to now, all shards in parallel. No stretch begins after `until`."""
    total = Followed()
    try:
        positions = services.daily_totals.positions()
    except Exception as error:  # noqa: BLE001 - the results of the sweep are still reported
        logger.warning("following the clock failed, will retry: %s", place_of(error))
        return Followed(failed=1)
    for walk in walks:
        along = partial(_follow, services, walk, positions, until)
        for part in services.run_concurrently(along, services.daily_totals.shards):
            total.plus(part)
    return total


def _follow(
    services: PayServices, walk: Scan, positions: ScanPositions, until: datetime, shard: int
) -> Followed:
    """Take the walk along one shard. A failing shard does not stop the others."""
    done = Followed()
    since = positions.marks.get((walk, shard))
    now = services.clock.now()
    telling = walk is Scan.TELL
    to = now if telling else now - CLOCK_IS_FINAL_AFTER
    gathered = timedelta(0) if telling else GATHERED
    unreported = positions.unreported.get(shard, frozenset()) if telling else frozenset()
    offered = cache(partial(_offered, services))
    try:
        if unreported and services.clock.now() < until:
            was = unreported
            unreported = _unreported(services, dict.fromkeys(sorted(was)), done)
            if unreported != was:
                services.daily_totals.told(shard, was, unreported)
        while services.clock.now() < until:
            batch = services.daily_totals.ahead(
                walk, shard, to, since=since, limit=STRETCH, gathered=gathered
            )
            if batch is None:
                break
            written = walk is Scan.ENDS  # otherwise it is in the other lane, or has not ended
            ended = [
                each
                for each in batch.sessions
                if each.over_at is not None and each.left_to_clock is not written
            ]
            daily_totals: tuple[DayTotals, ...] = ()
            if telling:
                found = {each.id: each for each in ended} | dict.fromkeys(batch.unreadable)
                unreported |= _unreported(services, found, done)
                if len(unreported) > UNREPORTED_MAX:
                    return done
            else:
                daily_totals = tallied(ended, offered)
                done.failed += len(batch.unreadable)
            if not services.daily_totals.passed(batch, daily_totals, unreported):
                return done  # another round takes this walk
            since = batch.to
            done.counted += 0 if telling else len(ended)
            if not batch.more:
                break
    except Exception as error:  # noqa: BLE001 - the others continue
        logger.warning("following the clock failed, will retry: %s", place_of(error))
        done.failed += 1
    return done


def _unreported(
    services: PayServices, ended: Mapping[str, Session | None], done: Followed
) -> frozenset[str]:
    """Write the ends for merchants who want the event; return the sessions still to be written.

    A session that is None is read first. Raises Unavailable; then the walk passes no session.
    """
    failed, early = set(), set()
    for session_id, known in ended.items():
        try:
            session = known or services.sessions.get(session_id)
            if session is None or session.terminal or not _wanted(services, session.merchant):
                continue
            after = write_clock(services, session)
            if after.left_to_clock and not after.terminal:
                early.add(session_id)  # the process that passed it had a faster clock
            else:
                done.reported += 1
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - a damaged record does not stop the others
            logger.warning(
                "expiring a session failed: %s",
                place_of(error),
                extra={"session": session_ref(session_id)},
            )
            failed.add(session_id)
    done.failed += len(failed)
    return frozenset(failed | early)


def _offered(services: PayServices, merchant_id: str) -> Sequence[Provider]:
    """Return the providers that the merchant's page offers; the list may be a little old."""
    merchant = services.merchants.get(merchant_id)
    return (merchant.providers if merchant else ()) or services.providers


def _wanted(services: PayServices, merchant_id: str) -> bool:
    merchant = services.merchants.get(merchant_id)
    return merchant is not None and any(each.wants(EXPIRED) for each in merchant.endpoints)
