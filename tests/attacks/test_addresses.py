"""Addresses of clouds' metadata and platform services, at every door where a stranger names a host.

The doors: a wallet address, the hosts in its document and in its answers, a webhook endpoint, the
merchant's redirects, the wallet's page for approval. Saved or used, nothing is sent there.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkout.adapters.outbound.hosts import ResolvedHosts
from checkout.domain.ground.errors import (
    UrlInvalid,
    WalletInvalid,
    WalletUnavailable,
    WalletUnreachable,
)
from checkout.domain.ground.grammar import link_host, redirect_url, return_host
from checkout.domain.ground.typed_address import wallet_url
from checkout.flows.merchant.setup import NewMerchant, SetupRefused, set_up
from checkout.flows.webhooks import endpoints
from open_payments.errors import NotSent
from open_payments.transports import Request, Response
from open_payments.transports.addresses import is_host, is_permitted
from open_payments.transports.public import PublicTransport
from open_payments.urls import is_infrastructure, target
from tests.attacks.hostile import assert_open_and_unpaid, hostile
from tests.support.flows import CEDAR, World
from tests.support.keys import new_key_pair

pytestmark = pytest.mark.untraced

ADDRESSES_V4 = ["168.63.129.16", "100.100.100.200", "169.254.169.254", "169.254.170.2",
                "169.254.42.42", "169.254.0.23", "192.0.0.192"]  # fmt: skip
ADDRESSES_V6 = ["fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42", "fe80::a9fe:a9fe",
                "::ffff:168.63.129.16", "::ffff:a9fe:a9fe", "2002:a83f:8110::1",
                "64:ff9b::a83f:8110"]  # fmt: skip
NAMES = ["metadata.google.internal", "METADATA.google.INTERNAL", "metadata.google.internal.",
         "any.metadata.google.internal", "metadata.goog", "metadata", "instance-data",
         "instance-data.ec2.internal", "metadata.azure.internal", "metadata.tencentyun.com",
         "metadata.packet.net", "metadata.platformequinix.com", "api.metadata.cloud.ibm.com",
         "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"]  # fmt: skip
# What resolvers and browsers read as 169.254.169.254 or 168.63.129.16.
NOTATIONS = ["2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.16689662", "0xa83f8110"]
BRACKETED = [f"[{address}]" for address in ADDRESSES_V6]
HOSTS = [*ADDRESSES_V4, *BRACKETED, *NAMES, *NOTATIONS]
SOME = [ADDRESSES_V4[0], ADDRESSES_V4[2], BRACKETED[0], BRACKETED[5], NAMES[0], NOTATIONS[0]]
PUBLIC = ["8.8.8.8", "[2606:4700::1111]", "wallet.example", "google.internal.example",
          "168.63.129.17", "notmetadata.goog", "169.253.0.1", "metadata.example",
          "[2002:808:808::1]"]  # fmt: skip


@pytest.mark.parametrize("host", HOSTS)
def test_the_list_knows_it_in_every_notation(host: str) -> None:
    assert is_infrastructure(host)
    assert not is_host(host.strip("[]"))


@pytest.mark.parametrize("host", PUBLIC)
def test_other_hosts_are_not_on_the_list(host: str) -> None:
    assert not is_infrastructure(host)


@given(st.text())
def test_any_text_may_be_asked_for(text: str) -> None:
    assert is_infrastructure(text) in (True, False)


@pytest.mark.parametrize("host", HOSTS)
def test_a_typed_wallet_address_there_is_refused_and_nothing_happens(host: str) -> None:
    for allow_ports in (True, False):
        with pytest.raises(ValueError, match=r"wallet address|host name"):
            wallet_url(f"https://{host}/alice", allow_ports=allow_ports)
    world = World()
    session = world.create()
    world.forget()
    with pytest.raises(WalletInvalid):
        world.submit(session, f"https://{host}/alice")
    assert not world.transport.sent
    assert world.session(session.id) == session


@pytest.mark.parametrize("host", SOME)
def test_no_merchant_is_set_up_with_a_wallet_there(world: World, host: str) -> None:
    pem, _ = new_key_pair("key")
    world.forget()
    with pytest.raises(SetupRefused):
        set_up(world.services, NewMerchant("Shop", f"https://{host}/shop", "key", pem))
    assert not world.transport.sent
    assert "transact_write_items" not in world.aws_calls()


@pytest.mark.parametrize("host", SOME)
@pytest.mark.parametrize("member", ["id", "authServer", "resourceServer"])
def test_a_wallets_document_leads_nobody_there(world: World, member: str, host: str) -> None:
    session = world.create()
    strangers = hostile(world)
    strangers.changes = [("/alice", lambda document: document.update({member: f"https://{host}/"}))]
    with pytest.raises((WalletInvalid, WalletUnreachable)):
        world.submit(session)
    assert_open_and_unpaid(world, session)
    assert {request.url for request in strangers.seen} == {f"{CEDAR}/alice"}


@pytest.mark.parametrize("host", SOME)
def test_a_redirect_of_a_wallet_address_leads_nobody_there(world: World, host: str) -> None:
    session = world.create()
    strangers = hostile(world)
    strangers.servers[f"{CEDAR}/alice"] = lambda request: Response(
        302, {"location": f"https://{host}/latest/meta-data"}, b""
    )
    with pytest.raises((WalletInvalid, WalletUnreachable)):
        world.submit(session)
    assert_open_and_unpaid(world, session)
    assert {request.url for request in strangers.seen} == {f"{CEDAR}/alice"}


def changed(*path: str, to: str) -> Callable[[dict[str, Any]], None]:
    def change(members: dict[str, Any]) -> None:
        *outer, last = path
        for name in outer:
            if not isinstance(members.get(name), dict):
                return
            members = members[name]
        if last in members:
            members[last] = to

    return change


@pytest.mark.parametrize("host", SOME)
@pytest.mark.parametrize(
    "path",
    [("interact", "redirect"), ("continue", "uri"), ("access_token", "manage")],
    ids=".".join,
)
def test_a_wallets_answers_lead_nobody_there(
    world: World, path: tuple[str, ...], host: str
) -> None:
    session = world.create()
    strangers = hostile(world)
    strangers.changes = [("https://localhost:41", changed(*path, to=f"https://{host}/x"))]
    with pytest.raises(WalletUnavailable):
        world.submit(session)
    assert_open_and_unpaid(world, session)
    assert not strangers.to(f"https://{host}")


@pytest.mark.parametrize("host", SOME)
def test_no_webhook_endpoint_there_is_saved(world: World, host: str) -> None:
    before = world.stored()
    world.hosts.private.clear()  # as if a resolver found it public
    with pytest.raises(UrlInvalid):
        endpoints.configure(
            world.endpoints, world.merchant.id, url=f"https://{host}/hook", events=()
        )
    assert world.stored() == before


@pytest.mark.parametrize("host", HOSTS)
def test_no_customer_is_redirected_there(host: str) -> None:
    with pytest.raises(UrlInvalid):
        redirect_url(f"https://{host}/", session_id="x", base_is_http=False, param="success_url")
    assert return_host(host) is None
    assert link_host(f"https://{host}/", base_is_http=True) is None


@pytest.mark.parametrize("host", HOSTS)
def test_what_was_saved_before_is_not_used(host: str) -> None:
    """A row of an older release: a wallet's server, a webhook's receiver."""
    asked: list[str] = []

    def resolve(name: str, *rest: Any) -> list[Any]:
        asked.append(name)
        return [(socket.AF_INET, 1, 6, "", ("8.8.8.8", 443))]

    http = PublicTransport(user_agent="1", resolve=resolve)
    for method in ("GET", "POST"):
        with pytest.raises(NotSent):
            http.send(Request(method, f"https://{host}/", {}), timeout=1)
    http.close()
    assert not asked
    with pytest.raises(ValueError, match=r"host"):
        target(f"https://{host}/")


@pytest.mark.parametrize("address", [*ADDRESSES_V4, *ADDRESSES_V6])
@pytest.mark.parametrize("allow_loopback", [True, False])
def test_a_name_that_resolves_there_is_refused_when_saved_and_when_used(
    address: str, allow_loopback: bool
) -> None:
    def resolve(name: str, *rest: Any) -> list[Any]:
        return [(socket.AF_INET, 1, 6, "", ("8.8.8.8", 443)), (0, 1, 6, "", (address, 443))]

    assert not is_permitted(address, allow_loopback=allow_loopback)
    hosts = ResolvedHosts(allow_loopback=allow_loopback, resolve=resolve)
    assert not hosts.permitted("hooks.example")
    http = PublicTransport(user_agent="1", resolve=resolve, allow_loopback=allow_loopback)
    with pytest.raises(NotSent, match="address refused"):
        http.send(Request("GET", "https://hooks.example/", {}), timeout=1)
    http.close()
