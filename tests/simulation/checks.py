"""The invariants of the protocol, looked at after every effect of a simulated world.

They read the tables and the wallets' own books, never the product's variables, and keep their own
copy of the transition table as it was when this module was loaded. Each has a name; a violation
says which, when and what. What is asserted of wallets that enforce neither single-use quotes nor
the grant's limits is said at `one_live_payment`.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from checkout.adapters.dynamo.event_records import event_from
from checkout.adapters.dynamo.records import cart_id, session_from
from checkout.domain.session import Attention, Phase, Problem, Session, Status
from checkout.domain.tally import DayTally
from checkout.domain.transitions import TRANSITIONS, Event
from checkout.flows.payment import sealed
from checkout.open_payments.transport import Request
from checkout.ports.wallets import CompletionPolicy
from tests.simulation.attempts import Attempts
from tests.simulation.boundaries import Process, moment

if TYPE_CHECKING:
    from tests.simulation.sim_world import SimWorld

Item = dict[str, Any]
EDGES: Final = {cell: row.to for cell, row in TRANSITIONS.items()}
# The constants that the proof rests on, a second time (design.md "The order of writes").
FENCE: Final = timedelta(seconds=35)
GRACE: Final = timedelta(minutes=15)  # that an incoming payment outlives its session
LEASE: Final = timedelta(seconds=45)
SEND_WITHIN: Final = timedelta(seconds=5)
WAIT_MARGIN: Final = timedelta(seconds=30)
ENDLESS_QUOTE: Final = timedelta(minutes=10)
NEVER_CLOSED_AFTER: Final = timedelta(hours=24)
SKEW: Final = timedelta(seconds=4)  # between two clocks
TERMINAL: Final = (Status.COMPLETED, Status.EXPIRED, Status.CANCELED)
COMPLETED_EVENT: Final = "checkout.session.completed"
EXPIRED_EVENT: Final = "checkout.session.expired"
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
        self._read_at: dict[tuple[str, str], datetime] = {}  # actor, incoming payment
        self._preparing: dict[str, str] = {}  # session -> actor that claimed it
        self._rotated: set[str] = set()  # actors that rotated an approval's token
        self.created = 0  # payments seen so far
        self._attempts = Attempts(lambda: world.network.state, self.fail)
        self._left = world.link.left if world.link is not None else None

    def fail(self, check: str, detail: str) -> None:
        self._world.violate(Violation(check, detail))

    @property
    def sessions(self) -> dict[str, Session]:
        return self._sessions

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
                total += payment.receive.value
        return total

    # --- what the product writes ---

    def written(self, changes: Sequence[tuple[str, Item | None, Item]], by: str) -> None:
        """After an operation of AWS that actor `by` asked for, with all that it changed."""
        touched = []
        self._carts |= {new["id"]["S"]: new for _, _, new in changes if "cart" in new}
        for table, old, new in changes:
            if new.get("id", {}).get("S", "").startswith("plink_"):
                self._left = int(new["left"]["N"])
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

    def _stock(self) -> None:
        """No item of the payment link is lost, or sold twice."""
        link = self._world.link
        if link is None:
            return
        assert link.left is not None
        held = sum(each.restocked_at is None for each in self._sessions.values())
        if self._left != link.left - held or held > link.left:
            self.fail("stock_adds_up", f"{self._left} left of {link.left}, {held} held or sold")

    def _session_written(self, old: Item | None, item: Item, by: str) -> None:
        cart = item if "cart" in item else self._carts.get(cart_id(item["id"]["S"]))
        if cart is None:
            self.fail("session_has_its_cart", "the session was stored without it")
            return
        after = session_from(item | {"cart": cart["cart"]})
        before = self._sessions.get(after.id)
        self._sessions[after.id] = after
        if after.incoming_payment is not None:
            incoming = after.incoming_payment.id.rsplit("/", 1)[-1]
            if incoming not in self._incoming[after.id]:
                self._incoming[after.id].append(incoming)
                self._session_of[incoming] = after.id
        if before is not None and old is not None:
            self._edge(before, after, by)
            if before.restocked_at is None and after.restocked_at is not None:
                self._restocked(after)
        self._secrets(after)
        self._due(after, item)
        self._money_matches(after)

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
        if EDGES.get((before.status, event)) != after.status:
            self.fail("only_edges_of_the_table", f"{told} by {event}")
        if event is Event.APPROVAL_CLAIMED and before.grant is not None:
            grant = sealed.open_grant(self._world.vault, before.id, before.grant)
            self._claims.add((grant.continuation.uri.rsplit("/", 1)[-1], by))
        if event is Event.PAYMENT_INTENDED:
            assert after.instruction is not None
            assert after.quote is not None
            if any(known == after.instruction.id for known, _ in self._intents[after.id]):
                self.fail("intent_is_new", told)
            self._intents[after.id].append((after.instruction.id, after.quote.id))
        self._in_order(before, after, event, by)
        self._attempts.written(before, after, event)
        if event is Event.PAYMENT_DISPROVED and before.incoming_payment is not None:
            self._void.add(before.incoming_payment.id.rsplit("/", 1)[-1])
        if event is Event.PAYMENT_REFUSED and before.quote is not None:
            self._void.add(before.quote.id.rsplit("/", 1)[-1])

    def _restocked(self, after: Session) -> None:
        """Nothing was sold, and no more money can come by the checkout."""
        given_up = after.happened(Event.GIVEN_UP)
        received = self.received(after.id) > self.outside(after.id)
        if not given_up and (not _ended_unpaid(after) or received or after.check_at is not None):
            self.fail("only_the_unsold_comes_back", f"{after.status} check_at {after.check_at}")

    def _in_order(self, before: Session, after: Session, event: Event, by: str) -> None:
        """Check what must come before this write, and the times that it sets."""
        now = moment(self._world.scheduler.now) if before.terminal else after.updated_at
        self._kept_token(before, after, event, by)
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
            case Event.PAYMENT_REFUSED:
                self._refused(before, after, by)
            case Event.CLOSING_STARTED:
                self._waited(before, now, by)
            case Event.CLOSED:
                self._closed(before, now)
        self._verdict(before, after, event, by)

    def _kept_token(self, before: Session, after: Session, event: Event, by: str) -> None:
        if by not in self._rotated:
            return
        self._rotated.discard(by)
        if before.token == after.token:
            self.fail("rotated_token_is_kept", f"{event} by {by}")

    def _claimed(self, after: Session, event: Event, now: datetime, by: str) -> None:
        if event is Event.WALLET_SUBMITTED:
            self._preparing[after.id] = by
        if after.lease_until is None or after.lease_until - now < LEASE - SKEW:
            self.fail("lease_outlives_its_request", f"{event}, until {after.lease_until}")

    def _intended(self, after: Session, now: datetime) -> None:
        assert after.instruction is not None
        left = after.instruction.deadline - now
        if left < SEND_WITHIN - timedelta(milliseconds=500):
            self.fail("attempt_has_its_deadline", str(left))

    def _replaced(self, before: Session, after: Session) -> None:
        held = before.incoming_payment
        if held is None or held == after.incoming_payment:
            return
        money = self._world.network.state.incoming[_last(held.id)].received.value
        if money:
            self.fail("money_is_not_dropped", f"{money} in {held.id}")

    def _refused(self, before: Session, after: Session, by: str) -> None:
        assert before.incoming_payment is not None
        certain = after.problem is not Problem.PAYMENT_REFUSED  # it was not sent
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

        Or when the merchant asks for an end.
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
        if now < min(ends) + WAIT_MARGIN and not failed:
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
        if after.status in TERMINAL:
            if due and after.incoming_payment is None:
                self.fail("done_owes_nothing", told)
        elif _new(after):
            if due:
                self.fail("untouched_owes_nothing", told)
        elif not due and after.attention is not Attention.PARTIAL_PAYMENT:
            self.fail("unfinished_is_due", told)
        later = item.get("due_shard", {"S": ""})["S"].startswith("later-")
        if due and later is after.urgent:
            self.fail("payments_come_first", told)

    def _of_the_clock(self, after: Session, item: Item, told: str) -> None:
        """A session that nobody gave a wallet is found under its expiry, and no other is."""
        expired = after.version == 2 and after.happened(Event.EXPIRY_PASSED)
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
        least = after.receive.value - (after.receive.value >= 100)  # may be missing by a rounding
        by_money = by_money and all(e.event != Event.ACCEPTED_AS_PAID for e in after.history)
        if after.status is Status.COMPLETED and by_money and received < least:
            self.fail("completed_is_paid", f"{received} of {after.receive.value} received")
        outgoing = (after.outgoing_payment or "").rsplit("/", 1)[-1]
        own = self._world.network.state.outgoing.get(outgoing)
        if own is not None and own.receiver.rsplit("/", 1)[-1] not in self._incoming[after.id]:
            self.fail("payment_is_its_own", f"{own.receiver} is another's")
        if after.status is Status.COMPLETED and not received and after.outgoing_payment is None:
            self.fail("completed_was_instructed", "no payment is known, and nothing was received")

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
        if "/incoming-payments/" in path and request.method == "GET":
            self._read_at[by, _last(path)] = process.now()
        if request.method != "POST":
            return
        if path.endswith("/incoming-payments"):
            self._creating_incoming(json.loads(request.body or b"{}"))
        if path.endswith("/outgoing-payments"):
            self._sending_payment(process, request)
        elif "/continue/" in path:
            self._sending_continue(path.rsplit("/", 1)[-1], json.loads(request.body or b"{}"))

    def _creating_incoming(self, body: Item) -> None:
        """It outlives the session that it may be for, even one that has just ended."""
        ends = datetime.fromisoformat(body["expiresAt"])
        if all(ends < each.expires_at + GRACE for each in self._sessions.values()):
            self.fail("incoming_payment_outlives_its_session", body["expiresAt"])

    def of_approval(self, request: Request) -> bool:
        """Return whether this asks for the rotation of an approval's token."""
        if request.method != "POST" or "/token/" not in request.url:
            return False
        state, manage_id = self._world.network.state, _last(request.url)
        grants = [each.grant_id for each in state.tokens.values() if each.manage_id == manage_id]
        return any(state.grants[each].interaction is not None for each in grants)

    def rotated(self) -> None:
        """The current actor has got a new token for an approval's."""
        self._rotated.add(self._world.scheduler.actor)

    def _sending_payment(self, process: Process, request: Request) -> None:
        quote_url = json.loads(request.body or b"{}").get("quoteId", "")
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
        """A callback that does not verify has been refused, after so many effects."""
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
                self._money_came(session_id, received)
            if len(state.outgoing) != self.created:
                self._one_live_payment(session_id, incoming)
        self.created = len(state.outgoing)

    def _money_came(self, session_id: str, received: int) -> None:
        session, state = self._sessions[session_id], self._world.network.state
        by_flow = received - self.outside(session_id)
        if by_flow > session.receive.value * self._allowed(session_id):
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
        for session in self._sessions.values():
            received = self.received(session.id)
            told = f"{session.status} {session.phase} check_at {session.check_at}"
            status = session.status_at(moment(self._world.scheduler.now))
            open_end = status not in TERMINAL and not session.partly_paid
            if open_end or session.due_at() is not None:
                self.fail("nothing_is_stuck", told)
            elif session.partly_paid and not received:
                self.fail("flagged_has_a_reason", session.status)
            recorded = session.received or 0
            # What comes on top of a payment in full is not asked for.
            paid = session.status is Status.COMPLETED and recorded >= session.receive.value
            if received != recorded and not (paid and received > recorded):
                self.fail("money_is_recorded", f"{session.received} of {received}: {told}")
            held = session.link is not None and session.restocked_at is None
            if held and _ended_unpaid(session) and not received and session.attention is None:
                self.fail("the_unsold_comes_back", told)
            if _ended_unpaid(session) and received:
                self._told_of_late_money(session, received)

    def ordered(self, orders: int) -> None:
        """So many purchases were begun, each under one key, by however many requests."""
        if len(self._sessions) > orders:
            told = f"{len(self._sessions)} sessions of {orders} orders"
            self.fail("one_session_per_idempotency_key", told)

    def counted(self, days: Sequence[DayTally], now: datetime) -> None:
        """All has been counted: the sums are those of the sessions."""
        ended = [each for each in self._sessions.values() if each.status_at(now) in TERMINAL]
        paid = [each for each in ended if each.status is Status.COMPLETED]
        sums = (sum(each.ended for each in days), sum(each.paid for each in days))
        if sums != (len(ended), len(paid)):
            self.fail("sums_are_true", f"{sums}, not {len(ended)}, {len(paid)}")

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
        if session.attention is not Attention.LATE_PAYMENT or received not in events:
            self.fail("money_is_never_silent", f"{received}, {session.attention}, told {events}")


def _new(session: Session) -> bool:
    owes_nothing = session.link is None  # else the sweep gives its item back
    return session.version == 1 and session.status is Status.OPEN and owes_nothing


def _last(url: str) -> str:
    return url.rsplit("/", 1)[-1]


def _ended_unpaid(session: Session) -> bool:
    """Return whether it is expired or canceled, and not because its merchant gave it up."""
    ended = session.status in (Status.EXPIRED, Status.CANCELED)
    return ended and all(entry.event != Event.GIVEN_UP for entry in session.history)
