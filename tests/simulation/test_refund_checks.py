"""Each check of refunds and of their budget can fail: it is shown what it must catch.

Here are those that no seeded bug shows (mutants.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest

from checkout.adapters.dynamo.events import event_item
from checkout.adapters.dynamo.refunds import mandate_item, refund_item
from checkout.domain.payment.in_flight import IncomingPaymentRef, Instruction
from checkout.domain.payment.machine import HistoryEntry
from checkout.domain.payment.mandate import MandateEvent, MandateStatus
from checkout.domain.refund.record import Refund, RefundEvent, RefundRef, RefundStatus
from checkout.domain.session.record import Session, Status
from open_payments.models import Amount, Quote
from sandbox.wallets import state as books
from tests.simulation.boundaries import BEGINNING
from tests.simulation.providers import CEDAR, CUSTOMER, HARBOR, SHOP
from tests.simulation.sim_world import SimWorld
from tests.support.basics import a_mandate, a_refund, a_session
from tests.support.samples import an_event

RETENTION: Final = timedelta(days=30)
QUOTE: Final = f"{HARBOR}/t/quotes/quote-r"
INCOMING: Final = f"{CEDAR}/t/incoming-payments/in-r"
LATER: Final = BEGINNING + timedelta(hours=1)
USD: Final = Amount(500, "USD", 2)
EUR: Final = Amount(450, "EUR", 2)
AT: Final = 2  # a seed whose world refunds


class Stage:
    """A world that is not run: the test writes a refund of 5.00 of a session of 20.00."""

    def __init__(self) -> None:
        self.world = SimWorld(AT)
        assert self.world.refunding is not None
        self.checks = self.world.checker.refunds
        self.checks_of_budget = self.world.checker.budgets
        self.session: Session = a_session(Status.COMPLETED, check_at=None, received=2000)
        self.hold(500)
        self.refund = self.written(a_refund())
        self.sale = books.IncomingPayment(
            "in-r", "cedar", CUSTOMER, self.money(EUR), self.money(EUR, 0), False, BEGINNING, LATER,
            None, SHOP,
        )  # fmt: skip
        self.world.network.state.incoming["in-r"] = self.sale
        self.world.network.state.quotes["quote-r"] = books.Quote(
            "quote-r", "harbor", SHOP, INCOMING, self.money(USD), self.money(EUR), 0, BEGINNING,
            LATER, SHOP,
        )  # fmt: skip

    @staticmethod
    def money(of: Amount, value: int | None = None) -> books.Money:
        return books.Money(of.value if value is None else value, of.asset_code, of.asset_scale)

    @property
    def caught(self) -> set[str]:
        return {violation.check for violation in self.world.violations}

    def hold(self, amount: int) -> None:
        held = (RefundRef(a_refund().id, amount),)
        self.session = replace(self.session, refunds=held)
        self.world.checker.sessions[self.session.id] = self.session

    def written(self, refund: Refund, event: RefundEvent | None = None, **item: Any) -> Refund:
        """Store `refund`, as `event` would; with `item`, with other attributes."""
        if event is not None:
            entry = HistoryEntry(BEGINNING, event.value)
            refund = replace(refund, version=refund.version + 1, history=(*refund.history, entry))
        row = {**refund_item(refund, RETENTION), **item}
        row = {name: each for name, each in row.items() if each is not None}
        self.checks.written([("sim-checkout_sessions", None, row)], "actor")
        return refund

    def sending(self) -> Refund:
        """The intent is written."""
        sending = replace(
            self.refund,
            status=RefundStatus.SENDING,
            incoming_payment=IncomingPaymentRef(INCOMING, LATER),
            quote=Quote(QUOTE, USD, EUR, LATER),
            instruction=Instruction("attempt-1", BEGINNING + timedelta(seconds=5)),
            check_at=LATER,
            token="v1.00000000.dG9rZW4",
        )
        self.refund = self.written(sending, RefundEvent.PAYMENT_INTENDED)
        return self.refund

    def pay(self, payment_id: str = "out-r", sent: int = 500, **changes: Any) -> None:
        """The shop's wallet sends this much."""
        payment = books.OutgoingPayment(
            id=payment_id,
            quote_id="quote-r",
            provider="harbor",
            wallet=SHOP,
            receiver=INCOMING,
            debit=self.money(USD),
            receive=self.money(EUR),
            fee=0,
            sent=sent,
            failed=False,
            metadata={},
            created_at=BEGINNING,
            grant_id="grant-r",
            client=SHOP,
            settles_at=None,
        )
        for name, value in changes.items():
            setattr(payment, name, value)
        self.world.network.state.outgoing[payment_id] = payment
        self.checks.money()


