"""`python -m benchmarks.burst [CUSTOMERS]`: a thousand customers give their wallets at once.

The real handlers run behind the local gateway, over an in-memory DynamoDB and the sandbox's
wallets: first with the throttle that the template has for the route, then without one, so that all
are under way at once. CLIENT_LIMIT is 0, because all customers have one address. Each customer acts
like the page's script: it repeats the gateway's 429 after the script's pauses. A customer who still
sees that many people are paying presses again, up to PRESSES times in all. Then SAMPLE of them
approve and pay.

After each press it looks at every session, and at the wallets. It exits with 1 if there was an
answer of 500 or above or none, if a session is in a wrong state (awaiting approval with one
incoming payment and one quote after a price was shown, else open), or if a payment of the sample
was not made once. Times are printed for information: gateway, functions and wallets
are one process, and the customers another one. A machine that makes fewer than 40 submissions a
second cannot answer all of the second part within the functions' timeout.
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from html import unescape
from multiprocessing import get_context
from statistics import median, quantiles
from typing import Final
from urllib.parse import urlsplit

import httpx2

from benchmarks.neighbours import Place, place, table
from checkout.domain.session.record import Status
from sandbox.gateway import Throttle
from sandbox.template import template
from tests.support.flows import CEDAR

CUSTOMERS: Final = 1_000
SAMPLE: Final = 50
PRESSES: Final = 5
ACCOUNT: Final = 1_000  # executions at once, as AWS grants them on request
ROUTE: Final = "POST /pay/{session_id}/wallet"
# Seconds, as in page.js: the pauses before a busy gateway is asked again, and the wait for an
# answer.
PAUSES: Final = (2, 4, 8)
PATIENCE: Final = 35
GAVE_UP: Final = 0  # in place of a status: no answer within PATIENCE, or a lost connection

PAID: Final = "303, completed, paid once"

_LEAVE: Final = re.compile(r'id="leave" href="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Pressed:
    """The last answer to a press of the button, and the number of repetitions before it."""

    session: str
    status: int
    repeated: int
    seconds: float
    interact_url: str | None
    cookies: dict[str, str]

    @property
    def refused(self) -> bool:
        """Return whether the product explained why there is no price.

        A 429 comes before any work.
        """
        return 400 <= self.status < 500 and self.status != 429


async def press(transport: httpx2.AsyncBaseTransport, port: int, session: str) -> Pressed:
    """Submit a wallet as the page's script does."""
    client = httpx2.AsyncClient(
        transport=transport,
        base_url=f"http://127.0.0.1:{port}",
        timeout=PATIENCE,
        headers={"accept": "text/html"},
    )
    begun = time.perf_counter()
    repeated = 0
    while True:
        try:
            answer = await client.post(
                f"/pay/{session}/wallet",
                data={"wallet_address": f"{CEDAR}/alice"},
                follow_redirects=True,
            )
        except httpx2.TransportError:
            return Pressed(session, GAVE_UP, repeated, time.perf_counter() - begun, None, {})
        if not crowded(answer) or repeated == len(PAUSES):
            break
        pause = float(answer.headers.get("retry-after") or PAUSES[repeated])
        repeated += 1
        await asyncio.sleep(min(pause, 30) * (1 + random.random() / 2))  # noqa: S311 (no secret)
    seconds = time.perf_counter() - begun
    shown = _LEAVE.search(answer.text) if answer.status_code == 200 else None
    url = unescape(shown[1]) if shown else None
    return Pressed(session, answer.status_code, repeated, seconds, url, dict(client.cookies))


def crowded(answer: httpx2.Response) -> bool:
    """Return whether it is the gateway's own 429, not a page of ours."""
    return answer.status_code == 429 and "html" not in answer.headers.get("content-type", "")


def press_all(port: int, sessions: Sequence[str]) -> list[Pressed]:
    """Let a customer of each session press at the same moment."""

    async def together() -> list[Pressed]:
        # No connection is kept. A browser would repeat a request that is lost when an idle
        # connection closes.
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        async with httpx2.AsyncHTTPTransport(limits=limits) as transport:
            return await asyncio.gather(*(press(transport, port, each) for each in sessions))

    return asyncio.run(together())


@dataclass(frozen=True, slots=True)
class Round:
    """One press by the customers who had no price yet, and the states of all sessions after it."""

    pressed: list[Pressed]
    states: Counter[str]
    wrong: list[str]

    @property
    def statuses(self) -> Counter[int]:
        return Counter(each.status for each in self.pressed)

    @property
    def repeated(self) -> int:
        return sum(each.repeated for each in self.pressed)

    @property
    def row(self) -> str:
        seconds = [each.seconds for each in self.pressed if each.status == 200]
        mid, late = "-", "-"
        if len(seconds) > 1:
            mid, late = f"{median(seconds):.1f}", f"{quantiles(seconds, n=100)[-1]:.1f}"
        answers = ", ".join(f"{count} × {status}" for status, count in self.statuses.most_common())
        return (
            f"{len(self.pressed)} | {answers} | {self.repeated} | {counted(self.states)} "
            f"| {len(self.wrong)} | {mid} | {late}"
        )


def counted(states: Counter[str]) -> str:
    return ", ".join(f"{count} {state}" for state, count in states.most_common())


