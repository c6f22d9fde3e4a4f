"""Each wallet that misbehaves on purpose does what its description says."""

from __future__ import annotations

import pytest

from checkout.open_payments.errors import OutcomeUnknown
from checkout.open_payments.transport import Request
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


def test_never_credits_neither_fails_nor_pays(world: World) -> None:
    payment = world.pay(wallet("never-credits"), SHOP, 2000)
    world.clock.pass_(3000)
    incoming = world.network.state.incoming
    assert [each.received.value for each in incoming.values()] == [0]
    (outgoing,) = world.network.state.outgoing.values()
    assert (payment.status, outgoing.failed, outgoing.sent) == (201, False, 0)


def test_partial_delivers_half_and_fails(world: World) -> None:
    payment = world.pay(wallet("partial"), SHOP, 2000)
    assert payment.received()["receivedAmount"]["value"] == "1000"
    assert payment.received()["completed"] is False
    assert payment.sent()["failed"] is True
    assert 0 < int(payment.sent()["sentAmount"]["value"]) < 1835


def test_late_arrives_after_twenty_seconds(world: World) -> None:
    payment = world.pay(wallet("late"), SHOP, 2000)
    world.clock.pass_(19)
    assert payment.received()["receivedAmount"]["value"] == "0"
    world.clock.pass_(1)
    assert payment.received()["completed"] is True


def test_expensive_renewal_costs_a_tenth_more_the_second_time(world: World) -> None:
    incoming = world.incoming_payment(SHOP, 2000)
    debits = [
        int(world.quote(wallet("expensive-renewal"), incoming["id"])[1]["debitAmount"]["value"])
        for _ in range(3)
    ]
    assert debits == [1854, 2040, 2040]


def test_interact_timeout_is_over_at_once(world: World) -> None:
    back = callback(world.network.approve(asked(world, "interact-timeout")))
    assert back["result"] == "invalid_interaction"
    assert back["message"] == "interaction expired"


def test_too_small_tells_the_minimum(world: World) -> None:
    incoming = world.incoming_payment(SHOP, 2000)
    status, answer = world.quote(wallet("too-small"), incoming["id"])
    assert (status, answer["error"]["description"]) == (400, "non-positive receive amount")
    least = answer["error"]["details"]["minSendAmount"]
    assert least == {"value": "3708", "assetCode": "EUR", "assetScale": 2}


def test_says_failed_although_it_paid(world: World) -> None:
    payment: Payment = world.pay(wallet("says-failed"), SHOP, 2000)
    assert payment.sent()["failed"] is True
    assert payment.received()["completed"] is True


def test_no_quote_expiry_leaves_the_expiry_out(world: World) -> None:
    payment = world.pay(wallet("no-quote-expiry"), SHOP, 2000)
    assert "expiresAt" not in payment.quote
    assert payment.status == 201


def test_one_short_delivers_a_unit_less_and_says_it_is_complete(world: World) -> None:
    payment = world.pay(wallet("one-short"), SHOP, 2000)
    assert payment.sent()["failed"] is False
    fee = 19
    assert (
        int(payment.sent()["sentAmount"]["value"])
        == int(payment.quote["debitAmount"]["value"]) - fee
    )
    assert payment.received()["receivedAmount"]["value"] == "1999"
    assert payment.received()["completed"] is False


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


def test_held_sends_nothing_until_its_quote_has_ended_and_then_fails(world: World) -> None:
    payment = world.pay(wallet("held"), SHOP, 2000)
    world.clock.pass_(359)
    assert (payment.status, payment.sent()["failed"]) == (201, False)
    world.clock.pass_(1)
    assert payment.sent()["failed"] is True
    assert payment.received()["receivedAmount"]["value"] == "0"
    assert world.balance(wallet("held")) == 10_000_00


def test_receiver_away_reports_a_complete_payment_with_nothing_sent(world: World) -> None:
    payment = world.pay(wallet("receiver-away"), SHOP, 2000)
    sent, received = payment.sent(), payment.received()
    assert (payment.status, sent["failed"], sent["sentAmount"]["value"]) == (201, False, "0")
    assert (received["completed"], received["receivedAmount"]["value"]) == (False, "0")
    assert world.balance(wallet("receiver-away")) == 10_000_00


def test_stops_midway_reports_a_complete_payment_with_a_half_sent(world: World) -> None:
    payment = world.pay(wallet("stops-midway"), SHOP, 2000)
    world.clock.pass_(300)
    sent, received = payment.sent(), payment.received()
    assert (sent["failed"], sent["sentAmount"]["value"]) == (False, "917")
    assert (received["completed"], received["receivedAmount"]["value"]) == (False, "1000")


def test_fails_is_accepted_and_fails_with_nothing_sent(world: World) -> None:
    payment = world.pay(wallet("fails"), SHOP, 2000)
    sent = payment.sent()
    assert (payment.status, sent["failed"], sent["sentAmount"]["value"]) == (201, True, "0")
    assert world.balance(wallet("fails")) == 10_000_00
    assert world.balance(SHOP) == 0


def test_freezes_reports_less_than_what_arrived(world: World) -> None:
    payment = world.pay(wallet("freezes"), SHOP, 2000)
    world.clock.pass_(300)
    sent = payment.sent()
    assert (sent["failed"], sent["sentAmount"]["value"]) == (False, "458")
    assert payment.received()["receivedAmount"]["value"] == "1000"
    # Half of the 18.35 that the payment had without its fee is gone.
    assert 10_000_00 - world.balance(wallet("freezes")) in range(916, 919)


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


def test_refund_fails_with_nothing_sent(world: World) -> None:
    assert shown(refunded(world, "refund-fails")) == (True, 0, "0")
    assert world.balance(f"{HARBOR}/bob") == 10_000_00


def test_refund_hangs_and_never_fails(world: World) -> None:
    assert shown(refunded(world, "refund-hangs")) == (False, 0, "0")


def test_refund_partial_delivers_half_and_is_reported_as_complete(world: World) -> None:
    assert shown(refunded(world, "refund-partial")) == (False, 50, "500")


def test_refund_freezes_delivers_half_and_reports_a_quarter(world: World) -> None:
    assert shown(refunded(world, "refund-freezes")) == (False, 25, "500")


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
    tested = {name for name in globals() if name.startswith("test_")}
    for name in BEHAVIOURS.keys() - {"normal"}:
        assert name == "redirects" or world.wallet(wallet(name))["id"] == wallet(name)
        assert any(test.startswith(f"test_{name.replace('-', '_')}_") for test in tested), name
