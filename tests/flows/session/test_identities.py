"""Merchants without a key file, and merchants that change their client or their wallet."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from checkout.domain.ground.errors import (
    CheckoutError,
    MerchantWalletError,
    ResourceMissing,
    Unavailable,
    WalletUnavailable,
)
from checkout.domain.merchant.record import Merchant
from checkout.domain.session.record import Session, Status
from checkout.flows import merchants
from checkout.flows.merchant import setup
from checkout.flows.payment.cleanup import clean_up
from open_payments.errors import NotSent, OutcomeUnknown, Reason, Refused
from open_payments.protocol import Access
from tests.flows.identities import (
    NEW_SHOP,
    balance,
    opened,
    payments,
    to_key_file,
    to_other_wallet,
    to_service_key,
    wallet,
)
from tests.support.basics import between
from tests.support.flows import BASE_URL, HARBOR, PREFIX, World, client_id, lose_answers, raising


@pytest.fixture
def world() -> World:
    """A world whose merchant has a key file, and a second wallet in the same currency."""
    return opened(World())


CHANGES = (to_service_key, to_key_file, to_other_wallet)


def client_of(world: World, session: Session) -> str | None:
    """Return the client that has made the session's incoming payment, by the merchant's wallet."""
    return world.incoming(session).client


def test_a_merchant_without_a_key_file_is_paid_and_the_customer_sees_its_name(
    world: World,
) -> None:
    to_service_key(world)
    url = f"{BASE_URL}/clients/{client_id(world.merchant.id)}"
    session = world.submit(world.create())
    assert client_of(world, session) == url
    [interaction] = [
        each.interaction for each in world.network.state.grants.values() if each.interaction
    ]
    assert (interaction.client_name, interaction.client_uri) == ("Shop", url)
    paid = world.finish(session, world.approve(session)).record
    assert paid.status is Status.COMPLETED
    assert balance(world) == 2000


def test_a_new_merchant_needs_a_wallet_address_only() -> None:
    world = World(shop=f"{HARBOR}/shop-jpy")
    done = world.join_without_key()
    assert done.api_key is not None
    merchant = done.merchant
    assert merchant.client == f"{BASE_URL}/clients/{client_id(merchant.id)}"
    assert merchant.id != merchant.id.lower()
    assert merchant.client == merchant.client.lower()  # as some wallets write it
    assert [each.key_id for each in merchant.service_keys] == [merchant.key_id]
    assert merchant.identity == 0
    stored = str(world.dynamo.rows(f"{PREFIX}-merchants"))
    assert (
        world.vault.open(merchant.private_key, place=("merchants", merchant.id, "private_key"))
        not in stored
    )


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("keyless", [False, True])
def test_a_payment_that_was_begun_before_a_change_ends_as_it_began(
    world: World, change: Callable[[World], None], keyless: bool
) -> None:
    if keyless:
        to_service_key(world)
    session, callback = world.awaiting()
    before = client_of(world, session)
    old_wallet = wallet(world)
    change(world)
    assert world.finish(session, callback).record.status is Status.COMPLETED
    assert client_of(world, world.session(session.id)) == before
    assert world.incoming(session).wallet == old_wallet
    assert balance(world) == 2000


@pytest.mark.parametrize("change", CHANGES)
def test_a_payment_in_doubt_is_found_by_the_client_that_made_it(
    world: World, change: Callable[[World], None]
) -> None:
    session = world.in_doubt()
    change(world)
    world.restart()  # no token is kept
    assert world.settle(session).status is Status.COMPLETED
    assert len(payments(world, world.session(session.id))) == 1


def test_another_identity_does_not_see_the_payment_and_its_404_decides_nothing(
    world: World,
) -> None:
    """The order that would lose the payment: a witness that asks as the merchant is now."""
    session = world.in_doubt()
    to_service_key(world)
    calls = world.services.wallets.client(
        world.stored(), deadline=world.clock.now() + timedelta(seconds=9)
    )
    merchant = world.stored()
    assert session.incoming_payment is not None
    url = session.incoming_payment.id
    with pytest.raises(Refused) as refused:
        world.services.wallets.tokens.use(
            calls,
            merchant.auth_server,
            merchant.resource_server,
            Access.INCOMING_PAYMENT,
            lambda token: calls.get_incoming_payment(url, token),
        )
    assert refused.value.reason is Reason.NOT_OURS
    assert world.settle(session).status is Status.COMPLETED


def test_the_next_attempt_stays_with_the_incoming_payment_and_then_follows_the_merchant(
    world: World,
) -> None:
    session = world.submit(world.create())
    to_other_wallet(world)
    again = world.submit(session)
    assert again.identity is None
    assert again.incoming_payment == session.incoming_payment
    world.incoming(again).completed = True  # anybody may close it
    with pytest.raises(MerchantWalletError):
        world.submit(again)
    world.clock.pass_time(40)
    moved = world.submit(again)
    assert moved.identity == 1
    assert world.incoming(moved).wallet == NEW_SHOP
    paid = world.finish(moved, world.approve(moved)).record
    assert paid.status is Status.COMPLETED
    assert world.network.state.accounts[NEW_SHOP].balance == 2000


def test_a_process_that_knows_the_merchant_of_before_reads_it_again(world: World) -> None:
    session = world.create()
    known = world.services.merchants.get(world.merchant.id)
    assert known is not None
    world.core.merchants.replace(world.stored().changed_identity())  # another process does
    begun = world.submit(session)
    assert begun.identity is None  # as this process knows it for up to a minute
    world.clock.pass_time(61)
    assert world.submit(world.create()).identity == 1
    assert world.finish(begun, world.approve(begun)).record.status is Status.COMPLETED


def test_a_record_that_lacks_the_identity_makes_the_payment_wait(world: World) -> None:
    session, callback = world.awaiting()
    to_service_key(world)
    stored = world.stored()
    world.services.merchants.replace(stored.changed(former=()))  # as an older release loses it
    with pytest.raises(Unavailable):
        world.finish(session, callback)
    world.services.merchants.replace(world.stored().changed(former=stored.former))
    assert world.finish(session, callback).record.status is Status.COMPLETED


def test_the_grant_that_is_given_up_is_canceled_by_the_client_that_asked(world: World) -> None:
    session = world.submit(world.create())
    to_service_key(world)
    world.tasks.left.clear()
    world.submit(session)
    [left] = world.tasks.left
    clean_up(world.services, left)
    assert world.transport.sent[-1][0] == "DELETE"


def test_a_new_key_of_ours_is_shown_before_it_signs_and_the_old_one_for_a_day_after(
    world: World,
) -> None:
    to_service_key(world)
    session, callback = world.awaiting()
    first = world.stored().service_keys[0]
    to_service_key(world)
    stored = world.stored()
    assert stored.identity == 1
    assert stored.service_keys[0].key_id == first.key_id
    assert len(stored.service_keys) == 2
    assert stored.signing_key(world.clock.now()) == (first.key_id, first.private_key)
    world.clock.pass_time(301)
    assert stored.signing_key(world.clock.now())[0] == stored.service_keys[1].key_id
    assert world.finish(session, callback).record.status is Status.COMPLETED
    world.clock.pass_time(24 * 3600)
    to_service_key(world)
    assert first not in world.stored().service_keys
    assert world.pay(world.create()).status is Status.COMPLETED


def test_a_merchant_that_returns_to_our_key_uses_the_one_that_is_shown(world: World) -> None:
    to_service_key(world)
    to_key_file(world)
    assert world.stored().client is None
    to_service_key(world)
    assert len(world.stored().service_keys) == 1
    assert [each.number for each in world.stored().former] == [0, 1, 2]
    assert world.pay(world.create()).status is Status.COMPLETED


def test_while_the_host_of_the_client_is_down_payments_wait_and_then_finish(world: World) -> None:
    to_service_key(world)
    asked = world.in_doubt()
    waiting, callback = world.awaiting()
    fresh = world.create()
    world.client_host_down = True
    for _ in range(10):
        world.clock.pass_time(60)
        with suppress(CheckoutError):
            world.submit(fresh)
        world.sweep()
        assert world.session(asked.id).status not in (Status.OPEN, Status.EXPIRED)
    with pytest.raises((WalletUnavailable, MerchantWalletError)):
        world.submit(world.create())
    world.client_host_down = False
    assert world.settle(world.session(asked.id)).status is Status.COMPLETED
    assert world.pay(world.session(fresh.id)).status is Status.COMPLETED
    assert world.finish(waiting, callback).record.status is Status.COMPLETED
    assert balance(world) == 6000


def test_a_wallet_that_another_merchant_has_is_not_taken(world: World) -> None:
    setup.set_up(world.services, setup.NewMerchant("Other", NEW_SHOP))
    before = world.stored()
    with pytest.raises(setup.AlreadyMerchant):
        to_other_wallet(world)
    assert world.stored() == before


def test_the_wallet_of_before_stays_the_merchants_own(world: World) -> None:
    to_other_wallet(world)
    with pytest.raises(setup.AlreadyMerchant):
        setup.set_up(world.services, setup.NewMerchant("Other", world.shop))
    to_other_wallet(world)  # and back
    assert wallet(world) == world.shop
    assert world.pay(world.create()).status is Status.COMPLETED
    with pytest.raises(setup.SetupRefused, match="already receives payments at this wallet"):
        setup.move_wallet(world.services, world.shop, setup.NewMerchant("", world.shop))


def test_a_wallet_of_another_currency_and_a_twenty_first_change_are_refused(world: World) -> None:
    with pytest.raises(setup.SetupRefused, match="currency"):
        setup.move_wallet(world.services, world.shop, setup.NewMerchant("", f"{HARBOR}/shop-jpy"))
    for _ in range(20):
        to_other_wallet(world)
    with pytest.raises(setup.SetupRefused, match="20 times"):
        to_other_wallet(world)


@pytest.mark.endurance
@pytest.mark.parametrize("seed", range(5))
def test_two_hundred_sessions_in_every_state_lose_nothing_in_any_change(seed: int) -> None:
    """Each is paid once at most, by what the wallets show, and completed if it was paid."""
    world, chance = opened(World(seed=seed)), random.Random(seed)
    flying: list[tuple[Session, tuple[str, str] | None]] = []
    for number in range(200):
        if number % 20 == 10:
            chance.choice(CHANGES)(world)
            world.clock.pass_time(chance.choice((1, 61, 400)))
            world.restart()
        flying.append(begun(world, chance))
    for change in chance.sample(CHANGES, len(CHANGES)):
        change(world)
    world.restart()
    world.transport.after = lambda request, response: None
    chance.shuffle(flying)
    for session, callback in flying:
        session = world.session(session.id)
        if callback is not None and session.status is Status.AWAITING_APPROVAL:
            with suppress(CheckoutError):
                world.finish(session, callback)
    world.sweep(rounds=30)
    paid = 0
    for session, _ in flying:
        session = world.session(session.id)
        assert not session.payment_in_flight, session.status
        if session.incoming_payment is None:
            continue
        sent = payments(world, session)
        assert len(sent) <= 1
        assert (session.status is Status.COMPLETED) == (len(sent) == 1)
        paid += session.status is Status.COMPLETED
    assert balance(world) == paid * 2000
    assert paid > 50


def begun(world: World, chance: random.Random) -> tuple[Session, tuple[str, str] | None]:
    """Return a session in a random state, and its callback if its customer has approved."""
    state = chance.choice(("open", "awaiting", "approved", "lost", "unsent", "paid", "closed"))
    session = world.create()
    if state == "open":
        return session, None
    session = world.submit(session)
    if state == "awaiting":
        return session, None
    if state == "closed":
        world.incoming(session).completed = True
        return session, None
    callback = world.approve(session)
    if state == "approved":
        return session, callback
    if state == "lost":
        world.transport.after = lose_answers("/outgoing-payments", OutcomeUnknown("lost"))
    if state == "unsent":
        world.transport.before = lambda request: (
            raising(NotSent("no"))() if request.url.endswith("/outgoing-payments") else None
        )
    with suppress(CheckoutError):
        world.finish(session, callback)
    world.transport.before = lambda request: None
    return world.session(session.id), None


def test_two_operators_who_change_a_merchant_at_once_do_not_lose_an_identity(world: World) -> None:
    """The second is told; each change is on condition of the version that it has read."""

    def meanwhile() -> None:
        world.core.merchants.replace(world.stored().changed(tolerance=7))

    busy = between(world.core.merchants, "move", meanwhile)
    with pytest.raises(setup.SetupRefused, match="changed meanwhile"):
        setup.move_wallet(
            replace(world.services, merchants=busy),
            world.shop,
            setup.NewMerchant("", NEW_SHOP),
        )
    assert (wallet(world), world.stored().tolerance) == (world.shop, 7)
    to_other_wallet(world)
    assert world.stored().identity == 1


def test_a_move_whose_answer_was_lost_is_written_once(world: World) -> None:
    to_other_wallet(world)
    assert world.core.merchants.move(world.stored()) is None  # the same write again
    assert world.stored().identity == 1


def test_a_session_of_no_merchant_is_not_paid(world: World) -> None:
    with pytest.raises(ResourceMissing):
        merchants.as_of(world.core.merchants, "mer_" + "0" * 22, None)


def test_a_merchant_whose_keys_do_not_sign_yet_signs_with_the_one_in_its_record(
    world: World,
) -> None:
    to_service_key(world)
    merchant = world.stored()
    before = world.clock.now() - timedelta(minutes=1)  # a clock that is behind
    assert merchant.signing_key(before) == (merchant.key_id, merchant.private_key)


def test_by_a_clock_that_is_behind_a_key_signs_that_is_shown(world: World) -> None:
    """A process may be two seconds behind the one that made the first key, and then the next."""
    to_service_key(world)
    to_service_key(world)
    first, following = world.stored().service_keys
    assert following.key_id == world.stored().key_id
    behind = world.clock.now() - timedelta(seconds=2)
    assert world.stored().signing_key(behind) == (first.key_id, first.private_key)


def test_a_merchant_that_is_not_there_is_not_moved(world: World) -> None:
    unknown = replace(world.stored(), id="mer_" + "0" * 22, wallet_address=NEW_SHOP, version=2)
    with pytest.raises(LookupError):
        world.core.merchants.move(unknown)


def test_asked_as_another_client_a_payment_in_doubt_stays_in_doubt(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order that would lose it: as the merchant is now. Even then, a 404 opens no session."""
    session = world.in_doubt()
    to_service_key(world)
    with monkeypatch.context() as wrong:
        wrong.setattr(Merchant, "as_of", lambda merchant, identity: merchant)
        world.restart()
        assert world.settle(session, seconds=3600, every=60).payment_in_flight
    world.restart()
    assert world.settle(world.session(session.id), seconds=7200, every=60).status is (
        Status.COMPLETED
    )
    assert len(payments(world, world.session(session.id))) == 1
