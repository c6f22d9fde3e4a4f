"""The invariants of refunds, looked at after every effect of a simulated world.

They read the refunds' rows and both wallets' books. The shop's own wallet pays nothing but refunds,
so that what it has paid is known. The transition table is a copy of when this module was loaded.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from checkout.adapters.dynamo.events import event_from
from checkout.adapters.dynamo.refunds import refund_from
from checkout.domain.refund.record import AmountMode, Refund, RefundEvent, RefundStatus
from checkout.domain.refund.transitions import REFUND_TRANSITIONS
from checkout.domain.session.record import Session
from checkout.domain.webhooks.event_types import CHARGE_REFUNDED
from checkout.flows.payment import sealed
from sandbox.wallets.state import OutgoingPayment
from tests.simulation.boundaries import Process
from tests.simulation.providers import CEDAR, OURS

if TYPE_CHECKING:
    from tests.simulation.sim_world import SimWorld

Item = dict[str, Any]
EDGES: Final = {cell: row.to for cell, row in REFUND_TRANSITIONS.items()}
TOLD: Final = {cell: row.webhook for cell, row in REFUND_TRANSITIONS.items()}
ENDED: Final = (RefundStatus.SUCCEEDED, RefundStatus.FAILED, RefundStatus.CANCELED)
EVENTS: Final = ("refund.created", "refund.updated", "refund.failed")
INTENTS: Final = (RefundEvent.PAYMENT_INTENDED, RefundEvent.BUDGET_INTENDED)


class RefundChecks:
    """Checks of a world's refunds. `asked` counts the requests, each under one idempotency key."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self.records: dict[str, Refund] = {}
        self._links: set[str] = set()  # refunds whose link was not used yet
        self.asked = 0
        self._of: dict[str, str] = {}  # incoming payment -> refund
        self._intents: dict[str, list[tuple[str, datetime]]] = defaultdict(list)  # by quote
        self._seen: dict[str, int] = {}  # the price that a person has confirmed
        self._kept_back: set[str] = set()  # refunds that nobody has asked for since they were held
        self._void: dict[str, str] = {}  # quotes of which it was said that nothing was sent
        self._moved: dict[str, int] = {}  # payment -> what was sent of it
        self._taken: set[str] = set()
        # Actors that rotated the token of a refund, with all tokens as they were stored then.
        self._rotated: dict[str, Mapping[str, str | None]] = {}
        self._expected: Counter[tuple[str, str]] = Counter()  # refund, type of event
        self._told: Counter[tuple[str, str]] = Counter()

    def _fail(self, check: str, detail: str) -> None:
        self._world.checker.fail(check, detail)

    def taken(self, refund_id: str) -> bool:
        """Return whether this is the first one who cares for the refund."""
        new = refund_id not in self._taken
        self._taken.add(refund_id)
        return new

    def forgotten(self, session_id: str) -> bool:
        """Return whether the session has a refund that nobody cares for."""
        return any(each not in self._taken for each in self.of(session_id))

    def of(self, session_id: str) -> list[str]:
        """Return the ids of the session's refunds."""
        return [each.id for each in self.records.values() if each.session == session_id]

    def due(self, now: datetime) -> list[str]:
        """Return the refunds that the due index would give."""
        records = self.records.values()
        return [each.id for each in records if each.needed_at and each.needed_at <= now]

    # --- what the product writes ---

    def written(self, changes: Sequence[tuple[str, Item | None, Item]], by: str) -> None:
        """After an operation of AWS that actor `by` asked for, with all that it changed."""
        for table, _, new in changes:
            row_id = new.get("id", {}).get("S", "")
            if table.endswith("-checkout_sessions") and row_id.startswith("re_"):
                self._refund_written(new, by)
        for table, old, new in changes:
            if table.endswith("-webhook_events") and old is None:
                self._event_written(new)
                self._charge_told(new, {each["id"]["S"] for _, _, each in changes if "id" in each})
            session = self._world.checker.sessions.get(new.get("id", {}).get("S", ""))
            if table.endswith("-checkout_sessions") and session is not None:
                self._held(session)

    def _refund_written(self, item: Item, by: str) -> None:
        after = refund_from(item)
        before = self.records.get(after.id)
        self.records[after.id] = after
        self._places(after, item)
        if before is None:
            self._world.counts["refunds"] += 1
            self._expected[after.id, "refund.created"] += 1
            return
        told = f"{before.status} v{before.version} -> {after.status} v{after.version}"
        if after.version <= before.version:
            self._fail("refund_version_grows", told)
        event = RefundEvent.CHECKED
        if after.history != before.history:
            event = RefundEvent(after.history[-1].event)
        elif before.status is RefundStatus.NEEDS_APPROVAL:
            event = RefundEvent.BUDGET_WAITS
        self._world.counts[f"refund {event}"] += 1
        at_once = self._world.checker.comes_at_once(by)
        if at_once and event is not RefundEvent.PAYMENT_CREATED:
            self._fail("nothing_comes_before_w7", f"{event} is written first")
        self._edge(before, after, event, told)
        self._world.checker.not_redeemed(before, after, event, by)
        if after.incoming_payment is not None:
            self._of[_last(after.incoming_payment.id)] = after.id
        self._in_order(before, after, event, by)

    def _edge(self, before: Refund, after: Refund, event: RefundEvent, told: str) -> None:
        self._world.counts[f"refund row {before.status} {event}"] += 1
        if EDGES.get((before.status, event)) != after.status:
            self._fail("refund_goes_by_its_table", f"{told} by {event}")
        said = (after.status, after.sent, after.amount)
        noted = (before.status, event) == (
            RefundStatus.PAID_ELSEWHERE,
            RefundEvent.CANCEL_REQUESTED,
        )
        if noted:  # a mistaken note may be taken back
            said = (before.status, *said[1:])
        if before.terminal and said != (before.status, before.sent, before.amount):
            self._fail("ended_refund_never_changes", f"{told} by {event}")
        labeled = event is RefundEvent.METADATA_CHANGED
        if not labeled and after.metadata_json != before.metadata_json:
            self._fail("refund_metadata_is_what_was_written", told)
        webhook = TOLD.get((before.status, event))
        if webhook is not None:
            self._expected[after.id, webhook] += 1

    def _in_order(self, before: Refund, after: Refund, event: RefundEvent, by: str) -> None:
        """Check what must come before this write."""
        if by in self._rotated:
            stored = self._rotated.pop(by).get(before.id)
            replaced = before.token not in (stored, None)  # by another approval meanwhile
            if not after.terminal and not replaced and before.token == after.token:
                self._fail("rotated_refund_token_is_kept", f"{event} by {by}")
        if event is RefundEvent.APPROVAL_CLAIMED and before.grant is not None:
            grant = sealed.open_grant(self._world.vault, before.id, before.grant)
            self._world.checker.claimed(_last(grant.continuation.uri), by)
        if event in INTENTS:
            assert after.instruction is not None
            assert after.quote is not None
            self._intents[after.quote.id].append((after.id, after.instruction.deadline))
        self._after_a_restore(after, event)
        self._claimed(after, event)
        self._by_budget(before, after, event)
        if event is RefundEvent.NOTHING_SENT:
            assert before.quote is not None
            self._void[_last(before.quote.id)] = after.id
            if self._sent(after):
                self._fail("nothing_sent_is_true", f"{self._sent(after)} of {after.amount}")
        if event is RefundEvent.SUCCEEDED:
            self._succeeded(before)
        if event is RefundEvent.FAILED and not 0 < after.sent < after.amount:
            self._fail("failed_after_a_part", f"{after.sent} of {after.amount}")

    def _after_a_restore(self, after: Refund, event: RefundEvent) -> None:
        """What was held before it was sent is sent only if a person asks for it anew."""
        if event is RefundEvent.HELD and after.status is RefundStatus.NEEDS_APPROVAL:
            self._kept_back.add(after.id)
        if event in (RefundEvent.APPROVAL_ASKED, RefundEvent.BUDGET_CHOSEN):
            self._kept_back.discard(after.id)
        if event in INTENTS and after.id in self._kept_back:
            self._fail("a_held_refund_waits_for_a_person", f"{event} v{after.version}")

    def _claimed(self, after: Refund, event: RefundEvent) -> None:
        """A link is used once, and each payment before it, or before the end, is proven dead."""
        if event is RefundEvent.CLAIM_OFFERED:
            self._links.add(after.id)
        if event is RefundEvent.CLAIMED:
            if after.id not in self._links:
                self._fail("a_link_is_used_once", f"{after.wallet} v{after.version}")
            self._links.discard(after.id)
        if event not in (RefundEvent.CLAIMED, RefundEvent.EXPIRY_PASSED):
            return
        mine = [
            quote
            for quote, intents in self._intents.items()
            if any(refund_id == after.id for refund_id, _ in intents)
        ]
        if not self._void.keys() >= {_last(each) for each in mine}:
            self._fail("the_payment_before_is_proven_dead", f"{event}: {mine}")

    def _by_budget(self, before: Refund, after: Refund, event: RefundEvent) -> None:
        """Without a person no more goes back than has arrived, and the owner's margin."""
        if event is RefundEvent.BUDGET_CHOSEN:
            self._seen[after.id] = before.quote.debit.value if before.quote else 0
        if event is not RefundEvent.BUDGET_INTENDED:
            return
        self._world.checker.budgets.intended(after)
        if after.claimed:
            self._fail("the_budget_pays_no_wallet_that_was_named", after.wallet)
        assert after.quote is not None
        session = self._world.checker.sessions[after.session]
        percent, units = self._world.swarm.margin
        came = after.amount * session.receive.value // session.amount_total
        most = came + came * percent // 100 + units
        if after.quote.debit.value > max(most, self._seen.pop(after.id, 0)):
            self._fail("a_strangers_number_pays_nothing_out", f"{after.quote.debit} for {came}")

    def _succeeded(self, before: Refund) -> None:
        """The shop's wallet has sent all; where it was converted, as much as can be told."""
        assert before.quote is not None
        payments = [each for each in self._payments(before.id) if each.sent]
        assert before.incoming_payment is not None
        least = before.quote.receive.value
        if not before.quote.debit.same_asset(before.quote.receive):
            least = -(-before.quote.debit.value // 2)
        elif before.incoming_payment.id.startswith(CEDAR) and least >= 10:
            least -= 1  # it leaves the shop's provider, and is converted on its way
        sent = sum(each.sent + max(0, self._world.swarm.off) for each in payments)
        counted = -(-before.amount * sent // least)  # rounded up, so that less is released
        if counted < before.amount:
            self._fail("succeeded_was_sent", f"{sent} of {least}")

    def _places(self, after: Refund, item: Item) -> None:
        told = f"{after.status} v{after.version}"
        if after.status is RefundStatus.SENDING and after.problem is not None:
            self._fail("a_problem_ends_with_the_next_payment", f"{told}: {after.problem}")
        if after.grant is not None and after.budget_at is not None:
            self._fail("one_way_to_pay_at_a_time", told)
        if ("due_at" in item) is after.terminal:
            self._fail("unfinished_refund_is_due", told)
        if after.terminal is not ("ttl" in item):
            self._fail("undecided_refund_has_no_end", told)
        if after.terminal and (after.grant or after.token or after.interact_url):
            self._fail("refund_keeps_no_secret", told)
        if after.token is not None and after.status is not RefundStatus.SENDING:
            self._fail("refund_token_leaves_with_its_payment", told)

    def _held(self, session: Session) -> None:
        """A session holds what is paid back, and no more than it has received."""
        held = {each.id: each.amount for each in session.refunds or ()}
        received, asked = session.amount_received or 0, session.receive.value
        if (session.received or 0) == asked + 1 and asked >= 10 and session.status == "completed":
            received = session.amount_total  # a unit of rounding is nobody's
        if sum(held.values()) > received:
            self._fail("no_more_back_than_came", f"{sum(held.values())} of {received}")
        self._gives(session, received)
        self._all_held(held)
        mine = {each.id for each in self.records.values() if each.session == session.id}
        if mine - held.keys():
            self._fail("each_refund_is_held", f"{len(mine - held.keys())} of {len(mine)} are not")

    def _gives(self, session: Session, received: int) -> None:
        """The customer gets what they paid, and in the shop's currency no more than has arrived."""
        held, quote = session.refunds or (), session.quote
        if quote is None or not held:
            return
        paid, given, receive = quote.debit, sum(each.give for each in held), session.receive
        whole = paid.value
        if paid.asset_code == receive.asset_code:
            arrived = Fraction(session.received or 0, 10**receive.asset_scale)
            whole = min(whole, math.floor(arrived * 10**paid.asset_scale))
        if given > whole:
            self._fail("what_is_given_back_has_arrived", f"{given} of {whole}")
        all_back = all(each.give for each in held) and session.refunded == received
        if all_back and given != whole:
            self._fail("all_back_is_all_they_paid", f"{given} of {whole}")

    def _all_held(self, held: dict[str, int]) -> None:
        for refund_id, amount in held.items():
            refund = self.records.get(refund_id)
            if refund is None:
                self._fail("what_is_held_is_a_refund", refund_id)
                continue
            noted = refund.status is RefundStatus.PAID_ELSEWHERE
            wanted = refund.sent if refund.terminal and not noted else refund.amount
            if amount != wanted:
                self._fail("refund_is_held", f"{amount}, not {wanted}: {refund.status}")

    def receives(self, url: str) -> bool:
        """Return whether this is the incoming payment of a refund."""
        return "/incoming-payments/" in url and _last(url) in self._of

    def stopped(self, url: str) -> bool:
        """Return whether this is a refund's payment that has ended with a part."""
        payment = self._world.network.state.outgoing.get(_last(url))
        if payment is None or payment.wallet not in OURS or "/outgoing-payments/" not in url:
            return False
        part = 0 < payment.sent < payment.debit.value - payment.fee
        return part and payment.settles_at is None

    def _event_written(self, item: Item) -> None:
        kind = item["type"]["S"]
        if "~" not in item["id"]["S"] and kind in EVENTS:
            body = json.loads(event_from(item).body)
            self._told[body["id"], kind] += 1
            refund = self.records.get(body["id"])
            if refund is None or body["amount_sent"] != refund.sent:
                self._fail("refund_event_tells_the_refund", f"{kind} {body['amount_sent']}")

    def _charge_told(self, item: Item, written: set[str]) -> None:
        """An event about a charge tells what its session has refunded from this write on."""
        event = event_from(item)
        if event.type != CHARGE_REFUNDED or event.is_copy or event.subject not in written:
            return
        assert event.stripe_body is not None
        charge = json.loads(event.stripe_body)["data"]["object"]
        refunded = min(self._world.checker.sessions[event.subject].refunded, charge["amount"])
        if charge["amount_refunded"] != refunded:
            self._fail("a_charge_tells_its_refunds", f"{charge['amount_refunded']} of {refunded}")

    # --- what the product sends ---

    def knows(self, quote_url: str) -> bool:
        """Return whether this is the quote of a refund."""
        quote = self._world.network.state.quotes.get(_last(quote_url))
        return quote is not None and quote.wallet in OURS

    def sending(self, process: Process, quote_url: str) -> None:
        """Before a refund is sent, with nothing in between."""
        intents = self._intents[quote_url]
        if not intents:
            self._fail("refund_has_its_intent", f"none is left of quote {_last(quote_url)[:4]}")
            return
        refund_id, deadline = intents.pop()
        if process.now() >= deadline:
            self._fail("refund_is_sent_in_time", f"{process.now() - deadline} too late")
        self._world.counts["refunds sent"] += 1
        if self._world.counts["refunds sent"] > 1 and self.records[refund_id].payments > 1:
            self._world.counts["refunds sent again"] += 1

    def tokens(self) -> dict[str, str | None]:
        """Return the token of each refund, as it is stored now."""
        return {each.id: each.token for each in self.records.values()}

    def rotated(self, tokens: Mapping[str, str | None]) -> None:
        """The current actor has got a new token for one of these."""
        self._rotated[self._world.scheduler.actor] = tokens

    # --- what the wallets do ---

    def money(self) -> None:
        """After anything that may have moved money."""
        if self._world.refunding is None:
            return
        for payment in self._world.network.state.outgoing.values():
            if payment.wallet in OURS and payment.sent != self._moved.get(payment.id, 0):
                self._moved[payment.id] = payment.sent
                self._money_left(payment)
                self._world.checker.budgets.money()

    def _money_left(self, payment: OutgoingPayment) -> None:
        refund = self.records.get(self._of.get(_last(payment.receiver), ""))
        if refund is None:
            self._fail("no_money_leaves_without_a_refund", payment.receiver)
            return
        told = f"{payment.sent} of {payment.debit.value}: {refund.status}"
        if payment.quote_id in self._void:
            self._fail("nothing_sent_stays_unsent", told)
        if sum(each.sent > 0 for each in self._payments(refund.id)) > 1:
            self._fail("paid_back_at_most_once", told)
        if refund.status is RefundStatus.CANCELED:
            self._fail("canceled_is_not_paid_back", told)
        incoming = self._world.network.state.incoming[_last(payment.receiver)]
        if refund.claimed and incoming.wallet != refund.wallet:
            self._fail("the_named_wallet_is_paid", f"{incoming.wallet}, not {refund.wallet}")
        session = self._world.checker.sessions[refund.session]
        held = {each.id: each.amount for each in session.refunds or ()}
        if self._sent(refund) > held.get(refund.id, 0):
            self._fail("money_that_leaves_is_held", f"{told}, {held.get(refund.id)} held")
        self._paid_for_it(session)

    def _paid_for_it(self, session: Session) -> None:
        """The customer gets no more than they paid, and it costs no more than was received.

        Of what they paid, a refund at cost and a note have taken their shares. Each release of a
        part may leave a unit of rounding.
        """
        debits, gives, shares = 0, 0, 0
        over = max(0, self._world.swarm.off)  # the shop's wallet has sent more than it was told to
        debit = session.quote.debit.value if session.quote is not None else 0
        for each in session.refunds or ():
            if self.records[each.id].mode is AmountMode.AT_COST:
                shares += debit * each.amount // max(1, session.amount_received or 0)
            for payment in self._payments(each.id):
                refund = self.records[each.id]
                if refund.mode is AmountMode.AT_COST:
                    debits += payment.sent
                else:
                    incoming = self._world.network.state.incoming[_last(payment.receiver)]
                    gives += max(0, incoming.received.value - over)
        if session.quote is not None and gives > session.quote.debit.value:
            self._fail("customer_gets_what_they_paid", f"{gives} of {session.quote.debit}")
        if gives and gives + shares > debit + len(session.refunds or ()):
            self._fail("no_share_is_given_twice", f"{gives} and {shares} of {debit}")
        if debits > (session.received or session.receive.value):
            self._fail("costs_no_more_than_came", f"{debits} of {session.received}")

    def _payments(self, refund_id: str) -> list[OutgoingPayment]:
        return [
            each
            for each in self._world.network.state.outgoing.values()
            if each.wallet in OURS and self._of.get(_last(each.receiver)) == refund_id
        ]

    def _sent(self, refund: Refund) -> int:
        """Return what the shop's wallet has certainly sent of it, in minor units, rounded down."""
        parts = [
            refund.amount * each.sent // max(1, each.debit.value - each.fee)
            for each in self._payments(refund.id)
        ]
        return sum(parts)

    # --- at the end ---

    @property
    def unfinished(self) -> bool:
        """Whether a refund has not ended yet."""
        return any(not each.terminal for each in self.records.values())

    def finished(self) -> None:
        """Faults off, and the time is up by which each refund must have ended."""
        if len(self.records) > self.asked:
            self._fail("one_refund_per_key", f"{len(self.records)} of {self.asked} requests")
        for refund in self.records.values():
            self._world.counts[f"refund ended {refund.status}"] += 1
            if not refund.terminal:
                told = f"{refund.status} check_at {refund.check_at} {refund.problem}"
                self._fail("no_refund_is_stuck", told)
            sent = self._sent(refund)
            if refund.status is RefundStatus.CANCELED and sent:
                self._fail("canceled_is_not_paid_back", f"{sent} of {refund.amount}")
            # A unit that was lost on the way has arrived nowhere, and a frozen witness hides it.
            if refund.status is RefundStatus.FAILED and refund.sent < sent - self._lost:
                self._fail("what_was_sent_is_recorded", f"{refund.sent}, not {sent}")
            self._cost(refund)
            self._told_of(refund)
        for session in self._world.checker.kept:  # a refund may end after its session was deleted
            self._all_held({each.id: each.amount for each in session.refunds or ()})

    @property
    def _lost(self) -> int:
        """Return the units by which each payment arrives short."""
        return max(0, -self._world.swarm.off)

    def _cost(self, refund: Refund) -> None:
        """The cost is no less than what the shop's wallet says was sent, and at most the debit.

        A frozen one says that half of it was (`sim_world`).
        """
        refunding = self._world.refunding
        halves = 2 if refunding is not None and refunding.frozen else 1
        paid = [each for each in self._payments(refund.id) if each.parts_sent]
        least, most = (
            sum(each.sent for each in paid) // halves - self._lost,
            sum(each.debit.value for each in paid),
        )
        cost = refund.spent.value if refund.spent else 0
        if not least <= cost <= most:
            self._fail("the_cost_of_a_refund_is_recorded", f"{cost}, not {least} to {most}")

    def _told_of(self, refund: Refund) -> None:
        """Each event that the merchant wants was made once."""
        wanted = self._world.wanted
        for (refund_id, kind), number in self._expected.items():
            if refund_id == refund.id and self._told[refund_id, kind] != number * (kind in wanted):
                told = f"{kind}: {self._told[refund_id, kind]} of {number}"
                self._fail("each_end_of_a_refund_is_told", told)

    def paid_out(self) -> tuple[int, int]:
        """Return the least and the most that the shop's wallet has paid, by its payments.

        A wallet may keep its fee once it has sent a part, even one that is rounded down to nothing.
        """
        paid = [each for each in self._world.network.state.outgoing.values() if each.wallet in OURS]
        under_way = sum(
            each.debit.value for each in paid if each.settles_at is not None and each.funded
        )
        least = sum(each.sent for each in paid)
        fees = sum(each.fee for each in paid if each.parts_sent)
        return least, least + fees + under_way


def _last(url: str) -> str:
    return url.rsplit("/", 1)[-1]
