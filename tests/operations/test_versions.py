"""A release is undone for all functions together, and the next deployment notices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from operations import versions
from operations.stages import Account, Refused
from tests.operations.accounts import REGION, a_stage, code, in_state

NAMES = ("checkout-api", "checkout-pay")


class Deployed(Account):
    """Two functions with aliases in moto, and what CloudFormation says of them."""

    def __init__(self) -> None:
        self.region = REGION
        self.status = "UPDATE_COMPLETE"
        self.template: dict[str, str] = {}
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        self._session = boto3.Session(region_name=REGION, **keys)
        self.functions = self.client("lambda")
        trust = '{"Version": "2012-10-17", "Statement": []}'
        made = self.client("iam").create_role(RoleName="role", AssumeRolePolicyDocument=trust)
        for name in NAMES:
            self.functions.create_function(
                FunctionName=name,
                Runtime="python3.13",
                Role=made["Role"]["Arn"],
                Handler="app.handler",
                Code={"ZipFile": code("0")},
            )

    def stack(self, name: str) -> dict[str, Any] | None:
        found: dict[str, Any] = in_state(self.status)["Stacks"][0]
        return found

    def resources(self, stack: str, kind: str) -> dict[str, str]:
        if kind == "AWS::Lambda::Function":
            return {name: name for name in NAMES}
        return {
            name: f"arn:aws:lambda:x:1:function:{name}:{v}" for name, v in self.template.items()
        }

    def release(self, text: str, *names: str) -> None:
        """Publish a version of these functions and move their aliases, as CloudFormation does."""
        with versions.remembered(self, "checkout"):
            for name in names:
                self.functions.update_function_code(FunctionName=name, ZipFile=code(text))
                version = self.functions.publish_version(FunctionName=name)["Version"]
                self.point(name, version)
                self.template[name] = version

    def point(self, name: str, version: str) -> None:
        described = {"FunctionName": name, "Name": "live", "FunctionVersion": version}
        try:
            self.functions.update_alias(**described)
        except self.functions.exceptions.ResourceNotFoundException:
            self.functions.create_alias(**described)

    def live(self) -> list[str]:
        found = [self.functions.get_alias(FunctionName=name, Name="live") for name in NAMES]
        return [each["FunctionVersion"] for each in found]


@pytest.fixture
def account() -> Iterator[Deployed]:
    with mock_aws():
        yield Deployed()


def test_an_undo_moves_every_function_back_to_the_release_before(account: Deployed) -> None:
    account.release("1", *NAMES)
    account.release("2", "checkout-api")
    account.release("3", *NAMES)
    assert account.live() == ["3", "2"]
    versions.undo(account, a_stage())
    assert account.live() == ["2", "1"]
    with pytest.raises(Refused, match="nothing to undo"):
        versions.undo(account, a_stage())


def test_an_undo_that_was_interrupted_is_finished_by_the_next(account: Deployed) -> None:
    account.release("1", *NAMES)
    account.release("2", *NAMES)
    account.point("checkout-api", "1")
    versions.undo(account, a_stage())
    assert account.live() == ["1", "1"]


def test_a_deployment_knows_of_aliases_that_are_not_where_the_stack_has_put_them(
    account: Deployed,
) -> None:
    account.release("1", *NAMES)
    account.release("2", *NAMES)
    assert versions.moved(account, "checkout") == {}
    versions.undo(account, a_stage())
    assert versions.moved(account, "checkout") == dict.fromkeys(NAMES, "1")
    account.release("3", *NAMES)
    assert versions.moved(account, "checkout") == {}
    versions.undo(account, a_stage())
    assert account.live() == ["1", "1"]  # not what was undone


def test_a_deployment_that_failed_or_changed_nothing_is_not_the_last_release(
    account: Deployed,
) -> None:
    account.release("1", *NAMES)
    account.release("2", *NAMES)
    account.release("nothing")
    with pytest.raises(Refused), versions.remembered(account, "checkout"):
        raise Refused("The deployment failed.")
    versions.undo(account, a_stage())
    assert account.live() == ["1", "1"]


def test_a_deployment_of_which_this_process_did_not_see_the_end_can_be_undone(
    account: Deployed,
) -> None:
    account.release("1", *NAMES)
    account.release("2", *NAMES)
    with pytest.raises(KeyboardInterrupt), versions.remembered(account, "checkout"):
        raise KeyboardInterrupt
    for name in NAMES:  # CloudFormation goes on
        account.functions.update_function_code(FunctionName=name, ZipFile=code("3"))
        version = account.functions.publish_version(FunctionName=name)["Version"]
        account.point(name, version)
    versions.undo(account, a_stage())
    assert account.live() == ["2", "2"]


def test_nothing_is_undone_during_an_update_or_without_a_second_release(account: Deployed) -> None:
    account.release("1", *NAMES)
    with pytest.raises(Refused, match="nothing to undo"):
        versions.undo(account, a_stage())
    account.status = "UPDATE_IN_PROGRESS"
    with pytest.raises(Refused, match="cancel-update-stack --stack-name checkout"):
        versions.undo(account, a_stage())


def test_old_versions_are_deleted_and_the_last_five_and_those_in_use_are_not(
    account: Deployed,
) -> None:
    for number in range(1, 8):
        account.release(str(number), "checkout-api")
    account.point("checkout-api", "1")
    versions.prune(account, "checkout")
    listed = account.functions.list_versions_by_function(FunctionName="checkout-api")["Versions"]
    assert [each["Version"] for each in listed] == ["$LATEST", "1", "3", "4", "5", "6", "7"]
