"""Seeded bugs: one-line sabotages of the protocol, made in memory, and the check that catches each.

A sabotage replaces text in one function's source and swaps the function's code, so that whoever
has imported it has the sabotaged one; or it replaces a row of the table or a constant. Leaving
`applied` undoes it. The product contains none of this.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from importlib import import_module
from itertools import chain
from types import CodeType, FunctionType
from typing import Any, Final

from checkout.domain.attempts import ENDS
from checkout.domain.payment_attempt import EndedBy, Outcome
from checkout.domain.session import Status as S
from checkout.domain.transitions import (
    IN_FLIGHT,
    IN_TIME,
    PARTLY_PAID,
    TRANSITIONS,
    Condition,
    Row,
)
from checkout.domain.transitions import Event as E
from tests.simulation import load, sim_world

WORLDS_MAX: Final = 3_000

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
    """In the transition table, the row of this cell changes."""

    cell: tuple[S, E]
    change: Callable[[Row], Row]

    def apply(self) -> Undo:
        original = TRANSITIONS[self.cell]
        TRANSITIONS[self.cell] = self.change(original)

        def undo() -> None:
            TRANSITIONS[self.cell] = original

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
    """A seeded bug. `only`: the kind of wallet in whose worlds it is hunted; None: all kinds.

    `in_load`: it is hunted in a day of load (load.py), and not in worlds. `known`: the seed of a
    world that caught it before, for one that few worlds catch: this world is tried first.
    """

    name: str
    parts: tuple[Line | Cell | Value, ...]
    only: str | None = None
    in_load: bool = False
    known: int | None = None


def drops_all_but(*kept: str) -> Callable[[Row], Row]:
    return lambda row: replace(row, drops=tuple(name for name in row.drops if name not in kept))


def when(condition: Condition) -> Callable[[Row], Row]:
    return lambda row: replace(row, when=condition)


def silent(row: Row) -> Row:
    return replace(row, webhook=None)


def opens(row: Row) -> Row:
    return replace(row, to=S.OPEN)


def unchecked(row: Row) -> Row:
    return replace(row, then_check=False)


_APPROVE: Final = "checkout.flows.payment.approve"
_RECONCILE: Final = "checkout.flows.payment.reconcile"
_PREPARE: Final = "checkout.flows.payment.prepare"
_RECEIVED: Final = "checkout.flows.payment.received"
_OUTSIDE: Final = "checkout.flows.payment.outside"
_WITNESS: Final = "checkout.flows.payment.witness"
_TRANSITIONS: Final = "checkout.domain.transitions"
_DELIVER: Final = "checkout.flows.webhooks.deliver"
_SWEEP: Final = "checkout.flows.schedule.sweep"
_EXPIRIES: Final = "checkout.flows.schedule.expiries"
_DYNAMO: Final = "checkout.adapters.dynamo.sessions"
_DYNAMO_CLIENT: Final = "checkout.adapters.dynamo.client"
_ATTEMPTS: Final = "checkout.domain.attempts"
_NO_TIME: Final = timedelta(0)
_FENCED: Final = (_TRANSITIONS, _RECONCILE, _OUTSIDE, _PREPARE)  # they know FENCE

MUTANTS: Final = (
    Mutant(
        "no claim before the continuation",
        (
            Line(
                f"{_APPROVE}:_claim_and_pay",
                "give_way(services, session, claimed)",
                "session",
            ),
        ),
    ),
    Mutant(
        "the intent is not written before the payment",
        (
            Line(
                f"{_APPROVE}:_continue_and_pay",
                "session = move(  # W6",
                "session = (lambda _, session, event, **new: __import__('dataclasses').replace("
                "session, phase='paying', **new))(  # W6",
            ),
        ),
    ),
    Mutant(
        "an unknown outcome of the payment is a failure",
        (
            Line(
                f"{_APPROVE}:_pay",
                "return session  # `paying`",
                "return move(work.services, session, Event.PAYMENT_REFUSED)  # `paying`",
            ),
        ),
    ),
    Mutant(
        "the payment is sent again after an unknown outcome",
        (
            Line(
                f"{_APPROVE}:_pay",
                "return session  # `paying`",
                "payment = work.client.create_outgoing_payment(session.customer, token, "
                "quote=session.quote, receiver=session.incoming_payment.id)  # `paying`",
            ),
        ),
    ),
    Mutant(
        "the payment is sent after its deadline",
        (
            Line(
                f"{_APPROVE}:_pay",
                "if work.services.clock.now() >= session.instruction.deadline:",
                "if False:",
            ),
        ),
        known=350,
    ),
    Mutant(
        "a bare 4xx is trusted",
        (
            Line(
                f"{_APPROVE}:_refused",
                "    try:",
                "    return _certain(work, session, token, Problem.PAYMENT_REFUSED, 'no')\n"
                "    try:",
            ),
        ),
    ),
    Mutant(
        "a wallet that cannot be asked has refused",
        (
            Line(
                f"{_APPROVE}:_refused",
                "return session  # a wallet cannot be asked",
                "pass  # a wallet cannot be asked",
            ),
        ),
        known=95,
    ),
    Mutant(
        "409 and 429 are definite, and the token is kept",  # either alone is made good by the other
        (
            Line(f"{_APPROVE}:_certain", "work.client.revoke_token(auth_server, token)", "pass"),
            Line(
                f"{_APPROVE}:_refused",
                "(op.Reason.BUSY, op.Reason.INVALID_QUOTE)",
                "(op.Reason.INVALID_QUOTE,)",
            ),
        ),
    ),
    Mutant(
        "an invalid quote is definite",
        (
            Line(
                f"{_APPROVE}:_refused",
                "(op.Reason.BUSY, op.Reason.INVALID_QUOTE):\n            return session",
                "(op.Reason.BUSY,):\n            return session\n"
                "        if refused.reason is op.Reason.INVALID_QUOTE:\n"
                "            return _certain(work, session, token, Problem.PAYMENT_REFUSED, 'no')",
            ),
        ),
        known=1060,
    ),
    Mutant(
        "a callback need not verify",
        (Line(f"{_APPROVE}:_verify", "if matched is None:", "if False:"),),
    ),
    Mutant(
        "a dearer quote than approved is paid",
        (
            Line(
                f"{_APPROVE}:_usable_quote", "return renewed if within else None", "return renewed"
            ),
        ),
        known=2948,
    ),
    Mutant(
        "the 201 completes the session",
        (
            Line(
                f"{_RECEIVED}:await_money",
                "if services.completion_policy is CompletionPolicy.INSTRUCTED:",
                "if True:",
            ),
        ),
    ),
    Mutant(
        "cancel ignores a payment in flight",
        (Cell((S.AWAITING_APPROVAL, E.CANCEL_REQUESTED), when(IN_TIME)),),
        known=780,
    ),
    Mutant(
        "expire ignores a payment in flight",
        (Cell((S.AWAITING_APPROVAL, E.EXPIRE_REQUESTED), when(IN_TIME)),),
        known=228,
    ),
    Mutant(
        "time ends a session with a payment in flight",
        (
            Line(
                "checkout.domain.session:Session.overdue",
                "if self.terminal or self.payment_in_flight or now < self.expires_at:",
                "if self.terminal or now < self.expires_at:",
            ),
        ),
    ),
    Mutant(
        "the event is outside the transaction",
        (
            Line(
                f"{_DYNAMO}:DynamoSessions.save",
                'self._transact({"Update": request}, *({"Put": put} for put in puts), *rows)',
                'self._transact({"Update": request}, *rows); '
                'puts and self._transact(*({"Put": put} for put in puts))',
            ),
        ),
    ),
    Mutant(
        "old nonces are kept when a wallet is submitted again",
        (Cell((S.AWAITING_APPROVAL, E.WALLET_SUBMITTED), drops_all_but("grant")),),
    ),
    Mutant(
        "the access token outlives the session",
        (Cell((S.PROCESSING, E.RECONCILED), drops_all_but("token")),),
    ),
    Mutant(
        "a writer with an old version wins",
        (
            Line(
                "checkout.adapters.dynamo.conditions:update",
                'still_as_read = "#status = :from AND #version = :read"',
                'still_as_read = "#status = :from AND #version >= :read"',
            ),
        ),
    ),
    Mutant(
        "a loser believes that it has won",
        (
            Line(
                f"{_DYNAMO}:DynamoSessions._stale_unless_ours",
                "if current.writer != change.after.writer:",
                "if False:",
            ),
        ),
        known=169,
    ),
    Mutant(
        "versions do not grow",
        (
            Line(
                "checkout.domain.transitions:advance",
                "version=session.version + 1,",
                "version=session.version,",
            ),
        ),
    ),
    Mutant(
        "the incoming payment is not closed before the verdict",
        (
            Line(
                f"{_WITNESS}:check_and_close",
                "work.at_merchant(lambda token: work.client.complete_incoming_payment(url, token))",
                "pass",
            ),
            Line(f"{_RECONCILE}:_fence", "if not seen.closed:", "if False:"),
        ),
    ),
    Mutant(
        "the verdict comes before the 35 s",
        (
            Value(_RECONCILE, "FENCE", _NO_TIME),
            Value("checkout.domain.transitions", "FENCE", _NO_TIME),
        ),
    ),
    Mutant(
        "what was asked to close counts as closed",
        (
            Line(
                f"{_WITNESS}:check_and_close",
                "return check(work, session)",
                "return Seen(seen.received, True, seen.begun_at)",
            ),
        ),
        known=63,
    ),
    Mutant(
        "the quote's expiry is trusted",
        (
            Line(
                f"{_RECONCILE}:_close_when_waited",
                "return _start_closing(work, session)",
                "return move(work.services, session, Event.PAYMENT_REFUSED) if session.phase else "
                "_start_closing(work, session)",
            ),
        ),
        known=228,
    ),
    Mutant(
        "the wallet's word of failure is trusted",
        (
            Line(
                f"{_RECONCILE}:_decide",
                "return _start_closing(work, session)",
                "return move(work.services, session, Event.PAYMENT_DISPROVED)",
            ),
            Cell((S.PROCESSING, E.PAYMENT_DISPROVED), when(IN_FLIGHT)),
        ),
        known=38,
    ),
    Mutant(
        "a closed incoming payment is used again",
        (
            Cell((S.AWAITING_APPROVAL, E.PAYMENT_DISPROVED), drops_all_but("incoming_payment")),
            Cell((S.PROCESSING, E.PAYMENT_DISPROVED), drops_all_but("incoming_payment")),
            Line(f"{_PREPARE}:_check_incoming_payment", "if not seen.closed:", "if True:"),
        ),
        known=33,
    ),
    Mutant(
        "half is taken for the whole",
        (
            Line(
                "checkout.flows.payment.work:Work.paid",
                "return received >= least_accepted(",
                "return received * 2 >= least_accepted(",
            ),
        ),
    ),
    Mutant(
        "the sweep takes over a live lease",
        (
            Line(
                "checkout.flows.payment.sessions:_decided",
                "if session.lease_live(now):",
                "if False:",
            ),
        ),
    ),
    Mutant(
        "a payment in flight is not due",
        (
            Line(
                "checkout.domain.session:Session._needed_at",
                "return self.check_at",
                "return None if self.payment_in_flight else self.check_at",
            ),
        ),
    ),
    Mutant(
        "an attempt to deliver has no lease",
        (
            Line(
                f"{_DELIVER}:deliver",
                "services.events.save(event)",
                "event = __import__('dataclasses').replace(event, version=event.version - 1)",
            ),
        ),
        known=250,
    ),
    Mutant(
        "a webhook is sent before its time",
        (
            Line(
                "checkout.domain.webhooks:may_attempt",
                "event.status is EventStatus.PENDING and now >= event.next_at",
                "event.status is EventStatus.PENDING",
            ),
        ),
    ),
    Mutant(
        "the sweep forgets the events that are owed",
        (
            Line(
                "checkout.flows.schedule.sweep:_due_events",
                "deliver.due_events(services.events, now, services.side_by_side, part)",
                "()",
            ),
        ),
    ),
    Mutant(
        "a failed webhook counts as delivered",
        (
            Line(
                "checkout.domain.webhooks:ended",
                "if delivery.succeeded:",
                "if delivery.duration_ms is not None:",
            ),
        ),
    ),
    Mutant(
        "two answers to one idempotency key",
        (
            Line(
                "checkout.adapters.dynamo.conditions:put_reservation",
                'absent_or_expired = "(attribute_not_exists(#key) OR #expires_at <= :now)"',
                'absent_or_expired = "(attribute_not_exists(#key) OR #expires_at > :now)"',
            ),
        ),
    ),
    # What a stranger's sabotages showed, and what has come since.
    Mutant(
        "the fence waits 30 s",
        tuple(Value(module, "FENCE", timedelta(seconds=30)) for module in _FENCED),
        known=38,
    ),
    Mutant(
        "the deciding read may begin in the middle of the 35 s",
        (
            Line(
                f"{_RECONCILE}:_fence",
                "if seen.begun_at < session.closed_at + FENCE:",
                "if services.clock.now() + FENCE / 2 < session.closed_at + FENCE:",
                also=(("check_at=now + FENCE", "check_at=now"),),
            ),
            # Otherwise no check is due before their end.
            Line(
                f"{_RECONCILE}:_next_check",
                "check_at = max(check_at, session.closed_at + FENCE)",
                "pass",
            ),
        ),
        only="accepts, never sends",
        known=262,
    ),
    Mutant(
        "the last read after an end may begin before the 35 s",
        (
            Line(
                f"{_OUTSIDE}:account",
                "session.closed_at is not None and seen.begun_at >= session.closed_at + FENCE",
                "session.closed_at is not None",
                also=(('"check_at": now + FENCE', '"check_at": now'),),
            ),
        ),
        known=74,
    ),
    Mutant(
        "sessions are read eventually consistent",
        (Line("checkout.adapters.dynamo.client:get", "Read=True", "Read=False"),),
    ),
    Mutant(
        "an incoming payment that holds money is replaced",
        (
            Line(
                f"{_PREPARE}:_check_incoming_payment",
                "if seen.received > 0:\n        return outside.found(work, session, seen)\n"
                "    if not seen.closed:\n        return session",
                "pass",
                also=(("or seen.begun_at < session.closed_at + FENCE", ""),),
            ),
        ),
        known=74,
    ),
    Mutant(
        "the rotated token is not kept",
        (
            Line(
                f"{_RECONCILE}:_ask_wallet",
                "move(work.services, session, Event.CHECKED, token=kept)",
                "move(work.services, session, Event.CHECKED)",
            ),
        ),
        known=170,
    ),
    Mutant(
        "the incoming payment lives only as long as the session",
        (Value(_PREPARE, "INCOMING_PAYMENT_GRACE", _NO_TIME),),
    ),
    Mutant(
        "the incoming payment outlives its session by 14 min",
        (Value(_PREPARE, "INCOMING_PAYMENT_GRACE", timedelta(minutes=14)),),
    ),
    Mutant(
        "a zombie gives up whoever's preparation it finds",
        (
            Line(
                f"{_PREPARE}:_give_up",
                "if session is None or session.lease_until != claimed.lease_until:",
                "if session is None:",
            ),
        ),
        known=586,
    ),
    Mutant(
        "any payment of this wallet counts as found",
        (
            Line(
                f"{_WITNESS}:find_payment",
                "if payment.quote_id == quote_id or "
                "payment.receiver == session.incoming_payment.id:",
                "if True:",
            ),
        ),
        known=159,
    ),
    Mutant(
        "a refusal counts before the merchant's wallet is asked",
        (
            Line(
                f"{_APPROVE}:_refused",
                "seen = witness.check(work, session)",
                "seen = witness.Seen(0, False, work.services.clock.now())",
            ),
        ),
        known=23,
    ),
    Mutant("a preparation's lease is 40 s", (Value(_PREPARE, "LEASE", timedelta(seconds=40)),)),
    Mutant("an approval's lease is 40 s", (Value(_APPROVE, "LEASE", timedelta(seconds=40)),)),
    Mutant("a payment is sent within 4 s", (Value(_APPROVE, "SEND_WITHIN", timedelta(seconds=4)),)),
    Mutant(
        "a quote that names no end holds for 9 min",
        (Value(_RECONCILE, "ENDLESS_QUOTE", timedelta(minutes=9)),),
        only="quotes without expiry",
    ),
    Mutant(
        "the wait has a margin of 20 s",
        (Value(_RECONCILE, "WAIT_MARGIN", timedelta(seconds=20)),),
    ),
    Mutant(
        "an incoming payment counts as closed after 23 h",
        (
            Value("checkout.domain.session", "NEVER_CLOSED_AFTER", timedelta(hours=23)),
            Value(_WITNESS, "NEVER_CLOSED_AFTER", timedelta(hours=23)),
        ),
        known=150,
    ),
    Mutant(
        "a part of the money does not prolong the wait",
        (Line(f"{_RECONCILE}:wait_until", "if not session.received:", "if True:"),),
    ),
    Mutant(
        "a part is judged before the fence",
        tuple(
            Line(
                f"{_RECONCILE}:{place}",
                "received.judge(work, session, seen)",
                "received.judge(work, session, seen, final=True)",
            )
            for place in ("arrived", "_checked")
        ),
    ),
    Mutant(
        "a part is not flagged",
        (Line(f"{_RECEIVED}:judge", "attention=Attention.PARTIAL_PAYMENT", "attention=None"),),
    ),
    Mutant(
        "three units may be missing",
        (
            Line(
                "checkout.flows.payment.work:Work.paid",
                "tolerance=self.merchant.tolerance",
                "tolerance=3",
            ),
        ),
        known=204,
    ),
    Mutant(
        "what was received is not recorded",
        (
            Line(
                f"{_RECEIVED}:complete",
                "received=current.received if received is None else received",
                "received=current.received",
            ),
        ),
    ),
    Mutant(
        "a partial payment can be given up before it is closed",
        (Cell((S.PROCESSING, E.GIVEN_UP), when(PARTLY_PAID)),),
    ),
    Mutant(
        "a late payment is told to nobody",
        (Cell((S.CANCELED, E.LATE_PAYMENT), silent), Cell((S.EXPIRED, E.LATE_PAYMENT), silent)),
        known=328,
    ),
    Mutant(
        "a canceled session is not checked for money",
        (
            Cell(
                (S.AWAITING_APPROVAL, E.CANCEL_REQUESTED),
                unchecked,
            ),
        ),
        known=802,
    ),
    Mutant(
        "the sweep forgets what ended",
        (
            Line(
                f"{_RECONCILE}:due",
                "session.payment_in_flight or session.terminal",
                "session.payment_in_flight",
            ),
        ),
    ),
    Mutant(
        "an ended session is not in the index",
        (
            Line(
                "checkout.domain.session:Session._needed_at",
                "return self.check_at",
                "return None if self.terminal else self.check_at",
            ),
        ),
        known=25,
    ),
    Mutant(
        "a replaced approval can be claimed",
        (
            Line(
                f"{_APPROVE}:_claim_and_pay",
                "if current.grant != session.grant or current.phase is not None:",
                "if current.phase is not None:",
            ),
        ),
        known=1326,
    ),
    Mutant(
        "a claim that lost its race keeps its lease",
        (
            Line(
                f"{_APPROVE}:_claim_and_pay",
                "def claimed(current: Session)",
                "def claimed(current: Session, began=services.clock.now())",
                also=(("lease_until=now + LEASE", "lease_until=began + LEASE"),),
            ),
        ),
        known=1073,
    ),
    Mutant(
        "an unknown outcome counts as not sent",
        (
            Line(
                f"{_APPROVE}:_pay",
                "except op.NotSent as error:",
                "except op.OutcomeUnknown as error:",
            ),
        ),
    ),
    Mutant(
        "an unpaid incoming payment that is not found was never paid",
        (Line(f"{_WITNESS}:check", "and begun_at >= believed_from:", "and True:"),),
    ),
    Mutant(
        "a stray 404 is believed at the expiry",
        (Value(_WITNESS, "STRAY_404", _NO_TIME),),
        known=328,
    ),
    # Large carts, which lie in items of their own.
    # A session and its stored answer are two writes.
    Mutant(
        "an answer is given again though its session was never made",
        (
            Line(
                "checkout.flows.payment.sessions:open_session",
                "_make_sure(services, opened, held)",
                "pass",
            ),
        ),
    ),
    Mutant(
        "a session is made before its answer is stored",
        (
            Line(
                f"{_DYNAMO}:DynamoSessions.create",
                "winner = self._reserve(reservation)",
                "self.create(session, None); winner = self._reserve(reservation)",
            ),
        ),
    ),
    Mutant(
        "a session is stored without its cart",
        (Line(f"{_DYNAMO}:DynamoSessions.create", "self._put_cart(session)", "pass"),),
    ),
    Mutant(
        "a cart is read from what may be out of date",
        (
            Line(
                f"{_DYNAMO_CLIENT}:with_cart",
                'get(client, table, id=text(cart_id(item["id"]["S"])))',
                'ask(client.get_item, TableName=table, Key={"id": text(cart_id(item["id"]["S"]))})'
                '.get("Item")',
            ),
        ),
    ),
    # Payment attempts.
    Mutant(
        "an attempt is forgotten when it ends",
        (Line(f"{_ATTEMPTS}:recorded", "(*_without(kept, current), ended)", "kept[:-1]"),),
    ),
    Mutant(
        "an ended attempt takes over what the next one has",
        (
            Line(
                f"{_ATTEMPTS}:recorded",
                "kept = (*_without(kept, current), ended)",
                "kept = (*(replace(each, quote=ended.quote) for each in kept[:-1]), ended)",
            ),
        ),
    ),
    Mutant(
        "a payment that never arrived counts as paid",
        (
            Value(
                _ATTEMPTS,
                "ENDS",
                {**ENDS, ("payment_disproved", None): (Outcome.PAID, EndedBy.CHECKOUT)},
            ),
        ),
    ),
    Mutant(
        "an attempt keeps running when money is found",
        (
            Value(
                _ATTEMPTS,
                "ENDS",
                {key: end for key, end in ENDS.items() if key[0] != "money_found"},
            ),
        ),
        known=74,
    ),
    Mutant(
        "an attempt has the wallet of the one before",
        (Line(f"{_ATTEMPTS}:_with_evidence", "attempt.resolved_at is not None", "True"),),
    ),
    Mutant(
        "an attempt ends without its payment",
        (
            Line(
                f"{_ATTEMPTS}:_with_evidence",
                "outgoing_payment=session.outgoing_payment",
                "outgoing_payment=None",
            ),
        ),
    ),
    Mutant(
        "a browser's report opens the session",
        (Cell((S.AWAITING_APPROVAL, E.RETURN_REPORTED), opens),),
    ),
    # The sweep, and what is left to the clock.
    Mutant(
        "a session that nobody opened is not found by the clock",
        (
            Line(
                "checkout.adapters.dynamo.records:session_item",
                "if session.over_at is not None:",
                "if session.terminal:",
            ),
        ),
    ),
    Mutant(
        "an end by the clock is told to nobody",
        (Line(f"{_EXPIRIES}:_tell", "if session.terminal or not", "if True or not"),),
    ),
    Mutant(
        "a walk passes what it has not counted",
        (Line(f"{_EXPIRIES}:_follow", "tallies = tallied(ended)", "tallies = tallied(ended[1:])"),),
    ),
    Mutant(
        "a payment in flight is among what can wait",
        (
            Line(
                "checkout.adapters.dynamo.records:session_item",
                "if session.urgent",
                "if False",
            ),
        ),
    ),
    Mutant(
        "carts come before payments",
        (
            Line(
                f"{_SWEEP}:run",
                "first = _due(services, now, part, urgent=True)",
                "first = _due(services, now, part, urgent=False)",
                also=(
                    (
                        "later = _due(services, now, part, urgent=False)",
                        "later = _due(services, now, part, urgent=True)",
                    ),
                ),
            ),
        ),
        in_load=True,
    ),
    Mutant(
        "the backlog is at most one",
        (
            Line(
                f"{_SWEEP}:run",
                "first.total + later.total - round_.reached",
                "int(first.total + later.total > round_.reached)",
            ),
        ),
        in_load=True,
    ),
    Mutant(
        "strangers' wallets are asked before all merchants' are",
        (Line(f"{_SWEEP}:_Round._asked", "if checked.paid:", "if checked.seen:"),),
        in_load=True,
    ),
    Mutant(
        "merchants do not take turns",
        (
            Line(
                f"{_DELIVER}:_in_turn",
                "for turn in zip_longest(*by_merchant.values()):",
                "for turn in by_merchant.values():",
            ),
        ),
        in_load=True,
    ),
    # Several endpoints.
    Mutant(
        "an event is for the first endpoint only",
        (Line(f"{_DELIVER}:_fan_out", "services.events.add_copy(each)", "pass"),),
    ),
    Mutant(
        "the other endpoints wait until the first one has been tried",
        (Line(f"{_DELIVER}:deliver", "event.version == 1", "event.version == 3"),),
    ),
    Mutant(
        "a copy is sent to the first endpoint",
        (
            Line(
                f"{_DELIVER}:receiver", "merchant.endpoint_of(event.endpoint)", "merchant.endpoint"
            ),
        ),
    ),
    Mutant(
        "one endpoint's 410 disables the first one",
        (Line(f"{_DELIVER}:_disable", "services.clock.now(), endpoint", "services.clock.now()"),),
    ),
    Mutant(
        "an endpoint gets what it has not asked for",
        (Line("checkout.domain.webhooks:copies", "and endpoint.wants(event.type)", ""),),
    ),
    Mutant(
        "an endpoint gets what was before it",
        (Line("checkout.domain.webhooks:copies", "and endpoint.was_there(event.created_at)", ""),),
    ),
    Mutant(
        "an abandoned session is written when it expires",
        (Line(f"{_EXPIRIES}:_tell", "or not _wanted(services, session.merchant)", ""),),
        in_load=True,
    ),
    Mutant(
        "an item comes back while its session may still be paid",
        (Line(f"{_TRANSITIONS}:advance", "after.unsold", "not after.payment_in_flight"),),
    ),
    Mutant(
        "an item comes back as soon as its session has ended",
        (Line(f"{_TRANSITIONS}:advance", "after.unsold", "after.terminal"),),
    ),
    Mutant(
        "an item does not come back",
        (Line(f"{_DYNAMO}:DynamoSessions.save", "change.restocks is not None", "False"),),
    ),
    Mutant(
        "a session takes no item",
        (
            Line(
                f"{_DYNAMO}:DynamoSessions._create_at_once",
                'items.insert(len(keys) + 1, {"Update": take_item(self._sessions, session.link)})',
                "pass",
            ),
        ),
    ),
    Mutant(
        "an item is taken where none is left",
        (
            Line(
                "checkout.adapters.dynamo.links:take_item",
                "#left >= :one",
                "(#left >= :one OR #left < :one)",
            ),
        ),
    ),
)


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    with ExitStack() as undo:
        for part in mutant.parts:
            undo.callback(part.apply())
        yield


@dataclass(frozen=True, slots=True)
class Caught:
    """`check` is None where no world caught it."""

    mutant: str
    check: str | None
    seed: int
    worlds: int


def hunt(mutant: Mutant, *, most: int = WORLDS_MAX) -> Caught:
    """Run the known world, then those of seeds 1, 2, …, until one that is good catches the bug."""
    if mutant.in_load:
        return _hunt_in_load(mutant)
    known = () if mutant.known is None else (mutant.known,)
    for worlds, seed in enumerate(chain(known, range(1, most + 1)), 1):
        with applied(mutant):
            violations = sim_world.run(seed, only=mutant.only).violations
        if violations and not sim_world.run(seed, only=mutant.only).violations:
            return Caught(mutant.name, violations[0].check, seed, worlds)
    return Caught(mutant.name, None, 0, most)


def _hunt_in_load(mutant: Mutant) -> Caught:
    """Run one day of load, which is good without the mutant (test_load.py)."""
    with applied(mutant):
        violations = load.run().violations
    if violations:
        return Caught(mutant.name, violations[0][0], load.SMALL.seed, 1)
    return Caught(mutant.name, None, 0, 1)


def hunt_all(processes: int) -> Iterator[Caught]:
    """Hunt each on so many processes, and yield what came of it, in the order of the list."""
    for mutant in MUTANTS:  # each fits, before time is spent on the others
        with applied(mutant):
            pass
    with ProcessPoolExecutor(processes, initializer=sim_world.have_own_process) as pool:
        yield from pool.map(hunt_named, [each.name for each in MUTANTS])


def hunt_named(name: str) -> Caught:
    return hunt(next(each for each in MUTANTS if each.name == name))


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
    assert isinstance(found, FunctionType)
    return found, textwrap.dedent(inspect.getsource(found))
