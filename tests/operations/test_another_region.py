"""A whole deployment moves to a second one in another region, by the commands of docs/operating.md.

The old deployment's shop has sessions and refunds in all states, a budget, links and people. The
emulator restores within a region only, so this module brings the rows to the other one, as AWS
does. The payments are counted in the wallets' books.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import boto3
import pytest
from botocore.config import Config
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from moto import mock_aws

from checkout import cli, wiring
from checkout.adapters.details_keys import KmsDetailsKeys
from checkout.adapters.dynamo import read_as_sent
from checkout.adapters.dynamo.erasure import DynamoRecords
from checkout.adapters.outbound.wallets import SignedWallets
from checkout.adapters.vault import AesVault, key_from_secrets_manager
from checkout.domain.merchant.people import Role
from checkout.domain.refund.record import RefundStatus
from checkout.domain.session.record import Session
from checkout.flows.people import people
from checkout.flows.refund import request
from checkout.flows.session import close, details
from open_payments.errors import OutcomeUnknown
from operations import restore
from operations.restore import TABLES, Restorer
from sandbox.cloud import table_definitions
from tests.fakes.kms import KEY_ID, HandKms
from tests.support import services
from tests.support.basics import seeded
from tests.support.flows import (
    BASE_URL,
    CEDAR,
    PREFIX,
    NotedHints,
    NotedTasks,
    World,
    derived,
    lose_answers,
)
from tests.support.refund_books import (
    ALICE,
    BOB,
    allow,
    ask,
    come_back,
    consent,
    fund,
    mandate,
    prepare,
    send,
)
from tests.support.sources import REPOSITORY

OLD, NEW = "us-east-1", "eu-west-1"
SECRET: Final = "stack/encryption-key"
PAGE: Final = (REPOSITORY / "docs" / "operating.md").read_text("utf-8")
Rows = dict[str, list[Any]]


def refunded(world: World, **how: Any) -> Any:
    return ask(world, world.pay(world.create(), BOB), 700, **how)


def sending(world: World) -> None:
    """A refund that was sent, and whose answer was lost."""
    refund = prepare(world, refunded(world, by_budget=False))
    callback = consent(world, refund)
    world.transport.after = lose_answers("/outgoing-payments", OutcomeUnknown("lost"), times=9)
    assert come_back(world, refund, callback).status is RefundStatus.SENDING
    world.transport.after = lambda request, response: None


def unsent(world: World) -> None:
    world.unsent()
    world.transport.before = lambda request: None


def canceled(world: World) -> None:
    close.cancel(world.services, world.key(), world.submit(world.create()).id)


def refund_canceled(world: World) -> None:
    refund = refunded(world, by_budget=False)
    request.cancel(world.services, world.key(), refund.id)


# Each makes one session, in a state of its own.
STATES: Final[tuple[Callable[[World], object], ...]] = (
    lambda world: world.create(),
    lambda world: world.create(customer_email="ana@example.com"),
    lambda world: world.create(expires_in_seconds=1800),
    lambda world: world.submit(world.create()),
    lambda world: world.awaiting(),
    lambda world: world.abandoned(),
    lambda world: world.in_doubt(),
    unsent,
    lambda world: world.partly_paid(),
    lambda world: world.pay(world.create()),
    canceled,
    lambda world: refunded(world),  # the budget is to pay it
    lambda world: refunded(world, by_budget=False),
    lambda world: prepare(world, refunded(world, by_budget=False)),
    sending,
    lambda world: send(world, refunded(world, by_budget=False)),
    refund_canceled,
    lambda world: refunded(world, elsewhere="in cash"),
)


class Region:
    """The AWS clients of one region, in moto or in the emulator."""

    def __init__(self, name: str, endpoint: str | None) -> None:
        made: dict[str, Any] = {
            "region_name": name,
            "endpoint_url": endpoint,
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
        }
        config = Config(max_pool_connections=20, retries={"total_max_attempts": 1})
        self.tables = boto3.client("dynamodb", config=config, **made)
        read_as_sent(self.tables)
        self.secrets = boto3.client("secretsmanager", **made)

    def deploy(self, secret: str) -> None:
        for definition in table_definitions(PREFIX):
            self.tables.create_table(**definition)
        self.secrets.create_secret(Name=SECRET, SecretString=secret)

    def remove(self) -> None:
        for name in (f"{before}{PREFIX}-{table}" for table in TABLES for before in ("", "good-")):
            with suppress(self.tables.exceptions.ResourceNotFoundException):
                self.tables.update_table(TableName=name, DeletionProtectionEnabled=False)
                self.tables.delete_table(TableName=name)
        self.secrets.delete_secret(SecretId=SECRET, ForceDeleteWithoutRecovery=True)

    def rows(self) -> Rows:
        """Return the rows of all tables, in the order of their keys."""
        pages = self.tables.get_paginator("scan").paginate
        return {
            name: sorted(
                (row for page in pages(TableName=f"{PREFIX}-{name}") for row in page["Items"]),
                key=repr,
            )
            for name in TABLES
        }

    def store(self, table: str, rows: list[Any], target: str) -> None:
        """Create a table like this one, with these rows."""
        name = f"{PREFIX}-{table}"
        [like] = [each for each in table_definitions(PREFIX) if each["TableName"] == name]
        self.tables.create_table(**{**like, "TableName": target})
        for first in range(0, len(rows), 25):
            puts = [{"PutRequest": {"Item": row}} for row in rows[first : first + 25]]
            self.tables.batch_write_item(RequestItems={target: puts})


class Restoring:
    """The new region's DynamoDB, which restores the rows of another region's table."""

    def __init__(self, here: Region, old: Rows) -> None:
        self.here, self.old = here, old

    def __getattr__(self, name: str) -> Any:
        return getattr(self.here.tables, name)

    def restore_table_to_point_in_time(self, **asked: Any) -> Any:
        name = asked["SourceTableArn"].partition(f":table/{PREFIX}-")[2]
        self.here.store(name, self.old[name], asked["TargetTableName"])


class Vault:
    """AWS Backup in the new region, with the copies of one day."""

    def __init__(self, here: Region, old: Rows, at: Any) -> None:
        self.here, self.old, self.at = here, old, at

    def get_paginator(self, name: str) -> Any:
        return self

    def paginate(self, **asked: Any) -> Any:
        assert asked["BackupVaultName"] == "checkout"
        yield {
            "RecoveryPoints": [
                {
                    "RecoveryPointArn": name,
                    "ResourceArn": f"arn:aws:dynamodb:{OLD}:123456789012:table/{PREFIX}-{name}",
                    "Status": "COMPLETED",
                    "CreationDate": self.at,
                }
                for name in TABLES
            ]
        }

    def get_recovery_point_restore_metadata(self, **asked: Any) -> Any:
        return {"RestoreMetadata": {}}

    def start_restore_job(self, **asked: Any) -> Any:
        name = asked["RecoveryPointArn"]
        self.here.store(name, self.old[name], asked["Metadata"]["targetTableName"])
        return {"RestoreJobId": name}

    def describe_restore_job(self, **asked: Any) -> Any:
        return {"Status": "COMPLETED"}


class OtherKms(HandKms):
    """The key of another region, which opens nothing of the first one's."""

    def __init__(self) -> None:
        super().__init__()
        self._key = AESGCM(b"o" * 32)


