"""Storms of refunds: merchants, callbacks, sweeps, lost messages, kills and hostile wallets, drawn
from a seed. `storm(seed)` returns what was wrong, judged by both wallets' books.

The invariants: no more goes back than was received, nor more of one refund than its amount, nor by
two payments at a time; an ended refund says what was sent; a session holds no less than was sent;
and once the weather is calm everything ends.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from checkout.domain.errors import CheckoutError
from checkout.domain.refund import AmountMode, Refund, RefundStatus
from checkout.domain.session import Session
from checkout.flows.idempotency import Posted, answer
from checkout.flows.refund import approve, claim, reconcile, request
from checkout.flows.refund.request import NewRefund
from checkout.flows.schedule import sweep
from checkout.open_payments.errors import NotSent, OpenPaymentsError, OutcomeUnknown
from checkout.ports.sessions import StaleSession
from sandbox.cloud import table_definitions
from sandbox.wallets.interaction import NoInteraction, NoRedirect
from sandbox.wallets.state import Account, OutgoingPayment
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.flows.refund.test_kills import CALLS, Killed
from tests.support.flows import CEDAR, HARBOR, PREFIX, World
from tests.support.refund_books import again, consent, fund

# Wallets of the merchant. All pay from their own account, and tell the truth about it.
SHOPS: Final = (
    f"{HARBOR}/shop",
    f"{HARBOR}/shop",
    f"{CEDAR}/shop-eur",
    f"{CEDAR}/late",
    f"{CEDAR}/held",
    f"{CEDAR}/partial",
    f"{CEDAR}/stops-midway",
    f"{CEDAR}/receiver-away",
    f"{CEDAR}/no-funds",
    f"{CEDAR}/no-quote-expiry",
)
# The other wallet of the customer, of the same currency.
OTHERS: Final = {True: f"{HARBOR}/dora", False: f"{CEDAR}/alice"}
TOTAL: Final = 2000
STEPS: Final = 40
CALM: Final = 150  # rounds in which everything must end


def unnoted() -> InMemoryDynamoDb:
    """Return tables whose calls count for no function: others act while a wallet answers."""
    return InMemoryDynamoDb(table_definitions(PREFIX), noted=False)


class NothingToDo(Exception):
    """No refund is in the state that an act needs."""


EXPECTED: Final = (
    CheckoutError,
    StaleSession,
    OpenPaymentsError,
    NoInteraction,
    NoRedirect,
    Killed,
    NothingToDo,
)


class Storm:
    amounts: tuple[int, ...] = (100, 500, 700, 1000, 2000)  # of the refunds that are asked for
    keys = 6  # of idempotency

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        shop = self.rng.choice(SHOPS)
        self.world = self._made(shop, seed)
        self.harbor = shop.startswith(HARBOR)
        customer = f"{HARBOR}/bob" if self.harbor else f"{CEDAR}/carol"
        self.session: Session = self.world.pay(
            self.world.create(TOTAL, "usd" if self.harbor else "eur"), customer
        )
        self.world.network.add_account(Account(OTHERS[True], "Dora", "USD", 2, 0))
        self.sale = set(self.world.network.state.incoming)
        if not shop.endswith("no-funds"):
            fund(self.world)
        self.loss = self.rng.choice((0.0, 0.03, 0.15))
        self.rotation_loss = max(self.loss, 0.4)  # of the answers to rotations
        self.kills = 0.1
        self.lies = self.rng.random() < 0.4
        self.kill_at = 0
        self.calm = False
        self.receivers: dict[str, str] = {}  # incoming payment -> refund
        self.links: list[str] = []  # tokens of links for the customer
        self.callbacks: list[tuple[str, tuple[str, str]]] = []
        self.preparing = ""
        self.claims: dict[str, str] = {}  # refund -> the wallet that its customer has named
        self.late: list[Any] = []  # requests that are still on their way
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._weather()

    def _made(self, shop: str, seed: int) -> World:
        return World(client=unnoted(), shop=shop, seed=seed)

    # --- weather

    def _weather(self) -> None:
        world, rng = self.world, self.rng
        handle, send = world.network.handle, world.transport.send

        def sent(asked: Any, *, timeout: float) -> Any:
            if not self.calm and rng.random() < self.loss:
                self.counts["request lost"] += 1
                raise (NotSent if rng.random() < 0.3 else OutcomeUnknown)("lost")
            pays = asked.method == "POST" and asked.url.endswith("/outgoing-payments")
            if pays and not self.calm and rng.random() < 0.1:
                self.counts["late"] += 1
                self.late.append(asked)
                raise OutcomeUnknown("it arrives when nobody waits any more")
            rotates = "/token/" in asked.url and asked.method == "POST"
            loss = self.rotation_loss if rotates else self.loss
            answered = send(asked, timeout=timeout)
            if pays and not self.calm and rng.random() < 0.1:
                self.counts["doubled"] += 1
                answered = send(asked, timeout=timeout)
            self._note(asked, answered)
            if not self.calm and rng.random() < loss:
                self.counts["answer lost"] += 1
                raise OutcomeUnknown("lost")
            return answered

        def told(asked: Any) -> Any:
            answered = handle(asked)
            reads = asked.method == "GET" and "/incoming-payments/" in asked.url
            if self.lies and reads and answered.status == 200:
                body = json.loads(answered.body)
                if body.get("id") in self.receivers:
                    body["receivedAmount"]["value"] = "0"
                    body["completed"] = False
                    return replace(answered, body=json.dumps(body).encode())
            return answered

        world.transport.network = type("Weather", (), {"handle": staticmethod(told)})()
        world.transport.send = sent  # type: ignore[method-assign, assignment]
        for name in CALLS:
            setattr(world.dynamo, name, self._deadly(getattr(world.dynamo, name)))

    def _deadly(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            if self.kill_at == 1:
                self.kill_at = 0
                self.counts["killed"] += 1
                if self.rng.random() < 0.5:
                    call(*given, **named)
                raise Killed
            self.kill_at = max(self.kill_at - 1, 0)
            return call(*given, **named)

        return counted

    def _note(self, asked: Any, answered: Any) -> None:
        """Remember to which refund an incoming payment belongs."""
        made = asked.method == "POST" and asked.url.endswith("/incoming-payments")
        if made and answered.status == 201 and self.preparing:
            self.receivers[json.loads(answered.body)["id"]] = self.preparing

    # --- what people and machines do

    def run(self) -> list[str]:
        for _ in range(STEPS):
            self._step()
            self._check()
        self.calm, self.kill_at = True, 0
        for _ in range(CALM):
            if self._end():
                break
        else:
            self.wrong.append("something never ends")
        self._check()
        self._check_ended()
        return self.wrong

    def _step(self) -> None:
        if self.rng.random() < self.kills:
            self.kill_at = self.rng.randrange(1, 12)
        if self.late and self.rng.random() < 0.3:
            self.world.network.handle(self.late.pop())
        acts = self._acts()
        act = self.rng.choices(tuple(acts), tuple(acts.values()))[0]
        self.counts[act.__name__] += 1
        try:
            with suppress(*EXPECTED):
                act()
        finally:
            if self.kill_at == 0 and self.rng.random() < 0.1:
                self.world.restart()

    def _acts(self) -> dict[Callable[[], None], int]:
        """Return what may happen next, with how often it does."""
        return {
            self._ask: 4,
            self._approve: 5,
            self._call_back: 5,
            self._cancel: 1,
            self._offer: 1,
            self._claim: 1,
            self._look: 4,
            self._wait: 4,
        }

    def _ask(self) -> None:
        amount = self.rng.choice(self.amounts)
        posted: Posted[Refund] = Posted(
            merchant=self.world.merchant.id,
            key=str(self.rng.randrange(self.keys)),
            fingerprint="same",
            render=lambda refund: json.dumps(refund.id),
            status=201,
        )
        asked = NewRefund(session=self.session.id, amount=amount, mode=AmountMode.AT_COST)
        answer(
            self.world.services,
            posted,
            lambda reserve: request.create(self.world.services, self.world.key(), asked, reserve),
        )

    def _approve(self) -> None:
        refund = self._some(lambda each: each.approval_waits)
        self.preparing = refund.id
        prepared = approve.prepare(self.world.services, self.world.key(), refund.id)
        if self.rng.random() < 0.9:
            self.callbacks.append((refund.id, consent(self.world, prepared)))

    def _call_back(self) -> None:
        if not self.callbacks:
            raise NothingToDo
        refund_id, callback = self.rng.choice(self.callbacks)
        for _ in range(3):
            done = approve.finish(
                self.world.services,
                self.world.key(),
                refund_id,
                interact_ref=callback[0],
                presented_hash=callback[1],
            )
            if not done.wait_seconds:
                break
            self.world.clock.pass_time(done.wait_seconds)

    def _cancel(self) -> None:
        refund = self._some(lambda each: not each.terminal)
        request.cancel(self.world.services, self.world.key(), refund.id)

    def _offer(self) -> None:
        refund = self._some(lambda each: not each.terminal)
        made = claim.offer(self.world.services, self.world.key(), refund.id)
        self.links.append(made.link.rpartition("/")[2])

    def _claim(self) -> None:
        if not self.links:
            raise NothingToDo
        token, other = self.rng.choice(self.links), OTHERS[self.harbor]
        claimed = claim.take(self.world.services, self.session.id, token, other, client=None)
        self.claims[claimed.id] = claimed.wallet

    def _look(self) -> None:
        refund = self._some(lambda each: each.payment_in_flight)
        reconcile.step(self.world.services, refund)

    def _wait(self) -> None:
        self.world.clock.pass_time(self.rng.choice((1, 10, 60, 60, 300, 700)))
        sweep.run(self.world.services, until=self.world.clock.now() + timedelta(seconds=25))

    def _end(self) -> bool:
        """Let the merchant finish what is open; True once all has ended."""
        world = self.world
        pending = [each for each in self._refunds() if not each.terminal]
        for refund in pending:
            with suppress(*EXPECTED):
                if refund.status is RefundStatus.NEEDS_APPROVAL:
                    request.cancel(world.services, world.key(), refund.id)
                elif refund.approval_waits:
                    prepared = approve.prepare(world.services, world.key(), refund.id)
                    self.callbacks = [(refund.id, consent(world, prepared))]
                    self._call_back()
        world.clock.pass_time(60)
        sweep.run(world.services, until=world.clock.now() + timedelta(seconds=25))
        return not pending

    def _refunds(self) -> list[Refund]:
        held = self.world.session(self.session.id).refunds or ()
        return list(self.world.services.refunds.of(tuple(each.id for each in held)))

    def _some(self, wanted: Callable[[Refund], bool]) -> Refund:
        found = [each for each in self._refunds() if wanted(each)]
        if not found:
            raise NothingToDo
        return self.rng.choice(found)

    # --- what both wallets' books say

    def _payments(self, refund_id: str) -> list[OutgoingPayment]:
        mine = {url for url, each in self.receivers.items() if each == refund_id}
        return [e for e in self.world.network.state.outgoing.values() if e.receiver in mine]

    def _moved(self, refund_id: str) -> int:
        return sum(each.sent for each in self._payments(refund_id))

    def _receiver(self, refund_id: str) -> str:
        """Return the wallet that has the money of a refund that succeeded."""
        incoming = self.world.network.state.incoming
        paid = [each for each in self._payments(refund_id) if each.sent]
        return incoming[paid[-1].receiver.rpartition("/")[2]].wallet if paid else ""

    def _check(self) -> None:
        saved, self.kill_at = self.kill_at, 0
        self.world.network.advance()
        session, refunds = self.world.session(self.session.id), self._refunds()
        held = {each.id: each.amount for each in session.refunds or ()}
        moved = {each.id: self._moved(each.id) for each in refunds}
        if sum(moved.values()) > TOTAL or session.refunded > TOTAL:
            self.wrong.append("more goes back than was received")
        if len(held) > self.keys:
            self.wrong.append("one key, two refunds")
        for refund in refunds:
            if moved[refund.id] > refund.amount:
                self.wrong.append("a refund moved more than its amount")
            if moved[refund.id] > held[refund.id]:
                self.wrong.append("money moved that no session holds")
            if refund.claimed and refund.wallet != self.claims.get(refund.id, refund.wallet):
                self.wrong.append("a named wallet was forgotten")
            alive = [each for each in self._payments(refund.id) if not each.failed and each.sent]
            if len(alive) > 1 and not refund.terminal:
                self.wrong.append("two payments of one refund")
        self.kill_at = saved

    def _check_ended(self) -> None:
        session = self.world.session(self.session.id)
        held = {each.id: each.amount for each in session.refunds or ()}
        for refund in self._refunds():
            now, moved = again(self.world, refund), self._moved(refund.id)
            self.counts[now.status] += 1
            if now.status is RefundStatus.SUCCEEDED and self._receiver(now.id) != now.wallet:
                self.wrong.append("the money went to another wallet than the refund says")
            if now.status is RefundStatus.SUCCEEDED and moved != refund.amount:
                self.wrong.append("succeeded, and not all was sent")
            if now.status is RefundStatus.CANCELED and (moved or held[refund.id]):
                self.wrong.append("canceled, and money was sent or is held")
            if now.status is RefundStatus.FAILED and held[refund.id] != now.sent:
                self.wrong.append("failed, and the session holds another sum")
            if now.status is RefundStatus.FAILED and not 0 < moved <= now.sent < refund.amount:
                self.wrong.append("failed, and the part that was sent is another")


def storm(seed: int) -> Storm:
    """Run one storm."""
    found = Storm(seed)
    found.run()
    return found
