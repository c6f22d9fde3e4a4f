"""The pages of refunds, in front of the sandbox's wallets: a merchant refunds in three steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest

from checkout.domain.payment.in_flight import Instruction
from checkout.domain.refund.record import AmountMode, RefundEvent, RefundProblem, RefundStatus
from checkout.domain.session.record import Session
from checkout.flows.refund import alternative_wallet
from checkout.flows.refund.request import get as get_refund
from checkout.flows.session import close, reconcile
from dashboard import refunds as texts
from open_payments.errors import OutcomeUnknown
from open_payments.models import Amount, Quote, WalletAddress
from tests.support.basics import NOW, a_refund
from tests.support.dashboard_pages import (
    Browser,
    approved,
    dashboard,
    dashboard_over,
    path_of,
    wallets_page,
)
from tests.support.flows import CEDAR, HARBOR, PREFIX, World, on, raising
from tests.support.hosted_pages import Answer
from tests.support.refund_books import again, allow, ask, balance, payments
from tests.support.services import store_refund

ALICE = f"{CEDAR}/alice"
NOW_5 = {"amount": "5", "reason": "duplicate", "how": "now"}


def request_all(owner: Browser, sold: Session, **typed: str) -> str:
    """Send the form of the session's page; return the path of the refund."""
    page = owner.get(f"/transactions/{sold.id}").page
    assert "Left to refund: 20.00 USD." in page.main
    fields = {"amount": "20.00", "mode": "as_paid", "reason": "requested_by_customer", **typed}
    return path_of(owner.post(f"/transactions/{sold.id}/refund", fields).location)


def test_a_merchant_sees_the_price_approves_and_the_customer_has_the_money(
    world: World, owner: Browser, sold: Session
) -> None:
    before = balance(world, ALICE)
    path = request_all(owner, sold)
    page = owner.get(path).page
    waits = page.one("span", **{"class": "badge warn"})
    assert waits.text == ["Waiting for your approval"], "to wait is no failure"
    assert "Refund of 20.00\N{NO-BREAK SPACE}USD" in owner.get(path).body, "a sum never breaks"
    assert sold.quote is not None
    paid = f"{sold.quote.debit.value / 100:.2f} EUR"
    assert f"The customer gets {paid}" in page.main
    assert "USD" in page.main.split("Your wallet pays", 1)[1][:20]
    answer = owner.get(approved(world, owner.get(path)))
    assert path_of(answer.location) == path
    done = owner.get(path).page.main
    assert "Refunded" in done
    assert "Refunded: 20.00 USD, for which your wallet paid 20.42 USD with its fees" in done
    assert balance(world, ALICE) == before + sold.quote.debit.value
    shown = owner.get(f"/transactions/{sold.id}").page.main
    assert "Refunds 20.00 USD Refunded" in shown
    assert "Left to refund" not in shown
    log = owner.get("/audit").page.main
    assert "Requested a refund" in log


def test_a_wallet_that_asks_to_wait_is_asked_again(
    world: World, owner: Browser, sold: Session
) -> None:
    path = request_all(owner, sold)
    back = urlsplit(world.network.approve(wallets_page(owner.get(path))))
    waits = owner.get(f"{path_of(back.path)}?{back.query}")
    assert waits.status == 200
    assert "One moment" in waits.page.main
    [again_link] = waits.page.all("a", id="again")
    world.clock.pass_time(10)
    answer = owner.get(path_of(again_link.attributes["href"]) + f"?{back.query}")
    assert path_of(answer.location) == path


def test_a_refund_whose_approval_is_being_redeemed_offers_no_other_way(
    world: World, owner: Browser, sold: Session
) -> None:
    path = request_all(owner, sold)
    back = approved(world, owner.get(path))
    pages: list[Answer] = []
    world.transport.before = on("POST", "/continue/", lambda: pages.append(owner.get(path)))
    owner.get(back)
    [page] = [each.page for each in pages]
    assert "we are asking your wallet to pay it" in page.main
    assert "Look again" in page.main
    for way in ("Approve in your wallet", "Ask for the price", "Cancel"):
        assert way not in page.main


