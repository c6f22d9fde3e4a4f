from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from checkout.domain.erasure import (
    ERASED,
    Customer,
    body_without_wallet,
    event_without_wallet,
    in_session,
    without_wallet,
)
from checkout.domain.payment.attempt import EndedBy, Outcome, PaymentAttempt
from checkout.domain.payment.events import Event
from checkout.domain.payment.machine import HistoryEntry, IllegalTransition
from checkout.domain.session.record import LineItem, Session, Status
from checkout.domain.session.transitions import advance
from checkout.domain.webhooks.record import Delivery
from open_payments.models import Amount, Quote, WalletAddress
from tests.support.basics import NOW, a_session
from tests.support.samples import an_event

ALICE = Customer(("https://wallet.example/alice",))
HOST = Customer(("https://alice.example",))


@pytest.mark.parametrize(
    ("wallet", "text"),
    [
        (ALICE, "https://wallet.example/alice"),
        (ALICE, "https://wallet.example/alice/"),
        (ALICE, "HTTPS://Wallet.Example/Alice"),
        (ALICE, "$wallet.example/alice"),
        (ALICE, "wallet.example/alice"),
        (ALICE, r"https:\/\/wallet.example\/alice"),
        (ALICE, "https%3A%2F%2Fwallet.example%2Falice"),
        (ALICE, "%24wallet.example%2falice"),
        (HOST, "https://alice.example"),
        (HOST, "https://alice.example/"),
        (HOST, "$alice.example"),
    ],
)
def test_every_spelling_of_the_address_is_erased_wherever_it_stands(
    wallet: Customer, text: str
) -> None:
    assert wallet.cleaned(text) == ERASED
    for before, behind in [
        ("from ", "."),
        ("(", "), "),
        ('{"w":"', '"}'),
        ("?w=", "&x=1"),
        ("", "%22"),
    ]:
        assert wallet.cleaned(before + text + behind) == before + ERASED + behind


@pytest.mark.parametrize(
    ("wallet", "text"),
    [
        (ALICE, "https://wallet.example/alice2"),
        (ALICE, "https://wallet.example/alice-b"),
        (ALICE, "https://wallet.example/alice.b"),
        (ALICE, "https://wallet.example/alice/shop"),
        (ALICE, "https%3A%2F%2Fwallet.example%2Falice%2Fshop"),
        (ALICE, "https://wallet.example/alice%C3%A9"),
        (ALICE, "https://my-wallet.example/alice"),
        (ALICE, "https://a.wallet.example/alice"),
        (ALICE, "https://wallet.example/"),
        (ALICE, "wallet-example/alice"),
        (HOST, "https://alice.example/shop"),
        (HOST, "bob@alice.example"),
        (HOST, "https://alice.example.org"),
    ],
)
def test_another_wallet_is_left_alone(wallet: Customer, text: str) -> None:
    assert wallet.cleaned(text) == text


ANA = Customer(emails=("Ana+shop@example.com",))


@pytest.mark.parametrize(
    "text",
    [
        "ana+shop@example.com",
        "ANA+SHOP@EXAMPLE.COM",
        "ana%2Bshop%40example.com",
        "<ana+shop@example.com>",
        "mailto:ana+shop@example.com?subject=x",
        '{"email":"ana+shop@example.com"}',
        "https://shop.example/?m=ana%2Bshop%40example.com&x=1",
        "https://shop.example/?q=%22ana%2bshop%40example.com%22",
        "It is ana+shop@example.com.",
    ],
)
def test_every_spelling_of_an_e_mail_address_is_erased(text: str) -> None:
    after = ANA.cleaned(text)
    assert ERASED in after
    assert "shop@" not in after.casefold()
    assert "shop%40" not in after.casefold()


@pytest.mark.parametrize(
    "text",
    [
        "lana+shop@example.com",
        "j.ana+shop@example.com",
        "ana@example.com",
        "ana+shop@example.com.au",
        "ana+shop@example.community",
        "ana+shop@example-com",
    ],
)
def test_another_e_mail_address_is_left_alone(text: str) -> None:
    assert ANA.cleaned(text) == text


def test_a_customer_without_an_address_is_in_no_text() -> None:
    assert Customer().cleaned("any text") == "any text"


def test_a_customer_shows_in_no_text_about_them() -> None:
    assert "alice" not in repr(ALICE)
    assert ANA.emails[0] not in repr(ANA)


