"""Preflight: `make preflight STAGE=…` finds what a deployment would fail at, before it begins.

It reads the account only. A line that begins with `refused` makes the exit status 1; `mind` does
not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from operations.stages import Account, Refused, Stage, command, named, table_names

UNRESERVED: Final = 100  # Lambda keeps so many executions that no function can reserve
COMFORTABLE: Final = 100  # executions; new accounts have 10
WRITES: Final = 30  # write units of a checkout on its busiest table, measured by `make bench`
RESERVING: Final = (
    "ApiConcurrency",
    "PayConcurrency",
    "DashboardConcurrency",
    "SweepConcurrency",
)
# A stack in such a state takes no update.
STUCK: Final = {
    "ROLLBACK_FAILED": "delete it: aws cloudformation delete-stack --stack-name {}",
    "DELETE_FAILED": "delete it: aws cloudformation delete-stack --stack-name {}",
    "UPDATE_ROLLBACK_FAILED": "continue it: "
    "aws cloudformation continue-update-rollback --stack-name {}",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong. `refuses` says whether a deployment would fail."""

    refuses: bool
    text: str


def findings(account: Account, chosen: Stage) -> Iterator[Finding]:
    """Check everything; yield what is wrong. Raises ClientError without the permission to read."""
    yield from _stack(account, chosen)
    yield from _concurrency(account, chosen)
    yield from _throughput(account, chosen)
    yield from _topic(account, chosen)
    yield from _certificate(account, chosen)
    yield from _edge(account, chosen)


def _stack(account: Account, chosen: Stage) -> Iterator[Finding]:
    found = account.stack(chosen.stack)
    status = found["StackStatus"] if found else ""
    if status in STUCK:
        yield Finding(True, f"the stack is {status}; {STUCK[status].format(chosen.stack)}")
    elif status.endswith("_IN_PROGRESS") and status != "REVIEW_IN_PROGRESS":
        yield Finding(True, f"the stack is {status}; wait until that has ended")
    if status in ("", "REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE"):
        yield from _left_over(account, chosen)
    else:
        yield from _alarm(account, chosen)


def _left_over(account: Account, chosen: Stage) -> Iterator[Finding]:
    """Find what an earlier stack of this name has left, which a new one would collide with."""
    tables = account.client("dynamodb")
    for name in table_names(chosen.stack):
        try:
            tables.describe_table(TableName=name)
        except tables.exceptions.ResourceNotFoundException:
            continue
        yield Finding(
            True,
            f"the table {name} exists already, from a stack that was deleted; "
            f"see docs/deploying.md, Delete a deployment",
        )
    logs = account.client("logs")
    for prefix in (f"/{chosen.stack}/", f"/aws/vendedlogs/{chosen.stack}/"):
        for group in logs.describe_log_groups(logGroupNamePrefix=prefix)["logGroups"]:
            yield Finding(True, f"the log group {group['logGroupName']} exists already")


def _alarm(account: Account, chosen: Stage) -> Iterator[Finding]:
    """Find the alarm that would take a gradual upgrade back at once."""
    if chosen.parameters["TrafficShift"] == "AllAtOnce":
        return
    prefix = f"{chosen.stack}-AnswersFailAlarm"
    alarms = account.client("cloudwatch").describe_alarms(AlarmNamePrefix=prefix)["MetricAlarms"]
    if any(each["StateValue"] == "ALARM" for each in alarms):
        yield Finding(
            True,
            "the alarm AnswersFail is on, which takes every gradual upgrade back; "
            "deploy the mend with TrafficShift=AllAtOnce",
        )


def _concurrency(account: Account, chosen: Stage) -> Iterator[Finding]:
    limits = account.client("lambda").get_account_settings()["AccountLimit"]
    limit, unreserved = limits["ConcurrentExecutions"], limits["UnreservedConcurrentExecutions"]
    reserved = sum(map(chosen.number, RESERVING))
    if reserved and account.stack(chosen.stack) is None and unreserved - reserved < UNRESERVED:
        yield Finding(
            True,
            f"{reserved} executions are to be reserved, but only {unreserved} of the account's "
            f"{limit} are free, and Lambda keeps {UNRESERVED}; reserve fewer or none (0)",
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
        yield Finding(False, "no AlarmTopicArn: nobody is told when an alarm goes off")
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
            "the alarm topic is encrypted with alias/aws/sns, which CloudWatch may not use; "
            "use no key or one of your own",
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
    region = "us-east-1" if chosen.parameters["Edge"] == "true" else account.region
    if arn.split(":")[3] != region:
        yield Finding(True, f"the certificate must be in {region}")
        return
    certificates = account.client("acm", region)
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
    if chosen.parameters["Edge"] != "true" or account.region == "us-east-1":
        return
    arn = chosen.parameters["EdgeWebAclArn"]
    if not arn:
        yield Finding(
            True, "Edge outside us-east-1 requires EdgeWebAclArn; see operations/web-acl.yaml"
        )
        return
    *_, name, identity = arn.split("/")
    acls = account.client("wafv2", "us-east-1")
    try:
        acls.get_web_acl(Name=name, Id=identity, Scope="CLOUDFRONT")
    except acls.exceptions.WAFNonexistentItemException:
        yield Finding(True, f"the web ACL {arn} does not exist")


def run(account: Account, chosen: Stage) -> None:
    """Check and print. Raises Refused if a deployment would fail."""
    who: dict[str, Any] = account.client("sts").get_caller_identity()
    print(f"account   {who['Account']}, {account.region}")
    print(f"stage     {chosen.name}: the stack {chosen.stack}")
    refused = 0
    for found in findings(account, chosen):
        refused += found.refuses
        print(f"{'refused' if found.refuses else 'mind':<9} {found.text}")
    if refused:
        raise Refused(f"{refused} of these would fail the deployment.")
    print("preflight ok")


def main(arguments: list[str]) -> int:
    """Check the stage that the arguments name; return the exit status."""
    return command(lambda: run(Account(), named(arguments)[0]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
