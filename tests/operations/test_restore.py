"""Test the restoring of tables on moto and on the emulator.

Neither has a history: what they restore is the table as it is now. Nor do they encrypt.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from moto import mock_aws

from checkout.adapters.dynamo.merchants import merchant_item
from checkout.adapters.vault import AesVault
from checkout.domain.ground.parts import Lists
from checkout.domain.merchant.record import private_key_place
from checkout.ports import SecretUnreadable
from operations.restore import Restorer, main
from sandbox.cloud import table_definitions
from tests.support.basics import a_session, seeded
from tests.support.flows import derived
from tests.support.samples import a_merchant
from tests.support.stores import boto, new_store, with_tables

TABLES = ("merchants", "api_keys", "checkout_sessions", "idempotency_keys", "webhook_events")


class Place:
    """A deployment's tables with a merchant and three sessions, and their restorer."""

    def __init__(self, client: Any, prefix: str) -> None:
        self.client, self.prefix = with_tables(client, prefix), prefix
        self.vault = AesVault(lambda: "11" * 32, seeded(), derive=derived)
        self.lines: list[str] = []
        self.restorer = Restorer(
            client, prefix, self.vault, sleep=lambda seconds: None, tell=self.lines.append
        )
        merchant = a_merchant()
        sealed = self.vault.seal("key", place=private_key_place(merchant.id))
        self.put("merchants", merchant_item(replace(merchant, private_key=sealed)))
        self.sessions = new_store(client, prefix).sessions
        self.stored = [a_session(id=f"cs_{number:022d}") for number in range(3)]
        for session in self.stored:
            self.sessions.create(session, None)

    def put(self, table: str, item: Any) -> None:
        self.client.put_item(TableName=f"{self.prefix}-{table}", Item=item)

    def run(self, *arguments: str) -> int:
        return main(list(arguments), lambda: self.restorer)

    def names(self) -> set[str]:
        pages = self.client.get_paginator("list_tables").paginate()
        found = {name for page in pages for name in page["TableNames"]}
        return {name for name in found if self.prefix in name}

    def described(self, table: str) -> Any:
        return self.client.describe_table(TableName=f"{self.prefix}-{table}")["Table"]


@pytest.fixture(params=["moto", pytest.param("emulator", marks=pytest.mark.cloud)])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    prefix = f"stack-{uuid.uuid4().hex[:8]}"
    if request.param == "moto":
        with mock_aws():
            yield Place(boto(), prefix)
    else:
        yield Place(boto(request.getfixturevalue("emulator")), prefix)