def paid(wallet: str = "https://wallet.example/alice") -> Session:
    cost = Amount(2000, "USD", 2)
    return a_session(
        Status.COMPLETED,
        customer=WalletAddress(wallet, "USD", 2, "https://a.example", "https://r.example", "Al"),
        quote=Quote(f"{wallet}/quotes/1", cost, cost, None),
        outgoing_payment=f"{wallet}/outgoing-payments/1",
        received=2000,
        history=(HistoryEntry(NOW, "reference_stored"),),
    )


def erased(session: Session) -> Session:
    return without_wallet(advance(session, Event.ERASED, now=NOW, writer="w"), ALICE).after


def test_the_customers_session_loses_what_they_gave_at_a_link() -> None:
    before = replace(
        paid(),
        customer_details="v1.00000000.ZGV0YWlscw",
        customer_further="v1.00000000.ZnVydGhlcg",
        customer_mark="0123",
        customer_marks=("4567",),
        echo_json='{"customer_email":"ana@example.com","locale":"de"}',
    )
    after = erased(before)
    assert (after.customer_details, after.customer_further, after.customer_mark) == (None,) * 3
    assert after.customer_marks is None
    assert after.echo_json == '{"locale":"de"}'
    others = without_wallet(advance(before, Event.ERASED, now=NOW, writer="w"), HOST).after
    assert others.customer_details == before.customer_details
    assert others.customer_further == before.customer_further
    assert others.echo_json == before.echo_json


@pytest.mark.parametrize("echo", [None, '{"locale":"de"}'])
def test_what_names_no_customer_is_left_as_it_is(echo: str | None) -> None:
    assert erased(replace(paid(), echo_json=echo)).echo_json == echo


def test_the_customers_session_loses_the_wallet_and_what_is_at_it() -> None:
    before = replace(paid(), later_json='{"of_tomorrow":"a payment of hers"}')
    after = erased(before)
    assert in_session(before, ALICE)
    assert not in_session(after, ALICE)
    assert not before.erased
    assert after.erased
    assert "alice" not in repr(after)
    assert after == replace(
        before,
        customer=None,
        quote=None,
        outgoing_payment=None,
        later_json=None,
        version=2,
        writer="w",
        history=(*before.history, HistoryEntry(NOW, "erased")),
    )


def test_another_customers_session_loses_only_the_text_of_the_address() -> None:
    said = "https://wallet.example/alice"
    before = replace(
        paid("https://wallet.example/bob"),
        metadata_json=json.dumps({"friend": said, "count": 1}),
        line_items=(LineItem("usd", "Gift", f"for {said}.", 1000, 2),),
        success_url="https://shop.example/?w=https%3A%2F%2Fwallet.example%2Falice",
        cancel_url=said,
        history=(HistoryEntry(NOW, "canceled", f"by {said}"),),
    )
    after = erased(before)
    assert in_session(before, ALICE)
    assert not in_session(after, ALICE)
    assert not after.erased
    assert after.metadata == {"friend": ERASED, "count": 1}
    assert after.line_items[0].description == "for erased."
    assert after.success_url == "https://shop.example/?w=erased"
    assert after.history[0].note == "by erased"
    assert after.cancel_url == said  # the merchant's own address, which a browser is sent to
    assert (after.customer, after.quote) == (before.customer, before.quote)
    assert after.outgoing_payment == before.outgoing_payment


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("checked", [None, NOW])
def test_only_an_ended_session_whose_money_is_accounted_for_can_be_erased(
    status: Status, checked: object
) -> None:
    session = a_session(status, check_at=checked)
    if session.terminal and checked is None:
        after = advance(session, Event.ERASED, now=NOW, writer="w").after
        assert (after.status, after.updated_at) == (status, session.updated_at)
        return
    with pytest.raises(IllegalTransition):
        advance(session, Event.ERASED, now=NOW, writer="w")


def test_an_event_loses_the_wallet_the_payment_and_the_receivers_answers() -> None:
    told = {
        "id": "cs_1",
        "status": "completed",
        "metadata": {"w": "$wallet.example/alice"},
        "outgoing_payment": "https://wallet.example/alice/outgoing-payments/1",
        "customer_wallet": "https://wallet.example/alice",
    }
    answered = Delivery(at=NOW, duration_ms=1, status=200, answer="thanks, Alice")
    event = an_event(body=json.dumps(told), deliveries=(answered,))
    after = event_without_wallet(event, ALICE)
    gone = {"outgoing_payment": None, "customer_wallet": None, "metadata": {"w": ERASED}}
    assert json.loads(after.body) == {**told, **gone}
    assert list(json.loads(after.body)) == list(told)
    assert after.deliveries == (replace(answered, answer=None),)
    assert after.version == event.version + 1
    assert event_without_wallet(after, ALICE) is after


