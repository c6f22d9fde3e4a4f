"""How many buyers at once get an item of one payment link's stock: `python -m benchmarks.stock`.

DynamoDB refuses transactions on one item that overlap. This simulates it in time of its own: buyers
come evenly, each takes an item in a transaction of `TRANSACTION` seconds, one that meets another on
its row is refused at once, and tries again after the product's own pauses (`Persistent`). A buyer
who is refused eight times gets 503 and has to press the button again.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from typing import Any, Final

from botocore.exceptions import ClientError

from checkout.adapters.aws import Persistent
from checkout.domain.ground.errors import Unavailable
from checkout.domain.links import ROWS

TRANSACTION: Final = 0.015  # seconds of a write of four items, within which another one is refused
SECONDS: Final = 20
RATES: Final = (30, 60, 100, 200, 300, 400)  # buyers a second


def refused_share(rate: int, rows: int, seed: int = 1) -> float:
    """Return the share of buyers who are refused, of `rate` a second, with this number of rows."""
    chance = random.Random(f"{rate} {rows} {seed}")  # noqa: S311 - no secret
    busy_until = [0.0] * rows
    waiting: list[tuple[float, int, int, Iterator[float]]] = []
    for number in range(rate * SECONDS):
        came = (number + chance.random()) / rate
        waiting.append((came, number, chance.randrange(rows), _pauses(chance)))
    heapq.heapify(waiting)
    refused = 0
    while waiting:
        now, number, row, pauses = heapq.heappop(waiting)
        if busy_until[row] <= now:
            busy_until[row] = now + TRANSACTION
        elif (pause := next(pauses, None)) is None:
            refused += 1
        else:
            heapq.heappush(waiting, (now + pause, number, row, pauses))
    return refused / (rate * SECONDS)


def _pauses(chance: random.Random) -> Iterator[float]:
    """Yield the pauses that the store makes between tries of a transaction."""
    pauses: list[float] = []

    def conflict() -> dict[str, Any]:
        error = {"Error": {"Code": "TransactionConflictException"}}
        raise ClientError(error, "TransactWriteItems")

    try:
        Persistent(pauses.append, chance.randbytes).ask(conflict)
    except Unavailable:
        yield from pauses


def main() -> None:
    print("| buyers a second | refused with one row | with eight |")
    print("|---|---|---|")
    for rate in RATES:
        shares = (f"{refused_share(rate, rows):.1%}" for rows in (1, ROWS))
        print(f"| {rate} | {' | '.join(shares)} |")


if __name__ == "__main__":
    main()
