"""The verdict on a refund, from what both wallets say. Each row is written out by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from checkout.domain.payment.in_flight import IncomingPaymentRef, Instruction
from checkout.domain.refund.record import Refund, RefundStatus
from checkout.domain.refund.verdict import Outcome, decide, next_look
from open_payments.models import Amount, OutgoingPayment, Quote
from tests.support.basics import NOW, a_refund

END = NOW + timedelta(minutes=5)  # of the quote
MINUTE = timedelta(minutes=1)
W, S, F, N = Outcome.WAIT, Outcome.SUCCEEDED, Outcome.FAILED, Outcome.NOTHING


def sent_refund(*, converted: bool = False, host: str = "w.example", **changes: Any) -> Refund:
    """A refund of 5.00 USD, which costs 6.00 with fees, to a wallet at this host."""
    receive = Amount(460, "EUR", 2) if converted else Amount(500, "USD", 2)
    quote = Quote("https://w.example/quotes/q", Amount(600, "USD", 2), receive, END)
    return a_refund(
        RefundStatus.SENDING,
        quote=quote,
        incoming_payment=IncomingPaymentRef(f"https://{host}/incoming-payments/i", END),
        instruction=Instruction("i", NOW + timedelta(seconds=5)),
        **changes,
    )


def own(sent: int, *, failed: bool = False) -> OutgoingPayment:
    return OutgoingPayment(
        id="https://w.example/outgoing-payments/q",
        wallet_address="https://w.example/shop",
        quote_id="https://w.example/quotes/q",
        receiver="https://c.example/incoming-payments/i",
        debit=Amount(600, "USD", 2),
        sent=Amount(sent, "USD", 2),
        failed=failed,
    )


@pytest.mark.parametrize(
    ("payment", "theirs", "after", "outcome", "sent"),
    [
        # nothing is found: certain half a minute after the quote's end
        (None, 0, timedelta(seconds=29), W, 0),
        (None, 0, timedelta(seconds=30), N, 0),
        # the customer's wallet shows all of it: certain at once
        (own(0), 500, -5 * MINUTE, S, 500),
        (None, 500, -5 * MINUTE, S, 500),
        (own(500), 499, -5 * MINUTE, W, 0),
        # there, and nothing sent: it may still begin, or be under way
        (own(0), 0, 10 * MINUTE - timedelta(seconds=1), W, 0),
        (own(0), 0, 10 * MINUTE, N, 0),
        # all was sent, and the customer's wallet says nothing of it
        (own(500), 0, 9 * MINUTE, W, 0),
        (own(500), 0, 10 * MINUTE, S, 500),
        # a part: the greater of both words
        (own(250), 0, 10 * MINUTE, F, 250),
        (own(250), 300, 10 * MINUTE, F, 300),
        (own(0), 1, 10 * MINUTE, F, 1),
        # a customer's wallet that cannot be read delays it by an hour at most
        (own(250), None, 59 * MINUTE, W, 0),
        (own(250), None, 60 * MINUTE, F, 250),
        (None, None, 59 * MINUTE, W, 0),
        (None, None, 60 * MINUTE, N, 0),
    ],
)
def test_in_one_asset(
    payment: OutgoingPayment | None,
    theirs: int | None,
    after: timedelta,
    outcome: Outcome,
    sent: int,
) -> None:
    verdict = decide(sent_refund(), payment, theirs, now=END + after)
    assert (verdict.outcome, verdict.sent) == (outcome, sent)
    assert verdict.confirmed is (theirs == 500)


@pytest.mark.parametrize(
    ("payment", "theirs", "outcome", "sent"),
    [
        (own(555), 0, S, 500),  # the rest may have been a fee
        (own(300), 0, S, 500),
        (own(299), 0, F, 499),  # more than a half is no fee
        (own(3), 230, F, 250),
        (own(0), 230, F, 250),
    ],
)
def test_in_two_assets_up_to_a_half_may_be_a_fee(
    payment: OutgoingPayment, theirs: int, outcome: Outcome, sent: int
) -> None:
    verdict = decide(sent_refund(converted=True), payment, theirs, now=END + 10 * MINUTE)
    assert (verdict.outcome, verdict.sent) == (outcome, sent)


@pytest.mark.parametrize(
    ("converted", "payment", "theirs", "spent"),
    [
        (False, own(0), 500, 600),  # all of it, by the price
        (False, own(500), 0, 600),
        (False, own(250), 0, 250),  # a part, by the own wallet
        (False, own(250), 250, 250),
        (False, own(250), 300, 360),  # the customer's shows more: three fifths of the price
        (False, None, 1, 2),
        (True, own(280), 200, 280),
        (True, own(150), 230, 300),  # both say a half, if a half of the price is a fee
        (True, own(3), 230, 300),
    ],
)
def test_what_the_wallet_has_paid_is_the_price_or_for_a_part_the_greater_word(
    converted: bool, payment: OutgoingPayment | None, theirs: int, spent: int
) -> None:
    now = END + 10 * MINUTE
    verdict = decide(sent_refund(converted=converted), payment, theirs, now=now)
    assert verdict.spent == Amount(spent, "USD", 2)


def test_one_unit_that_a_conversion_has_lost_is_no_part() -> None:
    assert decide(sent_refund(converted=True), own(500), 459, now=NOW).outcome is S
    assert decide(sent_refund(converted=True), own(500), 455, now=NOW).outcome is W


@pytest.mark.parametrize(
    ("host", "arrived", "outcome"),
    [
        ("c.example", 498, W),
        ("c.example", 499, S),  # through a third currency, and back
        ("c.example", 500, S),
        ("c.example", 501, S),
        ("w.example", 499, W),  # one provider has nothing to convert
        ("w.example", 500, S),
        ("w.example", 501, S),
    ],
)
def test_a_unit_may_be_missing_or_too_much_where_the_payment_leaves_its_provider(
    host: str, arrived: int, outcome: Outcome
) -> None:
    found = decide(sent_refund(host=host), own(arrived), arrived, now=NOW)
    assert (found.outcome, found.confirmed) == (outcome, outcome is S)


def test_what_the_shops_wallet_has_sent_but_a_unit_is_all_of_it_at_another_provider() -> None:
    late = END + 10 * MINUTE
    assert decide(sent_refund(host="c.example"), own(499), 0, now=late).sent == 500
    assert decide(sent_refund(), own(499), 0, now=late).sent == 499


@pytest.mark.parametrize(
    ("seen", "outcome"), [(None, W), (timedelta(seconds=34), W), (timedelta(seconds=35), N)]
)
def test_a_failure_counts_once_nothing_can_be_under_way(
    seen: timedelta | None, outcome: Outcome
) -> None:
    failed_at = None if seen is None else NOW + MINUTE - seen
    refund = sent_refund(failed_at=failed_at)
    assert decide(refund, own(0, failed=True), 0, now=NOW + MINUTE).outcome is outcome


def test_a_failure_that_was_seen_is_nothing_without_the_word_of_a_failure() -> None:
    refund = sent_refund(failed_at=NOW - 5 * MINUTE)
    assert decide(refund, own(0), 0, now=NOW).outcome is W


def test_the_next_look_is_when_it_can_decide() -> None:
    refund = sent_refund()
    assert next_look(refund, NOW) == END + timedelta(seconds=30)
    assert next_look(refund, END + MINUTE) == END + 10 * MINUTE
    assert next_look(refund, END + 10 * MINUTE) == END + 60 * MINUTE
    assert next_look(refund, END + 60 * MINUTE) is None
    failed = sent_refund(failed_at=NOW)
    assert next_look(failed, NOW) == NOW + timedelta(seconds=35)


def test_a_quote_that_names_no_end_counts_for_ten_minutes() -> None:
    refund = sent_refund()
    assert refund.quote is not None
    endless = Quote(refund.quote.id, refund.quote.debit, refund.quote.receive, None)
    refund = a_refund(RefundStatus.SENDING, quote=endless, instruction=refund.instruction)
    assert refund.quote_ends_at == NOW + timedelta(seconds=5) + 10 * MINUTE
