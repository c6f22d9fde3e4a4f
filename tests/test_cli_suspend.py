"""The operator stops a merchant, all sales, an API key."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from checkout import cli
from checkout.domain.ground.errors import (
    ApiKeyInvalid,
    Conflict,
    MerchantSuspended,
    MerchantWalletError,
)
from checkout.domain.merchant.people import SignUp
from checkout.domain.merchant.record import Ownership, Suspension
from checkout.domain.session.record import Status
from checkout.flows.links import purchase
from checkout.flows.merchant import api_keys, suspension
from tests.support.flows import HARBOR, World

Run = Callable[..., str]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def run(world: World, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command that succeeds; return what it prints."""

    def run(*arguments: str) -> str:
        assert cli.main([*arguments], lambda: world.endpoints) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return run


def test_a_suspended_merchant_gets_a_clear_error_for_new_sessions_until_it_is_resumed(
    world: World, run: Run
) -> None:
    merchant = world.merchant
    said = run("suspend", "--merchant", merchant.id)
    assert said == f"merchant  {merchant.id} ({merchant.name})\nstate     suspended\n"
    with pytest.raises(
        MerchantSuspended, match="Payments that have already begun can still finish"
    ):
        world.create()
    assert run("resume", "--wallet-address", merchant.wallet_address).endswith("sells\n")
    assert world.create().status is Status.OPEN


def test_a_suspended_merchants_links_sell_nothing_and_its_sessions_take_no_wallet(
    world: World, run: Run
) -> None:
    link, session = world.link(), world.create()
    run("suspend", "--merchant", world.merchant.id)
    with pytest.raises(Conflict):
        purchase.begin(world.services, link, purchase.new_visit(world.services), "192.0.2.1")
    world.forget()
    with pytest.raises(MerchantWalletError):
        world.submit(session)
    assert world.session(session.id) == session
    assert world.transport.sent == []


def test_a_payment_that_has_begun_finishes(world: World, run: Run) -> None:
    session, callback = world.awaiting()
    doubtful = world.in_doubt("alice")
    run("suspend", "--merchant", world.merchant.id)
    world.finish(session, callback)
    assert world.session(session.id).status is Status.COMPLETED
    assert world.settle(doubtful).status is Status.COMPLETED


def test_a_pause_stops_all_and_its_end_leaves_alone_what_was_suspended_before(
    world: World, run: Run
) -> None:
    other = world.join(f"{HARBOR}/shop-jpy").merchant
    run("suspend", "--merchant", other.id)
    assert run("pause") == "1 merchants paused.\n"
    assert run("pause") == "0 merchants paused.\n"
    with pytest.raises(MerchantSuspended):
        world.create()
    assert states(run) == {world.merchant.id: "paused", other.id: "suspended"}
    assert run("resume", "--all") == "1 merchants resumed.\n"
    assert states(run) == {world.merchant.id: "sells", other.id: "suspended"}
    world.create()


def states(run: Run) -> dict[str, str]:
    lines = [line.split() for line in run("merchants").splitlines()]
    return {merchant: state for merchant, state, *_ in lines}


def test_a_key_that_is_made_during_a_suspension_is_suspended(world: World, run: Run) -> None:
    run("suspend", "--merchant", world.merchant.id)
    made = api_keys.create(world.endpoints, world.key(), name="Another")
    world.api_key = made.plain
    with pytest.raises(MerchantSuspended):
        world.create()


def test_a_key_that_the_index_does_not_show_yet_is_told_and_stopped_by_another_run(
    world: World, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = world.endpoints.api_keys
    seen = keys.of(world.merchant.id)
    api_keys.create(world.endpoints, world.key(), name="Another")
    answers = [seen, keys.of(world.merchant.id)]

    class Lagging:
        def __getattr__(self, name: str) -> object:
            return getattr(keys, name)

        def of(self, merchant: str) -> object:
            return answers.pop(0) if answers else keys.of(merchant)

    lagging: object = Lagging()
    services = replace(world.endpoints, api_keys=lagging)  # type: ignore[arg-type]
    assert cli.main(["pause"], lambda: services) == 1
    told = capsys.readouterr()
    assert told.err == (
        f"{world.merchant.id}: other requests were changing this merchant. Run the command again.\n"
    )
    assert run("pause") == "1 merchants paused.\n"
    assert run("pause") == "0 merchants paused.\n"


def test_a_leaked_key_works_no_more_and_another_one_stays(world: World, run: Run) -> None:
    leaked = api_keys.create(world.endpoints, world.key(), name="Till")
    assert run("revoke", leaked.plain) == (
        f"merchant  {world.merchant.id}\nrevoked   Till (…{leaked.plain[-4:]})\n"
    )
    with pytest.raises(ApiKeyInvalid):
        api_keys.active_key(world.services, leaked.plain)
    world.create()


def test_the_last_key_is_replaced_by_a_new_one_that_is_shown_once(world: World, run: Run) -> None:
    leaked, scopes = world.api_key, world.key().scopes
    said = run("revoke", leaked[-4:], "--merchant", world.merchant.id)
    [new] = re.findall(r"API key   (sk_\w+)", said)
    with pytest.raises(ApiKeyInvalid):
        world.key()
    world.api_key = new
    assert world.key().scopes == scopes
    world.create()


def test_what_cannot_be_revoked_is_told(
    world: World, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    leaked = api_keys.create(world.endpoints, world.key(), name="Till").plain
    run("revoke", leaked)
    for key, said in ((leaked, "already been revoked"), ("sk_live_" + "0" * 43, "No such key.")):
        assert cli.main(["revoke", key], lambda: world.endpoints) == 1
        assert said in capsys.readouterr().err


def test_merchants_are_listed_whole_from_several_pages(
    world: World, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suspension, "PAGE", 1)
    world.services.merchants.add(
        replace(
            world.merchant,
            id="mer_00000000000000000000zz",
            name="Second",
            wallet_address="https://wallet.example/second",
        ),
        replace(world.key(), id="key_zz", merchant="mer_00000000000000000000zz", hash="0" * 64),
    )
    assert {each.name for each in suspension.every(world.endpoints)} == {
        world.merchant.name,
        "Second",
    }


def test_a_revocation_that_loses_a_race_of_keys_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    leaked = api_keys.create(world.endpoints, world.key(), name="Till").plain
    monkeypatch.setattr(type(world.endpoints.api_keys), "revoke", lambda *_: False)
    assert cli.main(["revoke", leaked], lambda: world.endpoints) == 1
    assert "run the command again" in capsys.readouterr().err


def test_the_operator_invites_a_new_shop_only_where_shops_may_sign_up(
    world: World, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["invite", "--new-shop", "--name", "Ada"]
    assert cli.main(asked, lambda: world.endpoints) == 1
    assert "set the parameter SignUp first" in capsys.readouterr().err
    world.endpoints = replace(world.endpoints, sign_up=SignUp.INVITATION)
    said = run(*asked)
    assert "merchant  a new one, of their own" in said
    assert re.search(r"link      \S+/dashboard/sign-up/[0-9A-Za-z]{43}\n", said)


def test_the_list_of_merchants_shows_who_has_signed_up_and_who_is_unproven(
    world: World, run: Run
) -> None:
    merchant = world.stored()
    fields = {"suspended": Suspension.ALONE, "ownership": Ownership.UNPROVEN}
    world.services.merchants.replace(merchant.changed(**fields))
    [line] = run("merchants").splitlines()
    assert line.split()[:2] == [merchant.id, "unproven"]
    assert line.endswith(f"{merchant.wallet_address}  signed up")
    assert f"{merchant.created_at:%Y-%m-%d}" in line
