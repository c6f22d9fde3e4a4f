"""Two things at once to one session, with real threads, 200 rounds each.

The in-memory DynamoDB makes each operation atomic, as DynamoDB does; which one comes first is up to
the threads, and to pauses of random length before each call to AWS and to a wallet.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from checkout.domain.errors import CheckoutError
from checkout.domain.session import Session, Status
from checkout.flows.payment import sessions
from checkout.open_payments.transport import Request, Response
from tests.product import CEDAR, CountingTransport, World

pytestmark = pytest.mark.endurance

ROUNDS = 200


class Shuffled:
    """A DynamoDB client before whose every call the thread may lose its turn."""

    def __init__(self, client: Any, pause: Callable[[], None]) -> None:
        self._client = client
        self._pause = pause

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if not callable(found) or name == "rows":
            return found

        def call(**request: Any) -> Any:
            self._pause()
            return found(**request)

        return call


class OneAtATime(CountingTransport):
    """The sandbox's core is single-threaded, as behind its sockets: first come, first served."""

    lock = threading.Lock()

    def send(self, request: Request, *, timeout: float) -> Response:
        pause()
        with self.lock:
            return super().send(request, timeout=timeout)


def pause() -> None:
    if random.random() < 0.5:
        time.sleep(random.random() / 4000)


@pytest.fixture
def world() -> World:
    made = World()
    made.transport.__class__ = OneAtATime
    shuffled = Shuffled(made.dynamo, pause)
    made.services.sessions._client = shuffled  # type: ignore[attr-defined]
    return made


def at_once(*actions: Callable[[], object]) -> list[object]:
    """Run all at the same time; each one's result, or the error that it was refused with."""
    results: list[object] = [None] * len(actions)
    barrier = threading.Barrier(len(actions))

    def run(index: int) -> None:
        barrier.wait()
        try:
            results[index] = actions[index]()
        except CheckoutError as refused:
            results[index] = refused

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def rounds(world: World, act: Callable[[Session, tuple[str, str]], object]) -> dict[str, int]:
    """ROUNDS sessions awaiting their callback; how they ended, after what `act` did to each."""
    ended: dict[str, int] = {}
    for _ in range(ROUNDS):
        before = world.received()
        sent = world.transport.count("POST", "/outgoing-payments")
        session = world.submit(world.create(amount=100))
        act(session, world.approve(session))
        session = world.settle(world.session(session.id), seconds=900)
        attempts = world.transport.count("POST", "/outgoing-payments") - sent
        assert attempts <= 1
        paid = world.received() - before
        assert paid == (100 if session.status is Status.COMPLETED else 0), session
        assert session.terminal or session.status is Status.AWAITING_APPROVAL
        ended[session.status] = ended.get(session.status, 0) + 1
    assert len(world.events()) == ended.get(Status.COMPLETED, 0)
    return ended


def test_two_callbacks_at_once_pay_once(world: World) -> None:
    def act(session: Session, callback: tuple[str, str]) -> None:
        at_once(lambda: world.finish(session, callback), lambda: world.finish(session, callback))

    assert rounds(world, act) == {Status.COMPLETED: ROUNDS}
    assert world.transport.count("POST", "/continue/") == ROUNDS


@pytest.mark.parametrize("ending", [sessions.cancel, sessions.expire])
def test_a_callback_against_an_ending_has_one_winner(
    world: World, ending: Callable[..., Session]
) -> None:
    def act(session: Session, callback: tuple[str, str]) -> None:
        key = world.key()
        finished, ended = at_once(
            lambda: _after_a_moment(lambda: world.finish(session, callback)),
            lambda: _after_a_moment(lambda: ending(world.services, key, session.id)),
        )
        current = world.session(session.id)
        assert isinstance(ended, CheckoutError) == (current.status is Status.COMPLETED)
        assert finished is not None

    ended = rounds(world, act)
    assert sum(ended.values()) == ROUNDS
    assert min(ended.get(Status.COMPLETED, 0), ROUNDS - ended.get(Status.COMPLETED, 0)) > 0, ended


def _after_a_moment(action: Callable[[], object]) -> object:
    time.sleep(random.random() / 500)
    return action()


def test_two_wallets_submitted_at_once_have_one_winner(world: World) -> None:
    for _ in range(ROUNDS):
        session = world.create(amount=100)
        results = at_once(
            partial(world.submit, session), partial(world.submit, session, f"{CEDAR}/carol")
        )
        winners = [each for each in results if isinstance(each, Session)]
        current = world.session(session.id)
        assert current.status is Status.AWAITING_APPROVAL
        assert current in winners
        done = world.finish(current, world.approve(current)).session
        assert done.status is Status.COMPLETED
    assert world.received() == 100 * ROUNDS
    assert world.transport.count("POST", "/outgoing-payments") == ROUNDS
