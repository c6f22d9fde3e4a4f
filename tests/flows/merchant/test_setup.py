from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from checkout.flows.merchant import api_keys, setup
from checkout.services import PayServices
from open_payments.errors import NotSent
from open_payments.transports import Request, Response
from tests.support.flows import CEDAR, HARBOR, World, answering, interrupt, raising
from tests.support.keys import KEY_ID, new_key_pair

SHOP = f"{HARBOR}/shop-jpy"


def a_new_merchant(world: World, **changes: Any) -> setup.NewMerchant:
    pem, jwk = new_key_pair(KEY_ID)
    world.network.register_key(SHOP, jwk)
    new = setup.NewMerchant(name="Tea", wallet_address=SHOP, key_id=KEY_ID, private_key_text=pem)
    return replace(new, **changes)


def test_a_merchant_joins_with_what_its_wallet_says_and_its_keys_are_sealed(
    world: World,
) -> None:
    new = a_new_merchant(world)
    done = setup.set_up(world.services, new)
    assert done.merchant.id.startswith("mer_")
    assert (done.merchant.asset_code, done.merchant.asset_scale) == ("JPY", 0)
    assert done.api_key is not None
    key = api_keys.authenticate(world.services, f"Bearer {done.api_key}", "POST")
    assert key.merchant == done.merchant.id
    assert world.services.merchants.get(done.merchant.id) == done.merchant
    stored = str([world.dynamo.rows(f"test-{table}") for table in ("merchants", "api_keys")])
    assert done.api_key not in stored
    assert new.private_key_text is not None
    assert new.private_key_text.splitlines()[1] not in stored


def test_a_merchant_may_name_an_address_that_redirects_to_the_wallet(world: World) -> None:
    new = a_new_merchant(world, wallet_address=f"{CEDAR}/redirects")
    world.network.register_key(f"{HARBOR}/bob", world.network.state.accounts[SHOP].keys[0])
    assert setup.set_up(world.services, new).merchant.wallet_address == f"{HARBOR}/bob"


def test_a_merchant_without_a_name_has_the_wallets_own(world: World) -> None:
    done = setup.set_up(world.services, setup.NewMerchant(" ", SHOP))
    assert done.merchant.name == "Harbor Tea"


def test_a_test_stage_and_any_other_take_the_wallets_of_their_own_kind_only(world: World) -> None:
    own = f"{HARBOR}/test-wallets"
    for services, wallet, said in (
        (world.services, f"{own}/shop", "no real money"),
        (replace(world.services, test_wallets=own), SHOP, f"only its own wallets are .*{own}"),
    ):
        with pytest.raises(setup.SetupRefused, match=said):
            setup.set_up(services, setup.NewMerchant("Tea", wallet))
    assert world.services.merchants.find_by_wallet(SHOP) is None


def test_a_merchant_needs_a_name_if_the_wallet_has_none(world: World) -> None:
    account = world.network.account(SHOP)
    assert account is not None
    account.public_name = ""
    with pytest.raises(setup.SetupRefused, match="name"):
        setup.set_up(world.services, setup.NewMerchant("", SHOP))


def test_a_key_that_does_not_open_is_replaced_by_one_that_signs_at_once(world: World) -> None:
    first = setup.set_up(world.services, setup.NewMerchant("Tea", SHOP)).merchant
    assert setup.key_opens(world.services, first)
    lost = replace(first.service_keys[0], private_key="v1.00000000.bG9zdA")
    damaged = first.changed(service_keys=(lost,), private_key="v1.00000000.bG9zdA")
    world.services.merchants.replace(damaged)
    assert not setup.key_opens(world.services, damaged)
    changed = setup.replace_key(world.services, setup.NewMerchant("", SHOP)).merchant
    assert changed.signing_key(world.clock.now())[0] == changed.service_keys[-1].key_id
    assert setup.key_opens(world.services, changed)


def test_a_key_file_may_be_base64_of_the_pem_text(world: World) -> None:
    new = a_new_merchant(world)
    assert new.private_key_text is not None
    encoded = base64.b64encode(new.private_key_text.encode()).decode()
    again = setup.NewMerchant("Tea", SHOP, KEY_ID, encoded)
    assert setup.set_up(world.services, again).api_key


def test_the_same_wallet_never_becomes_a_second_merchant(world: World) -> None:
    new = a_new_merchant(world)
    first = setup.set_up(world.services, new)
    with pytest.raises(setup.AlreadyMerchant, match="--new-api-key") as refused:
        setup.set_up(world.services, new)
    assert refused.value.merchant == first.merchant
    with pytest.raises(setup.AlreadyMerchant):
        setup.set_up(world.services, a_new_merchant(world, wallet_address=f"{SHOP.upper()}/"))


