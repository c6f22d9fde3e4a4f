"""The refund budget of a world: its owner, and its invariants.

The owner has it approved in the shop's wallet, uses it, ends it, or revokes it in the wallet, where
nobody is told; and approves it again once it is gone. In some worlds months pass at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from checkout.adapters.dynamo.refunds import mandate_from
from checkout.domain.payment.mandate import Mandate, MandateEvent, Margin, period_of
from checkout.domain.payment.mandate_transitions import MANDATE_TRANSITIONS
from checkout.domain.refund.record import Refund
from checkout.flows.payment import sealed
from checkout.flows.refund import budget, budget_request
from sandbox.wallets.interaction import NoInteraction, NoRedirect
from sandbox.wallets.state import Grant, GrantState, OutgoingPayment
from tests.simulation.boundaries import moment
from tests.simulation.faults import CALM, Around
from tests.simulation.refunding import COMES_BACK

if TYPE_CHECKING:
    from tests.simulation.sim_world import SimWorld

Item = dict[str, Any]
EDGES: Final = {cell: row.to for cell, row in MANDATE_TRANSITIONS.items()}
MINUTE: Final = 60_000  # milliseconds
DAY: Final = timedelta(days=1)
# Two months, and what the last refund takes where the schedule comes each six hours.
MOST: Final = timedelta(days=110)
# A payment that arrives at the wallet this soon after a month's begin may be counted in either.
EITHER: Final = timedelta(minutes=10)


class Owner:
    """One who may approve the budget of `amount` minor units a month."""

    def __init__(self, world: SimWorld, amount: int) -> None:
        self.world = world
        self.amount = amount
        self.margin = Margin(*world.swarm.margin)
        self.rng = world.apart("owner")

    def run(self) -> None:
        """Approve it at the beginning, and see to it now and then."""
        scheduler, rng, storm = self.world.scheduler, self.rng, self.world.profile == "storm"
        for _ in range(6 if storm else 1):
            self.see_to_it()
            scheduler.sleep(rng.randrange(10_000, 5 * MINUTE))
            if storm and rng.random() < 0.08:
                self.world.request("end budget", lambda s: budget_request.end(s, self.world.key))
            if storm and rng.random() < 0.08:
                self.world.checker.budgets.revoke()

    def see_to_it(self) -> None:
        """Have it approved, unless it is in use; at times although it is."""
        mandate = self.world.checker.budgets.mandate
        if mandate is None or not mandate.active or self.rng.random() < 0.1:
            self._approve()

    def _approve(self) -> None:
        world, rng = self.world, self.rng
        asked = world.request(
            "ask budget", lambda s: budget.ask(s, world.key, self.amount, self.margin)
        )
        if asked.value is None or asked.value.interact_url is None:
            return
        careless = world.faults.rates is not CALM and world.profile == "storm"
        drawn = rng.random() if careless else 1.0
        world.scheduler.sleep(rng.randrange(500, 15_000))
        decide = world.network.decline if drawn < 0.1 else world.network.approve
        try:
            back = decide(asked.value.interact_url)
        except (NoRedirect, NoInteraction):
            return
        query = parse_qs(urlsplit(back).query)
        if "interact_ref" not in query or 0.1 <= drawn < 0.15:
            return
        if drawn < 0.3:  # a second click
            world.scheduler.spawn("again", lambda: self._come_back(query), after=rng.randrange(500))
        self._come_back(query)

    def _come_back(self, query: dict[str, list[str]]) -> None:
        world = self.world
        for _ in range(COMES_BACK):
            got = world.request(
                "approve budget",
                lambda s: budget.finish(
                    s,
                    world.key,
                    interact_ref=query["interact_ref"][0],
                    presented_hash=query["hash"][0],
                ),
            )
            if got.value is None or not got.value.wait_seconds:
                return
            world.scheduler.sleep(got.value.wait_seconds * 1000)


class BudgetChecks:
    """Checks of the mandate of a world's merchant."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self.mandate: Mandate | None = None
        self._spent: int | None = None  # what the last operation has counted
        self._ended_there: set[str | None] = set()  # tokens that the wallet's owner has ended

    def _fail(self, check: str, detail: str) -> None:
        self._world.checker.fail(check, detail)

    def due(self, now: datetime) -> list[str]:
        """Return the mandate if the due index would give it."""
        at = self.mandate.needed_at if self.mandate is not None else None
        return (
            [self.mandate.id] if self.mandate is not None and at is not None and at <= now else []
        )

    def written(self, changes: Sequence[tuple[str, Item | None, Item]], by: str) -> None:
        """After an operation of AWS that actor `by` asked for, with all that it changed."""
        self._spent = None
        for table, _, new in changes:
            mine = new.get("id", {}).get("S", "").startswith("man_")
            if mine and table.endswith("-checkout_sessions"):
                self._written(mandate_from(new), by)

    def _written(self, after: Mandate, by: str) -> None:
        before, self.mandate = self.mandate, after
        if before is None:
            return
        if after.period is not None:
            self._spent = after.spent - before.spent_in(after.period)
        told = f"{before.status} v{before.version} -> {after.status} v{after.version}"
        if after.version <= before.version:
            self._fail("budget_version_grows", told)
        self._months(before, after)
        if after.history != before.history:
            self._happened(before, after, by)
        elif before.token != after.token:
            self._world.counts["budget rotated"] += 1
        self._token(after, told)

    def _happened(self, before: Mandate, after: Mandate, by: str) -> None:
        event = MandateEvent(after.history[-1].event)
        self._world.counts[f"budget {event}"] += 1
        told = f"{before.status} -> {after.status} by {event}"
        if EDGES.get((before.status, event)) != after.status:
            self._fail("budget_goes_by_its_table", told)
        self._world.checker.not_redeemed(before, after, event, by)
        if event is MandateEvent.APPROVAL_CLAIMED and before.grant is not None:
            grant = sealed.open_grant(self._world.vault, before.id, before.grant)
            self._world.checker.claimed(grant.continuation.uri.rsplit("/", 1)[-1], by)

    def _months(self, before: Mandate, after: Mandate) -> None:
        """Check that each period is a month from the start, which is one wallet's for good."""
        was, terms = before.terms, after.terms
        if terms is None or was is None:
            return
        if after.period and after.period != period_of(terms.start, after.period):
            self._fail("a_period_is_a_month_from_the_start", f"{after.period}: {terms.start}")
        if terms.payer.id == was.payer.id and terms.start != was.start:
            self._fail("the_months_of_one_wallet_stay", f"{was.start}, {terms.start}")

    def _token(self, after: Mandate, told: str) -> None:
        """A token that is believed to be good is good, and no good one is given up."""
        token = None
        if after.token is not None:
            token = sealed.open_token(self._world.vault, after.id, after.token).value
        good = token in self._world.network.state.tokens
        theirs = token in self._ended_there
        if after.active and after.rotating is None and not theirs and not good:
            self._fail("a_dead_token_is_not_believed", told)
        if after.gone and good:
            self._fail("a_good_grant_is_not_given_up", told)
        if after.gone and not theirs and self._world.profile == "calm":
            self._fail("a_budget_is_lost_by_faults_only", told)
        if after.gone:
            self._world.counts[f"budget is {after.status}"] += 1

    def intended(self, refund: Refund) -> None:
        """The intent to pay a refund from the budget is written, with what it counts there."""
        self._world.counts["budget pays"] += 1
        if self._spent != refund.counted:
            told = f"{refund.counted}, and {self._spent} more in the budget"
            self._fail("budget_is_counted_with_the_intent", told)

    def revoke(self) -> None:
        """The owner ends the grant in the wallet's settings; nobody is told."""
        state = self._world.network.state
        for grant in self._grants():
            if grant.state is GrantState.ISSUED:
                grant.state = GrantState.REVOKED
                for token in [e for e in state.tokens.values() if e.grant_id == grant.id]:
                    self._ended_there.add(token.value)
                    del state.tokens[token.value]
                self._world.faults.happened(Around.BUDGET_REVOKED)

    # --- what the wallet says ---

    def canceling(self, grant_id: str) -> None:
        """Before a grant is canceled, which cannot be undone: the budget has it no more."""
        if grant_id == self._in_use():
            self._fail("a_grant_in_use_is_not_canceled", f"grant {grant_id[:4]}")

    def _in_use(self) -> str | None:
        """Return the id of the grant that the budget has in use, as it is stored."""
        if self.mandate is None or self.mandate.handle is None:
            return None
        handle = sealed.open_grant(self._world.vault, self.mandate.id, self.mandate.handle)
        return handle.continuation.uri.rsplit("/", 1)[-1]

    def money(self) -> None:
        """After a payment of the shop's wallet."""
        mandate = self.mandate
        if mandate is None or mandate.terms is None:
            return
        start, limit = mandate.terms.start, self._world.limit
        paid: dict[datetime, int] = {}
        for each in self._payments():
            period = period_of(start, each.created_at)
            if each.sent and each.created_at >= period + EITHER:
                paid[period] = paid.get(period, 0) + each.debit.value
        for period, value in paid.items():
            if value > limit:
                self._fail("a_month_is_not_overspent", f"{value} of {limit} since {period}")
            if period == mandate.period and value > mandate.spent:
                self._fail("what_the_budget_pays_is_counted", f"{value}, counted {mandate.spent}")

    def finished(self) -> None:
        """All is decided: the count is the sum of the payments, a part of one as if it were all."""
        mandate = self.mandate
        if mandate is None or mandate.terms is None or mandate.period is None:
            return
        start = mandate.terms.start
        paid = [e for e in self._payments() if period_of(start, e.created_at) == mandate.period]
        sure = all(each.created_at >= mandate.period + EITHER for each in paid)
        value = sum(each.debit.value for each in paid if each.sent)
        if sure and value != mandate.spent:
            self._fail("the_budgets_count_is_true", f"{value}, counted {mandate.spent}")

    def _payments(self) -> list[OutgoingPayment]:
        """Return the payments of the months that are counted: those of one wallet."""
        terms = self.mandate.terms if self.mandate is not None else None
        grants = {
            each.id
            for each in self._grants()
            if terms is not None
            and all(
                item["identifier"] == terms.payer.id
                and datetime.fromisoformat(item["limits"]["interval"].split("/")[1]) == terms.start
                for item in each.access
            )
        }
        outgoing = self._world.network.state.outgoing.values()
        return [each for each in outgoing if each.grant_id in grants]

    def _grants(self) -> list[Grant]:
        return [
            each
            for each in self._world.network.state.grants.values()
            if any("interval" in item.get("limits", {}) for item in each.access)
        ]


def pass_months(world: SimWorld, owner: Owner) -> None:
    """Let one or two months pass, in which refunds are asked for now and then."""
    world.pace = 6 * 60 * MINUTE
    rng = world.apart("months")
    until = moment(world.scheduler.now) + rng.randrange(32, 64) * DAY

    def live() -> None:
        world.leave_a_refund(rng)
        while moment(world.scheduler.now) < until:
            world.scheduler.sleep(rng.randrange(2, 9) * DAY // timedelta(milliseconds=1))
            owner.see_to_it()
            world.refund_a_part(rng)

    keeper = world.scheduler.spawn("book-keeper", live)
    most = moment(world.scheduler.now) + MOST
    while not world.violations and moment(world.scheduler.now) < most:
        world.scheduler.run(until=world.scheduler.now + 5 * DAY // timedelta(milliseconds=1))
        if keeper.done:
            break
    world.counts["budget months"] += 1