def test_an_object_within_an_events_body_is_erased_too() -> None:
    inner = {"id": "cs_1", "customer_wallet": "https://wallet.example/alice"}
    event = an_event(body=json.dumps({"data": {"object": inner}, "type": "x"}))
    after = json.loads(event_without_wallet(event, ALICE).body)
    assert after == {"data": {"object": {"id": "cs_1", "customer_wallet": None}}, "type": "x"}


def test_of_the_customers_session_the_address_that_the_shop_gave_goes_too() -> None:
    kept = {"metadata": {"customer_email": "of whom it was given to"}, "email": "of the shop"}
    told = {
        "customer_email": "ana@example.com",
        "customer_details": {"email": "ana@example.com", "name": None},
        "charges": [{"billing_details": {"email": "ana@example.com"}}],
        **kept,
    }
    body = json.dumps({"data": {"object": told}})
    after = json.loads(body_without_wallet(body, ALICE, theirs=True))
    assert after["data"]["object"] == {
        "customer_email": None,
        "customer_details": {"email": None, "name": None},
        "charges": [{"billing_details": {"email": None}}],
        **kept,
    }
    assert body_without_wallet(body, ALICE) == body


def test_of_a_list_of_sessions_only_the_customers_own_are_erased() -> None:
    sessions = [
        {"customer_wallet": f"https://wallet.example/{name}", "outgoing_payment": "https://w/1"}
        for name in ("alice", "bob")
    ]
    after = json.loads(body_without_wallet(json.dumps({"data": sessions}), ALICE))
    assert after == {"data": [dict.fromkeys(sessions[0]), sessions[1]]}


@pytest.mark.parametrize("body", ["cs_3kTMd0wvG8PZx5nNq2LrYb", "v1.c2VhbGVk.dGV4dA"])
def test_an_answer_that_is_no_json_stays(body: str) -> None:
    assert body_without_wallet(body, ALICE, theirs=True) == body


def test_an_event_that_only_mentions_the_wallet_keeps_its_own_customer() -> None:
    told = {
        "customer_wallet": "https://wallet.example/bob",
        "metadata": {"w": "$wallet.example/alice"},
    }
    event = an_event(body=json.dumps(told))
    after = event_without_wallet(event, ALICE)
    assert json.loads(after.body) == {**told, "metadata": {"w": ERASED}}
    assert event_without_wallet(an_event(), ALICE) == an_event()
    failed = Delivery(at=NOW, duration_ms=1, error="no route for https://wallet.example/alice")
    said = event_without_wallet(an_event(deliveries=(failed,)), ALICE)
    assert said.deliveries[0].error == "no route for erased"


ATTEMPTS = (
    PaymentAttempt(1, NOW, typed="$wallet.example/bob", wallet="https://wallet.example/bob"),
    PaymentAttempt(
        2,
        NOW,
        typed="alice.example",  # her own domain, which leads to her wallet
        wallet="https://wallet.example/alice",
        incoming_payment="https://merchant.example/in/1",
        quote=Quote("https://wallet.example/q/1", Amount(1, "EUR", 2), Amount(1, "USD", 2), None),
        outgoing_payment="https://wallet.example/out/1",
        outcome=Outcome.REFUSED,
        ended_by=EndedBy.CUSTOMER_WALLET,
        ended_at=NOW,
        received=0,
    ),
    PaymentAttempt(3, NOW, typed="https://Wallet.example/alice/", outcome=Outcome.FAILED),
)


@pytest.mark.parametrize("wallet", [ALICE, HOST])
def test_a_wallet_is_erased_from_the_attempts_of_a_session_that_another_paid(
    wallet: Customer,
) -> None:
    session = a_session(Status.CANCELED, payment_attempts=ATTEMPTS)
    assert in_session(session, wallet)
    erased = advance(session, Event.ERASED, now=NOW, writer="w")
    bobs, hers, typed = without_wallet(erased, wallet).after.payment_attempts
    assert bobs == ATTEMPTS[0]
    empty: dict[str, Any] = {"typed": None, "wallet": None, "quote": None, "outgoing_payment": None}
    assert hers == replace(ATTEMPTS[1], **empty)
    assert typed == (ATTEMPTS[2] if wallet is HOST else replace(ATTEMPTS[2], typed=None))
    assert not in_session(without_wallet(erased, wallet).after, wallet)
