"""Test the logs of a whole life of the product, debug lines included: no secret."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from checkout import telemetry
from checkout.domain.ground.ids import session_ref
from checkout.domain.merchant.record import private_key_place
from checkout.domain.session.record import Status
from open_payments.errors import OutcomeUnknown
from open_payments.transports import Request, Response
from tests.support.deployment import Deployment, refusal
from tests.support.flows import CEDAR
from tests.support.overheard import Overheard

Told = Callable[[], list[dict[str, Any]]]


def test_no_secret_is_in_any_line_of_any_function_whatever_happens(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "SAMPLE", 1)  # every request's debug lines
    telemetry.start("pay")
    deployed = Deployment()
    heard: set[str] = set()
    overheard = Overheard(lambda name, value: heard.add(value))
    world = deployed.world
    world.transport.before, world.transport.after = overheard.request, overheard.response
    secrets = {world.api_key, world.encryption_key, "whsec_AAAA"}
    sealed = world.merchant.private_key
    key = world.services.vault.open(sealed, place=private_key_place(world.merchant.id))
    secrets |= {sealed, key, base64.b64decode(key).hex()}

    def lives(wallet: str = f"{CEDAR}/alice") -> None:
        """A session from its creation to its end, with all that a customer may do."""
        session = deployed.created()
        secrets.add(session.id.removeprefix("cs_"))
        deployed.visit("GET", session)
        submitted = deployed.submit(session, wallet)
        stored = deployed.stored(session)
        secrets.update(filter(None, [stored.grant, stored.interact_url]))
        if submitted.status == 200:
            callback = deployed.approve(submitted.json["interact_url"])
            secrets.update(callback)
            deployed.come_back(session, (callback[0], callback[1][::-1]))
            deployed.come_back(session, callback)
            deployed.visit("GET", session, "/status")
        secrets.update(filter(None, [deployed.stored(session).token]))
        world.clock.pass_time(120)
        deployed.sweep()

    deployed.wants_webhooks()
    lives()
    assert deployed.send_webhooks() != []
    for wallet in ("nobody", "unpeered", "no-funds", "never-credits", "dies-after-create"):
        lives(f"{CEDAR}/{wallet}")
    canceled = deployed.created()
    secrets.add(canceled.id.removeprefix("cs_"))
    deployed.submit(canceled)
    secrets.update(filter(None, [deployed.stored(canceled).grant]))
    deployed.call("POST", f"/sessions/{canceled.id}/cancel")
    world.clock.pass_time(120)  # a process of its own does it, which has no merchant in its cache
    deployed.tasks()

    def bug(name: str, request: Any) -> None:
        raise RuntimeError(f"what it was asked: {request}")

    def throttled(name: str, request: Any) -> None:
        raise refusal("ThrottlingException", name, message=f"{request}")

    def no_answer(request: Request, response: Response) -> None:
        overheard.response(request, response)
        raise OutcomeUnknown(f"{request.url} {request.headers} {request.body!r}")

    for fault in (bug, throttled):
        deployed.dynamo.fault = deployed.queue.fault = fault
        deployed.call("GET", f"/sessions/{canceled.id}")
        deployed.visit("GET", canceled)
        deployed.dynamo.fault = None
        deployed.restart()
        deployed.keys.fault = fault
        lives()
        deployed.keys.fault = deployed.queue.fault = None
    keys, shop = [], world.network.account(world.shop)
    assert shop is not None
    keys, shop.keys = shop.keys, keys
    lives()
    shop.keys = keys
    world.transport.after = no_answer
    lives()

    secrets |= heard
    lines = told()
    text = "\n".join(map(json.dumps, lines))
    assert len(secrets) > 50
    assert [secret for secret in secrets if secret in text] == []
    assert not re.search(r"sk_|whsec_|cs_[0-9A-Za-z]{22}|GNAP ", text)
    assert "/alice" not in text, "of a wallet, no more than its provider's host"
    # It did tell: requests, sessions, failures, debug lines, and none of another shape.
    told_of = {line.get("message") for line in lines if "_aws" not in line}
    assert {"session", "provider", "webhook", "unavailable", "unforeseen error"} <= told_of
    assert any("was not accepted (client_unknown)" in str(message) for message in told_of)
    levels = {line["level"] for line in lines if "_aws" not in line}
    assert {"DEBUG", "INFO", "WARNING", "ERROR"} <= levels


def test_the_lines_of_a_session_are_found_by_its_reference_and_by_its_requests(told: Told) -> None:
    telemetry.start("pay")
    deployed = Deployment()
    session = deployed.created()
    submitted = deployed.submit(session)
    deployed.come_back(session, deployed.approve(submitted.json["interact_url"]))
    assert deployed.stored(session).status is Status.COMPLETED
    reference = session_ref(session.id)
    lines = [line for line in told() if line.get("session") == reference]
    events = [line["event"] for line in lines]
    assert events[0] == "created"
    assert events[-1] == "reconciled"
    of_submission = {line["request_id"] for line in lines if line["event"] == "prepared"}
    assert of_submission == {submitted.headers["request-id"]}


def test_an_unavailable_answer_names_its_session_by_the_reference(told: Told) -> None:
    telemetry.start("pay")
    deployed = Deployment()
    session = deployed.created()
    told()
    deployed.dynamo.fault = lambda name, request: (_ for _ in ()).throw(
        refusal("ThrottlingException", name)
    )
    refused = deployed.visit("GET", session)
    assert refused.status == 503
    [line] = [line for line in told() if line.get("message") == "unavailable"]
    assert line["session"] == session_ref(session.id)
    assert line["route"] == "/pay/{session_id}"
