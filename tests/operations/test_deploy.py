"""A deployment passes all parameters, protects the data, and knows of an undone release."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from operations import deploy, versions
from operations.stages import Account, Refused, Stage
from sandbox.template import template
from tests.operations.accounts import FakeAccount, a_stage, in_state, missing


@pytest.fixture
def deployments(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The parameters of each `sam deploy` that are not the stage's."""
    found: list[dict[str, str]] = []

    def sam(
        account: Account, chosen: Stage, *options: str, overrides: Mapping[str, str] | None = None
    ) -> None:
        found.append(dict(overrides or {}))

    monkeypatch.setattr(deploy, "sam", sam)
    return found


def test_a_first_deployment_protects_in_a_second_step(deployments: list[dict[str, str]]) -> None:
    account = FakeAccount()
    deploy.deploy(account, a_stage())
    assert deployments == [{"DeletionProtection": "false"}, {}]
    assert account.calls[-1] == "update_termination_protection"


def test_a_stack_whose_first_change_set_was_not_made_is_a_first_deployment(
    deployments: list[dict[str, str]],
) -> None:
    deploy.deploy(FakeAccount(describe_stacks=in_state("REVIEW_IN_PROGRESS")), a_stage())
    assert deployments == [{"DeletionProtection": "false"}, {}]


def test_an_upgrade_is_one_step(deployments: list[dict[str, str]]) -> None:
    deploy.deploy(FakeAccount(describe_stacks=in_state("CREATE_COMPLETE")), a_stage())
    assert deployments == [{}]


def test_a_stage_without_protection_is_one_step(deployments: list[dict[str, str]]) -> None:
    account = FakeAccount()
    deploy.deploy(account, a_stage(DeletionProtection="false"))
    assert deployments == [{}]
    assert not {"update_termination_protection", "set_stack_policy"} & set(account.calls)


def test_the_rest_of_a_failed_creation_is_deleted_first(deployments: list[dict[str, str]]) -> None:
    account = FakeAccount(describe_stacks=in_state("ROLLBACK_COMPLETE"))
    deploy.deploy(account, a_stage())
    assert "delete_stack" in account.calls
    assert len(deployments) == 2


def test_nothing_is_deployed_after_a_refusal(deployments: list[dict[str, str]]) -> None:
    with pytest.raises(Refused):
        deploy.deploy(FakeAccount(get_topic_attributes=missing()), a_stage())
    assert deployments == []


def test_after_an_undo_all_functions_get_new_versions_at_once(
    monkeypatch: pytest.MonkeyPatch, deployments: list[dict[str, str]]
) -> None:
    monkeypatch.setattr(versions, "moved", lambda account, stack: {"api": "3"})
    deploy.deploy(FakeAccount(describe_stacks=in_state("UPDATE_COMPLETE")), a_stage())
    [overrides] = deployments
    assert overrides["TrafficShift"] == "AllAtOnce"
    assert overrides["Revision"] not in ("", deploy.revision(a_stage()))


def test_no_update_may_replace_or_delete_what_holds_the_data(
    monkeypatch: pytest.MonkeyPatch, deployments: list[dict[str, str]]
) -> None:
    account, said = FakeAccount(describe_stacks=in_state("UPDATE_COMPLETE")), []
    client = account.client("cloudformation")
    client.set_stack_policy = lambda **request: said.append(request)
    monkeypatch.setattr(account, "client", lambda *names: client)
    deploy.deploy(account, a_stage())
    [request] = said
    allow, deny = json.loads(request["StackPolicyBody"])["Statement"]
    assert (allow["Effect"], allow["Action"], allow["Resource"]) == ("Allow", "Update:*", "*")
    assert (deny["Effect"], deny["Action"]) == ("Deny", ["Update:Replace", "Update:Delete"])
    assert sorted(deny["Resource"]) == [
        "LogicalResourceId/ApiKeysTable",
        "LogicalResourceId/CheckoutSessionsTable",
        "LogicalResourceId/EncryptionKey",
        "LogicalResourceId/IdempotencyKeysTable",
        "LogicalResourceId/MerchantsTable",
        "LogicalResourceId/StackKey",
        "LogicalResourceId/WebhookEventsTable",
    ]


# --- a test stage ---


