"""Shared basics: a fixed now, a hand-moved clock, seeded randomness, a session."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, TypeVar

from checkout.adapters.dynamo.daily_totals import DynamoDailyTotals
from checkout.adapters.runtime import run_in_turn
from checkout.domain.links import PaymentLink
from checkout.domain.payment.machine import HistoryEntry
from checkout.domain.payment.mandate import Mandate, MandateStatus, Terms
from checkout.domain.refund.record import AmountMode, Refund, RefundStatus
from checkout.domain.session.record import LineItem, Session, Status
from checkout.flows.payment.approval import CallbackResult
from checkout.flows.schedule import expiries
from checkout.flows.session.approve import finish
from checkout.ports import Clock, Scan
from checkout.services import PayServices
from open_payments.models import Amount, WalletAddress
from tests.support.protected import CLOCK_IS_FINAL_AFTER

T = TypeVar("T")
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
GAVE_A_WALLET = (HistoryEntry(NOW, "wallet_submitted"),)  # and is open again
SESSION_ID = "cs_0123456789abcdefABCDEF"
REFUND_ID = "re_" + "1" * 22


def at_once(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """The jobs' results, in their order; each has a thread, and they start together."""
    gate = threading.Barrier(len(jobs), timeout=30)

    def run(job: Callable[[], T]) -> T:
        gate.wait()
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))


class HandClock:
    """`ports.Clock`: time passes only by `sleep` and `pass_time`."""

    def __init__(self, now: datetime = NOW) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def sleep(self, seconds: float) -> None:
        self.pass_time(seconds)

    def pass_time(self, seconds: float) -> None:
        self._now += timedelta(milliseconds=round(seconds * 1000))


def seeded(seed: int = 1) -> Any:
    """Random bytes that repeat themselves from run to run."""
    return random.Random(seed).randbytes


def between(port: Any, method: str, act: Callable[[], object], *, times: int = 1) -> Any:
    """Return the port, with `act` before each of the next `times` calls of the method."""
    left = iter(range(times))

    def called(*arguments: Any, **options: Any) -> Any:
        if next(left, None) is not None:
            act()
        return getattr(port, method)(*arguments, **options)

    class Between:
        def __getattr__(self, name: str) -> Any:
            return called if name == method else getattr(port, name)

    return Between()


def a_session(status: Status = Status.OPEN, **changes: Any) -> Session:
    """A session of 20.00 USD, created at NOW, for a day."""
    session = Session(
        id=SESSION_ID,
        merchant="mer_1",
        status=status,
        version=1,
        writer="first",
        created_at=NOW,
        updated_at=NOW,
        expires_at=NOW + timedelta(days=1),
        amount_total=2000,
        currency="usd",
        receive=Amount(2000, "USD", 2),
        line_items=(LineItem("usd", "Tea", None, 1000, 2),),
        metadata_json="{}",
        success_url="https://shop.example/thanks",
        cancel_url="https://shop.example/basket",
    )
    return replace(session, **changes)


def a_refund(status: RefundStatus = RefundStatus.NEEDS_APPROVAL, **changes: Any) -> Refund:
    """A refund of 5.00 of the session's 20.00 USD, requested at NOW."""
    refund = Refund(
        id=REFUND_ID,
        merchant="mer_1",
        status=status,
        version=1,
        writer="first",
        updated_at=NOW,
        created_at=NOW,
        session=SESSION_ID,
        amount=500,
        currency="usd",
        mode=AmountMode.AT_COST,
        cost=Amount(500, "USD", 2),
        wallet="https://wallet.example/alice",
        by="first (…abcd)",
    )
    return replace(refund, **changes)


def a_mandate(status: MandateStatus = MandateStatus.ACTIVE, **changes: Any) -> Mandate:
    """A refund budget of 100.00 USD a month, approved at NOW, of which 30.00 are spent."""
    wallet = WalletAddress(
        id="https://wallet.example/shop",
        asset_code="USD",
        asset_scale=2,
        auth_server="https://auth.wallet.example",
        resource_server="https://wallet.example",
    )
    mandate = Mandate(
        id="man_1",
        merchant="mer_1",
        status=status,
        version=1,
        writer="first",
        updated_at=NOW,
        created_at=NOW,
        terms=Terms(wallet, Amount(100_00, "USD", 2), NOW),
        period=NOW,
        spent=30_00,
    )
    return replace(mandate, **changes)


def count_ends(daily_totals: DynamoDailyTotals, clock: Clock) -> int:
    """Count the sessions that ended by a write, as later rounds would; return their number."""
    later = HandClock(clock.now() + CLOCK_IS_FINAL_AFTER + expiries.GATHERED)
    services: Any = SimpleNamespace(
        daily_totals=daily_totals,
        clock=later,
        run_concurrently=run_in_turn,
        merchants=SimpleNamespace(get=lambda _: None),
        providers=(),
    )
    until = later.now() + timedelta(seconds=50)
    return expiries.run(services, until=until, walks=[Scan.ENDS]).counted


def a_link(**changes: Any) -> PaymentLink:
    """A payment link for tea at 20.00 USD, without a stock."""
    link = PaymentLink(
        id="plink_0123456789abcdefABCDEF",
        merchant="mer_1",
        created_at=NOW,
        name="Tea",
        unit_amount=2000,
        currency="usd",
    )
    return replace(link, **changes)


def come_back(
    services: PayServices, session_id: str, reference: str, presented: str
) -> CallbackResult[Session]:
    """Follow the wallet's link as a browser that obeys Refresh; return the last response."""
    for _ in range(20):  # longer than an approval is kept
        found = finish(services, session_id, interact_ref=reference, presented_hash=presented)
        if not found.wait_seconds:
            break
        services.clock.sleep(found.wait_seconds)
    return found


def words(text: str) -> list[str]:
    """Return the words of a text, such as the URLs of a long list of cases."""
    return text.split()


class Left:
    """Lambda's context with a number of seconds left."""

    def __init__(self, seconds: float) -> None:
        self._milliseconds = round(seconds * 1000)

    def get_remaining_time_in_millis(self) -> int:
        return self._milliseconds
