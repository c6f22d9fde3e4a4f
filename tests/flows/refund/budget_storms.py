"""Storms of refunds that are paid from a budget: `storm(seed)` returns what was wrong.

Beside what storms.py draws: approvals of the budget, its end here and at the wallet, rotations
whose answers are lost or come late, slow visits that others overtake, months, and wallets that
enforce no limit, forget tokens after a day, or are busy.

The invariants, by the wallets' books: no month's payments from the budget are more than its amount;
a token that is believed to be good is good; a good grant is never given up, and none is lost
without a fault; the count is the sum of the payments; its end is told; and nothing that an ended
or replaced grant could still pay is left behind.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from checkout.domain.mandate import Mandate, period_of
from checkout.domain.refund import RefundStatus
from checkout.flows.payment import mandates, sealed
from checkout.flows.payment.cleanup import TryLater
from checkout.flows.payment.visit import WalletVisit
from checkout.flows.refund import budget
from checkout.flows.schedule import sweep
from checkout.open_payments.errors import NotSent, OutcomeUnknown
from sandbox.wallets.provider import Rules
from sandbox.wallets.state import Grant, GrantState, OutgoingPayment
from tests.flows.refund.storms import EXPECTED, NothingToDo, Storm, unnoted
from tests.support.basics import HandClock
from tests.support.flows import World
from tests.support.refund_books import allow, allowed, approve_budget, end_budget

LIMIT: Final = 800
BEGINNINGS: Final = (
    datetime(2026, 1, 31, 0, 30, tzinfo=UTC),
    datetime(2026, 3, 1, 12, tzinfo=UTC),
    datetime(2026, 12, 28, 23, 58, tzinfo=UTC),
)
# A payment that arrives at the wallet this soon after a month's begin may be counted in either.
EITHER: Final = timedelta(minutes=10)
HOURS: Final = timedelta(hours=6)


class BudgetStorm(Storm):
    """A storm over one merchant with a budget."""

    amounts = (100, 300, 500, 700)
    keys = 40  # days pass, after which the same key is another

    def __init__(self, seed: int) -> None:
        self.meanwhile = 0.0
        self.callback: tuple[str, str] | None = None
        self.faults = 0
        self.good_until = 0  # the faults when the token was last known to be good
        self.ended_there: set[str | None] = set()  # tokens that the wallet's owner has ended
        self.nested = False
        super().__init__(seed)
        self.meanwhile = self.rng.choice((0.0, 0.05, 0.3))
        self.rotation_loss = 3 * self.loss
        self.kills = self.rng.choice((0.0, 0.2))
        self.calm = True
        first = allow(self.world, LIMIT)
        self.calm = False
        assert first.terms is not None
        self.start = first.terms.start

    def _made(self, shop: str, seed: int) -> World:
        self.rules = Rules(
            limits_enforced=self.rng.random() < 0.5,
            token_kept=timedelta(days=self.rng.choice((1, 30))),
            busy=self.rng.choice((0.0, 0.0, 0.3)),
        )
        clock = HandClock(self.rng.choice(BEGINNINGS))
        world = World(client=unnoted(), shop=shop, seed=seed, rules=self.rules, clock=clock)
        world.listen("refund_budget.updated")  # before a process has read the merchant
        return world

    # --- weather

    def _weather(self) -> None:
        super()._weather()
        send = self.world.transport.send

        def sent(asked: Any, *, timeout: float) -> Any:
            if asked.method == "POST" and asked.url.endswith("/outgoing-payments"):
                self._note_receivers()
            rotates = asked.method == "POST" and "/token/" in asked.url
            if rotates and not self.calm and self.rng.random() < self.loss:
                self._fault("rotation late")
                self.late.append(asked)
                raise OutcomeUnknown("it arrives when nobody waits any more")
            try:
                answered = send(asked, timeout=timeout)
            except (OutcomeUnknown, NotSent):
                self.faults += 1
                raise
            if (
                rotates and answered.status == 404
            ):  # busy, which a sweep every six hours meets again
                self.faults += 1
            if not self.calm and not self.nested and self.rng.random() < self.meanwhile:
                self._overtake()
            return answered

        self.world.transport.send = sent  # type: ignore[method-assign, assignment]

    def _note(self, asked: Any, answered: Any) -> None:
        """Nothing: the sweep pays too, and of more than one refund."""

    def _note_receivers(self) -> None:
        """Remember to which refund each incoming payment belongs, which is stored by now."""
        saved, self.kill_at = self.kill_at, 0
        for refund in self._refunds():
            if refund.incoming_payment is not None:
                self.receivers[refund.incoming_payment.id] = refund.id
        self.kill_at = saved

    def _fault(self, name: str) -> None:
        self.faults += 1
        self.counts[name] += 1

    def _faults(self) -> int:
        return self.faults + self.counts["killed"]

    def _overtake(self) -> None:
        """Let another process work while an answer is on its way, perhaps longer than a lease."""
        self.nested, mine = True, self.world.services
        self.world.restart()
        self.counts["overtaken"] += 1
        try:
            with suppress(*EXPECTED):
                self.world.clock.pass_time(self.rng.choice((1, 50)))
                act = self.rng.choice((self._rotate, self._rotate, self._sweep, self._choose))
                act()
        finally:
            self.nested, self.world.services = False, mine

    # --- what people and machines do

    def _acts(self) -> dict[Any, int]:
        return super()._acts() | {
            self._ask: 6,
            self._offer: 0,
            self._claim: 0,  # the budget pays no wallet that a customer has named
            self._approve: 1,
            self._call_back: 1,
            self._choose: 8,
            self._ask_budget: 3,
            self._come_back: 4,
            self._rotate: 2,
            self._pass_days: 1,
            self._end_budget: 1 if self.rng.random() < 0.2 else 0,
            self._revoke: 1 if self.rng.random() < 0.2 else 0,
        }

    def _choose(self) -> None:
        refund = self._some(lambda each: each.status is RefundStatus.NEEDS_APPROVAL)
        budget.choose(self.world.services, self.world.key(), refund.id)

    def _ask_budget(self) -> None:
        asked = budget.ask(self.world.services, self.world.key(), LIMIT)
        if self.rng.random() < 0.8:
            self.callback = approve_budget(self.world, asked)

    def _come_back(self) -> None:
        if self.callback is None:
            raise NothingToDo
        allowed(self.world, self.callback)

    def _rotate(self) -> None:
        with suppress(mandates.NoToken):
            mandates.rotate(self._visit(), self._mandate())

    def _end_budget(self) -> None:
        with suppress(TryLater):  # the task comes again, with the next end
            end_budget(self.world)

    def _revoke(self) -> None:
        """The merchant ends the grant in their wallet's settings; nobody is told."""
        state = self.world.network.state
        for grant in self._grants():
            if grant.state is GrantState.ISSUED:
                grant.state = GrantState.REVOKED
                for token in [e for e in state.tokens.values() if e.grant_id == grant.id]:
                    self.ended_there.add(token.value)
                    del state.tokens[token.value]

    def _sweep(self) -> None:
        sweep.run(self.world.services, until=self.world.clock.now() + timedelta(seconds=25))

    def _pass_days(self) -> None:
        for _ in range(self.rng.choice((1, 4, 40, 120))):
            self.world.clock.pass_time(HOURS.total_seconds())
            self._sweep()

    def _end(self) -> bool:
        """As storms.py, and the merchant approves the budget again, if that is needed."""
        with suppress(*EXPECTED):
            if not self._mandate().active:
                self.callback = approve_budget(
                    self.world, budget.ask(self.world.services, self.world.key(), LIMIT)
                )
                self._come_back()
        ended = super()._end()
        mandate = self._mandate()
        return ended and mandate.active and mandate.rotating is None

    # --- what the books say

    def _check(self) -> None:
        super()._check()
        saved, self.kill_at = self.kill_at, 0
        mandate = self._mandate()
        self._check_months()
        self._check_count(mandate)
        self._check_token(mandate)
        self.counts[mandate.status] += 1
        if mandate.gone and not self._told(mandate):
            self.wrong.append("a budget that was lost is not told")
        self.kill_at = saved

    def _check_months(self) -> None:
        for begun, paid in self._by_month().items():
            sure = [e for e in paid if e.created_at >= begun + EITHER]
            if sum(e.debit.value for e in sure) > LIMIT:
                self.wrong.append("a month is overspent")

    def _check_count(self, mandate: Mandate) -> None:
        """Each payment is counted before it is made, and as long as it is not known to be none."""
        if mandate.period is None:
            return
        paid = [e for e in self._budgets_payments() if e.created_at >= mandate.period + EITHER]
        if sum(e.sent and e.debit.value for e in paid) > mandate.spent:
            self.wrong.append("a payment is not counted")

    def _check_token(self, mandate: Mandate) -> None:
        token = self._token(mandate)
        good = token in self.world.network.state.tokens
        theirs = token in self.ended_there
        if mandate.active and mandate.rotating is None and not good and not theirs:
            self.wrong.append("a dead token is believed to be good")
        if mandate.gone and good:
            self.wrong.append("a good grant was given up")
        if mandate.active and mandate.rotating is None:
            self.good_until = self._faults()
        if mandate.gone and not theirs and self._faults() == self.good_until:
            self.wrong.append("the grant was lost without any fault")

    def _check_ended(self) -> None:
        super()._check_ended()
        mandate = self._mandate()
        if mandate.period is None:
            return
        paid = self._budgets_payments()
        # Of one that was sent in part, all stays counted.
        sent = [e for e in paid if e.sent and period_of(self.start, e.created_at) == mandate.period]
        sure = all(e.created_at >= mandate.period + EITHER for e in paid)
        if sure and sum(e.debit.value for e in sent) != mandate.spent:
            self.wrong.append("what is counted is not what was paid")
        alive = [e for e in self._grants() if e.state is GrantState.ISSUED]
        if self._faults() == 0 and len(alive) > 1:
            self.wrong.append("a grant that was replaced can still pay")

    def _by_month(self) -> dict[datetime, list[OutgoingPayment]]:
        found: dict[datetime, list[OutgoingPayment]] = {}
        for each in self._budgets_payments():
            if each.sent:
                found.setdefault(period_of(self.start, each.created_at), []).append(each)
        return found

    def _budgets_payments(self) -> list[OutgoingPayment]:
        grants = {each.id for each in self._grants()}
        self.world.network.advance()
        return [e for e in self.world.network.state.outgoing.values() if e.grant_id in grants]

    def _grants(self) -> list[Grant]:
        return [
            each
            for each in self.world.network.state.grants.values()
            if any("interval" in item.get("limits", {}) for item in each.access)
        ]

    def _token(self, mandate: Mandate) -> str | None:
        if mandate.token is None:
            return None
        return sealed.open_token(self.world.vault, mandate.id, mandate.token).value

    def _told(self, mandate: Mandate) -> bool:
        bodies = [json.loads(each["body"]) for each in self.world.events()]
        budgets = [each for each in bodies if each.get("object") == "refund_budget"]
        return any(each["status"] == mandate.status.value for each in budgets)

    def _mandate(self) -> Mandate:
        found = mandates.of(self.world.services, self.world.merchant.id)
        assert found is not None
        return found

    def _visit(self) -> Any:
        services, merchant = self.world.services, self.world.merchant
        return WalletVisit.begin(services, merchant, within=mandates.DEADLINE)


def storm(seed: int) -> BudgetStorm:
    """Run one storm."""
    found = BudgetStorm(seed)
    found.run()
    found.counts["paid from the budget"] += sum(bool(e.sent) for e in found._budgets_payments())
    return found