def test_a_drill_restores_reads_and_deletes_every_table(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    before = place.names()
    assert len(before) == len(TABLES)
    assert place.run("drill") == 0
    out = capsys.readouterr().out
    assert "1 records of merchants can be read" in out
    assert "3 records of checkout_sessions can be read" in out
    assert any("restored in" in line for line in place.lines)
    assert any("newest record" in line for line in place.lines)
    assert place.names() == before
    assert place.run("drill", "--keep") == 0
    drill = {f"drill-{name}" for name in before}
    assert place.names() == before | drill
    assert place.run("drill") == 0  # restores them again, and deletes them
    assert place.names() == before


def test_a_drill_finds_secrets_that_do_not_open_and_rows_that_cannot_be_read(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.put("merchants", merchant_item(a_merchant(id="mer_2", private_key="v1.00000000.AAAA")))
    place.put("checkout_sessions", {"id": {"S": "cs_broken"}})
    assert place.run("drill") == 1
    err = capsys.readouterr().err
    assert "1 records of merchants CANNOT be read" in err
    assert "1 records of checkout_sessions CANNOT be read" in err
    with pytest.raises(SecretUnreadable):
        place.vault.open("v1.00000000.AAAA", place=private_key_place("mer_2"))


def test_a_damaged_table_is_fetched_verified_and_swapped(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    table = f"{place.prefix}-checkout_sessions"
    assert place.run("fetch", "checkout_sessions", "--at", "2026-11-22T10:00:00Z") == 0
    assert "3 records of checkout_sessions can be read" in capsys.readouterr().out
    for session in place.stored:  # the damage
        place.client.delete_item(TableName=table, Key={"id": {"S": session.id}})
    assert place.sessions.get(place.stored[0].id) is None

    assert place.run("swap", "checkout_sessions", "--functions-are-stopped") == 0
    assert [place.sessions.get(session.id) for session in place.stored] == place.stored
    page = place.sessions.page(
        Lists("mer_1"), limit=9, after=None, created_from=None, created_before=None
    )
    assert len(page.records) == 3
    ttl = place.client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    assert (ttl["TimeToLiveStatus"], ttl["AttributeName"]) == ("ENABLED", "ttl")
    backups = place.client.describe_continuous_backups(TableName=table)
    recovery = backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    assert recovery["PointInTimeRecoveryStatus"] == "ENABLED"
    assert place.described("checkout_sessions")["DeletionProtectionEnabled"]
    assert f"good-{table}" in place.names()  # until somebody has looked

    place.client.update_table(TableName=table, DeletionProtectionEnabled=False)
    place.client.delete_table(TableName=table)  # a swap that was interrupted here
    assert place.run("swap", "checkout_sessions", "--functions-are-stopped") == 0
    assert place.sessions.get(place.stored[0].id) == place.stored[0]


def test_one_damaged_row_is_copied_from_the_fetched_table(place: Place) -> None:
    table, (damaged, other, _) = f"{place.prefix}-checkout_sessions", place.stored
    assert place.run("fetch", "checkout_sessions") == 0
    for session in (damaged, other):
        place.put("checkout_sessions", {"id": {"S": session.id}, "payment": {"S": "by hand"}})
    assert place.run("row", "checkout_sessions", damaged.id) == 0
    assert place.sessions.get(damaged.id) == damaged
    row = place.client.get_item(TableName=table, Key={"id": {"S": other.id}})["Item"]
    assert row["payment"] == {"S": "by hand"}


def test_no_row_is_copied_that_was_not_fetched(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert place.run("row", "checkout_sessions", place.stored[0].id) == 1
    assert "fetch it first" in capsys.readouterr().err
    assert place.run("fetch", "checkout_sessions") == 0
    assert place.run("row", "checkout_sessions", "cs_elsewhere") == 1
    assert "has no row cs_elsewhere" in capsys.readouterr().err


def test_nothing_is_swapped_for_what_was_not_fetched_or_has_another_shape(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert place.run("swap", "merchants", "--functions-are-stopped") == 1
    assert "fetch it first" in capsys.readouterr().err
    [other] = [
        each for each in table_definitions(place.prefix) if each["TableName"].endswith("events")
    ]
    name = f"good-{place.prefix}-checkout_sessions"
    place.client.create_table(**{**other, "TableName": name})
    before = place.names()
    assert place.run("swap", "checkout_sessions", "--functions-are-stopped") == 1
    assert "other keys or indexes" in capsys.readouterr().err
    assert place.names() == before
    assert place.sessions.get(place.stored[0].id) == place.stored[0]


def test_a_drill_reads_no_table_of_an_earlier_drill(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert place.run("drill", "--keep") == 0
    place.sessions.create(a_session(id=f"cs_{9:022d}"), None)
    assert place.run("drill") == 0
    out = capsys.readouterr().out
    assert "3 records of checkout_sessions can be read" in out
    assert "4 records of checkout_sessions can be read" in out


def test_a_table_of_another_moment_is_not_taken_for_the_fetched_one(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert place.run("fetch", "checkout_sessions", "--at", "2026-11-22T10:00:00Z") == 0
    for again in ([], ["--at", "2026-11-22T11:00:00Z"]):
        capsys.readouterr()
        assert place.run("fetch", "checkout_sessions", *again) == 1
        said = capsys.readouterr()
        assert "is already there, of" in said.err
        assert f"--table-name good-{place.prefix}-checkout_sessions" in said.err
        assert "can be read" not in said.out
    place.client.delete_table(TableName=f"good-{place.prefix}-checkout_sessions")
    place.sessions.create(a_session(id=f"cs_{9:022d}"), None)
    assert place.run("fetch", "checkout_sessions", "--at", "2026-11-22T11:00:00Z") == 0
    assert "4 records of checkout_sessions can be read" in capsys.readouterr().out


def test_a_fetch_that_was_interrupted_goes_on_if_it_is_of_the_same_moment(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    moment, describe = datetime(2026, 11, 22, 10, tzinfo=UTC), place.client.describe_table

    def restored_to_the_moment(**request: Any) -> Any:
        """Answer as AWS does; moto has the moment of the request instead, the emulator none."""
        found = describe(**request)
        found["Table"]["RestoreSummary"] = {"RestoreDateTime": moment, "RestoreInProgress": False}
        return found

    fetch = ("fetch", "checkout_sessions", "--at", "2026-11-22T10:00:00Z")
    assert place.run(*fetch) == 0
    monkeypatch.setattr(place.client, "describe_table", restored_to_the_moment)
    assert place.run(*fetch) == 0
    assert capsys.readouterr().out.count("3 records of checkout_sessions can be read") == 2
    assert place.run("swap", "checkout_sessions", "--functions-are-stopped") == 0
    assert f"good-{place.prefix}-checkout_sessions is of {moment}" in place.lines


@pytest.mark.parametrize("at", ["yesterday", "2026-11-22T10:00:00"])
def test_a_moment_without_a_time_zone_is_none(at: str) -> None:
    with pytest.raises(SystemExit):
        main(["fetch", "merchants", "--at", at])


def test_a_swap_needs_to_be_told_that_the_functions_are_stopped() -> None:
    with pytest.raises(SystemExit):
        main(["swap", "merchants"])


ROLE = "arn:aws:iam::123456789012:role/checkout-BackupRole"


class Backups:
    """AWS Backup with copies of tables. A restore job creates its table from the one named."""

    def __init__(self, place: Place, status: str = "COMPLETED") -> None:
        self.place, self.status = place, status
        self.started: list[dict[str, Any]] = []
        self.looked: list[str] = []
        self.points = [self.point(name, 3) for name in TABLES]

    def point(self, table: str, day: int, status: str = "COMPLETED") -> dict[str, Any]:
        point = f"arn:aws:backup:eu-west-1:123456789012:recovery-point:{table}-{day}"
        table = f"arn:aws:dynamodb:us-east-1:123456789012:table/{self.place.prefix}-{table}"
        return {
            "RecoveryPointArn": point,
            "ResourceArn": table,
            "Status": status,
            "CreationDate": datetime(2026, 11, day, 3, tzinfo=UTC),
        }

    def get_paginator(self, name: str) -> Any:
        assert name == "list_recovery_points_by_backup_vault"
        return self

    def paginate(self, *, BackupVaultName: str, ByResourceType: str) -> Any:
        assert (BackupVaultName, ByResourceType) == ("vault", "DynamoDB")
        return [{"RecoveryPoints": [each]} for each in self.points]

    def get_recovery_point_restore_metadata(self, **request: Any) -> Any:
        assert request["BackupVaultName"] == "vault"
        given = {"originalTableName": "x", "encryptionType": "KMS", "kmsMasterKeyArn": "arn:theirs"}
        return {"RestoreMetadata": given}

    def start_restore_job(self, **request: Any) -> Any:
        self.started.append(request)
        target = request["Metadata"]["targetTableName"]
        if self.status == "COMPLETED":
            self.place.client.restore_table_to_point_in_time(
                SourceTableName=target.removeprefix("good-"),
                TargetTableName=target,
                UseLatestRestorableTime=True,
            )
        return {"RestoreJobId": target}

    def describe_restore_job(self, *, RestoreJobId: str) -> Any:
        status = self.status if RestoreJobId in self.looked else "RUNNING"
        self.looked.append(RestoreJobId)
        return {"Status": status, "StatusMessage": "no permission"}


def copied(place: Place, backups: Backups, *arguments: str) -> int:
    """Run `copy` from a vault of this AWS Backup."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("operations.restore.boto3.client", lambda service, config: backups)
        return place.run("copy", "--from-vault", "vault", "--role", ROLE, *arguments)


def test_all_tables_are_copied_from_the_newest_complete_copies_of_a_vault(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    backups = Backups(place)
    backups.points += [backups.point(name, 2) for name in TABLES]
    backups.points += [backups.point(name, 4, "PARTIAL") for name in TABLES]
    before = place.names()
    assert copied(place, backups) == 0
    assert "3 records of checkout_sessions can be read" in capsys.readouterr().out
    assert place.names() == before | {f"good-{name}" for name in before}
    assert {each["RecoveryPointArn"].rpartition("-")[2] for each in backups.started} == {"3"}
    assert {each["IamRoleArn"] for each in backups.started} == {ROLE}
    target = f"good-{place.prefix}-merchants"
    [job] = [each for each in backups.started if each["Metadata"]["targetTableName"] == target]
    assert job["Metadata"] == {
        "originalTableName": "x",
        "encryptionType": "Default",
        "targetTableName": target,
    }
    assert copied(place, backups) == 0  # after an interruption
    assert len(backups.started) == len(TABLES)
    assert f"{target} is already there, and is used. Delete it if it is older." in place.lines


def test_copies_are_taken_until_a_moment(place: Place) -> None:
    backups = Backups(place)
    backups.points += [backups.point(name, 4) for name in TABLES]
    assert copied(place, backups, "--at", "2026-11-03T12:00:00Z") == 0
    assert {each["RecoveryPointArn"].rpartition("-")[2] for each in backups.started} == {"3"}


def test_nothing_is_copied_from_a_vault_that_lacks_a_table(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    backups = Backups(place)
    backups.points.pop()
    assert copied(place, backups) == 1
    assert f"vault has no copy of {place.prefix}-webhook_events" in capsys.readouterr().err
    assert backups.started == []


@pytest.mark.parametrize("status", ["FAILED", "ABORTED"])
def test_a_copy_that_was_not_restored_is_reported(
    place: Place, capsys: pytest.CaptureFixture[str], status: str
) -> None:
    assert copied(place, Backups(place, status)) == 1
    assert "AWS Backup did not restore: no permission" in capsys.readouterr().err


def test_a_table_is_encrypted_with_the_deployments_own_key() -> None:
    theirs = {"SSEDescription": {"KMSMasterKeyArn": "arn:theirs"}}
    client: Any = None
    for own, wanted in (("arn:ours", "arn:ours"), ("", "arn:theirs")):
        [override] = Restorer(client, "checkout", client, own)._encryption(theirs).values()
        assert override["KMSMasterKeyId"] == wanted
    assert Restorer(client, "checkout", client)._encryption({}) == {}


@pytest.mark.parametrize(
    "arguments",
    [["--from-region", "us-east-1"], ["--from-vault", "vault"], ["--at", "2026-11-22T10:00:00Z"]],
)
def test_a_copy_needs_its_place_and_what_belongs_to_it(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        main(["copy", *arguments])