def judged(
    here: Place, sessions: Sequence[str], shown: Iterable[str], refused: Counter[str]
) -> tuple[Counter[str], list[str]]:
    """Return the states of all sessions, and the errors.

    The customers of `shown` saw a price last. `refused` counts the product's refusals by session:
    such a session may have an incoming payment and quotes that were never shown.
    """
    with_price = set(shown)
    states: Counter[str] = Counter()
    wrong = []
    incoming = set(here.network.state.incoming)
    quotes = here.network.state.quotes.values()
    quoted = Counter(each.receiver.rpartition("/")[2] for each in quotes)
    for each in sessions:
        session = here.stored(each)
        states["lost" if session is None else session.status.value] += 1
        if session is None:
            wrong.append("lost")
            continue
        awaits = each in with_price
        if session.status is not (Status.AWAITING_APPROVAL if awaits else Status.OPEN):
            wrong.append(
                f"{session.status.value}, though {'a' if awaits else 'no'} price was shown"
            )
        if session.incoming_payment is not None:
            own = session.incoming_payment.id.rpartition("/")[2]
            made = quoted.pop(own, 0)
            if own not in incoming or not awaits <= made <= awaits + refused[each]:
                wrong.append(f"an incoming payment with {made} quotes")
            incoming.discard(own)
        elif awaits:
            wrong.append("without an incoming payment")
    wrong += ["an incoming payment of no session"] * len(incoming)
    wrong += ["a quote of no session"] * quoted.total()
    return states, wrong


def burst(
    here: Place, customers: int, press_all: Callable[[list[str]], list[Pressed]]
) -> tuple[list[Round], list[Pressed]]:
    """Let all customers press, and press again if asked to.

    Return the rounds, and the customers who saw a price.
    """
    sessions = here.sessions(customers)
    rounds: list[Round] = []
    shown: dict[str, Pressed] = {}
    refused: Counter[str] = Counter()
    while len(rounds) < PRESSES and len(shown) < customers:
        pressed = press_all([each for each in sessions if each not in shown])
        shown |= {each.session: each for each in pressed if each.interact_url}
        refused.update(each.session for each in pressed if each.refused)
        rounds.append(Round(pressed, *judged(here, sessions, shown, refused)))
    return rounds, [shown[each] for each in sessions if each in shown]


def paid(here: Place, customers: Sequence[Pressed]) -> Counter[str]:
    """Let these customers approve and come back. Return their sessions by result."""
    found: Counter[str] = Counter()
    for each in customers:
        assert each.interact_url is not None
        back = urlsplit(here.network.approve(each.interact_url))
        client = here.client("127.0.0.1")
        client.cookies.update(each.cookies)
        answer = client.get(f"{back.path}?{back.query}")
        session = here.stored(each.session)
        assert session is not None
        sent = [
            payment
            for payment in here.network.state.outgoing.values()
            if session.quote is not None and payment.quote_id == session.quote.id.rpartition("/")[2]
        ]
        times = "once" if len(sent) == 1 else f"{len(sent)} times"
        found[f"{answer.status_code}, {session.status.value}, paid {times}"] += 1
    return found


def throttle() -> tuple[float, int]:
    """Return the template's default for wallet submissions."""
    rate, most = template()["Parameters"]["WalletsThrottle"]["Default"].split(",")
    return float(rate), int(most)


def complaints(rounds: Sequence[Round], bought: Counter[str], sample: int) -> Counter[str]:
    """Return the errors with their counts."""
    found = Counter(each for one in rounds for each in one.wrong)
    for one in rounds:
        for status, count in one.statuses.items():
            if status == GAVE_UP or status >= 500:
                found[f"answer {status or 'missing'}"] += count
    found += bought - Counter({PAID: sample})
    found["not paid"] += max(0, sample - bought.total())
    return +found


def scene(customers: int, throttles: Mapping[str, Throttle]) -> tuple[list[Round], Counter[str]]:
    """Let all customers press, and the sample pay."""
    with (
        place(account=ACCOUNT, throttles=throttles, limit=0) as here,
        ProcessPoolExecutor(1, get_context("spawn")) as elsewhere,
    ):
        rounds, shown = burst(
            here, customers, lambda some: elsewhere.submit(press_all, here.port, some).result()
        )
        return rounds, paid(here, shown[:: max(1, len(shown) // SAMPLE)][:SAMPLE])


def main(arguments: Sequence[str]) -> int:
    """Print the tables; return 1 if anything was wrong."""
    customers = int(arguments[0]) if arguments else CUSTOMERS
    rate, most = throttle()
    wrong: Counter[str] = Counter()
    for told, throttles in (
        (f"{rate:g} a second and {most} in a burst", {ROUTE: Throttle(rate, most)}),
        ("no throttle", {}),
    ):
        rounds, bought = scene(customers, throttles)
        table(
            f"{customers} wallets at once; {told}",
            "customers | answers | repeated by the page | sessions then | wrong "
            "| s to the price, median | 99th percentile",
            (each.row for each in rounds),
        )
        came = "; ".join(f"{count} × {what}" for what, count in bought.items())
        print(f"\n{bought.total()} of them approved: {came}")
        wrong += complaints(rounds, bought, min(SAMPLE, customers))
    if wrong:
        print(f"\nWrong: {counted(wrong)}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
