"""Remove a stage and its data: `make remove STAGE=dev`.

When CloudFormation deletes a stack, the tables, the secret and the KMS key are kept. This command
deletes them too, and the stack of a test stage's wallets. The stage must have
DeletionProtection=false. The secret and the key can be recovered for seven days. After an
interruption, run the command again.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any, Final

from operations import pause
from operations.stages import Account, Refused, Stage, command, named, table_names

DAYS: Final = 7


def remove(account: Account, chosen: Stage) -> None:
    """Delete the stack, its tables, its secret and its key. Raises Refused."""
    if chosen.protected:
        raise Refused(
            f"The stage {chosen.name} has DeletionProtection=true. Deploy it with false first."
        )
    tables = account.client("dynamodb")
    found = account.stack(chosen.stack) or _deleted(account, chosen.stack)
    outputs = {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", ())}
    for name in table_names(chosen.stack):
        with suppress(tables.exceptions.ResourceNotFoundException):
            if tables.describe_table(TableName=name)["Table"].get("DeletionProtectionEnabled"):
                raise Refused(
                    f"The table {name} is protected from deletion. Deploy the stage first. If the "
                    f"table was restored: `aws dynamodb update-table --table-name {name} "
                    "--no-deletion-protection-enabled`."
                )
    if chosen.wallets:
        _delete_stack(account, chosen.wallets)
    _delete_stack(account, chosen.stack)
    for name in table_names(chosen.stack):
        with suppress(tables.exceptions.ResourceNotFoundException):
            tables.delete_table(TableName=name)
            print(f"deleted   the table {name}")
    if pause.stopped(account, chosen.stack) is not None:
        pause.forget(account, chosen.stack)
    if outputs:  # otherwise the stack was never created
        _delete_secret(account, outputs["EncryptionKeySecret"])
        _delete_key(account, outputs["StackKeyArn"])
        print(f"scheduled the deletion of the secret and the KMS key in {DAYS} days")


def _delete_stack(account: Account, name: str) -> None:
    stack = account.stack(name)
    if stack is not None:
        formation = account.client("cloudformation")
        if stack.get("EnableTerminationProtection"):
            formation.update_termination_protection(
                StackName=name, EnableTerminationProtection=False
            )
        formation.delete_stack(StackName=name)
        formation.get_waiter("stack_delete_complete").wait(StackName=stack["StackId"])
        print(f"deleted   the stack {name}")


def _deleted(account: Account, name: str) -> dict[str, Any]:
    """Return the stack of this name that was deleted most recently.

    CloudFormation shows a deleted stack for 90 days. Raises Refused if there is none.
    """
    formation = account.client("cloudformation")
    pages = formation.get_paginator("list_stacks").paginate(StackStatusFilter=["DELETE_COMPLETE"])
    gone = [each for page in pages for each in page["StackSummaries"] if each["StackName"] == name]
    if not gone:
        raise Refused(f"There is no stack {name} in {account.region}.")
    last = max(gone, key=lambda each: each["CreationTime"])
    found: dict[str, Any] = formation.describe_stacks(StackName=last["StackId"])["Stacks"][0]
    return found


def _delete_secret(account: Account, secret: str) -> None:
    """Delete the secret. AWS requires that its copies in other regions are removed first."""
    secrets = account.client("secretsmanager")
    found = secrets.describe_secret(SecretId=secret)
    regions = [each["Region"] for each in found.get("ReplicationStatus", ())]
    if regions:
        secrets.remove_regions_from_replication(SecretId=secret, RemoveReplicaRegions=regions)
    if "DeletedDate" not in found:
        secrets.delete_secret(SecretId=secret, RecoveryWindowInDays=DAYS)


def _delete_key(account: Account, key: str) -> None:
    """Schedule the deletion of the key and its replicas. AWS deletes the replicas first."""
    described = account.client("kms").describe_key(KeyId=key)["KeyMetadata"]
    replicas = described.get("MultiRegionConfiguration", {}).get("ReplicaKeys", ())
    for region in (*(each["Region"] for each in replicas), account.region):
        keys, name = account.client("kms", region), described["KeyId"]  # the same everywhere
        state = keys.describe_key(KeyId=name)["KeyMetadata"]["KeyState"]
        if state not in ("PendingDeletion", "PendingReplicaDeletion"):
            keys.schedule_key_deletion(KeyId=name, PendingWindowInDays=DAYS)


def main(arguments: list[str]) -> int:
    """Remove the stage that the arguments name; return the exit status."""
    return command(lambda: remove(Account(), named(arguments)[0]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