def test_after_a_death_at_the_wallet_the_used_approval_is_not_offered_again(
    world: World, owner: Browser, sold: Session
) -> None:
    path = request_all(owner, sold)
    back = approved(world, owner.get(path))
    world.transport.before = on("POST", "/continue/", raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        owner.get(back)
    world.clock.pass_time(46)
    page = owner.get(path).page
    assert "Show the price and approve" in page.main
    assert "Approve in your wallet" not in page.main


def test_a_refund_that_waits_for_a_busy_wallet_can_be_approved_or_canceled_on_its_page(
    world: World, owner: Browser, sold: Session
) -> None:
    allow(world, 100_00)
    world.transport.before = on("POST", "/quotes", raising(OutcomeUnknown("busy")))
    for way, then in (("prepare", "Approve in your wallet"), ("cancel", "Canceled")):
        path = path_of(owner.post(f"/transactions/{sold.id}/refund", NOW_5).location)
        page = owner.get(path).page
        assert "To be sent" in page.main
        assert "Approve it yourself" in page.main
        assert "Cancel the refund" in page.main
        world.transport.before = lambda request: None
        assert owner.post(f"{path}/{way}").status == 303
        assert then in owner.get(path).page.main
        world.transport.before = on("POST", "/quotes", raising(OutcomeUnknown("busy")))


def test_a_declined_approval_says_so_and_the_refund_still_waits(
    world: World, owner: Browser, sold: Session
) -> None:
    path, made = request_all(owner, sold), payments(world)
    page = owner.get(f"{path}/callback?result=grant_rejected").page
    assert "The refund was not approved." in page.main
    assert "Waiting for your approval" in page.main
    assert payments(world) == made
    assert owner.get(f"{path}/callback?hash=x").status == 400


def test_a_refund_whose_price_cannot_be_asked_is_there_and_says_why(
    world: World, owner: Browser, sold: Session
) -> None:
    world.transport.before = on("POST", "/quotes", raising(OutcomeUnknown("down")))
    answer = owner.post(f"/transactions/{sold.id}/refund", {"amount": "5"})
    assert "Your wallet does not answer. Try again later." in answer.page.main
    assert "Show the price and approve" in answer.page.main
    world.transport.before = lambda request: None
    [made] = world.services.refunds.of(tuple(e.id for e in world.session(sold.id).refunds or ()))
    assert owner.post(f"/refunds/{made.id}/prepare").status == 303
    assert wallets_page(owner.get(f"/refunds/{made.id}"))


def test_a_used_form_makes_nothing_else_and_its_page_is_a_new_form(
    world: World, owner: Browser, sold: Session
) -> None:
    form = f"/transactions/{sold.id}/refund"
    name = owner.get(f"/transactions/{sold.id}").page.all("input", name="form_name")[0]
    typed = {"amount": "5", "form_name": name.attributes["value"]}
    first = owner.post(form, typed)
    used = owner.post(form, {**typed, "amount": "6"})
    assert used.status == 400
    assert "This form was already sent" in used.page.main
    assert world.session(sold.id).refunded == 500
    names = {each.attributes["value"] for each in used.page.all("input", name="form_name")}
    assert len(names - {typed["form_name"]}) == 1
    world.clock.pass_time(24 * 3600)
    owner.sign_in(world.api_key)
    assert owner.post(form, typed).location != first.location, "a day later, nobody presses twice"


@pytest.mark.parametrize("name", ["", "x", "0" * 33, "é" * 32, "A" * 32])
def test_a_form_without_a_name_of_ours_is_done_each_time(
    world: World, owner: Browser, sold: Session, name: str
) -> None:
    for _ in range(2):
        owner.post(f"/transactions/{sold.id}/refund", {"amount": "5", "form_name": name})
    assert world.session(sold.id).refunded == 1000


@pytest.mark.parametrize(
    ("form", "typed", "says"),
    [
        ("refund", {"amount": "20.01"}, "Only 2000 USD (in its smallest unit) of this session"),
        ("refund", {"amount": "a lot"}, "This is not an amount of USD."),
        ("refund", {"amount": "0"}, "must be at least 1"),
        ("refund", {"mode": "free"}, "Choose one of the form"),
        ("paid_elsewhere", {"how": "  "}, "Say how you have paid your customer back"),
        ("paid_elsewhere", {"how": "x" * 201}, "at most 200 characters"),
        ("paid_elsewhere", {"amount": "20.01"}, "can still be refunded"),
        ("paid_elsewhere", {"amount": "much"}, "This is not an amount"),
    ],
)
def test_a_wrong_form_comes_back_with_the_reason(
    world: World, owner: Browser, sold: Session, form: str, typed: dict[str, str], says: str
) -> None:
    fields = {"amount": "1", **({"how": "In cash"} if form == "paid_elsewhere" else {}), **typed}
    answer = owner.post(f"/transactions/{sold.id}/{form}", fields)
    assert answer.status == 400
    assert says in answer.page.main
    assert world.session(sold.id).refunded == 0


def test_a_refund_is_canceled_from_its_page(world: World, owner: Browser, sold: Session) -> None:
    path = request_all(owner, sold)
    assert path_of(owner.post(f"{path}/cancel").location) == path
    assert "Canceled" in owner.get(path).page.main
    assert "is canceled; it cannot be canceled" in owner.post(f"{path}/cancel").page.main
    assert world.session(sold.id).refundable == 2000
    assert "Canceled a refund" in owner.get("/audit").page.main


def test_an_open_page_looks_at_a_refund_that_was_sent(
    world: World, owner: Browser, sold: Session
) -> None:
    path = request_all(owner, sold)
    back = approved(world, owner.get(path))
    world.transport.after = lambda request, response: (
        raising(OutcomeUnknown("lost"))() if "/outgoing-payments" in request.url else None
    )
    owner.get(back)
    assert "Sending" in owner.get(path).page.main
    world.transport.after = lambda request, response: None
    world.clock.pass_time(30)
    assert "Refunded" in owner.get(path).page.main


def test_money_from_outside_asks_for_the_wallet(world: World, owner: Browser) -> None:
    session = world.submit(world.create())
    close.cancel(world.services, world.key(), session.id)
    world.pay_from_outside(session, 2000)
    world.sweep(rounds=3)
    page = owner.get(f"/transactions/{session.id}").page
    assert page.all("input", name="wallet")
    assert not page.all("select", name="mode")
    typed = {"amount": "", "wallet": "https://wallet.example/alice", "reason": ""}
    answer = owner.post(f"/transactions/{session.id}/refund", typed)
    assert "The customer's wallet does not answer. Try again later." in answer.page.main
    assert "It costs you exactly the amount" in answer.page.main
    assert "To the wallet https://wallet.example/alice" in answer.page.main


QUOTE = Quote("https://w.example/q", Amount(560, "USD", 2), Amount(460, "EUR", 2), NOW)
PAYER = WalletAddress("https://w.example/shop", "USD", 2, "https://a.example", "https://r.example")
SENT = {
    "quote": QUOTE,
    "payer": PAYER,
    "instruction": Instruction("i", NOW),
    "outgoing_payment": "https://r.example/out/1",
}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"quote": QUOTE}, "over a tenth more than 5.00 USD"),
        ({"status": RefundStatus.SENDING, **SENT}, texts.READ_AGAIN),
        (
            {"status": RefundStatus.SUCCEEDED, "sent": 500, "ended_at": NOW, **SENT},
            texts.UNCONFIRMED,
        ),
        (
            {
                "status": RefundStatus.FAILED,
                "sent": 200,
                "problem": RefundProblem.SENT_IN_PART,
                "ended_at": NOW,
            },
            "Refunded: 2.00 USD.",
        ),
        ({"wallet": "", "mode": AmountMode.AS_PAID}, "To the wallet erased"),
        (
            {"held_at": datetime(2026, 2, 7, 23, tzinfo=UTC)},
            "was restored from an older copy on 7 Feb 2026. This refund may have been paid before",
        ),
        ({"metadata_json": '{"case":7,"open":true}'}, "case 7 open true"),
        *(({"problem": each}, texts.PROBLEM[each]) for each in RefundProblem),
    ],
)
def test_each_state_says_what_it_is_and_shows_no_secret(
    fields: dict[str, object], says: str
) -> None:
    secrets = {"grant": "v1.sealed-grant", "token": None}
    refund = replace(a_refund(), **{**secrets, **fields})  # type: ignore[arg-type]
    with dashboard() as shop:
        store_refund(shop.dynamo, PREFIX, refund)
        answer = shop.signed_in().get(f"/refunds/{refund.id}")
    assert says in answer.page.main
    assert "sealed-grant" not in answer.body


