"""A return from the wallet without an approval is noted, and changes nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkout.domain.attempts import attempts_of, running
from checkout.domain.payment_attempt import Outcome
from checkout.domain.session import Status
from checkout.flows.checkout import approve, ends
from tests.support.flows import World


@pytest.mark.parametrize(
    ("result", "outcome"),
    [("grant_rejected", Outcome.DECLINED), ("invalid_interaction", Outcome.TIMED_OUT)],
)
def test_a_report_is_kept_on_the_attempt_and_moves_nothing(
    world: World, result: str, outcome: Outcome
) -> None:
    session = world.submit(world.create())
    after = world.report(session, result)
    attempt = running(after)
    assert attempt is not None
    assert (attempt.reported, attempt.reported_at) == (outcome, world.clock.now())
    assert attempt.outcome is None
    changed = {"version", "writer", "history", "payment_attempts", "updated_at"}
    same = {name: getattr(session, name) for name in changed}
    assert replace(after, **same) == session
    assert after.history[-1].note == outcome.value


def test_the_customer_can_still_approve_after_a_report(world: World) -> None:
    session, callback = world.awaiting()
    world.report(session)
    assert world.finish(session, callback).session.status is Status.COMPLETED


def test_a_report_is_kept_once(world: World) -> None:
    session = world.report(world.submit(world.create()))
    assert world.report(session, "invalid_interaction") is session


def test_a_browser_that_did_not_begin_the_approval_reports_nothing(world: World) -> None:
    first = world.submit(world.create())
    old = world.proof(first)
    session = world.submit(first)
    for browser in ("", "0" * 32, old):
        assert (
            approve.note_reported(world.services, session, "grant_rejected", browser=browser)
            is session
        )


@pytest.mark.parametrize("result", ["odd", "", "GRANT_REJECTED"])
def test_a_result_that_is_not_known_is_not_kept(world: World, result: str) -> None:
    session = world.submit(world.create())
    assert world.report(session, result) is session


def test_a_session_that_does_not_wait_takes_no_report(world: World) -> None:
    session = world.create()
    assert approve.note_reported(world.services, session, "grant_rejected", browser="") is session
    paying = world.in_doubt()
    assert approve.note_reported(world.services, paying, "grant_rejected", browser="") is paying


def test_a_report_that_comes_too_late_changes_nothing(world: World) -> None:
    session = world.submit(world.create())
    browser = world.proof(session)
    ended = ends.cancel(world.services, world.key(), session.id)
    told = approve.note_reported(world.services, session, "grant_rejected", browser=browser)
    assert told == ended
    expired = world.submit(world.create())
    browser = world.proof(expired)
    world.clock.pass_time(2 * 24 * 3600)
    assert (
        approve.note_reported(world.services, expired, "grant_rejected", browser=browser) is expired
    )


def test_the_next_wallet_ends_a_declined_attempt_as_declined(world: World) -> None:
    session = world.pay(world.report(world.submit(world.create())))
    first, second = attempts_of(session)
    assert (first.outcome, first.reported) == (Outcome.DECLINED, Outcome.DECLINED)
    assert (second.outcome, second.outgoing_payment) == (Outcome.PAID, session.outgoing_payment)
