"""`checkout webhook`, over a world in memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import pytest

from checkout import cli
from checkout.domain.webhooks.event_types import CANCELED, COMPLETED, EXPIRED
from checkout.domain.webhooks.record import Format
from checkout.domain.webhooks.signature import signed_headers
from checkout.flows.webhooks.deliver import MessageResult
from tests.support.flows import World

URL = "https://shop.example/hooks"
ENDS = ("checkout.session.canceled", "checkout.session.expired")


@pytest.fixture
def world() -> World:
    return World()


class Ran:
    """One command, for the world's merchant."""

    def __init__(
        self, world: World, capsys: pytest.CaptureFixture[str], *arguments: str, whose: str = ""
    ) -> None:
        named = ["--merchant", whose or world.merchant.id]
        self.code = cli.main(["webhook", *named, *arguments], lambda: world.endpoints)
        self.out, self.err = capsys.readouterr()

    @property
    def secret(self) -> str:
        found = re.search(r"^secret    (whsec_\S{44})$", self.out, re.M)
        assert found is not None, self.out + self.err
        return found[1]


Webhook = Callable[..., Ran]


@pytest.fixture
def webhook(world: World, capsys: pytest.CaptureFixture[str]) -> Webhook:
    return partial(Ran, world, capsys)


def test_the_first_address_comes_with_a_secret_and_a_further_one_keeps_it(
    world: World, webhook: Webhook
) -> None:
    first = webhook("--url", URL)
    assert (first.code, first.err) == (0, "")
    assert f"webhook   {URL}\nevents    {COMPLETED}\n" in first.out
    assert first.secret

    other = webhook("--url", f"{URL}/2", "--events", *ENDS)
    assert f"webhook   {URL}/2\nevents    {COMPLETED} {EXPIRED} {CANCELED}\n" in other.out
    assert "whsec_" not in other.out


def test_a_rolled_secret_is_valid_beside_the_one_before_it(world: World, webhook: Webhook) -> None:
    before = webhook("--url", URL).secret
    newest = webhook("--roll-secret", "1").secret
    assert newest != before
    webhook("--test")
    world.deliver_hinted()
    world.clock.pass_time(3600)
    webhook("--test")
    world.deliver_hinted()
    for (_, headers, body), secrets in zip(
        world.receivers.got, [[newest, before], [newest]], strict=True
    ):
        at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
        event = headers["Checkout-Event-Id"], headers["Checkout-Event-Type"], body.decode()
        assert headers == signed_headers(*event, secrets=secrets, now=at)


def test_a_test_event_is_sent_and_named(world: World, webhook: Webhook) -> None:
    world.listen()
    said = webhook("--test")
    assert said.code == 0
    world.deliver_hinted()
    [(url, headers, _)] = world.receivers.got
    assert (url, headers["Checkout-Event-Type"]) == (URL, "ping")
    assert f"test      {headers['Checkout-Event-Id']} is on its way\n" in said.out


def test_a_removed_endpoint_is_gone_and_shown_as_none(world: World, webhook: Webhook) -> None:
    world.listen()
    assert f"webhook   {URL}\n" in webhook().out
    assert "webhook   none\n" in webhook("--remove").out
    again = webhook("--test")
    assert (again.code, again.err) == (1, "No webhook endpoint is set.\n")


def test_an_endpoint_that_answered_410_is_shown_as_disabled(world: World, webhook: Webhook) -> None:
    world.listen()
    world.core.merchants.replace(world.stored().disabled(world.clock.now()))
    assert f"webhook   {URL} (disabled: it answered 410)\n" in webhook().out
    assert f"webhook   {URL}\n" in webhook("--url", URL).out


def test_the_merchant_can_be_named_by_its_wallet(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    named = ["--wallet-address", world.merchant.wallet_address]
    assert cli.main(["webhook", *named], lambda: world.endpoints) == 0
    assert capsys.readouterr().out == f"merchant  {world.merchant.id}\nwebhook   none\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--url", "http://shop.example/hooks"), "https"),
        (("--url", "https://private.example/hooks"), "public address"),
        (("--roll-secret", "1"), "No webhook endpoint is set."),
    ],
)
def test_what_is_refused_says_why(
    world: World, webhook: Webhook, arguments: tuple[str, ...], said: str
) -> None:
    world.hosts.private.add("private.example")
    ran = webhook(*arguments)
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err


def test_an_unknown_merchant_is_refused(world: World, webhook: Webhook) -> None:
    ran = webhook(whose="mer_none")
    assert (ran.code, ran.err) == (1, "No such merchant.\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--roll-secret", "-1"),
        ("--roll-secret", "1000"),
        ("--events", ENDS[1]),
        ("--url",),
    ],
)
def test_a_command_that_cannot_be_meant_is_refused_before_anything_is_done(
    world: World, webhook: Webhook, arguments: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit) as exited:
        webhook(*arguments)
    assert exited.value.code == 2
    assert world.stored() == world.merchant


def test_the_form_of_the_bodies_is_set_shown_and_kept(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "format    native" in Ran(world, capsys, "--url", URL).out
    assert "format    stripe" in Ran(world, capsys, "--url", URL, "--format", "stripe").out
    assert "format    stripe" in Ran(world, capsys, "--url", f"{URL}/new").out
    assert world.endpoint().format is Format.STRIPE


def test_a_further_endpoint_is_added_tested_rolled_and_removed(
    world: World, webhook: Webhook
) -> None:
    webhook("--url", URL)
    url = "https://books.example/"
    assert webhook("--url", url, "--endpoint", "new", "--events", EXPIRED).secret
    first, books = world.stored().endpoints
    assert books.id is not None
    tested = webhook("--endpoint", books.id, "--test")
    for words in (first.url, url, f"endpoint  {books.id}", EXPIRED):
        assert words in tested.out
    assert world.deliver_hinted() == [MessageResult.DELIVERED]
    assert world.receivers.got[0][0] == url
    assert webhook("--endpoint", books.id, "--roll-secret", "1").secret
    assert [len(each.secrets) for each in world.stored().endpoints] == [1, 2]
    webhook("--endpoint", books.id, "--url", f"{url}2")
    webhook("--remove")
    assert [each.url for each in world.stored().endpoints] == [f"{url}2"]
    assert webhook("--endpoint", "we_none", "--test").code == 1
