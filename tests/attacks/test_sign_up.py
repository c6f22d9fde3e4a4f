"""Attacks on the sign-up: names that pretend, claims, floods, enumeration, invitations, forgeries.

Each is tried by somebody with a browser and as many passkeys as they like.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from checkout.domain.merchant.people import Role, SignUp
from checkout.domain.merchant.record import Merchant, Ownership, Suspension
from checkout.flows.merchant import setup, suspension
from checkout.flows.people import people
from tests.attacks.texts import HIDDEN, LEADING, SCRIPTS
from tests.support import services
from tests.support.attack_counts import Attack
from tests.support.authenticator import Authenticator
from tests.support.dashboard_pages import BASE, Browser, Dashboard, dashboard_over
from tests.support.flows import HARBOR, PREFIX, World
from tests.support.hosted_pages import Answer
from tests.support.sign_up import TEA, confirm, newest, returned, sign_up, signed_up, wallets_page

pytestmark = pytest.mark.untraced

# A form cannot have a surrogate in its text.
NAMES: Final = {name: text for name, text in HIDDEN.items() if name != "surrogate"}
WALLETS: Final = {
    "metadata of a cloud": "https://169.254.169.254/latest",
    "its name": "https://metadata.google.internal/x",
    "credentials": "https://root:pw@wallet.example/x",
    "a file": "file:///etc/passwd",
    "script": "javascript:alert(1)",
    "a fragment": "https://wallet.example/x#y",
    "dots": "https://wallet.example/../admin",
    "a backslash": "https://wallet.example\\@evil.example",
    "another service": "gopher://wallet.example/x",
    "a line end": "https://wallet.example/x\r\nHost: evil.example",
    "long": "https://wallet.example/" + "x" * 5000,
    "a wallet of a test stage": f"{HARBOR}/test-wallets/shop",
}


@pytest.fixture
def shop(world: World) -> Iterator[Dashboard]:
    """Without limits by client, so that each attack is refused for what it is."""
    free = services.limits(world.clock, world.dynamo, PREFIX, 0)
    wallets = world.services.wallets
    more: dict[str, Any] = {"limits": free, "wallets": lambda: wallets}
    with dashboard_over(world, sign_up=SignUp.OPEN, **more) as found:
        yield found


def shops(shop: Dashboard) -> list[Merchant]:
    return [each for each in suspension.every(shop.services) if each.name != "Shop"]


def selling(shop: Dashboard) -> list[Merchant]:
    return [each for each in shops(shop) if each.suspended is None]


# --- names


def test_no_name_with_hidden_characters_becomes_a_shop(shop: Dashboard, attack: Attack) -> None:
    def attempt(name: str) -> None:
        assert attack.answered(sign_up(shop.browser(), name=name).status) == 400
        assert shops(shop) == []

    attack.each(NAMES, attempt)


def test_no_name_leads_anywhere_at_any_door(world: World, shop: Dashboard, attack: Attack) -> None:
    owner = signed_up(shop)
    assert confirm(world, owner).location == "/dashboard"
    owner.get()

    def attempt(name: str) -> None:
        assert attack.answered(sign_up(shop.browser(), name=name).status) == 400
        assert attack.answered(owner.post("/settings", {"name": name}).status) == 400
        invited = owner.post("/people", {"name": name, "role": "support"})
        assert attack.answered(invited.status) == 400
        with pytest.raises(setup.SetupRefused):
            setup.set_up(world.services, setup.NewMerchant(name, f"{HARBOR}/bob"))
        world.network.state.accounts[TEA].public_name = name
        browser = shop.browser()
        browser.get("/sign-in")
        found = browser.post("/sign-up", {"wallet_address": TEA}).page
        assert found.one("input", name="name").attributes["value"] == ""
        assert [each.name for each in shops(shop)] == ["Tea"]

    attack.each(LEADING, attempt)


def test_a_name_with_script_is_text_on_every_page(shop: Dashboard, attack: Attack) -> None:
    def attempt(name: str) -> None:
        browser = shop.browser()
        assert attack.answered(sign_up(browser, name=name).status) == 303
        for path in ("", "/people", "/settings", "/audit"):
            body = browser.get(path).body
            for tag in ("<script>alert", "<img src=x", "\u2066"):
                assert tag not in body, path

    attack.each(SCRIPTS, attempt)


def test_a_wallets_own_name_with_script_is_text(
    world: World, shop: Dashboard, attack: Attack
) -> None:
    def attempt(name: str) -> None:
        world.network.state.accounts[TEA].public_name = name
        browser = shop.browser()
        browser.get("/sign-in")
        page = browser.post("/sign-up", {"wallet_address": TEA})
        attack.answered(page.status)
        assert "<script>alert" not in page.body
        assert "<img src=x" not in page.body

    attack.each(SCRIPTS, attempt)


# --- addresses


def test_no_address_leads_into_the_network_or_to_another_stage(
    world: World, shop: Dashboard, attack: Attack
) -> None:
    def attempt(wallet: str) -> None:
        sent = len(world.transport.sent)
        assert attack.answered(sign_up(shop.browser(), wallet=wallet).status) == 400
        assert [each for each in world.transport.sent[sent:] if "localhost" not in each[1]] == []
        assert shops(shop) == []

    attack.each(WALLETS, attempt)


# --- claims


def test_no_number_of_claims_keeps_the_owner_out(
    world: World, shop: Dashboard, attack: Attack
) -> None:
    def attempt(number: int) -> None:
        signed_up(shop, name=f"Claim {number}")
        assert world.services.merchants.find_by_wallet(TEA) is None
        assert selling(shop) == []

    attack.each(range(5), attempt)
    owner = signed_up(shop, name="Owner")
    assert confirm(world, owner).location == "/dashboard"
    assert [each.name for each in selling(shop)] == ["Owner"]


def test_no_answer_tells_whether_a_wallet_or_a_name_is_known(
    world: World, shop: Dashboard, attack: Attack
) -> None:
    """The wallet of a shop that sells, and of nobody: each answer is the same but for the words."""

    def seen(wallet: str, name: str) -> list[tuple[int, str, int]]:
        browser = shop.browser()
        assert sign_up(browser, wallet=wallet, name=name).location == "/dashboard"
        browser.get()
        return [
            (each.status, each.headers.get("location", ""), each.body.count("<p"))
            for each in browser.answers
        ]

    def attempt(name: str) -> None:
        unknown, known = seen(f"{HARBOR}/bob", name), seen(world.shop, name)
        assert unknown == known

    attack.each(["Shop", "shop", "Somebody", "Harbor Coffee"], attempt)


# --- approvals


Forgery = Callable[[dict[str, str]], Mapping[str, str]]
FORGED: Final[dict[str, Forgery]] = {
    "no hash": lambda query: {"interact_ref": query["interact_ref"]},
    "no reference": lambda query: {"hash": query["hash"]},
    "an empty hash": lambda query: {**query, "hash": ""},
    "another reference": lambda query: {**query, "interact_ref": "x" * 20},
    "another hash": lambda query: {**query, "hash": "A" * 43 + "="},
    "the hash of nothing": lambda query: {
        **query,
        "hash": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    },
    "a line end": lambda query: {**query, "interact_ref": query["interact_ref"] + "\n"},
    "a long hash": lambda query: {**query, "hash": query["hash"] * 9},
    "accepted, it says": lambda query: {"result": "accepted"},
    "rejected": lambda query: {"result": "grant_rejected"},
}


def test_no_forged_return_proves_a_wallet(world: World, shop: Dashboard, attack: Attack) -> None:
    browser = signed_up(shop)
    back = returned(world, browser)
    query = {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}

    def attempt(forged: Forgery) -> None:
        answer = browser.get(f"/wallet/callback?{urlencode(forged(query))}")
        assert attack.answered(answer.status) in (200, 400)
        assert newest(shop).ownership is Ownership.UNPROVEN

    attack.each(FORGED, attempt)
    assert browser.get(back).location == "/dashboard", "nor does one use the approval up"


def test_an_approval_of_one_shop_is_nothing_to_another(world: World, shop: Dashboard) -> None:
    mine, other = signed_up(shop, name="Mine"), signed_up(shop, name="Other")
    wallets_page(other)  # it waits for an approval too
    assert other.get(returned(world, mine)).status == 400
    assert selling(shop) == []


def test_an_approval_counts_once(world: World, shop: Dashboard) -> None:
    browser = signed_up(shop)
    back = returned(world, browser)
    assert browser.get(back).location == "/dashboard"
    suspension.suspend(shop.services, newest(shop).id)
    assert browser.get(back).status == 400
    assert newest(shop).suspended is Suspension.ALONE


def test_an_approval_that_comes_too_late_is_none(world: World, shop: Dashboard) -> None:
    browser = signed_up(shop)
    back = returned(world, browser)
    world.clock.pass_time(3600)
    assert browser.get(back).status in (303, 400)
    assert selling(shop) == []


def test_a_support_member_proves_nothing(world: World, shop: Dashboard) -> None:
    signed_up(shop)
    link = people.invite_to(shop.services, newest(shop).id, name="Sue", role=Role.SUPPORT).link
    browser = shop.browser()
    browser.join(link, Authenticator(BASE, credential=b"d" * 32))
    browser.get()
    assert browser.post("/wallet/confirm").status == 403
    assert browser.get("/wallet/callback?interact_ref=x&hash=y").status == 403


# --- passkeys, forms and invitations


def begun(browser: Browser, **fields: str) -> dict[str, Any]:
    browser.get("/sign-in")
    found: dict[str, Any] = json.loads(browser.post("/sign-up/options", fields).body)
    return found


def finished(browser: Browser, made: str, **more: str) -> Answer:
    fields = {"wallet_address": TEA, "name": "Tea", "credential": made, **more}
    return browser.post("/sign-up/passkey", fields)


def test_no_passkey_counts_twice_or_elsewhere(shop: Dashboard, attack: Attack) -> None:
    def twice() -> None:
        browser = shop.browser()
        made = Authenticator(BASE).create(begun(browser, name="Tea"))
        assert finished(browser, made).status == 303
        again = shop.browser()
        again.get("/sign-in")
        assert attack.answered(finished(again, made).status) == 400

    def of_another_origin() -> None:
        browser = shop.browser()
        made = Authenticator("https://evil.example").create(begun(browser, name="Tea"))
        assert attack.answered(finished(browser, made).status) == 400

    def of_nobody() -> None:
        browser = shop.browser()
        made = Authenticator(BASE, verifies=False).create(begun(browser, name="Tea"))
        assert attack.answered(finished(browser, made).status) == 400

    def of_a_sign_in() -> None:
        browser = shop.browser()
        browser.get("/sign-in")
        options = json.loads(browser.post("/sign-in/options").body)
        options |= {"user": {"id": "bWJyX3g"}}
        made = Authenticator(BASE).create(options)
        assert attack.answered(finished(browser, made).status) == 400

    def without_its_token() -> None:
        browser = shop.browser()
        made = Authenticator(BASE).create(begun(browser, name="Tea"))
        assert attack.answered(finished(browser, made, form_token="x").status) == 400

    def from_another_site() -> None:
        browser = shop.browser()
        browser.get("/sign-in")
        headers = {"origin": "https://evil.example"}
        answer = browser.post("/sign-up/options", {"name": "Tea"}, headers=headers)
        assert attack.answered(answer.status) == 400

    before = len(shops(shop))
    cases: tuple[Callable[[], None], ...] = (
        twice,
        of_another_origin,
        of_nobody,
        of_a_sign_in,
        without_its_token,
        from_another_site,
    )

    def attempt(case: Callable[[], None]) -> None:
        case()

    attack.each({case.__name__: case for case in cases}, attempt)
    assert len(shops(shop)) == before + 1  # the first of `twice`


def test_no_invitation_counts_twice_or_late_or_for_something_else(
    world: World, shop: Dashboard, attack: Attack
) -> None:
    shop.services = replace(shop.services, sign_up=SignUp.INVITATION)

    def token_of() -> str:
        return people.invite_shop(shop.services, name="Ada").link.rpartition("/")[2]

    used, late = token_of(), token_of()
    signed_up(shop, token=used)
    member = people.invite_to(shop.services, world.merchant.id, name="Eve", role=Role.OWNER).link
    cases = {
        "used": used,
        "of a member": member.rpartition("/")[2],
        "made up": "x" * 43,
        "empty": "",
        "a path": "../sign-in",
        "long": "x" * 5000,
        "its hash": str(shop.rows("api_keys")[0].get("hash", {}).get("S", "")),
        "a name": "new",
    }

    def attempt(token: str) -> None:
        browser = shop.browser()
        browser.get("/sign-in")
        fields = {"wallet_address": TEA, "invitation": token, "name": "Tea"}
        for path in ("/sign-up", "/sign-up/options", "/sign-up/passkey"):
            assert attack.answered(browser.post(path, fields).status) == 404

    attack.each(cases, attempt)
    world.clock.pass_time(7 * 24 * 3600)
    attempt(late)
    assert len(shops(shop)) == 1


# --- floods


def test_a_flood_from_one_address_ends_at_five_shops(world: World, shop: Dashboard) -> None:
    made = 0
    for _ in range(12):
        # Each in a process of its own, which remembers nothing.
        limited = services.limits(world.clock, world.dynamo, PREFIX, 600)
        shop.services = replace(shop.services, limits=limited)
        made += sign_up(shop.browser(), name="Flood").status == 303
    assert made == len(shops(shop)) == 5


def test_a_flood_of_look_ups_asks_few_wallets(world: World, shop: Dashboard) -> None:
    limited = services.limits(world.clock, world.dynamo, PREFIX, 30)
    paying = replace(world.services, limits=limited)
    shop.services = replace(shop.services, paying=lambda: paying)
    browser = shop.browser()
    browser.get("/sign-in")
    found = [browser.post("/sign-up", {"wallet_address": TEA}).status for _ in range(40)]
    assert set(found) == {200, 429}
    assert found.count(200) <= 6
