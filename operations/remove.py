"""Remove a stage and its data: `make remove STAGE=dev`.

Deleting a stack keeps its tables, its secret and its KMS key. This deletes them too, for a stage
that was deployed with DeletionProtection=false; the secret and the key can be brought back for
seven days.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Final

from operations.stages import Account, Refused, Stage, command, named, table_names

DAYS: Final = 7


def remove(account: Account, chosen: Stage) -> None:
    """Delete the stack, its tables, its secret and its key. Raises Refused."""
    if chosen.protected:
        raise Refused(
            f"The stage {chosen.name} has DeletionProtection=true; deploy it with false first."
        )
    outputs, tables = account.outputs(chosen.stack), account.client("dynamodb")
    for name in table_names(chosen.stack):
        if tables.describe_table(TableName=name)["Table"].get("DeletionProtectionEnabled"):
            raise Refused(f"The table {name} is protected; deploy the stage first.")
    formation = account.client("cloudformation")
    formation.update_termination_protection(
        StackName=chosen.stack, EnableTerminationProtection=False
    )
    formation.delete_stack(StackName=chosen.stack)
    formation.get_waiter("stack_delete_complete").wait(StackName=chosen.stack)
    print(f"deleted   the stack {chosen.stack}")
    for name in table_names(chosen.stack):
        with suppress(tables.exceptions.ResourceNotFoundException):
            tables.delete_table(TableName=name)
            print(f"deleted   the table {name}")
    account.client("secretsmanager").delete_secret(
        SecretId=outputs["EncryptionKeySecret"], RecoveryWindowInDays=DAYS
    )
    account.client("kms").schedule_key_deletion(
        KeyId=outputs["StackKeyArn"], PendingWindowInDays=DAYS
    )
    print(f"deleted   the secret and the KMS key, in {DAYS} days")


def main(arguments: list[str]) -> int:
    """Remove the stage that the arguments name; return the exit status."""
    return command(lambda: remove(Account(), named(arguments)[0]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
