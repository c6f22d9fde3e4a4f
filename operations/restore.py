"""Restore tables: first under another name, to check them, then under their own name.

`drill` is a rehearsal. It restores every table beside the running one, reads the records (from
api_keys only the audit log), opens each merchant's private key, and deletes the restored tables
again (unless --keep is given).
`fetch TABLE` restores one table under another name, to the moment of --at.
`copy` restores all tables under other names: from the deployment of the same name in another region
(--from-region), or from a vault of AWS Backup (--from-vault) with a role (--role).
`row TABLE ID` copies one row of a fetched table over the damaged row.
`swap TABLE` replaces the damaged table by a fetched one, and requires --functions-are-stopped.

After an interruption, run the command again. `fetch` and `copy --from-region` never accept a table
that was restored to another moment. docs/operating.md describes the use of each command.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from checkout import wiring
from checkout.adapters import dynamo
from checkout.adapters.aws import THOROUGH
from checkout.adapters.dynamo.erasure import DynamoRecords
from checkout.adapters.vault import AesVault
from checkout.domain.ground.errors import CheckoutError
from checkout.domain.merchant.record import Merchant, private_key_place
from checkout.ports import SecretUnreadable
from checkout.settings import SettingsError
from sandbox.template import resources, stack_name

DRILL: Final = "drill-"  # prefix of the tables of a drill
GOOD: Final = "good-"  # prefix of a fetched table
_LOOK_EVERY: Final = 10.0  # seconds; a restore takes some twenty minutes at least
TABLES: Final = {
    stack_name(table["TableName"], "").removeprefix("-"): table
    for table in resources("AWS::DynamoDB::Table").values()
}
_KEYS: Final = {name: table["KeySchema"][0]["AttributeName"] for name, table in TABLES.items()}


class Refused(Exception):
    """The command is not possible now; the message contains the reason. Nothing was deleted."""


@dataclass(slots=True)
class Read:
    """For each restored table: the numbers of readable and unreadable rows, the newest time."""

    rows: Counter[str] = field(default_factory=Counter)
    unreadable: Counter[str] = field(default_factory=Counter)
    newest: datetime | None = None

    @property
    def good(self) -> bool:
        return not self.unreadable


@dataclass(frozen=True, slots=True)
class Restorer:
    """Restores the tables of a deployment. `client` is boto3's client of DynamoDB.

    Restored tables are encrypted with the KMS key `key`. If it is empty, they keep their own key.
    """

    client: Any
    prefix: str
    vault: AesVault
    key: str = ""
    sleep: Callable[[float], None] = time.sleep
    tell: Callable[[str], None] = print

    def drill(self, *, keep: bool = False) -> Read:
        """Restore all tables beside the running ones, read them, and delete them again."""
        begun = datetime.now(UTC)
        for table in TABLES:
            copy = self._name(table, DRILL)
            if not _restoring(self._described(copy)):  # an interrupted drill may have begun it
                self._delete(copy)
                self._restore(table, copy, at=None)
        for table in TABLES:
            self._wait(self._name(table, DRILL))
        restored = datetime.now(UTC)
        read = self.read(DRILL, tuple(TABLES))
        self.tell(f"restored in {_span(restored - begun)}, read in {_span(_since(restored))}")
        if read.newest is not None:
            self.tell(f"newest record: {_span(begun - read.newest)} before the drill")
        if not keep:
            for table in TABLES:
                self._delete(self._name(table, DRILL))
        return read

    def fetch(self, table: str, *, at: datetime | None) -> Read:
        """Restore one table under another name, to the moment `at` or the latest possible one.

        Raises Refused if there is already a table of that name from another moment.
        """
        target = self._name(table, GOOD)
        if not self._is_of(target, at):
            self._restore(table, target, at=at)
        self._wait(target)
        return self.read(GOOD, (table,))

    def copy_from_region(self, there: Any, *, at: datetime) -> Read:
        """Restore all tables under other names, as they were in another region at `at`.

        `there` is boto3's client of DynamoDB in that region. Raises Refused like `fetch`.
        """
        for table in TABLES:
            target = self._name(table, GOOD)
            if not self._is_of(target, at):
                source = there.describe_table(TableName=self._name(table))["Table"]["TableArn"]
                self._restore(table, target, at=at, source={"SourceTableArn": source})
        return self._copied()

    def copy_from_vault(self, backups: Any, vault: str, role: str, *, at: datetime | None) -> Read:
        """Restore each table under another name, from its newest copy in a vault of AWS Backup.

        If `at` is given, copies made after `at` are not used. `backups` is boto3's client of AWS
        Backup, which assumes the role `role`. Raises Refused if a table has no usable copy or a
        restore fails.
        """
        pages = backups.get_paginator("list_recovery_points_by_backup_vault").paginate(
            BackupVaultName=vault, ByResourceType="DynamoDB"
        )
        points = [each for page in pages for each in page["RecoveryPoints"]]
        newest = {table: _newest(points, self._name(table), at) for table in TABLES}
        for table, point in newest.items():
            if point is None:
                raise Refused(f"{vault} has no copy of {self._name(table)}.")
        jobs = []
        for table, point in newest.items():
            target = self._name(table, GOOD)
            if self._described(target) is not None:
                self.tell(f"{target} is already there, and is used. Delete it if it is older.")
                continue
            arn = point["RecoveryPointArn"]
            found = backups.get_recovery_point_restore_metadata(
                BackupVaultName=vault, RecoveryPointArn=arn
            )["RestoreMetadata"]
            found.pop("kmsMasterKeyArn", None)  # another region's key; `swap` sets the right one
            job = backups.start_restore_job(
                RecoveryPointArn=arn,
                IamRoleArn=role,
                ResourceType="DynamoDB",
                Metadata={**found, "targetTableName": target, "encryptionType": "Default"},
            )
            jobs.append(job["RestoreJobId"])
            self.tell(f"restoring {self._name(table)} of {point['CreationDate']} to {target} …")
        for job in jobs:
            self._wait_for_job(backups, job)
        return self._copied()

    def row(self, table: str, key: str) -> None:
        """Copy one row of the fetched table over the running table's row. Raises Refused.

        The AWS CLI cannot copy a row: its version 1 prints bytes as base64 text, but stores this
        text unchanged when it writes an item.
        """
        good = self._name(table, GOOD)
        of_table = {_KEYS[table]: {"S": key}}
        try:
            found = self.client.get_item(TableName=good, Key=of_table, ConsistentRead=True)
        except self.client.exceptions.ResourceNotFoundException:
            raise Refused(f"There is no table {good}: fetch it first.") from None
        if "Item" not in found:
            raise Refused(f"{good} has no row {key}.")
        self.client.put_item(TableName=self._name(table), Item=found["Item"])
        self.tell(f"{key} is copied from {good}")

    def swap(self, table: str) -> None:
        """Replace the running table by the fetched one. Raises Refused."""
        name, good = self._name(table), self._name(table, GOOD)
        fetched, damaged = self._described(good), self._described(name)
        if fetched is None:
            raise Refused(f"There is no table {good}: fetch it first.")
        if _shape(fetched) != _shape(TABLES[table]):
            raise Refused(f"{good} has other keys or indexes than template.yaml.")
        self.tell(f"{good} is of {_restored_to(fetched) or 'an unknown moment'}")
        rows = self._count(good)
        backup = self._back_up(good)
        if damaged is not None:
            # A backup of the damaged table, in case somebody must look at it later.
            self._back_up(name)
            self.client.update_table(TableName=name, DeletionProtectionEnabled=False)
            self._wait(name)
            self._delete(name)
        self.client.restore_table_from_backup(
            TargetTableName=name, BackupArn=backup, **self._encryption(fetched)
        )
        self._wait(name)
        self._protect(table)
        if self._count(name) != rows:
            raise Refused(
                f"{name} does not have as many rows as {good}: find out why before you go on."
            )
        self.tell(f"{name} is back, with {rows} rows. Delete {good} and the backups later.")
        if table == "checkout_sessions":
            self.tell("Run `checkout hold-refunds` before `make start`: some may have been paid.")

    def read(self, before: str, tables: tuple[str, ...]) -> Read:
        """Read every row of restored tables with the product's own code.

        `before` is the prefix of the restored tables' names, DRILL or GOOD.
        """
        read, prefix = Read(), f"{before}{self.prefix}"
        for table, records in self._records(prefix).items():
            if table not in tables:
                continue
            for at in records:
                if at is None:
                    read.unreadable[table] += 1
                else:
                    read.rows[table] += 1
                    read.newest = max(read.newest or at, at)
        return read

    def _records(self, prefix: str) -> dict[str, Iterator[datetime | None]]:
        """Return the time of each record by table, None for a record that cannot be read."""
        records = DynamoRecords(self.client, prefix)
        return {
            "merchants": map(self._opened, self._merchants(prefix)),
            "api_keys": (each.at if each else None for each in records.audit_entries()),
            "checkout_sessions": (each.updated_at if each else None for each in records.sessions()),
            "idempotency_keys": (each.created_at if each else None for each in records.answers()),
            "webhook_events": (each.created_at if each else None for each in records.events()),
        }

    def _merchants(self, prefix: str) -> Iterator[Merchant]:
        stored, after = dynamo.DynamoMerchants(self.client, prefix), None
        while True:
            page = stored.page(limit=100, after=after)
            yield from page.records
            after = page.next_key
            if after is None:
                return

    def _opened(self, merchant: Merchant) -> datetime | None:
        keys = [each.private_key for each in merchant.service_keys]
        keys += [each.private_key for each in merchant.former]
        try:
            for each in (merchant.private_key, *keys):
                self.vault.open(each, place=private_key_place(merchant.id))
        except SecretUnreadable:
            return None
        return merchant.created_at

    def _name(self, table: str, before: str = "") -> str:
        return f"{before}{self.prefix}-{table}"

    def _restore(
        self,
        table: str,
        target: str,
        *,
        at: datetime | None,
        source: dict[str, str] | None = None,
    ) -> None:
        name = self._name(table)
        running = self._described(name)
        if running is None:
            raise Refused(f"There is no table {name}. Deploy the stage first.")
        moment: dict[str, Any] = {"RestoreDateTime": at} if at else {}
        self.client.restore_table_to_point_in_time(
            **(source or {"SourceTableName": name}),
            TargetTableName=target,
            UseLatestRestorableTime=at is None,
            **moment,
            **self._encryption(running),
        )
        self.tell(f"restoring {self._name(table)} to {target} …")

    def _is_of(self, target: str, at: datetime | None) -> bool:
        """Return whether the table was restored to the moment `at`; False if there is no table.

        Raises Refused if the table was restored to another moment, or if `at` is None.
        """
        found = self._described(target)
        if found is None:
            return False
        if at is None or _restored_to(found) != at:
            moment = _restored_to(found) or "an unknown moment"
            raise Refused(
                f"{target} is already there, of {moment}. Delete it first: "
                f"aws dynamodb delete-table --table-name {target}"
            )
        return True

    def _copied(self) -> Read:
        for table in TABLES:
            self._wait(self._name(table, GOOD))
        return self.read(GOOD, tuple(TABLES))

    def _wait_for_job(self, backups: Any, job: str) -> None:
        while True:
            found = backups.describe_restore_job(RestoreJobId=job)
            if found["Status"] == "COMPLETED":
                return
            if found["Status"] in ("ABORTED", "FAILED"):
                raise Refused(f"AWS Backup did not restore: {found.get('StatusMessage')}")
            self.sleep(_LOOK_EVERY)

    def _encryption(self, table: dict[str, Any]) -> dict[str, Any]:
        """Return the parameter that encrypts a restored table with `key`, or the key of `table`."""
        key = self.key or table.get("SSEDescription", {}).get("KMSMasterKeyArn")
        if key is None:
            return {}
        wanted = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": key}
        return {"SSESpecificationOverride": wanted}

    def _protect(self, table: str) -> None:
        """Set the properties that a restored table lacks: time to live, recovery, protection."""
        name, wanted = self._name(table), TABLES[table]
        if "TimeToLiveSpecification" in wanted:
            self.client.update_time_to_live(
                TableName=name, TimeToLiveSpecification=wanted["TimeToLiveSpecification"]
            )
        self.client.update_continuous_backups(
            TableName=name,
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
        )
        self.client.update_table(TableName=name, DeletionProtectionEnabled=True)
        self._wait(name)

    def _back_up(self, name: str) -> str:
        """Back a table up, wait until the backup is ready, and return its ARN."""
        made = self.client.create_backup(
            TableName=name, BackupName=f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%S}"
        )
        arn: str = made["BackupDetails"]["BackupArn"]
        while True:
            found = self.client.describe_backup(BackupArn=arn)["BackupDescription"]
            if found["BackupDetails"]["BackupStatus"] == "AVAILABLE":
                self.tell(f"backup of {name}: {arn}")
                return arn
            self.sleep(_LOOK_EVERY)

    def _delete(self, name: str) -> None:
        if self._described(name) is not None:
            self.client.delete_table(TableName=name)
        while self._described(name) is not None:
            self.sleep(_LOOK_EVERY)

    def _wait(self, name: str) -> None:
        while True:
            table = self._described(name)
            if table is not None and table["TableStatus"] == "ACTIVE":
                return
            self.sleep(_LOOK_EVERY)

    def _count(self, name: str) -> int:
        pages = self.client.get_paginator("scan").paginate(
            TableName=name, Select="COUNT", ConsistentRead=True
        )
        return sum(page["Count"] for page in pages)

    def _described(self, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = self.client.describe_table(TableName=name)["Table"]
        except self.client.exceptions.ResourceNotFoundException:
            return None
        return found


def _newest(points: list[dict[str, Any]], table: str, at: datetime | None) -> Any:
    """Return the newest complete copy of the table, made until `at` if given; None without any."""
    usable = [
        each
        for each in points
        if each["Status"] == "COMPLETED"
        and each["ResourceArn"].endswith(f":table/{table}")
        and (at is None or each["CreationDate"] <= at)
    ]
    return max(usable, key=lambda each: each["CreationDate"], default=None)


def _restoring(table: dict[str, Any] | None) -> bool:
    return bool(table and table.get("RestoreSummary", {}).get("RestoreInProgress"))


def _restored_to(table: dict[str, Any]) -> datetime | None:
    """Return the moment that a table was restored to, in whole seconds; None if never restored."""
    moment: datetime | float | None = table.get("RestoreSummary", {}).get("RestoreDateTime")
    if moment is None:
        return None
    # A client that the stores have configured returns times as numbers of seconds, not parsed.
    seconds = moment if isinstance(moment, int | float) else moment.timestamp()
    return datetime.fromtimestamp(int(seconds), UTC)


def _shape(table: dict[str, Any]) -> Any:
    indexes = table.get("GlobalSecondaryIndexes", [])
    return table["KeySchema"], {each["IndexName"]: each["KeySchema"] for each in indexes}


def _since(begun: datetime) -> timedelta:
    return datetime.now(UTC) - begun


def _span(span: timedelta) -> str:
    return f"{span.total_seconds():.0f} s"


def _moment(text: str) -> datetime:
    with suppress(ValueError):
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            return found.replace(microsecond=0)
    raise argparse.ArgumentTypeError("write it as 2026-11-22T10:00:00Z")


def _report(read: Read) -> int:
    for table, rows in read.rows.items():
        print(f"{rows} records of {table} can be read")
    for table, rows in read.unreadable.items():
        print(f"{rows} records of {table} CANNOT be read", file=sys.stderr)
    return 0 if read.good else 1


def command_line() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(prog="python -m operations.restore", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser(
        "drill", help="restore copies of all tables, read them, delete them"
    )
    command.add_argument("--keep", action="store_true", help="keep the copies")
    command = commands.add_parser("fetch", help=f"restore one table as {GOOD}TABLE")
    command.add_argument("table", choices=TABLES)
    command.add_argument("--at", type=_moment, help="the point in time (default: the latest)")
    command = commands.add_parser(
        "copy", help=f"restore all tables of another region as {GOOD}TABLE"
    )
    where = command.add_mutually_exclusive_group(required=True)
    where.add_argument("--from-region", metavar="REGION", help="where the tables are; needs --at")
    where.add_argument("--from-vault", metavar="VAULT", help="of AWS Backup; needs --role")
    command.add_argument("--role", metavar="ARN", help="the role that AWS Backup restores with")
    command.add_argument("--at", type=_moment, help="the point in time")
    command = commands.add_parser("row", help="copy one row of the fetched table back")
    command.add_argument("table", choices=TABLES)
    command.add_argument("id", help="the id of the record")
    command = commands.add_parser("swap", help="replace the running table by the fetched one")
    command.add_argument("table", choices=TABLES)
    command.add_argument(
        "--functions-are-stopped", action="store_true", required=True, help="confirm that they are"
    )
    return parser


def main(
    arguments: list[str] | None = None,
    restorer: Callable[[], Restorer] | None = None,
) -> int:
    """Run one command and return the exit status."""
    parser = command_line()
    chosen = parser.parse_args(arguments)
    if chosen.command == "copy" and not (chosen.at if chosen.from_region else chosen.role):
        parser.error("--from-region requires --at, and --from-vault requires --role")
    try:
        restore = (restorer or _of_this_deployment)()
        if chosen.command == "drill":
            return _report(restore.drill(keep=chosen.keep))
        if chosen.command == "fetch":
            return _report(restore.fetch(chosen.table, at=chosen.at))
        if chosen.command == "copy":
            return _report(_copy(restore, chosen))
        if chosen.command == "row":
            restore.row(chosen.table, chosen.id)
        else:
            restore.swap(chosen.table)
    except (Refused, SettingsError, CheckoutError, BotoCoreError, ClientError) as refused:
        print(refused, file=sys.stderr)
        return 1
    return 0


def _copy(restore: Restorer, chosen: argparse.Namespace) -> Read:
    if chosen.from_region:
        there = boto3.client("dynamodb", region_name=chosen.from_region, config=THOROUGH)
        return restore.copy_from_region(there, at=chosen.at)
    backups = boto3.client("backup", config=THOROUGH)
    return restore.copy_from_vault(backups, chosen.from_vault, chosen.role, at=chosen.at)


def _of_this_deployment() -> Restorer:
    settings = wiring.settings()
    place = dynamo.parse_database_url(settings.database_url)
    client = boto3.client("dynamodb", endpoint_url=place.endpoint_url, config=THOROUGH)
    vault = wiring.dashboard_services().vault
    return Restorer(client, place.prefix, vault, settings.details_kms_key)


if __name__ == "__main__":
    sys.exit(main())