def an_older_version(stage: Stage) -> None:
    stage.written(replace(stage.refund, version=0))


def an_end_that_is_changed(stage: Stage) -> None:
    ended = replace(
        stage.sending(), status=RefundStatus.FAILED, sent=100, ended_at=LATER, token=None
    )
    ended = stage.written(ended, RefundEvent.FAILED)
    stage.written(replace(ended, sent=200), RefundEvent.ERASED)


def a_label_that_comes_back(stage: Stage) -> None:
    labeled = replace(stage.refund, metadata_json='{"a":"b"}')
    stage.written(labeled, RefundEvent.METADATA_CHANGED)
    stage.written(stage.refund, RefundEvent.APPROVAL_ASKED)


def a_failure_of_nothing(stage: Stage) -> None:
    stage.written(replace(stage.sending(), status=RefundStatus.FAILED), RefundEvent.FAILED)


def nobody_will_look(stage: Stage) -> None:
    stage.written(stage.refund, RefundEvent.CHECKED, due_at=None)


def it_may_be_deleted(stage: Stage) -> None:
    stage.written(stage.refund, RefundEvent.CHECKED, ttl={"N": "1"})


def an_amount_is_held_for_nothing(stage: Stage) -> None:
    stage.checks._held(replace(stage.session, refunds=(RefundRef("re_unknown", 0),)))


def an_event_of_another_sum(stage: Stage) -> None:
    body = f'{{"id": "{stage.refund.id}", "amount_sent": 7}}'
    event = event_item(an_event(type="refund.updated", body=body))
    stage.checks.written([("sim-webhook_events", None, event)], "actor")


def money_leaves_by_itself(stage: Stage) -> None:
    stage.pay()


def two_payments(stage: Stage) -> None:
    stage.sending()
    stage.pay("out-1", 100)
    stage.pay("out-2", 100)


def money_that_is_not_held(stage: Stage) -> None:
    stage.sending()
    stage.hold(100)
    stage.pay()


def more_than_they_paid(stage: Stage) -> None:
    stage.session = replace(stage.session, quote=Quote(QUOTE, Amount(100, "EUR", 2), USD, None))
    stage.hold(500)
    stage.refund = replace(stage.refund, mode=stage.refund.mode.AS_PAID)
    stage.sending()
    stage.sale.received = stage.money(EUR)
    stage.pay()


def more_than_came(stage: Stage) -> None:
    stage.session = replace(stage.session, received=100)
    stage.hold(500)
    stage.sending()
    stage.pay()


def canceled_and_paid(stage: Stage) -> None:
    stage.sending()
    stage.checks.records[stage.refund.id] = replace(stage.refund, status=RefundStatus.CANCELED)
    stage.pay()


def money_left_unseen(stage: Stage) -> None:
    stage.world.network.state.accounts[SHOP].balance -= 1
    stage.world.checker.elsewhere()


def budget(stage: Stage, event: MandateEvent | None = None, **changes: Any) -> None:
    """The budget is stored after this event."""
    mandate = a_mandate(**{"status": MandateStatus.LOST, "version": 2, **changes})
    if event is not None:
        mandate = replace(mandate, history=(HistoryEntry(BEGINNING, event.value),))
    stage.checks_of_budget.written([("sim-checkout_sessions", None, mandate_item(mandate))], "x")


