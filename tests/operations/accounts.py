"""An AWS account for the tests of the operator's commands."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import boto3
from botocore.exceptions import ClientError

from operations import versions
from operations.stages import Account, Stage

REGION = "eu-central-1"
TOPIC = f"arn:aws:sns:{REGION}:123456789012:alarms"


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
            "get_parameter": missing(),
            "describe_secret": {},
            "get_account": {"ProductionAccessEnabled": True, "SendingEnabled": True},
            "get_email_identity": {"VerifiedForSendingStatus": True},
            "describe_key": {"KeyMetadata": {"KeyState": "Enabled"}},
            **answers,
        }

    def resources(self, stack: str, kind: str) -> dict[str, str]:
        """Return no resources, so that no version, mapping or schedule is looked for."""
        return {}

    def client(self, service: str, region: str | None = None) -> Any:
        names = "ClientError ResourceNotFoundException NotFoundException ParameterNotFound"
        errors = SimpleNamespace(**dict.fromkeys(names.split(), ClientError))
        return SimpleNamespace(exceptions=errors, **dict(self._operations(service)))

    def _operations(self, service: str) -> Any:
        for name, answer in self._answers.items():
            yield name, self._operation(name, answer)
        for name in (
            *("delete_stack", "set_stack_policy", "update_termination_protection"),
            *("get_waiter", "get_paginator", "delete_table"),
        ):
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


def limits(concurrency: int) -> dict[str, Any]:
    executions = ("ConcurrentExecutions", "UnreservedConcurrentExecutions")
    return {"AccountLimit": dict.fromkeys(executions, concurrency)}


def in_state(status: str) -> dict[str, Any]:
    outputs = {"EncryptionKeySecret": "arn:secret", "StackKeyArn": "arn:key"}
    listed = [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]
    kept = {"StackId": "arn:stack", "EnableTerminationProtection": True}
    return {"Stacks": [{"StackStatus": status, "Outputs": listed, **kept}]}


def a_stage(**chosen: str) -> Stage:
    return Stage("default", "checkout", {"AlarmTopicArn": TOPIC, **chosen})


def code(text: str) -> bytes:
    """Return a function's archive with this text as its program."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("app.py", text)
    return file.getvalue()


NAMES = ("checkout-api", "checkout-pay")


class Released(Account):
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
