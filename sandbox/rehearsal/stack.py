"""Rehearsal of a deployment: deploy and remove the emulator's stacks, as operators do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from checkout.domain.ground.languages import LANGUAGES
from operations import proving_day, stages
from operations.deploy import for_sam
from sandbox import cloud
from sandbox.rehearsal.interrupted import INTERRUPTED

ROOT: Final = Path(__file__).parent.parent.parent
BUILT: Final = ROOT / ".aws-sam" / "rehearsal"
# Access key of the emulator's root user. Functions do not use it: the emulator gives each function
# the credentials of its role.
_OPERATOR: Final = "test"
_VERSION: Final = 'VERSION: Final = "'
_GRADUAL: Final = "Canary10Percent5Minutes"
# Limits of waiting for a state. They count rounds of the stage's sweep (its scheduled job), because
# on a busy machine everything takes longer. A round takes a minute or more.
_ROUNDS: Final = 10
_STANDSTILL: Final = 900.0  # seconds without any round
_MOST_CHANGES: Final = 60  # changes that remove a stage


class RehearsalFailed(Exception):
    """A step of the rehearsal failed; the message describes the failure."""


def client(service: str, endpoint: str) -> Any:
    """Return a client of the emulator with the operator's credentials."""
    return cloud.client(service, endpoint, key=_OPERATOR)


