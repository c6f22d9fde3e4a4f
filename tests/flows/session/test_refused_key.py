"""A merchant's key that a provider does not accept: told in the story, the log and a metric."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from checkout import telemetry
from checkout.adapters.instrumented import report_refusal
from checkout.adapters.outbound.wallets import SignedWallets
from checkout.domain.ground.errors import MerchantWalletError
from checkout.domain.ground.ids import session_ref
from checkout.domain.merchant.record import private_key_place
from checkout.domain.payment.in_flight import Problem
from checkout.domain.session.public import public_attempts
from checkout.domain.session.record import Session, Status
from open_payments.errors import OutcomeUnknown
from open_payments.transports import Response
from sandbox.wallets.answers import Refusal, gnap, resource
from tests.support.flows import World, answering, on, raising
from tests.support.keys import KEY_ID

Told = Callable[[], list[dict[str, Any]]]


def revoke(world: World) -> None:
    """Remove the merchant's keys from their wallet."""
    account = world.network.account(world.shop)
    assert account is not None
    account.keys = []


def reporting() -> World:
    """Return a world whose refusals are reported as a function reports them."""
    telemetry.start("pay")
    world = World()
    wallets = SignedWallets(
        world.transport, world.vault, world.clock, allow_loopback=True, on_refusal=report_refusal
    )
    world.services = replace(world.services, wallets=wallets)
    return world


def test_a_revoked_key_is_named_in_the_story_the_log_and_a_metric(told: Told) -> None:
    world = reporting()
    revoke(world)
    session = world.create()
    told()
    with pytest.raises(MerchantWalletError, match="keys could not be verified"):
        world.submit(session)
    telemetry.observed(lambda event, context: None)(None, None)
    lines = told()

    note = "merchant_wallet_error: client_unknown (localhost:4202 answered 400 invalid_client)"
    assert world.session(session.id).history[-1].note == note

    [line] = [line for line in lines if line.get("level") == "WARNING"]
    assert line["message"] == (
        f"the key of merchant {world.merchant.id} was not accepted (client_unknown): "
        "localhost:4202 answered 400 invalid_client"
    )
    fields = ("merchant", "key_id", "operation", "host", "status", "code", "reason")
    assert [line[name] for name in fields] == [
        *(world.merchant.id, KEY_ID, "request_grant", "localhost:4202"),
        *(400, "invalid_client", "client_unknown"),
    ]

    counted = [line for line in lines if "MerchantKeyRefused" in line]
    assert [line["MerchantKeyRefused"] for line in counted] == [[1], [1]]
    assert [line.get("reason") for line in counted] == ["client_unknown", None]

    text = json.dumps(lines)
    sealed = world.merchant.private_key
    key = world.vault.open(sealed, place=private_key_place(world.merchant.id))
    for secret in (session.id, session_ref(session.id), sealed, key, "could not"):
        assert secret not in text


def test_other_refusals_are_no_matter_of_the_key(told: Told) -> None:
    world = reporting()
    answering(world, "POST", "/quotes", lambda request: resource(400, "invalid receiver").response)
    session = world.create()
    with pytest.raises(Exception, match="not connected"):
        world.submit(session)
    telemetry.observed(lambda event, context: None)(None, None)
    assert "MerchantKeyRefused" not in json.dumps(told())


@pytest.mark.parametrize(
    ("part", "refused", "note"),
    [
        (  # the merchant's resource server, with a token kept from before
            "/incoming-payments",
            resource(401, "Signature validation error: could not find key"),
            "client_unknown (localhost:4201 answered 401)",
        ),
        (
            "/quotes",
            resource(401, "Signature validation error: signature is invalid"),
            "bad_signature (localhost:4101 answered 401)",
        ),
        (
            ":4102/",
            gnap(400, "invalid_client", "could not determine client"),
            "client_unknown (localhost:4102 answered 400 invalid_client)",
        ),
        (
            ":4102/",
            gnap(401, "invalid_client", "invalid signature"),
            "bad_signature (localhost:4102 answered 401 invalid_client)",
        ),
    ],
)
def test_the_story_says_which_provider_refused_the_shops_key(
    world: World, part: str, refused: Refusal, note: str
) -> None:
    world.submit(world.create())
    session = world.create()
    answering(world, "POST", part, lambda request: refused.response)
    with pytest.raises(MerchantWalletError, match="keys could not be verified"):
        world.submit(session)
    after = world.session(session.id)
    assert (after.status, after.problem) == (Status.OPEN, Problem.MERCHANT_WALLET_ERROR)
    assert after.history[-1].note == f"merchant_wallet_error: {note}"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(Response(500, {}, b""), "OutcomeUnknown"), (Response(403, {}, b"secret"), "Refused")],
)
def test_the_story_tells_another_failure_of_the_shops_provider_by_its_kind(
    world: World, answer: Response, kind: str
) -> None:
    session = world.create()
    answering(world, "POST", "/incoming-payments", lambda request: answer)
    with pytest.raises(MerchantWalletError, match="not available right now"):
        world.submit(session)
    assert world.session(session.id).history[-1].note == f"merchant_wallet_error: {kind}"


def test_an_approval_lost_with_the_key_says_so_too(world: World) -> None:
    session, callback = world.awaiting()
    revoke(world)
    after = world.finish(session, callback).record
    assert_not_the_customers_fault(after, "localhost:4102 answered 400 invalid_client")


def assert_not_the_customers_fault(session: Session, answered: str) -> None:
    assert (session.status, session.problem) == (Status.OPEN, Problem.MERCHANT_WALLET_ERROR)
    assert session.history[-1].note == f"merchant_wallet_error: client_unknown ({answered})"
    [attempt] = public_attempts(session)
    assert (attempt["outcome"], attempt["ended_by"]) == ("failed", "merchant_wallet")
    assert attempt["error"] == {
        "code": "merchant_wallet_error",
        "message": "A wallet provider did not find your key at your wallet address: the key was "
        f"removed there, or could not be read. ({answered})",
    }


def test_a_payment_refused_for_the_key_blames_neither_the_customer_nor_their_money(
    world: World,
) -> None:
    session, callback = world.awaiting()
    refused = resource(401, "Signature validation error: could not find key").response
    answering(world, "POST", "/outgoing-payments", lambda request: refused)
    after = world.finish(session, callback).record
    assert_not_the_customers_fault(after, "localhost:4101 answered 401")


@pytest.mark.parametrize(
    ("down", "told_as"),
    [
        (True, "the wallet of merchant {} could not be read for its key"),
        (False, "a provider did not find the key of merchant {}, which is there"),
    ],
)
def test_a_key_that_no_provider_can_read_just_now_is_not_called_refused(
    told: Told, down: bool, told_as: str
) -> None:
    world = reporting()
    unknown = gnap(400, "invalid_client", "could not determine client").response
    answering(world, "POST", ":4102/", lambda request: unknown)
    if down:
        world.transport.before = on("GET", "/jwks.json", raising(OutcomeUnknown("down")))
    told()
    with pytest.raises(MerchantWalletError):
        world.submit(world.create())
    telemetry.observed(lambda event, context: None)(None, None)
    lines = told()
    assert "MerchantKeyRefused" not in json.dumps(lines)
    said = [line["message"] for line in lines if "of merchant" in line.get("message", "")]
    assert [line.partition(" (")[0] for line in said] == [told_as.format(world.merchant.id)]
    assert not [line for line in lines if line.get("level") == "WARNING"]