def test_a_lost_api_key_is_replaced_by_another_one(world: World) -> None:
    first = setup.set_up(world.services, a_new_merchant(world))
    second = setup.add_api_key(world.services, SHOP, name="Second")
    assert second.merchant == first.merchant
    assert second.api_key != first.api_key
    for done in (first, second):
        key = api_keys.authenticate(world.services, f"Bearer {done.api_key}", "POST")
        assert key.merchant


def test_a_renewed_wallet_key_is_stored_for_the_same_merchant(world: World) -> None:
    first = setup.set_up(world.services, a_new_merchant(world))
    pem, jwk = new_key_pair("new-key")
    world.network.register_key(SHOP, jwk)
    changed = setup.replace_key(world.services, setup.NewMerchant("Tea", SHOP, "new-key", pem))
    assert changed.api_key is None
    assert changed.merchant.id == first.merchant.id
    stored = world.services.merchants.get(first.merchant.id)
    assert stored is not None
    assert stored.key_id == "new-key"


def test_a_private_key_that_is_not_the_pair_is_refused_with_what_to_do(world: World) -> None:
    other, _ = new_key_pair(KEY_ID)
    with pytest.raises(setup.SetupRefused, match="Give a file and a key id") as refused:
        setup.set_up(world.services, a_new_merchant(world, private_key_text=other))
    assert other.splitlines()[1] not in str(refused.value)


@pytest.mark.parametrize(
    ("field", "values", "said"),
    [
        ("key_id", ["unknown"], "Create a developer key"),
        (
            "private_key_text",
            ["", "not a key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END"],
            "not usable",
        ),
        ("wallet_address", ["not a wallet", "ftp://x.example/a", f"{CEDAR}/nobody"], "wallet"),
        ("name", ["x" * 101, "line\nbreak"], "name"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_what_to_do(
    world: World, field: str, values: list[str], said: str
) -> None:
    for value in values:
        with pytest.raises(setup.SetupRefused, match=said):
            setup.set_up(world.services, a_new_merchant(world, **{field: value}))


def test_a_provider_that_is_down_is_told_as_such(world: World) -> None:
    new = a_new_merchant(world)
    world.transport.before = raising(NotSent("down"))
    with pytest.raises(setup.SetupRefused, match="could not be reached"):
        setup.set_up(world.services, new)


def test_a_wallet_without_a_public_name_cannot_ask_for_approvals(world: World) -> None:
    new = a_new_merchant(world)
    account = world.network.account(SHOP)
    assert account is not None
    account.public_name = ""
    with pytest.raises(setup.SetupRefused, match="public name"):
        setup.set_up(world.services, new)


def test_a_key_for_nobody_is_refused(world: World) -> None:
    with pytest.raises(setup.SetupRefused, match="no merchant"):
        setup.add_api_key(world.services, SHOP, name="x")


def test_keys_that_cannot_be_read_are_told_as_such(world: World) -> None:
    new = a_new_merchant(world)
    answering(world, "GET", "/jwks.json", lambda request: Response(500, {}, b"no"))
    with pytest.raises(setup.SetupRefused, match="jwks"):
        setup.set_up(world.services, new)


def test_a_wallet_whose_currency_has_changed_is_another_wallet(world: World) -> None:
    new = a_new_merchant(world)
    setup.set_up(world.services, new)

    def changed(request: Request) -> Response:
        answer = world.network.handle(request)
        document = json.loads(answer.body)
        if "assetCode" in document:
            document |= {"assetCode": "EUR", "assetScale": 2}
        return Response(answer.status, answer.headers, json.dumps(document).encode())

    answering(world, "GET", "/shop-jpy", changed)
    with pytest.raises(setup.SetupRefused, match="currency has changed"):
        setup.replace_key(world.services, new)


@pytest.mark.parametrize(
    ("operation", "write"),
    [
        (
            "transact_write_items",
            lambda services, new: setup.add_api_key(services, SHOP, name="Second"),
        ),
        ("put_item", setup.replace_key),
    ],
)
def test_a_merchant_that_is_changed_meanwhile_is_not_overwritten(
    world: World, operation: str, write: Callable[[PayServices, setup.NewMerchant], object]
) -> None:
    new = a_new_merchant(world)
    merchant = setup.set_up(world.services, new).merchant
    changed = merchant.changed(name="Another")
    interrupt(world, operation, lambda: world.core.merchants.replace(changed))
    with pytest.raises(setup.SetupRefused, match="run the command again"):
        write(world.services, new)
    assert world.core.merchants.get(merchant.id) == changed
