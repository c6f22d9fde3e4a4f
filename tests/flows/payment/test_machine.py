"""A merchant, customers, time and a bad network do to a few sessions whatever they can, in any
order; the invariants of design.md hold after every write and after every step, and in the end
every session is decided.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from checkout.adapters.dynamo.records import session_from
from checkout.adapters.dynamo.values import instant
from checkout.domain.errors import CallbackInvalid, CheckoutError
from checkout.domain.session import Attention, Phase, Session, Status
from checkout.domain.transitions import TRANSITIONS, Event
from checkout.flows.payment import reconcile, sessions
from checkout.flows.schedule import sweep
from checkout.open_payments.errors import NotSent, OutcomeUnknown
from checkout.open_payments.transport import Request, Response
from checkout.ports.wallets import CompletionPolicy
from sandbox.cloud import table_definitions
from sandbox.wallets.interaction import NoRedirect
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.product import CEDAR, PREFIX, World
from tests.support import come_back

pytestmark = pytest.mark.endurance

AMOUNT: Final = 2000
TERMINAL: Final = (Status.COMPLETED, Status.EXPIRED, Status.CANCELED)
COMPLETED: Final = "checkout.session.completed"
WALLETS: Final = st.sampled_from(
    [
        "alice",
        "alice",
        "carol",
        "late",
        "no-funds",
        "never-credits",
        "partial",
        "says-failed",
        "dies-after-create",
        "quote-expired",
        "no-quote-expiry",
        "expensive-renewal",
        "interact-timeout",
        "unpeered",
        "slow",
        "nobody",
    ]
)
LIVES: Final = st.sampled_from([300, 1800, 86_400, 86_400])
SESSIONS_MAX: Final = 3
PLACES: Final = (
    "/outgoing-payments",
    "/incoming-payments",
    "/continue/",
    "/quotes",
    "/complete",
    "",
)
# design.md invariant 7: after its expiry, min(quote life, 15 min) and an hour.
DECIDED_WITHIN: Final = timedelta(minutes=75)

LOST: Final = (
    ("/outgoing-payments", "request"),
    ("/outgoing-payments", "answer"),
    ("/outgoing-payments", "late"),
    ("/outgoing-payments", "refused"),
    ("/continue/", "answer"),
)
LATE: Final = timedelta(seconds=30)

Lost = tuple[str, str] | None
Callback = tuple[str, str, str]  # session, interact_ref, hash


class Watched(InMemoryDynamoDb):
    """Every write is looked at before its writer hears of it."""

    def __init__(self) -> None:
        super().__init__(table_definitions(PREFIX))
        self.known: dict[str, Session] = {}
        self.events: dict[str, dict[str, Any]] = {}
        self.sent: Counter[str] = Counter()  # sends of C8, by the quote they name
        self.intents: Counter[str] = Counter()  # W6, by their quote
        self.incoming: defaultdict[str, set[str]] = defaultdict(set)  # by session

    def update_item(self, **request: Any) -> Any:
        answer = super().update_item(**request)
        self._look()
        return answer

    def put_item(self, **request: Any) -> Any:
        answer = super().put_item(**request)
        self._look()
        return answer

    def transact_write_items(self, **request: Any) -> Any:
        answer = super().transact_write_items(**request)
        self._look()
        return answer

    def _look(self) -> None:
        for row in self.rows(f"{PREFIX}-checkout_sessions"):
            if "version" not in row:  # a search row
                continue
            after = session_from(row)
            before = self.known.get(after.id)
            if before == after:
                continue
            self.known[after.id] = after
            if before is not None:
                self._edge(before, after)
            if after.incoming_payment is not None:
                self.incoming[after.id].add(after.incoming_payment.id.rsplit("/", 1)[-1])
            self._at_rest(after, row)
        self._events()

    def _edge(self, before: Session, after: Session) -> None:
        assert after.version > before.version
        assert before.status not in TERMINAL or after.status is before.status
        news = after.history != before.history
        event = Event(after.history[-1].event) if news else Event.CHECKED
        assert TRANSITIONS[before.status, event].to is after.status
        if event is Event.PAYMENT_INTENDED:
            assert after.quote is not None
            self.intents[after.quote.id] += 1

    def _at_rest(self, after: Session, row: dict[str, Any]) -> None:
        waiting = after.status is Status.AWAITING_APPROVAL and after.phase is not Phase.PAYING
        assert waiting or (after.grant, after.interact_url) == (None, None)
        assert after.payment_in_flight or after.token is None
        due = {"due_at", "due_shard"} & set(row)
        if after.status in TERMINAL:  # due while its incoming payment may still receive
            assert not due or after.incoming_payment is not None
        elif after.version == 1:  # nobody gave it a wallet: the clock ends it
            assert not due
            assert row["uncounted_at"] == instant(after.expires_at)
        elif after.attention is not Attention.PARTIAL_PAYMENT:
            assert due == {"due_at", "due_shard"}

    def _events(self) -> None:
        completed: Counter[str] = Counter()
        for row in self.rows(f"{PREFIX}-webhook_events"):
            assert self.events.setdefault(row["id"]["S"], row)["body"] == row["body"]
            completed[row["session"]["S"]] += row["type"]["S"] == COMPLETED
        for session in self.known.values():
            assert completed[session.id] == (session.status is Status.COMPLETED)


class Checkout(RuleBasedStateMachine):
    """Rules that lead to money are more likely than those that end a session: most walks should
    come to W6 and beyond.
    """

    links = Bundle("links")
    callbacks = Bundle("callbacks")

    @initialize(target=links, policy=st.sampled_from(CompletionPolicy), life=LIVES)
    def begin(self, policy: CompletionPolicy, life: int) -> Any:
        self.client = Watched()
        self.policy = policy
        self.world = World(policy=policy, client=self.client)
        self.world.transport.before = self._leaving
        self.world.transport.after = self._answered
        self.lost: dict[str, str] = {}  # what gets lost next, and where
        self.late: list[tuple[datetime, Request]] = []
        return self.create(life)

    # --- the network ---

    def _leaving(self, request: Request) -> None:
        self._deliver()
        if self._hits("request", request):
            raise NotSent("lost on the way")
        if request.method == "POST" and request.url.endswith("/outgoing-payments"):
            quote = json.loads(request.body or b"{}")["quoteId"]
            self.client.sent[quote] += 1
            assert self.client.sent[quote] <= self.client.intents[quote]
        if self._hits("refused", request):
            self._spend_limits()
        if self._hits("late", request):
            self.late.append((self.world.clock.now() + LATE, request))
            raise OutcomeUnknown("on the way for longer than anybody waits")

    def _answered(self, request: Request, response: Response) -> None:
        if self._hits("answer", request):
            raise OutcomeUnknown("lost on the way back")

    def _hits(self, kind: str, request: Request) -> bool:
        part = self.lost.get(kind)
        if part is None or part not in request.url:
            return False
        del self.lost[kind]
        return True

    def _deliver(self) -> None:
        """Deliver the request that was on its way for long."""
        arriving = [each for each in self.late if each[0] <= self.world.clock.now()]
        self.late = [each for each in self.late if each not in arriving]
        for _, request in arriving:
            with suppress(OutcomeUnknown):
                self.world.network.handle(request)

    def _spend_limits(self) -> None:
        """Use up the approved limits, so that the wallet refuses to pay."""
        for grant in self.world.network.state.grants.values():
            for access in grant.access:
                if "limits" in access:
                    access["limits"]["debitAmount"]["value"] = "1"

    @rule(lost=st.sampled_from([(part, kind) for part in PLACES for kind in ("request", "answer")]))
    def disturb(self, lost: tuple[str, str]) -> None:
        self.lose(*lost)

    def lose(self, part: str, kind: str) -> None:
        """The next request there gets lost, or its answer, or it arrives late, or is refused."""
        self.lost[kind] = part

    # --- the merchant ---

    @precondition(lambda self: len(self.client.known) < SESSIONS_MAX)
    @rule(target=links, life=LIVES)
    def create(self, life: int) -> str:
        return self.world.create(AMOUNT, expires_in_seconds=life).id

    @rule(session=links, ending=st.sampled_from([sessions.cancel, sessions.expire]))
    def end_one(self, session: str, ending: Callable[..., Session]) -> None:
        self.end(session, ending)

    def end(self, session: str, ending: Callable[..., Session]) -> None:
        with suppress(CheckoutError):
            ending(self.world.services, self.world.key(), session)

    @precondition(lambda self: self._in_flight())
    @rule(data=st.data(), ending=st.sampled_from([sessions.cancel, sessions.expire]))
    def end_in_flight(self, data: st.DataObject, ending: Callable[..., Session]) -> None:
        self.end(data.draw(st.sampled_from(self._in_flight())), ending)

    def _in_flight(self) -> list[str]:
        return [each.id for each in self.client.known.values() if each.payment_in_flight]

    # --- the customer ---

    @rule(session=links, wallet=WALLETS)
    def submit(self, session: str, wallet: str) -> None:
        with suppress(CheckoutError):
            self.world.submit(self.world.session(session), f"{CEDAR}/{wallet}")

    @precondition(lambda self: self._pending())
    @rule(target=callbacks, data=st.data(), approve=st.booleans())
    def choose(self, data: st.DataObject, approve: bool) -> Any:
        """The customer chooses at the wallet, and their browser has not come back yet."""
        return self._choose(data.draw(st.sampled_from(self._pending())), approve=approve)

    @rule(
        target=callbacks,
        session=links,
        wallet=WALLETS,
        seconds=st.sampled_from([0, 6, 6, 295]),
        lost=st.sampled_from([None, None, None, *LOST]),
    )
    def pay(self, session: str, wallet: str, seconds: int, lost: Lost) -> Any:
        """The whole way at once, unless something is in the way."""
        self.submit(session, wallet)
        if session not in self._pending():
            return multiple()
        callback = self._choose(session, approve=True)
        if callback == multiple():
            return callback
        self.world.clock.pass_time(seconds)
        if lost is not None:
            self.lose(*lost)
        self._come_back(*callback)
        return callback

    def _pending(self) -> list[str]:
        return [each.id for each in self.client.known.values() if each.interact_url is not None]

    def _choose(self, session: str, *, approve: bool) -> Any:
        link = self.world.session(session).interact_url
        assert link is not None
        network = self.world.network
        try:
            back = (network.approve if approve else network.decline)(link)
        except NoRedirect:
            return multiple()
        query = parse_qs(urlsplit(back).query)
        if "hash" not in query:  # declined, or too late
            return multiple()
        return (session, query["interact_ref"][0], query["hash"][0])

    @rule(callback=callbacks)
    def come_back(self, callback: Callback) -> None:
        """For the first time or again; to this approval, or to one that was replaced."""
        self._come_back(*callback)

    @rule(callback=callbacks, session=links)
    def come_back_elsewhere(self, callback: Callback, session: str) -> None:
        """A true callback, at another session."""
        if session != callback[0]:
            self._forged(session, callback[1], callback[2])

    @precondition(lambda self: self._pending())
    @rule(target=callbacks, data=st.data(), reference=st.booleans())
    def forge(self, data: st.DataObject, reference: bool) -> Any:
        """Another's reference or hash comes first; then the customer's own."""
        session = data.draw(st.sampled_from(self._pending()))
        callback = self._choose(session, approve=True)
        if callback != multiple():
            true_reference, true_hash = callback[1:]
            if reference:
                self._forged(session, f"{true_reference}x", true_hash)
            else:
                self._forged(session, true_reference, "A" * 43 + "=")
        return callback

    def _forged(self, session: str, reference: str, presented: str) -> None:
        before = self.client.known[session]
        sent = len(self.world.transport.sent)
        self._come_back(session, reference, presented)
        assert len(self.world.transport.sent) == sent
        if before.status is Status.AWAITING_APPROVAL and before.grant is not None:
            assert self.client.known[session] == before

    def _come_back(self, session: str, reference: str, presented: str) -> None:
        with suppress(CallbackInvalid):
            come_back(self.world.services, session, reference, presented)

    @rule(session=links)
    def poll(self, session: str) -> None:
        reconcile.advance_pending(self.world.services, session)

    # --- time ---

    @rule(seconds=st.sampled_from([1, 5, 20, 40, 60, 330, 2000]))
    def pass_time(self, seconds: int) -> None:
        self.world.clock.pass_time(seconds)

    @rule()
    def sweep(self) -> None:
        until = self.world.clock.now() + timedelta(minutes=5)
        counts = sweep.run(self.world.services, until=until)
        assert counts.failed == 0

    # --- what holds ---

    @invariant()
    def the_money_fits(self) -> None:
        self._deliver()
        self.world.network.advance()
        state = self.world.network.state
        for session in self.client.known.values():
            own = self.client.incoming[session.id]
            received = sum(state.incoming[each].received.value for each in own)
            moved = [
                payment
                for payment in state.outgoing.values()
                if payment.parts_sent and payment.receiver.rsplit("/", 1)[-1] in own
            ]
            assert len(moved) <= 1
            assert received <= AMOUNT
            if session.status in (Status.CANCELED, Status.EXPIRED):
                assert received == 0
            if session.status is Status.COMPLETED and self.policy is CompletionPolicy.RECEIVED:
                assert received == AMOUNT

    def teardown(self) -> None:
        """The network is well again, and the scheduled job goes on: everything is decided."""
        if not hasattr(self, "world"):
            return
        self.lost.clear()
        begun = self.world.clock.now()
        while unfinished := [each for each in self.client.known.values() if each.due_at()]:
            now = self.world.clock.now()
            due = min(each.due_at() or now for each in unfinished)
            self.world.clock.pass_time(max(0.0, (due - now).total_seconds()) + 1)
            self.sweep()
            for session in unfinished:
                partly_paid = session.attention is Attention.PARTIAL_PAYMENT
                assert partly_paid or now <= max(begun, session.expires_at) + DECIDED_WITHIN
            self.the_money_fits()
        for session in self.client.known.values():
            partly_paid = session.attention is Attention.PARTIAL_PAYMENT
            assert session.terminal or session.left_to_clock or partly_paid


TestCheckout = Checkout.TestCase
TestCheckout.settings = settings(
    max_examples=250,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