def test_a_test_stages_wallets_are_deployed_after_it_with_what_they_need_of_it(
    monkeypatch: pytest.MonkeyPatch, deployments: list[dict[str, str]]
) -> None:
    stage = in_state("UPDATE_COMPLETE")
    outputs = {"BaseUrl": "https://test.example", "HttpApi": "a1", "Layers": "arn:one,arn:two"}
    stage["Stacks"][0]["Outputs"] = [
        {"OutputKey": name, "OutputValue": value} for name, value in outputs.items()
    ]
    begun: list[tuple[list[str], dict[str, str]]] = []

    def begin(command: list[str], **options: Any) -> SimpleNamespace:
        begun.append((command, parameters_of(command)))
        return SimpleNamespace(wait=lambda: status)

    monkeypatch.setattr("subprocess.Popen", begin)
    account = FakeAccount(describe_stacks=stage)
    status = 0
    deploy.deploy(account, a_stage())
    assert begun == []
    deploy.deploy(account, a_stage(TestWallets="true", Arch="x86_64"))
    [(command, parameters)] = begun
    assert parameters == outputs | {"Arch": "x86_64", "PermissionsBoundary": ""}
    assert command[command.index("--stack-name") + 1] == "checkout-wallets"
    assert command[command.index("--template-file") + 1].endswith("test-wallets/template.yaml")
    status = 1
    with pytest.raises(Refused, match="deployment failed"):
        deploy.deploy(account, a_stage(TestWallets="true"))


def test_an_upgrade_moves_the_wallets_out_of_the_stages_own_stack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They were in it up to version 0.1.0."""
    stage = in_state("UPDATE_COMPLETE")
    stage["Stacks"][0]["Outputs"] = [
        {"OutputKey": name, "OutputValue": name} for name in ("BaseUrl", "HttpApi", "Layers")
    ]
    before = {"id": {"S": "network"}, "data": {"B": b"wallets"}}
    tables = {"TestWalletsTable": "checkout-test_wallets"}
    written: list[dict[str, Any]] = []

    class Before(FakeAccount):
        def resources(self, stack: str, kind: str) -> dict[str, str]:
            return tables if kind == "AWS::DynamoDB::Table" else {}

        def client(self, service: str, region: str | None = None) -> Any:
            if service != "dynamodb":
                return super().client(service, region)
            tables_of = super().client(service, region)
            tables_of.put_item = lambda **request: written.append(request)
            return tables_of

    account = Before(describe_stacks=stage, scan={"Items": [before]})
    monkeypatch.setattr("subprocess.Popen", lambda *_, **__: SimpleNamespace(wait=lambda: 0))
    deploy.deploy(account, a_stage(TestWallets="true"))
    assert written == [{"TableName": "checkout-wallets", "Item": before}]
    tables.clear()
    deploy.deploy(account, a_stage(TestWallets="true"))
    assert len(written) == 1, "they have a stack of their own by now"


# --- what SAM is given ---


def test_the_revision_changes_with_each_parameter_and_with_nothing_else() -> None:
    one = deploy.revision(a_stage(WalletProviders="none", CompletionPolicy="instructed"))
    again = deploy.revision(a_stage(CompletionPolicy="instructed", WalletProviders="none"))
    assert one == again != deploy.revision(a_stage(CompletionPolicy="instructed"))
    assert re.fullmatch("[0-9a-f]{12}", one)


def parameters_of(command: list[str]) -> dict[str, str]:
    """Return the parameters in the file of a `sam deploy`, none with a blank or a quote."""
    place = command[command.index("--parameter-overrides") + 1].removeprefix("file://")
    written = yaml.safe_load(Path(place).read_text("utf-8"))
    return {name: value.replace("\\", "").replace('"', "") for name, value in written.items()}


def parameters_for_sam(monkeypatch: pytest.MonkeyPatch, chosen: Stage) -> dict[str, str]:
    """Return the parameters of one `sam deploy`, of which none has a blank or a quote.

    tests/artifacts/test_deployed_parameters.py has SAM CLI itself read them.
    """
    found: dict[str, str] = {}

    def begin(command: list[str], **options: Any) -> SimpleNamespace:
        found.update(parameters_of(command))
        return SimpleNamespace(wait=lambda: 0)

    monkeypatch.setattr("subprocess.Popen", begin)
    deploy.sam(FakeAccount(), chosen, overrides={"DeletionProtection": "false"})
    return found


def test_every_parameter_is_passed_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    given = parameters_for_sam(monkeypatch, a_stage(Arch="x86_64", RequestsThrottle="1,2"))
    assert given.keys() == template()["Parameters"].keys()
    assert (given["Arch"], given["RequestsThrottle"]) == ("x86_64", "1,2")
    assert (given["DeletionProtection"], given["EdgeProof"]) == ("false", "")
    assert re.fullmatch("[0-9a-f]{12}", given["Revision"])


def test_a_line_that_was_removed_restores_the_default_and_an_empty_value_empties(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = parameters_for_sam(monkeypatch, a_stage(TrafficShift="AllAtOnce"))
    after = parameters_for_sam(monkeypatch, a_stage(AlarmTopicArn=""))
    assert before["TrafficShift"] == "AllAtOnce"
    assert after["TrafficShift"] == "Canary10Percent5Minutes"
    assert before["AlarmTopicArn"].startswith("arn:aws:sns:")
    assert after["AlarmTopicArn"] == ""
