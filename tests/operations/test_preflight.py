"""A deployment that would fail in its middle is refused before it begins."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from operations import deploy, preflight, remove, stages
from operations.stages import Account, Refused, Stage

REGION = "eu-central-1"
TOPIC = f"arn:aws:sns:{REGION}:123456789012:alarms"
CERTIFICATE = f"arn:aws:acm:{REGION}:123456789012:certificate/abc"
ACL = "arn:aws:wafv2:us-east-1:123456789012:global/webacl/checkout-edge/0a1b"


def missing() -> ClientError:
    """Return any service's answer for what is not there."""
    error = {"Error": {"Code": "NotFound", "Message": "does not exist"}}
    return ClientError(error, "Describe")


class FakeAccount(Account):
    """An account that answers from `answers`, by operation; an exception is raised."""

    def __init__(self, region: str = REGION, **answers: Any) -> None:
        self.region = region
        self.calls: list[str] = []
        self._answers = {
            "get_caller_identity": {"Account": "123456789012"},
            "describe_stacks": missing(),
            "describe_table": missing(),
            "describe_log_groups": {"logGroups": []},
            "describe_alarms": {"MetricAlarms": []},
            "get_account_settings": limits(1000),
            "describe_limits": {"TableMaxWriteCapacityUnits": 40_000},
            "get_topic_attributes": {"Attributes": {"SubscriptionsConfirmed": "1"}},
            "describe_certificate": {
                "Certificate": {"Status": "ISSUED", "DomainName": "a.example"}
            },
            "get_web_acl": {},
            **answers,
        }

    def client(self, service: str, region: str | None = None) -> Any:
        names = (
            "ClientError ResourceNotFoundException NotFoundException WAFNonexistentItemException"
        )
        errors = SimpleNamespace(**dict.fromkeys(names.split(), ClientError))
        return SimpleNamespace(exceptions=errors, **dict(self._operations(service)))

    def _operations(self, service: str) -> Any:
        for name, answer in self._answers.items():
            yield name, self._operation(name, answer)
        for name in ("delete_stack", "update_termination_protection", "get_waiter", "delete_table"):
            yield name, self._operation(name, SimpleNamespace(wait=lambda **request: None))
        for name in ("delete_secret", "schedule_key_deletion"):
            yield name, self._operation(name, {})

    def _operation(self, name: str, answer: Any) -> Callable[..., Any]:
        def call(*positional: Any, **request: Any) -> Any:
            self.calls.append(name)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


def certificate(status: str) -> dict[str, Any]:
    return {"Certificate": {"Status": status, "DomainName": "a.example"}}


def limits(concurrency: int) -> dict[str, Any]:
    executions = ("ConcurrentExecutions", "UnreservedConcurrentExecutions")
    return {"AccountLimit": dict.fromkeys(executions, concurrency)}


def in_state(status: str) -> dict[str, Any]:
    outputs = {"EncryptionKeySecret": "arn:secret", "StackKeyArn": "arn:key"}
    listed = [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]
    return {"Stacks": [{"StackStatus": status, "Outputs": listed}]}


def a_stage(**chosen: str) -> Stage:
    return Stage("default", "checkout", {"AlarmTopicArn": TOPIC, **chosen})


def refusals(account: Account, **chosen: str) -> list[str]:
    found = preflight.findings(account, a_stage(**chosen))
    return [each.text for each in found if each.refuses]


def warnings(account: Account, **chosen: str) -> list[str]:
    found = preflight.findings(account, a_stage(**chosen))
    return [each.text for each in found if not each.refuses]


def test_an_empty_account_of_some_age_is_ready(capsys: pytest.CaptureFixture[str]) -> None:
    preflight.run(FakeAccount(), a_stage())
    assert capsys.readouterr().out.splitlines() == [
        f"account   123456789012, {REGION}",
        "stage     default: the stack checkout",
        "preflight ok",
    ]


