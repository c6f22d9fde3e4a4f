"""Incidents, played as docs/operating.md says: its own queries over the lines that functions write.

Logs Insights is AWS's alone. `asked` evaluates the few forms of a query that the page uses.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import jmespath
import pytest
from botocore.exceptions import EndpointConnectionError
from moto import mock_aws

from checkout import cli, telemetry
from checkout.adapters.dynamo import parse_database_url
from checkout.adapters.dynamo.erasure import DynamoRecords
from checkout.domain.ground.errors import Unavailable
from checkout.domain.payment.in_flight import Attention
from checkout.domain.session.record import Session, Status
from checkout.flows.session import prepare
from checkout.ports import Receipt
from open_payments.transports import Request, Response
from operations import restore, versions
from operations.restore import Restorer
from pay.emails import acknowledgement
from sandbox.cloud import table_definitions
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.operations.accounts import NAMES, FakeAccount, Released
from tests.support.deployment import Deployment, refusal
from tests.support.flows import PREFIX
from tests.support.mailbox import Mailbox
from tests.support.sources import files
from tests.support.stores import new_store

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
        if present := re.fullmatch(r"ispresent\((\w+)\)", condition):
            lines = [each for each in lines if present[1] in each]
            continue
        name, operator, wanted = condition.split(" ", 2)
        text = wanted.strip('"/')
        if operator == "=":
            lines = [each for each in lines if each.get(name) == text]
        elif operator == "in":
            lines = [each for each in lines if each.get(name) in json.loads(wanted)]
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
    query, lost = queries("A person must look")
    assert asked(lost, lines) == Counter()
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


class Terminal:
    """Runs the commands of the page as an operator types them.

    `names` are the texts that stand there for real ones, like `cs_…`.
    """

    def __init__(self, deployed: Deployment, folder: Path, **names: str) -> None:
        self.deployed = deployed
        self.names = {"$STACK": PREFIX, **names}
        self.clients: dict[str, Any] = {}  # of AWS by their commands' names, but for DynamoDB's
        self._folder = folder

    def follow(self, title: str, *beginnings: str) -> list[int]:
        """Type those commands of a section that begin so. Return their exit statuses."""
        blocks = re.findall(r"```sh\n(.*?)```", section(title), re.DOTALL)
        lines = [
            each.strip()
            for block in blocks
            for each in block.replace("\\\n", " ").splitlines()
            if any(each.strip().startswith(wanted) for wanted in beginnings)
        ]
        assert lines, (title, beginnings)
        return [self.type(each) for each in lines]

    def type(self, line: str) -> int:
        """Run one command. Return its exit status."""
        for name, real in self.names.items():
            line = line.replace(name, real)
        line, _, file = line.partition(" >")
        prefix, (variable, _, rest) = PREFIX, line.partition(" ")
        if variable.startswith("DATABASE_URL="):
            prefix, line = parse_database_url(variable.partition("=")[2]).prefix, rest
        program, *words = shlex.split(line)
        if program == ".venv/bin/checkout":
            client = self.deployed.dynamo.client
            records, sessions = DynamoRecords(client, prefix), new_store(client, prefix).sessions
            services = replace(self.deployed.world.endpoints, sessions=sessions)
            return cli.main(words, lambda: services, lambda: records)
        if words[:2] == ["-m", "operations.restore"]:
            client = self.deployed.dynamo.client
            restorer = Restorer(client, PREFIX, self.deployed.world.vault)
            return restore.main(words[2:], lambda: restorer)
        if [program, *words] == ["make", "undo"]:
            return versions.main(["default"])
        assert program == "aws", line
        client = self.clients.get(words[0]) or self.deployed.dynamo.client
        answer = self._aws(client, words[1], dict(zip(words[2::2], words[3::2], strict=True)))
        if file:
            (self._folder / file).write_text(json.dumps(answer), "utf-8")
        return 0

    def _aws(self, client: Any, operation: str, options: dict[str, str]) -> Any:
        wanted = options.pop("--query", None)
        options.pop("--output", None)
        request = {
            "".join(word.capitalize() for word in name.strip("-").split("-")): self._value(text)
            for name, text in options.items()
        }
        if expression := request.get("UpdateExpression"):  # the stand-in wants all names aliased
            names = expression.removeprefix("REMOVE ").split(", ")
            request["ExpressionAttributeNames"] = {f"#{name}": name for name in names}
            request["UpdateExpression"] = f"REMOVE {', '.join(f'#{name}' for name in names)}"
        answer = getattr(client, operation.replace("-", "_"))(**request)
        return encoded(jmespath.search(wanted, answer) if wanted else answer)

    def _value(self, text: str) -> Any:
        return json.loads(text) if text.startswith("{") else text


def encoded(value: Any) -> Any:
    """Return an answer as the CLI prints it, with bytes in base64."""
    if isinstance(value, dict):
        return {name: encoded(each) for name, each in value.items()}
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def find(deployed: Deployment, reference: str) -> int:
    return Terminal(deployed, Path()).type(f".venv/bin/checkout find {reference}")


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
    [((event_id, cause, place), count)] = asked(webhook, lines).items()
    assert (event_id, cause, count) == (event["id"], "Unavailable", 5)
    assert "test_incidents.py" in place
    assert asked(cleanup, lines) == Counter()
    # "The event is not lost, because the sweep reads its record": nobody moves the message back.
    deployed.sqs.messages = []
    world.clock.pass_time(600)
    deployed.sweep()
    assert deployed.send_webhooks() == [event["id"]]
    assert "start-message-move-task" in section("Dead letters")


def in_doubt(deployed: Deployment) -> Session:
    """Return a session whose payment was sent, and whose answer got lost."""
    session = deployed.created()
    approved = deployed.approve(deployed.submit(session).json["interact_url"])
    world, wallets = deployed.world, deployed.world.transport.network

    def sent(request: Request) -> Response:
        answer = wallets.handle(request)
        lost = request.method == "POST" and request.url.endswith("/outgoing-payments")
        return Response(503, {}, b"") if lost else answer

    world.transport.network = type("Going", (), {"handle": staticmethod(sent)})()
    deployed.come_back(session, approved)
    world.transport.network = wallets
    return session


KEY = "com.amazonaws.services.kms.model."
CAUSES = {
    "the store answers 500": refusal("InternalServerError", "GetItem", 500),
    "the store throttles": refusal("ThrottlingException", "GetItem"),
    "nothing answers": EndpointConnectionError(endpoint_url="https://10.0.0.1"),
    "the key is disabled": refusal(
        "AccessDeniedException", "GetItem", message=KEY + "DisabledException: it is"
    ),
    "the key is denied": refusal(
        "AccessDeniedException", "GetItem", message=KEY + "AccessDeniedException: it is"
    ),
    "the key is to be deleted": refusal(
        "AccessDeniedException", "GetItem", message=KEY + "KMSInvalidStateException: pending"
    ),
    "the functions may not read": refusal("AccessDeniedException", "GetItem"),
    "a bug": RuntimeError("a bug"),
}


def paid_with_a_webhook(deployed: Deployment) -> Session:
    deployed.wants_webhooks()
    session = deployed.created()
    approved = deployed.approve(deployed.submit(session).json["interact_url"])
    deployed.come_back(session, approved)
    return session


def canceled(deployed: Deployment) -> Session:
    session = deployed.created()
    deployed.submit(session)
    deployed.call("POST", f"/sessions/{session.id}/cancel")
    deployed.restart()
    return session


# Each query for the causes of failures: its section, which of its queries, and what fails.
ASKED: dict[tuple[str, int], tuple[Callable[..., Session], Callable[..., Any]]] = {
    ("5xx answers", 0): (Deployment.created, lambda deployed, one: deployed.visit("GET", one)),
    ("The sweep stands still", 0): (in_doubt, lambda deployed, one: deployed.sweep()),
    ("The sender fails", 0): (paid_with_a_webhook, lambda deployed, one: deployed.send_webhooks()),
    ("Late webhooks", 1): (paid_with_a_webhook, lambda deployed, one: deployed.send_webhooks()),
    ("Dead letters", 0): (paid_with_a_webhook, lambda deployed, one: deployed.send_webhooks()),
    ("Dead letters", 1): (canceled, lambda deployed, one: deployed.tasks()),
    ("The encryption key cannot be read", 0): (
        Deployment.created,
        lambda deployed, one: deployed.visit("GET", one),
    ),
}


@pytest.mark.parametrize("place", ASKED, ids=str)
def test_a_query_prints_other_lines_for_each_cause(
    told: Callable[[], Lines], place: tuple[str, int]
) -> None:
    query = queries(place[0])[place[1]]
    prepare, fails = ASKED[place]
    printed: dict[frozenset[tuple[str, ...]], str] = {}
    for cause, error in CAUSES.items():
        telemetry.start("a function")
        deployed = Deployment()
        session = prepare(deployed)
        told()
        deployed.world.clock.pass_time(60)

        def fault(name: str, request: dict[str, Any], error: Exception = error) -> None:
            raise error

        deployed.dynamo.fault = fault
        with suppress(Exception):
            fails(deployed, session)
        lines = frozenset(asked(query, told()))
        assert lines, cause
        assert printed.setdefault(lines, cause) == cause
    assert len(printed) == len(CAUSES)


def test_each_query_of_the_page_that_asks_for_a_place_is_among_them() -> None:
    found = {
        (title, number)
        for title in re.findall(r"^### (.+)$", PAGE, re.MULTILINE)
        for number, query in enumerate(queries(title))
        if re.search(r" by .*\b(trace|cause)\b", query)
    }
    assert found == set(ASKED)


POISONED = "A record that cannot be read"


@pytest.fixture
def poisoned(told: Callable[[], Lines], tmp_path: Path) -> tuple[Deployment, Terminal, Session]:
    """A payment in doubt whose row was changed by hand; the table of before is beside it."""
    telemetry.start("expirer", stack="checkout")
    before = f"good-{PREFIX}"
    deployed = Deployment(
        InMemoryDynamoDb([*table_definitions(PREFIX), *table_definitions(before)])
    )
    session, client = in_doubt(deployed), deployed.dynamo.client
    good = client.row(f"{PREFIX}-checkout_sessions", {"id": {"S": session.id}})
    client.put_item(TableName=f"{before}-checkout_sessions", Item=good)
    damaged = {**good, "payment": {"S": "by hand"}}
    client.put_item(TableName=f"{PREFIX}-checkout_sessions", Item=damaged)
    return deployed, Terminal(deployed, tmp_path, **{"cs_…": session.id}), session


def rounds(deployed: Deployment, told: Callable[[], Lines]) -> Lines:
    """Let the sweep run three times. Return what it logged."""
    lines: Lines = []
    for _ in range(3):
        deployed.world.clock.pass_time(60)
        deployed.sweep()
        lines += told()
    return lines


def test_a_poisoned_record_is_found_and_put_back_and_its_payment_is_decided(
    poisoned: tuple[Deployment, Terminal, Session],
    told: Callable[[], Lines],
    capsys: pytest.CaptureFixture[str],
) -> None:
    deployed, terminal, session = poisoned
    other = in_doubt(deployed)
    lines = rounds(deployed, told)
    assert deployed.stored(other).status is Status.COMPLETED  # the others go on
    [query] = queries(POISONED)
    [reference] = {reference for reference, _ in asked(query, lines)}
    terminal.names["3735e7e668c2"] = reference
    assert terminal.follow(POISONED, ".venv/bin/checkout find") == [1]
    assert session.id in capsys.readouterr().out
    assert terminal.follow(POISONED, "aws dynamodb get-item") == [0]
    assert terminal.follow(POISONED, "DATABASE_URL=") == [0]
    assert '"history"' in capsys.readouterr().out
    copy = ".venv/bin/python -m operations.restore row"
    assert terminal.follow(POISONED, copy) == [0]
    assert set(terminal.follow(POISONED, ".venv/bin/checkout show")) == {0}
    assert '"history"' in capsys.readouterr().out
    rounds(deployed, told)
    assert deployed.stored(session).status is Status.COMPLETED
    assert deployed.world.received() == 4000


def test_no_page_has_the_aws_cli_write_a_whole_record() -> None:
    """Its first version sends the bytes of a record as the base64 that it has printed."""
    pages = list(files(".md", "docs", "operations", "plugins"))
    assert len(pages) > 30
    for page in pages:
        assert not re.search(r"aws dynamodb \S*(put|write)\S*-item", page.read_text("utf-8")), page


def test_a_poisoned_record_that_nothing_can_restore_is_taken_out_of_the_sweep(
    poisoned: tuple[Deployment, Terminal, Session], told: Callable[[], Lines]
) -> None:
    deployed, terminal, _ = poisoned
    [query] = queries(POISONED)
    assert asked(query, rounds(deployed, told))
    assert terminal.follow(POISONED, "aws dynamodb update-item") == [0]
    assert not asked(query, rounds(deployed, told))


def test_a_leaked_key_is_stopped_and_the_merchant_sells_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    deployed = Deployment()
    world = deployed.world
    deployed.wants_webhooks()
    paid_for = in_doubt(deployed)
    leaked = world.api_key
    names = {"sk_…": leaked, "mer_…": world.merchant.id}
    terminal = Terminal(deployed, tmp_path, **names)
    title = "An API key leaked"
    assert terminal.follow(title, ".venv/bin/checkout revoke", ".venv/bin/checkout susp") == [0, 0]
    [replaced] = re.findall(r"API key +(sk_\S+)", capsys.readouterr().out)
    assert deployed.create().status == 401
    world.api_key = replaced
    assert deployed.create().code == "merchant_suspended"
    assert terminal.follow(title, ".venv/bin/checkout webhook") == [0]
    assert deployed.delivered == []
    assert "https://" in capsys.readouterr().out  # the endpoints that the merchant must know
    assert terminal.follow(title, ".venv/bin/checkout resume") == [0]
    assert deployed.create().status == 201
    rounds(deployed, list)
    assert deployed.stored(paid_for).status is Status.COMPLETED  # nothing in flight was stopped


def test_a_merchant_is_stopped_while_a_payment_is_under_way(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    deployed = Deployment()
    under_way, waiting = in_doubt(deployed), deployed.created()
    terminal = Terminal(deployed, tmp_path, **{"mer_…": deployed.world.merchant.id})
    commands = (".venv/bin/checkout merchants", ".venv/bin/checkout suspend")
    assert terminal.follow("A merchant must be stopped", *commands) == [0, 0]
    assert deployed.world.merchant.id in capsys.readouterr().out
    assert deployed.create().code == "merchant_suspended"
    deployed.world.clock.pass_time(60)  # a page keeps a merchant that long
    assert deployed.submit(waiting).status >= 400
    rounds(deployed, list)
    assert deployed.stored(under_way).status is Status.COMPLETED
    assert terminal.follow("A merchant is suspended", ".venv/bin/checkout resume") == [0]
    assert deployed.create().status == 201


def test_a_bad_release_that_the_canary_let_through_is_undone(
    told: Callable[[], Lines], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """tests/template shows that each such release sets off an alarm."""
    telemetry.start("pay", stack="checkout")
    deployed = Deployment()
    session = deployed.created()

    def broken(*given: Any, **named: Any) -> None:
        raise RuntimeError("a bug")

    with mock_aws():
        account = Released()
        account.release("1", *NAMES)
        account.release("2", *NAMES)
        with monkeypatch.context() as release:
            release.setattr(prepare, "submit_wallet", broken)
            assert deployed.submit(session).status == 500
            lines = told()
            assert any("UnforeseenErrors" in each for each in lines)
            query, *_ = queries("5xx answers")
            [(service, message, cause, trace, route)] = asked(query, lines)
            assert (service, message, cause) == ("pay", "unforeseen error", "RuntimeError")
            assert "test_incidents.py" in trace
            assert route.endswith("/wallet")
            monkeypatch.setattr(versions, "Account", lambda: account)
            assert Terminal(deployed, tmp_path).follow("5xx answers", "make undo") == [0]
        assert account.live() == ["1", "1"]
    assert deployed.submit(session).status == 200


def test_ses_is_suspended_and_each_acknowledgement_is_sent_later(
    told: Callable[[], Lines], tmp_path: Path
) -> None:
    telemetry.start("expirer", stack="checkout")
    deployed, box = Deployment(), Mailbox(refuses="SendingPausedException")
    deployed.services = replace(
        deployed.services, mail=box.mail(), write_acknowledgement=acknowledgement
    )
    merchant = deployed.world.stored()
    deployed.world.services.merchants.replace(merchant.changed(withdrawal_days=14))
    session = deployed.created()
    deployed.come_back(session, deployed.approve(deployed.submit(session).json["interact_url"]))
    said = {"name": "Eva Muster", "email": "eva@customer.example", "confirmed": "1"}
    assert deployed.browse(session, "/withdrawal", fields=said).status == 303
    for _ in range(3):
        deployed.world.clock.pass_time(3600)
        deployed.sweep()
    lines = told()
    # The alarm NeedsAttention leads to the section by the words of the line.
    assert any("NeedsAttention" in each for each in lines)
    assert "`MailRefused`** rises (`SES did not take an e-mail`)" in section("A person must look")
    [query] = queries("Mail is refused")
    assert {reason for _, reason in asked(query, lines)} == {"SendingPausedException"}
    assert "`SendingPausedException`" in section("Mail is refused")
    terminal = Terminal(deployed, tmp_path)
    terminal.clients["sesv2"] = FakeAccount().client("sesv2")
    assert terminal.follow("Mail is refused", "aws sesv2") == [0]
    box.refuses = None
    deployed.world.clock.pass_time(3600)
    deployed.sweep()
    assert [each["To"] for each in box.read] == ["eva@customer.example"]


def test_a_disabled_key_is_named_and_enabled_and_sales_go_on(
    told: Callable[[], Lines], tmp_path: Path
) -> None:
    title = "The encryption key cannot be read"
    telemetry.start("pay", stack="checkout")
    deployed = Deployment()
    session = deployed.created()
    with mock_aws():
        kms = boto3.client("kms", region_name="eu-central-1")
        key = kms.create_key()["KeyMetadata"]["KeyId"]
        kms.disable_key(KeyId=key)

        def fault(name: str, request: dict[str, Any]) -> None:
            if not kms.describe_key(KeyId=key)["KeyMetadata"]["Enabled"]:
                raise CAUSES["the key is disabled"]

        deployed.dynamo.fault = fault
        assert deployed.submit(session).status == 503
        lines = told()
        assert any("KeyUnreadable" in each for each in lines)
        [query] = queries(title)
        [(_, cause)] = asked(query, lines)
        assert "DisabledException" in cause
        terminal = Terminal(deployed, tmp_path, **{"$(output StackKeyArn)": key})
        terminal.clients["kms"] = kms
        assert terminal.follow(title, "aws kms") == [0, 0]
        assert deployed.submit(session).status == 200


def test_an_endpoint_that_hangs_is_named_and_removed_and_others_get_their_webhooks(
    told: Callable[[], Lines], tmp_path: Path
) -> None:
    """An endpoint that needs 29 seconds is without an answer after ten."""
    telemetry.start("webhook_sender", stack="checkout")
    deployed = Deployment()
    paid_with_a_webhook(deployed)
    deployed.receipts = [Receipt(error="no answer: the time is over")]
    deployed.send_webhooks()
    attempts, _ = queries("Late webhooks")
    [((host, outcome), count)] = asked(attempts, told()).items()
    assert (host, count) == ("shop.example", 1)
    assert outcome not in ("200", "None")
    terminal = Terminal(deployed, tmp_path, **{"mer_…": deployed.world.merchant.id})
    assert terminal.follow("Late webhooks", ".venv/bin/checkout webhook") == [0]
    deployed.world.clock.pass_time(3600)
    deployed.sweep()
    assert deployed.send_webhooks() == []
