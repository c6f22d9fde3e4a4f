"""Stages, which are the deployments described in samconfig.toml, and the operator's AWS account."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from sandbox.template import resources, template

ROOT: Final = Path(__file__).parent.parent
CONFIG: Final = ROOT / "samconfig.toml"
_PATIENT: Final = Config(retries={"mode": "standard", "total_max_attempts": 5})


class Refused(Exception):
    """An operation is not possible; the message contains the next step."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage: the name of its stack, and the template's parameters that it sets."""

    name: str
    stack: str
    chosen: Mapping[str, str]
    config: Path = CONFIG

    @property
    def parameters(self) -> dict[str, str]:
        """Return all parameters of the template: the stage's values, and defaults for the others.

        Each deployment passes all of them, because SAM CLI keeps the stack's last value of a
        parameter that is not passed.
        """
        defaults = template()["Parameters"].items()
        return {name: str(each["Default"]) for name, each in defaults} | dict(self.chosen)

    @property
    def protected(self) -> bool:
        """Return whether the stage's tables and stack are protected from deletion."""
        return self.parameters["DeletionProtection"] == "true"

    @property
    def wallets(self) -> str:
        """Return the name of the stack with a test stage's wallets, "" for any other stage."""
        return f"{self.stack}-wallets" if self.parameters["TestWallets"] == "true" else ""

    def number(self, parameter: str) -> int:
        """Return a parameter as a number, 0 for an empty one."""
        return int(self.parameters[parameter] or 0)


def stage(name: str, config: Path = CONFIG) -> Stage:
    """Return a stage of samconfig.toml. Raises Refused if the stage or a parameter is unknown."""
    stages = tomllib.loads(config.read_text("utf-8"))
    if name not in stages or not isinstance(stages[name], dict):
        raise Refused(f"{config.name} has no stage {name!r}.")
    described = stages[name]
    written = described.get("deploy", {}).get("parameters", {}).get("parameter_overrides", {})
    chosen = dict(_pairs(written))
    for key in chosen.keys() - template()["Parameters"].keys():
        raise Refused(f"{config.name}: template.yaml has no parameter {key!r}.")
    return Stage(name, described["global"]["parameters"]["stack_name"], chosen, config)


def _pairs(written: Any) -> Iterator[tuple[str, str]]:
    """Yield names and values of parameter_overrides: a table, a list of Name=value, or a string."""
    if isinstance(written, dict):
        for name, value in written.items():
            yield name, value if isinstance(value, str) else json.dumps(value)
    else:
        for pair in written if isinstance(written, list) else shlex.split(written):
            name, _, value = pair.partition("=")
            yield name, value


def named(arguments: list[str]) -> tuple[Stage, list[str]]:
    """Return the stage that a command's arguments name, and the arguments after it. Raises Refused.

    The first argument is the stage; `--config FILE` names another samconfig.toml.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("stage", help="a stage of samconfig.toml")
    parser.add_argument("--config", type=Path, default=CONFIG, help="another samconfig.toml")
    found, rest = parser.parse_known_args(arguments)
    return stage(found.stage, found.config), rest


def command(act: Callable[[], object]) -> int:
    """Run the command, and return the exit status. Print an error as one line, exit status 1."""
    try:
        act()
    except (Refused, BotoCoreError, ClientError) as refused:
        print(refused, file=sys.stderr)
        return 1
    return 0


class Account:
    """The account and region of the operator's credentials."""

    def __init__(self) -> None:
        """Find the region. Raises Refused if no region is configured."""
        named = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        self._session = boto3.Session(region_name=named or None)
        if self._session.region_name is None:
            raise Refused("No AWS region: set AWS_REGION, for example to eu-central-1.")
        self.region: str = self._session.region_name

    def client(self, service: str, region: str | None = None) -> Any:
        """Return a client of the service, in the account's region unless another is named."""
        return self._client(service, region or self.region)

    @cache  # noqa: B019 (an account lives as long as its command)
    def _client(self, service: str, region: str) -> Any:
        return self._session.client(service, region_name=region, config=_PATIENT)

    def stack(self, name: str) -> dict[str, Any] | None:
        """Return the description of a stack, or None.

        A stack in REVIEW_IN_PROGRESS counts as none: its first change set was never executed, so it
        has no resources.
        """
        formation = self.client("cloudformation")
        try:
            found: dict[str, Any] = formation.describe_stacks(StackName=name)["Stacks"][0]
        except formation.exceptions.ClientError as error:
            if "does not exist" in str(error):
                return None
            raise
        return None if found["StackStatus"] == "REVIEW_IN_PROGRESS" else found

    def resources(self, stack: str, kind: str) -> dict[str, str]:
        """Return a stack's resources of a type: physical ids by logical id."""
        pages = self.client("cloudformation").get_paginator("list_stack_resources")
        return {
            each["LogicalResourceId"]: each["PhysicalResourceId"]
            for page in pages.paginate(StackName=stack)
            for each in page["StackResourceSummaries"]
            if each["ResourceType"] == kind and not each["ResourceStatus"].startswith("DELETE")
        }

    def outputs(self, name: str) -> dict[str, str]:
        """Return a stack's outputs. Raises Refused if there is no such stack."""
        stack = self.stack(name)
        if stack is None:
            raise Refused(f"There is no stack {name} in {self.region}.")
        return {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", [])}


def table_names(stack: str) -> list[str]:
    """Return the names of a stack's tables."""
    tables = [each["TableName"]["Fn::Sub"] for each in resources("AWS::DynamoDB::Table").values()]
    return [name.replace("${AWS::StackName}", stack) for name in tables]
