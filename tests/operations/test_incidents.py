"""Incidents, played as docs/operating.md says: its own queries over the lines that functions write.

Logs Insights is AWS's alone. `asked` evaluates the few forms of a query that the page uses.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkout import cli, telemetry
from checkout.adapters.dynamo import DynamoRecords
from checkout.domain.errors import Unavailable
from checkout.domain.payment import Attention
from checkout.domain.session import Session, Status
from checkout.open_payments.transport import Request, Response
from tests.deployment import Deployment
from tests.product import PREFIX

PAGE = (Path(__file__).parents[2] / "docs" / "operating.md").read_text("utf-8")
HOSTS = {"localhost:4201", "localhost:4202"}  # of the shop's provider

Lines = list[dict[str, Any]]


def section(title: str) -> str:
    """Return a section of the page."""
    _, _, rest = PAGE.partition(f"\n### {title}\n")
    assert rest, title
    return re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]


def queries(title: str) -> list[str]:
    """Return the queries that a section has an operator type."""
    return re.findall(r"ask \"[^\"]+\" '([^']+)'", section(title))


def asked(query: str, lines: Lines) -> Counter[tuple[str, ...]]:
    """Return the answer to a query of the form `filter … | stats count(*) … by …`."""
    filters, stats, *_ = query.split(" | ")
    for condition in filters.removeprefix("filter ").split(" and "):
        name, operator, wanted = condition.split(" ", 2)
        text = wanted.strip('"/')
        if operator == "=":
            lines = [each for each in lines if each.get(name) == text]
        else:
            assert operator == "like", condition
            found = [(each, str(each.get(name) or "")) for each in lines]
            lines = [each for each, said in found if re.search(text, said)]
    by = stats.partition(" by ")[2].split(", ")

    def value(line: Any, path: str) -> str:
        for part in path.split("."):
            line = line[int(part)] if part.isdigit() else line.get(part)
        return str(line)

    return Counter(tuple(value(each, path) for path in by) for each in lines)


def test_a_provider_answers_503_for_an_hour(
    told: Callable[[], Lines], capsys: pytest.CaptureFixture[str]
) -> None:
    telemetry.start("expirer", stack="checkout")
    deployed = Deployment()
    world = deployed.world
    deployed.wants_webhooks()
    session = deployed.created()
    approved = deployed.approve(deployed.submit(session).json["interact_url"])
    wallets = world.transport.network

    def down(request: Request) -> Response:
        if any(host in request.url for host in HOSTS):
            return Response(503, {}, b"")
        return wallets.handle(request)

    # The payment is sent, its answer gets lost, and the one who knows of the money is down.
    def sent(request: Request) -> Response:
        answer = wallets.handle(request)
        if request.method == "POST" and request.url.endswith("/outgoing-payments"):
            world.transport.network = type("Down", (), {"handle": staticmethod(down)})()
            return Response(503, {}, b"")
        return answer

    world.transport.network = type("Going", (), {"handle": staticmethod(sent)})()
    deployed.come_back(session, approved)
    lines: Lines = []
    for _ in range(65):
        world.clock.pass_time(60)
        deployed.sweep()
        lines += told()
    # "A provider is down" names it, with the outcome to tell it of.
    [query] = queries("A provider is down")
    failures = asked(query, lines)
    (host, outcome), count = failures.most_common(1)[0]
    assert (host in HOSTS, outcome) == (True, "503")
    assert count >= 10
    # The alarm NeedsAttention leads to the session, and `checkout find` to what is to be done.
    assert any("NeedsAttention" in each for each in lines)
    [query] = queries("A person must look")
    [(reference, merchant, attention)] = asked(query, lines)
    assert (merchant, attention) == (world.merchant.id, Attention.UNDECIDED)
    assert find(deployed, reference) == 0
    said = capsys.readouterr().out
    assert session.id in said
    assert "A provider does not answer. The sweep goes on asking" in said
    # It comes back, and nobody does anything.
    world.transport.network = wallets
    minutes = until_decided(deployed, session)
    assert minutes <= 60
    assert deployed.stored(session).attention is None
    assert deployed.stored(session).status is Status.COMPLETED
    assert world.received() == 2000
    deployed.send_webhooks()
    assert len(deployed.delivered) == 1


def find(deployed: Deployment, reference: str) -> int:
    records = DynamoRecords(deployed.dynamo.client, PREFIX)
    return cli.main(["find", reference], lambda: deployed.world.endpoints, lambda: records)


def until_decided(deployed: Deployment, session: Session) -> int:
    for minute in range(1, 120):
        deployed.world.clock.pass_time(60)
        deployed.sweep()
        if not deployed.stored(session).payment_in_flight:
            return minute
    raise AssertionError("not decided within two hours")


def test_dead_letters_name_their_events_and_their_place_and_nothing_is_lost(
    told: Callable[[], Lines], monkeypatch: pytest.MonkeyPatch
) -> None:
    telemetry.start("webhook_sender", stack="checkout")
    deployed = Deployment()
    world = deployed.world
    deployed.wants_webhooks()
    session = deployed.created()
    approved = deployed.approve(deployed.submit(session).json["interact_url"])
    deployed.come_back(session, approved)
    [event] = world.events()

    def fails(event_id: str) -> Any:
        raise Unavailable("The data store is not answering.")

    lines: Lines = []
    with monkeypatch.context() as broken:
        broken.setattr(world.core.events, "get", fails)
        for _ in range(5):  # as often as the queue tries before its dead letters
            assert deployed.send_webhooks() == []
            [message] = deployed.sqs.messages
            assert json.loads(message["MessageBody"]) == {"event": event["id"]}
            lines += told()
    webhook, cleanup = queries("Dead letters")
    [((event_id, place), count)] = asked(webhook, lines).items()
    assert (event_id, count) == (event["id"], 5)
    assert place
    assert asked(cleanup, lines) == Counter()
    # "The event is not lost, because the sweep reads its record": nobody moves the message back.
    deployed.sqs.messages = []
    world.clock.pass_time(600)
    deployed.sweep()
    assert deployed.send_webhooks() == [event["id"]]
    assert "start-message-move-task" in section("Dead letters")
