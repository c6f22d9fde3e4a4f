"""A deployment that would fail in its middle is refused before it begins."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError

from operations import preflight, versions
from operations.stages import Account
from tests.operations.accounts import REGION, TOPIC, FakeAccount, a_stage, in_state, limits, missing

CERTIFICATE = f"arn:aws:acm:{REGION}:123456789012:certificate/abc"
SENDER = {"ReceiptSender": "shop@a.example"}


def certificate(status: str) -> dict[str, Any]:
    return {"Certificate": {"Status": status, "DomainName": "a.example"}}


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
        ({"describe_table": {"Table": {}}}, {}, "“Another region” in docs/operating.md"),
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
                "CertificateArn": CERTIFICATE.replace(REGION, "us-east-1"),
            },
            f"must be in {REGION}",
        ),
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
        ({}, SENDER),
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
        ({}, {"AlarmTopicArn": ""}, "alarms notify nobody"),
        ({"get_topic_attributes": {"Attributes": {}}}, {}, "no confirmed subscription"),
        ({}, {"CreationsThrottle": "2000,4000"}, "60000 write units"),
        (
            {"get_account": {"ProductionAccessEnabled": False, "SendingEnabled": True}},
            SENDER,
            "in its sandbox",
        ),
        (
            {"get_account": {"ProductionAccessEnabled": True, "SendingEnabled": False}},
            SENDER,
            "has suspended sending",
        ),
        ({"get_email_identity": missing()}, SENDER, "shop@a.example is not verified"),
        (
            {"get_email_identity": {"VerifiedForSendingStatus": False}},
            SENDER,
            "shop@a.example is not verified",
        ),
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
    assert said.err == "The deployment would fail: fix what is refused above (5).\n"


def test_without_credentials_there_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    account = FakeAccount(get_caller_identity=NoCredentialsError())
    monkeypatch.setattr(preflight, "Account", lambda: account)
    assert preflight.main(["default"]) == 1
    assert capsys.readouterr().err == "Unable to locate credentials\n"


# --- a stack that is there ---


def deployed_with(**parameters: str) -> dict[str, Any]:
    found = in_state("UPDATE_COMPLETE")
    listed = [{"ParameterKey": k, "ParameterValue": v} for k, v in parameters.items()]
    found["Stacks"][0]["Parameters"] = listed
    return found


def test_the_parameters_that_change_are_told_and_no_secret(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = deployed_with(
        TrafficShift="AllAtOnce",
        AlarmTopicArn="",
        EdgeProof="****",
        Revision="0123456789ab",
        RetentionDays="400",
        WalletProviders="none",
    )
    preflight.run(FakeAccount(describe_stacks=now), a_stage(EdgeProof="secret"))
    assert [line for line in capsys.readouterr().out.splitlines() if "→" in line] == [
        f"changes   AlarmTopicArn: (empty) → {TOPIC}",
        "changes   WalletProviders: none → (empty)",
        "changes   TrafficShift: AllAtOnce → Canary10Percent5Minutes",
    ]


def test_executions_that_the_stack_has_reserved_count_as_free() -> None:
    free = {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 300}
    account = FakeAccount(
        describe_stacks=deployed_with(PayConcurrency="500", ApiConcurrency="200"),
        get_account_settings={"AccountLimit": free},
    )
    assert refusals(account, PayConcurrency="900") == []
    [found] = refusals(account, PayConcurrency="901")
    assert "only 1000 of the account's 1000 are free" in found


def test_an_environment_that_lambda_would_refuse_is_refused_before() -> None:
    logo = "A" * 2850
    assert refusals(FakeAccount(), WalletProviders=logo) == []
    found = refusals(FakeAccount(), WalletProviders=logo + "A" * 1000)
    assert {each.split()[3] for each in found} == {"PayFunction", "DashboardFunction"}
    assert all("Lambda allows 4096" in each for each in found)


def test_after_an_undo_an_alarm_that_is_on_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    account = FakeAccount(
        describe_stacks=in_state("UPDATE_COMPLETE"),
        describe_alarms={"MetricAlarms": [{"StateValue": "ALARM"}]},
    )
    assert len(refusals(account)) == 9  # the alarms of all functions, and the five of single ones
    monkeypatch.setattr(versions, "moved", lambda account, stack: {"api": "3"})
    assert refusals(account) == []
    assert any("undone" in each for each in warnings(account))


def test_an_edge_within_the_stack_is_not_deleted_before_another_one_is_in_its_place() -> None:
    account = FakeAccount(describe_stacks=deployed_with(Edge="true", EdgeProof="****"))
    for chosen in (
        {},
        {"EdgeProof": "s3cret", "DomainName": "a.example", "CertificateArn": CERTIFICATE},
    ):
        [found] = refusals(account, **chosen)
        assert "An edge of an earlier version" in found
    assert refusals(account, EdgeProof="s3cret", BaseUrl="https://a.example") == []
    assert refusals(FakeAccount(describe_stacks=deployed_with(Edge="false"))) == []


def test_a_stopped_stage_is_told() -> None:
    stopped = {"Parameter": {"Value": "{}"}}
    account = FakeAccount(describe_stacks=in_state("UPDATE_COMPLETE"), get_parameter=stopped)
    assert any("make start" in each for each in warnings(account))
