"""A stage is removed with its data, also if the command was interrupted after any of its steps."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from operations import remove
from operations.stages import Account, Refused, Stage
from sandbox.cloud import table_definitions
from tests.operations.accounts import FakeAccount, a_stage, in_state

HERE, THERE = "eu-central-1", "eu-west-1"


class Formation:
    """A stack of CloudFormation; after its deletion only its id leads to it."""

    exceptions = SimpleNamespace(ClientError=ClientError)

    def __init__(self, account: Deployed, outputs: dict[str, str]) -> None:
        self.account, self.status, self.protected = account, "UPDATE_COMPLETE", True
        self.outputs = [{"OutputKey": key, "OutputValue": v} for key, v in outputs.items()]
        self.beside: list[str] = []  # other stacks
        self.deleted: list[str] = []

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        if StackName in self.beside:
            return {"Stacks": [{"StackStatus": "CREATE_COMPLETE", "StackId": "arn:beside"}]}
        gone = self.status == "DELETE_COMPLETE"
        if StackName != "arn:stack" and (gone or StackName != "checkout"):
            error = {"Code": "ValidationError", "Message": f"{StackName} does not exist"}
            raise ClientError({"Error": error}, "DescribeStacks")
        described = {"StackStatus": self.status, "Outputs": self.outputs, "StackId": "arn:stack"}
        return {"Stacks": [{**described, "EnableTerminationProtection": self.protected}]}

    def update_termination_protection(self, **request: Any) -> None:
        self.protected = request["EnableTerminationProtection"]
        self.account.changed()

    def delete_stack(self, StackName: str) -> None:
        self.deleted.append(StackName)
        if StackName in self.beside:
            self.beside.remove(StackName)
        else:
            assert not self.protected
            self.status = "DELETE_COMPLETE"
        self.account.changed()

    def get_waiter(self, name: str) -> Any:
        return SimpleNamespace(wait=lambda **request: None)

    def get_paginator(self, name: str) -> Any:
        gone = {"StackName": "checkout", "StackId": "arn:stack", "CreationTime": 2}
        older = {"StackName": "checkout", "StackId": "arn:older", "CreationTime": 1}
        other = {"StackName": "checkout-dev", "StackId": "arn:other", "CreationTime": 3}
        listed = [older, gone, other] if self.status == "DELETE_COMPLETE" else [other]
        return SimpleNamespace(paginate=lambda **request: [{"StackSummaries": listed}])


class Deployed(Account):
    """A stack with five tables, a secret and a key with copies in another region, in moto."""

    def __init__(self) -> None:
        self.region = HERE
        self.changes = 0
        self.fail_after = -1
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        self._session = boto3.Session(region_name=HERE, **keys)
        self._session.events.register("after-call.*.*", self._called)
        for definition in table_definitions("checkout"):
            self.client("dynamodb").create_table(**definition)
        key = self.client("kms").create_key(MultiRegion=True)["KeyMetadata"]
        self.client("kms").replicate_key(KeyId=key["KeyId"], ReplicaRegion=THERE)
        self.key, self.key_id = key["Arn"], key["KeyId"]
        self.secret = self.client("secretsmanager").create_secret(
            Name="key", SecretString="11" * 32, AddReplicaRegions=[{"Region": THERE}]
        )["ARN"]
        self.client("ssm").put_parameter(Name="/checkout/stopped", Type="String", Value="{}")
        outputs = {"EncryptionKeySecret": self.secret, "StackKeyArn": self.key}
        self.formation = Formation(self, outputs)
        self.changes = 0

    def client(self, service: str, region: str | None = None) -> Any:
        return self.formation if service == "cloudformation" else super().client(service, region)

    def _called(self, model: Any, **rest: Any) -> None:
        if model.name.startswith(("Delete", "Remove", "Schedule")):
            self.changed()

    def changed(self) -> None:
        """Count a change; the process is interrupted after some of them."""
        self.changes += 1
        if self.changes == self.fail_after:
            raise KeyboardInterrupt

    def left(self) -> list[str]:
        """Return what is left of the stage and would cost money."""
        found = list(self.client("dynamodb").list_tables()["TableNames"])
        if self.stack("checkout"):
            found.append("stack")
        for region in (HERE, THERE):
            try:
                secret = self.client("secretsmanager", region).describe_secret(SecretId="key")
                found += [] if "DeletedDate" in secret else [f"secret in {region}"]
            except ClientError:
                pass
            key = self.client("kms", region).describe_key(KeyId=self.key_id)["KeyMetadata"]
            if key["KeyState"] not in ("PendingDeletion", "PendingReplicaDeletion"):
                found.append(f"key in {region}")
        try:
            self.client("ssm").get_parameter(Name="/checkout/stopped")
            found.append("parameter")
        except ClientError:
            pass
        return found


@pytest.fixture
def account() -> Iterator[Deployed]:
    with mock_aws():
        yield Deployed()


def take_away(account: Account) -> None:
    remove.remove(account, a_stage(DeletionProtection="false"))


def test_a_stage_is_removed_with_its_tables_its_secret_and_its_key(account: Deployed) -> None:
    assert len(account.left()) == 5 + 1 + 2 + 2 + 1
    take_away(account)
    assert account.left() == []
    take_away(account)  # once too often


@pytest.mark.parametrize("step", range(1, 13))
def test_a_removal_that_was_interrupted_is_finished_by_the_next(
    account: Deployed, step: int
) -> None:
    account.fail_after = step
    with pytest.raises(KeyboardInterrupt):
        take_away(account)
    assert account.changes == step
    account.fail_after = -1
    take_away(account)
    assert account.left() == []


def test_the_wallets_of_a_test_stage_are_removed_before_it(account: Deployed) -> None:
    """Their routes are of its HTTP API."""
    account.formation.beside = ["checkout-wallets", "checkout-edge"]
    chosen = a_stage(DeletionProtection="false", TestWallets="true")
    remove.remove(account, chosen)
    assert account.formation.deleted == ["checkout-wallets", "checkout"]
    assert account.left() == []
    remove.remove(account, chosen)  # once too often
    assert account.formation.deleted == ["checkout-wallets", "checkout"]


def test_a_protected_stage_is_not_removed() -> None:
    account = FakeAccount(describe_stacks=in_state("CREATE_COMPLETE"))
    with pytest.raises(Refused, match="DeletionProtection=true"):
        remove.remove(account, a_stage())
    assert account.calls == []


def test_a_table_that_is_still_protected_stops_the_removal_before_it_begins() -> None:
    account = FakeAccount(
        describe_stacks=in_state("CREATE_COMPLETE"),
        describe_table={"Table": {"DeletionProtectionEnabled": True}},
    )
    with pytest.raises(Refused, match="is protected"):
        take_away(account)
    assert "delete_stack" not in account.calls


def test_a_stage_that_was_never_there_is_not_removed(account: Deployed) -> None:
    elsewhere = Stage("other", "other", {"DeletionProtection": "false"})
    with pytest.raises(Refused, match="no stack other"):
        remove.remove(account, elsewhere)
    assert account.changes == 0
