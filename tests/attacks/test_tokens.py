"""Tokens at home: a stranger's wallet gets none that an honest server gave for another, and an
approval for another payment is not used.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkout.domain.ground.errors import CheckoutError
from checkout.domain.payment.in_flight import Problem
from open_payments.transports import Request, Response
from tests.attacks.hostile import Hostile, assert_open_and_unpaid, hostile
from tests.support.flows import CEDAR, World

EVIL = "https://evil.example"
INACTIVE = {"error": {"code": "invalid_token", "description": "Inactive Token"}}


def tokens_in(requests: list[Request]) -> set[str]:
    headers = (
        {name.lower(): value for name, value in request.headers.items()} for request in requests
    )
    return {each["authorization"] for each in headers if "authorization" in each}


class Mallory:
    """A wallet with an honest authorization server and a resource server of her own."""

    def __init__(self, strangers: Hostile, honest: str, *, status: int, body: Any) -> None:
        document = json.loads(
            strangers.network.handle(Request("GET", honest, {"accept": "application/json"})).body
        )
        self.document = document | {"id": f"{EVIL}/mallory", "resourceServer": f"{EVIL}/op"}
        self.answer = Response(status, {}, json.dumps(body).encode())
        strangers.servers[EVIL] = self
        strangers.seen.clear()

    def __call__(self, request: Request) -> Response:
        if request.url == f"{EVIL}/mallory":
            return Response(200, {}, json.dumps(self.document).encode())
        return self.answer


@pytest.mark.parametrize(
    ("status", "body"),
    [(401, INACTIVE), (403, INACTIVE), (201, {}), (500, "no"), (404, INACTIVE)],
    ids=str,
)
@pytest.mark.parametrize("honest", ["customer", "merchant"])
def test_a_stranger_gets_no_kept_token_and_renews_none(
    world: World, honest: str, status: int, body: Any
) -> None:
    strangers = hostile(world)
    world.pay(world.create())  # both providers' tokens are kept from here on
    kept = tokens_in(strangers.seen)
    issued = dict(world.network.state.tokens)
    mallory = Mallory(
        strangers,
        f"{CEDAR}/alice" if honest == "customer" else world.shop,
        status=status,
        body=body,
    )
    session = world.create()
    with pytest.raises(CheckoutError):
        world.submit(session, f"{EVIL}/mallory")
    assert_no_approval(world, session.id)
    got = tokens_in(strangers.to(f"{EVIL}/op"))
    assert got
    assert not got & kept
    assert mallory.document["authServer"].startswith("https://localhost")
    assert issued.items() <= world.network.state.tokens.items()  # none was rotated away

    # the honest customer of the same provider goes on with the tokens that were kept
    strangers.seen.clear()
    world.submit(world.create())
    used = tokens_in(strangers.seen)
    assert used <= kept
    assert not [each for each in strangers.seen if "/token/" in each.url]


def assert_no_approval(world: World, session_id: str) -> None:
    after = world.session(session_id)
    assert (after.status.value, after.outgoing_payment, after.grant) == ("open", None, None)


OTHER_RECEIVER = f"{EVIL}/incoming-payments/1"
MORE = {"value": "999999", "assetCode": "EUR", "assetScale": 2}
FORGED: dict[str, Any] = {
    "receiver": lambda access: access["limits"].update(receiver=OTHER_RECEIVER),
    "no text as receiver": lambda access: access["limits"].update(receiver=7),
    "amount": lambda access: access["limits"].update(debitAmount=MORE),
    "asset": lambda access: access["limits"]["debitAmount"].update(assetCode="USD"),
    "scale": lambda access: access["limits"]["debitAmount"].update(assetScale=3),
    "no amount": lambda access: access["limits"].update(debitAmount="1"),
    "received amount": lambda access: access["limits"].update(receiveAmount=MORE),
    "interval": lambda access: access["limits"].update(interval="R/2026-01-01T00:00:00Z/P1D"),
    "wallet": lambda access: access.update(identifier=f"{CEDAR}/bob"),
    "type": lambda access: access.update(type="quote"),
    "limits": lambda access: access.update(limits=["receiver"]),
}


def approved(world: World, change: Any) -> Any:
    """Return the session after an approval whose `access` is changed on its way to us."""
    session, callback = world.awaiting()
    strangers = hostile(world)

    def forged(members: dict[str, Any]) -> None:
        if "access" in members.get("access_token", {}):
            change(members["access_token"])

    strangers.changes = [("/continue/", forged)]
    world.forget()
    return world.finish(session, callback).record


@pytest.mark.parametrize("case", FORGED)
def test_an_approval_for_another_payment_is_not_used(world: World, case: str) -> None:
    session = approved(world, lambda token: FORGED[case](token["access"][0]))
    assert session.problem is Problem.APPROVAL_UNUSABLE
    assert_open_and_unpaid(world, session)
    assert world.transport.count("DELETE", "/continue/") == 1  # and given back


def test_a_second_access_for_another_receiver_is_not_used_either(world: World) -> None:
    def second(token: dict[str, Any]) -> None:
        other = json.loads(json.dumps(token["access"][0]))
        other["limits"]["receiver"] = OTHER_RECEIVER
        token["access"].append(other)

    assert_open_and_unpaid(world, approved(world, second))


LESS: dict[str, Any] = {
    "all": lambda token: None,
    "no access": lambda token: token.pop("access"),
    "no limits": lambda token: token["access"][0].pop("limits"),
    "no receiver": lambda token: token["access"][0]["limits"].pop("receiver"),
    "nulls": lambda token: token["access"][0]["limits"].update(receiveAmount=None, interval=None),
    "no identifier": lambda token: token["access"][0].pop("identifier"),
}


@pytest.mark.parametrize("case", LESS)
def test_an_approval_that_repeats_less_is_used(world: World, case: str) -> None:
    assert approved(world, LESS[case]).status.value == "completed"
    assert world.received() == 2000