def test_there_are_words_for_every_status_event_and_problem() -> None:
    assert set(texts.STATUS) == set(texts.BADGE) == set(RefundStatus)
    assert set(texts.STEP) == set(RefundEvent) - {RefundEvent.CHECKED}
    assert set(texts.PROBLEM) == set(RefundProblem)


def test_the_books_tell_the_same_refund(world: World, owner: Browser, sold: Session) -> None:
    made = ask(world, sold, 100)
    assert again(world, made) == get_refund(world.services, world.key(), made.id)
    refunds = owner.get(f"/transactions/{sold.id}").page.main.partition("Refunds 19.00 USD left")
    assert "1.00 USD" in refunds[2]


# --- the customer's wallet cannot take it


def test_a_link_for_the_customer_is_shown_once_and_their_wallet_is_approved(
    world: World, owner: Browser
) -> None:
    gone, carol = f"{CEDAR}/refund-gone", f"{CEDAR}/carol"
    sale = world.pay(world.create(2000), gone)
    asked = owner.post(f"/transactions/{sale.id}/refund", {"amount": "20.00"})
    assert "There is no wallet at the customer's address any more." in asked.page.main
    [refund] = world.services.refunds.of(
        tuple(each.id for each in world.session(sale.id).refunds or ())
    )
    path = f"/refunds/{refund.id}"
    made = owner.post(f"{path}/claim", {})
    [secret] = made.page.all("code", id="secret")
    link = "".join(secret.text)
    assert re.fullmatch(rf"https://pay\.example/pay/{sale.id}/claim/[0-9A-Za-z]{{43}}", link)
    assert link not in owner.get(path).page.main
    assert "A link was created" in owner.get(path).page.main
    assert (
        "Created a link with which a customer can name another wallet"
        in owner.get("/audit").page.main
    )
    alternative_wallet.take(world.services, sale.id, link.rpartition("/")[2], carol, client=None)
    page = owner.get(path).page.main
    made_by = world.key().label
    assert f"Your customer has named this wallet by a link that {made_by} made." in page
    assert carol in page
    before = balance(world, carol)
    assert path_of(owner.post(f"{path}/prepare", {}).location) == path
    owner.get(approved(world, owner.get(path)))
    assert "Refunded" in owner.get(path).page.main
    assert balance(world, carol) == before + 1854
    assert "Make a link" not in owner.get(path).page.main
    refused = owner.post(f"{path}/claim", {})
    assert refused.status == 400
    assert "only while the refund waits for your approval" in refused.page.main


