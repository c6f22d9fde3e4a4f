"""A process that gives a merchant another key or another wallet is killed (SIGKILL) before and
after each of its writes and calls, with payments in flight: none is lost, and none is made twice.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final
from uuid import uuid4

import pytest

from checkout.domain.merchant.record import Merchant
from checkout.domain.session.record import Session, Status
from sandbox.wallets.state import Account
from tests.kill.child import AMOUNT
from tests.kill.place import SWEEP_EVERY, one_round
from tests.kill.stage import Stage, staged
from tests.support.keys import new_key_pair

pytestmark = [pytest.mark.cloud]

ROUNDS: Final = 30
KNOWN: Final = 61.0  # seconds; a process may know a merchant of a minute before


@pytest.fixture
def stage(emulator: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(emulator, tmp_path_factory.mktemp("kill")) as made:
        yield made


@dataclass(frozen=True)
class Shop:
    """The merchant of a stage, with a second wallet."""

    stage: Stage
    first: str
    second: str

    @classmethod
    def of(cls, stage: Stage) -> Shop:
        first = stage.merchant.wallet_address
        second = f"{first.rpartition('/')[0]}/new-shop"
        stage.network.add_account(Account(second, "New shop", "USD", 2, 0))
        return cls(stage, first, second)

    def stored(self) -> Merchant:
        self.stage.clock.sleep(KNOWN)
        found = self.stage.services.merchants.get(self.stage.merchant.id)
        assert found is not None
        return found

    def received(self) -> int:
        self.stage.network.advance()
        accounts = self.stage.network.state.accounts
        return sum(accounts[each].balance for each in (self.first, self.second))

    def job(self, **given: str) -> dict[str, str]:
        empty = {"to": "", "key_id": "", "pem": ""}
        return {"wallet": self.stored().wallet_address, **empty, **given}


Change = Callable[[Shop], dict[str, str]]


def to_our_key(shop: Shop) -> dict[str, str]:
    """From a key file to our own key; at a merchant that has one, its rotation."""
    return shop.job()


def to_key_file(shop: Shop) -> dict[str, str]:
    key_id, wallet = str(uuid4()), shop.stored().wallet_address
    pem, jwk = new_key_pair(key_id)
    shop.stage.network.register_key(wallet, jwk)
    return shop.job(key_id=key_id, pem=pem)


def to_other_wallet(shop: Shop) -> dict[str, str]:
    other = shop.second if shop.stored().wallet_address == shop.first else shop.first
    return shop.job(to=other)


CASES: Final[dict[str, tuple[tuple[Change, ...], Change]]] = {
    "from a key file to our key": ((), to_our_key),
    "rotation of our key": ((to_our_key,), to_our_key),
    "from our key to a key file": ((to_our_key,), to_key_file),
    "to another wallet, with a key of ours": ((to_our_key,), to_other_wallet),
}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("case", CASES)
def test_a_change_that_is_cut_off_loses_no_payment(stage: Stage, case: str, after: bool) -> None:
    shop = Shop.of(stage)
    first, change = CASES[case]
    for each in first:
        assert stage.run("change", each(shop)).errors == []
    stage.clock.sleep(400)  # the key of ours signs
    deaths, sold, before = 0, 0, shop.received()
    for die_at in count(1):
        waiting = stage.submit(stage.create(), "alice")
        callback = stage.approve(waiting)
        late = stage.submit(stage.create(), "late")
        doubtful = stage.finish(late, stage.approve(late))
        assert doubtful.payment_in_flight
        ended = stage.run("change", change(shop), die_at=die_at, after=after)
        if ended.status != signal.SIGKILL:
            assert ended.errors == []
        else:
            deaths += 1
            assert len(ended.calls) == die_at
        paid = stage.finish(waiting, callback)
        fresh = stage.submit(stage.create(), "alice")
        done = stage.finish(fresh, stage.approve(fresh))
        for session in (paid, done, doubtful):
            assert settled(stage, session).status is Status.COMPLETED, (case, die_at)
            sold += 1
        assert shop.received() == before + sold * AMOUNT
        assert stage.payments() == sold
        if ended.status != signal.SIGKILL:
            break
        # The operator, who has seen no answer, does it again.
        assert stage.run("change", change(shop)).errors == []
    assert deaths >= 2, "a call to the wallet, and the write"


def settled(stage: Stage, session: Session) -> Session:
    for _ in range(ROUNDS):
        session = stage.session(session.id)
        if not session.payment_in_flight:
            return session
        stage.clock.sleep(SWEEP_EVERY.total_seconds())
        one_round(stage.services)
    raise AssertionError(f"{session.id} is still in flight")
