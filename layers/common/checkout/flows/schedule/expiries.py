"""Report the sessions that have expired, and count all ended sessions in the daily figures.

If no wallet was given for a session, the session ends at its expiry time by the clock alone, that
is, without a write (`Session.left_to_clock`). From its creation on, an index lists the session
under this time. Each minute, one round continues three walks along the index. A walk passes every
session once. The first walk passes a session at its expiry. If the merchant has requested the event
of the end, this walk writes the end and the event. The second walk passes a session when nothing
can change it any more, and counts it. The third walk counts the sessions whose end was written,
after the same delay as the second walk. The transaction that adds to the daily figures also moves
the walk's mark, which is the point that the walk has reached. So no session is counted twice or
missed if a round dies or if rounds overlap.

If the first walk cannot write a session's end, the session is stored as unreported, and the write
is tried again in each round.
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

STRETCH: Final = 90  # sessions; one transaction can write 90 days and the walk's mark
# If few sessions end, those that end within this time are counted in one transaction, because each
# such transaction costs four write units.
GATHERED: Final = timedelta(minutes=5)
UNREPORTED_MAX: Final = (
    90  # of a shard; if more fail, the cause is not the sessions, so the walk waits
)

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Followed:
    """The counts of one round. `reported` counts sessions whose end was written with its event."""

    reported: int = 0
    counted: int = 0
    failed: int = 0

    def plus(self, other: Followed) -> None:
        self.reported += other.reported
        self.counted += other.counted
        self.failed += other.failed


def run(services: PayServices, *, until: datetime, walks: Iterable[Scan] = Scan) -> Followed:
    """Continue these walks up to now, in all shards in parallel. Begin no work after `until`."""
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
    """Continue the walk along one shard of the index. A failing shard does not stop the others."""
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
            written = walk is Scan.ENDS  # the other walks pass sessions that the clock ends
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
                return done  # another round is taking this walk
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
    """Write the ends of sessions whose merchants have requested the event.

    `ended` maps ids to sessions; a session that is None is read first. Returns the ids of the
    sessions whose end is still to be written. Raises Unavailable; the walk then does not move on.
    """
    failed, early = set(), set()
    for session_id, known in ended.items():
        try:
            session = known or services.sessions.get(session_id)
            if session is None or session.terminal or not _wanted(services, session.merchant):
                continue
            after = write_clock(services, session)
            if after.left_to_clock and not after.terminal:
                early.add(session_id)  # this clock is behind that of an earlier process
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
    """Return the wallet providers that the merchant's page offers. The list may be a little old."""
    merchant = services.merchants.get(merchant_id)
    return (merchant.providers if merchant else ()) or services.providers


def _wanted(services: PayServices, merchant_id: str) -> bool:
    merchant = services.merchants.get(merchant_id)
    return merchant is not None and any(each.wants(EXPIRED) for each in merchant.endpoints)