class Move:
    """Types the commands of the page "Another region", for a world whose deployment is the old one.

    After "make start", the world's services are those of the new deployment.
    """

    def __init__(
        self,
        world: World,
        old: Region,
        new: Region,
        copy: Rows,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.world, self.old, self.new, self.copy = world, old, new, copy
        self.typed: list[str] = []
        self.started: str | None = None
        monkeypatch.setattr(wiring, "pay_services", lambda: self.services[0])
        clients: dict[str, Callable[[], Any]] = {
            "dynamodb": lambda: self.old.tables,
            "backup": lambda: Vault(new, copy, world.clock.now()),
        }
        monkeypatch.setattr(
            "operations.restore.boto3.client", lambda service, **how: clients[service]()
        )

    @property
    def vault(self) -> AesVault:
        source = key_from_secrets_manager(self.new.secrets, SECRET)
        return AesVault(source, seeded(9), derive=derived)

    @property
    def services(self) -> Any:
        """Return the services for pages with wallets, the others, and the dashboard's."""
        world, vault, client = self.world, self.vault, self.new.tables
        keys = KmsDetailsKeys(lambda: OtherKms(), KEY_ID, world.vault.inner)
        core = services.core(
            client,
            PREFIX,
            clock=world.clock,
            random_bytes=seeded(7),
            queue=NotedHints(),
            tasks=NotedTasks(),
            base_url=BASE_URL,
            details_keys=keys,
        )
        wallets = SignedWallets(world.transport, vault, world.clock, allow_loopback=True)
        paying = services.pay(
            replace(core, allow_loopback=True), client, PREFIX, vault=vault, wallets=wallets
        )
        hosts = world.hosts
        return paying, core, services.dashboard(core, client, PREFIX, vault=vault, hosts=hosts)

    def follow(self, *left_out: str) -> None:
        """Type all commands of the page in their order, but those that begin so."""
        section = PAGE.partition("### Another region\n")[2].partition("\n## ")[0]
        section = section.partition("**To move**")[2]
        blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
        for block in blocks:
            joined = re.sub(r"(\\|\|)\n", lambda found: found[1].strip("\\"), block)
            for line in (each.strip() for each in joined.splitlines()):
                if line and not any(each in line for each in left_out):
                    self.typed.append(line)
                    assert self.type(line) == 0, line

    def type(self, line: str) -> int:
        known = {"$ROLE": "role", "$OLD_SECRET": SECRET, "$ENCRYPTION_KEY_SECRET": SECRET}
        for name, real in known.items():
            line = line.replace(name, real)
        words = shlex.split(line)
        if words[0] == ".venv/bin/python":
            client: Any = Restoring(self.new, self.copy)
            restorer = Restorer(client, PREFIX, self.vault, sleep=lambda seconds: None)
            return restore.main(words[3:], lambda: restorer)
        if words[0] == ".venv/bin/checkout":
            records = DynamoRecords(self.new.tables, PREFIX)
            return cli.main(words[1:], lambda: self.services[2], lambda: records)
        if words[:3] == ["aws", "secretsmanager", "get-secret-value"]:
            text = self.old.secrets.get_secret_value(SecretId=words[4])["SecretString"]
            self.new.secrets.put_secret_value(SecretId=SECRET, SecretString=text)
        elif words[:2] == ["make", "start"]:
            self.started = words[2]
            world = self.world
            world.services, world.core, world.endpoints = self.services
            world.dynamo, world.vault = self.new.tables, self.vault  # type: ignore[assignment]
            world.queue = world.core.queue  # type: ignore[assignment]
        else:
            assert words[0] in ("make", "export", "AWS_REGION=us-east-1") or "=$(aws" in line, line
        return 0


@pytest.fixture(params=["moto", pytest.param("emulator", marks=pytest.mark.cloud)])
def stage(request: pytest.FixtureRequest) -> Iterator[tuple[Region, Region, int]]:
    """The two regions, and how many sessions each state has."""
    if request.param == "moto":
        with mock_aws():
            yield Region(OLD, None), Region(NEW, None), 2
    else:
        endpoint = request.getfixturevalue("emulator")
        old, new = Region(OLD, endpoint), Region(NEW, endpoint)
        yield old, new, 32
        for region in (old, new):
            region.remove()


@pytest.fixture
def world() -> World:
    world = World()
    world.listen("refund.updated", "refund.failed")
    for wallet in (ALICE, BOB, f"{CEDAR}/partial"):
        account = world.network.account(wallet)
        assert account is not None
        account.balance += 10_000_00
    fund(world, 10_000_00)
    allow(world, 10_000_00)
    world.link(left=50)
    people.invite_to(world.endpoints, world.merchant.id, name="Ada", role=Role.OWNER)
    return world


def filled(world: World, count: int) -> None:
    for _ in range(count):
        for state in STATES:
            state(world)
    delivered = world.queue.messages[::2]  # the others wait
    for event_id in delivered:
        world.deliver(event_id)
    world.queue.messages.clear()


def stored(world: World) -> Rows:
    return {name: sorted(world.dynamo.rows(f"{PREFIX}-{name}"), key=repr) for name in TABLES}


def sent(world: World) -> int:
    """Return how many payments have left any wallet."""
    world.network.advance()
    return sum(1 for each in world.network.state.outgoing.values() if each.sent)


def sessions(world: World) -> list[Session]:
    found = DynamoRecords(world.dynamo, PREFIX).sessions()
    return [each for each in found if each is not None]


def in_doubt(world: World) -> list[str]:
    """Return the sessions whose payment is still to be decided by the wallets.

    Those that are paid in part wait for the merchant.
    """
    return [e.id for e in sessions(world) if e.payment_in_flight and e.check_at is not None]


def delivered(world: World) -> list[str]:
    return [headers["webhook-id"] for _, headers, _ in world.receivers.got]


def known_email(world: World) -> set[str | None]:
    theirs = [each for each in sessions(world) if each.customer_details is not None]
    return {each.email for each in details.known(world.core, theirs).values()}


def run(world: World, minutes: int) -> None:
    """Let the schedule and the sender run."""
    for _ in range(minutes):
        world.sweep()
        world.deliver_hinted()


def test_a_deployment_that_is_stopped_moves_whole(
    stage: tuple[Region, Region, int], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new, count = stage
    filled(world, count)
    assert len(sessions(world)) == count * len(STATES)
    copy, paid = stored(world), sent(world)
    told = delivered(world)
    old.deploy(world.encryption_key)
    new.deploy("22" * 32)
    move = Move(world, old, new, copy, monkeypatch)
    move.follow("--from-vault", "ROLE=", "hold-refunds")
    moved = new.rows()
    assert {name: moved[name] for name in TABLES if name != "merchants"} == {
        name: copy[name] for name in TABLES if name != "merchants"
    }
    assert len(moved["merchants"]) == len(copy["merchants"])
    assert known_email(world) == {"ana@example.com"}
    members = people.listed(world.endpoints, world.merchant.id)
    assert [each.name for each in members.invitations] == ["Ada"]
    run(world, 60)
    assert in_doubt(world) == []
    # The refunds that waited for the budget are paid, each once.
    assert sent(world) == paid + count
    run(world, 60)
    assert sent(world) == paid + count
    waiting = {row["id"]["S"] for row in copy["webhook_events"]} - set(told)
    assert waiting <= set(delivered(world))
    assert sorted(delivered(world)) == sorted(set(delivered(world)))
    assert mandate(world).active


def test_a_deployment_whose_region_is_lost_pays_nothing_twice(
    stage: tuple[Region, Region, int], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new, count = stage
    filled(world, count)
    copy = stored(world)
    run(world, 30)  # after the moment of the copy
    paid = sent(world)
    old.deploy(world.encryption_key)
    new.deploy("22" * 32)
    move = Move(world, old, new, copy, monkeypatch)
    move.follow("AWS_REGION=us-east-1", "--from-region")
    assert move.started == "REFUNDS=held"
    assert known_email(world) == {"ana@example.com"}
    assert len(sessions(world)) == count * len(STATES)
    run(world, 60)
    assert in_doubt(world) == []
    assert sent(world) == paid
    records = DynamoRecords(world.dynamo, PREFIX)
    waiting = [each for each in records.refunds() if each and not each.terminal]
    assert len(waiting) >= 3 * count
    assert all(each.held_at is not None for each in waiting)
