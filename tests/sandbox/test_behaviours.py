"""Each wallet that misbehaves on purpose does what its description says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from open_payments.errors import OutcomeUnknown
from open_payments.transports import Request
from sandbox.wallets.behaviours import BEHAVIOURS
from sandbox.wallets.interaction import NoRedirect
from tests.support.wallet_client import CEDAR, HARBOR, SHOP, Payment, World, callback, jwk


def wallet(name: str) -> str:
    return f"{CEDAR}/{name}"


def asked(world: World, name: str) -> str:
    """Return the interact URL of a grant for this wallet."""
    incoming = world.incoming_payment(SHOP, 2000)
    return str(world.ask(wallet(name), {"receiver": incoming["id"]})["interact"]["redirect"])


def test_decline_declines_even_an_approval(world: World) -> None:
    back = callback(world.network.approve(asked(world, "decline")))
    assert back == {"order": "42", "result": "grant_rejected"}


def test_no_funds_is_accepted_and_fails_after_a_moment(world: World) -> None:
    payment = world.pay(wallet("no-funds"), SHOP, 2000)
    assert payment.status == 201
    assert payment.sent()["failed"] is False
    world.clock.pass_(0.3)
    sent = payment.sent()
    assert sent["failed"] is True
    assert sent["metadata"]["cancellationReason"] == "Account does not have enough balance."
    assert world.balance(wallet("no-funds")) == 0
    assert payment.received()["receivedAmount"]["value"] == "0"


def test_slow_takes_three_seconds_for_every_answer(world: World) -> None:
    world.wallet(wallet("slow"))
    incoming = world.incoming_payment(SHOP, 2000)
    world.slept.clear()
    status, _ = world.quote(wallet("slow"), incoming["id"])
    assert status == 201
    assert set(world.slept) == {3}


def test_quote_expired_lives_one_second(world: World) -> None:
    payment = world.pay(wallet("quote-expired"), SHOP, 2000)
    assert payment.status == 400
    assert payment.outgoing["error"]["description"] == "invalid quote"


def test_redirects_leads_to_a_wallet_of_the_other_provider(world: World) -> None:
    answer = world.network.handle(Request("GET", wallet("redirects"), {}))
    assert (answer.status, answer.headers["location"]) == (302, f"{HARBOR}/bob")
    assert world.wallet(answer.headers["location"])["id"] == f"{HARBOR}/bob"


def test_unpeered_refuses_the_receiver(world: World) -> None:
    incoming = world.incoming_payment(SHOP, 2000)
    status, answer = world.quote(wallet("unpeered"), incoming["id"])
    assert (status, answer["error"]["description"]) == (400, "invalid receiver")


def test_no_return_approves_and_sends_nobody_back(world: World) -> None:
    with pytest.raises(NoRedirect):
        world.network.approve(asked(world, "no-return"))


def test_dies_after_create_pays_and_says_nothing(world: World) -> None:
    name = wallet("dies-after-create")
    with pytest.raises(OutcomeUnknown):
        world.pay(name, SHOP, 2000)
    assert world.balance(SHOP) == 2000
    assert world.balance(name) < 10_000_00


# Of a payment of 20.00 USD, for which 18.35 EUR and a fee are due: whether it is reported as
# failed, how much as sent, what arrived, whether that is complete, and in the end how much is gone.
REPORTED = {
    "fails": (True, 0, 0, False, 0),
    "freezes": (False, 458, 1000, False, 916),
    "held": (True, 0, 0, False, 0),
    "late": (False, 1835, 2000, True, 1854),
    "never-credits": (False, 0, 0, False, 1854),
    "one-over": (False, 1835, 2001, True, 1854),
    "one-short": (False, 1835, 1999, False, 1854),
    "partial": (True, 917, 1000, False, 936),
    "receiver-away": (False, 0, 0, False, 0),
    "says-failed": (True, 1835, 2000, True, 1854),
    "stops-midway": (False, 917, 1000, False, 917),
}
LATER = {"held": 360, "late": 20}  # seconds


@pytest.mark.parametrize("name", REPORTED)
def test_a_payment_is_accepted_and_then_reported_for_good_as_the_description_says(
    world: World, name: str
) -> None:
    payment = world.pay(wallet(name), SHOP, 2000)

    def reported() -> tuple[bool, int, int, bool, int]:
        sent, received = payment.sent(), payment.received()
        gone = 10_000_00 - world.balance(wallet(name))
        amounts = (sent["sentAmount"], received["receivedAmount"])
        of_sent, of_received = (int(each["value"]) for each in amounts)
        return sent["failed"], of_sent, of_received, received["completed"], gone

    assert payment.status == 201
    if name in LATER:
        world.clock.pass_(LATER[name] - 1)
        assert reported()[:4] == (False, 0, 0, False)
        world.clock.pass_(1)
    assert reported()[:4] == REPORTED[name][:4]
    world.clock.pass_(200 if name in LATER else 300)
    assert reported() == REPORTED[name]


def test_what_no_debit_stands_for_comes_with_the_whole_only(world: World) -> None:
    """Of a payment of one unit, nothing is debited for the half; so nothing more may arrive."""
    world.network.behaviours = {
        **BEHAVIOURS,
        "normal": replace(BEHAVIOURS["normal"], over_by=3),
        "partial": replace(BEHAVIOURS["partial"], over_by=3),
    }
    half = world.pay(wallet("partial"), SHOP, 1)
    whole = world.pay(wallet("alice"), SHOP, 1)
    world.clock.pass_(300)
    assert half.sent()["failed"]
    assert half.received()["receivedAmount"]["value"] == "0"
    assert whole.received()["receivedAmount"]["value"] == "4"


def test_expensive_renewal_costs_a_tenth_more_the_second_time(world: World) -> None:
    incoming = world.incoming_payment(SHOP, 2000)
    debits = [
        int(world.quote(wallet("expensive-renewal"), incoming["id"])[1]["debitAmount"]["value"])
        for _ in range(3)
    ]
    assert debits == [1854, 2040, 2040]


def test_boasts_says_that_it_paid_a_tenth_more(world: World) -> None:
    payment = world.pay(wallet("boasts"), SHOP, 2000)
    assert payment.sent()["debitAmount"]["value"] == "2039"
    assert world.balance(wallet("boasts")) == 10_000_00 - 1854


def test_interact_timeout_is_over_at_once(world: World) -> None:
    back = callback(world.network.approve(asked(world, "interact-timeout")))
    assert back["result"] == "invalid_interaction"
    assert back["message"] == "interaction expired"


@pytest.mark.parametrize(("name", "answered"), [("stumbles", 502), ("reads-no-keys", 400)])
def test_an_approval_cannot_be_redeemed_for_half_a_minute(
    world: World, name: str, answered: int
) -> None:
    incoming = world.incoming_payment(SHOP, 2000)
    pending = world.ask(wallet(name), {"receiver": incoming["id"]})
    reference = world.approved_reference(pending)
    world.clock.pass_(29)
    onward = pending["continue"]
    body, token = {"interact_ref": reference}, onward["access_token"]["value"]
    assert world.call("POST", onward["uri"], body, token)[0] == answered
    world.clock.pass_(1)
    assert world.call("POST", onward["uri"], body, token)[0] == 200


def test_too_small_tells_the_minimum(world: World) -> None:
    incoming = world.incoming_payment(SHOP, 2000)
    status, answer = world.quote(wallet("too-small"), incoming["id"])
    assert (status, answer["error"]["description"]) == (400, "non-positive receive amount")
    least = answer["error"]["details"]["minSendAmount"]
    assert least == {"value": "3708", "assetCode": "EUR", "assetScale": 2}


def test_no_quote_expiry_leaves_the_expiry_out(world: World) -> None:
    payment = world.pay(wallet("no-quote-expiry"), SHOP, 2000)
    assert "expiresAt" not in payment.quote
    assert payment.status == 201


def test_paid_from_outside_pays_without_an_approval(world: World) -> None:
    incoming = world.incoming_payment(SHOP, 2000)
    status, quote = world.quote(wallet("paid-from-outside"), incoming["id"])
    assert (status, quote["receiveAmount"]["value"]) == (201, "2000")
    assert world.balance(SHOP) == 2000
    assert world.balance(wallet("paid-from-outside")) == 10_000_00
    _, answer = world.call("GET", incoming["id"], token=incoming["token"])
    assert (answer["completed"], answer["receivedAmount"]["value"]) == (True, "2000")
    status, answer = world.quote(wallet("paid-from-outside"), incoming["id"])
    assert (status, answer["error"]["description"]) == (400, "invalid receiver")


def test_closed_from_outside_has_nothing_left_to_pay(world: World) -> None:
    payment = world.pay(wallet("closed-from-outside"), SHOP, 2000)
    assert payment.status == 400
    assert payment.outgoing["error"]["description"] == "invalid quote"
    assert payment.received()["completed"] is True
    assert payment.received()["receivedAmount"]["value"] == "0"
    assert world.balance(wallet("closed-from-outside")) == 10_000_00


def test_never_closes_keeps_the_shops_incoming_payment_open(world: World) -> None:
    payment = world.pay(wallet("never-closes"), SHOP, 2000)
    world.clock.pass_(300)
    for _ in range(2):
        status, _ = world.call(
            "POST", f"{payment.incoming['id']}/complete", token=world.shop_token()
        )
        assert status == 403
    assert payment.sent()["failed"] is False
    (incoming,) = world.network.state.incoming.values()
    assert (incoming.completed, incoming.received.value) == (False, 0)


def refunded(world: World, name: str) -> Payment:
    """Pay the shop from this wallet, and send it 10.00 EUR from Bob's."""
    world.network.register_key(wallet(name), jwk())
    assert world.pay(wallet(name), SHOP, 2000).status == 201
    assert world.balance(SHOP) == 2000, "it pays as others do"
    return world.pay(f"{HARBOR}/bob", wallet(name), 1000)


