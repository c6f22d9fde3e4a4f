"""Sign up with a shop of one's own, in front of the sandbox's wallets: no key, no shell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from checkout.domain.ground.errors import Conflict, MerchantUnproven, Unavailable
from checkout.domain.merchant.people import Role, SignUp
from checkout.domain.merchant.record import Merchant, Ownership, Suspension
from checkout.flows.merchant import api_keys, setup, suspension
from checkout.flows.people import people
from checkout.flows.session.create import create_session
from open_payments.errors import NotSent
from open_payments.transports import Response
from tests.support import services
from tests.support.authenticator import Authenticator
from tests.support.dashboard_pages import BASE, Dashboard, dashboard_over
from tests.support.flows import CEDAR, HARBOR, PREFIX, World, answering, on, raising
from tests.support.hosted_pages import Answer
from tests.support.sign_up import (
    TEA,
    confirm,
    new_shops,
    newest,
    returned,
    sign_up,
    signed_up,
    wallets_page,
)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def shop(world: World) -> Iterator[Dashboard]:
    with dashboard_over(world, sign_up=SignUp.OPEN, wallets=lambda: world.services.wallets) as it:
        yield it


def alert(answer: Answer) -> str:
    return answer.page.one("div", role="alert").text[0]


def test_from_a_wallet_address_to_a_paid_session_without_key_file_or_shell(
    world: World, shop: Dashboard
) -> None:
    browser = shop.browser()
    browser.get("/sign-up")
    found = browser.post("/sign-up", {"wallet_address": TEA.replace("https://", "$")}).page
    assert "Belongs to Harbor Tea" in found.main
    assert "You receive JPY" in found.main
    assert "A wallet can have only one shop here." in found.main
    assert found.one("input", name="name").attributes["value"] == "Harbor Tea"
    assert sign_up(browser, name="Tea").location == "/dashboard"
    first = browser.get().page.main
    assert "Confirm that the wallet is yours" in first
    key = browser.post("/keys", {"name": "Server", "preset": "usual"}).secret
    merchant = newest(shop)
    with pytest.raises(MerchantUnproven):
        create_session(world.services, api_keys.active_key(world.services, key), world.new(), None)
    assert confirm(world, browser).location == "/dashboard"
    assert "Confirm that the wallet is yours" not in browser.get().page.main
    world.clock.pass_time(60)  # a process may know the merchant from before
    active = api_keys.active_key(world.services, key)
    asked = world.new(2000, "jpy")
    made = json.loads(create_session(world.services, active, asked, None).body)
    paid = world.pay(world.session(made["id"]))
    assert paid.status == "completed"
    assert paid.merchant == merchant.id
    assert world.services.merchants.find_by_wallet(TEA) is not None
    log = browser.get("/audit").page.main
    assert "Signed up with this shop" in log
    assert "Confirmed that the wallet is the shop" in log


def test_the_owner_signs_in_again_with_the_passkey(shop: Dashboard) -> None:
    device = Authenticator(BASE)
    browser = signed_up(shop, device=device)
    [owner] = shop.services.people.members_of(newest(shop).id)
    assert (owner.name, owner.role) == ("Tea", Role.OWNER)
    browser.post("/sign-out")
    assert shop.browser().use(device).location == "/dashboard/overview"


@pytest.mark.parametrize("closed", [SignUp.CLOSED, SignUp.INVITATION])
def test_where_sign_up_is_not_open_every_door_of_it_is_a_404(
    shop: Dashboard, closed: SignUp
) -> None:
    shop.services = replace(shop.services, sign_up=closed)
    browser = shop.browser()
    browser.get("/sign-in")
    assert "Sign up" not in browser.get("/sign-in").page.main
    fields = {"wallet_address": TEA, "name": "Tea"}
    answers = [browser.get("/sign-up"), browser.get("/sign-up/nothing")]
    answers += [browser.post(f"/sign-up{end}", fields) for end in ("", "/options", "/passkey")]
    assert [each.status for each in answers] == [404] * 5
    assert new_shops(shop) == []


def test_an_invitation_lets_one_shop_in(shop: Dashboard) -> None:
    shop.services = replace(shop.services, sign_up=SignUp.INVITATION)
    made = people.invite_shop(shop.services, name="Ada")
    token = made.link.removeprefix(f"{BASE}/dashboard/sign-up/")
    signed_up(shop, token=token)
    [owner] = shop.services.people.members_of(newest(shop).id)
    assert owner.name == "Ada"
    assert sign_up(shop.browser(), token=token, name="Second").status == 404
    assert shop.browser().get(f"/sign-up/{token}").status == 404
    assert new_shops(shop, "Second") == []


def test_an_invitation_of_one_kind_opens_no_door_of_the_other(
    world: World, shop: Dashboard
) -> None:
    made = people.invite_shop(shop.services, name="Ada")
    token = made.link.rpartition("/")[2]
    assert shop.browser().get(f"/invitation/{token}").status == 404
    member = people.invite_to(shop.services, world.merchant.id, name="Eve", role=Role.OWNER)
    other = member.link.rpartition("/")[2]
    assert shop.browser().get(f"/sign-up/{other}").status == 404
    assert sign_up(shop.browser(), token=other).status == 404


def test_of_two_that_use_an_invitation_at_once_one_has_a_shop(shop: Dashboard) -> None:
    token = people.invite_shop(shop.services, name="Ada").link.rpartition("/")[2]
    shop.meanwhile("challenges", "take", lambda: signed_up(shop, token=token, name="First"))
    assert sign_up(shop.browser(), token=token, name="Second").status == 404
    assert len(new_shops(shop, "First")) == 1
    assert new_shops(shop, "Second") == []


def test_a_claim_on_the_wallet_of_a_shop_looks_like_any_other(
    world: World, shop: Dashboard
) -> None:
    shapes = []
    for wallet in (world.shop, TEA):
        browser = shop.browser()
        browser.get("/sign-up")
        shapes.append(browser.post("/sign-up", {"wallet_address": wallet}).page.shape())
    assert shapes[0] == shapes[1], "who sells here is no stranger's business"
    browser = signed_up(shop, wallet=world.shop, name="Copy")
    copy = newest(shop, "Copy")
    assert copy.suspended is Suspension.ALONE
    assert world.services.merchants.find_by_wallet(world.shop) == world.merchant
    # The wallet's owner is told, and nobody else can get so far.
    refused = confirm(world, browser)
    assert refused.status == 409
    assert "another shop here" in alert(refused)
    assert "This second shop cannot sell." in alert(refused)
    assert newest(shop, "Copy").suspended is Suspension.ALONE


def test_the_operator_may_set_up_a_wallet_that_somebody_has_claimed(
    world: World, shop: Dashboard
) -> None:
    browser = signed_up(shop)
    assert setup.set_up(world.services, setup.NewMerchant("Real", TEA)).merchant.name == "Real"
    assert confirm(world, browser).status == 409


def test_a_wrong_hash_or_a_refusal_proves_nothing(world: World, shop: Dashboard) -> None:
    browser = signed_up(shop)
    early = browser.get("/wallet/callback?interact_ref=x&hash=y")
    assert (early.status, "Confirm the wallet again" in alert(early)) == (400, True)
    back = returned(world, browser)
    assert browser.get("/wallet/callback?result=grant_rejected").status == 200
    forged = browser.get("/wallet/callback?interact_ref=x&hash=y")
    assert forged.status == 400
    assert newest(shop).ownership is Ownership.UNPROVEN
    # Anybody can send the browser there. The approval waits for the wallet's own answer.
    assert browser.get(back).location == "/dashboard"
    assert newest(shop).ownership is Ownership.PROVEN


def test_of_two_returns_at_once_one_redeems_the_approval(world: World, shop: Dashboard) -> None:
    browser = signed_up(shop)
    back = returned(world, browser)
    first: list[Answer] = []
    shop.meanwhile("challenges", "take", lambda: first.append(browser.get(back)))
    assert browser.get(back).status == 400
    assert [each.location for each in first] == ["/dashboard"]
    assert world.transport.count("POST", "/continue/") == 1


def test_a_wallet_that_asks_to_wait_is_asked_again(world: World, shop: Dashboard) -> None:
    browser = signed_up(shop)
    back = urlsplit(world.network.approve(wallets_page(browser)))
    waits = browser.get(f"/wallet/callback?{back.query}")
    assert "One moment" in waits.page.main
    world.clock.pass_time(10)
    assert browser.get(f"/wallet/callback?{back.query}").location == "/dashboard"


def test_a_wallet_that_stumbles_proves_its_owner_with_one_approval(
    world: World, shop: Dashboard
) -> None:
    browser = signed_up(shop)
    back = returned(world, browser)
    world.client_host_down = True  # so the wallet cannot read who asks
    for _ in range(3):
        waits = browser.get(back)
        assert "One moment" in waits.page.main
        assert newest(shop).ownership is Ownership.UNPROVEN
        world.clock.pass_time(10)
    world.client_host_down = False
    assert browser.get(back).location == "/dashboard"
    assert newest(shop).ownership is Ownership.PROVEN


def test_a_proof_that_no_wallet_takes_is_given_up_after_three_minutes(
    world: World, shop: Dashboard
) -> None:
    browser = signed_up(shop)
    back = returned(world, browser)
    world.transport.before = on("POST", "/continue/", raising(NotSent("down")))
    began = world.clock.now()
    while (answer := browser.get(back)).status == 200:
        world.clock.pass_time(10)
    assert answer.status == 424
    assert 170 < (world.clock.now() - began).total_seconds() < 200


def test_the_approval_is_given_back_and_reads_only(world: World, shop: Dashboard) -> None:
    browser = signed_up(shop)
    confirm(world, browser)
    assert ("DELETE", True) in [
        (method, "/continue/" in url) for method, url in world.transport.sent
    ]
    assert world.transport.count("POST", "/outgoing-payments") == 0


def test_a_wallet_that_refuses_or_does_not_answer_says_so(world: World, shop: Dashboard) -> None:
    browser = signed_up(shop)
    world.client_host_down = True  # so the wallet cannot read who asks
    refused = browser.post("/wallet/confirm")
    assert refused.status == 424
    assert "Your wallet refused" in alert(refused)
    world.client_host_down = False
    world.transport.before = raising(NotSent("nobody answers"))
    silent = browser.post("/wallet/confirm")
    assert silent.status == 424
    assert "does not answer" in alert(silent)
    world.transport.before = lambda request: None
    assert confirm(world, browser).location == "/dashboard"


def test_a_shop_that_the_operator_suspends_cannot_prove_its_way_back(
    world: World, shop: Dashboard
) -> None:
    browser = signed_up(shop)
    back = returned(world, browser)
    suspension.suspend(shop.services, newest(shop).id)
    assert browser.get(back).status == 400
    assert browser.post("/wallet/confirm").status == 400
    assert newest(shop).suspended is Suspension.ALONE
    resumed = suspension.resume(shop.services, newest(shop).id)
    assert (resumed.suspended, resumed.ownership) == (None, Ownership.PROVEN)
    assert world.services.merchants.find_by_wallet(TEA) == resumed


def test_the_operator_cannot_vouch_for_a_wallet_of_another_shop(
    world: World, shop: Dashboard
) -> None:
    signed_up(shop, wallet=world.shop, name="Copy")
    with pytest.raises(Conflict, match="another shop"):
        suspension.resume(shop.services, newest(shop, "Copy").id)
    assert newest(shop, "Copy").suspended is Suspension.ALONE


def test_a_proven_shop_is_suspended_and_resumed_like_any_other(
    world: World, shop: Dashboard
) -> None:
    browser = signed_up(shop)
    confirm(world, browser)
    suspension.suspend(shop.services, newest(shop).id)
    assert newest(shop).ownership is Ownership.PROVEN
    assert browser.post("/wallet/confirm").status == 400
    assert suspension.resume(shop.services, newest(shop).id).suspended is None


def test_a_wallet_that_takes_the_approval_back_proves_nothing(
    world: World, shop: Dashboard
) -> None:
    browser = signed_up(shop)
    back = returned(world, browser)
    answering(world, "POST", "/continue/", lambda _: Response(401, {}, b"{}"))
    refused = browser.get(back)
    assert refused.status == 424
    assert "Your wallet refused" in alert(refused)
    assert newest(shop).ownership is Ownership.UNPROVEN


def test_a_shop_that_is_changed_meanwhile_is_proven_by_another_try(
    world: World, shop: Dashboard
) -> None:
    browser = signed_up(shop)
    changed = newest(shop).changed(contact="a@shop.example")
    shop.meanwhile("merchants", "move", lambda: shop.services.merchants.replace(changed))
    assert confirm(world, browser).status == 409
    assert newest(shop).suspended is Suspension.ALONE
    assert confirm(world, browser).location == "/dashboard"
    assert newest(shop).suspended is None


def test_a_suspension_in_the_middle_of_a_proof_counts_more(
    world: World, shop: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = signed_up(shop)
    move = shop.services.merchants.move

    def meanwhile(merchant: Merchant) -> Merchant | None:
        monkeypatch.undo()
        found = move(merchant)
        suspension.suspend(shop.services, merchant.id)
        return found

    monkeypatch.setattr(shop.services.merchants, "move", meanwhile)
    assert confirm(world, browser).status == 400
    assert newest(shop).suspended is Suspension.ALONE


def test_a_proof_that_was_interrupted_is_finished_by_the_next(
    world: World, shop: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = signed_up(shop)
    with monkeypatch.context() as patched:
        patched.setattr(shop.services.api_keys, "settle", raising(Unavailable("no answer")))
        assert confirm(world, browser).status == 503
    assert world.services.merchants.find_by_wallet(TEA) == newest(shop)
    assert newest(shop).suspended is Suspension.ALONE
    assert confirm(world, browser).location == "/dashboard"
    assert newest(shop).suspended is None


def test_a_wallet_without_a_name_needs_one_for_the_shop(world: World, shop: Dashboard) -> None:
    world.network.state.accounts[TEA].public_name = ""
    refused = sign_up(shop.browser(), name="")
    assert refused.status == 400
    assert "Give your shop's name" in alert(refused)
    assert sign_up(shop.browser(), name="Tea").location == "/dashboard"


@pytest.mark.parametrize(
    ("wallet", "name", "said"),
    [
        ("", "Tea", "enter your wallet address"),
        ("4111 1111 1111 1111", "Tea", "card number"),
        (f"{HARBOR}/nobody", "Tea", "no Open Payments wallet"),
        (TEA, "x" * 101, "shop's name"),
        (TEA, "Tea\u202e", "shop's name"),
    ],
)
def test_a_wrong_address_or_name_is_told_and_nothing_is_made(
    shop: Dashboard, wallet: str, name: str, said: str
) -> None:
    answer = sign_up(shop.browser(), wallet=wallet, name=name)
    assert answer.status == 400
    assert said in alert(answer)
    assert [each.name for each in suspension.every(shop.services)] == ["Shop"]


def test_a_wallets_server_that_refuses_us_is_not_told_as_a_missing_wallet(
    world: World, shop: Dashboard
) -> None:
    answering(world, "GET", urlsplit(TEA).path, lambda request: Response(403, {}, b""))
    assert "refused to answer (403)" in alert(sign_up(shop.browser()))


def test_the_same_address_may_sign_up_five_times_a_day(world: World, shop: Dashboard) -> None:
    limited = services.limits(world.clock, world.dynamo, PREFIX, 600)
    shop.services = replace(shop.services, limits=limited)
    for number in range(5):
        signed_up(shop, name=f"Tea {number}")
    another_process = services.limits(world.clock, world.dynamo, PREFIX, 600)
    shop.services = replace(shop.services, limits=another_process)
    refused = sign_up(shop.browser(), name="Tea 5")
    assert refused.status == 429
    assert int(refused.headers["retry-after"]) > 0
    assert new_shops(shop, "Tea 5") == []
    world.clock.pass_time(24 * 3600)
    signed_up(shop, name="Tea 6")


def test_the_document_of_a_claimed_wallet_never_changes_hands(
    world: World, shop: Dashboard
) -> None:
    browser = signed_up(shop)
    moved = {"id": f"{CEDAR}/alice", "publicName": "Alice", "assetCode": "EUR", "assetScale": 2}
    moved |= {"authServer": CEDAR, "resourceServer": CEDAR}
    document = Response(200, {"content-type": "application/json"}, json.dumps(moved).encode())
    answering(world, "GET", "/shop-jpy", lambda _: document)
    refused = browser.post("/wallet/confirm")
    assert refused.status == 424
    assert newest(shop).ownership is Ownership.UNPROVEN
