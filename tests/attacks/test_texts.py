"""Texts that a wallet's document and answers carry: asset codes, names, ids.

They are held to an alphabet before they are stored or shown; a wallet beyond it is no wallet.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkout.domain.ground.errors import WalletInvalid, WalletUnavailable, WalletUnreachable
from checkout.domain.session.record import Status
from checkout.flows.merchant.setup import NewMerchant, SetupRefused, set_up
from open_payments.answers import Answer, wallet_address
from open_payments.errors import UntrustedAnswer
from tests.attacks.hostile import assert_open_and_unpaid, hostile
from tests.support.flows import CEDAR, HARBOR, World
from tests.support.keys import new_key_pair

DOCUMENT = {
    "id": "https://wallet.example/alice",
    "publicName": "Alice",
    "assetCode": "EUR",
    "assetScale": 2,
    "authServer": "https://auth.wallet.example",
    "resourceServer": "https://wallet.example",
}
MARKUP = ["<script>alert(1)</script>", "<b>", "&lt;", "{{7*7}}", "${7}", "=1+1", "E\nUR", "EUR\r\n",
          "E UR", " EUR", "💶", "ＥＵＲ", "€", "EUR\x00", "\u202eRUE", "EU\u200bR", "\ud800", "%0a",
          "E" * 65, ""]  # fmt: skip
NAMES_REFUSED = ["Alice\nBob", "Alice\r", "Al\x00ice", "\x1b[31mAlice", "\u202eecilA", "A\u2066B",
                 "Alice\u2028", "\ud800", "A\x85", "\x7f", "x" * 2049,
                 7, ["Alice"], {}]  # fmt: skip
NAMES_TAKEN = ["Alice", "علی‌رضا", "👩‍👩‍👧 Family", "Müller & Söhne <GmbH>", "株式会社", "=1+1"]


def read(**members: Any) -> Any:
    return wallet_address(Answer(DOCUMENT | members, operation="test"))


@pytest.mark.parametrize("code", MARKUP)
def test_an_asset_code_is_letters_and_digits(code: str) -> None:
    with pytest.raises(UntrustedAnswer) as refused:
        read(assetCode=code)
    assert not code or code not in str(refused.value)


@pytest.mark.parametrize("code", ["EUR", "USDC", "usd", "X1", "E" * 64])
def test_asset_codes_beyond_iso_4217_are_taken(code: str) -> None:
    assert read(assetCode=code).asset_code == code


@pytest.mark.parametrize("name", NAMES_REFUSED)
def test_a_name_without_a_shape_of_its_own_is_none(name: Any) -> None:
    assert read(publicName=name).public_name is None


@pytest.mark.parametrize("name", NAMES_TAKEN)
def test_a_name_may_be_of_any_script(name: str) -> None:
    assert read(publicName=name).public_name == name


@pytest.mark.parametrize("name", ["\u202bعلي", "Alice\n", "x" * 3000])
def test_a_wallet_with_a_name_that_cannot_be_shown_pays_and_sets_up_a_shop(
    world: World, name: str
) -> None:
    wallet = f"{HARBOR}/shop-jpy"
    for address in (f"{CEDAR}/alice", wallet):
        world.network.state.accounts[address].public_name = name
    assert world.pay(world.create()).status is Status.COMPLETED
    merchant = set_up(world.services, NewMerchant("Tea", wallet)).merchant
    assert (merchant.name, merchant.wallet_name) == ("Tea", None)


@pytest.mark.parametrize("member", ["id", "authServer", "resourceServer"])
@given(st.text(min_size=1))
def test_no_text_of_a_document_raises_anything_else(member: str, text: str) -> None:
    try:
        found = read(**{member: f"https://wallet.example/{text}"})
    except UntrustedAnswer:
        return
    assert found.id.isascii()
    assert found.id.isprintable()


@pytest.mark.parametrize("code", MARKUP[:8])
def test_a_wallet_with_markup_for_its_asset_is_stored_and_shown_nowhere(
    world: World, code: str
) -> None:
    session = world.create()
    strangers = hostile(world)
    strangers.changes = [("/alice", lambda document: document.update(assetCode=code))]
    with pytest.raises((WalletInvalid, WalletUnreachable)):
        world.submit(session)
    assert_open_and_unpaid(world, session)
    assert code not in repr(world.session(session.id))


@pytest.mark.parametrize("code", MARKUP[:8])
def test_a_price_of_markup_is_stored_and_shown_nowhere(world: World, code: str) -> None:
    session = world.create()
    strangers = hostile(world)
    strangers.changes = [
        ("/quotes", lambda quote: quote.get("debitAmount", {}).update(assetCode=code))
    ]
    with pytest.raises(WalletUnavailable):
        world.submit(session)
    assert_open_and_unpaid(world, session)
    assert code not in repr(world.session(session.id))


def test_no_merchant_is_set_up_with_such_a_wallet(world: World) -> None:
    pem, jwk = new_key_pair("key")
    world.network.register_key(world.shop, jwk)
    strangers = hostile(world)
    strangers.changes = [("/shop", lambda document: document.update(assetCode="<b>"))]
    world.forget()
    with pytest.raises(SetupRefused):
        set_up(world.services, NewMerchant("Shop", world.shop, "key", pem))
    assert "transact_write_items" not in world.aws_calls()