def shown(payment: Payment) -> tuple[bool, int, str]:
    """Return what both wallets say later: failed, the sent part of the debit, and received."""
    payment.world.clock.pass_(400)
    sent, received = payment.sent(), payment.received()["receivedAmount"]["value"]
    whole = int(payment.quote["debitAmount"]["value"])
    return sent["failed"], round(100 * int(sent["sentAmount"]["value"]) / whole), received


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("refund-fails", (True, 0, "0")),
        ("refund-freezes", (False, 25, "500")),
        ("refund-hangs", (False, 0, "0")),
        ("refund-partial", (False, 50, "500")),
    ],
)
def test_a_refund_comes_to_what_the_description_says(
    world: World, name: str, reported: tuple[bool, int, str]
) -> None:
    assert shown(refunded(world, name)) == reported
    if name == "refund-fails":
        assert world.balance(f"{HARBOR}/bob") == 10_000_00


def test_refund_away_misses_only_the_first(world: World) -> None:
    assert shown(refunded(world, "refund-away")) == (False, 0, "0")
    again = world.pay(f"{HARBOR}/bob", wallet("refund-away"), 1000)
    assert shown(again) == (False, 99, "1000")


def test_refund_unseen_takes_the_money_and_shows_nothing(world: World) -> None:
    payment = refunded(world, "refund-unseen")
    had = 10_000_00 - 1854
    assert shown(payment) == (False, 99, "0")
    assert payment.received()["completed"] is False
    status, public = world.send(Request("GET", payment.incoming["id"], {}))
    assert (status, public["receivedAmount"]["value"]) == (200, "0")
    assert world.balance(wallet("refund-unseen")) == had + 1000


def test_refund_gone_is_no_wallet_once_it_has_paid(world: World) -> None:
    gone = wallet("refund-gone")
    world.network.register_key(gone, jwk())
    token = world.shop_token(gone)
    server = world.wallet(gone)["resourceServer"]
    assert world.pay(gone, SHOP, 2000).status == 201
    assert world.send(Request("GET", gone, {"accept": "application/json"}))[0] == 404
    body = {"walletAddress": gone}
    status, answer = world.call("POST", f"{server}/incoming-payments", body, token)
    assert (status, answer["error"]["description"]) == (400, "Could not get wallet address")


def test_every_behaviour_has_a_wallet_and_a_test_here(world: World) -> None:
    source = Path(__file__).read_text("utf-8")
    for name in BEHAVIOURS.keys() - {"normal"}:
        assert name == "redirects" or world.wallet(wallet(name))["id"] == wallet(name)
        assert f"def test_{name.replace('-', '_')}_" in source or f'"{name}"' in source, name
