"""The sequential specification of a session, and a recorded history divided into sessions.

One object is one purchase: an idempotency key and the session that it made. Objects are judged one
by one, which is enough: a history is linearizable if its part about each object is (Herlihy and
Wing, "locality").

    absent -> open -> canceled | expired      and from `expires_at` on, open reads as expired

A list spans sessions and is no snapshot of them. It counts as one read of each: a session created
before the list was asked must be in it, one created after its answer must not, and the status shown
must have been the session's at some time in between. On DynamoDB only half of that is promised:
sessions are read consistently, but the index that says which there are may lag, so a list may miss
the newest. The emulator's index does not lag.

One thing here is not strict. Expiry comes by the clock, and a request is judged by the time at
which it read the clock. So a cancellation (or expiry by request) that was asked for in time may be
written a moment after `expires_at`, even if a list, which writes nothing, has shown the session
expired meanwhile. A request that was asked for after `expires_at` may not.

Neither is a key that is held. A creation stores its answer first and then its session, so a request
with other parameters that comes between is refused while nobody is shown the session yet.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from tests.linearizability.checker import Operation, contradiction

OPEN, CANCELED, EXPIRED = "open", "canceled", "expired"


class Request(StrEnum):
    CREATE = "create"
    GET = "get"
    LIST = "list"
    CANCEL = "cancel"
    EXPIRE = "expire"
    TIME_UP = "expires_at passes"


class Outcome(StrEnum):
    """The kinds of answers. SHOWN has the session; TWICE: it is twice in one list."""

    CREATED = "created"
    REPLAYED = "replayed"
    KEY_REUSED = "idempotency_key_reused"
    SHOWN = "shown"
    TWICE = "twice"
    MISSING = "missing"
    REFUSED = "session_unexpected_state"
    BUSY = "session_busy"
    UNKNOWN = "no answer"


ENDS: Final = {Request.CANCEL: CANCELED, Request.EXPIRE: EXPIRED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Operation):
    """One request about one purchase and its answer.

    `document` is the session in the answer, as text, with the status open; `status` the one that it
    has. `parameters` are those of a creation. `in_time`: asked before the session's `expires_at`.
    `held`: a creation with other parameters had begun before this one was answered.
    """

    who: str = ""
    request: Request
    outcome: Outcome
    parameters: str = ""
    document: str | None = None
    status: str | None = None
    in_time: bool = True
    held: bool = False


@dataclass(frozen=True, slots=True)
class Purchase:
    """The state: `status` is None before the creation, `document` until an answer has shown it."""

    status: str | None = None
    parameters: str = ""
    document: str | None = None
    time_up: bool = False


def step(state: Purchase, call: Call) -> Purchase | None:
    """Return the purchase after `call`, or None if it cannot have got its answer there."""
    if call.request is Request.TIME_UP:
        return replace(state, time_up=True)
    if call.outcome is Outcome.BUSY:
        return state
    if state.status is None:
        return _while_absent(state, call)
    if call.document is not None:
        if state.document not in (None, call.document):
            return None
        state = replace(state, document=call.document)
    if call.request is Request.CREATE:
        same = state.parameters == call.parameters
        legal = Outcome.REPLAYED if same else Outcome.KEY_REUSED
        return state if call.outcome is legal else None
    if call.request in ENDS:
        return _ended(state, call)
    return _shown(state, call)


def _while_absent(state: Purchase, call: Call) -> Purchase | None:
    if call.outcome is Outcome.MISSING or (call.outcome is Outcome.KEY_REUSED and call.held):
        return state
    if call.request is Request.CREATE and call.outcome in (Outcome.CREATED, Outcome.UNKNOWN):
        return Purchase(OPEN, call.parameters, call.document, state.time_up)
    return None


def _ended(state: Purchase, call: Call) -> Purchase | None:
    if call.outcome is Outcome.REFUSED:
        if state.status == OPEN:  # the refusal has written the expiry first
            return replace(state, status=EXPIRED) if state.time_up else None
        return state
    end = ENDS[call.request]
    fits = call.outcome is Outcome.UNKNOWN or (call.outcome, call.status) == (Outcome.SHOWN, end)
    possible = state.status == OPEN and (call.in_time or not state.time_up)
    return replace(state, status=end) if fits and possible else None


def _shown(state: Purchase, call: Call) -> Purchase | None:
    overdue = state.status == OPEN and state.time_up
    seen = EXPIRED if overdue else state.status
    if (call.outcome, call.status) != (Outcome.SHOWN, seen):
        return None
    # A read by id writes the expiry that it shows, unless it read the clock before.
    written = overdue and call.request is Request.GET and not call.in_time
    return replace(state, status=EXPIRED) if written else state


def restricts_only(call: Call) -> bool:
    """Tell whether no other answer needs `call`: it made no session and ended none by request."""
    answered = call.outcome not in (Outcome.UNKNOWN, Outcome.CREATED)
    return answered and call.request is not Request.TIME_UP and not _ends(call)


def _ends(call: Call) -> bool:
    return call.request in ENDS and call.outcome is Outcome.SHOWN


# --- a history, as it was recorded, and its parts ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded(Operation):
    """A request as it was made, at `clock`. `sessions` are those in the answer, as JSON has them.

    `purchase` is of a creation, `session` the id that another request is about; a list has neither.
    """

    who: str
    request: Request
    clock: datetime
    outcome: Outcome
    purchase: str = ""
    session: str = ""
    parameters: str = ""
    sessions: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick(Operation):
    """The clock was moved to `now`."""

    now: datetime


def calls_by_purchase(
    records: Sequence[Recorded], ticks: Sequence[Tick] = ()
) -> dict[str, list[Call]]:
    """Return each purchase's calls; the sessions' metadata tells which purchase they are of."""
    owner: dict[str, str] = {}
    expiry: dict[str, datetime] = {}
    names = dict.fromkeys(record.purchase for record in records if record.purchase)
    for session in (session for record in records for session in record.sessions):
        purchase = owner[session["id"]] = session["metadata"]["purchase"]
        expiry[purchase] = datetime.fromisoformat(session["expires_at"])
        names.setdefault(purchase)
    calls: dict[str, list[Call]] = {purchase: [] for purchase in names}
    for record in records:
        for purchase in names:
            in_time = purchase not in expiry or record.clock < expiry[purchase]
            about = record.purchase or owner.get(record.session)
            if record.request is Request.LIST:
                calls[purchase] += _in_list(record, purchase, in_time)
            elif about == purchase:
                shown = record.sessions[0] if record.sessions else None
                calls[purchase].append(_call(record, record.outcome, in_time, shown))
    calls = {
        purchase: [_with_key(call, found) for call in found] for purchase, found in calls.items()
    }
    for purchase, at in expiry.items():
        passing = min((tick for tick in ticks if tick.now >= at), key=_now, default=None)
        if passing is not None:
            calls[purchase].append(_passing(passing))
    return calls


def _with_key(call: Call, calls: Sequence[Call]) -> Call:
    """Return a refused creation with `held`."""
    if call.outcome is not Outcome.KEY_REUSED:
        return call
    others = (other for other in calls if other.request is Request.CREATE)
    held = any(
        other.parameters != call.parameters
        and other.outcome is not Outcome.KEY_REUSED
        and (call.responded is None or other.invoked < call.responded)
        for other in others
    )
    return replace(call, held=held)


def _in_list(record: Recorded, purchase: str, in_time: bool) -> list[Call]:
    shown = [each for each in record.sessions if each["metadata"]["purchase"] == purchase]
    if not shown:
        return [_call(record, Outcome.MISSING, in_time)]
    times = Counter(session["id"] for session in shown)
    return [
        _call(record, Outcome.TWICE if times[one["id"]] > 1 else Outcome.SHOWN, in_time, one)
        for one in shown
    ]


def _call(
    record: Recorded, outcome: Outcome, in_time: bool, session: dict[str, Any] | None = None
) -> Call:
    return Call(
        invoked=record.invoked,
        responded=record.responded,
        who=record.who,
        request=record.request,
        outcome=outcome,
        parameters=record.parameters,
        document=document(session) if session else None,
        status=session["status"] if session else None,
        in_time=in_time,
    )


def _passing(tick: Tick) -> Call:
    return Call(
        invoked=tick.invoked,
        responded=tick.responded,
        request=Request.TIME_UP,
        outcome=Outcome.SHOWN,
    )


def _now(tick: Tick) -> datetime:
    return tick.now


def document(session: dict[str, Any]) -> str:
    """Return the session's text with the status open, byte for byte as its creation answered it."""
    return json.dumps(session | {"status": OPEN}, separators=(",", ":"), ensure_ascii=False)


