"""A shop that refunds: the merchant's steps, and the ledgers of both wallets afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from checkout.domain.merchant.people import RefundCap, Scope
from checkout.domain.merchant.record import ApiKey
from checkout.domain.payment.mandate import USUAL_MARGIN, Mandate, Margin
from checkout.domain.refund.record import Refund
from checkout.domain.session.record import Session, Status
from checkout.domain.webhooks.record import Format
from checkout.flows.payment import mandates
from checkout.flows.payment.cleanup import clean_up
from checkout.flows.refund import approve, budget, budget_request, request
from checkout.flows.refund.request import NewRefund
from checkout.flows.schedule import sweep
from checkout.flows.webhooks import endpoints
from open_payments.transports import Response
from sandbox.wallets.state import Grant, GrantState
from tests.support.flows import BASE_URL, CEDAR, HARBOR, PREFIX, World

ALICE = f"{CEDAR}/alice"
BOB = f"{HARBOR}/bob"  # at the merchant's own provider: nothing costs a fee


def fund(world: World, value: int = 1000_00) -> None:
    """Put money into the merchant's wallet: a refund of converted money costs more than it made."""
    account = world.network.account(world.shop)
    assert account is not None
    account.balance += value


def ask(world: World, session: Session, amount: int | None = None, **fields: object) -> Refund:
    """Request a refund of a part, or of all that is left."""
    asked = NewRefund(session=session.id, amount=amount, **fields)  # type: ignore[arg-type]
    return request.create(world.services, world.key(), asked)


def prepare(world: World, refund: Refund) -> Refund:
    """Prepare the price and the approval."""
    return approve.prepare(world.services, world.key(), refund.id)


def consent(world: World, refund: Refund) -> tuple[str, str]:
    """The merchant approves in their wallet: the callback's interact_ref and hash."""
    assert refund.interact_url is not None
    back = urlsplit(world.network.approve(refund.interact_url))
    assert f"{back.scheme}://{back.netloc}{back.path}" == (
        f"{BASE_URL}/dashboard/refunds/{refund.id}/callback"
    )
    query = parse_qs(back.query)
    return query["interact_ref"][0], query["hash"][0]


def come_back(world: World, refund: Refund, callback: tuple[str, str]) -> Refund:
    """Follow the wallet's link as a browser that waits as told."""
    for _ in range(20):  # longer than an approval is kept
        found = approve.finish(
            world.services,
            world.key(),
            refund.id,
            interact_ref=callback[0],
            presented_hash=callback[1],
        )
        if not found.wait_seconds:
            break
        world.clock.sleep(found.wait_seconds)
    return found.record


def send(world: World, refund: Refund) -> Refund:
    """Make all steps from the price to the page after the callback."""
    prepared = prepare(world, refund)
    return come_back(world, prepared, consent(world, prepared))


def again(world: World, refund: Refund) -> Refund:
    """Return the refund as stored."""
    found = world.services.refunds.get(refund.id)
    assert found is not None
    return found


def wait(world: World, refund: Refund, *, minutes: int = 100) -> Refund:
    """Let the schedule run until the refund is out of doubt; return it then."""
    for _ in range(minutes):
        refund = again(world, refund)
        if not refund.payment_in_flight or refund.approval_waits:
            break
        world.clock.pass_time(60)
        sweep.run(world.services, until=world.clock.now() + timedelta(seconds=25))
    return again(world, refund)


def balance(world: World, wallet: str) -> int:
    """Return the balance of a wallet, in its own units."""
    account = world.network.account(wallet)
    assert account is not None
    world.network.advance()
    return account.balance


def stored(world: World, refund: Refund) -> dict[str, object]:
    """Return the refund's row as stored."""
    rows = world.dynamo.rows(f"{PREFIX}-checkout_sessions")
    [row] = [row for row in rows if row["id"] == {"S": refund.id}]
    return dict(row)


def payments(world: World) -> int:
    """Return how many outgoing payments were asked for."""
    return sum(
        method == "POST" and "/outgoing-payments" in url for method, url in world.transport.sent
    )


def allow(world: World, value: int = 100_00, margin: Margin = USUAL_MARGIN) -> Mandate:
    """The merchant approves a refund budget of this many units a month."""
    asked = budget.ask(world.services, world.key(), value, margin)
    return allowed(world, approve_budget(world, asked))


def end_budget(world: World) -> Mandate:
    """End the budget and run the clean-up: no grant is left."""
    ended = budget_request.end(world.services, world.key())
    while world.tasks.left:
        clean_up(world.services, world.tasks.left[0])
        del world.tasks.left[0]
    assert GrantState.ISSUED not in [each.state for each in of_budget(world)]
    return ended


def approve_budget(world: World, asked: Mandate) -> tuple[str, str]:
    """The merchant approves the budget in their wallet: the callback's interact_ref and hash."""
    assert asked.interact_url is not None
    back = urlsplit(world.network.approve(asked.interact_url))
    assert f"{back.scheme}://{back.netloc}{back.path}" == f"{BASE_URL}/dashboard/budget/callback"
    query = parse_qs(back.query)
    return query["interact_ref"][0], query["hash"][0]


def allowed(world: World, callback: tuple[str, str]) -> Mandate:
    """Follow the wallet's link as a browser that waits as told."""
    for _ in range(20):  # longer than an approval is kept
        found = budget.finish(
            world.services, world.key(), interact_ref=callback[0], presented_hash=callback[1]
        )
        if not found.wait_seconds:
            break
        world.clock.sleep(found.wait_seconds)
    assert found.record is not None
    return found.record


def mandate(world: World) -> Mandate:
    """Return the merchant's mandate as stored."""
    found = mandates.of(world.services, world.merchant.id)
    assert found is not None
    return found


def paid(world: World, amount: int = 2000, wallet: str = ALICE) -> Session:
    """Return a session that a customer has paid in full."""
    session = world.pay(world.create(amount), wallet)
    assert session.status is Status.COMPLETED
    return session


def stripe_listens(world: World, *types: str) -> None:
    """Have an endpoint in Stripe's form that asked for these types."""
    world.listen()
    given = {"format": Format.STRIPE, "asked": types}
    endpoints.update(world.endpoints, world.merchant.id, given)


def leaked(world: World, **cap: Any) -> ApiKey:
    """Return a key with each scope, whose refunds are limited."""
    everything = replace(world.key(), scopes=tuple(Scope))
    return replace(everything, refund_cap=RefundCap(**cap) if cap else None)


def refusal(status: int, description: str) -> Callable[[Any], Response]:
    """Return an answer of a wallet that refuses, with this status and description."""
    body = json.dumps({"error": {"code": str(status), "description": description}}).encode()
    return lambda request: Response(status, {"content-type": "application/json"}, body)


def of_budget(world: World) -> list[Grant]:
    """Return the grants of the budget at the merchant's wallet."""
    return [
        each
        for each in world.network.state.grants.values()
        if any("interval" in item.get("limits", {}) for item in each.access)
    ]
