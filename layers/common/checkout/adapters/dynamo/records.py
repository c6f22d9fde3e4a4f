"""How sessions and idempotency keys lie in their tables: dataclass to DynamoDB item and back.

Refuses nothing: what is legal was decided before. What is never searched (line items, history) is
one compact JSON string, so that the largest session that the API accepts stays well below
DynamoDB's 400 KB an item.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import astuple
from datetime import datetime
from typing import Any, Final

from checkout.adapters.dynamo.values import (
    Item,
    Value,
    instant,
    instant_from,
    milliseconds,
    moment,
    number,
    number_from,
    optional,
    present,
    read,
    text,
    text_from,
)
from checkout.domain.search import search_key
from checkout.domain.session import (
    Attempt,
    Attention,
    HistoryEntry,
    IncomingPaymentRef,
    LineItem,
    Phase,
    Problem,
    Session,
    Status,
)
from checkout.open_payments.models import Amount, Quote, WalletAddress
from checkout.ports.sessions import Reservation

DUE_SHARDS: Final = 8
_POSITION_MAX: Final = 10**13 - 1  # thirteen digits of milliseconds: until the year 2286
BROOM_DELAY: Final = 86_400  # seconds; DynamoDB's TTL sweeps, it never decides


def position(at: datetime, record_id: str = "") -> str:
    """The sort key of the `by_merchant` indexes: sorts as (time, id). Without an id it stands
    before every record of its millisecond. Times beyond thirteen digits stand at the end.
    """
    digits = f"{min(milliseconds(at), _POSITION_MAX):013d}"
    return f"{digits}#{record_id}" if record_id else digits


def due_shard(record_id: str) -> str:
    """The `due` index is spread over a few partitions, so that it has no hot one."""
    return str(hashlib.sha256(record_id.encode()).digest()[0] % DUE_SHARDS)


def session_item(session: Session) -> Item:
    """The whole item, index attributes included."""
    due = session.due_at()
    ended = session.updated_at if session.terminal else None
    customer = session.customer
    return present(
        id=text(session.id),
        merchant=text(session.merchant),
        status=text(session.status.value),
        version=number(session.version),
        writer=text(session.writer),
        created_at=instant(session.created_at),
        created_key=text(position(session.created_at, session.id)),
        updated_at=instant(session.updated_at),
        expires_at=instant(session.expires_at),
        due_shard=text(due_shard(session.id)) if due else None,
        due_at=optional(instant, due),
        # From its end until tallies.py has counted it, which removes them.
        uncounted_shard=text(due_shard(session.id)) if ended else None,
        uncounted_at=optional(instant, ended),
        search_key=text(search_key(session.merchant, customer.id)) if customer else None,
        amount_total=number(session.amount_total),
        currency=text(session.currency),
        receive=_amount(session.receive),
        line_items=text(compact([astuple(item) for item in session.line_items])),
        metadata=text(session.metadata_json),
        success_url=text(session.success_url),
        cancel_url=text(session.cancel_url),
        phase=optional(text, session.phase),
        lease_until=optional(instant, session.lease_until),
        check_at=optional(instant, session.check_at),
        checks=number(session.checks),
        customer=optional(_customer, session.customer),
        incoming_payment=optional(_incoming_payment, session.incoming_payment),
        quote=optional(_quote, session.quote),
        interact_url=optional(text, session.interact_url),
        grant=optional(text, session.grant),
        token=optional(text, session.token),
        attempt=optional(_attempt, session.attempt),
        outgoing_payment=optional(text, session.outgoing_payment),
        closing_at=optional(instant, session.closing_at),
        closed_at=optional(instant, session.closed_at),
        received=optional(number, session.received),
        problem=optional(text, session.problem),
        attention=optional(text, session.attention),
        completed_at=optional(instant, session.completed_at),
        event=optional(text, session.event),
        locale=optional(text, session.locale),
        submissions={"L": [instant(at) for at in session.submissions]},
        history=text(compact([[milliseconds(e.at), e.event, e.note] for e in session.history])),
    )


def search_item(session: Session, key: str) -> Item:
    """A row by which the `by_search` index finds a session besides its own: it names it in the
    place that it has in every list.
    """
    return {
        "id": text(f"search#{key}#{session.id}"),
        "search_key": text(key),
        "created_key": text(position(session.created_at, session.id)),
    }


def session_from(item: Mapping[str, Value]) -> Session:
    return Session(
        id=text_from(item["id"]),
        merchant=text_from(item["merchant"]),
        status=Status(text_from(item["status"])),
        version=number_from(item["version"]),
        writer=text_from(item["writer"]),
        created_at=instant_from(item["created_at"]),
        updated_at=instant_from(item["updated_at"]),
        expires_at=instant_from(item["expires_at"]),
        amount_total=number_from(item["amount_total"]),
        currency=text_from(item["currency"]),
        receive=_amount_from(item["receive"]),
        line_items=tuple(LineItem(*line) for line in json.loads(text_from(item["line_items"]))),
        metadata_json=text_from(item["metadata"]),
        success_url=text_from(item["success_url"]),
        cancel_url=text_from(item["cancel_url"]),
        phase=read(item, "phase", lambda value: Phase(text_from(value))),
        lease_until=read(item, "lease_until", instant_from),
        check_at=read(item, "check_at", instant_from),
        checks=number_from(item["checks"]),
        customer=read(item, "customer", _customer_from),
        incoming_payment=read(item, "incoming_payment", _incoming_payment_from),
        quote=read(item, "quote", _quote_from),
        interact_url=read(item, "interact_url", text_from),
        grant=read(item, "grant", text_from),
        token=read(item, "token", text_from),
        attempt=read(item, "attempt", _attempt_from),
        outgoing_payment=read(item, "outgoing_payment", text_from),
        closing_at=read(item, "closing_at", instant_from),
        closed_at=read(item, "closed_at", instant_from),
        received=read(item, "received", number_from),
        problem=read(item, "problem", lambda value: Problem(text_from(value))),
        attention=read(item, "attention", lambda value: Attention(text_from(value))),
        completed_at=read(item, "completed_at", instant_from),
        event=read(item, "event", text_from),
        locale=read(item, "locale", text_from),
        submissions=tuple(instant_from(at) for at in item["submissions"]["L"]),
        history=tuple(
            HistoryEntry(at=moment(at), event=event, note=note)
            for at, event, note in json.loads(text_from(item["history"]))
        ),
    )


def reservation_item(reservation: Reservation) -> Item:
    return {
        "key": text(reservation.key),
        "fingerprint": text(reservation.fingerprint),
        "status": number(reservation.status),
        "body": text(reservation.body),
        "writer": text(reservation.writer),
        "created_at": instant(reservation.created_at),
        "expires_at": instant(reservation.expires_at),
        "ttl": number(milliseconds(reservation.expires_at) // 1000 + BROOM_DELAY),
    }


def reservation_from(item: Mapping[str, Value]) -> Reservation:
    return Reservation(
        key=text_from(item["key"]),
        fingerprint=text_from(item["fingerprint"]),
        status=number_from(item["status"]),
        body=text_from(item["body"]),
        writer=text_from(item["writer"]),
        created_at=instant_from(item["created_at"]),
        expires_at=instant_from(item["expires_at"]),
    )


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _amount(amount: Amount) -> Value:
    return {
        "M": {
            "value": number(amount.value),
            "asset_code": text(amount.asset_code),
            "asset_scale": number(amount.asset_scale),
        }
    }


def _amount_from(value: Value) -> Amount:
    parts = value["M"]
    return Amount(
        value=number_from(parts["value"]),
        asset_code=text_from(parts["asset_code"]),
        asset_scale=number_from(parts["asset_scale"]),
    )


def _customer(wallet: WalletAddress) -> Value:
    return {
        "M": {
            "id": text(wallet.id),
            "auth_server": text(wallet.auth_server),
            "resource_server": text(wallet.resource_server),
            "asset_code": text(wallet.asset_code),
            "asset_scale": number(wallet.asset_scale),
        }
    }


def _customer_from(value: Value) -> WalletAddress:
    parts = value["M"]
    return WalletAddress(
        id=text_from(parts["id"]),
        auth_server=text_from(parts["auth_server"]),
        resource_server=text_from(parts["resource_server"]),
        asset_code=text_from(parts["asset_code"]),
        asset_scale=number_from(parts["asset_scale"]),
    )


def _incoming_payment(payment: IncomingPaymentRef) -> Value:
    return {"M": {"id": text(payment.id), "expires_at": instant(payment.expires_at)}}


def _incoming_payment_from(value: Value) -> IncomingPaymentRef:
    parts = value["M"]
    return IncomingPaymentRef(text_from(parts["id"]), instant_from(parts["expires_at"]))


def _quote(quote: Quote) -> Value:
    return {
        "M": present(
            id=text(quote.id),
            debit=_amount(quote.debit),
            receive=_amount(quote.receive),
            expires_at=optional(instant, quote.expires_at),
        )
    }


def _quote_from(value: Value) -> Quote:
    parts = value["M"]
    return Quote(
        id=text_from(parts["id"]),
        debit=_amount_from(parts["debit"]),
        receive=_amount_from(parts["receive"]),
        expires_at=read(parts, "expires_at", instant_from),
    )


def _attempt(attempt: Attempt) -> Value:
    return {"M": {"id": text(attempt.id), "deadline": instant(attempt.deadline)}}


def _attempt_from(value: Value) -> Attempt:
    parts = value["M"]
    return Attempt(text_from(parts["id"]), instant_from(parts["deadline"]))
