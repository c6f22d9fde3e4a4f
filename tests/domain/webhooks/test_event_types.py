"""The table of event types."""

from __future__ import annotations

import pytest

from checkout.domain.refund.transitions import REFUND_TRANSITIONS
from checkout.domain.session.transitions import TRANSITIONS
from checkout.domain.webhooks.event_types import (
    ALWAYS,
    EVENTS,
    OPTIONAL,
    WITH_AMOUNT,
    choices,
    sentence_of,
    stripe_name,
)

# The type, and its name in Stripe's form.
SENT = {
    "checkout.session.completed": "checkout.session.completed",
    "checkout.session.expired": "checkout.session.expired",
    "checkout.session.canceled": "checkout.session.expired",
    "checkout.session.payment_failed": "payment_intent.payment_failed",
    "checkout.session.partially_paid": "checkout.session.partially_paid",
    "checkout.session.late_payment": "checkout.session.late_payment",
}
REFUNDS = {"refund.created", "refund.updated", "refund.failed"}
# The type, and the event beside which Stripe's form has it.
BESIDE = {
    "payment_intent.succeeded": "checkout.session.completed",
    "charge.refunded": "refund.updated",
}


def test_each_event_that_a_session_sends_is_in_the_table_and_a_ping() -> None:
    assert {row.webhook for row in TRANSITIONS.values() if row.webhook} == set(SENT)
    assert set(EVENTS) == {*SENT, *REFUNDS, *BESIDE, "ping"}
    assert {name: stripe_name(name) for name in SENT} == SENT
    assert {*SENT, *REFUNDS, *BESIDE} == {*ALWAYS, *OPTIONAL}


def test_each_optional_type_is_chosen_by_a_name_of_its_own() -> None:
    named = choices()
    assert named["updated"] == "refund.updated"
    assert tuple(named.values()) == OPTIONAL


def test_a_second_event_is_beside_the_one_that_says_the_same_in_the_native_form() -> None:
    rows = (*TRANSITIONS.values(), *REFUND_TRANSITIONS.values())
    assert {row.beside: row.webhook for row in rows if row.beside} == BESIDE
    assert {name: each.beside for name, each in EVENTS.items() if each.beside} == BESIDE
    completed = [row for row in rows if row.webhook == "checkout.session.completed"]
    assert all(row.beside for row in completed)


def test_what_tells_of_money_is_sent_to_all_endpoints() -> None:
    assert ALWAYS == ("checkout.session.completed", "checkout.session.late_payment")
    amounts = {"checkout.session.late_payment", "checkout.session.partially_paid"}
    assert set(WITH_AMOUNT) == amounts


@pytest.mark.parametrize("name", ["checkout.session.refunded", ""])
def test_an_unknown_type_is_its_own_sentence_and_name(name: str) -> None:
    assert (sentence_of(name), stripe_name(name)) == (name, name)


def test_a_sentence_has_no_full_stop_and_is_of_one_type() -> None:
    sentences = [each.sentence for each in EVENTS.values()]
    assert all(sentence and not sentence.endswith(".") for sentence in sentences)
    assert len(set(sentences)) == len(sentences)
