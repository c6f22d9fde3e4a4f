"""Decide whether a history of concurrent operations on one object is linearizable.

It is, if its operations can be put into one order in which each answer is right by the object's
sequential specification, and in which an operation that had answered before another was asked comes
before it (Herlihy and Wing, "Linearizability", 1990).

The search is that of Wing and Gong ("Testing and verifying concurrent objects", 1993) with the
memory of Lowe ("Testing for linearizability", 2017): the same set of finished operations with the
same state is tried only once. Maintained checkers exist for Clojure (Knossos), Go (Porcupine) and
Rust (todc-utils), not for Python.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """The time an operation took, in nanoseconds of one monotonic clock.

    `responded` is None where no answer came: it may take effect at any later time, or never.
    """

    invoked: int
    responded: int | None


State = TypeVar("State", bound=Hashable)
Op = TypeVar("Op", bound=Operation)
# Returns the state after an operation that got the answer it has; None: no such answer there.
Step = Callable[[State, Op], State | None]


def linearized(history: Sequence[Op], initial: State, step: Step[State, Op]) -> list[Op] | None:
    """Return the operations in an order that explains every answer; None if there is none.

    Operations without an answer are in it where their effect is needed.
    """
    operations = sorted(history, key=lambda operation: operation.invoked)
    answered = sum(1 << i for i, one in enumerate(operations) if one.responded is not None)
    seen: set[tuple[int, State]] = set()
    path: list[int] = []
    branches = [(0, initial, _next(operations, 0))]
    while branches:
        done, state, nexts = branches[-1]
        if done & answered == answered:
            return [operations[index] for index in path]
        for index in nexts:
            after = step(state, operations[index])
            if after is None or (done | 1 << index, after) in seen:
                continue
            seen.add((done | 1 << index, after))
            path.append(index)
            branches.append((done | 1 << index, after, _next(operations, done | 1 << index)))
            break
        else:
            branches.pop()
            del path[-1:]
    return None


def contradiction(
    history: Sequence[Op],
    initial: State,
    step: Step[State, Op],
    droppable: Callable[[Op], bool],
) -> list[Op]:
    """Return a small part of `history` that cannot be explained; nothing if all of it can.

    `droppable` tells the operations without which the others get no harder to explain, such as
    reads. Each of them that is returned is needed for the contradiction.
    """
    if linearized(history, initial, step) is not None:
        return []
    kept = sorted(history, key=lambda operation: operation.invoked)
    for operation in [each for each in reversed(kept) if droppable(each)]:
        fewer = [each for each in kept if each is not operation]
        if linearized(fewer, initial, step) is None:
            kept = fewer
    return kept


def _next(operations: Sequence[Operation], done: int) -> Iterator[int]:
    """Yield the operations that may come next: none of the others had answered before them."""
    left = [index for index in range(len(operations)) if not done >> index & 1]
    answers = [at for index in left if (at := operations[index].responded) is not None]
    for index in left:
        if answers and operations[index].invoked > min(answers):
            return
        yield index
