"""Preflight: `make preflight STAGE=…` finds the reasons why a deployment would fail.

The command only reads from the account. A line that begins with `refused` makes the exit status 1;
a line that begins with `warning` does not. A line that begins with `changes` shows a parameter
whose value in the stack differs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from operations import pause, versions
from operations.stages import Account, Refused, Stage, command, named, table_names
from sandbox.template import resources, template

UNRESERVED: Final = 100  # executions that Lambda keeps and no function can reserve
COMFORTABLE: Final = 100  # executions; new accounts have 10
ENVIRONMENT: Final = 4096  # bytes of a function's environment, as JSON
ASSUMED: Final = "x" * 130  # for a value that exists only after a deployment: an ARN, an address
WRITES: Final = 30  # write units of a checkout on its busiest table, measured by `make bench`
RESERVING: Final = (
    "ApiConcurrency",
    "PayConcurrency",
    "DashboardConcurrency",
    "SweepConcurrency",
)
# These alarms roll a gradual upgrade back.
TAKE_BACK: Final = tuple(
    alarm["Ref"].removesuffix("Alarm")
    for each in (
        template()["Globals"]["Function"],
        *resources("AWS::Serverless::Function").values(),
    )
    for alarm in each.get("DeploymentPreference", {}).get("Alarms", ())
)
# A stack in one of these states cannot be updated.
STUCK: Final = {
    "ROLLBACK_FAILED": "delete it: aws cloudformation delete-stack --stack-name {}",
    "DELETE_FAILED": "delete it: aws cloudformation delete-stack --stack-name {}",
    "UPDATE_ROLLBACK_FAILED": "continue it: "
    "aws cloudformation continue-update-rollback --stack-name {}",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem. `refuses` is true if a deployment would fail."""

    refuses: bool
    text: str


def findings(account: Account, chosen: Stage) -> Iterator[Finding]:
    """Check everything and yield the problems.

    Raises ClientError if the credentials do not allow reading.
    """
    yield from _stack(account, chosen)
    yield from _environments(chosen)
    yield from _concurrency(account, chosen)
    yield from _throughput(account, chosen)
    yield from _topic(account, chosen)
    yield from _certificate(account, chosen)
    yield from _edge(account, chosen)
    yield from _sender(account, chosen)


def _stack(account: Account, chosen: Stage) -> Iterator[Finding]:
    found = account.stack(chosen.stack)
    status = found["StackStatus"] if found else ""
    if status in STUCK:
        yield Finding(True, f"the stack is {status}; {STUCK[status].format(chosen.stack)}")
    elif status.endswith("_IN_PROGRESS"):
        yield Finding(True, f"the stack is {status}; wait until it has finished")
    if status in ("", "ROLLBACK_COMPLETE"):
        yield from _left_over(account, chosen)
        return
    if pause.stopped(account, chosen.stack) is not None:
        yield Finding(False, "the stage is stopped; `make start` starts it again")
    if versions.moved(account, chosen.stack):
        yield Finding(
            False, "a release was undone: this deployment moves all requests at once, without alarm"
        )
    else:
        yield from _alarm(account, chosen)


def _left_over(account: Account, chosen: Stage) -> Iterator[Finding]:
    """Find the leftovers of an earlier stack of this name, which block a new one."""
    tables = account.client("dynamodb")
    for name in table_names(chosen.stack):
        try:
            tables.describe_table(TableName=name)
        except tables.exceptions.ResourceNotFoundException:
            continue
        yield Finding(
            True,
            f"the table {name} exists already. If it was restored for a move, deploy before you "
            "restore: see “Another region” in docs/operating.md. If it is from a stack that was "
            "deleted, see “Delete a deployment” in docs/deploying.md",
        )
    logs = account.client("logs")
    for prefix in (f"/{chosen.stack}/", f"/aws/vendedlogs/{chosen.stack}/"):
        for group in logs.describe_log_groups(logGroupNamePrefix=prefix)["logGroups"]:
            yield Finding(True, f"the log group {group['logGroupName']} exists already")


