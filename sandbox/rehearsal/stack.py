"""Rehearsal: deploy, read and delete the stack in the emulator, with the operator's commands."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sandbox import cloud

ROOT: Final = Path(__file__).parent.parent.parent
BUILT: Final = ROOT / ".aws-sam" / "rehearsal" / "template.yaml"
NAME: Final = "checkout"
# The emulator's root user. A function gets its role's credentials from the emulator.
_OPERATOR: Final = "test"


class RehearsalFailed(Exception):
    """A step of the rehearsal failed; the message says which."""


def operator(endpoint: str, home: Path) -> dict[str, str]:
    """Return the environment of an operator's commands: this process's, with the emulator's AWS."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {
        **kept,
        "HOME": str(home),
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_DEFAULT_REGION": cloud.REGION,
        "AWS_ACCESS_KEY_ID": _OPERATOR,
        "AWS_SECRET_ACCESS_KEY": _OPERATOR,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "SAM_CLI_TELEMETRY": "0",
    }


def client(service: str, endpoint: str) -> Any:
    """Return a client of the emulator with the operator's credentials."""
    return cloud.client(service, endpoint, key=_OPERATOR)


@contextmanager
def deployed(
    environment: Mapping[str, str], parameters: Mapping[str, str]
) -> Iterator[dict[str, str]]:
    """Deploy the built stack with `sam deploy`, yield its outputs, and run `sam delete` at the end.

    Both use samconfig.toml. Raises RehearsalFailed.
    """
    chosen = [f"{name}={value}" for name, value in parameters.items()]
    config = ["--config-file", str(ROOT / "samconfig.toml")]
    _sam(environment, "deploy", "-t", str(BUILT), *config, "--parameter-overrides", *chosen)
    _grant_batches(environment["AWS_ENDPOINT_URL"])
    formation = client("cloudformation", environment["AWS_ENDPOINT_URL"])
    [stack] = formation.describe_stacks(StackName=NAME)["Stacks"]
    yield {each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]}
    _sam(environment, "delete", "--stack-name", NAME, "--no-prompts", *config)


def _grant_batches(endpoint: str) -> None:
    """Allow sqs:SendMessageBatch to every role that may sqs:SendMessage.

    IAM has no action SendMessageBatch, and AWS checks SendMessage; the emulator checks an action of
    that name.
    """
    iam = client("iam", endpoint)
    for role in (each["RoleName"] for each in iam.list_roles()["Roles"]):
        for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
            policy = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
            batches = [
                {**statement, "Action": "sqs:SendMessageBatch"}
                for statement in policy["Statement"]
                if "sqs:SendMessage" in statement["Action"]
            ]
            if batches:
                document = json.dumps({"Version": "2012-10-17", "Statement": batches})
                iam.put_role_policy(
                    RoleName=role, PolicyName=f"{name}-batches", PolicyDocument=document
                )


def functions(endpoint: str) -> dict[str, str]:
    """Return the deployed functions' names by logical id."""
    resources = client("cloudformation", endpoint).describe_stack_resources(StackName=NAME)
    return {
        each["LogicalResourceId"]: each["PhysicalResourceId"]
        for each in resources["StackResources"]
        if each["ResourceType"] == "AWS::Lambda::Function"
    }


def routes(endpoint: str) -> list[str]:
    """Return a line per route of the deployed HTTP API: the route and its function."""
    gateway = client("apigatewayv2", endpoint)
    [api] = gateway.get_apis()["Items"]
    names = {name: logical for logical, name in functions(endpoint).items()}
    behind = {}
    for each in gateway.get_integrations(ApiId=api["ApiId"])["Items"]:
        function = each["IntegrationUri"].rpartition("function:")[2].partition("/")[0]
        behind[f"integrations/{each['IntegrationId']}"] = names[function]
    found = gateway.get_routes(ApiId=api["ApiId"])["Items"]
    return sorted(f"{route['RouteKey']:<34} {behind[route['Target']]}" for route in found)


def logs(endpoint: str) -> Iterator[str]:
    """Yield the log lines of the deployed functions, for diagnosing a failure."""
    found = client("logs", endpoint)
    for group in found.describe_log_groups(logGroupNamePrefix=f"/{NAME}/")["logGroups"]:
        for event in found.filter_log_events(logGroupName=group["logGroupName"])["events"]:
            yield f"{group['logGroupName']}: {event['message'].rstrip()}"


def _sam(environment: Mapping[str, str], *arguments: str) -> None:
    done = subprocess.run(
        [str(ROOT / ".venv-sam" / "bin" / "sam"), *arguments],
        env=dict(environment),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,  # it must not ask questions
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RehearsalFailed(f"`sam {arguments[0]}` failed:\n{done.stdout[-4000:]}")
