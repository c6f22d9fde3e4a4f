"""A session that ends at the hands of each function that may end it: its event is written and
hinted at, and what it leaves behind at the wallets is queued.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from api import http
from api.app import app, handler
from checkout.domain.session.record import Session, Status
from checkout.domain.webhooks.event_types import OPTIONAL
from checkout.services import PayServices
from expirer.app import scheduled
from expirer.cleanup import queued
from tests.support.basics import Left
from tests.support.dashboard_pages import dashboard_of
from tests.support.deployment import canceled, sqs_event
from tests.support.flows import CEDAR, World
from tests.support.merchant_api import SESSIONS, gateway_event


def the_api(world: World, session: Session) -> None:
    async def services() -> PayServices:
        return world.services

    headers = {"Host": "pay.example", "Authorization": f"Bearer {world.api_key}"}
    app.dependency_overrides[http.services] = services
    try:
        path = f"{SESSIONS}/{session.id}/cancel"
        answer = handler(gateway_event("POST", path, "", headers, b""), None)
    finally:
        app.dependency_overrides.clear()
    assert answer["statusCode"] == 200


def the_dashboard(world: World, session: Session) -> None:
    with dashboard_of(world) as browser:
        browser.get(f"/transactions/{session.id}")
        assert browser.post(f"/transactions/{session.id}/cancel").status == 303


def the_schedule(world: World, session: Session) -> None:
    world.clock.pass_time(1800)
    assert scheduled(lambda: world.services)({}, Left(75))["Moved"] == 1


@pytest.mark.parametrize("by", [the_api, the_dashboard, the_schedule])
def test_it_is_told_and_tidied_up(by: Callable[[World, Session], None]) -> None:
    world = World()
    world.listen(*OPTIONAL)
    session = world.submit(world.create(expires_in_seconds=1800))
    world.queue.messages.clear()
    by(world, session)
    assert world.session(session.id).status in (Status.CANCELED, Status.EXPIRED)
    [told] = world.events()
    assert world.queue.messages == [told["id"]]
    [left] = world.tasks.left
    assert left.session == session.id


def test_the_schedule_asks_the_wallet_about_a_payment_in_doubt() -> None:
    world = World()
    doubtful = world.pay(world.create(), f"{CEDAR}/no-funds")
    assert doubtful.status is Status.PROCESSING
    world.clock.pass_time(60)
    world.forget()
    assert scheduled(lambda: world.services)({}, Left(75))["SessionsChecked"] == 1
    assert world.transport.sent


def test_a_merchant_that_is_no_longer_remembered_is_read_again_for_its_tasks() -> None:
    world = World()
    bodies = canceled(world, 1)
    world.clock.pass_time(3_600)
    world.forget()
    assert queued(lambda: world.services)(sqs_event(*bodies), None) == {"batchItemFailures": []}
    assert world.aws_calls() == ["get_item"]
