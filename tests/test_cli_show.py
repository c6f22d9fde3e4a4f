"""`checkout show`: a stored record as the operator reads it, without its secrets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from checkout import cli
from checkout.services import DashboardServices
from tests.support.basics import a_link
from tests.support.flows import PREFIX, World
from tests.support.samples import a_reservation, full_session

# The names of the sample sessions' secret fields.
SECRETS = {"grant", "token", "interact_url"}


@pytest.fixture
def world() -> World:
    return World()


class Shown:
    def __init__(self, services: DashboardServices, told: pytest.CaptureFixture[str]) -> None:
        self._services = services
        self._told = told

    def __call__(self, record_id: str) -> dict[str, Any]:
        assert cli.main(["show", record_id], lambda: self._services) == 0
        found: dict[str, Any] = json.loads(self._told.readouterr().out)
        return found


@pytest.fixture
def shown(world: World, capsys: pytest.CaptureFixture[str]) -> Shown:
    return Shown(world.endpoints, capsys)


def test_a_session_is_shown_with_its_payment_and_history_but_no_secret(
    world: World, shown: Shown
) -> None:
    session = world.submit(world.create())
    assert session.grant is not None
    assert session.interact_url is not None
    found = shown(session.id)
    assert (found["id"], found["status"]) == (session.id, "awaiting_approval")
    assert found["amount_total"] == 2000
    assert found["created_at"] == "2026-03-01T12:00:00.000+00:00"
    assert found["incoming_payment"]["id"] == session.incoming_payment.id  # type: ignore[union-attr]
    assert [each["event"] for each in found["history"]][:2] == ["created", "wallet_submitted"]
    assert {name for name, value in found.items() if value == "(not shown)"} == SECRETS & set(found)
    told = json.dumps(found)
    assert session.grant not in told
    assert session.interact_url not in told


def test_an_event_is_shown_with_its_body(world: World, shown: Shown) -> None:
    session = world.pay(world.create())
    assert session.event is not None
    found = shown(session.event)
    assert (found["subject"], found["type"]) == (session.id, "checkout.session.completed")
    assert session.id in found["body"]


def test_a_merchant_is_shown_without_a_key_or_a_secret(world: World, shown: Shown) -> None:
    merchant = world.merchant
    found = shown(merchant.id)
    assert found["wallet_address"] == merchant.wallet_address
    assert found["private_key"] == "(not shown)"
    assert merchant.private_key not in json.dumps(found)
    for endpoint in merchant.endpoints:
        for secret in endpoint.secrets:
            assert secret.sealed not in json.dumps(found)


def test_a_link_an_api_key_and_an_answer_are_shown(world: World, shown: Shown) -> None:
    link = a_link(merchant=world.merchant.id)
    world.endpoints.links.add(link)
    assert shown(link.id)["unit_amount"] == link.unit_amount
    key = world.key()
    assert shown(key.hash)["last_four"] == key.last_four
    answer = a_reservation(key="ab" * 32, body='{"secret":"whsec_1"}')
    world.services.sessions.create(full_session(id="cs_" + "1" * 22, link=None), answer)
    found = shown(answer.key)
    assert (found["status"], found["body"]) == (answer.status, "(not shown)")


@pytest.mark.parametrize("record_id", ["cs_" + "0" * 22, "evt_1", "mer_1~", "plink_", "", "we_1"])
def test_what_is_not_stored_is_told(
    world: World, capsys: pytest.CaptureFixture[str], record_id: str
) -> None:
    assert cli.main(["show", record_id], lambda: world.endpoints) == 1
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "No such record.\n")


def test_a_record_that_cannot_be_read_says_why(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    session = world.create()
    world.dynamo.update_item(
        TableName=f"{PREFIX}-checkout_sessions",
        Key={"id": {"S": session.id}},
        UpdateExpression="SET #status = :newer",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={":newer": {"S": "settled"}},
    )
    assert cli.main(["show", session.id], lambda: world.endpoints) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "cannot be read (ValueError: 'settled' is not a valid Status)" in told.err


SHOW = """
import sys
from checkout import cli
from tests.support.flows import World
world = World()
sys.exit(cli.main(["show", world.create().id], lambda: world.endpoints))
"""


@pytest.mark.parametrize("program", [["-c", SHOW], ["-m", "checkout.cli", "--help"]])
def test_a_reader_that_has_read_enough_is_told_of_no_fault(program: list[str]) -> None:
    """As `checkout show cs_… | head -1`, with a reader that has gone before the first line."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, *program]
    run = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert run.stderr == ""
