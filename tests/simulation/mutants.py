"""Seeded bugs: one-line sabotages of the protocol, made in memory, and the check that catches each.

A sabotage replaces text in one function's source and swaps the function's code, so that all
importers have the sabotaged one; or it replaces a row of the table or a constant. Leaving `applied`
undoes it. The product contains none of this.
"""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache, partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final

from checkout.domain.payment.attempt import EndedBy, Outcome
from checkout.domain.payment.events import Event as E
from checkout.domain.payment.machine import ALWAYS, Condition, Row
from checkout.domain.payment.mandate import MandateEvent, MandateStatus
from checkout.domain.payment.mandate_transitions import MANDATE_TRANSITIONS
from checkout.domain.refund.record import RefundEvent, RefundStatus
from checkout.domain.refund.transitions import REFUND_TRANSITIONS
from checkout.domain.session.attempts import ENDS
from checkout.domain.session.record import Session
from checkout.domain.session.record import Status as S
from checkout.domain.session.transitions import IN_FLIGHT, IN_TIME, PARTLY_PAID, TRANSITIONS
from tests.simulation import actors, identities, load, sim_world
from tests.simulation.swarm import AT_THE_EDGE

WORLDS_MAX: Final = 3_000
LEARNT_IN: Final = 700  # worlds in which a second one that catches a bug is looked for
WANTED: Final = 2  # worlds that catch each
KNOWN: Final = Path(__file__).with_name("known_seeds.json")

Undo = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Line:
    """In `function` (module:name), `old` becomes `new`, which is there once; and so for `also`."""

    function: str
    old: str
    new: str
    also: tuple[tuple[str, str], ...] = ()

    def apply(self) -> Undo:
        target, source = _found(self.function)
        for old, new in ((self.old, self.new), *self.also):
            if source.count(old) != 1:
                raise LookupError(f"{self.function} has not once: {old}")
            source = source.replace(old, new)
        compiled = compile(source, f"<sabotaged {target.__name__}>", "exec")
        flags = target.__code__.co_flags
        code = next(each for each in compiled.co_consts if isinstance(each, CodeType))
        original = target.__code__
        target.__code__ = code.replace(co_flags=flags)
        return lambda: setattr(target, "__code__", original)


@dataclass(frozen=True, slots=True)
class Cell:
    """In a transition table, the row of this cell changes; `new` makes one where there is none."""

    cell: tuple[Any, Any]
    change: Callable[[Row], Row] = lambda row: row
    table: dict[Any, Row] = field(default_factory=lambda: TRANSITIONS)
    new: Row | None = None

    def apply(self) -> Undo:
        original = self.table.get(self.cell)
        self.table[self.cell] = self.new or self.change(self.table[self.cell])

        def undo() -> None:
            if original is None:
                del self.table[self.cell]
            else:
                self.table[self.cell] = original

        return undo