def _alarm(account: Account, chosen: Stage) -> Iterator[Finding]:
    """Find an alarm that would roll back a gradual upgrade at once."""
    if chosen.parameters["TrafficShift"] == "AllAtOnce":
        return
    watch = account.client("cloudwatch")
    for name in TAKE_BACK:
        prefix = f"{chosen.stack}-{name}Alarm"
        alarms = watch.describe_alarms(AlarmNamePrefix=prefix)["MetricAlarms"]
        if any(each["StateValue"] == "ALARM" for each in alarms):
            yield Finding(
                True,
                f"the alarm {name} is on, and would roll back every gradual upgrade; "
                "deploy the fix with TrafficShift=AllAtOnce",
            )


def _environments(chosen: Stage) -> Iterator[Finding]:
    """Find a function whose environment is larger than Lambda allows."""
    common = template()["Globals"]["Function"]["Environment"]["Variables"]
    for name, function in resources("AWS::Serverless::Function").items():
        variables = common | function["Environment"]["Variables"]
        values = {key: _value(chosen, written) for key, written in variables.items()}
        size = len(json.dumps(values, ensure_ascii=False).encode())
        if size > ENVIRONMENT:
            yield Finding(
                True,
                f"the environment of {name} has about {size} bytes, and Lambda allows "
                f"{ENVIRONMENT}; shorten WalletProviders",
            )


def _value(chosen: Stage, written: Any) -> str:
    """Return a variable's value, or a text of its greatest length if the value is not known yet."""
    if isinstance(written, dict):
        if written.get("Fn::If", [""])[0] == "HasTestWallets" and not chosen.wallets:
            return ""
        return chosen.parameters.get(written.get("Ref", ""), ASSUMED)
    return str(written)


def deployed(account: Account, chosen: Stage) -> dict[str, str]:
    """Return the parameters of the deployed stack; none if there is no stack."""
    found = account.stack(chosen.stack) or {}
    return {each["ParameterKey"]: each["ParameterValue"] for each in found.get("Parameters", ())}


def changes(account: Account, chosen: Stage) -> Iterator[str]:
    """Yield a line for each parameter that the deployment changes in the stack.

    Secret parameters are left out, because CloudFormation does not show their values.
    """
    now = deployed(account, chosen)
    for name, value in chosen.parameters.items():
        secret = template()["Parameters"][name].get("NoEcho", False)
        if name in now and now[name] != value and not secret and name != "Revision":
            yield f"{name}: {now[name] or '(empty)'} → {value or '(empty)'}"


def _concurrency(account: Account, chosen: Stage) -> Iterator[Finding]:
    limits = account.client("lambda").get_account_settings()["AccountLimit"]
    limit, unreserved = limits["ConcurrentExecutions"], limits["UnreservedConcurrentExecutions"]
    now = deployed(account, chosen)
    free = unreserved + sum(int(now.get(each) or 0) for each in RESERVING)
    reserved = sum(map(chosen.number, RESERVING))
    if reserved and free - reserved < UNRESERVED:
        yield Finding(
            True,
            f"the parameters reserve {reserved} executions, but only {free} of the account's "
            f"{limit} are free, and Lambda keeps {UNRESERVED}; reserve fewer, or none (0)",
        )
    queues = chosen.number("SenderConcurrency") + chosen.number("TasksConcurrency")
    if queues > limit - 3:
        yield Finding(
            True,
            f"SenderConcurrency and TasksConcurrency are {queues} of the account's {limit} "
            "executions, which leaves none for customers; lower them",
        )
    if limit < COMFORTABLE:
        yield Finding(
            False,
            f"the account runs {limit} functions at once, enough for about {limit / 10:.0f} "
            "checkouts a second; request more: Service Quotas, AWS Lambda, Concurrent executions",
        )


def _throughput(account: Account, chosen: Stage) -> Iterator[Finding]:
    most = account.client("dynamodb").describe_limits()["TableMaxWriteCapacityUnits"]
    creations = int(chosen.parameters["CreationsThrottle"].split(",")[0])
    if creations * WRITES > most:
        yield Finding(
            False,
            f"CreationsThrottle lets {creations} sessions a second in, about "
            f"{creations * WRITES} write units; a table of this account may have {most}",
        )