@pytest.mark.parametrize(
    ("answers", "chosen", "words"),
    [
        ({"describe_stacks": in_state("UPDATE_ROLLBACK_FAILED")}, {}, "continue-update-rollback"),
        ({"describe_stacks": in_state("ROLLBACK_FAILED")}, {}, "delete-stack"),
        ({"describe_stacks": in_state("UPDATE_IN_PROGRESS")}, {}, "wait"),
        ({"describe_table": {"Table": {}}}, {}, "checkout-merchants exists already"),
        (
            {"describe_log_groups": {"logGroups": [{"logGroupName": "/checkout/api"}]}},
            {},
            "log group /checkout/api exists",
        ),
        ({"get_account_settings": limits(10)}, {"PayConcurrency": "5"}, "reserve fewer"),
        ({"get_account_settings": limits(10)}, {"SenderConcurrency": "8"}, "none for customers"),
        ({"get_topic_attributes": missing()}, {}, "alarm topic"),
        ({}, {"AlarmTopicArn": TOPIC.replace(REGION, "us-west-2")}, f"not in {REGION}"),
        (
            {"get_topic_attributes": {"Attributes": {"KmsMasterKeyId": "alias/aws/sns"}}},
            {},
            "alias/aws/sns",
        ),
        ({}, {"DomainName": "a.example"}, "requires CertificateArn"),
        (
            {"describe_certificate": missing()},
            {"DomainName": "a.example", "CertificateArn": CERTIFICATE},
            "does not exist",
        ),
        (
            {"describe_certificate": certificate("PENDING_VALIDATION")},
            {"DomainName": "a.example", "CertificateArn": CERTIFICATE},
            "not ISSUED",
        ),
        ({}, {"DomainName": "b.test", "CertificateArn": CERTIFICATE}, "not for b.test"),
        (
            {},
            {
                "DomainName": "a.example",
                "CertificateArn": CERTIFICATE,
                "Edge": "true",
                "EdgeWebAclArn": ACL,
            },
            "must be in us-east-1",
        ),
        ({}, {"Edge": "true"}, "requires EdgeWebAclArn"),
        ({"get_web_acl": missing()}, {"Edge": "true", "EdgeWebAclArn": ACL}, "web ACL"),
        (
            {
                "describe_stacks": in_state("UPDATE_COMPLETE"),
                "describe_alarms": {"MetricAlarms": [{"StateValue": "ALARM"}]},
            },
            {},
            "TrafficShift=AllAtOnce",
        ),
    ],
)
def test_what_would_fail_later_is_refused(
    answers: dict[str, Any], chosen: dict[str, str], words: str
) -> None:
    found = refusals(FakeAccount(**answers), **chosen)
    assert found
    assert any(words in each for each in found), found


@pytest.mark.parametrize(
    ("answers", "chosen"),
    [
        ({"get_account_settings": limits(10)}, {}),  # the defaults suit a new account
        ({}, {"PayConcurrency": "200", "SweepConcurrency": "2"}),
        ({"describe_stacks": in_state("ROLLBACK_COMPLETE")}, {}),  # `deploy` deletes it
        ({"describe_stacks": in_state("UPDATE_COMPLETE"), "describe_table": {"Table": {}}}, {}),
        ({}, {"DomainName": "a.example", "CertificateArn": CERTIFICATE}),
        ({}, {"Edge": "true", "EdgeWebAclArn": ACL}),
        (
            {
                "describe_stacks": in_state("UPDATE_COMPLETE"),
                "describe_alarms": {"MetricAlarms": [{"StateValue": "ALARM"}]},
            },
            {"TrafficShift": "AllAtOnce"},
        ),
    ],
)
def test_what_would_succeed_is_not_refused(answers: dict[str, Any], chosen: dict[str, str]) -> None:
    assert refusals(FakeAccount(**answers), **chosen) == []


def test_a_wildcard_certificate_and_its_other_names_count() -> None:
    names = {"DomainName": "example.com", "SubjectAlternativeNames": ["*.example.com"]}
    account = FakeAccount(describe_certificate={"Certificate": {"Status": "ISSUED", **names}})
    assert refusals(account, DomainName="pay.example.com", CertificateArn=CERTIFICATE) == []


@pytest.mark.parametrize(
    ("answers", "chosen", "words"),
    [
        ({"get_account_settings": limits(10)}, {}, "about 1 checkouts a second"),
        ({}, {"AlarmTopicArn": ""}, "nobody is told"),
        ({"get_topic_attributes": {"Attributes": {}}}, {}, "no confirmed subscription"),
        ({}, {"CreationsThrottle": "2000,4000"}, "60000 write units"),
    ],
)
def test_what_is_only_unwise_is_told(
    answers: dict[str, Any], chosen: dict[str, str], words: str
) -> None:
    [found] = warnings(FakeAccount(**answers), **chosen)
    assert words in found


def test_a_refusal_ends_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    account = FakeAccount(describe_table={"Table": {}})
    monkeypatch.setattr(preflight, "Account", lambda: account)
    assert preflight.main(["default"]) == 1
    said = capsys.readouterr()
    assert said.out.count("refused") == 5
    assert said.err == "5 of these would fail the deployment.\n"


def test_without_credentials_there_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    account = FakeAccount(get_caller_identity=NoCredentialsError())
    monkeypatch.setattr(preflight, "Account", lambda: account)
    assert preflight.main(["default"]) == 1
    assert capsys.readouterr().err == "Unable to locate credentials\n"


# --- the region, and the stages ---


