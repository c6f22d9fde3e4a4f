"""The checker and the specification, on histories written by hand.

In most, an operation is `(begin, end, what)`, in any unit of time.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import combinations, permutations
from typing import Any

import pytest

from tests.linearizability.checker import Operation, contradiction, linearized
from tests.linearizability.purchases import (
    CANCELED,
    EXPIRED,
    OPEN,
    Outcome,
    Recorded,
    Request,
    Tick,
    violations,
)
from tests.support.basics import NOW

# --- the search, on a register ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Access(Operation):
    """`w3` writes 3, `r3` has read 3."""

    what: str


def access(begin: int, end: int | None, what: str) -> Access:
    return Access(invoked=begin, responded=end, what=what)


def register(value: str, one: Access) -> str | None:
    if one.what[0] == "w":
        return one.what[1]
    return value if one.what[1] == value else None


def order(*accesses: Access) -> list[str] | None:
    found = linearized(accesses, "0", register)
    return None if found is None else [one.what for one in found]


def test_no_operations_are_linearizable() -> None:
    assert order() == []


def test_operations_one_after_another_keep_their_order() -> None:
    assert order(access(0, 1, "w1"), access(2, 3, "r1"), access(4, 5, "w2")) == ["w1", "r1", "w2"]
    assert order(access(0, 1, "w1"), access(2, 3, "r0")) is None


def test_operations_at_the_same_time_come_in_the_order_that_explains_them() -> None:
    assert order(access(0, 9, "w1"), access(1, 2, "r0"), access(3, 4, "r1")) == ["r0", "w1", "r1"]


def test_a_value_that_was_seen_is_not_unseen_again() -> None:
    assert order(access(0, 9, "w1"), access(1, 2, "r1"), access(3, 4, "r0")) is None


def test_an_operation_that_ends_as_another_begins_may_come_after_it() -> None:
    assert order(access(0, 5, "r1"), access(5, 9, "w1")) == ["w1", "r1"]


def test_an_operation_without_an_answer_may_come_at_any_time_after_its_beginning_or_never() -> None:
    lost = access(2, None, "w1")
    assert order(lost, access(5, 6, "r0")) == ["r0"]
    assert order(lost, access(5, 6, "r0"), access(7, 8, "r1")) == ["r0", "w1", "r1"]
    assert order(access(0, 1, "r1"), lost) is None


def brute_force(history: list[Access]) -> bool:
    """Try every subset of the unanswered operations, in every order."""
    answered = [one for one in history if one.responded is not None]
    lost = [one for one in history if one.responded is None]
    subsets = [each for size in range(len(lost) + 1) for each in combinations(lost, size)]
    return any(right(line) for some in subsets for line in permutations([*answered, *some]))


def right(line: tuple[Access, ...]) -> bool:
    for place, later in enumerate(line):
        for earlier in line[:place]:
            if later.responded is not None and later.responded < earlier.invoked:
                return False
    value: str | None = "0"
    for one in line:
        value = None if value is None else register(value, one)
    return value is not None


def test_the_search_agrees_with_trying_every_order() -> None:
    chance = random.Random(1)
    answers = set()
    for _ in range(400):
        history = []
        for _ in range(chance.randrange(1, 6)):
            begin = chance.randrange(8)
            end = None if chance.random() < 0.15 else begin + chance.randrange(5)
            history.append(access(begin, end, chance.choice("wr") + chance.choice("012")))
        found = linearized(history, "0", register)
        assert (found is not None) == brute_force(history), history
        assert found is None or right(tuple(found))
        answers.add(found is not None)
    assert answers == {True, False}


def test_a_contradiction_holds_only_the_reads_that_are_needed_for_it() -> None:
    history = [
        access(0, 1, "r0"),
        access(2, 3, "w1"),
        access(4, 5, "r1"),
        access(6, 7, "r0"),
        access(8, 9, "r1"),
    ]
    wrong = contradiction(history, "0", register, lambda one: one.what[0] == "r")
    assert [one.what for one in wrong] == ["w1", "r0"]
    assert contradiction(history[:3], "0", register, lambda one: True) == []


# --- sessions ---

PURCHASE = "p1"
LIFE = timedelta(minutes=5)


def shown(status: str = OPEN, session: str = "cs_1", purchase: str = PURCHASE) -> dict[str, Any]:
    return {
        "id": session,
        "status": status,
        "metadata": {"purchase": purchase},
        "expires_at": (NOW + LIFE).isoformat(),
    }


def record(
    begin: int, end: int | None, request: Request, outcome: Outcome, **fields: Any
) -> Recorded:
    fields = {"who": "thread 1", "clock": NOW, **fields}
    return Recorded(invoked=begin, responded=end, request=request, outcome=outcome, **fields)


def create(begin: int, end: int | None, session: str = "cs_1", **fields: Any) -> Recorded:
    """A creation of the purchase; without an end, without an answer."""
    answer: dict[str, Any] = {"outcome": Outcome.UNKNOWN}
    if end is not None:
        answer = {"outcome": Outcome.CREATED, "sessions": (shown(session=session),)}
    return record(begin, end, Request.CREATE, **{"purchase": PURCHASE} | answer | fields)


def replay(begin: int, end: int, session: str = "cs_1", **fields: Any) -> Recorded:
    return create(begin, end, session, outcome=Outcome.REPLAYED, **fields)


def get(begin: int, end: int, status: str, **fields: Any) -> Recorded:
    answer = {"session": "cs_1", "sessions": (shown(status),)}
    return record(begin, end, Request.GET, Outcome.SHOWN, **answer | fields)


def missing(begin: int, end: int) -> Recorded:
    return record(begin, end, Request.GET, Outcome.MISSING, session="cs_1")


def listed(begin: int, end: int, *sessions: dict[str, Any], **fields: Any) -> Recorded:
    return record(begin, end, Request.LIST, Outcome.SHOWN, sessions=sessions, **fields)


def cancel(begin: int, end: int | None, **fields: Any) -> Recorded:
    return ended(Request.CANCEL, CANCELED, begin, end, fields)


def expire(begin: int, end: int | None, **fields: Any) -> Recorded:
    return ended(Request.EXPIRE, EXPIRED, begin, end, fields)


def ended(
    request: Request, status: str, begin: int, end: int | None, fields: dict[str, Any]
) -> Recorded:
    answer: dict[str, Any] = {"outcome": Outcome.UNKNOWN}
    if end is not None:
        answer = {"outcome": Outcome.SHOWN, "sessions": (shown(status),)}
    return record(begin, end, request, **{"session": "cs_1"} | answer | fields)


def refused(begin: int, end: int, request: Request = Request.CANCEL, **fields: Any) -> Recorded:
    return record(begin, end, request, Outcome.REFUSED, session="cs_1", **fields)


def time_up(begin: int, end: int, after: timedelta = LIFE) -> Tick:
    return Tick(invoked=begin, responded=end, now=NOW + after)


LATE: dict[str, Any] = {"clock": NOW + LIFE}
BUSY: dict[str, Any] = {"outcome": Outcome.BUSY, "sessions": ()}

LINEARIZABLE: dict[str, list[Recorded | Tick]] = {
    "one after another": [create(0, 1), get(2, 3, OPEN), cancel(4, 5), get(6, 7, CANCELED)],
    "two creations with one key": [create(0, 9), replay(1, 8), get(10, 11, OPEN)],
    "a replay shows the first answer, whatever came after": [
        create(0, 1),
        cancel(2, 3),
        replay(4, 5),
    ],
    "a key used with other parameters": [
        create(0, 1, parameters="amount=1"),
        record(2, 3, Request.CREATE, Outcome.KEY_REUSED, purchase=PURCHASE, parameters="amount=2"),
    ],
    "a key that is held before its session is stored": [
        create(0, 9, parameters="amount=1"),
        record(1, 2, Request.CREATE, Outcome.KEY_REUSED, purchase=PURCHASE, parameters="amount=2"),
        listed(3, 4),
    ],
    "a creation without an answer that took effect": [create(0, None), listed(5, 6, shown())],
    "a creation without an answer that took effect later": [
        create(0, None),
        listed(5, 6),
        listed(7, 8, shown()),
        replay(9, 10),
    ],
    "a creation without an answer that never took effect": [create(0, None), listed(5, 6)],
    "cancel and expire at once": [
        create(0, 1),
        cancel(2, 9),
        refused(3, 8, Request.EXPIRE),
        get(10, 11, CANCELED),
    ],
    "a read during a cancellation shows either": [
        create(0, 1),
        cancel(2, 9),
        get(3, 4, OPEN),
        get(5, 6, CANCELED),
    ],
    "a cancellation without an answer": [
        create(0, 1),
        cancel(2, None),
        get(3, 4, OPEN),
        get(5, 6, CANCELED),
        refused(7, 8),
    ],
    "a busy session was not changed": [create(0, 1), cancel(2, 3, **BUSY), cancel(4, 5)],
    "a list during a creation has the session or not": [
        create(0, 9),
        listed(1, 2),
        listed(3, 4, shown()),
    ],
    "a list shows two sessions at different times": [
        create(0, 1),
        create(0, 1, "cs_2", purchase="p2", sessions=(shown(session="cs_2", purchase="p2"),)),
        cancel(2, 9),
        listed(3, 8, shown(CANCELED), shown(session="cs_2", purchase="p2")),
    ],
    "expiry by the clock": [
        create(0, 1),
        time_up(2, 3),
        get(4, 5, EXPIRED, **LATE),
        refused(6, 7, **LATE),
    ],
    "the clock is not there yet": [create(0, 1), time_up(2, 3, LIFE / 2), get(4, 5, OPEN)],
    "a cancellation asked for in time, and written just after a list saw the expiry": [
        create(0, 1),
        cancel(2, 9),
        time_up(3, 4),
        listed(5, 6, shown(EXPIRED), **LATE),
        get(10, 11, CANCELED, **LATE),
    ],
}


@pytest.mark.parametrize("name", LINEARIZABLE)
def test_a_history_that_is_right_is_passed(name: str) -> None:
    assert found(LINEARIZABLE[name]) == []


VIOLATIONS: dict[str, list[Recorded | Tick]] = {
    "a stale read": [create(0, 1), cancel(2, 3), get(4, 5, OPEN)],
    "a lost creation, by id": [create(0, 1), missing(2, 3)],
    "a lost creation, in a list": [create(0, 1), listed(2, 3)],
    "a list that misses a session older than itself": [
        create(0, 1),
        listed(2, 3, shown()),
        listed(4, 5),
    ],
    "a cancellation that is undone": [
        create(0, 1),
        cancel(2, 3),
        get(4, 5, CANCELED),
        get(6, 7, OPEN),
    ],
    "a cancellation that an expiry overwrites": [
        create(0, 1),
        cancel(2, 9),
        expire(3, 8),
        get(10, 11, EXPIRED),
    ],
    "a session that is canceled twice": [create(0, 1), cancel(2, 9), cancel(3, 8)],
    "two sessions for one key": [create(0, 9), create(1, 8, "cs_2")],
    "two sessions for one key, one after the other": [create(0, 1), replay(2, 3, "cs_2")],
    "a replay in other words": [
        create(0, 1),
        replace(replay(2, 3), sessions=({**shown(), "currency": "eur"},)),
    ],
    "a replay of nothing": [replay(0, 1)],
    "the same parameters refused as others": [
        create(0, 1),
        record(2, 3, Request.CREATE, Outcome.KEY_REUSED, purchase=PURCHASE),
    ],
    "a key refused before anybody used it": [
        record(0, 1, Request.CREATE, Outcome.KEY_REUSED, purchase=PURCHASE, parameters="amount=2"),
        create(2, 3, parameters="amount=1"),
    ],
    "other parameters replayed": [
        create(0, 1, parameters="amount=1"),
        replay(2, 3, parameters="amount=2"),
    ],
    "a session seen before it was asked for": [listed(0, 1, shown()), create(2, 3)],
    "a session of nobody": [listed(0, 1, shown())],
    "a session that comes and goes": [create(0, None), listed(2, 3, shown()), listed(4, 5)],
    "an open session that cannot be canceled": [create(0, 1), refused(2, 3)],
    "a list with a status from before": [create(0, 1), cancel(2, 3), listed(4, 5, shown())],
    "a session that is twice in a list": [create(0, 1), listed(2, 3, shown(), shown())],
    "lists that go back in time": [
        create(0, 1),
        cancel(2, 9),
        listed(3, 4, shown(CANCELED)),
        listed(5, 6, shown()),
    ],
    "an answer with other contents": [
        create(0, 1),
        get(2, 3, OPEN, sessions=({**shown(), "amount_total": 1},)),
    ],
    "open after its expiry": [create(0, 1), time_up(2, 3), get(4, 5, OPEN, **LATE)],
    "expired before its time": [create(0, 1), get(2, 3, EXPIRED)],
    "canceled after its expiry": [create(0, 1), time_up(2, 3), cancel(4, 5, **LATE)],
    "canceled after a read has written the expiry": [
        create(0, 1),
        cancel(2, 9),
        time_up(3, 4),
        get(5, 6, EXPIRED, **LATE),
        get(10, 11, CANCELED, **LATE),
    ],
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_violation_is_found(name: str) -> None:
    assert len(found(VIOLATIONS[name])) == 1


def found(events: list[Recorded | Tick]) -> list[str]:
    records = [each for each in events if isinstance(each, Recorded)]
    return violations(records, [each for each in events if isinstance(each, Tick)])


def test_a_violation_is_reported_with_the_requests_that_make_it() -> None:
    ms = 1_000_000
    before = [get(at * ms, (at + 1) * ms, OPEN) for at in range(2, 20, 2)]
    [text] = found(
        [
            create(0, ms, parameters="amount=1000"),
            *before,
            cancel(20 * ms, 21 * ms, who="thread 2"),
            get(22 * ms, 23 * ms, CANCELED),
            get(24 * ms, 25 * ms, OPEN, who="thread 3"),
        ]
    )
    first, *lines, session = text.splitlines()
    assert first == "No order of these requests explains all their answers (purchase p1):"
    assert lines == [
        "     0.000 -     1.000  thread 1  create amount=1000 -> created session 1, open",
        "    20.000 -    21.000  thread 2  cancel -> shown session 1, canceled",
        "    24.000 -    25.000  thread 3  get -> shown session 1, open",
    ]
    assert session.startswith('session 1: {"id":"cs_1","status":"open"')


def test_purchases_are_judged_apart() -> None:
    other = shown(session="cs_2", purchase="p2")
    texts = found(
        [
            create(0, 1),
            create(2, 3, purchase="p2", sessions=(other,)),
            get(4, 5, OPEN),
            record(6, 7, Request.GET, Outcome.MISSING, session="cs_2"),
        ]
    )
    assert [text for text in texts if "purchase p2" in text] == texts
    assert len(texts) == 1