def an_older_budget(stage: Stage) -> None:
    budget(stage)
    budget(stage, version=1)


def a_step_that_no_budget_takes(stage: Stage) -> None:
    budget(stage)
    budget(stage, MandateEvent.SPENT, version=3)


def a_budget_that_is_lost_by_itself(stage: Stage) -> None:
    stage.world.profile = "calm"
    budget(stage)
    budget(stage, version=3)


def an_end_while_a_payment_may_live(stage: Stage) -> None:
    refund = stage.sending()
    stage.checks._claimed(refund, RefundEvent.EXPIRY_PASSED)


SHOWN: Final[dict[Callable[[Stage], None], str]] = {
    an_older_version: "refund_version_grows",
    an_end_that_is_changed: "ended_refund_never_changes",
    a_label_that_comes_back: "refund_metadata_is_what_was_written",
    a_failure_of_nothing: "failed_after_a_part",
    nobody_will_look: "unfinished_refund_is_due",
    it_may_be_deleted: "undecided_refund_has_no_end",
    an_amount_is_held_for_nothing: "what_is_held_is_a_refund",
    an_event_of_another_sum: "refund_event_tells_the_refund",
    money_leaves_by_itself: "no_money_leaves_without_a_refund",
    two_payments: "paid_back_at_most_once",
    money_that_is_not_held: "money_that_leaves_is_held",
    more_than_they_paid: "customer_gets_what_they_paid",
    more_than_came: "costs_no_more_than_came",
    canceled_and_paid: "canceled_is_not_paid_back",
    money_left_unseen: "no_money_is_elsewhere",
    an_older_budget: "budget_version_grows",
    a_step_that_no_budget_takes: "budget_goes_by_its_table",
    a_budget_that_is_lost_by_itself: "a_budget_is_lost_by_faults_only",
    an_end_while_a_payment_may_live: "the_payment_before_is_proven_dead",
}


@pytest.mark.parametrize("violated", SHOWN, ids=lambda each: each.__name__)
def test_what_a_check_must_notice_is_noticed(violated: Callable[[Stage], None]) -> None:
    stage = Stage()
    assert stage.caught == set()
    violated(stage)
    assert SHOWN[violated] in stage.caught


@pytest.mark.parametrize("deleted", [False, True])
def test_a_refund_that_ends_after_its_session_was_deleted_has_nothing_to_release(
    deleted: bool,
) -> None:
    stage = Stage()
    if deleted:
        stage.world.checker.deleted({"id": {"S": stage.session.id}}, LATER)
    ended = replace(stage.refund, status=RefundStatus.CANCELED, ended_at=LATER)
    stage.checks.records[ended.id] = ended  # the session still holds 5.00 of it
    stage.checks.finished()
    assert ("refund_is_held" in stage.caught) is not deleted


def test_a_refund_that_is_paid_once_is_in_order() -> None:
    stage = Stage()
    stage.sending()
    stage.pay()
    assert stage.caught == set()


@pytest.mark.parametrize(("parts", "caught"), [(1, set()), (0, {"no_money_is_elsewhere"})])
def test_a_wallet_keeps_its_fee_of_a_payment_whose_part_was_rounded_down_to_nothing(
    parts: int, caught: set[str]
) -> None:
    stage = Stage()
    network = stage.world.network.state
    network.outgoing["tiny"] = books.OutgoingPayment(
        "tiny", "tiny", "harbor", SHOP, INCOMING, stage.money(USD, 2), stage.money(EUR, 1), 1,
        sent=0, failed=True, created_at=BEGINNING, client=SHOP, parts_sent=parts, metadata={},
        grant_id="grant", settles_at=None,
    )  # fmt: skip
    network.accounts[SHOP].balance -= 1
    stage.world.checker.elsewhere()
    assert stage.caught == caught