# --- money that came late, too much or in part goes back in one click


@pytest.fixture
def local(world: World) -> Iterator[Browser]:
    """A browser of a dashboard that takes the sandbox's wallets as typed addresses."""
    with dashboard_over(world, allow_loopback=True) as shop:
        yield shop.signed_in(world.api_key)


def surplus_of(owner: Browser, session: Session) -> tuple[str, dict[str, str]]:
    """Return the button's text and the fields of its form."""
    page = owner.get(f"/transactions/{session.id}").page
    [button] = [each for each in page.all("button") if "back" in "".join(each.text)]
    [amount] = page.all("input", name="amount", type="hidden")
    return "".join(button.text), {"amount": str(amount.attributes["value"])}


def sent_back(world: World, owner: Browser, session: Session, fields: dict[str, str]) -> str:
    """Press the button, approve at the wallet, and return what the refund's page shows."""
    path = path_of(owner.post(f"/transactions/{session.id}/refund", fields).location)
    owner.get(approved(world, owner.get(path)))
    world.sweep(rounds=20)
    return owner.get(path).page.main


def test_late_money_that_is_still_counted_says_when_it_can_be_refunded(
    world: World, local: Browser
) -> None:
    late = close.cancel(world.services, world.key(), world.submit(world.create()).id)
    world.pay_from_outside(late, 2000)
    world.sweep()
    shown = local.get(f"/transactions/{late.id}").page
    assert "Needs attention" in shown.main
    assert "You can refund it once it is certain how much has arrived" in shown.main
    assert "Left to refund" not in shown.main


