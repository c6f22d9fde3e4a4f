"""Undo a release: `make undo STAGE=…` moves all functions back to their previous versions.

Every request goes to the version of a function that its alias `live` points to. Before a deployment
moves `live`, the alias `previous` is set to the same version. So after the deployment, `previous`
points to the earlier release. Then older versions are deleted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from operations.stages import Account, Refused, Stage, command, named

LIVE: Final = "live"
PREVIOUS: Final = "previous"
KEPT: Final = 5  # versions of each function


def undo(account: Account, chosen: Stage) -> None:
    """Move each alias `live` to the version before the last deployment. Raises Refused.

    After an interruption, run the command again.
    """
    stack = account.stack(chosen.stack)
    if stack is None:
        raise Refused(f"There is no stack {chosen.stack} in {account.region}.")
    if stack["StackStatus"].endswith("_IN_PROGRESS"):
        raise Refused(
            f"The stack is {stack['StackStatus']}. Cancel the update, which undoes it: "
            f"aws cloudformation cancel-update-stack --stack-name {chosen.stack}"
        )
    now, before = _all(account, chosen.stack, LIVE), _all(account, chosen.stack, PREVIOUS)
    back = {function: version for function, version in before.items() if now[function] != version}
    if not back:
        raise Refused("There is nothing to undo: all functions are at their previous version.")
    for function, version in back.items():
        _set(account, function, LIVE, version)
        print(f"undone    {function}: version {now[function]} → {version}")
    print("The next `make deploy` moves all requests at once.")


def moved(account: Account, stack: str) -> dict[str, str]:
    """Return the version of each alias `live` that does not point to the deployed version."""
    arns = account.resources(stack, "AWS::Lambda::Version").values()
    published = dict(arn.split(":")[-2:] for arn in arns)
    now = _all(account, stack, LIVE)
    return {name: now[name] for name in now if now[name] != published.get(name, now[name])}


@contextmanager
def remembered(account: Account, stack: str) -> Iterator[None]:
    """Set each alias `previous` to the version of `live`, and deploy in the body of `with`.

    `previous` is set before the deployment, because CloudFormation finishes the deployment even if
    this process ends. If the deployment fails or changes nothing, `previous` is set back.
    """
    now, before = _all(account, stack, LIVE), _all(account, stack, PREVIOUS)
    for function, version in now.items():
        _set(account, function, PREVIOUS, version)
    try:
        yield
    except Refused:
        _put_back(account, before)
        raise
    if _all(account, stack, LIVE) == now:
        _put_back(account, before)


def prune(account: Account, stack: str) -> None:
    """Delete old versions. Keep each function's newest KEPT, and all to which an alias points."""
    functions = account.client("lambda")
    pages = functions.get_paginator("list_versions_by_function")
    named = {(*each,) for name in (LIVE, PREVIOUS) for each in _all(account, stack, name).items()}
    for function in account.resources(stack, "AWS::Lambda::Function").values():
        listed = [
            each["Version"]
            for page in pages.paginate(FunctionName=function)
            for each in page["Versions"]
            if each["Version"] != "$LATEST"
        ]
        for version in sorted(listed, key=int)[:-KEPT]:
            if (function, version) not in named:
                functions.delete_function(FunctionName=function, Qualifier=version)


def _all(account: Account, stack: str, alias: str) -> dict[str, str]:
    """Return the version that an alias points to, by function. Leave out functions without one."""
    functions, found = account.client("lambda"), {}
    for function in account.resources(stack, "AWS::Lambda::Function").values():
        try:
            described = functions.get_alias(FunctionName=function, Name=alias)
        except functions.exceptions.ResourceNotFoundException:
            continue
        found[function] = str(described["FunctionVersion"])
    return found


def _put_back(account: Account, before: Mapping[str, str]) -> None:
    for function, version in before.items():
        _set(account, function, PREVIOUS, version)


def _set(account: Account, function: str, alias: str, version: str) -> None:
    functions = account.client("lambda")
    change: dict[str, Any] = {"FunctionName": function, "Name": alias, "FunctionVersion": version}
    try:
        functions.update_alias(**change, RoutingConfig={"AdditionalVersionWeights": {}})
    except functions.exceptions.ResourceNotFoundException:
        functions.create_alias(**change)


def main(arguments: list[str]) -> int:
    """Undo the last deployment of the stage that the arguments name; return the exit status."""
    return command(lambda: undo(Account(), named(arguments)[0]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