def _topic(account: Account, chosen: Stage) -> Iterator[Finding]:
    arn = chosen.parameters["AlarmTopicArn"]
    if not arn:
        yield Finding(False, "no AlarmTopicArn: alarms notify nobody")
        return
    if arn.split(":")[3] != account.region:
        yield Finding(True, f"the alarm topic {arn} is not in {account.region}")
        return
    topics = account.client("sns")
    try:
        found = topics.get_topic_attributes(TopicArn=arn)["Attributes"]
    except topics.exceptions.NotFoundException:
        yield Finding(True, f"the alarm topic {arn} does not exist")
        return
    if found.get("KmsMasterKeyId", "").endswith("alias/aws/sns"):
        yield Finding(
            True,
            "the alarm topic is encrypted with alias/aws/sns, which CloudWatch cannot use; "
            "use no key, or a key of your own",
        )
    if found.get("SubscriptionsConfirmed", "0") == "0":
        yield Finding(False, "the alarm topic has no confirmed subscription")


def _certificate(account: Account, chosen: Stage) -> Iterator[Finding]:
    domain, arn = chosen.parameters["DomainName"], chosen.parameters["CertificateArn"]
    if not domain:
        return
    if not arn:
        yield Finding(True, "DomainName requires CertificateArn")
        return
    if arn.split(":")[3] != account.region:
        yield Finding(True, f"the certificate must be in {account.region}")
        return
    certificates = account.client("acm")
    try:
        found = certificates.describe_certificate(CertificateArn=arn)["Certificate"]
    except certificates.exceptions.ResourceNotFoundException:
        yield Finding(True, f"the certificate {arn} does not exist")
        return
    if found["Status"] != "ISSUED":
        yield Finding(True, f"the certificate is {found['Status']}, not ISSUED")
    names = {found["DomainName"], *found.get("SubjectAlternativeNames", ())}
    if not names & {domain, "*." + domain.partition(".")[2]}:
        yield Finding(True, f"the certificate is not for {domain}")


def _edge(account: Account, chosen: Stage) -> Iterator[Finding]:
    """Find a used edge (CloudFront) in the stage's own stack. The deployment would delete it."""
    if deployed(account, chosen).get("Edge", "false") == "false":
        return
    if not chosen.parameters["EdgeProof"] or chosen.parameters["DomainName"]:
        yield Finding(
            True,
            "the stack has an edge, which is now a stack of its own; see "
            "“An edge of an earlier version” in docs/deploying.md",
        )


def _sender(account: Account, chosen: Stage) -> Iterator[Finding]:
    """Find a reason why Amazon SES would accept no e-mail from the sender."""
    sender = chosen.parameters["ReceiptSender"]
    if not sender:
        return
    mailer = account.client("sesv2")
    found = mailer.get_account()
    if not found["ProductionAccessEnabled"]:
        yield Finding(
            False,
            f"Amazon SES is in its sandbox in {account.region}, and sends to verified addresses "
            "only; request production access",
        )
    if not found["SendingEnabled"]:
        yield Finding(
            False, f"Amazon SES has suspended sending in {account.region}; see its console"
        )
    for identity in (sender, sender.partition("@")[2]):
        try:
            if mailer.get_email_identity(EmailIdentity=identity)["VerifiedForSendingStatus"]:
                return
        except mailer.exceptions.NotFoundException:
            continue
    yield Finding(
        False, f"{sender} is not verified in Amazon SES in {account.region}, nor its domain"
    )


def run(account: Account, chosen: Stage) -> None:
    """Check and print. Raises Refused if a deployment would fail."""
    who: dict[str, Any] = account.client("sts").get_caller_identity()
    print(f"account   {who['Account']}, {account.region}")
    print(f"stage     {chosen.name}: the stack {chosen.stack}")
    for line in changes(account, chosen):
        print(f"changes   {line}")
    refused = 0
    for found in findings(account, chosen):
        refused += found.refuses
        print(f"{'refused' if found.refuses else 'warning':<9} {found.text}")
    if refused:
        raise Refused(f"The deployment would fail: fix what is refused above ({refused}).")
    print("preflight ok")


def main(arguments: list[str]) -> int:
    """Check the stage that the arguments name; return the exit status."""
    return command(lambda: run(Account(), named(arguments)[0]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
