"""The invariants of the protocol, looked at after every effect of a simulated world.

They read the tables and the wallets' own books, never the product's variables, and keep their own
copy of the transition table as it was when this module was loaded; the constants that the proof
rests on are written a second time. Each has a name; a violation says which, when and what. For
wallets that enforce neither single-use quotes nor the grant's limits see `one_live_payment`.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from checkout.adapters.dynamo import index_keys
from checkout.adapters.dynamo.events import event_from
from checkout.adapters.dynamo.records import cart_id, session_from
from checkout.domain.ground.parts import Lists
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention, Phase, Problem
from checkout.domain.payment.mandate import Mandate
from checkout.domain.refund.record import Refund
from checkout.domain.reports.daily_totals import DayTotals
from checkout.domain.session.record import Session, Status
from checkout.domain.session.transitions import TRANSITIONS
from checkout.flows.payment import sealed
from checkout.ports import CompletionPolicy
from open_payments.errors import OpenPaymentsError
from open_payments.transports import Request, Response
from pay import till, view
from pay.language import reader
from tests.simulation import swarm
from tests.simulation.attempts import Attempts
from tests.simulation.boundaries import WRITES, Process, moment
from tests.simulation.budgeting import BudgetChecks
from tests.simulation.providers import HARBOR, OURS, SKEW
from tests.simulation.refund_checks import RefundChecks
from tests.support.protected import (
    ENDLESS_QUOTE,
    FENCE,
    GRACE,
    NEVER_CLOSED_AFTER,
    SEND_WITHIN,
    WAIT_MARGIN,
)

if TYPE_CHECKING:
    from checkout.services import PayServices
    from tests.simulation.sim_world import SimWorld

Item = dict[str, Any]
Approved = Session | Refund | Mandate
BUSY: Final = (408, 409, 425, 429)
KEPT_FOR: Final = timedelta(minutes=3)
KEPT_PAUSE: Final = timedelta(seconds=10) + SKEW
EDGES: Final = {cell: row.to for cell, row in TRANSITIONS.items()}
# The fields that W7 writes. It leaves all others as they were.
BY_W7: Final = {
    *("status", "phase", "outgoing_payment", "check_at", "checks"),
    *("version", "writer", "updated_at", "history"),
}
TERMINAL: Final = (Status.COMPLETED, Status.EXPIRED, Status.CANCELED)
# Once all is well again: three rounds of the sweep, the longest lease and a frozen process.
DECIDED_WITHIN: Final = timedelta(minutes=7)
SOON_FOR: Final = timedelta(minutes=50)  # then a payment in doubt is asked for once an hour
COMPLETED_EVENT: Final = "checkout.session.completed"
EXPIRED_EVENT: Final = "checkout.session.expired"
QUARTER: Final = timedelta(minutes=15)  # the lifetime of a sale at a till
_READER: Final = reader(wished=None, accepted="", default=None)
LATE_EVENT: Final = "checkout.session.late_payment"


@dataclass(frozen=True, slots=True)
class Violation:
    check: str
    detail: str


class Checker:
    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self._sessions: dict[str, Session] = {}
        self._incoming: dict[str, list[str]] = defaultdict(list)  # session -> incoming payments
        self._session_of: dict[str, str] = {}  # incoming payment -> session
        self._intents: dict[str, list[tuple[str, str]]] = defaultdict(list)  # instruction, quote
        self._void: set[str] = set()  # incoming payments and quotes said to be unpaid for good
        self._events: dict[str, Item] = {}
        self._carts: dict[str, Item] = {}
        self._received: Counter[str] = Counter()
        self._copies: Counter[str] = Counter()
        self._claims: set[tuple[str, str]] = set()  # grant, actor
        self._continued: Counter[str] = Counter()
        self._stumbled: set[str] = set()  # actors whose last continuation a wallet could not take
        self._read_at: dict[tuple[str, str], datetime] = {}  # actor, incoming payment
        self._preparing: dict[str, str] = {}  # session -> actor that claimed it
        # By actor: the session whose approval's token it has rotated, and the token of before.
        self._rotated: dict[str, tuple[str, str | None]] = {}
        # By actor: the incoming payment that it has read last, and the sum that this showed.
        self._shown_sum: dict[str, tuple[str, int]] = {}
        self.created = 0  # payments seen so far
        self._attempts = Attempts(lambda: world.network.state, self.fail)
        self.refunds = RefundChecks(world)
        self.budgets = BudgetChecks(world)
        self._left = world.link.left if world.link is not None else None
        self._prices: dict[str, int] = {}  # session -> the dearest price that was shown
        self._whole_at: dict[str, datetime] = {}  # session -> when its money was all there
        self._since_end: dict[str, set[int]] = defaultdict(set)  # the sums known, minor units
        self._gone: set[str] = set()  # deleted by their time to live
        self._accepted: set[str] = set()  # actors whose payment a wallet has just accepted
        self._at_once: set[str] = set()  # actors whose first write since then is under way
        self._grown: set[str] = set()  # sessions with what a later release has stored
        self._forms: set[int | None] = set()  # the amounts that customers have chosen
        self._chosen: dict[str, int] = {}  # session -> the amount that its form held

    def fail(self, check: str, detail: str) -> None:
        self._world.violate(Violation(check, detail))

    @property
    def sessions(self) -> dict[str, Session]:
        return self._sessions

    @property
    def kept(self) -> list[Session]:
        """Return the sessions whose time to live has not deleted them."""
        return [each for each in self._sessions.values() if each.id not in self._gone]

    def received(self, session_id: str) -> int:
        """Return the money received for this session, over all its incoming payments."""
        incoming = self._world.network.state.incoming
        return sum(incoming[each].received.value for each in self._incoming[session_id])

    def outside(self, session_id: str) -> int:
        """Return the part of it that came past the checkout.

        That is a stranger's money, and that of a wallet which refused a payment, hid it from its
        own customer, and paid.
        """
        state = self._world.network.state
        incoming = self._incoming[session_id]
        total = sum(state.incoming[each].from_outside for each in incoming)
        for payment in state.outgoing.values():
            hidden = self._world.network.behaviour(payment.wallet).hides_payments
            if hidden and payment.receiver.rsplit("/", 1)[-1] in incoming and payment.parts_sent:
                total += payment.receive.value + max(0, self._world.swarm.off)
        return total

    # --- what the product writes ---

    def written(self, changes: Sequence[tuple[str, Item | None, Item]], by: str) -> None:
        """After an operation of AWS that actor `by` asked for, with all that it changed."""
        touched = []
        self._carts |= {new["id"]["S"]: new for _, _, new in changes if "cart" in new}
        for table, old, new in changes:
            if new.get("id", {}).get("S", "").startswith("plink_"):
                assert old is not None
                assert self._left is not None
                self._left += int(new["left"]["N"]) - int(old["left"]["N"])
            elif table.endswith("-checkout_sessions"):
                if not new["id"]["S"].startswith("cs_"):
                    continue
                self._session_written(old, new, by)
                touched.append(new["id"]["S"])
            elif table.endswith("-webhook_events"):
                self._event_written(old, new)
                touched.append(new["session"]["S"])
        for session_id in dict.fromkeys(touched):
            self._completed_has_its_event(session_id)
        self._stock()
        self.budgets.written(changes, by)
        self.refunds.written(changes, by)

    def _details_come_first(self, session: Session) -> None:
        """No wallet is taken of a customer who has not said what the shop requires."""
        taken = session.status is Status.PREPARING or session.customer is not None
        if taken and (session.details_at is None or session.customer_details is None):
            self.fail("details_come_before_the_wallet", f"{session.status}")

    def _stock(self) -> None:
        """No item of the payment link is lost, or sold twice."""
        link = self._world.link
        if link is None or link.left is None:
            return
        assert self._left is not None
        holders = [each for each in self._sessions.values() if each.restocked_at is None]
        held = sum(item.quantity for each in holders for item in each.line_items)
        if self._left != link.left - held or held > link.left:
            self.fail("stock_adds_up", f"{self._left} left of {link.left}, {held} held or sold")

    def _session_written(self, old: Item | None, item: Item, by: str) -> None:
        cart = item if "cart" in item else self._carts.get(cart_id(item["id"]["S"]))
        if cart is None:
            self.fail("session_has_its_cart", "the session was stored without it")
            return
        ends = [int(each["ttl"]["N"]) for each in (cart, item) if "ttl" in each]
        if len(ends) == 2 and ends[0] < ends[1]:
            self.fail("session_has_its_cart", "the cart ages out before it")
        after = session_from(item | {"cart": cart["cart"]})
        before = self._sessions.get(after.id)
        self._sessions[after.id] = after
        self._of_a_later_release(after, item)
        if before is None:
            self._asked(after)
        if after.incoming_payment is not None:
            incoming = after.incoming_payment.id.rsplit("/", 1)[-1]
            if incoming not in self._incoming[after.id]:
                self._incoming[after.id].append(incoming)
                self._session_of[incoming] = after.id
        if before is not None and old is not None:
            self._edge(before, after, by)
            unchanged = after.history == before.history and before.awaits_look
            if by.startswith("sweep") and unchanged and after.updated_at != before.updated_at:
                self.fail("sweeps_put_off_no_look", f"{before.updated_at} to {after.updated_at}")
            if before.restocked_at is None and after.restocked_at is not None:
                self._restocked(after)
        if after.collect_json is not None:
            self._details_come_first(after)
        self._secrets(after)
        self._due(after, item)
        self._money_matches(after)
        self._sums_at_the_edge(after)
        self._world.identities.session(before, after)

    def _of_a_later_release(self, after: Session, item: Item) -> None:
        """Check that no write drops what a later release has stored with a payment."""
        kept = swarm.is_grown(item["payment"])
        if after.id in self._grown and not kept:
            self.fail("what_is_unknown_is_kept", f"{after.status} v{after.version}")
        if kept:
            self._grown.add(after.id)

    def sends(self, amount: int | None) -> None:
        """A customer sends the form of a payment link; None: an amount that is not allowed."""
        self._forms.add(amount)

    def chosen(self, session_id: str, amount: int | None) -> None:
        """The form with this amount leads to this session."""
        session = self._sessions[session_id]
        total = sum(each.unit_amount * each.quantity for each in session.line_items)
        if amount is None or (session.amount_total, total) != (amount, amount):
            self.fail("the_total_is_what_the_form_held", f"{session.amount_total}, not {amount}")
            return
        self._chosen[session_id] = amount

    def screen(self, session: Session) -> bool:
        """Check what a till shows of its sale; return whether the clerk looks no more."""
        world = self._world
        shown = view.shown(
            session, world.merchant, _READER, base_url=world.base_url, now=session.updated_at
        )
        outcome = till.outcome_of(shown)
        if session.expires_at - session.created_at != QUARTER:
            self.fail("a_sale_ends_after_a_quarter_of_an_hour", str(session.expires_at))
        if (outcome == "paid") != (session.status is Status.COMPLETED):  # _money_matches has more
            self.fail("a_till_shows_paid_when_the_sale_is", f"{outcome}: {session.status}")
        if session.received and outcome not in ("paid", "doubt"):
            self.fail("a_till_shows_money_in_doubt", f"{outcome}: {session.received}")
        return outcome in ("paid", "ended")

    def _chosen_in_the_ledger(self) -> None:
        """The shop's wallet expects what the form held, in its own units."""
        for session_id, amount in self._chosen.items():
            units = self._sessions[session_id].receive
            digits = 0 if units.asset_code == "JPY" else 2
            for each in self._incoming[session_id]:
                money = self._world.network.state.incoming[each].amount
                if money is None or money.value != amount * 10 ** (units.asset_scale - digits):
                    self.fail("the_ledger_has_what_the_form_held", f"{money}, not {amount}")

    def _asked(self, after: Session) -> None:
        """The wallet is asked for the price, in its own units; this may be a chosen amount."""
        if self._world.gifts and after.amount_total not in self._forms:
            self.fail("sold_at_a_chosen_amount", f"{after.amount_total} of {self._forms}")
        price = sum(each.unit_amount * each.quantity for each in after.line_items)
        digits = 0 if after.currency == "jpy" else 2
        asked = after.receive
        if asked.value != price * 10 ** (asked.asset_scale - digits):
            self.fail("asked_is_the_price", f"{asked} for {price} {after.currency}")

    def _edge(self, before: Session, after: Session, by: str) -> None:
        told = f"{before.status} v{before.version} -> {after.status} v{after.version}"
        if after.version <= before.version:
            self.fail("version_grows", told)
        if before.status in TERMINAL and after.status is not before.status:
            self.fail("terminal_is_final", told)
            return
        event = Event.CHECKED
        if after.history and after.history != before.history:
            event = Event(after.history[-1].event)
        self._world.counts[f"step {event}"] += 1
        self._world.counts[f"row {before.status} {event}"] += 1
        if EDGES.get((before.status, event)) != after.status:
            self.fail("only_edges_of_the_table", f"{told} by {event}")
        if event is Event.APPROVAL_CLAIMED and before.grant is not None:
            grant = sealed.open_grant(self._world.vault, before.id, before.grant)
            self.claimed(_last(grant.continuation.uri), by)
        if event is Event.PAYMENT_INTENDED:
            assert after.instruction is not None
            assert after.quote is not None
            if any(known == after.instruction.id for known, _ in self._intents[after.id]):
                self.fail("intent_is_new", told)
            self._intents[after.id].append((after.instruction.id, after.quote.id))
        self._w7_comes_first(event, by)
        self.not_redeemed(before, after, event, by)
        self._labels(before, after, event)
        self._shown(before, after, event)
        self._in_order(before, after, event, by)
        self._attempts.written(before, after, event)
        if event is Event.PAYMENT_DISPROVED and before.incoming_payment is not None:
            self._void.add(before.incoming_payment.id.rsplit("/", 1)[-1])
        if event is Event.PAYMENT_REFUSED and before.quote is not None:
            self._void.add(before.quote.id.rsplit("/", 1)[-1])

    def _w7_comes_first(self, event: Event, by: str) -> None:
        if self.comes_at_once(by) and event is not Event.PAYMENT_CREATED:
            self.fail("nothing_comes_before_w7", f"{event} is written first")

    def _labels(self, before: Session, after: Session, event: Event) -> None:
        """Only a change of the metadata changes it: no other write brings an older one back."""
        if event is not Event.METADATA_CHANGED and after.metadata_json != before.metadata_json:
            self.fail("metadata_is_what_was_written", f"{after.status} by {event}")

    def claimed(self, grant_id: str, by: str) -> None:
        """Note that this actor may redeem the approval of this grant, once."""
        self._claims.add((grant_id, by))

    def answered(self, request: Request, answer: Response | OpenPaymentsError) -> None:
        """The current actor is told what became of its request."""
        if request.method != "POST" or "/continue/" not in request.url:
            return
        stumbled = not isinstance(answer, Response)
        if isinstance(answer, Response):
            keys = b"invalid_client" in answer.body
            stumbled = keys or answer.status >= 500 or answer.status in BUSY
        (self._stumbled.add if stumbled else self._stumbled.discard)(self._world.scheduler.actor)

    def not_redeemed(self, before: Approved, after: Approved, event: str, by: str) -> None:
        """A wallet that could not take an approval is asked again, for three minutes at most."""
        if event not in (Event.APPROVAL_KEPT, Event.APPROVAL_LOST):
            return
        stumbled, now = by in self._stumbled, moment(self._world.scheduler.now)
        self._stumbled.discard(by)
        told = f"{event}, until {before.approve_until}"
        if event == Event.APPROVAL_LOST:
            over = before.approve_until is not None and now >= before.approve_until - KEPT_PAUSE
            if stumbled and after.history[-1].note != "lease lapsed" and not over:
                self.fail("a_stumble_loses_no_approval", told)
            return
        if after.grant != before.grant or after.lease_until is not None:
            self.fail("a_kept_approval_waits_unclaimed", told)
        most = min(before.approve_until or now + KEPT_FOR, now + KEPT_FOR)
        if after.approve_until is None or after.approve_until > most + SKEW:
            self.fail("a_kept_approval_has_its_end", f"{told}: {after.approve_until}")

    def _shown(self, before: Session, after: Session, event: Event) -> None:
        """Note the price that the customer is shown, and how the session ended."""
        if event is Event.PREPARED and after.quote is not None:
            shown = self._prices.get(after.id, 0)
            self._prices[after.id] = max(shown, after.quote.debit.value)
        if event is Event.RECONCILED:
            self._in_time(before)
        if after.status in TERMINAL:
            self._since_end[after.id].add(self._minor_units(after))

    def _restocked(self, after: Session) -> None:
        """Nothing was sold, and no more money can come by the checkout."""
        given_up = after.happened(Event.GIVEN_UP)
        received = self.received(after.id) > self.outside(after.id)
        if not given_up and (not _ended_unpaid(after) or received or after.check_at is not None):
            self.fail("only_the_unsold_comes_back", f"{after.status} check_at {after.check_at}")

    def _in_order(self, before: Session, after: Session, event: Event, by: str) -> None:
        """Check what must come before this write, and the times that it sets."""
        now = moment(self._world.scheduler.now) if before.terminal else after.updated_at
        self._kept_token(after, event, by)
        match event:
            case Event.WALLET_SUBMITTED | Event.APPROVAL_CLAIMED:
                self._claimed(after, event, now, by)
            case Event.PREPARATION_FAILED:
                owner = self._preparing[after.id]
                if before.lease_live(now) and owner != by:
                    self.fail("preparation_ends_by_its_owner", f"{by}, not {owner}")
            case Event.PAYMENT_INTENDED:
                self._intended(after, now)
            case Event.REFERENCE_STORED:
                self._replaced(before, after)
            case Event.PAYMENT_CREATED:
                self._recorded(before, after)
            case Event.PAYMENT_REFUSED:
                self._refused(before, after, by)
            case Event.CLOSING_STARTED:
                self._waited(before, now, by)
            case Event.CLOSED:
                self._closed(before, now)
        self._verdict(before, after, event, by)

    def _kept_token(self, after: Session, event: Event, by: str) -> None:
        """An actor that has rotated a token stores the new one before it writes anything else."""
        session, replaced = self._rotated.pop(by, (None, None))
        if session is None:
            return
        now = after if session == after.id else self._sessions[session]
        if now.payment_in_flight and now.token == replaced:
            self.fail("rotated_token_is_kept", f"{session}: {event} by {by}")

    def _claimed(self, after: Session, event: Event, now: datetime, by: str) -> None:
        if event is Event.WALLET_SUBMITTED:
            self._preparing[after.id] = by
        lease = self._world.swarm.lease
        if after.lease_until is None or after.lease_until - now < lease - SKEW:
            self.fail("lease_outlives_its_request", f"{event}, until {after.lease_until}")

    def _intended(self, after: Session, now: datetime) -> None:
        assert after.instruction is not None
        left = after.instruction.deadline - now
        if left < SEND_WITHIN - timedelta(milliseconds=500):
            self.fail("attempt_has_its_deadline", str(left))

    def _recorded(self, before: Session, after: Session) -> None:
        """W7 loses nothing of what another process has written since W6."""
        changed = {
            each.name
            for each in fields(Session)
            if getattr(before, each.name) != getattr(after, each.name)
        }
        if changed - BY_W7 or after.history[: len(before.history)] != before.history:
            self.fail("record_loses_nothing", f"{changed - BY_W7 or 'a line of the history'}")

    def _in_time(self, before: Session) -> None:
        """Once all money is there, and nothing fails any more, it is seen within minutes.

        A payment in doubt for an hour is asked for once an hour.
        """
        whole_at, now = self._whole_at.get(before.id), moment(self._world.scheduler.now)
        calm = self._world.calm_since
        if whole_at is None or calm is None or before.instruction is None:
            return
        since = max(whole_at, calm)
        long = since > before.instruction.deadline + SOON_FOR
        if not long and now > since + DECIDED_WITHIN:
            self.fail("decided_within_minutes", f"{now - since} after the money was there")

    def _replaced(self, before: Session, after: Session) -> None:
        held = before.incoming_payment
        if held is None or held == after.incoming_payment:
            return
        money = self._world.network.state.incoming[_last(held.id)].received.value
        if money:
            self.fail("money_is_not_dropped", f"{money} in {held.id}")

    def _refused(self, before: Session, after: Session, by: str) -> None:
        assert before.incoming_payment is not None
        certain = after.problem in (Problem.WALLET_UNREACHABLE, Problem.APPROVAL_UNUSABLE)  # unsent
        if not certain and (by, _last(before.incoming_payment.id)) not in self._read_at:
            self.fail("refusal_has_its_witness", by)

    def _verdict(self, before: Session, after: Session, event: Event, by: str) -> None:
        """Check the read behind a verdict on all that an incoming payment will have received."""
        whole = after.status is Status.COMPLETED and self.received(after.id) >= after.receive.value
        ended = after.terminal or after.status is Status.PROCESSING
        checked = event in (Event.CHECKED, Event.LATE_PAYMENT) and after.check_at is None
        if event is Event.PAYMENT_DISPROVED or (checked and ended and not whole):
            self._read_late_enough(before, event, by)

    def _waited(self, session: Session, now: datetime, by: str) -> None:
        """A fence begins when no payment can begin any more, or the wallet reports a failure.

        Or when the merchant asks for an end, or somebody has completed the incoming payment.
        """
        assert session.incoming_payment is not None
        if by.startswith(("end", "decide")):
            return
        state = self._world.network.state
        ends = [session.incoming_payment.expires_at, session.expires_at + NEVER_CLOSED_AFTER]
        if not session.received and session.quote is not None and session.instruction is not None:
            endless = session.instruction.deadline + ENDLESS_QUOTE
            ends.append(session.quote.expires_at or endless)
        # By its quote: money may be seen before the payment's address is known.
        quote = _last(session.quote.id) if session.quote is not None else None
        claimed = self._world.kind.behaviour.get("claims_failure_early", False)
        failed = claimed or any(
            each.failed for each in state.outgoing.values() if each.quote_id == quote
        )
        completed = state.incoming[_last(session.incoming_payment.id)].completed
        if now < min(ends) + WAIT_MARGIN and not failed and not completed:
            self.fail("fence_waits_its_time", f"{min(ends) + WAIT_MARGIN - now} too early")

    def _closed(self, session: Session, now: datetime) -> None:
        assert session.incoming_payment is not None
        network = self._world.network
        incoming = network.state.incoming[_last(session.incoming_payment.id)]
        ends = min(incoming.expires_at - SKEW, session.expires_at + NEVER_CLOSED_AFTER)
        if network.is_payable(incoming) and now < ends:
            self.fail("closed_is_closed", f"{incoming.id} takes money")

    def _read_late_enough(self, session: Session, event: Event, by: str) -> None:
        """The read that decides begins 35 s after the incoming payment was seen closed."""
        assert session.incoming_payment is not None
        read_at = self._read_at.get((by, _last(session.incoming_payment.id)))
        closed_at = session.closed_at
        if read_at is None or closed_at is None or read_at < closed_at + FENCE:
            self.fail("verdict_reads_late_enough", f"{event}: read at {read_at}")

    def _secrets(self, after: Session) -> None:
        waiting = after.status is Status.AWAITING_APPROVAL and after.phase is not Phase.PAYING
        if waiting and after.phase is Phase.CONTINUING and after.lease_until is None:
            self.fail("a_claim_has_its_lease", f"v{after.version}")
        if after.grant is not None and not waiting:
            self.fail("grant_leaves_with_its_phase", f"{after.status} {after.phase}")
        if after.interact_url is not None and not waiting:
            self.fail("link_leaves_with_its_phase", f"{after.status} {after.phase}")
        if after.token is not None and not after.payment_in_flight:
            self.fail("token_leaves_with_its_phase", f"{after.status} {after.phase}")

    def _due(self, after: Session, item: Item) -> None:
        due = "due_at" in item and "due_shard" in item
        told = f"{after.status} {after.phase} v{after.version}"
        self._of_the_clock(after, item, told)
        if after.payment_in_flight and "ttl" in item:
            self.fail("undecided_has_no_end", told)
        if not after.payment_in_flight and "ttl" not in item:
            self.fail("decided_has_its_end", told)
        if after.status in TERMINAL:
            if due and after.incoming_payment is None:
                self.fail("done_owes_nothing", told)
        elif _new(after):
            if due:
                self.fail("untouched_owes_nothing", told)
        elif not due and after.attention is not Attention.PARTIAL_PAYMENT:
            self.fail("unfinished_is_due", told)
        later = item.get("due_shard", {"S": ""})["S"].startswith("later-")
        if due and later is index_keys.urgent(after):
            self.fail("payments_come_first", told)
        if ("search_key" in item) is not (after.status is Status.COMPLETED):
            self.fail("completed_ones_are_listed", told)

    def _of_the_clock(self, after: Session, item: Item, told: str) -> None:
        """A session that nobody gave a wallet is found under its expiry, and no other is."""
        expired = _moved(after) == {Event.EXPIRY_PASSED}
        untouched = _new(after) or (expired and after.link is None)
        under = item.get("uncounted_shard", {"S": ""})["S"].startswith("clock-")
        at = datetime.fromtimestamp(int(item.get("uncounted_at", {"N": "0"})["N"]) / 1000, UTC)
        if under is not untouched or (under and at != after.expires_at):
            self.fail("the_clock_finds_it", told)

    def _money_matches(self, after: Session) -> None:
        received = self.received(after.id)
        if _ended_unpaid(after) and received > self.outside(after.id):
            self.fail("ended_unpaid", f"{after.status} with {received} received")
        by_money = self._world.policy is CompletionPolicy.RECEIVED
        least = after.receive.value - self._lost_by_rounding(after)
        by_money = by_money and all(e.event != Event.ACCEPTED_AS_PAID for e in after.history)
        if after.status is Status.COMPLETED and by_money and received < least:
            self.fail("completed_is_paid", f"{received} of {after.receive.value} received")
        outgoing = (after.outgoing_payment or "").rsplit("/", 1)[-1]
        own = self._world.network.state.outgoing.get(outgoing)
        if own is not None and own.receiver.rsplit("/", 1)[-1] not in self._incoming[after.id]:
            self.fail("payment_is_its_own", f"{own.receiver} is another's")
        if after.status is Status.COMPLETED and not received and after.outgoing_payment is None:
            self.fail("completed_was_instructed", "no payment is known, and nothing was received")

    def _sums_at_the_edge(self, after: Session) -> None:
        """Check what counts as a part, as too much, and as what the customer paid."""
        received, asked = after.received or 0, after.receive.value
        if after.partly_paid and _may_round(after):
            least = asked - min(self._world.swarm.tolerance, asked // 100)
            if received >= least:
                self.fail("enough_is_not_called_a_part", f"{received} of {asked}")
        by_money = all(each.event != Event.ACCEPTED_AS_PAID for each in after.history)
        if after.status is not Status.COMPLETED or not by_money or after.attention is not None:
            return
        unit = int(asked >= 10)
        near = asked - max(asked // 100, unit) <= received <= asked + unit
        cents = received * after.amount_total // asked  # what can be sent back
        case = received > asked + unit and cents > after.amount_total
        if after.needs_attention is not case:
            self.fail("a_case_is_more_than_rounding", f"{received} of {asked}")
        instructed = after.outgoing_payment is not None and after.quote is not None
        if instructed and near and not after.paid_as_quoted:
            self.fail("what_was_paid_is_known", f"{received} of {asked}")
        if case and after.check_at is None and after.refundable + after.refunded < cents:
            self.fail("what_came_can_be_sent_back", f"{after.refundable} of {cents}")

    def _lost_by_rounding(self, session: Session) -> int:
        """Return the units that may be missing by a conversion, as the merchant tolerates them.

        A hundredth; and one of 10 to 99 only where the wallet's own books say that it has sent all
        that it was to send.
        """
        if not _may_round(session):
            return 0
        incoming = self._incoming[session.id]
        ended = any(
            each.sent == each.debit.value - each.fee and not each.failed
            for each in self._world.network.state.outgoing.values()
            if _last(each.receiver) in incoming
        )
        value = session.receive.value
        most = max(value // 100, int(ended and value >= 10))
        return min(self._world.swarm.tolerance, most)

    def _event_written(self, old: Item | None, item: Item) -> None:
        self._world.deliveries.written(old, item)
        if "~" not in item["id"]["S"]:  # a copy for another endpoint is no event of its own
            self._events.setdefault(item["id"]["S"], item)

    def _completed_has_its_event(self, session_id: str) -> None:
        session = self._sessions.get(session_id)
        events = [
            each
            for each in self._events.values()
            if each["session"]["S"] == session_id and each["type"]["S"] == COMPLETED_EVENT
        ]
        completed = session is not None and session.status is Status.COMPLETED
        if len(events) != int(completed):
            self.fail("completed_has_one_event", f"completed {completed}, {len(events)} events")
        elif session is not None and completed:
            body = json.loads(event_from(events[0]).body)
            if (body["id"], body["status"]) != (session_id, "completed"):
                self.fail("event_tells_the_session", body["status"])

    # --- what the product sends ---

    def sending(self, process: Process, request: Request) -> None:
        """Before a request leaves the process, with nothing in between."""
        path, by = request.url.split("?")[0], self._world.scheduler.actor
        self._world.identities.sending(request)
        if "/incoming-payments/" in path and request.method == "GET":
            self._read_at[by, _last(path)] = process.now()
        if request.method == "DELETE" and "/continue/" in path:
            self.budgets.canceling(_last(path))
        if request.method != "POST":
            return
        if path.endswith("/incoming-payments"):
            self._creating_incoming(json.loads(request.body or b"{}"))
        if path.endswith("/outgoing-payments"):
            self._sending_payment(process, json.loads(request.body or b"{}").get("quoteId", ""))
        elif "/continue/" in path:
            self._sending_continue(path.rsplit("/", 1)[-1], json.loads(request.body or b"{}"))

    def has_read(self, request: Request, answer: Response) -> None:
        """The current actor has got this answer, as the wallet sent it."""
        path = request.url.split("?")[0]
        if request.method == "GET" and "/incoming-payments/" in path and answer.status == 200:
            shown = int(json.loads(answer.body)["receivedAmount"]["value"])
            self._shown_sum[self._world.scheduler.actor] = (_last(path), shown)

    def store_failed(self) -> None:
        """The store did not do what the current actor asked: others tell what this one has read."""
        self._shown_sum.pop(self._world.scheduler.actor, None)

    def answering(self) -> None:
        """Before the current actor goes on: money that it has seen is stored, so pages tell it.

        A sum that lacks two hundredths or one unit may still turn out to be the whole, rounded.
        Money in a session that ended without it is told whatever the sum.
        """
        incoming, shown = self._shown_sum.pop(self._world.scheduler.actor, ("", 0))
        session = self._sessions.get(self._session_of.get(incoming, ""))
        if session is None or session.incoming_payment is None:
            return
        if _last(session.incoming_payment.id) != incoming:
            return
        part = session.status is Status.PROCESSING and shown < session.receive.value * 98 // 100
        late = session.status in (Status.EXPIRED, Status.CANCELED)
        if (part or late) and (session.received or 0) < shown:
            self.fail("a_part_that_is_seen_is_told", f"{shown}, not {session.received}")

    def _creating_incoming(self, body: Item) -> None:
        """It outlives the session that it may be for, even one that has just ended."""
        ends = datetime.fromisoformat(body["expiresAt"])
        if all(ends < each.expires_at + GRACE for each in self._sessions.values()):
            self.fail("incoming_payment_outlives_its_session", body["expiresAt"])

    def accepted(self, request: Request) -> None:
        """The current actor has learned that the wallet has made the payment."""
        if request.method == "POST" and request.url.endswith("/outgoing-payments"):
            self._accepted.add(self._world.scheduler.actor)

    def calling_aws(self, operation: str) -> None:
        """Before a call of the current actor: W7 is the first write after a payment was made."""
        by = self._world.scheduler.actor
        writes = by in self._accepted and operation in WRITES
        if operation in WRITES:
            self._at_once.discard(by)
        if writes and operation not in ("update_item", "transact_write_items"):
            self.fail("nothing_comes_before_w7", operation)
        if writes:
            self._accepted.discard(by)
            self._at_once.add(by)

    def comes_at_once(self, by: str) -> bool:
        """Return whether this actor's write is the first since it learned of its payment."""
        return by in self._at_once

    def of_approval(self, request: Request) -> tuple[str, str] | None:
        """Return the wallet and the receiver of the approval whose token this asks to rotate."""
        if request.method != "POST" or "/token/" not in request.url:
            return None
        state, manage_id = self._world.network.state, _last(request.url)
        grants = [each.grant_id for each in state.tokens.values() if each.manage_id == manage_id]
        for grant in (state.grants[each] for each in grants):
            limits = grant.access[0].get("limits", {})
            if grant.interaction is not None and "interval" not in limits:
                return grant.access[0]["identifier"], limits.get("receiver", "")
        return None

    def rotated(self, approval: tuple[str, str], tokens: Mapping[str, str | None]) -> None:
        """The current actor has got a new token for this approval's, of a wallet for a receiver.

        `tokens` are those of refunds, as they were stored when the wallet replaced it.
        """
        wallet, receiver = approval
        if wallet in OURS:
            self.refunds.rotated(tokens)
        else:
            actor = self._world.scheduler.actor
            session = self._session_of[_last(receiver)]
            self._rotated[actor] = (session, self._sessions[session].token)

    def _sending_payment(self, process: Process, quote_url: str) -> None:
        if self.refunds.knows(quote_url):
            self.refunds.sending(process, quote_url)
            return
        session = self._session_of_quote(quote_url)
        if session is None:
            self.fail("payment_has_its_intent", f"no session for quote {quote_url}")
            return
        intents = self._intents[session.id]
        own = [intent for intent in intents if intent[1] == quote_url]
        if not own:
            self.fail("payment_has_its_intent", f"{len(intents)} intents left, none of this quote")
            return
        intents.remove(own[0])
        sent = session.instruction
        if sent is not None and sent.id == own[0][0] and process.now() >= sent.deadline:
            self.fail("payment_sent_in_time", f"{process.now() - sent.deadline} too late")

    def _sending_continue(self, grant_id: str, body: Item) -> None:
        grant = self._world.network.state.grants.get(grant_id)
        if grant is None or grant.interaction is None:
            return
        if (grant_id, self._world.scheduler.actor) not in self._claims:
            self.fail("continue_has_its_claim", f"grant {grant_id[:4]} was not claimed for this")
        elif body.get("interact_ref") != grant.interaction.ref:
            self.fail("only_verified_references", f"grant {grant_id[:4]}")

    def continued(self, grant_id: str) -> None:
        """A continuation with an interact_ref was accepted."""
        self._continued[grant_id] += 1
        if self._continued[grant_id] > 1:
            self.fail("one_continue_per_reference", grant_id)

    def doubling(self, request: Request) -> None:
        if request.method == "POST" and request.url.endswith("/outgoing-payments"):
            session = self._session_of_quote(json.loads(request.body or b"{}").get("quoteId", ""))
            if session is not None:
                self._copies[session.id] += 1

    def _session_of_quote(self, url: str) -> Session | None:
        quote = self._world.network.state.quotes.get(url.rsplit("/", 1)[-1])
        if quote is None:
            return None
        session_id = self._session_of.get(quote.receiver.rsplit("/", 1)[-1])
        return self._sessions.get(session_id or "")

    def refused_callback(self, sends: int, writes: int) -> None:
        """A callback that does not verify was refused, after these numbers of effects."""
        if sends or writes:
            self.fail("unverified_does_nothing", f"{sends} requests, {writes} writes")

    # --- what the wallets do ---

    def money(self) -> None:
        """After anything that may have moved money."""
        state = self._world.network.state
        for session_id, incoming in self._incoming.items():
            received = self.received(session_id)
            if received != self._received[session_id]:
                self._received[session_id] = received
                if received >= self._sessions[session_id].receive.value:
                    self._whole_at.setdefault(session_id, moment(self._world.scheduler.now))
                self._money_came(session_id, received)
            if len(state.outgoing) != self.created:
                self._one_live_payment(session_id, incoming)
        self.created = len(state.outgoing)
        self.refunds.money()

    def _money_came(self, session_id: str, received: int) -> None:
        session, state = self._sessions[session_id], self._world.network.state
        by_flow = received - self.outside(session_id)
        over = max(0, self._world.swarm.off)  # each payment of a wallet that sends more
        if by_flow > (session.receive.value + over) * self._allowed(session_id):
            self.fail("never_paid_twice", f"{by_flow} of {session.receive.value}")
        if _ended_unpaid(session) and by_flow:
            self.fail("ended_unpaid", f"{by_flow} received, and it is {session.status}")
        for each in self._incoming[session_id]:
            if each in self._void and state.incoming[each].received.value:
                self.fail("disproved_stays_unpaid", f"{received} received after the verdict")
        for payment in state.outgoing.values():
            hidden = self._world.network.behaviour(payment.wallet).hides_payments
            if payment.quote_id in self._void and payment.parts_sent and not hidden:
                self.fail("refused_stays_unpaid", f"{received} received after the refusal")

    def _one_live_payment(self, session_id: str, incoming: list[str]) -> None:
        state, now = self._world.network.state, moment(self._world.scheduler.now)
        shown = self._prices.get(session_id)
        for payment in state.outgoing.values():
            own = shown is not None and _last(payment.receiver) in incoming
            if own and shown is not None and payment.debit.value > shown:
                self.fail("no_more_than_was_shown", f"{payment.debit}, shown {shown}")
        live = [
            payment
            for payment in state.outgoing.values()
            if payment.receiver.rsplit("/", 1)[-1] in incoming
            and payment.funded
            and not self._world.network.behaviour(payment.wallet).hides_payments
            and (
                payment.parts_sent
                or (
                    payment.settles_at is not None
                    and state.incoming[payment.receiver.rsplit("/", 1)[-1]].is_payable(now)
                )
            )
        ]
        if len(live) > self._allowed(session_id):
            self.fail("one_live_payment", f"{len(live)} of them")
        for payment in live:
            limits = state.grants[payment.grant_id].access[0]["limits"]
            if payment.debit.value > int(limits["debitAmount"]["value"]):
                self.fail("never_more_than_approved", f"{payment.debit}")

    def _allowed(self, session_id: str) -> int:
        """One payment; where the wallet itself prevents nothing, one for each delivery of the one
        send (the network may deliver it twice; we never send twice).
        """
        return 1 + (self._copies[session_id] if self._world.kind.prevents_nothing else 0)

    # --- at the end ---

    def finished(self) -> None:
        """Faults off, and the time is up by which everything must be decided."""
        self._chosen_in_the_ledger()
        for session in self._sessions.values():
            received = self.received(session.id)
            told = f"{session.status} {session.phase} check_at {session.check_at}"
            status = session.status_at(moment(self._world.scheduler.now))
            open_end = status not in TERMINAL and not session.partly_paid
            if open_end or session.needed_at is not None:
                self.fail("nothing_is_stuck", told)
            elif session.partly_paid and not received:
                self.fail("flagged_has_a_reason", session.status)
            recorded = session.received or 0
            # Nobody looks for more money after a full payment.
            paid = session.status is Status.COMPLETED and recorded >= session.receive.value
            if not (paid and received > recorded) and received != recorded:
                self.fail("money_is_recorded", f"{session.received} of {received}: {told}")
            unsold = session.link is not None and _ended_unpaid(session) and not received
            if unsold and session.attention is None and session.restocked_at is None:
                self.fail("the_unsold_comes_back", told)
            if _ended_unpaid(session) and received:
                self._told_of_late_money(session, received)

    def ordered(self, orders: int) -> None:
        """This number of purchases was begun, each under one key, by any number of requests."""
        if len(self._sessions) > orders:
            told = f"{len(self._sessions)} sessions of {orders} orders"
            self.fail("one_session_per_idempotency_key", told)

    def counted(self, days: Sequence[DayTotals], now: datetime) -> None:
        """All has been counted: the sums are those of the sessions."""
        ended = [each for each in self._sessions.values() if each.status_at(now) in TERMINAL]
        paid = [each for each in ended if each.status is Status.COMPLETED]
        sums = (sum(each.ended for each in days), sum(each.paid for each in days))
        if sums != (len(ended), len(paid)):
            self.fail("sums_are_true", f"{sums}, not {len(ended)}, {len(paid)}")
        gave = sum(each.customer is not None for each in ended)
        came = sum(each in paid or each.happened(Event.APPROVAL_CLAIMED) for each in ended)
        steps = (sum(each.wallet for each in days), sum(each.approved for each in days))
        if steps != (gave, came):
            self.fail("sums_are_true_by_step", f"{steps}, not {gave}, {came}")
        # An end is counted once; what was known of the money then may differ from now.
        known = [self._since_end[each.id] for each in paid]
        least, most = sum(min(each) for each in known), sum(max(each) for each in known)
        amount = sum(each.amount for each in days)
        if not least <= amount <= most:
            self.fail("sums_are_true_by_amount", f"{amount}, not {least} to {most}")

    def _minor_units(self, session: Session) -> int:
        """What a paid session counts as paid, in the currency's smallest units."""
        asked = session.receive.value
        received = asked if session.received is None else session.received
        # A unit more is rounding, and less than a cent more is nobody's case: both count as paid.
        case = received > asked + int(asked >= 10) and (
            self._in_minor_units(session, received) > session.amount_total
        )
        return self._in_minor_units(session, asked if case else received)

    @staticmethod
    def _in_minor_units(session: Session, units: int) -> int:
        """Units of the shop's wallet in the currency's smallest ones, rounded down."""
        digits = 0 if session.receive.asset_code == "JPY" else 2
        return int(units // 10 ** (session.receive.asset_scale - digits))

    def elsewhere(self) -> None:
        """The shop's wallet has got money of sessions only, and has sent money of refunds only."""
        accounts = self._world.network.state.accounts
        balance = sum(accounts[each].balance for each in OURS)
        known = len(OURS) * self._world.money + sum(self.received(each) for each in self._incoming)
        least, most = self.refunds.paid_out()
        if not known - most <= balance <= known - least:
            told = f"{balance} in the wallet, {known} known, {least} to {most} paid back"
            self.fail("no_money_is_elsewhere", told)

    def found(self, services: PayServices) -> None:
        """A session is found by each text that is known of its payment."""
        of = Lists("mer_1")
        for session in self._sessions.values():
            if session.id in self._gone or not session.happened(Event.PREPARED):
                continue
            for outer in self._outer_ids(session):
                if services.sessions.holder("mer_1", outer) != session.id:
                    self.fail("what_was_paid_is_found", f"{session.status} by {outer}")
            # A submission that lost its race has written its wallet's row all the same.
            wallets = {each.typed for each in session.payment_attempts}
            if session.customer is None or len(wallets) > 1:
                continue
            page = services.sessions.page(
                of,
                limit=100,
                after=None,
                created_from=None,
                created_before=None,
                search=_last(session.customer.id),
            )
            if all(each.id != session.id for each in page.records):
                self.fail("who_paid_is_found", f"{session.status} by {session.customer.id}")

    def _outer_ids(self, session: Session) -> Iterator[str]:
        """The ids that a merchant may have of it: of incoming payments, quotes and payments.

        The row of a payment's id is written after W7, so that nothing comes between a 201 and W7;
        a process that dies there leaves it to its quote.
        """
        for attempt in session.payment_attempts:
            if attempt.incoming_payment:
                yield _last(attempt.incoming_payment)
            if attempt.quote:
                yield _last(attempt.quote.id)
            if attempt.outgoing_payment and self._world.profile != "storm":
                yield _last(attempt.outgoing_payment)

    # --- time to live ---

    def deleted(self, row: Item, now: datetime) -> None:
        """DynamoDB has deleted a row whose time to live was over."""
        row_id = row.get("id", {"S": ""})["S"]
        session = self._sessions.get(row_id)
        if session is None:
            return
        self._gone.add(row_id)
        if session.payment_in_flight or session.status_at(now) not in TERMINAL:
            self.fail("only_what_ended_is_deleted", f"{session.status} {session.phase}")
        owed_at = session.check_at or now
        if owed_at > now:
            self.fail("nothing_is_deleted_before_its_check", f"{session.check_at} at {now}")

    def aged(self) -> None:
        """The time is up after which all that has ended is deleted, and nothing else."""
        for session in self._sessions.values():
            decided = not session.payment_in_flight
            if decided is not (session.id in self._gone):
                self.fail("what_ended_is_deleted", f"{session.status}, deleted {not decided}")

    def told_of_expiries(self, *, wanted: bool) -> None:
        """Each expiry has its event if the merchant asked for it, and else none."""
        for session in self._sessions.values():
            types = [
                each["type"]["S"]
                for each in self._events.values()
                if each.get("session", {}).get("S") == session.id
            ]
            by_clock = session.status_at(moment(self._world.scheduler.now)) is Status.EXPIRED
            expected = int(wanted and by_clock)
            if types.count(EXPIRED_EVENT) != expected:
                told = f"{types.count(EXPIRED_EVENT)} of {expected}: {session.status}"
                self.fail("wanted_end_is_told", told)

    def _told_of_late_money(self, session: Session, received: int) -> None:
        events = [
            json.loads(event_from(each).body)["amount_received"]
            for each in self._events.values()
            if each["session"]["S"] == session.id and each["type"]["S"] == LATE_EVENT
        ]
        shown = self._in_minor_units(session, received)
        if session.attention is not Attention.LATE_PAYMENT or shown not in events:
            self.fail("money_is_never_silent", f"{received}, {session.attention}, told {events}")


def _new(session: Session) -> bool:
    owes_nothing = session.link is None  # else the sweep gives its item back
    return not _moved(session) and session.status is Status.OPEN and owes_nothing


def _moved(session: Session) -> set[str]:
    """Return the events of the session but those that leave it as it is."""
    kept = {"created", Event.METADATA_CHANGED, Event.DETAILS_GIVEN}
    return {entry.event for entry in session.history} - kept


def _last(url: str) -> str:
    return url.rsplit("/", 1)[-1]


def _may_round(session: Session) -> bool:
    """Return whether the payment is converted on its way: all are that leave their provider."""
    quote = session.quote
    return quote is not None and not (
        quote.id.startswith(HARBOR) and quote.debit.same_asset(session.receive)
    )


def _ended_unpaid(session: Session) -> bool:
    """Return whether it is expired or canceled, and not because its merchant gave it up."""
    ended = session.status in (Status.EXPIRED, Status.CANCELED)
    return ended and all(entry.event != Event.GIVEN_UP for entry in session.history)