@pytest.mark.parametrize("name", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_either_variable_names_the_region(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for each in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(each, raising=False)
    for each in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(each, "test")
    monkeypatch.setenv(name, REGION)
    account = Account()
    assert account.region == REGION
    assert account.client("sts").meta.region_name == REGION


def test_without_a_region_there_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for each in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    for command in (preflight.main, deploy.main, remove.main):
        assert command(["default"]) == 1
        said = capsys.readouterr().err
        assert said == "No AWS region: set AWS_REGION, for example to eu-central-1.\n"


def test_a_stage_has_its_choices_and_the_templates_defaults(tmp_path: Path) -> None:
    assert stages.stage("default").parameters["SenderConcurrency"] == "5"
    dev = stages.stage("dev")
    assert (dev.stack, dev.protected) == ("checkout-dev", False)
    guided = tmp_path / "samconfig.toml"  # as `sam deploy --guided` writes it
    guided.write_text(
        '[x.global.parameters]\nstack_name = "shop"\n[x.deploy.parameters]\n'
        'parameter_overrides = "Arch=\\"x86_64\\" BaseUrl=\\"\\""\n'
    )
    chosen = stages.stage("x", guided)
    assert (chosen.stack, chosen.chosen) == ("shop", {"Arch": "x86_64"})


def test_an_unknown_stage_or_parameter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no stage 'production'"):
        stages.stage("production")
    config = tmp_path / "samconfig.toml"
    config.write_text(
        '[x.global.parameters]\nstack_name = "shop"\n'
        '[x.deploy.parameters]\nparameter_overrides = ["Archh=arm64"]\n'
    )
    with pytest.raises(Refused, match="no parameter 'Archh'"):
        stages.stage("x", config)


# --- deploy and remove ---


@pytest.fixture
def deployments(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The parameters that each `sam deploy` adds to the stage's."""
    found: list[dict[str, str]] = []

    def sam(
        account: Account, chosen: Stage, *options: str, overrides: dict[str, str] | None = None
    ) -> None:
        found.append(overrides or {})

    monkeypatch.setattr(deploy, "sam", sam)
    return found


def test_a_first_deployment_protects_in_a_second_step(deployments: list[dict[str, str]]) -> None:
    account = FakeAccount()
    deploy.deploy(account, a_stage())
    assert deployments == [{"DeletionProtection": "false"}, {"DeletionProtection": "true"}]
    assert account.calls[-1] == "update_termination_protection"


def test_an_upgrade_is_one_step(deployments: list[dict[str, str]]) -> None:
    deploy.deploy(FakeAccount(describe_stacks=in_state("CREATE_COMPLETE")), a_stage())
    assert deployments == [{"DeletionProtection": "true"}]


def test_a_stage_without_protection_is_one_step(deployments: list[dict[str, str]]) -> None:
    account = FakeAccount()
    deploy.deploy(account, a_stage(DeletionProtection="false"))
    assert deployments == [{"DeletionProtection": "false"}]
    assert "update_termination_protection" not in account.calls


def test_the_rest_of_a_failed_creation_is_deleted_first(deployments: list[dict[str, str]]) -> None:
    account = FakeAccount(describe_stacks=in_state("ROLLBACK_COMPLETE"))
    deploy.deploy(account, a_stage())
    assert "delete_stack" in account.calls
    assert len(deployments) == 2


def test_nothing_is_deployed_after_a_refusal(deployments: list[dict[str, str]]) -> None:
    with pytest.raises(Refused):
        deploy.deploy(FakeAccount(get_topic_attributes=missing()), a_stage())
    assert deployments == []


def test_a_protected_stage_is_not_removed() -> None:
    account = FakeAccount(describe_stacks=in_state("CREATE_COMPLETE"))
    with pytest.raises(Refused, match="DeletionProtection=true"):
        remove.remove(account, a_stage())
    assert account.calls == []


def test_a_stage_is_removed_with_its_tables_its_secret_and_its_key() -> None:
    account = FakeAccount(describe_stacks=in_state("CREATE_COMPLETE"), describe_table={"Table": {}})
    remove.remove(account, a_stage(DeletionProtection="false"))
    assert account.calls.count("delete_table") == 5
    assert account.calls[-2:] == ["delete_secret", "schedule_key_deletion"]


def test_a_table_that_is_still_protected_stops_the_removal_before_it_begins() -> None:
    account = FakeAccount(
        describe_stacks=in_state("CREATE_COMPLETE"),
        describe_table={"Table": {"DeletionProtectionEnabled": True}},
    )
    with pytest.raises(Refused, match="is protected"):
        remove.remove(account, a_stage(DeletionProtection="false"))
    assert "delete_stack" not in account.calls


def test_a_stage_that_is_not_there_is_not_removed() -> None:
    with pytest.raises(Refused, match="no stack checkout"):
        remove.remove(FakeAccount(), a_stage(DeletionProtection="false"))


def test_the_revision_changes_with_each_parameter_and_with_nothing_else() -> None:
    one = deploy.revision(a_stage(WalletProviders="none", CompletionPolicy="instructed"))
    again = deploy.revision(a_stage(CompletionPolicy="instructed", WalletProviders="none"))
    assert one == again != deploy.revision(a_stage(CompletionPolicy="instructed"))
    assert re.fullmatch("[0-9a-f]{12}", one)


def test_sam_gets_the_stages_parameters_and_the_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[list[str]] = []

    def done(command: list[str], **options: Any) -> SimpleNamespace:
        run.append(command)
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr("subprocess.run", done)
    chosen = a_stage(Arch="x86_64")
    deploy.sam(FakeAccount(), chosen, overrides={"DeletionProtection": "false"})
    [command] = run
    parameters = command[command.index("--parameter-overrides") + 1 :]
    assert {"Arch=x86_64", "DeletionProtection=false", f"Revision={deploy.revision(chosen)}"} <= {
        *parameters
    }