def violations(records: Sequence[Recorded], ticks: Sequence[Tick] = ()) -> list[str]:
    """Return one text for each purchase whose answers no order explains."""
    found = []
    for purchase, calls in calls_by_purchase(records, ticks).items():
        wrong = contradiction(calls, Purchase(), step, restricts_only)
        if wrong:
            found.append(_report(purchase, wrong))
    return found


def _report(purchase: str, calls: Sequence[Call]) -> str:
    """Return a line for each call, by the time it began, in milliseconds from the first."""
    ordered = sorted(calls, key=lambda call: call.invoked)
    zero = ordered[0].invoked
    documents = list(dict.fromkeys(call.document for call in ordered if call.document))
    lines = [f"No order of these requests explains all their answers (purchase {purchase}):"]
    for call in ordered:
        begun = (call.invoked - zero) / 1e6
        ended = "" if call.responded is None else f"{(call.responded - zero) / 1e6:.3f}"
        lines.append(f"{begun:10.3f} - {ended:>9}  {call.who:9} {_sentence(call, documents)}")
    lines += [f"session {number}: {text}" for number, text in enumerate(documents, start=1)]
    return "\n".join(lines)


def _sentence(call: Call, documents: Sequence[str]) -> str:
    if call.request is Request.TIME_UP:
        return str(call.request)
    asked = f"{call.request} {call.parameters}".strip()
    answer = str(call.outcome)
    if call.document is not None:
        answer += f" session {documents.index(call.document) + 1}, {call.status}"
    return f"{asked} -> {answer}"
