"""ENCRYPTION_KEY is rotated while the shop is open."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import Any

import pytest

from checkout.adapters.outbound.wallets import SignedWallets
from checkout.adapters.vault import REFRESH, AesVault
from checkout.domain.ground.errors import Unavailable
from checkout.domain.ground.ids import api_key_hash
from checkout.domain.merchant.record import Merchant, details_key_place, private_key_place
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.record import Session, Status
from checkout.domain.webhooks.record import WebhookSecret, secret_place
from checkout.flows.merchant import rotation, setup
from checkout.flows.merchant.api_keys import new_key
from checkout.flows.merchant.rotation import Progress, re_encrypt
from checkout.flows.session import details, prepare
from checkout.flows.session.create import create_session
from checkout.services import PayServices
from sandbox.wallets.state import Account
from tests.support.basics import NOW, SESSION_ID, a_session, between, come_back, seeded
from tests.support.flows import HARBOR, PREFIX, World, derived
from tests.support.samples import an_endpoint

OLD, NEW = "11" * 32, "22" * 32


def rotated(world: World) -> None:
    """The operator puts a new key in front of the old one."""
    world.encryption_key = f"{NEW},{OLD}"


def another_process(world: World, seed: int = 9) -> PayServices:
    """Its own memory of the key, over the same tables and wallets."""
    vault = AesVault(lambda: world.encryption_key, seeded(seed), clock=world.clock, derive=derived)
    wallets = SignedWallets(world.transport, vault, world.clock, allow_loopback=True)
    return replace(world.services, vault=vault, wallets=wallets)


def ignored(progress: Progress) -> None:
    return


def key_ids(world: World) -> set[str]:
    """Of all that merchants keep sealed."""
    sealed: list[str] = []
    for merchant in world.services.merchants.page(limit=10_000).records:
        secrets = merchant.endpoint.secrets if merchant.endpoint else ()
        sealed += [merchant.private_key, *(secret.sealed for secret in secrets)]
        sealed.append(merchant.details_key)
    return {each.split(".")[1] for each in sealed}


def with_webhook(world: World, services: PayServices | None = None) -> Merchant:
    vault = (services or world.services).vault
    place = secret_place(world.merchant.id)
    secrets = tuple(
        WebhookSecret(sealed=vault.seal(f"whsec_{number}", place=place), created_at=NOW)
        for number in range(2)
    )
    merchant = world.stored().changed(
        endpoint=an_endpoint(url="https://shop.example/hook", secrets=secrets)
    )
    world.services.merchants.replace(merchant)
    return merchant


def test_private_key_and_webhook_secrets_are_the_same_under_the_new_key(world: World) -> None:
    before = with_webhook(world)
    rotated(world)
    operator = another_process(world)
    assert re_encrypt(operator, on_progress=ignored) == Progress(checked=1, renewed=1)
    after = world.stored()
    only_new = AesVault(lambda: NEW, seeded(), derive=derived)
    assert only_new.open(after.private_key, place=private_key_place(after.id)) == (
        world.services.vault.open(before.private_key, place=private_key_place(before.id))
    )
    assert after.endpoint is not None
    opened = [
        only_new.open(secret.sealed, place=secret_place(after.id))
        for secret in after.endpoint.secrets
    ]
    assert opened == ["whsec_0", "whsec_1"]
    assert only_new.open(after.details_key, place=details_key_place(after.id)) == (
        world.services.vault.open(before.details_key, place=details_key_place(before.id))
    )
    assert replace(after, version=1, private_key="", endpoint=None, details_key="") == replace(
        before, version=1, private_key="", endpoint=None, details_key=""
    )


def test_details_of_customers_are_read_after_the_old_key_is_gone(world: World) -> None:
    given = CustomerDetails(email="ana@example.com")
    before = world.stored()
    sealed = details.seal(world.services.vault, before, SESSION_ID, given)
    session = a_session(customer_details=sealed.details)
    rotated(world)
    re_encrypt(another_process(world), on_progress=ignored)
    only_new = AesVault(lambda: NEW, seeded(), derive=derived)
    assert details.opened(only_new, world.stored(), session) == given


def test_a_key_for_details_is_wrapped_for_the_api_once_it_can_be(world: World) -> None:
    given = CustomerDetails(email="ana@example.com")
    world.services.merchants.replace(world.stored().changed(details_key_kms=None))
    sealed = details.seal(world.services.vault, world.stored(), SESSION_ID, given)
    session = a_session(merchant=world.merchant.id, customer_details=sealed.details)
    assert details.known(world.core, [session])[SESSION_ID] == CustomerDetails()
    assert re_encrypt(world.services, on_progress=ignored) == Progress(checked=1, renewed=1)
    assert details.known(world.core, [session])[SESSION_ID] == given
    assert re_encrypt(world.services, on_progress=ignored) == Progress(checked=1, renewed=0)


def test_a_damaged_merchant_is_named_and_its_rotation_is_not_complete(world: World) -> None:
    rotated(world)
    world.dynamo.update_item(
        TableName=f"{PREFIX}-merchants",
        Key={"id": {"S": world.merchant.id}},
        UpdateExpression="REMOVE #name",
        ExpressionAttributeNames={"#name": "name"},
    )
    progress = re_encrypt(another_process(world), on_progress=ignored)
    assert progress.unreadable == [world.merchant.id]
    assert not progress.complete


def test_a_second_run_finds_nothing_left_and_writes_nothing(world: World) -> None:
    rotated(world)
    operator = another_process(world)
    re_encrypt(operator, on_progress=ignored)
    world.forget()
    assert re_encrypt(operator, on_progress=ignored) == Progress(checked=1, renewed=0)
    assert world.aws_calls() == ["scan"]


def changing(world: World, name: str, *, times: int) -> Any:
    """Return the merchants, where somebody renames one before each of the next writes."""
    merchants = world.core.merchants

    def rename() -> None:
        merchants.replace(world.stored().changed(name=name))

    return between(merchants, "replace", rename, times=times)


def test_a_merchant_that_is_changed_meanwhile_keeps_the_change(world: World) -> None:
    rotated(world)
    operator = another_process(world)
    change = changing(world, "Renamed", times=1)
    progress = re_encrypt(replace(operator, merchants=change), on_progress=ignored)
    assert progress == Progress(checked=1, renewed=1)
    after = world.stored()
    assert (after.name, operator.vault.is_current(after.private_key)) == ("Renamed", True)


def test_a_merchant_that_others_keep_changing_is_told_and_left_for_the_next_run() -> None:
    world = World()
    rotated(world)
    operator = another_process(world)
    change = changing(world, "Again", times=100)
    progress = re_encrypt(replace(operator, merchants=change), on_progress=ignored)
    assert progress.busy == [world.merchant.id]
    assert not progress.complete
    assert re_encrypt(operator, on_progress=ignored).complete


def test_what_neither_key_opens_is_kept_and_told_and_stops_no_other(world: World) -> None:
    others = AesVault(lambda: "33" * 32, seeded(), derive=derived)
    lost = with_webhook(world, replace(world.services, vault=others))
    merchants = open_shops(world, 3)
    rotated(world)
    progress = re_encrypt(another_process(world), on_progress=ignored)
    assert progress == Progress(checked=4, renewed=3, unreadable=[lost.id])
    assert world.stored() == lost
    assert len(merchants) == 3


def test_broken_off_by_a_failing_store_it_goes_on_where_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rotation, "PAGE", 10)
    world = World()
    open_shops(world, 49)
    rotated(world)
    operator = another_process(world)
    heard: list[int] = []

    def failing(progress: Progress) -> None:
        heard.append(progress.checked)
        if len(heard) == 3:
            raise Unavailable("The data store is not answering.")

    with pytest.raises(Unavailable):
        re_encrypt(operator, on_progress=failing)
    second = re_encrypt(operator, on_progress=ignored)
    assert 0 < second.renewed < 50
    assert second.checked == 50
    assert len(key_ids(world)) == 1


# --- while checkouts go on ---


@dataclass
class Shop:
    """A merchant with a customer who goes on by a step at a time."""

    merchant: Merchant
    secret: str
    session: Session | None = None
    callback: tuple[str, str] | None = None
    paid: int = 0


def open_shops(world: World, count: int) -> list[Shop]:
    """`count` merchants more, each with a wallet, a registered key and a sealed one of its own."""
    first = world.network.account(world.shop)
    assert first is not None
    place = private_key_place(world.merchant.id)
    plain = world.services.vault.open(world.stored().private_key, place=place)
    shops = []
    for number in range(count):
        wallet = f"{HARBOR}/shop-{number}"
        world.network.add_account(
            Account(wallet, f"Shop {number}", "USD", 2, 0, keys=list(first.keys))
        )
        identity = f"mer_{number:06d}"
        merchant = replace(
            world.merchant,
            id=identity,
            wallet_address=wallet,
            private_key=world.services.vault.seal(plain, place=private_key_place(identity)),
            **details.new_keys(world.services.vault, None, seeded(), identity),
        )
        made = new_key(world.services, merchant, name="First key")
        assert world.services.merchants.add(merchant, made.key) is None
        shops.append(Shop(merchant, made.plain))
    return shops


@dataclass
class Business:
    """Customers at many shops, served by processes that learned of the new key at their own
    times.
    """

    world: World
    processes: list[PayServices]
    shops: list[Shop]
    turn: int = 0
    statuses: list[Status] = field(default_factory=list)

    def steps(self, count: int) -> None:
        """The next shop's customer goes on, at the next process."""
        for _ in range(count):
            self._go_on(self.shops[self.turn % len(self.shops)])

    def finish_all(self) -> None:
        """Bring back each customer who awaits approval."""
        for shop in self.shops:
            if shop.callback is not None:
                self._go_on(shop)

    def _go_on(self, shop: Shop) -> None:
        services = self.processes[(self.turn // 3) % len(self.processes)]
        self.turn += 1
        self.world.clock.pass_time(0.5)
        if shop.session is None:
            key = services.api_keys.find(api_key_hash(shop.secret))
            assert key is not None
            body = create_session(services, key, self.world.new(), None).body
            shop.session = self.world.session(json.loads(body)["id"])
        elif shop.callback is None:
            shop.session = prepare.submit_wallet(
                services, shop.session.id, "https://localhost:4101/alice"
            )
            shop.callback = self.world.approve(shop.session)
        else:
            done = come_back(services, shop.session.id, *shop.callback)
            self.statuses.append(done.record.status)
            shop.session, shop.callback, shop.paid = None, None, shop.paid + 1


@pytest.mark.endurance
def test_a_thousand_merchants_are_re_encrypted_while_checkouts_go_on_and_none_fails() -> None:
    world = World()
    shops = open_shops(world, 999)
    old = key_ids(world)
    assert len(old) == 1
    processes = [another_process(world, seed) for seed in (21, 22, 23)]
    business = Business(world, processes, shops[::83])
    business.steps(20)  # some await approval, sealed under the old key
    rotated(world)
    eighth = cycle([False] * 7 + [True])

    def go_on() -> None:
        if next(eighth):  # a customer goes on before every eighth write
            business.steps(1)

    merchants = between(world.services.merchants, "replace", go_on, times=1000)
    operator = replace(another_process(world, 24), merchants=merchants)
    assert re_encrypt(operator, on_progress=ignored) == Progress(checked=1000, renewed=1000)
    assert len(key_ids(world)) == 1
    assert not key_ids(world) & old

    business.finish_all()  # whoever awaited approval under the old key
    world.encryption_key = NEW
    world.clock.pass_time(REFRESH.total_seconds())
    business.steps(len(business.shops) * 3)
    assert set(business.statuses) == {Status.COMPLETED}
    assert len(business.statuses) > 50
    accounts = [world.network.account(shop.merchant.wallet_address) for shop in shops]
    assert sum(account.balance for account in accounts if account) == 2000 * len(business.statuses)


def test_keys_of_the_service_and_of_former_identities_are_encrypted_again(world: World) -> None:
    setup.replace_key(world.services, setup.NewMerchant("", world.shop))
    rotated(world)
    progress = re_encrypt(another_process(world), on_progress=ignored)
    assert (progress.renewed, progress.complete) == (1, True)
    merchant = world.stored()
    sealed = [each.private_key for each in merchant.service_keys]
    sealed += [each.private_key for each in merchant.former]
    assert len(sealed) == 2
    assert {each.split(".")[1] for each in sealed} == {merchant.private_key.split(".")[1]}
    world.encryption_key = NEW
    services = another_process(world, seed=10)
    for each in sealed:
        assert services.vault.open(each, place=private_key_place(merchant.id))
