"""The benchmark of a burst: its customers, and what it takes for wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from benchmarks import burst
from benchmarks.burst import PAID, Pressed, complaints, judged, paid, press_all
from benchmarks.neighbours import place
from checkout.domain.session.record import Session, Status
from sandbox.gateway import Throttle

PAGE_JS = Path(__file__).parent.parent.parent / "functions" / "pay" / "templates" / "page.js"


@pytest.mark.enable_socket
def test_customers_of_a_crowded_gateway_try_again_and_each_gets_one_price(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(burst, "PAUSES", (0, 0, 0))
    now = [0.0]
    throttles = {burst.ROUTE: Throttle(1, 5, lambda: now[0])}
    with place(account=16, throttles=throttles, limit=0) as here:

        def press(sessions: list[str]) -> list[Pressed]:
            now[0] += 60
            return press_all(here.port, sessions)

        rounds, shown = burst.burst(here, 8, press)
        assert [each.statuses for each in rounds] == [{200: 5, 429: 3}, {200: 3}]
        assert [each.repeated for each in rounds] == [9, 0]
        assert rounds[0].states == {"awaiting_approval": 5, "open": 3}
        assert rounds[1].states == {"awaiting_approval": 8}
        assert paid(here, shown) == {PAID: 8}
        assert complaints(rounds, Counter({PAID: 8}), 8) == {}


@pytest.mark.enable_socket
def test_a_session_in_a_wrong_state_is_noticed() -> None:
    with place(account=16, limit=0) as here:
        rounds, shown = burst.burst(here, 3, partial(press_all, here.port))
        assert len(rounds) == 1
        first, *others = sessions = [each.session for each in shown]
        opened = here.sessions(1)

        def wrong(sessions: list[str], shown: list[str], refused: int = 0) -> dict[str, int]:
            return Counter(judged(here, sessions, shown, Counter({first: refused}))[1])

        assert wrong([*sessions, *opened], sessions) == {}
        assert wrong([*sessions, "cs_1"], sessions) == {"lost": 1}
        assert wrong([*sessions, *opened], [*sessions, *opened]) == {
            "open, though a price was shown": 1,
            "without an incoming payment": 1,
        }
        assert wrong(others, others) == {
            "an incoming payment of no session": 1,
            "a quote of no session": 1,
        }
        assert wrong(sessions, others) == {
            "awaiting_approval, though no price was shown": 1,
            "an incoming payment with 1 quotes": 1,
        }
        kept, state = here.stored(first), here.network.state
        assert kept is not None
        assert kept.incoming_payment is not None
        here.stored = partial(_stored, here.stored, replace(kept, status=Status.OPEN))
        assert wrong(sessions, others) == {"an incoming payment with 1 quotes": 1}
        assert wrong(sessions, others, refused=1) == {}
        quote = next(iter(state.quotes.values()))
        state.quotes["again"] = replace(quote, receiver=kept.incoming_payment.id)
        here.stored = partial(_stored, here.stored, kept)
        assert wrong(sessions, sessions) == {"an incoming payment with 2 quotes": 1}
        assert wrong(sessions, sessions, refused=1) == {}


def _stored(
    others: Callable[[str], Session | None], one: Session, session_id: str
) -> Session | None:
    return one if session_id == one.id else others(session_id)


def test_the_customers_do_what_the_page_does() -> None:
    script = PAGE_JS.read_text("utf-8")
    [pauses] = re.findall(r"PAUSES = \[([0-9, ]+)\]", script)
    [patience] = re.findall(r"PATIENCE = ([0-9]+)", script)
    assert tuple(map(int, pauses.split(", "))) == burst.PAUSES
    assert int(patience) == burst.PATIENCE
    assert "Math.min(pause, 30) * (1 + Math.random() / 2)" in script


def test_the_throttle_is_the_templates() -> None:
    assert burst.throttle() == (20, 40)
