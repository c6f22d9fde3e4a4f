"""The AWS calls that the functions make while the tests run, against the policies that
template.yaml gives them: none missing, none granted in vain.

Recorded by the test doubles of AWS (the in-memory DynamoDB, the noted queues, the vault's key) and,
if a test uses a real client, by botocore. A call belongs to the function whose code is on its
stack; calls of tests without a function are not counted. `make unit` begins with `python -m
tests.support.aws_calls --forget` and ends with `python -m tests.support.aws_calls`.
"""

from __future__ import annotations

import json
import shutil
import sys
import uuid
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from sandbox.template import resources

ROOT: Final = Path(__file__).parents[2]
RECORDS: Final = ROOT / ".aws-calls"
# Lambda itself makes these for a function that a queue is mapped to.
_OF_THE_MAPPING: Final = {
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
}
# DynamoDB and SQS use the key for their callers, in statements with this condition.
_THROUGH_SERVICES: Final = "kms:ViaService"
_TRANSACTED: Final = {
    "ConditionCheck": "dynamodb:ConditionCheckItem",
    "Delete": "dynamodb:DeleteItem",
    "Get": "dynamodb:GetItem",
    "Put": "dynamodb:PutItem",
    "Update": "dynamodb:UpdateItem",
}
_SETUP: Final = "checkout/flows/merchant/setup.py"
# These run in threads of their own, where the stack begins with them.
_IN_THREADS: Final = {
    ("checkout/flows/webhooks/deliver.py", "deliver"): "WebhookSenderFunction",
    ("checkout/flows/payment/cleanup.py", "clean_up"): "TasksFunction",
}


class Use(NamedTuple):
    """One action of a function on one resource, by its logical id (`Table/index/name`)."""

    function: str
    action: str
    resource: str


_noted: set[Use] = set()


def note(service: str, operation: str, request: Mapping[str, Any]) -> None:
    """A call of boto3's `operation`, in snake case, is about to be made."""
    function = _calling()
    if function is not None:
        _noted.update(
            Use(function, action, resource)
            for action, resource in _uses(service, operation, request)
        )


def keep() -> None:
    """Write down what this process has noted."""
    if _noted:
        RECORDS.mkdir(exist_ok=True)
        record = RECORDS / f"{uuid.uuid4()}.json"
        record.write_text(json.dumps(sorted(_noted)), "utf-8")


def recorded() -> set[Use]:
    """Return the calls that all processes have noted since `--forget`."""
    return {
        Use(*use) for record in RECORDS.glob("*.json") for use in json.loads(record.read_bytes())
    }


def granted() -> set[Use]:
    """Return the actions that the policies allow, without those that AWS itself makes."""
    return {
        Use(name, action, _resource(resource))
        for name, function in resources("AWS::Serverless::Function").items()
        for policy in function["Policies"]
        for statement in policy["Statement"]
        for action in _list(statement["Action"])
        for resource in _list(statement["Resource"])
        if action not in _OF_THE_MAPPING and _THROUGH_SERVICES not in str(statement)
    }


def _uses(service: str, operation: str, request: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if service != "dynamodb":
        yield _other(service, operation, request)
    elif operation.startswith("transact_"):
        for item in request["TransactItems"]:
            [(kind, asked)] = item.items()
            yield _TRANSACTED[kind], _table(asked["TableName"])
    elif operation.startswith("batch_"):
        for table in request["RequestItems"]:
            yield f"dynamodb:{_camel(operation)}", _table(table)
    else:
        index = f"/index/{request['IndexName']}" if "IndexName" in request else ""
        yield f"dynamodb:{_camel(operation)}", _table(request["TableName"]) + index


def _other(service: str, operation: str, request: Mapping[str, Any]) -> tuple[str, str]:
    if service == "sqs":
        action = _camel(operation).removesuffix("Batch")  # IAM has no batch actions
        return f"sqs:{action}", str(request["QueueUrl"])
    if service == "kms":
        return f"{service}:{_camel(operation)}", "StackKey"
    assert service == "secretsmanager"
    return f"{service}:{_camel(operation)}", "EncryptionKey"


def _camel(operation: str) -> str:
    return "".join(word.capitalize() for word in operation.split("_"))


@cache
def _table(name: str) -> str:
    """The template's table whose name ends as `name` does."""
    for logical, table in resources("AWS::DynamoDB::Table").items():
        if name.endswith(table["TableName"]["Fn::Sub"].removeprefix("${AWS::StackName}")):
            return logical
    raise LookupError(name)


def _resource(value: Any) -> str:
    """The logical id in `!GetAtt X.Arn` and `!Sub ${X.Arn}/index/y`."""
    if "Fn::GetAtt" in value:
        return str(value["Fn::GetAtt"]).partition(".")[0]
    if "Fn::Sub" in value:
        logical, _, rest = str(value["Fn::Sub"]).removeprefix("${").partition(".Arn}")
        return logical + rest
    return str(value["Ref"])


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _calling() -> str | None:
    """The function whose code is the outermost on the stack, if any is; none while a test sets its
    world up.
    """
    frame, found = sys._getframe(2), None
    while frame is not None:
        code = frame.f_code
        if code.co_filename.endswith(_SETUP):
            return None
        # Not by the code object, which is hashed anew each time: stacks are deep.
        found = _owner(code.co_filename, code.co_name) or found
        frame = frame.f_back  # type: ignore[assignment]
    return found


@cache
def _owner(filename: str, name: str) -> str | None:
    path = Path(filename)
    if path.is_relative_to(ROOT / "functions"):
        module = ".".join(path.relative_to(ROOT / "functions").with_suffix("").parts)
        return _handlers().get(module) or _packages().get(module.partition(".")[0])
    for (file, function_name), function in _IN_THREADS.items():
        if filename.endswith(file) and name == function_name:
            return function
    return None


@cache
def _handlers() -> dict[str, str]:
    functions = resources("AWS::Serverless::Function").items()
    return {each["Handler"].rpartition(".")[0]: name for name, each in functions}


@cache
def _packages() -> dict[str, str]:
    """Packages with one handler: all their code is that function's."""
    owners: dict[str, list[str]] = {}
    for module, name in _handlers().items():
        owners.setdefault(module.partition(".")[0], []).append(name)
    return {package: names[0] for package, names in owners.items() if len(names) == 1}


def main() -> int:
    """Print a line for each difference of policies and calls; exit code 1 if there is one."""
    if sys.argv[1:] == ["--forget"]:
        shutil.rmtree(RECORDS, ignore_errors=True)
        return 0
    used, allowed = recorded(), granted()
    for use in sorted(used - allowed):
        print(f"not granted: {' '.join(use)}")
    for use in sorted(allowed - used):
        print(f"granted, but no test has seen it called: {' '.join(use)}")
    print(f"{len(used & allowed)} of {len(used | allowed)} calls and grants agree")
    return int(used != allowed)


if __name__ == "__main__":
    raise SystemExit(main())