def test_late_money_is_sent_back_to_the_wallet_that_the_shop_names(
    world: World, local: Browser
) -> None:
    bob = f"{HARBOR}/bob"
    late = close.cancel(world.services, world.key(), world.submit(world.create()).id)
    world.pay_from_outside(late, 2000)
    world.sweep(rounds=3)
    text, fields = surplus_of(local, late)
    assert "once it is certain" not in local.get(f"/transactions/{late.id}").page.main
    assert (text, fields) == ("Send 20.00 USD back", {"amount": "20.00"})
    before = balance(world, bob)
    assert "Refunded" in sent_back(world, local, late, fields | {"wallet": bob})
    assert balance(world, bob) == before + 2000
    shown = local.get(f"/transactions/{late.id}").page.main
    assert "20.00 USD Refunded" in shown
    assert "Left to refund" not in shown


def test_money_beyond_the_price_is_sent_back_and_the_sale_stays(
    world: World, local: Browser
) -> None:
    bob = f"{HARBOR}/bob"
    too_much = world.submit(world.create(2000))
    world.pay_from_outside(too_much, 2500)
    world.clock.pass_time(60)  # an open page looks for it once a minute
    found = reconcile.advance_pending(world.services, too_much.id, "192.0.2.7")
    assert found.overpaid
    text, fields = surplus_of(local, too_much)
    assert (text, fields) == ("Send 5.00 USD back", {"amount": "5.00"})
    before = balance(world, bob)
    assert "Refunded" in sent_back(world, local, too_much, fields | {"wallet": bob})
    assert balance(world, bob) == before + 500
    shown = local.get(f"/transactions/{too_much.id}").page
    assert "Left to refund: 20.00 USD." in shown.main
    assert not re.search(r"Send [0-9.]+\sUSD back", shown.main)


def test_a_part_that_was_given_up_is_sent_back_to_the_wallet_that_paid_it(
    world: World, owner: Browser
) -> None:
    payer = f"{CEDAR}/partial"
    part = world.settle(world.pay(world.create(2000), payer))
    assert part.partly_paid
    close.give_up(world.services, world.key(), part.id)
    text, fields = surplus_of(owner, part)
    assert (text, fields) == ("Send 10.00 USD back", {"amount": "10.00"})
    before = balance(world, payer)
    assert "Refunded" in sent_back(world, owner, part, fields)
    assert balance(world, payer) > before


def test_a_sale_has_no_button_to_send_it_back(owner: Browser, sold: Session) -> None:
    page = owner.get(f"/transactions/{sold.id}").page
    assert not [each for each in page.all("button") if "back" in "".join(each.text)]


def noted(owner: Browser, sold: Session, **typed: str) -> str:
    fields = {"amount": "5.00", "how": "Bank transfer of 3 May", **typed}
    return path_of(owner.post(f"/transactions/{sold.id}/paid_elsewhere", fields).location)


def test_what_was_paid_back_elsewhere_is_noted_and_taken_back(
    world: World, owner: Browser, sold: Session
) -> None:
    before, path = balance(world, ALICE), noted(owner, sold)
    page = owner.get(path).page.main
    assert "Refund of 5.00 USD Paid back elsewhere" in page
    assert "Bank transfer of 3 May Nothing was sent from here." in page
    assert "What it costs" not in page
    shown = owner.get(f"/transactions/{sold.id}").page.main
    assert "5.00 USD Paid back elsewhere" in shown
    assert "Left to refund: 15.00 USD." in shown
    assert "It was noted that the customer was paid back elsewhere" in shown
    owner.post(f"{path}/cancel")
    assert "This note was taken back" in owner.get(path).page.main
    assert "Left to refund: 20.00 USD." in owner.get(f"/transactions/{sold.id}").page.main
    log = owner.get("/audit").page.main
    assert "Noted that a customer was paid back elsewhere" in log
    assert balance(world, ALICE) == before


def test_a_refund_that_is_held_is_not_called_unsent_where_it_is_canceled() -> None:
    with dashboard() as shop:
        held = replace(a_refund(), held_at=NOW, token=None, grant=None)
        store_refund(shop.dynamo, PREFIX, held)
        page = shop.signed_in().get(f"/refunds/{held.id}").page
    assert "It may have been paid before. If it was" in page.main
    assert "Nothing was sent" not in page.main


def test_a_refund_that_was_held_and_has_ended_is_as_any_other() -> None:
    with dashboard() as shop:
        ended = replace(a_refund(), held_at=NOW, status=RefundStatus.SUCCEEDED, ended_at=NOW)
        store_refund(shop.dynamo, PREFIX, ended)
        page = shop.signed_in().get(f"/refunds/{ended.id}").page
    assert "may have been paid before" not in page.main