@dataclass(frozen=True, slots=True)
class Value:
    """A module's constant gets another value."""

    module: str
    name: str
    value: Any

    def apply(self) -> Undo:
        module = import_module(self.module)
        original = getattr(module, self.name)
        setattr(module, self.name, self.value)
        return lambda: setattr(module, self.name, original)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A seeded bug.

    `only`: the kind of wallet in whose worlds it is hunted, how the shop pays, or ONLY of
    identities.py.
    `in_load`: it is hunted in a day of load (load.py), and not in worlds. `known`: the seed of a
    world that caught it before, without the draws of swarm.py, for one that few worlds catch: it is
    tried first. `refunds`: it is hunted in worlds that refund. `changes`: in worlds in which the
    shop's identity changes too, as in a campaign. Most know the seeds of worlds in which it stays.
    `like`: in worlds that are drawn as this seed's and take a course of their own, for one that
    only a rare world catches.
    """

    name: str
    parts: tuple[Line | Cell | Value, ...]
    only: str | None = None
    in_load: bool = False
    known: int | None = None
    refunds: bool = False
    changes: bool = False
    like: int | None = None


def line(
    name: str, function: str, old: str, new: str, also: tuple[tuple[str, str], ...] = (), **how: Any
) -> Mutant:
    """Return the bug of one changed function; `how` are further fields of Mutant."""
    return Mutant(name, (Line(function, old, new, also),), **how)


def cell(
    name: str,
    where: tuple[Any, Any],
    change: Callable[[Row], Row],
    table: dict[Any, Row] = TRANSITIONS,
    **how: Any,
) -> Mutant:
    """Return the bug of one changed row of a table; `how` are further fields of Mutant."""
    return Mutant(name, (Cell(where, change, table),), **how)


def value(name: str, module: str, constant: str, other: Any, **how: Any) -> Mutant:
    return Mutant(name, (Value(module, constant, other),), **how)


def drops_all_but(*kept: str) -> Callable[[Row], Row]:
    return lambda row: replace(row, drops=tuple(name for name in row.drops if name not in kept))


def when(condition: Condition[Session]) -> Callable[[Row], Row]:
    return lambda row: replace(row, when=condition)


def silent(row: Row) -> Row:
    return replace(row, webhook=None)


def opens(row: Row) -> Row:
    return replace(row, to=S.OPEN)


def unchecked(row: Row) -> Row:
    return replace(row, then_check=False)


_APPROVAL: Final = "checkout.flows.payment.approval"
_INSTRUCT: Final = "checkout.flows.payment.instruct"
_PROOF: Final = "checkout.flows.payment.proof"
_SCHEDULE: Final = "checkout.flows.payment.schedule"
_APPROVE: Final = "checkout.flows.session.approve"
_COMPLETION: Final = "checkout.flows.session.completion"
_OUTSIDE: Final = "checkout.flows.session.unsolicited_payments"
_PREPARE: Final = "checkout.flows.session.prepare"
_PURCHASE: Final = "checkout.flows.links.purchase"
_LINK: Final = "checkout.domain.links:PaymentLink"
_RECONCILE: Final = "checkout.flows.session.reconcile"
_TRANSITIONS: Final = "checkout.domain.session.transitions"
_DELIVER: Final = "checkout.flows.webhooks.deliver"
_SWEEP: Final = "checkout.flows.schedule.sweep"
_EXPIRIES: Final = "checkout.flows.schedule.expiries"
_DYNAMO: Final = "checkout.adapters.dynamo.sessions"
_ATTEMPTS: Final = "checkout.domain.session.attempts"
_NO_TIME: Final = timedelta(0)
_SESSION: Final = "checkout.domain.session.record"
_REFUND: Final = "checkout.flows.refund.approve"
_REQUEST: Final = "checkout.flows.refund.request"
_LOOK: Final = "checkout.flows.refund.reconcile"
_BUDGET: Final = "checkout.flows.refund.budget"
_MANDATES: Final = "checkout.flows.payment.mandates"
_PERIOD: Final = "checkout.domain.payment.mandate:Mandate.period_at"
_SETTLE: Final = "checkout.flows.refund.settle"
_VERDICT: Final = "checkout.domain.refund.verdict"
_FENCED: Final = (_TRANSITIONS, _PROOF, _SCHEDULE, _OUTSIDE, _PREPARE)  # they know FENCE

# Bugs of the client of Open Payments that worlds show. The client's own tests hunt the others, for
# which a second check of the flows makes up (packages/open-payments/tests/test_seeded_bugs.py).
CLIENT_MUTANTS: Final = (
    line(
        "any hash proves the return",
        "open_payments.interaction:matches",
        "hmac.compare_digest(expected, digest) and ",
        "",
    ),
    line(
        "a busy server has refused",
        "open_payments.exchange:reason",
        "if status in _BUSY:",
        "if False:",
    ),
)

SALE_MUTANTS: Final = (
    line(
        "no claim before the continuation",
        f"{_APPROVE}:_claim_and_pay",
        "approval.claim(services, session, _look_planned)",
        "session",
    ),
    line(
        "the intent is not written before the payment",
        f"{_INSTRUCT}:intend",
        "return move(",
        "return (lambda _, record, event, **new: __import__('dataclasses').replace("
        "record, phase='paying', **new))(",
    ),
    line(
        "an unknown outcome of the payment is a failure",
        f"{_INSTRUCT}:send",
        "return Sent(record)  # `paying`",
        "return Sent(move(services, record, Event.PAYMENT_REFUSED))  # `paying`",
    ),
    line(
        "the payment is sent again after an unknown outcome",
        f"{_INSTRUCT}:send",
        "return Sent(record)  # `paying`",
        "payment = send_once(calls, record, token)  # `paying`",
    ),
    line(
        "the payment is sent after its deadline",
        f"{_INSTRUCT}:send_once",
        "if calls.services.clock.now() >= record.instruction.deadline:",
        "if False:",
        known=350,
    ),
    line(
        "a bare 4xx is trusted",
        f"{_INSTRUCT}:_refused",
        "    try:",
        "    return _certain(calls, record, token, Problem.PAYMENT_REFUSED, 'no')\n    try:",
    ),
    line(
        "a wallet that cannot be asked has refused",
        f"{_INSTRUCT}:_refused",
        "certain = False  # a wallet cannot be asked",
        "certain = True",
        known=95,
    ),
    Mutant(
        "409 and 429 are definite, and the token is kept",  # either alone is made good by the other
        (
            Line(
                f"{_INSTRUCT}:_certain",
                "calls.client.revoke_token(payer.auth_server, token)",
                "pass",
            ),
            Line(
                f"{_INSTRUCT}:_refused",
                "(op.Reason.BUSY, op.Reason.INVALID_QUOTE)",
                "(op.Reason.INVALID_QUOTE,)",
            ),
        ),
    ),
    line(
        "an invalid quote is definite",
        f"{_INSTRUCT}:_refused",
        "(op.Reason.BUSY, op.Reason.INVALID_QUOTE)",
        "(op.Reason.BUSY,)",
        (("= found is None", "= found is None or refused.reason is op.Reason.INVALID_QUOTE"),),
        known=1060,
    ),
    line("a callback need not verify", f"{_APPROVAL}:verify", "if matched is None:", "if False:"),
    line(
        "a dearer quote than approved is paid",
        f"{_INSTRUCT}:usable_quote",
        "return renewed if within else None",
        "return renewed",
        only="limits not enforced, dearer",
    ),
    line(
        "the 201 completes the session",
        f"{_COMPLETION}:await_money",
        "if services.completion_policy is CompletionPolicy.INSTRUCTED:",
        "if True:",
    ),
    Mutant(
        "the callback believes the wallet's word of failure",
        (
            Line(
                f"{_COMPLETION}:await_money",
                "seen)\n                return schedule.start_closing(services, session)",
                "seen)\n                return move(services, session, Event.PAYMENT_DISPROVED)",
            ),
            Cell((S.PROCESSING, E.PAYMENT_DISPROVED), when(IN_FLIGHT)),
        ),
        only="no money",
    ),
    line(
        "the callback keeps a part to itself",
        f"{_COMPLETION}:await_money",
        "session = _tell_part(calls, session, seen)",
        "pass",
    ),
    line(
        "the fence keeps a part to itself",
        f"{_RECONCILE}:_fence",
        "not (told or decides)",
        "not decides",
    ),
    line(
        "a stumble of the customer's wallet loses the approval",
        f"{_APPROVAL}:keep_or_lose",
        "if kept is None:",
        "if True:",
        only=actors.STUMBLING_WALLETS,
    ),
    line(
        "a wallet that cannot read our keys has refused the approval",
        f"{_APPROVAL}:stumbled",
        "return error.of_key or error.reason in",
        "return error.reason in",
        only=actors.STUMBLING_WALLETS,
    ),
    line(
        "an approval is kept for ever",
        f"{_APPROVAL}:kept_until",
        "min(approve_until or now + KEPT_FOR, now + KEPT_FOR)",
        "now + KEPT_FOR",
        only=actors.STUMBLING_WALLETS,
    ),
    cell(
        "a kept approval stays claimed",
        (S.AWAITING_APPROVAL, E.APPROVAL_KEPT),
        drops_all_but("phase"),
        only=actors.STUMBLING_WALLETS,
    ),
    cell(
        "a kept approval keeps its lease",
        (S.AWAITING_APPROVAL, E.APPROVAL_KEPT),
        drops_all_but("lease_until"),
        only=actors.STUMBLING_WALLETS,
    ),
    cell(
        "cancel ignores a payment in flight",
        (S.AWAITING_APPROVAL, E.CANCEL_REQUESTED),
        when(IN_TIME),
        known=120,
    ),
    cell(
        "expire ignores a payment in flight",
        (S.AWAITING_APPROVAL, E.EXPIRE_REQUESTED),
        when(IN_TIME),
        known=95,
    ),
    line(
        "time ends a session with a payment in flight",
        "checkout.domain.session.record:Session.overdue",
        "if self.terminal or self.payment_in_flight or now < self.expires_at:",
        "if self.terminal or now < self.expires_at:",
    ),
    line(
        "the event is outside the transaction",
        f"{_DYNAMO}:DynamoSessions.save",
        "self._transact(writes)",
        'puts = {name: each for name, each in writes.items.items() if "Put" in each}; '
        "others = {name: each for name, each in writes.items.items() if name not in puts}; "
        "self._transact(type(writes)(others)); puts and self._transact(type(writes)(puts))",
    ),
    cell(
        "old nonces are kept when a wallet is submitted again",
        (S.AWAITING_APPROVAL, E.WALLET_SUBMITTED),
        drops_all_but("grant"),
    ),
    cell(
        "the access token outlives the session",
        (S.PROCESSING, E.RECONCILED),
        drops_all_but("token"),
    ),
    line(
        "a writer with an old version wins",
        "checkout.adapters.dynamo.conditions:update",
        'still_as_read = "#status = :from AND #version = :read"',
        'still_as_read = "#status = :from AND #version >= :read"',
    ),
    line(
        "search rows come between a 201 and its W7",
        f"{_DYNAMO}:DynamoSessions.save",
        "late = change.event == Event.PAYMENT_CREATED",
        "late = False",
        only="own payment ids",  # others' payments are found by the rows of their quotes
    ),
    line(
        "the next check is written between a 201 and its W7",
        f"{_INSTRUCT}:send",
        "after_us = services.clock.now() + time_budget",
        "after_us = services.clock.now() + time_budget\n"
        "    record = move(services, record, Event.CHECKED, check_at=after_us)",
    ),
    line(
        "W7 is conditional on the instruction, not on the version",  # as it once was
        "checkout.adapters.dynamo.conditions:update",
        "conditions = [still_as_read]",
        """conditions = [still_as_read]
    if change.event == "payment_created" and change.before.closing_at is None:
        same = "#phase = :paying AND #attempt.#id = :instruction"
        conditions = [same, "attribute_not_exists(#closing_at)"]
        names |= {f"#{name}": name for name in ("phase", "attempt", "id", "closing_at")}
        values = {":one": {"N": "1"}, ":paying": {"S": "paying"}}
        values[":instruction"] = {"S": change.before.instruction.id}
        sets = ["#version = #version + :one"]""",
        known=256,
    ),
    line(
        "a loser believes that it has won",
        f"{_DYNAMO}:DynamoSessions._stale_unless_ours",
        "if current.writer != change.after.writer:",
        "if False:",
        known=62,
    ),
    line(
        "versions do not grow",
        "checkout.domain.payment.machine:advance",
        "version=record.version + 1,",
        "version=record.version,",
    ),
    Mutant(
        "the incoming payment is not closed before the verdict",
        (
            Line(
                f"{_PROOF}:read_and_close",
                "calls.client.complete_incoming_payment(url, token)",
                "None",
            ),
            Line(f"{_PROOF}:fence", "if not seen.closed:", "if False:"),
        ),
    ),
    Mutant(
        "the verdict comes before the 35 s",
        (
            Value(_PROOF, "FENCE", _NO_TIME),
            Value("checkout.domain.session.transitions", "FENCE", _NO_TIME),
        ),
    ),
    line(
        "what was asked to close counts as closed",
        f"{_PROOF}:read_and_close",
        "seen = read(calls, record)\n    return seen",
        "seen = Seen(seen.received, True, seen.begun_at)\n    return seen",
        known=4,
    ),
    line(
        "what was seen before the close is lost if the read after it fails",
        f"{_PROOF}:read_and_close",
        "with contextlib.suppress(op.OpenPaymentsError):\n        seen",
        "if True:\n        seen",
        refunds=True,
        changes=True,
    ),
    line(
        "money that was read is unlearned when its incoming payment is not found",
        f"{_PROOF}:read",
        "(known == 0 or never_closed)",
        "True",
        also=(("received=known", "received=0"),),
        refunds=True,
        changes=True,
        like=10811803,
    ),
    line(
        "late money is told only when nothing more can come",
        f"{_OUTSIDE}:account",
        "if seen.received > (session.received or 0):",
        "if seen.closed and seen.received > (session.received or 0):",
    ),
    line(
        "the quote's expiry is trusted",
        f"{_SCHEDULE}:close_when_waited",
        "return start_closing(services, record)",
        "return move(services, record, Event.PAYMENT_REFUSED) if record.phase else "
        "start_closing(services, record)",
        only="own payment ids, no lists",
    ),
    Mutant(
        "the wallet's word of failure is trusted",
        (
            Line(
                f"{_RECONCILE}:_decide",
                "return schedule.start_closing(calls.services, session)",
                "return move(calls.services, session, Event.PAYMENT_DISPROVED)",
            ),
            Cell((S.PROCESSING, E.PAYMENT_DISPROVED), when(IN_FLIGHT)),
        ),
    ),
    Mutant(
        "a closed incoming payment is used again",
        (
            Cell((S.AWAITING_APPROVAL, E.PAYMENT_DISPROVED), drops_all_but("incoming_payment")),
            Cell((S.PROCESSING, E.PAYMENT_DISPROVED), drops_all_but("incoming_payment")),
            Line(f"{_PREPARE}:_check_incoming_payment", "if not seen.closed:", "if True:"),
        ),
    ),
    line(
        "half is taken for the whole",
        f"{_PROOF}:enough",
        "return received >= least_accepted(",
        "return received * 2 >= least_accepted(",
    ),
    line(
        "the sweep takes over a live lease",
        "checkout.flows.session.lookup:_decided",
        "if session.lease_live(now):",
        "if False:",
    ),
    line(
        "a payment in flight is not due",
        "checkout.domain.session.record:Session.needed_at",
        "return self.check_at",
        "return None if self.payment_in_flight else self.check_at",
    ),
    line(
        "an attempt to deliver has no lease",
        f"{_DELIVER}:deliver",
        "services.events.save(event)",
        "event = __import__('dataclasses').replace(event, version=event.version - 1)",
        known=250,
    ),
    line(
        "a webhook is sent before its time",
        "checkout.domain.webhooks.record:may_attempt",
        "event.status is EventStatus.PENDING and now >= event.next_at",
        "event.status is EventStatus.PENDING",
    ),
    line(
        "the sweep forgets the events that are owed",
        "checkout.flows.schedule.sweep:_due_events",
        "deliver.due_events(services.events, now, services.run_concurrently, part)",
        "()",
    ),
    line(
        "a failed webhook counts as delivered",
        "checkout.domain.webhooks.record:ended",
        "if delivery.succeeded:",
        "if delivery.duration_ms is not None:",
    ),
    line(
        "two answers to one idempotency key",
        "checkout.adapters.dynamo.conditions:put_reservation",
        'absent_or_expired = "(attribute_not_exists(#key) OR #expires_at <= :now)"',
        'absent_or_expired = "(attribute_not_exists(#key) OR #expires_at > :now)"',
    ),
    # Mutants from an outsider's review, and later ones.
    Mutant(
        "the fence waits 30 s",
        tuple(Value(module, "FENCE", timedelta(seconds=30)) for module in _FENCED),
    ),
    Mutant(
        "the deciding read may begin in the middle of the 35 s",
        (
            Line(
                f"{_PROOF}:fence",
                "if seen.begun_at < record.closed_at + FENCE:",
                "if services.clock.now() + FENCE / 2 < record.closed_at + FENCE:",
                also=(("check_at=now + FENCE", "check_at=now"),),
            ),
            # Otherwise no check is due before their end.
            Line(
                f"{_SCHEDULE}:next_check",
                "check_at = max(check_at, record.closed_at + FENCE)",
                "pass",
            ),
        ),
        only="accepts, never sends",
        like=1477,
    ),
    line(
        "the last read after an end may begin before the 35 s",
        f"{_OUTSIDE}:account",
        "session.closed_at is not None and seen.begun_at >= session.closed_at + FENCE",
        "session.closed_at is not None",
        also=(('"check_at": now + FENCE', '"check_at": now'),),
        known=74,
    ),
    line(
        "sessions are read eventually consistent",
        "checkout.adapters.dynamo.client:get",
        "Read=True",
        "Read=False",
    ),
    line(
        "an incoming payment that holds money is replaced",
        f"{_PREPARE}:_check_incoming_payment",
        "if seen.received > 0:\n        return unsolicited_payments.found(calls, session, seen)\n"
        "    if not seen.closed:\n        return session",
        "pass",
        also=(("or seen.begun_at < session.closed_at + FENCE", ""),),
        known=74,
    ),
    line(
        "the rotated token is not kept",
        f"{_RECONCILE}:_keep_token",
        "Event.CHECKED, token=new",
        "Event.CHECKED",
    ),
    line(
        "the rotated token is lost with a race",
        f"{_RECONCILE}:_keep_token",
        "    if current.token != known or not current.payment_in_flight:\n"
        "            return None\n",
        "    if current.version != session.version:\n            return None\n",
        refunds=True,
        like=461008638,
    ),
    line(
        "a completed session is not in the list of these",
        "checkout.adapters.dynamo.index_keys:of_session",
        "if session.status is Status.COMPLETED:",
        "if False:",
    ),
    line(
        "a check goes on with the session of before the rotation",
        f"{_RECONCILE}:_ask_wallet",
        "session = _keep_token(calls, session, token)",
        "_keep_token(calls, session, token)",
        only="loses tokens",
    ),
    value(
        "the incoming payment lives only as long as the session",
        _PREPARE,
        "INCOMING_PAYMENT_GRACE",
        _NO_TIME,
    ),
    value(
        "the incoming payment outlives its session by 14 min",
        _PREPARE,
        "INCOMING_PAYMENT_GRACE",
        timedelta(minutes=14),
    ),
    line(
        "a zombie gives up whoever's preparation it finds",
        f"{_PREPARE}:_give_up",
        "if session is None or session.lease_until != claimed.lease_until:",
        "if session is None:",
        known=586,
    ),
    line(
        "any payment of this wallet counts as found",
        f"{_INSTRUCT}:find_payment",
        "if payment.quote_id == quote or payment.receiver == receiver:",
        "if True:",
        known=62,
    ),
    line(
        "a refusal counts before the merchant's wallet is asked",
        f"{_INSTRUCT}:_refused",
        "seen = proof.read(calls, record)",
        "seen = proof.Seen(0, False, calls.services.clock.now())",
        known=23,
    ),
    value("a preparation's lease is 40 s", _PREPARE, "LEASE", timedelta(seconds=40)),
    value("an approval's lease is 40 s", _APPROVAL, "LEASE", timedelta(seconds=40)),
    value("a payment is sent within 4 s", _INSTRUCT, "SEND_WITHIN", timedelta(seconds=4)),
    value(
        "a quote that names no end holds for 9 min",
        _SCHEDULE,
        "ENDLESS_QUOTE",
        timedelta(minutes=9),
        only="quotes without expiry",
    ),
    value("the wait has a margin of 20 s", _SCHEDULE, "WAIT_MARGIN", timedelta(seconds=20)),
    Mutant(
        "an incoming payment counts as closed after 23 h",
        (
            Value("checkout.domain.payment.in_flight", "NEVER_CLOSED_AFTER", timedelta(hours=23)),
            Value(_PROOF, "NEVER_CLOSED_AFTER", timedelta(hours=23)),
        ),
        known=150,
    ),
    line(
        "a part of the money does not prolong the wait",
        f"{_SCHEDULE}:wait_until",
        "if not record.received:",
        "if True:",
    ),
    Mutant(
        "a part is judged before the fence",
        tuple(
            Line(
                f"{_RECONCILE}:{place}",
                "completion.decide_by_money(calls, session, seen)",
                "completion.decide_by_money(calls, session, seen, final=True)",
            )
            for place in ("arrived", "_checked")
        ),
    ),
    line(
        "a part is not flagged",
        f"{_COMPLETION}:decide_by_money",
        "attention=Attention.PARTIAL_PAYMENT",
        "attention=None",
    ),
    line(
        "only the first page of a list of payments is read",
        f"{_INSTRUCT}:find_payment",
        "if cursor is None:\n            return None",
        "return None",
        only="4xx, pays, no lists",
    ),
    line(
        "three units may be missing",
        f"{_PROOF}:enough",
        "tolerance=calls.merchant.tolerance",
        "tolerance=3",
        only="a few units less",
    ),
    line(
        "a rounding is tolerated where nothing was converted",
        f"{_PROOF}:enough",
        "converted=converted",
        "converted=True",
        only="one unit less",
    ),
    line(
        "a payment in one currency is never converted on its way",
        "checkout.domain.ground.money:may_be_converted",
        "return split(quote.id).authority != split(receiver).authority",
        "return False",
        only=AT_THE_EDGE,
    ),
    line(
        "a payment within one provider is converted on its way",
        "checkout.domain.ground.money:may_be_converted",
        "return split(quote.id).authority != split(receiver).authority",
        "return True",
        only="one unit less",
    ),
    line(
        "a unit too much needs somebody",
        f"{_SESSION}:Session.overpaid",
        "most = self.receive.value + rounding(self.receive.value)",
        "most = self.receive.value",
        only=AT_THE_EDGE,
    ),
    line(
        "three units too much need nobody",
        f"{_SESSION}:Session.overpaid",
        "rounding(self.receive.value)",
        "3",
        only=AT_THE_EDGE,
    ),
    line(
        "with a unit too much it is not known what the customer paid",
        f"{_SESSION}:Session.paid_as_quoted",
        "not self.overpaid",
        "(self.received or 0) <= self.receive.value",
        only=AT_THE_EDGE,
    ),
    line(
        "money beyond the price cannot be sent back",
        f"{_SESSION}:Session.amount_paid",
        " and not self.overpaid",
        "",
        only=AT_THE_EDGE,
    ),
    line(
        "three units may be missing of a small price once the wallet says that it has paid",
        "checkout.domain.ground.money:least_accepted",
        "one = rounding(amount) if ended",
        "one = tolerance = 3 if ended",
        only="a few units less",
    ),
    line(
        "a unit may be missing of the smallest prices",
        "checkout.domain.ground.money:rounding",
        "amount >= ROUNDED_FROM",
        "amount > 1",
        only="one unit less",
        known=310,
    ),
    line(
        "a refusal in doubt begins the fence while the incoming payment is open",
        f"{_INSTRUCT}:_refused",
        "if completed:",
        "if True:",
    ),
    line(
        "a check begins the fence while the incoming payment is open",
        f"{_SCHEDULE}:close_when_waited",
        "if not completed and",
        "if completed and",
    ),
    line(
        "what was received is not recorded",
        f"{_COMPLETION}:complete",
        "received=current.received if received is None else received",
        "received=current.received",
    ),
    cell(
        "a partial payment can be given up before it is closed",
        (S.PROCESSING, E.GIVEN_UP),
        when(PARTLY_PAID),
    ),
    Mutant(
        "a late payment is told to nobody",
        (Cell((S.CANCELED, E.LATE_PAYMENT), silent), Cell((S.EXPIRED, E.LATE_PAYMENT), silent)),
        known=328,
    ),
    cell(
        "a canceled session is not checked for money",
        (S.AWAITING_APPROVAL, E.CANCEL_REQUESTED),
        unchecked,
        only=actors.LATE_MONEY,
    ),
    line(
        "the sweep forgets what ended",
        f"{_SCHEDULE}:due",
        "record.payment_in_flight or record.terminal",
        "record.payment_in_flight",
    ),
    line(
        "an ended session is not in the index",
        "checkout.domain.session.record:Session.needed_at",
        "return self.check_at",
        "return None if self.terminal else self.check_at",
        known=25,
    ),
    line(
        "a replaced approval can be claimed",
        f"{_APPROVAL}:claim",
        "if current.grant != record.grant or lost:",
        "if lost:",
        only=actors.CROSSED_CLAIMS,
    ),
    line(
        "a claim that lost its race keeps its lease",
        f"{_APPROVAL}:claim",
        "def claimed(current: A)",
        "def claimed(current: A, began=services.clock.now())",
        also=(("lease_until=now + LEASE", "lease_until=began + LEASE"),),
        only=actors.CROSSED_CLAIMS,
    ),
    line(
        "a wallet is taken without the details that the shop requires",
        "checkout.flows.session.prepare:submit_wallet",
        "if session.lacks_details and session.status_at(services.clock.now()) is Status.OPEN:",
        "if False:",
        only=actors.ASKED_DETAILS,
    ),
    line(
        "a purchase that begins anew forgets the chosen amount",
        f"{_PURCHASE}:begin",
        "visit, client, details, quantity, amount, at_till=at_till)",
        "visit, client, details, quantity, at_till=at_till)",
        only=actors.CHOSEN_AMOUNTS,
    ),
    line(
        "another amount is the same purchase",
        f"{_PURCHASE}:_fingerprint",
        "[] if amount is None else [amount]",
        "[]",
        only=actors.CHOSEN_AMOUNTS,
    ),
    line(
        "a link sells at its usual amount, whatever was chosen",
        f"{_LINK}.opened",
        "self.unit_amount if amount is None else amount",
        "self.unit_amount",
        only=actors.CHOSEN_AMOUNTS,
    ),
    line(
        "an amount below the smallest is sold",
        f"{_LINK}.chosen",
        "bounds.smallest <= amount <= bounds.largest",
        "amount <= bounds.largest",
        only=actors.CHOSEN_AMOUNTS,
    ),
    line(
        "an amount above the largest is sold",
        f"{_LINK}.chosen",
        "bounds.smallest <= amount <= bounds.largest",
        "bounds.smallest <= amount",
        only=actors.CHOSEN_AMOUNTS,
    ),
    line(
        "a suggestion is taken as it was sent",
        f"{_LINK}.chosen",
        ".get(typed[SUGGESTION])",
        ".get(typed[SUGGESTION], int(typed[SUGGESTION]))",
        only=actors.CHOSEN_AMOUNTS,
    ),
    line(
        "anybody who has the address of a sale cancels it",
        f"{_PURCHASE}:cancel",
        "if not began(services, link, visit, session_id):",
        "if False:",
        only=actors.AT_TILL,
    ),
    line(
        "a till shows a payment in flight as paid",
        "pay.till:outcome_of",
        "if shown.stage is Stage.COMPLETED:",
        "if shown.stage in (Stage.COMPLETED, Stage.CONFIRMING):",
        only=actors.AT_TILL,
    ),
    line(
        "a till shows a part as a payment under way",
        "pay.till:outcome_of",
        "if shown.arrived or shown.progress in _DOUBTFUL:",
        "if False:",
        only=actors.AT_TILL,
    ),
    line(
        "a sale at a till waits for its customer for a day",
        f"{_LINK}.opened",
        "(AT_TILL if at_till else HELD_FOR",
        "(HELD_FOR",
        only=actors.AT_TILL,
    ),
    line(
        "an amount that can be read in two ways is guessed",
        "checkout.domain.ground.typed_amount:typed_amount",
        'raise ParameterInvalid(f"“{text}” can be read in two ways. Type {clear}.", param=param)',
        'text = clear.rpartition(" ")[2]',
        only=actors.CHOSEN_AMOUNTS,
    ),
    line(
        "decimals that were not typed are not added",
        "checkout.domain.ground.typed_amount:typed_amount",
        'fraction.ljust(digits, "0")',
        "fraction",
        only=actors.CHOSEN_AMOUNTS,
    ),
    line(
        "an unknown outcome counts as not sent",
        f"{_INSTRUCT}:send_once",
        "except op.NotSent as error:",
        "except op.OutcomeUnknown as error:",
    ),
    line(
        "an unpaid incoming payment that is not found was never paid",
        f"{_PROOF}:read",
        "and begun_at >= believed_from and (known == 0 or never_closed):",
        "and True:",
    ),
    value("a stray 404 is believed at the expiry", _PROOF, "STRAY_404", _NO_TIME, known=328),
    # Large carts, which lie in items of their own.
    # A session and its stored answer are two writes.
    line(
        "an answer is given again though its session was never made",
        "checkout.flows.session.create:open_session",
        "_make_sure(services, opened, held)",
        "pass",
    ),
    line(
        "a session is made before its answer is stored",
        f"{_DYNAMO}:DynamoSessions.create",
        "winner = self._reserve(reservation)",
        "self.create(session, None); winner = self._reserve(reservation)",
    ),
    line(
        "a session is stored without its cart",
        f"{_DYNAMO}:DynamoSessions.create",
        "self._put_cart(session)",
        "pass",
    ),
    line(
        "a cart ages out before the session that was given a wallet",
        f"{_DYNAMO}:DynamoSessions.save",
        "self._keep_longer(row)",
        "pass",
    ),
    line(
        "a cart is read from what may be out of date",
        f"{_DYNAMO}:with_cart",
        'get(client, table, id=text(cart_id(item["id"]["S"])))',
        'client.get_item(TableName=table, Key={"id": text(cart_id(item["id"]["S"]))}).get("Item")',
    ),
    # Payment attempts.
    line(
        "an attempt is forgotten when it ends",
        f"{_ATTEMPTS}:recorded",
        "(*kept[:-1], ended)",
        "kept[:-1]",
    ),
    line(
        "an ended attempt takes over what the next one has",
        f"{_ATTEMPTS}:recorded",
        "kept = (*kept[:-1], ended)",
        "kept = (*(replace(each, quote=ended.quote) for each in kept[:-1]), ended)",
    ),
    value(
        "a payment that never arrived counts as paid",
        _ATTEMPTS,
        "ENDS",
        {**ENDS, ("payment_disproved", None): (Outcome.PAID, EndedBy.CHECKOUT)},
    ),
    value(
        "an attempt keeps running when money is found",
        _ATTEMPTS,
        "ENDS",
        {key: end for key, end in ENDS.items() if key[0] != "money_found"},
        known=74,
    ),
    line(
        "an attempt has the wallet of the one before",
        f"{_ATTEMPTS}:_with_evidence",
        "attempt.resolved_at is not None",
        "True",
    ),
    line(
        "an attempt ends without its payment",
        f"{_ATTEMPTS}:_with_evidence",
        "outgoing_payment=session.outgoing_payment",
        "outgoing_payment=None",
    ),
    cell("a browser's report opens the session", (S.AWAITING_APPROVAL, E.RETURN_REPORTED), opens),
    # The sweep, and what is left to the clock.
    line(
        "a session that nobody opened is not found by the clock",
        "checkout.adapters.dynamo.index_keys:of_session",
        "if session.over_at is not None:",
        "if session.terminal:",
    ),
    line(
        "an end by the clock is told to nobody",
        f"{_EXPIRIES}:_unreported",
        "session.terminal or not",
        "True or not",
    ),
    line(
        "an end that could not be written is passed and forgotten",
        f"{_EXPIRIES}:_follow",
        "unreported |= _unreported(services, found, done)",
        "_unreported(services, found, done)",
    ),
    line(
        "an end is not tried again",
        f"{_EXPIRIES}:_follow",
        "unreported = _unreported(services, dict.fromkeys(sorted(was)), done)",
        "unreported = frozenset()",
    ),
    line(
        "an end that a slower clock does not see yet is forgotten",
        f"{_EXPIRIES}:_unreported",
        "early.add(session_id)",
        "pass",
        refunds=True,
    ),
    line(
        "the sweep puts off the page's look at money from outside",
        f"{_SWEEP}:_begin_session",
        "Event.CHECKED, updated_at=looked",
        "Event.CHECKED",
    ),
    line(
        "a walk passes what it has not counted",
        f"{_EXPIRIES}:_follow",
        "daily_totals = tallied(ended, offered)",
        "daily_totals = tallied(ended[1:], offered)",
    ),
    line(
        "a payment in flight is among what can wait",
        "checkout.adapters.dynamo.index_keys:of_session",
        "first = urgent(session)",
        "first = False",
    ),
    line(
        "carts come before payments",
        f"{_SWEEP}:run",
        "first = _due(services, now, part, urgent=True)",
        "first = _due(services, now, part, urgent=False)",
        also=(
            (
                "later = _due(services, now, part, urgent=False)",
                "later = _due(services, now, part, urgent=True)",
            ),
        ),
        in_load=True,
    ),
    line(
        "the backlog is at most one",
        f"{_SWEEP}:run",
        "first.total + later.total - round_.reached",
        "int(first.total + later.total > round_.reached)",
        in_load=True,
    ),
    line(
        "the oldest payment is not as old as it is",
        f"{_SWEEP}:run",
        "now - first.oldest",
        "(now - first.oldest) / 2",
        in_load=True,
    ),
    cell(
        "a session that was paid is open again", (S.PROCESSING, E.RECONCILED), opens, in_load=True
    ),
    line(
        "strangers' wallets are asked before all merchants' are",
        f"{_SWEEP}:_begin_session",
        "if checked.paid:",
        "if checked.seen:",
        in_load=True,
    ),
    line(
        "merchants do not take turns",
        f"{_DELIVER}:_in_turn",
        "for turn in zip_longest(*by_merchant.values()):",
        "for turn in by_merchant.values():",
        in_load=True,
    ),
    # Several endpoints.
    line(
        "an event is for the first endpoint only",
        f"{_DELIVER}:_fan_out",
        "services.events.add_copy(each)",
        "pass",
    ),
    line(
        "the other endpoints wait until the first one has been tried",
        f"{_DELIVER}:deliver",
        "event.version == 1",
        "event.version == 3",
    ),
    line(
        "a copy is sent to the first endpoint",
        f"{_DELIVER}:receiver",
        "merchant.endpoint_of(event.endpoint)",
        "merchant.endpoint",
    ),
    line(
        "one endpoint's 410 disables the first one",
        f"{_DELIVER}:_disable",
        "services.clock.now(), endpoint",
        "services.clock.now()",
    ),
    line(
        "an endpoint gets what it has not asked for",
        "checkout.domain.webhooks.record:copies",
        "endpoint.wants(event.type) and ",
        "",
    ),
    line(
        "an endpoint gets what was before it",
        "checkout.domain.webhooks.record:copies",
        "and endpoint.was_there(event.created_at)",
        "",
    ),
    line(
        "an abandoned session is written when it expires",
        f"{_EXPIRIES}:_unreported",
        "or not _wanted(services, session.merchant)",
        "",
        in_load=True,
    ),
    line(
        "an item comes back while its session may still be paid",
        f"{_TRANSITIONS}:advance",
        "after.unsold",
        "not after.payment_in_flight",
    ),
    line(
        "an item comes back as soon as its session has ended",
        f"{_TRANSITIONS}:advance",
        "after.unsold",
        "after.terminal",
    ),
    line("an item does not come back", f"{_DYNAMO}:_beside_session", "if link is None", "if True"),
    line(
        "a session takes no item",
        f"{_DYNAMO}:DynamoSessions._create_at_once",
        'writes.items["stock"] = {"Update": taken}',
        "pass",
    ),
    line(
        "of several items one is taken",
        f"{_DYNAMO}:DynamoSessions._create_at_once",
        "session.link, session.quantity",
        "session.link, 1",
    ),
    line(
        "of several items one comes back",
        f"{_DYNAMO}:_beside_session",
        "change.after.quantity",
        "1",
    ),
    line(
        "an item is taken where none is left",
        "checkout.adapters.dynamo.links:take_items",
        "#left >= :items",
        "(#left >= :items OR #left < :items)",
    ),
    # Only some worlds have these: batches in part, time to live, a later release, long lists, days.
    line(
        "what a batch did not write is forgotten",
        "checkout.adapters.aws:Persistent.batch_put",
        "left = again + left[_BATCH_PUT_MAX:]",
        "left = left[_BATCH_PUT_MAX:]",
    ),
    line(
        "of what a batch did not write, one row is forgotten",
        "checkout.adapters.aws:Persistent.batch_put",
        "left = again + left[_BATCH_PUT_MAX:]",
        "left = again[1:] + left[_BATCH_PUT_MAX:]",
    ),
    line(
        "what a batch did not read is not there",
        "checkout.adapters.aws:Persistent.batch_get",
        'again = answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])',
        "again = []",
    ),
    line(
        "the last row of a session is not stored",
        f"{_DYNAMO}:DynamoSessions._put_rows",
        "self._sessions, rows)",
        "self._sessions, rows[:-1])",
    ),
    line(
        "a changed session has no new rows",
        f"{_DYNAMO}:_new_rows",
        "_of_wallets(before) == _of_wallets(after)",
        "change.event is not Event.PREPARED",
    ),
    line(
        "a session is not found by its quotes",
        "checkout.domain.reports.search_terms:_outer",
        "yield session.quote.id if session.quote else None",
        "yield None",
        also=(("yield attempt.quote.id if attempt.quote else None", "yield None"),),
    ),
    line(
        "a field of a later release breaks reading",
        "checkout.adapters.dynamo.codec:_Group.decode",
        "if later and self._later is not None:",
        "if later: raise ValueError\n    if later and self._later is not None:",
    ),
    line(
        "what a later release has stored is not read",
        "checkout.adapters.dynamo.codec:_Group.decode",
        "found[self._later] = compact(later)",
        "pass",
    ),
    line(
        "what a later release has stored is not written again",
        "checkout.adapters.dynamo.codec:_Group.encode",
        "found = json.loads(found.pop(self._later)) | found",
        "found.pop(self._later)",
    ),
    line(
        "a record in doubt keeps its time to live",
        "checkout.adapters.dynamo.conditions:update",
        "removed = [name for name in maybe if name not in after]",
        "removed = [name for name in maybe if name not in after and name != 'ttl']",
    ),
    line(
        "a payment in flight has a time to live",
        "checkout.domain.session.retention:session_kept_until",
        "if session.payment_in_flight:",
        "if session.phase is not None:",
    ),
    line(
        "an ended session has no time to live",
        "checkout.adapters.dynamo.index_keys:of_session",
        "if kept_until is not None:",
        "if kept_until is not None and not session.terminal:",
    ),
    line(
        "a list of payments that does not end has shown that there is none",
        f"{_INSTRUCT}:find_payment",
        'raise op.OutcomeUnknown("the list of payments does not end", '
        'operation="list_outgoing_payments")',
        "return None",
        only="4xx, pays",
    ),
    line(
        "only the first page of a wallet's payments is read",
        f"{_INSTRUCT}:find_payment",
        "if cursor is None:",
        "if True:",
        only="4xx, pays",
    ),
    # Prices, sums, and what is decided in time.
    line(
        "a wallet is asked for minor units as if they were its own",
        "checkout.domain.ground.money:to_wallet",
        "value = amount_total * 10**shift",
        "value = amount_total",
    ),
    line(
        "twice the price is within the approval",
        f"{_INSTRUCT}:usable_quote",
        "renewed.debit.value <= quote.debit.value",
        "renewed.debit.value <= quote.debit.value * 2",
        only="limits not enforced, dearer",
    ),
    line(
        "what was not paid is in the sum",
        "checkout.domain.reports.daily_totals:DayTotals.plus",
        "amount=self.amount + (amount if paid else 0)",
        "amount=self.amount + amount",
    ),
    line(
        "nobody who came back without paying is counted",
        "checkout.domain.reports.daily_totals:DayTotals.plus",
        "approved=self.approved + (paid or session.happened(Event.APPROVAL_CLAIMED))",
        "approved=self.approved + paid",
    ),
    line(
        "everybody counts as one who gave a wallet",
        "checkout.domain.reports.daily_totals:DayTotals.plus",
        "wallet=self.wallet + (session.customer is not None or session.erased)",
        "wallet=self.wallet + 1",
    ),
    line(
        "the fence's next check is a day away",
        f"{_SCHEDULE}:start_closing",
        "check_at=now)",
        "check_at=now + timedelta(days=1))",
    ),
    line(
        "what may have left money is never checked",
        f"{_SWEEP}:run",
        "in_doubt = round_.check(first.ids,",
        "in_doubt = round_.check((),",
    ),
    line(
        "the sweep's index has each session a day late",
        "checkout.adapters.dynamo.index_keys:of_session",
        'place["due_at"] = instant(due)',
        'place["due_at"] = instant(due + timedelta(days=1))',
    ),
    line(
        "a session counts twice",
        "checkout.domain.reports.daily_totals:DayTotals.plus",
        "ended=self.ended + 1",
        "ended=self.ended + 2",
    ),
    line(
        "a paid session is not counted as paid",
        "checkout.domain.reports.daily_totals:DayTotals.plus",
        "paid=self.paid + paid",
        "paid=self.paid",
    ),
    line(
        "a session is not found by the customer's wallet",
        "checkout.domain.reports.search_terms:wallets",
        "return [last_part(customer.id)] if customer else []",
        "return []",
    ),
    line(
        "a part that arrived before the fence counts as nothing",
        f"{_PROOF}:fence",
        "if seen.received == 0:",
        "if not enough(calls, record, seen.received):",
    ),
    line(
        "an incoming payment counts as closed an hour before its end",
        f"{_PROOF}:read",
        "payment.expires_at <= begun_at",
        "payment.expires_at <= begun_at + timedelta(hours=1)",
    ),
    line(
        "an event leaves the index after its first attempt",
        "checkout.adapters.dynamo.index_keys:of_event",
        "if event.status is EventStatus.PENDING:",
        "if event.status is EventStatus.PENDING and event.version == 1:",
    ),
    line(
        "who gave a wallet counts as one who gave none",
        "checkout.domain.reports.daily_totals:DayTotals.plus",
        "session.customer is not None or session.erased",
        "session.customer is None",
    ),
    # Rows of the table.
    cell("a completed session makes no event", (S.PROCESSING, E.RECONCILED), silent),
    cell("a session accepted as paid makes no event", (S.PROCESSING, E.ACCEPTED_AS_PAID), silent),
    cell("an expiry of an open session is silent", (S.OPEN, E.EXPIRY_PASSED), silent),
    cell(
        "an expiry at the wallet is silent",
        (S.AWAITING_APPROVAL, E.EXPIRY_PASSED),
        silent,
    ),
    cell(
        "the grant is kept after it was redeemed",
        (S.AWAITING_APPROVAL, E.PAYMENT_INTENDED),
        drops_all_but("grant"),
    ),
    cell(
        "the approval's link is kept after it was used",
        (S.AWAITING_APPROVAL, E.PAYMENT_INTENDED),
        drops_all_but("interact_url"),
    ),
    cell(
        "the grant is kept when the approval is lost",
        (S.AWAITING_APPROVAL, E.APPROVAL_LOST),
        drops_all_but("grant"),
    ),
    cell(
        "the token is kept when nothing arrived",
        (S.PROCESSING, E.PAYMENT_DISPROVED),
        drops_all_but("token"),
    ),
    cell(
        "the token is kept when the wallet has refused",
        (S.AWAITING_APPROVAL, E.PAYMENT_REFUSED),
        drops_all_but("token"),
    ),
    cell(
        "the grant is kept when the session is canceled",
        (S.AWAITING_APPROVAL, E.CANCEL_REQUESTED),
        drops_all_but("grant"),
    ),
    cell(
        "the approval's link is kept at the expiry",
        (S.AWAITING_APPROVAL, E.EXPIRY_PASSED),
        drops_all_but("interact_url"),
    ),
    *(
        value(
            f"an attempt keeps running after {event.replace('_', ' ')}",
            _ATTEMPTS,
            "ENDS",
            {key: end for key, end in ENDS.items() if key[0] != event},
        )
        for event in (
            "preparation_failed",
            "approval_lost",
        )
    ),
    value(
        "a paid attempt counts as refused",
        _ATTEMPTS,
        "ENDS",
        {**ENDS, ("reconciled", None): (Outcome.REFUSED, EndedBy.CUSTOMER_WALLET)},
    ),
)

# Bugs of refunds are hunted in worlds that refund, and all others in worlds that do not.
REFUND_MUTANTS: Final = (
    line(
        "what was refunded is not counted",
        "checkout.domain.session.record:Session.refunded",
        "return sum(each.amount for each in self.refunds or ())",
        "return 0",
    ),
    line(
        "a refund is not held by its session",
        f"{_REQUEST}:create",
        "held = (*(session.refunds or ()), RefundRef(refund.id, refund.amount, give))",
        "held = session.refunds or ()",
    ),
    line(
        "a note that it was paid elsewhere is not held by its session",
        f"{_REQUEST}:create",
        "held = (*(session.refunds or ()), RefundRef(refund.id, refund.amount, give))",
        "held = (*(session.refunds or ()), RefundRef(refund.id, refund.amount, give))\n"
        "        held = (session.refunds or ()) if refund.terminal else held",
    ),
    line(
        "a note takes what another refund holds",
        f"{_REQUEST}:_refund",
        "if amount > left:",
        "if amount > (left if asked.elsewhere is None else session.amount_received or 0):",
    ),
    line(
        "what was paid elsewhere, or at cost, is given once more",
        f"{_REQUEST}:_give",
        "each.give or whole.value * each.amount // paid",
        "each.give",
    ),
    line(
        "a note that is taken back keeps its amount",
        f"{_REQUEST}:cancel",
        "kept=0,",
        "kept=refund.amount if refund.elsewhere else 0,",
    ),
    cell(
        "a note that is taken back is not told",
        (RefundStatus.PAID_ELSEWHERE, RefundEvent.CANCEL_REQUESTED),
        silent,
        REFUND_TRANSITIONS,
    ),
    line(
        "a refund's idempotency key is not stored with it",
        f"{_REQUEST}:create",
        "_of_refund(refund, reserve)",
        "None",
    ),
    line(
        "a stumble of the shop's wallet loses a refund's approval",
        f"{_APPROVAL}:keep_or_lose",
        "if kept is None:",
        "if kept is None or record.id.startswith('re_'):",
        only=actors.STUMBLING_WALLETS,
    ),
    line(
        "a stumble of the shop's wallet loses the budget's approval",
        f"{_BUDGET}:_redeemed",
        "if kept is not None:",
        "if False:",
        only=actors.STUMBLING_WALLETS,
    ),
    cell(
        "a problem of the budget outlives the approval of a person",
        (RefundStatus.NEEDS_APPROVAL, RefundEvent.PAYMENT_INTENDED),
        drops_all_but("problem"),
        REFUND_TRANSITIONS,
    ),
    cell(
        "the budget still pays a refund that a person approves",
        (RefundStatus.NEEDS_APPROVAL, RefundEvent.APPROVAL_ASKED),
        drops_all_but("budget_at"),
        REFUND_TRANSITIONS,
        only=actors.STUMBLING_WALLETS,
        changes=True,
    ),
    line(
        "a refund is sent before its intent",
        f"{_APPROVAL}:redeem_and_intend",
        "return intend(",
        "record.id.startswith('re_') and calls.client.create_outgoing_payment(\n"
        "        payer, token, quote=quote, receiver=receiver)\n"
        "    return intend(",
    ),
    line(
        "a refund is sent after its deadline",
        f"{_INSTRUCT}:send_once",
        "if calls.services.clock.now() >= record.instruction.deadline:",
        "if record.id.startswith('cs_') and calls.services.clock.now() >= "
        "record.instruction.deadline:",
    ),
    line(
        "a refund is sent again after an unknown outcome",
        f"{_REFUND}:send",
        "return reconcile.look(calls, refund)  # no error proves that nothing was paid",
        "return nothing_sent(calls.services, refund, RefundProblem.NOT_SENT, note='unknown')",
    ),
    line(
        "a refusal at its sending decides a refund",
        f"{_REFUND}:send",
        "except instruct.NothingSent as nothing:",
        "except op.Refused as nothing:",
        also=(("{nothing.why}", "no"),),
        only="shop 4xx, pays",
    ),
    line(
        "a refund's approval is redeemed without a claim",
        f"{_REFUND}:finish",
        "refund = approval.claim(services, refund)",
        "pass",
    ),
    line(
        "the budget's approval is redeemed without a claim",
        f"{_BUDGET}:finish",
        "mandate = approval.claim(services, mandate)",
        "pass",
    ),
    line(
        "a refund's callback need not verify",
        f"{_APPROVAL}:returned",
        "verify(grant, payer,",
        "record.id.startswith('re_') or verify(grant, payer,",
    ),
    line(
        "a refund is sent once more after an unknown outcome",
        f"{_REFUND}:send",
        "return reconcile.look(calls, refund)  # no error proves that nothing was paid",
        "payment = instruct.send_once(calls, refund, token)",
    ),
    line(
        "the budget pays before its intent",
        f"{_BUDGET}:_intended",
        "return _intend(",
        "receiver = fields.get('incoming_payment') or refund.incoming_payment\n"
        "    calls.client.create_outgoing_payment(\n"
        "        mandate.terms.payer, token, quote=quote, receiver=receiver.id)\n"
        "    return _intend(",
    ),
    value(
        "a refund that is not found was not sent, at once",
        _VERDICT,
        "CLOCKS",
        timedelta(minutes=-10),
    ),
    value(
        "a refund that is under way was not sent",
        _VERDICT,
        "UNDER_WAY",
        timedelta(minutes=-10),
        only="shop pays late",
    ),
    line(
        "the customer's view decides a refund",
        f"{_VERDICT}:decide",
        "if theirs is not None and theirs >= least:",
        "if theirs == 0:\n        return Verdict(Outcome.NOTHING)\n"
        "    if theirs is not None and theirs >= least:",
    ),
    line(
        "a refund that is accepted has succeeded",
        f"{_VERDICT}:decide",
        "if not over:",
        "if own is not None and not own.failed:\n"
        "        return Verdict(Outcome.SUCCEEDED, refund.amount)\n    if not over:",
    ),
    line(
        "the customer's wallet says by not found that nothing has arrived",
        f"{_LOOK}:_theirs",
        "except op.OpenPaymentsError:",
        "except op.Refused as refused:\n        "
        "return 0 if refused.reason is op.Reason.NOT_FOUND else None\n    "
        "except op.OpenPaymentsError:",
        only="shop stops midway",
        like=777304268,
    ),
    line(
        "something sent of a refund is all of it",
        f"{_VERDICT}:decide",
        "if sent < refund.amount:",
        "if False:",
        only="shop pays half",
    ),
    line(
        "a refund that failed has sent nothing",
        f"{_VERDICT}:decide",
        "if sent == 0:",
        "if sent == 0 or (own is not None and own.failed):",
        only="shop pays half",
    ),
    line(
        "a refund's part is what the customer's wallet says",
        f"{_VERDICT}:decide",
        "sent = max(by_own, by_theirs)",
        "sent = by_theirs",
        only="shop pays half",
    ),
    line(
        "a refund's part is what the shop's wallet says",
        f"{_VERDICT}:decide",
        "sent = max(by_own, by_theirs)",
        "sent = by_own",
        only="shop pays half",
    ),
    line(
        "the part of a refund that was sent is released",
        f"{_LOOK}:_decided",
        "kept=verdict.sent,",
        "kept=0,",
        only="shop pays half",
    ),
    line(
        "what a part of a refund has cost is the customer's word",
        f"{_VERDICT}:decide",
        "said if by_own > by_theirs or exact else max(said, by_price)",
        "by_price",
        only="shop pays half",
    ),
    line(
        "a refund has cost its amount",
        f"{_VERDICT}:decide",
        "debit, confirmed=True)",
        "replace(debit, value=refund.amount), confirmed=True)",
    ),
    line(
        "a canceled refund keeps its amount",
        f"{_REQUEST}:cancel",
        "kept=0,",
        "kept=refund.amount,",
    ),
    Mutant(
        "a refund that was sent is canceled",
        (
            Cell(
                (RefundStatus.SENDING, RefundEvent.CANCEL_REQUESTED),
                table=REFUND_TRANSITIONS,
                new=Row(RefundStatus.CANCELED, ALWAYS),
            ),
        ),
    ),
    line(
        "a refund whose token is lost was not sent",
        f"{_LOOK}:_lost",
        "return change(services, current, RefundEvent.TOKEN_LOST)",
        "return change(services, current, RefundEvent.NOTHING_SENT, "
        "problem=RefundProblem.NOT_SENT)",
    ),
    line(
        "a refund's renewed token is not kept",
        f"{_LOOK}:_renewed",
        "return change(services, current, RefundEvent.TOKEN_RENEWED, token=new)",
        "return change(services, current, RefundEvent.TOKEN_RENEWED, token=known)",
    ),
    line(
        "a rotation of the budget's token is not noted before",
        f"{_MANDATES}:rotate",
        "mandate, unanswered = _started(services, mandate, known)",
        "unanswered = False",
    ),
    cell(
        "an unknown outcome of a rotation is a failure",
        (MandateStatus.ACTIVE, MandateEvent.NOT_ROTATED),
        lambda row: replace(row, drops=("rotating", "rotation_until")),
        MANDATE_TRANSITIONS,
    ),
    line(
        "any refusal of a rotation means that the budget is lost",
        f"{_MANDATES}:rotate",
        "if refused.reason is not op.Reason.TOKEN_GONE:",
        "if False:",
    ),
    line(
        "what the budget pays is not counted",
        f"{_BUDGET}:_intend",
        "spent = mandate.spent_in(period) + quote.debit.value",
        "spent = mandate.spent_in(period)",
    ),
    line(
        "the budget is counted in a write of its own",
        f"{_BUDGET}:_intend",
        "return commit(services, intended, also=counted, allowance=allowance)",
        "commit(services, counted); return commit(services, intended)",
    ),
    line(
        "the budget pays more than is left",
        f"{_BUDGET}:_fits",
        "return ours and debit.value <= mandate.left(now)",
        "return ours",
    ),
    line(
        "each approval of the budget counts anew",
        f"{_BUDGET}:_redeemed",
        '**({} if counted else {"period": None, "spent": 0}),',
        '**{"period": None, "spent": 0},',
    ),
    line(
        "nothing is given back to the budget",
        "checkout.flows.refund.settle:_given_back",
        "if refund.counted is None:",
        "if True:",
    ),
    line(
        "the budget is counted after the intent, in a write of its own",
        f"{_BUDGET}:_intend",
        "return commit(services, intended, also=counted, allowance=allowance)",
        "done = commit(services, intended); commit(services, counted); return done",
    ),
    line(
        "each approval of the budget begins its own months",
        f"{_BUDGET}:_terms",
        "same = before is not None and",
        "same = False and",
    ),
    line(
        "the budget's months are the calendar's",
        _PERIOD,
        "period_of(self.terms.start, now)",
        "now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)",
    ),
    line(
        "a part that was sent is given back to the budget",
        f"{_SETTLE}:settle",
        "for _ in range(TRIES):",
        "back = _given_back(services, refund) if event is RefundEvent.FAILED else None\n"
        "    back and writes.commit(services, back)\n"
        "    for _ in range(TRIES):",
        only="shop pays half",
    ),
    line(
        "a rotation without an answer loses the budget",
        f"{_MANDATES}:rotate",
        "except op.OpenPaymentsError:\n        _unanswered(services, mandate, known)",
        "except op.OpenPaymentsError:\n        _over(services, mandate, known, MandateEvent.LOST)",
    ),
    line(
        "a budget whose token is gone stays active",
        f"{_MANDATES}:_over",
        "return change(services, current, event)",
        "return change(services, current, MandateEvent.ROTATED, rotate_at=None)",
        like=59,
    ),
    line(
        "a budget is called lost without a look at the wallet",
        f"{_MANDATES}:_started",
        "    return mandate, stood",
        "    if stood:\n        _over(services, mandate, known, MandateEvent.LOST)\n"
        "        raise NoToken(gone=True)\n    return mandate, stood",
    ),
    line(
        "the budget's older grant is canceled before the newer one is stored",
        f"{_BUDGET}:_redeemed",
        "older = current",
        "older = current; _cancel(services, older)",
    ),
    Mutant(
        "a link is made for a refund that was sent, as if nothing was",
        (
            Cell(
                (RefundStatus.SENDING, RefundEvent.CLAIM_OFFERED),
                table=REFUND_TRANSITIONS,
                new=Row(RefundStatus.NEEDS_APPROVAL),
            ),
        ),
        only=identities.ONLY,
        changes=True,
    ),
    line(
        "nobody looks at a refund that was sent",
        f"{_LOOK}:step",
        "if not refund.payment_in_flight or refund.check_at is None or now < refund.check_at:",
        "if True:",
    ),
    Mutant(
        "a link names another wallet while a payment is under way",
        (
            Line(
                "checkout.flows.refund.alternative_wallet:is_open",
                " and not refund.payment_in_flight",
                "",
            ),
            Cell(
                (RefundStatus.SENDING, RefundEvent.CLAIMED),
                table=REFUND_TRANSITIONS,
                new=Row(RefundStatus.NEEDS_APPROVAL, drops=("claim_open", "problem")),
            ),
        ),
        only=identities.ONLY,
        changes=True,
    ),
    cell(
        "a link can be used twice",
        (RefundStatus.NEEDS_APPROVAL, RefundEvent.CLAIMED),
        drops_all_but("claim_open"),
        REFUND_TRANSITIONS,
        only=identities.ONLY,
        changes=True,
    ),
    cell(
        "the approval for the wallet before outlives the claim",
        (RefundStatus.NEEDS_APPROVAL, RefundEvent.CLAIMED),
        lambda row: replace(row, drops=("claim_open", "problem")),
        REFUND_TRANSITIONS,
        only=identities.ONLY,
        changes=True,
        like=252,
    ),
    line(
        "the unit that wallets have added is refunded",
        f"{_SESSION}:Session.amount_paid",
        "min(received, self.amount_total) if completed else received",
        "received",
        only=AT_THE_EDGE,
    ),
    line(
        "parts of a refund are counted of all that has arrived",
        f"{_REQUEST}:_give",
        "session.amount_paid or 1",
        "session.amount_received or 1",
        only=AT_THE_EDGE,
    ),
    line(
        "what a stranger's wallet says that it paid is given back",
        f"{_REQUEST}:_given_of_all",
        "debit.asset_code != receive.asset_code",
        "True",
        only=AT_THE_EDGE,
    ),
    line(
        "what a stranger's wallet says in another scale is given back",
        f"{_REQUEST}:_given_of_all",
        "debit.asset_code != receive.asset_code",
        "not debit.same_asset(receive)",
        only=AT_THE_EDGE,
    ),
    line(
        "the budget adds a tenth, whatever its owner allows",
        f"{_BUDGET}:_most",
        "mandate.terms.margin.most(refund.cost.value)",
        "refund.cost.value * 11 // 10",
        also=(("return most if", "return most if True or"),),
        only=AT_THE_EDGE,
    ),
    line(
        "a price that nobody has seen counts as confirmed",
        f"{_BUDGET}:choose",
        "if refund.quote is None:",
        "if False:",
        only=AT_THE_EDGE,
    ),
    cell(
        "the budget pays a wallet that the customer has named",
        (RefundStatus.NEEDS_APPROVAL, RefundEvent.BUDGET_CHOSEN),
        lambda row: replace(row, when=ALWAYS),
        REFUND_TRANSITIONS,
        changes=True,
    ),
    cell(
        "the budget pays a refund that is held",
        (RefundStatus.NEEDS_APPROVAL, RefundEvent.HELD),
        drops_all_but("budget_at"),
        REFUND_TRANSITIONS,
        changes=True,
    ),
    line(
        "the event of a note tells what was refunded before it",
        "checkout.flows.payment.writes:_beside",
        "charge_event(new, cast(Any, after), name",
        "charge_event(new, cast(Any, change.before), name",
        changes=True,
    ),
    cell(
        "a refund's approval outlives it",
        (RefundStatus.NEEDS_APPROVAL, RefundEvent.CANCEL_REQUESTED),
        drops_all_but("grant"),
        REFUND_TRANSITIONS,
    ),
    cell(
        "the end of a refund is not told",
        (RefundStatus.SENDING, RefundEvent.SUCCEEDED),
        silent,
        REFUND_TRANSITIONS,
    ),
)

_MERCHANT: Final = "checkout.domain.merchant.record:Merchant"
_SETUP: Final = "checkout.flows.merchant.setup"

IDENTITY_MUTANTS: Final = (
    line(
        "wallets are asked as whom the shop is now",
        "checkout.flows.merchants:as_of",
        "return merchant.as_of(identity)",
        "return merchant",
    ),
    line(
        "only the last identity is kept",
        f"{_MERCHANT}.changed_identity",
        "(*self.former, kept)",
        "(kept,)",
    ),
    line(
        "an identity is dropped when the shop changes",
        f"{_MERCHANT}.changed_identity",
        "(*self.former, kept)",
        "self.former",
    ),
    line(
        "a session does not store as whom it asks",
        f"{_PREPARE}:_claim",
        "identity=merchant.identity or None",
        "identity=session.identity",
    ),
    line(
        "a new incoming payment is made as whom the shop was",
        f"{_PREPARE}:_prepare",
        "if (session.identity or 0) != calls.merchant.identity:",
        "if False:",
    ),
    line(
        "a wallet that is given names the shop of now for an incoming payment of before",
        f"{_PREPARE}:_paid_to",
        "if session.incoming_payment is not None:",
        "if False:",
    ),
    line(
        "a refund does not store as whom it asks",
        f"{_REFUND}:price",
        "calls.merchant.identity or None",
        "None",
    ),
    line(
        "the key of now signs for each identity",
        f"{_MERCHANT}.as_of",
        "signs = self if (self.client, self.wallet_address) == same else known[-1]",
        "signs = self",
    ),
    line(
        "a client of before signs as the shop of now",
        f"{_MERCHANT}.as_of",
        "client=each.client,",
        "client=self.client,",
    ),
    line(
        "a shop that comes back to no key file gets a new key at once",
        f"{_SETUP}:_signer",
        "kept = before.service_keys if before is not None else ()",
        "kept = ()",
    ),
    line(
        "a shop with a key file shows no keys of before",
        "checkout.flows.merchant.client_documents:_of",
        "or not found.service_keys",
        "or found.client is None",
    ),
    value("a new key signs at once", _SETUP, "SHOWN_BEFORE", _NO_TIME),
    line(
        "the newest key signs, though it is not shown yet",
        f"{_MERCHANT}.signing_key",
        "each.signs_from <= now",
        "True",
    ),
    line(
        "the newest key signs by a clock that is behind its maker's",
        f"{_MERCHANT}.signing_key",
        "self.service_keys[0]",
        "self.service_keys[-1]",
        like=2757772626,
    ),
    line(
        "a key is not shown any more when the next is made",
        f"{_SETUP}:_next_key",
        "if following is None or following.signs_from > now - SHOWN_AFTER",
        "if following is None",
    ),
    line(
        "an approval is canceled as the shop of now",
        "checkout.flows.payment.cleanup:clean_up",
        "cleanup.identity)",
        "services.merchants.latest(cleanup.merchant).identity)",
    ),
    line(
        "a budget of before pays as the shop of now",
        "checkout.domain.payment.mandate:Mandate.pays_for",
        "terms.payer.id == wallet and terms.identity == identity",
        "True",
    ),
)

MUTANTS: Final = (
    *SALE_MUTANTS,
    *CLIENT_MUTANTS,
    *(replace(each, refunds=True) for each in REFUND_MUTANTS),
    *(replace(each, refunds=True, changes=True, only=identities.ONLY) for each in IDENTITY_MUTANTS),
)


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    with ExitStack() as undo:
        for part in mutant.parts:
            undo.callback(part.apply())
        yield


@dataclass(frozen=True, slots=True)
class Caught:
    """`checks` has a check for each world that caught it, by its seed: at most WANTED of them."""

    mutant: str
    checks: dict[int, str]
    worlds: int
    wanted: int = WANTED

    @property
    def check(self) -> str | None:
        return next(iter(self.checks.values()), None)

    @property
    def enough(self) -> bool:
        return len(self.checks) >= self.wanted


def known() -> dict[str, list[int]]:
    """Return the seeds of worlds that caught each bug before, which are tried first."""
    found: dict[str, list[int]] = json.loads(KNOWN.read_text("utf-8"))
    return found


def learn(hunted: Iterable[Caught]) -> None:
    """Write the seeds that have caught each bug, so that the next hunt is short."""
    alone = {each.name: each.known for each in MUTANTS}
    seeds = {
        each.mutant: sorted(set(each.checks) - {alone[each.mutant]})
        for each in hunted
        if each.checks
    }
    in_load = {each.name for each in MUTANTS if each.in_load}
    seeds = {name: found for name, found in seeds.items() if found and name not in in_load}
    text = json.dumps(dict(sorted(seeds.items())), indent=1, ensure_ascii=False)
    KNOWN.write_text(text + "\n", "utf-8")


def hunt(
    mutant: Mutant, *, most: int = WORLDS_MAX, fresh: int | None = None, learning: bool = False
) -> Caught:
    """Run worlds until good ones have caught the bug: the known ones, then those of 1, 2, …

    As many must as are known (known_seeds.json), and at least one; WANTED must with `learning`, and
    with `fresh`, which knows none: the worlds begin at this seed.
    """
    seeds = known().get(mutant.name, []) if fresh is None else []
    first = 1 if fresh is None else fresh
    wanted = min(WANTED, len(seeds) + (mutant.known is not None)) or 1
    if learning or fresh is not None:
        wanted = WANTED
    if mutant.in_load:
        one = load.SMALL.seed if fresh is None else fresh
        return _hunt_in_load(mutant, range(one, one + WANTED))
    checks: dict[int, str] = {}
    worlds = 0
    wide = dict.fromkeys(chain(seeds, range(first, first + most)), True)
    tried = [] if fresh is not None or mutant.known is None else [(mutant.known, False)]
    for seed, drawn in (*tried, *wide.items()):
        worlds += 1
        with applied(mutant):
            violations = _run(mutant, seed, drawn).violations
        if violations and _good(replace(mutant, name="", parts=()), seed, drawn):
            checks[seed] = violations[0].check
        if len(checks) >= wanted:
            break
    return Caught(mutant.name, checks, worlds, wanted)


def _run(mutant: Mutant, seed: int, wide: bool) -> sim_world.Outcome:
    return sim_world.run(
        seed,
        only=mutant.only,
        wide=wide,
        refunds=mutant.refunds,
        changes=mutant.changes,
        like=mutant.like,
    )


@cache
def _good(hunted: Mutant, seed: int, wide: bool) -> bool:
    """Return whether the world is good where a bug is hunted like this one, which has no parts."""
    return not _run(hunted, seed, wide).violations


def _hunt_in_load(mutant: Mutant, seeds: Sequence[int]) -> Caught:
    """Run days of load, which are good without the mutant (test_load.py)."""
    checks = {}
    for seed in seeds:
        with applied(mutant):
            violations = load.run(replace(load.SMALL, seed=seed)).violations
        if violations:
            checks[seed] = violations[0][0]
    return Caught(mutant.name, checks, len(seeds), len(seeds))


def hunt_all(
    processes: int, fresh: int | None = None, *, learning: bool = False
) -> Iterator[Caught]:
    """Hunt each, on several processes, and yield the results in the order of the list."""
    for mutant in MUTANTS:  # each fits, before time is spent on the others
        with applied(mutant):
            pass
    with ProcessPoolExecutor(processes, initializer=sim_world.have_own_process) as pool:
        hunted = partial(hunt_named, fresh=fresh, learning=learning)
        yield from pool.map(hunted, [each.name for each in MUTANTS])


def hunt_named(name: str, fresh: int | None = None, *, learning: bool = False) -> Caught:
    mutant = next(each for each in MUTANTS if each.name == name)
    return hunt(mutant, most=LEARNT_IN if learning else WORLDS_MAX, fresh=fresh, learning=learning)


@cache
def _found(place: str) -> tuple[FunctionType, str]:
    """The function and its source. Kept: sources may change under a long run."""
    module, _, path = place.partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = (
            inspect.getattr_static(found, name) if isinstance(found, type) else getattr(found, name)
        )
    if isinstance(found, staticmethod):
        found = found.__func__
    if isinstance(found, property):
        found = found.fget
    assert isinstance(found, FunctionType)
    return found, textwrap.dedent(inspect.getsource(found))
