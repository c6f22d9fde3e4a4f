"""The page of the refund budget, in front of the sandbox's wallets, and refunds that it pays."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from checkout.domain.merchant.audit import Action
from checkout.domain.payment.mandate import MandateEvent, MandateStatus
from checkout.domain.refund.record import Refund, RefundProblem
from checkout.domain.session.record import Session
from dashboard import refunds as texts
from open_payments.errors import OutcomeUnknown
from open_payments.models import Amount
from tests.support.basics import NOW, a_mandate
from tests.support.dashboard_pages import Browser, approved, dashboard, path_of, wallets_page
from tests.support.flows import CEDAR, World, on, raising
from tests.support.merchant_api import PREFIX
from tests.support.refund_books import allow, balance, end_budget, mandate, payments
from tests.support.services import store_mandate

ALICE = f"{CEDAR}/alice"


def approve(world: World, owner: Browser, amount: str = "500.00") -> str:
    """Type an amount, approve it in the wallet, and come back; return the page that one sees."""
    typed = {"amount": amount, "percent": "5", "plus": "0.10"}
    answer = owner.get(approved(world, owner.post("/budget", typed)))
    assert path_of(answer.location) == "/budget"
    return owner.get("/budget").page.main


def refund_now(owner: Browser, sold: Session, **typed: str) -> str:
    """Press “Refund now”; return the path of the refund."""
    fields = {"amount": "20.00", "mode": "as_paid", "how": "now", **typed}
    return path_of(owner.post(f"/transactions/{sold.id}/refund", fields).location)


def refunds_of(world: World, sold: Session) -> list[Refund]:
    ids = tuple(each.id for each in world.session(sold.id).refunds or ())
    return list(world.services.refunds.of(ids))


def actions(world: World) -> list[str]:
    rows = world.dynamo.rows(f"{PREFIX}-api_keys")
    return sorted(row["action"]["S"] for row in rows if "budget" in str(row.get("action")))


def test_an_owner_approves_a_budget_once_and_refunds_in_one_click(
    world: World, owner: Browser, sold: Session
) -> None:
    assert "Not approved yet" in owner.get("/budget").page.main
    page = approve(world, owner)
    assert "Active" in page
    assert "Left this month 500.00 USD of 500.00 USD a month" in page
    assert "Renews on 1 April 2026" in page
    before, had = balance(world, ALICE), balance(world, world.shop)
    assert "a refund may cost 5 % and 0.10 USD more than its amount" in page
    shown = owner.get(f"/transactions/{sold.id}").page.main
    assert "has 500.00 USD left this month" in shown
    assert "it may cost you 5 % and 0.10 USD more than the amount" in shown
    done = owner.get(refund_now(owner, sold)).page.main
    assert "Refunded" in done
    assert "from your refund budget" in done
    assert sold.quote is not None
    assert balance(world, ALICE) == before + sold.quote.debit.value
    cost = had - balance(world, world.shop)
    page = owner.get("/budget").page.main
    assert f"Spent {cost / 100:.2f} USD" in page
    assert f"Left this month {(50000 - cost) / 100:.2f} USD" in page
    assert actions(world) == ["budget_approved", "budget_asked"]
    log = owner.get("/audit").page.main
    assert "Approved a refund budget 500.00 USD" in log


def test_a_price_that_was_shown_is_paid_with_one_click_and_never_more(
    world: World, owner: Browser, sold: Session
) -> None:
    approve(world, owner)
    path = refund_now(owner, sold, how="price")
    page = owner.get(path).page
    [button] = [e for e in page.all("button") if "".join(e.text).startswith("Refund ")]
    [refund] = refunds_of(world, sold)
    assert refund.quote is not None
    cost = refund.quote.debit
    assert "".join(button.text).endswith(f"for {cost.value / 100:.2f} USD")
    had = balance(world, world.shop)
    assert path_of(owner.post(f"{path}/budget").location) == path
    assert "Refunded" in owner.get(path).page.main
    assert balance(world, world.shop) == had - cost.value
    again = owner.post(f"{path}/budget")
    assert again.status == 400
    assert "This refund is not waiting to be sent." in again.page.main


def test_a_refund_over_the_budget_asks_for_one_approval_and_says_why(
    world: World, owner: Browser, sold: Session
) -> None:
    approve(world, owner, "15")
    made = payments(world)
    path = refund_now(owner, sold)
    answer = owner.get(path)
    assert texts.PROBLEM[RefundProblem.OVER_BUDGET] in answer.page.main
    back = approved(world, answer)
    assert payments(world) == made, "nothing is sent before the approval"
    owner.get(back)
    assert "Refunded" in owner.get(path).page.main


def test_without_a_budget_a_refund_asks_for_an_approval_as_before(
    world: World, owner: Browser, sold: Session
) -> None:
    assert "Refund now" not in owner.get(f"/transactions/{sold.id}").body
    answer = owner.get(refund_now(owner, sold))
    assert wallets_page(answer)
    assert not answer.page.all("p", **{"class": "alert"})


def test_a_budget_that_the_wallet_has_ended_says_so_everywhere(
    world: World, owner: Browser, sold: Session
) -> None:
    allow(world)
    store_mandate(
        world.dynamo, PREFIX, replace(mandate(world), status=MandateStatus.REVOKED, over_at=NOW)
    )
    page = owner.get("/budget")
    assert "Your wallet has ended the access." in page.page.main
    assert "Your refund budget is over: approve it again" in page.page.main
    assert "Your wallet has ended the refund budget" in owner.get("/needs").page.main
    assert "Approve again" in page.page.main
    answer = owner.get(refund_now(owner, sold))
    assert texts.PROBLEM[RefundProblem.NO_BUDGET] in answer.page.main
    assert "Active" in approve(world, owner)
    assert "Nothing needs you." in owner.get("/needs").page.main


def test_a_wallet_that_does_not_answer_is_tried_again(
    world: World, owner: Browser, sold: Session
) -> None:
    approve(world, owner)
    world.transport.before = on("POST", "/quotes", raising(OutcomeUnknown("away")))
    path = refund_now(owner, sold)
    page = owner.get(path).page.main
    assert "To be sent" in page
    assert texts.TRIED_AGAIN in page
    assert "To be sent" in owner.get(f"/transactions/{sold.id}").page.main
    world.transport.before = lambda request: None
    world.clock.pass_time(60)
    world.sweep()
    world.sweep()
    assert "Refunded" in owner.get(path).page.main


def test_an_owner_ends_it_and_its_grant_is_left_to_be_canceled(
    world: World, owner: Browser
) -> None:
    approve(world, owner)
    assert path_of(owner.post("/budget/end").location) == "/budget"
    assert "You have ended the budget." in owner.get("/budget").page.main
    assert mandate(world).token is None
    assert len(world.tasks.left) == 1
    answer = owner.post("/budget/end")
    assert (answer.status, "no budget to end" in answer.page.main) == (400, True)
    assert actions(world) == ["budget_approved", "budget_asked", "budget_ended"]


def test_a_declined_approval_says_so_and_changes_nothing(world: World, owner: Browser) -> None:
    approve(world, owner)
    owner.post("/budget", {"amount": "700"})
    page = owner.get("/budget/callback?result=grant_rejected").page.main
    assert "The budget was not approved." in page
    assert "of 500.00 USD a month" in page


@pytest.mark.parametrize(
    "query", ["", "?hash=x", "?interact_ref=x&hash=y", "?interact_ref=x", "?result=x&result=y"]
)
def test_a_forged_callback_is_refused_and_approves_nothing(
    world: World, owner: Browser, query: str
) -> None:
    world.network.approve(wallets_page(owner.post("/budget", {"amount": "500"})))
    sent = len(world.transport.sent)
    assert owner.get(f"/budget/callback{query}").status == 400
    assert mandate(world).status is MandateStatus.PENDING
    assert len(world.transport.sent) == sent, "no wallet was asked"


def test_a_callback_that_comes_twice_is_noted_once(world: World, owner: Browser) -> None:
    back = urlsplit(world.network.approve(wallets_page(owner.post("/budget", {"amount": "500"}))))
    way = f"{path_of(back.path)}?{back.query}"
    early = owner.get(way)
    assert "One moment" in early.page.main
    world.clock.pass_time(10)
    for _ in range(2):
        assert path_of(owner.get(way).location) == "/budget"
    assert actions(world).count("budget_approved") == 1


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("a lot", "This is not an amount of USD."),
        ("", "This is not an amount of USD."),
        ("0", "must be at least 1"),
        ("10000000000000", "must be at most"),
    ],
)
def test_a_wrong_amount_comes_back_with_the_reason(
    world: World, owner: Browser, typed: str, says: str
) -> None:
    answer = owner.post("/budget", {"amount": typed})
    assert answer.status == 400
    assert says in answer.page.main
    assert [e.attributes["value"] for e in answer.page.all("input", name="amount")] == [typed]


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"percent": "21", "plus": "0"}, "Type 0 to 20 per cent."),
        ({"percent": "-1", "plus": "0"}, "Type 0 to 20 per cent."),
        ({"percent": "2", "plus": "a lot"}, "This is not an amount of USD."),
    ],
)
def test_a_wrong_margin_comes_back_with_the_reason(
    owner: Browser, typed: dict[str, str], says: str
) -> None:
    answer = owner.post("/budget", {"amount": "500", **typed})
    assert (answer.status, says in answer.page.main) == (400, True)
    for name, value in typed.items():
        assert [e.attributes["value"] for e in answer.page.all("input", name=name)] == [value]


def test_a_wallet_that_does_not_answer_is_named(world: World, owner: Browser) -> None:
    world.transport.before = raising_on_grants
    answer = owner.post("/budget", {"amount": "500"})
    assert (answer.status, "Your wallet does not answer" in answer.page.main) == (424, True)
    assert actions(world) == []


def raising_on_grants(request: Any) -> None:
    if request.method == "POST":
        raise OutcomeUnknown("down")


def test_a_month_that_is_used_up_renews(world: World, owner: Browser, sold: Session) -> None:
    approve(world, owner, "25")
    refund_now(owner, sold)
    assert "Refund now" in owner.get(f"/transactions/{world.pay(world.create(100)).id}").body
    world.clock.pass_time(32 * 24 * 3600)
    owner.sign_in(world.api_key)
    assert "Left this month 25.00 USD" in owner.get("/budget").page.main


SECRETS: dict[str, Any] = {"token": "sealed-t", "handle": "sealed-h", "grant": "sealed-g"}


@pytest.mark.parametrize("status", list(MandateStatus))
def test_each_state_says_what_it_is_and_shows_no_secret(status: MandateStatus) -> None:
    with dashboard() as shop:
        shown = a_mandate(status, rotating=NOW, **SECRETS)
        store_mandate(shop.dynamo, PREFIX, shown)
        answer = shop.signed_in().get("/budget")
    assert texts.BUDGET[status][2] in answer.page.main
    assert "sealed" not in answer.body


def test_a_wallet_that_is_silent_for_a_day_is_told() -> None:
    with dashboard() as shop:
        store_mandate(shop.dynamo, PREFIX, a_mandate(rotating=NOW - timedelta(days=1)))
        assert texts.SILENT in shop.signed_in().get("/budget").page.main


def test_a_fee_below_the_smallest_unit_is_shown() -> None:
    with dashboard() as shop:
        mine = a_mandate(spent=12_345678, period=NOW)
        assert mine.terms is not None
        mine = replace(mine, terms=replace(mine.terms, limit=Amount(100_000000, "USD", 6)))
        store_mandate(shop.dynamo, PREFIX, mine)
        page = shop.signed_in().get("/budget").page.main
    assert "Spent 12.345678 USD" in page


def test_there_are_words_for_every_status_and_step() -> None:
    assert set(texts.BUDGET) == set(MandateStatus)
    quiet = {"spent", "given_back", "rotation_started", "not_rotated"}
    assert set(texts.BUDGET_STEP) == {each.value for each in MandateEvent} - quiet
    assert {Action.BUDGET_ASKED, Action.BUDGET_APPROVED, Action.BUDGET_ENDED} <= set(Action)


def test_a_budget_that_ended_meanwhile_pays_no_price_that_was_shown(
    world: World, owner: Browser, sold: Session
) -> None:
    approve(world, owner)
    path = refund_now(owner, sold, how="price")
    end_budget(world)
    assert "left after it" not in owner.get(path).page.main
    made = payments(world)
    assert path_of(owner.post(f"{path}/budget").location) == path
    assert texts.PROBLEM[RefundProblem.NO_BUDGET] in owner.get(path).page.main
    assert payments(world) == made


def test_another_wallet_than_the_payers_is_not_paid_by_the_budget_alone(
    world: World, owner: Browser, sold: Session
) -> None:
    approve(world, owner)
    fields = {"mode": "at_cost", "how": "now", "wallet": "https://wallet.example/thief"}
    answer = owner.post(f"/transactions/{sold.id}/refund", fields)
    assert texts.PROBLEM[RefundProblem.OTHER_WALLET] in answer.page.main
    assert "The customer's wallet does not answer." in answer.page.main
