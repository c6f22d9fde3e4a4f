"""Stop a stage before a restore (`make stop STAGE=…`) and start it again (`make start STAGE=…`).

`stop` disables the event source mappings of the queues and then the schedules. It then sets each
function's reserved concurrency to 0, so that no function can start. The mappings come first,
because a message whose function is throttled counts as failed and ends as a dead letter. Messages
wait in their queues instead. The previous settings are stored in the Systems Manager parameter
`/STACK/stopped`, and `start` restores them. Both commands can be repeated after an interruption.

If the table of the sessions was replaced meanwhile, `start` requires `--refunds=held` or
`--refunds=complete`. `held` confirms that `checkout hold-refunds` has run. `complete` confirms that
nothing was written to the old table after the moment of the restored copy.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from operations.stages import Account, Refused, Stage, command, named
from sandbox.template import resources

LONGEST: Final = max(each["Timeout"] for each in resources("AWS::Serverless::Function").values())
_LOOK_EVERY: Final = 2.0  # seconds


def stop(account: Account, chosen: Stage, sleep: Callable[[float], None] = time.sleep) -> None:
    """Stop all processing, and wait until no function runs any more. Raises Refused."""
    functions, scheduler = account.client("lambda"), account.client("scheduler")
    before = stopped(account, chosen.stack) or _remember(account, chosen)
    for mapping in before["mappings"]:
        functions.update_event_source_mapping(UUID=mapping, Enabled=False)
    for mapping in before["mappings"]:
        while functions.get_event_source_mapping(UUID=mapping)["State"] != "Disabled":
            sleep(_LOOK_EVERY)
    for schedule in before["schedules"]:
        set_state(scheduler, schedule, "DISABLED")
    for function in before["functions"]:
        functions.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=0)
    print(f"no function starts any more; waiting {LONGEST} s for those that run …", flush=True)
    sleep(LONGEST)
    print(f"stopped   {chosen.stack}; `make start STAGE={chosen.name}` starts it again")


def start(account: Account, chosen: Stage, refunds: str | None = None) -> None:
    """Restore the settings that `stop` has changed. Raises Refused."""
    functions, scheduler = account.client("lambda"), account.client("scheduler")
    before = stopped(account, chosen.stack)
    if before is None:
        raise Refused(f"{chosen.stack} is not stopped.")
    # If an earlier release stopped the stage, the time of the table's creation was not stored.
    if refunds is None and before.get("table") not in (None, _created(account, chosen)):
        raise Refused(
            "The table of the sessions was replaced, so refunds in it may have been paid already. "
            "Run `checkout hold-refunds`, then `make start REFUNDS=held`."
        )
    for function, reserved in before["functions"].items():
        if reserved is None:
            functions.delete_function_concurrency(FunctionName=function)
        else:
            functions.put_function_concurrency(
                FunctionName=function, ReservedConcurrentExecutions=reserved
            )
    for mapping, enabled in before["mappings"].items():
        functions.update_event_source_mapping(UUID=mapping, Enabled=enabled)
    for schedule, state in before["schedules"].items():
        set_state(scheduler, schedule, state)
    forget(account, chosen.stack)
    print(f"started   {chosen.stack}")


def stopped(account: Account, stack: str) -> dict[str, Any] | None:
    """Return the settings from before the stage was stopped, or None if it is not stopped."""
    parameters = account.client("ssm")
    try:
        found = parameters.get_parameter(Name=_place(stack))["Parameter"]["Value"]
    except parameters.exceptions.ParameterNotFound:
        return None
    before: dict[str, Any] = json.loads(found)
    return before


def forget(account: Account, stack: str) -> None:
    """Delete the record of the previous settings."""
    account.client("ssm").delete_parameter(Name=_place(stack))


def set_state(scheduler: Any, name: str, state: str) -> None:
    """Enable or disable a schedule; its other settings stay."""
    found = scheduler.get_schedule(Name=name)
    kept = ("Description", "FlexibleTimeWindow", "Name", "ScheduleExpression", "Target")
    scheduler.update_schedule(**{key: found[key] for key in kept if key in found}, State=state)


def _remember(account: Account, chosen: Stage) -> dict[str, Any]:
    """Store the current settings before the first change. Raises Refused without a stack."""
    account.outputs(chosen.stack)
    functions, scheduler = account.client("lambda"), account.client("scheduler")

    def of(kind: str, read: Callable[[str], Any]) -> dict[str, Any]:
        return {name: read(name) for name in account.resources(chosen.stack, kind).values()}

    before = {
        "functions": of(
            "AWS::Lambda::Function",
            lambda name: functions.get_function_concurrency(FunctionName=name).get(
                "ReservedConcurrentExecutions"
            ),
        ),
        "mappings": of(
            "AWS::Lambda::EventSourceMapping",
            lambda uuid: (
                functions.get_event_source_mapping(UUID=uuid)["State"] in ("Enabled", "Enabling")
            ),
        ),
        "schedules": of(
            "AWS::Scheduler::Schedule", lambda name: scheduler.get_schedule(Name=name)["State"]
        ),
        "table": _created(account, chosen),
    }
    account.client("ssm").put_parameter(
        Name=_place(chosen.stack), Type="String", Value=json.dumps(before)
    )
    return before


def _created(account: Account, chosen: Stage) -> float:
    """Return when the sessions' table was created (Unix time). A restore changes this time."""
    name = f"{chosen.stack}-checkout_sessions"
    found = account.client("dynamodb").describe_table(TableName=name)["Table"]
    created: float = found["CreationDateTime"].timestamp()
    return created


def _place(stack: str) -> str:
    return f"/{stack}/stopped"


def main(arguments: list[str]) -> int:
    """Stop or start the stage that the arguments name; return the exit status."""

    def act() -> None:
        chosen, rest = named(arguments[1:])
        if arguments[0] == "stop":
            return stop(Account(), chosen)
        parser = argparse.ArgumentParser()
        parser.add_argument("--refunds", choices=["held", "complete"])
        return start(Account(), chosen, parser.parse_args(rest).refunds)

    return command(act)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
