"""Fuzz the service: `make fuzz REQUESTS=20000 SEED=…`.

A part of the requests is made of the OpenAPI documents by Schemathesis, the others are right
requests with random changes. A tenth goes over a socket to the local gateway.
"""

from __future__ import annotations

import argparse
import logging
import random
import secrets
import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from checkout.domain.merchant.people import Scope
from sandbox.server import Incoming
from tests.fuzzing import documented, raw
from tests.fuzzing.target import Heard, InProcess, OverSocket, function_of, listening, problems
from tests.support.doors import Doors
from tests.support.flows import PREFIX
from tests.support.services import put_key

OF_DOCUMENTS: Final = 0.4  # of the requests
OVER_SOCKET: Final = 0.1
IN_ONE_WORLD: Final = 1_000  # requests; tables that grow without end make all others slower
SHOWN: Final = 20
_DOCS: Final = Path(__file__).parents[2] / "docs"
DOCUMENTS: Final = [_DOCS / "openapi.json", _DOCS / "openapi-v1.json"]


class Run:
    """Keep the requests of a run, and their outcome."""

    def __init__(self, number: int, socket_share: float) -> None:
        self.number, self._share = number, socket_share
        self._draw = random.Random(number)
        self.counts: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.found: Counter[str] = Counter()
        self.target = InProcess(Doors())
        self.socket: OverSocket | None = None

    def ask(self, request: Incoming) -> Heard:
        over = self.socket is not None and self._draw.random() < self._share
        heard = self.socket.ask(request) if over and self.socket else self.target.ask(request)
        self.counts["over a socket" if over else "in process"] += 1
        self.counts[function_of(request.target) or "elsewhere"] += 1
        self.statuses[heard.status] += 1
        self.counts["5xx"] += heard.status >= 500
        for said in problems(request, heard):
            self.note(request, said)
        return heard

    def note(self, request: Incoming, said: str) -> None:
        """Keep a failure; the first ones are shown with their requests."""
        self.found[said] += 1
        if self.found[said] == 1 and len(self.found) <= SHOWN:
            print(f"  {said}\n    {request!r:.1500}", flush=True)

    def renewed(self, running: ExitStack) -> None:
        """Go on over new tables."""
        self.target = InProcess(Doors())
        world = self.target.doors.world
        # A key that may do everything, so that no route refuses it.
        put_key(world.dynamo, PREFIX, replace(world.key(), scopes=tuple(Scope)))
        running.close()
        self.socket = running.enter_context(listening(self.target.doors)) if self._share else None


def fuzz(count: int, number: int, documents: list[Path], *, socket_share: float) -> Run:
    """Ask `count` times. Everything follows from the seed `number`."""
    run = Run(number, socket_share)
    with ExitStack() as running:
        for document in documents:
            run.renewed(running)
            doors = run.target.doors
            ids = [doors.create().id, doors.approved()[0].id, doors.world.in_doubt().id]
            documented.run(
                document,
                count=int(count * OF_DOCUMENTS / len(documents)),
                number=number,
                key=doors.key,
                ids=ids,
                ask=run.ask,
                found=run.note,
            )
        run.counts["of documents"] = run.statuses.total()
        draw = random.Random(number)
        while run.statuses.total() < count:
            run.renewed(running)
            rights = raw.right(run.target.doors)
            for _ in range(min(IN_ONE_WORLD, count - run.statuses.total())):
                run.ask(raw.changed(draw, draw.choice(rights)))
    return run


def main() -> int:
    """Run, print the seed and the counts, and return 1 if there was any failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--document", type=Path, action="append", help="an OpenAPI document")
    parser.add_argument("--socket", type=float, default=OVER_SOCKET, help="the share over a socket")
    chosen = parser.parse_args()
    logging.disable(logging.WARNING)  # uvicorn tells of each malformed request
    number = secrets.randbelow(2**31) if chosen.seed is None else chosen.seed
    documents = chosen.document or DOCUMENTS
    print(f"fuzz: {chosen.requests} requests, seed {number}", flush=True)
    run = fuzz(chosen.requests, number, documents, socket_share=chosen.socket)
    by_status = ", ".join(f"{status}: {many}" for status, many in sorted(run.statuses.items()))
    parts = ("of documents", "over a socket", "api", "v1", "pay", "dashboard")
    counted = ", ".join(f"{part} {run.counts[part]}" for part in parts)
    print(f"fuzz: {run.statuses.total()} responses ({by_status}); {counted}")
    print(f"fuzz: 5xx {run.counts['5xx']}, failures {run.found.total()}, seed {number}")
    return 1 if run.found else 0


if __name__ == "__main__":
    sys.exit(main())
