"""Deploy a stage: `make deploy STAGE=…`, after `sam build`.

A first deployment is made in two steps. DynamoDB refuses to delete a protected table, so that a
first step with protection could not be rolled back. The second step protects the tables; then the
stack itself is protected.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from operations import preflight
from operations.stages import ROOT, Account, Refused, Stage, command, named

SAM: Final = ROOT / ".venv-sam" / "bin" / "sam"


def deploy(account: Account, chosen: Stage, more: Sequence[str] = ()) -> None:
    """Check, deploy and protect. `more` are options of `sam deploy`. Raises Refused."""
    preflight.run(account, chosen)
    found = account.stack(chosen.stack)
    if found is not None and found["StackStatus"] == "ROLLBACK_COMPLETE":
        formation = account.client("cloudformation")
        print("The stack holds nothing, because its creation failed; deleting it.")
        formation.delete_stack(StackName=chosen.stack)
        formation.get_waiter("stack_delete_complete").wait(StackName=chosen.stack)
        found = None
    if found is None and chosen.protected:
        sam(account, chosen, *more, overrides={"DeletionProtection": "false"})
    # Said each time: SAM CLI keeps a stack's last value of a parameter that is not named.
    sam(account, chosen, *more, overrides={"DeletionProtection": str(chosen.protected).lower()})
    if chosen.protected:
        account.client("cloudformation").update_termination_protection(
            StackName=chosen.stack, EnableTerminationProtection=True
        )


def sam(
    account: Account, chosen: Stage, *options: str, overrides: dict[str, str] | None = None
) -> None:
    """Run `sam deploy` with the stage's parameters. Raises Refused."""
    parameters = {"Revision": revision(chosen), **chosen.chosen, **(overrides or {})}
    pairs = [f"{name}={value}" for name, value in parameters.items()]
    command = [str(SAM), "deploy", "--config-file", str(chosen.config)]
    command += ["--config-env", chosen.name, *options]
    done = subprocess.run(
        [*command, "--parameter-overrides", *pairs],
        env={**os.environ, "AWS_DEFAULT_REGION": account.region, "SAM_CLI_TELEMETRY": "0"},
        cwd=ROOT,
        stdin=subprocess.DEVNULL,  # it asks nothing
        check=False,
    )
    if done.returncode:
        raise Refused("The deployment failed; its events are above.")


def revision(chosen: Stage) -> str:
    """Return a text that changes with the stage's parameters, so that versions change with them."""
    return hashlib.sha256(repr(sorted(chosen.chosen.items())).encode()).hexdigest()[:12]


def main(arguments: list[str]) -> int:
    """Deploy the stage that the arguments name; return the exit status."""

    def act() -> None:
        chosen, more = named(arguments)
        deploy(Account(), chosen, more)

    return command(act)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