class Operator:
    """Runs the operator's commands, with a copy of samconfig.toml in `folder`."""

    def __init__(self, endpoint: str, folder: Path) -> None:
        self.endpoint = endpoint
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        self.environment = {
            **kept,
            "HOME": str(folder),
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_REGION": cloud.REGION,
            "AWS_DEFAULT_REGION": cloud.REGION,
            "AWS_ACCESS_KEY_ID": _OPERATOR,
            "AWS_SECRET_ACCESS_KEY": _OPERATOR,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "SAM_CLI_TELEMETRY": "0",
        }
        self._chosen: dict[str, dict[str, str]] = {}

    def choose(self, stage: str, **parameters: str | None) -> None:
        """Set parameters of a stage in the copy of samconfig.toml. None removes a parameter."""
        chosen = {**self._chosen.get(stage, {}), **parameters}
        self._chosen[stage] = {name: value for name, value in chosen.items() if value is not None}
        lines = []
        for name, described in tomllib.loads((ROOT / "samconfig.toml").read_text("utf-8")).items():
            if not isinstance(described, dict):
                lines.append(f"{name} = {described}\n")
                continue
            for command, each in described.items():
                values = dict(each["parameters"])
                values.pop("parameter_overrides", None)
                lines.append(f"[{name}.{command}.parameters]\n")
                lines += [f"{key} = {json.dumps(value)}\n" for key, value in values.items()]
                if command == "deploy":
                    lines.append(f"[{name}.deploy.parameters.parameter_overrides]\n")
                    pairs = self._chosen.get(name, {}).items()
                    lines += [f"{key} = {json.dumps(value)}\n" for key, value in pairs]
        self._config.write_text("".join(lines), "utf-8")

    @property
    def _config(self) -> Path:
        return self.folder / "samconfig.toml"

    def stage(self, name: str) -> stages.Stage:
        """Return a stage as the operator's commands read it."""
        return stages.stage(name, self._config)

    def package(self, template: Path) -> Path:
        """Upload a release's artifacts once for all deployments.

        Return the template that refers to the uploaded artifacts.
        """
        packaged = template.with_name("packaged.yaml")
        options = ["--resolve-s3", "--s3-prefix", "rehearsal"]
        options += ["--template-file", str(template), "--output-template-file", str(packaged)]
        sam = [str(ROOT / ".venv-sam" / "bin" / "sam"), "package", "--region", cloud.REGION]
        self._run([*sam, *options])
        return packaged

    def deploy(self, stage: str, template: Path) -> None:
        """Deploy a stage as `make deploy` does. Raises RehearsalFailed."""
        try:
            self.run("deploy", stage, "-t", str(template))
        finally:
            _grant_batches(self.endpoint)
            _type_values(self.endpoint, self.stage(stage).stack)

    def deploy_earlier(self, stage: str, template: Path, **more: str) -> None:
        """Deploy with `sam deploy` instead of `make deploy`. `more` are further parameters.

        `make deploy` would refuse parameters that template.yaml no longer has. Raises
        RehearsalFailed.
        """
        chosen, file = self.stage(stage), self.folder / f"earlier-{stage}.yaml"
        file.write_text(for_sam({**chosen.parameters, **more}), "ascii")
        sam = [str(ROOT / ".venv-sam" / "bin" / "sam"), "deploy", "--config-env", stage]
        options = ["--config-file", str(self._config), "--template-file", str(template)]
        try:
            self._run([*sam, *options, "--parameter-overrides", f"file://{file}"])
        finally:
            _grant_batches(self.endpoint)
            _type_values(self.endpoint, chosen.stack)

    def prove(self, template: Path, ca_file: Path) -> str:
        """Make a dry run of the proving day; return what it prints. Raises RehearsalFailed."""
        account = client("sts", self.endpoint).get_caller_identity()["Account"]
        command = [sys.executable, "-m", "operations.proving_day", "--account", account]
        command += ["--config", str(self._config), "--dry-run", str(template)]
        try:
            return self._run(command, {"SSL_CERT_FILE": str(ca_file)})
        finally:
            _type_values(self.endpoint, self.stage(proving_day.STAGE).stack)

    def run(self, operation: str, stage: str, *options: str) -> None:
        """Run `python -m operations.OPERATION` for a stage. Raises RehearsalFailed."""
        command = [sys.executable, "-m", f"operations.{operation}", stage]
        self._run([*command, "--config", str(self._config), *options])

    def remove_in_pieces(self, stage: str) -> list[str]:
        """Remove a stage by commands that are each interrupted after one change.

        Return the names of the changes, in order. Raises RehearsalFailed after _MOST_CHANGES.
        """
        command = [sys.executable, "-m", "sandbox.rehearsal.interrupted", stage]
        changes: list[str] = []
        for _ in range(_MOST_CHANGES):
            done = self._done([*command, "--config", str(self._config)])
            if done.returncode != INTERRUPTED:
                self._checked(done)
                return changes
            changes.append(done.stdout.split()[-1])
        raise RehearsalFailed(f"the removal of {stage} does not end: {changes}")

    def pause(self, action: str, stage: str, *options: str) -> None:
        """Run `make stop` or `make start` of a stage. Raises RehearsalFailed."""
        command = [sys.executable, "-m", "operations.pause", action, stage, *options]
        self._run([*command, "--config", str(self._config)])

    def product(self, command: str, product: Mapping[str, str]) -> None:
        """Run `checkout COMMAND` with the product's settings. Raises RehearsalFailed."""
        self._run([sys.executable, "-m", "checkout.cli", command], product)

    def restore(self, *arguments: str, product: Mapping[str, str]) -> str:
        """Run `python -m operations.restore` with the product's settings; return what it prints.

        Raises RehearsalFailed.
        """
        return self._run([sys.executable, "-m", "operations.restore", *arguments], product)

    def _run(self, command: list[str], product: Mapping[str, str] | None = None) -> str:
        return self._checked(self._done(command, product))

    def _done(
        self, command: list[str], product: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env={**self.environment, **(product or {})},
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    @staticmethod
    def _checked(done: subprocess.CompletedProcess[str]) -> str:
        """Return what a command has printed. Raises RehearsalFailed if it failed."""
        if done.returncode:
            raise RehearsalFailed(f"`{' '.join(done.args)}`:\n{done.stdout[-6000:]}")
        return done.stdout


def release(folder: Path, version: str) -> Path:
    """Copy the build as the release `version`, and return its template.

    A function of one release refuses to start with the layer of another release. So the rehearsal
    notices if new code ever runs with an old layer. The default of TrafficShift becomes AllAtOnce,
    because the emulator has no CodeDeploy and passes only defaults to the SAM translator.
    """
    shutil.copytree(BUILT, folder, ignore=_unread)
    product = folder / "CommonLayer" / "python" / "checkout" / "version.py"
    text = product.read_text("utf-8")
    before, _, rest = text.partition(_VERSION)
    _replace(product, f'{before}{_VERSION}{version}"{rest.partition(chr(34))[2]}')
    for entry in folder.glob("*Function/*/*.py"):
        code = entry.read_text("utf-8")
        if "\nhandler" in code:
            check = f'\nimport checkout.version\nassert checkout.version.VERSION == "{version}"\n'
            _replace(entry, code + check)
    template = folder / "template.yaml"
    text = template.read_text("utf-8")
    text = text.replace(f"Default: {_GRADUAL}", "Default: AllAtOnce")
    # The emulator serves only http, and enforces the queues' policy against http. The replacement
    # makes the policy's condition never true.
    text, policies = re.subn(r"(aws:SecureTransport\W+)false", r"\1rehearsed", text)
    if policies != 1:
        raise RehearsalFailed("the template has no policy against plain http, or several")
    template.write_text(text, "utf-8")
    return template


def _unread(folder: str, names: list[str]) -> set[str]:
    """Return the names of the locale files that no page uses, so that they are not copied.

    These files are most of a layer, and the emulator unpacks the layer for each version.
    """
    if not folder.endswith("locale-data"):
        return set()
    return {name for name in names if re.split(r"[_.]", name)[0] not in {"root", *LANGUAGES}}


def _replace(module: Path, text: str) -> None:
    """Write a module and delete its bytecode, because Python does not compare it to the source."""
    module.write_text(text, "utf-8")
    for stale in (module.parent / "__pycache__").glob(f"{module.stem}.*.pyc"):
        stale.unlink()


def outputs(endpoint: str, stack: str) -> dict[str, str]:
    """Return a stack's outputs."""
    [found] = client("cloudformation", endpoint).describe_stacks(StackName=stack)["Stacks"]
    return {each["OutputKey"]: each["OutputValue"] for each in found["Outputs"]}


def apply(endpoint: str, stack: str, file: Path, parameters: Mapping[str, str]) -> dict[str, str]:
    """Create or update a stack, as `aws cloudformation deploy` does; return its outputs."""
    formation = client("cloudformation", endpoint)
    given = [{"ParameterKey": k, "ParameterValue": v} for k, v in parameters.items()]
    request = {"StackName": stack, "TemplateBody": file.read_text("utf-8"), "Parameters": given}
    existing = {each["StackName"] for each in formation.describe_stacks()["Stacks"]}
    change = "update" if stack in existing else "create"
    getattr(formation, f"{change}_stack")(**request)
    formation.get_waiter(f"stack_{change}_complete").wait(
        StackName=stack, WaiterConfig={"Delay": 1, "MaxAttempts": 300}
    )
    return outputs(endpoint, stack)


def delete(endpoint: str, stack: str) -> None:
    """Delete a stack, and wait until it is gone."""
    formation = client("cloudformation", endpoint)
    formation.delete_stack(StackName=stack)
    formation.get_waiter("stack_delete_complete").wait(
        StackName=stack, WaiterConfig={"Delay": 1, "MaxAttempts": 300}
    )


def until(endpoint: str, stack: str, what: str, seen: Callable[[], bool]) -> None:
    """Wait until `seen` returns True.

    Raises RehearsalFailed after ten rounds of the sweep, or _STANDSTILL seconds without a round.
    """
    begun = known = rounds(endpoint, stack)
    moved = time.monotonic()
    while not seen():
        now = rounds(endpoint, stack)
        if now != known:
            known, moved = now, time.monotonic()
        if known - begun > _ROUNDS or time.monotonic() - moved > _STANDSTILL:
            raise RehearsalFailed(f"{stack}: not seen in {known - begun} rounds: {what}")
        time.sleep(1)


def rounds(endpoint: str, stack: str) -> int:
    """Return how many rounds of the stage's sweep have begun, from the log."""
    name = f"/{stack}/expirer"
    lines = client("logs", endpoint).filter_log_events(logGroupName=name)["events"]
    return sum(line["message"].startswith("START") for line in lines)


def _grant_batches(endpoint: str) -> None:
    """Allow sqs:SendMessageBatch to every role that is allowed sqs:SendMessage.

    For a batch, AWS checks the permission sqs:SendMessage, because IAM has no action
    SendMessageBatch. The emulator, however, checks a permission with that name.
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


def _type_values(endpoint: str, stack: str) -> None:
    """Set properties that are numbers or booleans again, with the right type.

    The emulator has set them from the template's parameters as strings. Only this stack's tables
    are changed, because another stack may be changing its own at the same time.
    """
    functions, tables = client("lambda", endpoint), client("dynamodb", endpoint)
    for each in functions.list_event_source_mappings()["EventSourceMappings"]:
        limit = int(each["ScalingConfig"]["MaximumConcurrency"])
        functions.update_event_source_mapping(
            UUID=each["UUID"], ScalingConfig={"MaximumConcurrency": limit}
        )
    existing = tables.list_tables()["TableNames"]
    for name in set(stages.table_names(stack)).intersection(existing):
        protected = tables.describe_table(TableName=name)["Table"]["DeletionProtectionEnabled"]
        tables.update_table(TableName=name, DeletionProtectionEnabled=protected in (True, "true"))


def physical(endpoint: str, stack: str, kind: str) -> dict[str, str]:
    """Return a stack's resources of a type: physical ids by logical id."""
    resources = client("cloudformation", endpoint).describe_stack_resources(StackName=stack)
    return {
        each["LogicalResourceId"]: each["PhysicalResourceId"]
        for each in resources["StackResources"]
        if each["ResourceType"] == kind
    }


def functions(endpoint: str, stack: str) -> dict[str, str]:
    """Return the deployed functions' names by logical id."""
    return physical(endpoint, stack, "AWS::Lambda::Function")


def routes(endpoint: str, stack: str) -> list[str]:
    """Return a line for each route of the deployed HTTP API: the route, function and alias."""
    gateway = client("apigatewayv2", endpoint)
    [api] = physical(endpoint, stack, "AWS::ApiGatewayV2::Api").values()
    names = {name: logical for logical, name in functions(endpoint, stack).items()}
    behind = {}
    for each in gateway.get_integrations(ApiId=api)["Items"]:
        function, _, alias = each["IntegrationUri"].rpartition("function:")[2].partition(":")
        behind[f"integrations/{each['IntegrationId']}"] = f"{names[function]}:{alias}"
    found = gateway.get_routes(ApiId=api)["Items"]
    return sorted(f"{route['RouteKey']:<34} {behind[route['Target']]}" for route in found)


def logs(endpoint: str, stack: str) -> Iterator[str]:
    """Yield the log lines of the deployed functions, for diagnosing a failure."""
    found = client("logs", endpoint)
    for group in found.describe_log_groups(logGroupNamePrefix=f"/{stack}/")["logGroups"]:
        for event in found.filter_log_events(logGroupName=group["logGroupName"])["events"]:
            yield f"{group['logGroupName']}: {event['message'].rstrip()}"
