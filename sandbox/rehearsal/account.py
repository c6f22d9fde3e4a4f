"""Rehearsal of a deployment: check the stacks' resources in the emulated AWS account."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from botocore.exceptions import ClientError

from operations.stages import table_names
from sandbox.rehearsal import stack
from sandbox.rehearsal.stack import RehearsalFailed
from sandbox.template import resources, template

_QUEUE: Final = "rehearsal-alarms"
# Environment variables of the function `pay`, and the parameters whose values they must have.
_SETTINGS: Final = {
    "WALLET_PROVIDERS": "WalletProviders",
    "COMPLETION_POLICY": "CompletionPolicy",
    "RETENTION_DAYS": "RetentionDays",
    "CLIENT_LIMIT": "ClientLimit",
}

Say = Callable[[str, str], None]


def alarm_topic(endpoint: str) -> str:
    """Create the alarms' topic with a queue that stores its notifications; return its ARN."""
    sqs, sns = stack.client("sqs", endpoint), stack.client("sns", endpoint)
    url = sqs.create_queue(QueueName=_QUEUE)["QueueUrl"]
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    allowed = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": attributes["QueueArn"],
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    topic: str = sns.create_topic(Name=_QUEUE)["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=attributes["QueueArn"])
    return topic


def schedules(endpoint: str, stacks: Sequence[str], say: Say) -> None:
    """Check that each stack has its own schedule, which calls the alias of its own function."""
    scheduler = stack.client("scheduler", endpoint)
    found = [each["Name"] for each in scheduler.list_schedules()["Schedules"]]
    targets = {name: scheduler.get_schedule(Name=name)["Target"]["Arn"] for name in found}
    wanted = {stack.functions(endpoint, each)["ExpirerFunction"] for each in stacks}
    if {arn.split(":function:")[1] for arn in targets.values()} != {f"{n}:live" for n in wanted}:
        raise RehearsalFailed(f"the schedules are {targets}")
    say("schedules", ", ".join(sorted(targets)))


def alarms(endpoint: str, stack_name: str, topic: str, say: Say) -> None:
    """Send each alarm's metric a value beyond the threshold, and check that the topic is notified.

    The emulator evaluates names and thresholds, but not dimensions or missing values.
    """
    watch, sqs = stack.client("cloudwatch", endpoint), stack.client("sqs", endpoint)
    url = sqs.get_queue_url(QueueName=_QUEUE)["QueueUrl"]
    names = stack.physical(endpoint, stack_name, "AWS::CloudWatch::Alarm")
    always = {
        name
        for name in resources("AWS::CloudWatch::Alarm")
        if template()["Resources"][name].get("Condition") != "HasProof"  # without an edge
    }
    if set(names) != always:
        raise RehearsalFailed(f"the stack has the alarms {sorted(names)}")
    for alarm in watch.describe_alarms(AlarmNames=list(names.values()))["MetricAlarms"]:
        if alarm["AlarmActions"] != [topic] or alarm["OKActions"] != [topic]:
            raise RehearsalFailed(f"{alarm['AlarmName']} tells {alarm['AlarmActions']}")
        below = alarm["ComparisonOperator"].startswith("LessThan")
        watch.put_metric_data(
            Namespace=alarm["Namespace"],
            MetricData=[
                {
                    "MetricName": alarm["MetricName"],
                    "Dimensions": alarm.get("Dimensions", []),
                    "Values": [alarm["Threshold"] + (-1 if below else 1)],
                    "Counts": [10_000.0],  # enough that an average passes the threshold, too
                }
            ],
        )
    notified: set[str] = set()

    def all_arrived() -> bool:
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        for message in answer.get("Messages", []):
            notice = json.loads(json.loads(message["Body"])["Message"])
            if notice["NewStateValue"] == "ALARM" and notice["AlarmName"] in names.values():
                notified.add(notice["AlarmName"])
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return notified == set(names.values())

    stack.until(endpoint, stack_name, "notices of all alarms", all_arrived)
    say("alarms", f"{len(notified)} went off, and the topic was notified")


def parameters(operator: stack.Operator, stage: str, say: Say) -> None:
    """Check that the stack's parameters and the functions' settings are as chosen."""
    chosen = operator.stage(stage)
    described = stack.client("cloudformation", operator.endpoint).describe_stacks(
        StackName=chosen.stack
    )["Stacks"][0]["Parameters"]
    found = {each["ParameterKey"]: each["ParameterValue"] for each in described}
    wanted = dict(chosen.parameters)
    for hidden in ("Revision", "EdgeProof"):
        del found[hidden], wanted[hidden]
    if found != wanted:
        differing = {name for name in wanted if found.get(name) != wanted[name]}
        raise RehearsalFailed(f"{chosen.stack} has other parameters than written: {differing}")
    name = stack.functions(operator.endpoint, chosen.stack)["PayFunction"]
    functions = stack.client("lambda", operator.endpoint)
    settings = functions.get_function_configuration(FunctionName=name, Qualifier="live")
    for variable, parameter in _SETTINGS.items():
        if settings["Environment"]["Variables"][variable] != wanted[parameter]:
            raise RehearsalFailed(f"{variable} is not what {parameter} says")
    say("parameters", f"{len(wanted)} of {chosen.stack} are as written")


def nothing_reserved(endpoint: str, stack_name: str) -> None:
    """Check that each function of the stack has a reserved concurrency of 0."""
    functions = stack.client("lambda", endpoint)
    for name in stack.functions(endpoint, stack_name).values():
        found = functions.get_function_concurrency(FunctionName=name)
        if found.get("ReservedConcurrentExecutions") != 0:
            raise RehearsalFailed(f"{name} of a stage that was stopped may run")


def stacks_metrics(endpoint: str, stack_name: str) -> None:
    """Check that the metrics of the stack's functions have the stack's name as dimension."""
    lines = [line.partition(": ")[2] for line in stack.logs(endpoint, stack_name)]
    sent = [json.loads(line) for line in lines if line.startswith("{") and '"_aws"' in line]
    if not sent or {line.get("stack") for line in sent} != {stack_name}:
        raise RehearsalFailed(f"the metrics of {stack_name} are {sent[:3]}")


def refuses_deletion(endpoint: str, stack_name: str) -> None:
    """Check that the stack and its tables refuse to be deleted by direct calls to AWS."""
    formation, tables = stack.client("cloudformation", endpoint), stack.client("dynamodb", endpoint)
    attempts: list[Callable[[], Any]] = [partial(formation.delete_stack, StackName=stack_name)]
    attempts += [partial(tables.delete_table, TableName=each) for each in table_names(stack_name)]
    for attempt in attempts:
        try:
            attempt()
        except ClientError:
            continue
        raise RehearsalFailed(f"{stack_name} is not protected: {attempt} went through")


def gone(endpoint: str, stack_name: str, *, other: str | None) -> None:
    """Check that no resource of the stack is left, and that the stack `other` has its tables."""
    left = [name for name in _names(endpoint) if _of(name, stack_name)]
    if left:
        raise RehearsalFailed(f"{stack_name} has left {left}")
    if other is not None and set(table_names(other)) - set(_names(endpoint)):
        raise RehearsalFailed(f"{other} has lost tables")


def _of(name: str, stack_name: str) -> bool:
    """Return whether a physical name belongs to the stack, not to a stack with a longer name."""
    bare = name.removeprefix("/aws/vendedlogs").strip("/")
    if not bare.startswith(stack_name):
        return False
    return not bare.startswith("checkout-dev") or stack_name == "checkout-dev"


def _names(endpoint: str) -> list[str]:
    """Return the names of all resources that cost money or would block a new stack."""

    def all_of(service: str, operation: str, key: str, name: str) -> list[Any]:
        answer = getattr(stack.client(service, endpoint), operation)()
        return [each[name] if name else each for each in answer[key]]

    return [
        *all_of("dynamodb", "list_tables", "TableNames", ""),
        *all_of("lambda", "list_functions", "Functions", "FunctionName"),
        *all_of("lambda", "list_layers", "Layers", "LayerName"),
        *all_of("logs", "describe_log_groups", "logGroups", "logGroupName"),
        *all_of("scheduler", "list_schedules", "Schedules", "Name"),
        *all_of("apigatewayv2", "get_apis", "Items", "Name"),
        *all_of("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
        *all_of("secretsmanager", "list_secrets", "SecretList", "Name"),
    ]
