"""Deploy a stage: `make deploy STAGE=…`, after `sam build`.

Each deployment passes all parameters, so that the stack has the values of samconfig.toml.

A first deployment takes two steps. The first step creates the tables without deletion protection.
With protection, DynamoDB would refuse to delete the tables, so a failed first deployment could not
be rolled back. The second step protects the tables. Finally the stack itself is protected.

The simulated wallets of a test stage have a stack of their own (operations/test-wallets.yaml).

After `make undo`, a deployment does not shift traffic gradually but moves all requests at once,
because CodeDeploy refuses an alias that it has not moved itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from operations import preflight, versions
from operations.stages import ROOT, Account, Refused, Stage, command, named
from sandbox.template import resources

SAM: Final = ROOT / ".venv-sam" / "bin" / "sam"
WALLETS: Final = ROOT / ".aws-sam" / "test-wallets" / "template.yaml"
# A stack policy keeps an update from replacing or deleting these.
KEPT: Final = ("AWS::DynamoDB::Table", "AWS::KMS::Key")


def deploy(account: Account, chosen: Stage, more: Sequence[str] = ()) -> None:
    """Check, deploy and protect a stage. `more` are options of `sam deploy`. Raises Refused."""
    preflight.run(account, chosen)
    formation = account.client("cloudformation")
    found = _usable(account, chosen.stack)
    if found is None and chosen.protected:
        sam(account, chosen, *more, overrides={"DeletionProtection": "false"})
    if chosen.protected:
        policy = json.dumps(stack_policy())
        formation.set_stack_policy(StackName=chosen.stack, StackPolicyBody=policy)
    moved = versions.moved(account, chosen.stack) if found else {}
    overrides = {}
    if moved:
        # A new revision makes SAM publish a new version of each function and move each alias to it.
        overrides = {"TrafficShift": "AllAtOnce", "Revision": revision(chosen, moved)}
    before = _wallets_of_before(account, chosen) if found and chosen.wallets else None
    with versions.remembered(account, chosen.stack) if found else nullcontext():
        sam(account, chosen, *more, overrides=overrides)
    if chosen.wallets:
        deploy_wallets(account, chosen)
    if before:
        account.client("dynamodb").put_item(TableName=chosen.wallets, Item=before)
    versions.prune(account, chosen.stack)
    if chosen.protected:
        formation.update_termination_protection(
            StackName=chosen.stack, EnableTerminationProtection=True
        )


def _usable(account: Account, name: str) -> dict[str, Any] | None:
    """Return a stack, or None. A stack whose creation failed is empty, and is deleted first."""
    found, formation = account.stack(name), account.client("cloudformation")
    if found is None or found["StackStatus"] != "ROLLBACK_COMPLETE":
        return found
    print(f"The stack {name} is empty, because its creation failed. Deleting it.")
    formation.delete_stack(StackName=name)
    formation.get_waiter("stack_delete_complete").wait(StackName=name)
    return None


def _wallets_of_before(account: Account, chosen: Stage) -> dict[str, Any] | None:
    """Return the record of the simulated wallets from the stage's own stack, or None.

    Up to version 0.1.0, the wallets' table was a part of that stack. The deployment deletes it.
    """
    tables = account.resources(chosen.stack, "AWS::DynamoDB::Table")
    if "TestWalletsTable" not in tables:
        return None
    found = account.client("dynamodb").scan(TableName=tables["TestWalletsTable"])["Items"]
    return found[0] if found else None


def deploy_wallets(account: Account, chosen: Stage) -> None:
    """Deploy the simulated wallets of a test stage, below the stage's address. Raises Refused."""
    _usable(account, chosen.wallets)
    outputs = account.outputs(chosen.stack)
    parameters = {name: outputs[name] for name in ("BaseUrl", "HttpApi", "Layers")}
    parameters |= {name: chosen.parameters[name] for name in ("Arch", "PermissionsBoundary")}
    options = ("--template-file", str(WALLETS), "--stack-name", chosen.wallets)
    with _begun(account, chosen, options, parameters) as running:
        _finish(running)


def sam(
    account: Account, chosen: Stage, *options: str, overrides: Mapping[str, str] | None = None
) -> None:
    """Run `sam deploy` with the stage's parameters. Raises Refused."""
    with begun(account, chosen, *options, overrides=overrides) as running:
        _finish(running)


def _finish(running: subprocess.Popen[bytes]) -> None:
    if running.wait():
        raise Refused("The deployment failed. Its events are printed above.")


def begun(
    account: Account, chosen: Stage, *options: str, overrides: Mapping[str, str] | None = None
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """Begin `sam deploy` with all parameters, and yield its process."""
    parameters = {**chosen.parameters, **(overrides or {})}
    parameters["Revision"] = parameters["Revision"] or revision(chosen)
    return _begun(account, chosen, options, parameters)


@contextmanager
def _begun(
    account: Account, chosen: Stage, options: Sequence[str], parameters: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "parameters.yaml"
        file.write_text(for_sam(parameters), "ascii")
        command = [str(SAM), "deploy", "--config-file", str(chosen.config)]
        command += ["--config-env", chosen.name, *options]
        yield subprocess.Popen(
            [*command, "--parameter-overrides", f"file://{file}"],
            env={**os.environ, "AWS_DEFAULT_REGION": account.region, "SAM_CLI_TELEMETRY": "0"},
            cwd=ROOT,
            stdin=subprocess.DEVNULL,  # SAM CLI cannot wait for an answer
        )


def for_sam(parameters: Mapping[str, str]) -> str:
    """Return the text of a parameters file from which SAM CLI reads exactly these values."""
    # SAM CLI removes the quotes of a value in a file twice.
    quoted = {name: _quoted(_quoted(value)) for name, value in parameters.items()}
    return yaml.safe_dump(quoted, default_style='"')


def _quoted(value: str) -> str:
    """Quote for SAM CLI, which removes the quotes, and backslashes before a blank or a quote."""
    escaped = re.sub(r"([ \"'])", r"\\\1", value)
    return f'"{escaped}"'


def revision(chosen: Stage, moved: Mapping[str, str] | None = None) -> str:
    """Return a hash of all parameters and moved aliases. A new hash publishes new versions."""
    told = [*sorted(chosen.parameters.items()), *sorted((moved or {}).items())]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:12]


def stack_policy() -> dict[str, Any]:
    """Return a stack policy that forbids replacing or deleting a table, the key or the secret."""
    kept = [name for kind in KEPT for name in resources(kind)]
    names = [f"LogicalResourceId/{name}" for name in (*kept, "EncryptionKey")]
    everything = {"Principal": "*", "Action": "Update:*", "Resource": "*"}
    never = {"Principal": "*", "Action": ["Update:Replace", "Update:Delete"], "Resource": names}
    return {"Statement": [{"Effect": "Allow", **everything}, {"Effect": "Deny", **never}]}


def main(arguments: list[str]) -> int:
    """Deploy the stage that the arguments name; return the exit status."""

    def act() -> None:
        chosen, more = named(arguments)
        deploy(Account(), chosen, more)

    return command(act)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
