"""The two boundaries of a simulated process, clock and randomness: where turns end and faults are.

A process serves one request at a time, as a Lambda environment does, with its own clock skew and
its own kept tokens. Once it is dead, every call of it raises `Died`, whatever its handlers try.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError, ReadTimeoutError

from open_payments.errors import NotSent, OpenPaymentsError, OutcomeUnknown
from open_payments.transports import Request, Response
from tests.simulation import releases, swarm
from tests.simulation.faults import CALM, Around, Aws, Http, Wider
from tests.simulation.scheduler import Died

if TYPE_CHECKING:
    from tests.simulation.sim_world import SimWorld

BEGINNING: Final = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
WRITES: Final = {"put_item", "update_item", "batch_write_item", "transact_write_items"}
_STRAY_STATUSES: Final = (400, 401, 403, 404, 410, 422)
_BUSY_STATUSES: Final = (408, 409, 425, 429)

# Faults that nothing may be heard of at the server.
_UNSEEN: Final = (
    Http.UNREACHABLE,
    Http.DOWN,
    Http.REFUSED,
    Http.BUSY,
    Http.REQUEST_LOST,
    Http.LATE,
)


class Process:
    """The process of a request. `skew` is in milliseconds."""

    def __init__(self, world: SimWorld, name: str, skew: int) -> None:
        self.world = world
        self.name = name
        self.skew = skew
        self.dead = False
        self.busy = False
        self.later = False  # of a later release
        self.release = releases.TODAYS
        self.sends = 0
        self.writes = 0

    def now(self) -> datetime:
        return moment(self.world.scheduler.now + self.skew)

    def sleep(self, seconds: float) -> None:
        self.pass_turn(round(seconds * 1000))

    def pass_turn(self, milliseconds: int, *, near: str = "") -> None:
        """A switch point: others take their turns, and the process may pause or die. `near` is the
        name of the call to a wallet that it is just before or after.
        """
        if self.dead:
            raise Died
        world = self.world
        pause = world.faults.pause(near)
        if pause:
            world.note(f"{self.name} pauses {pause} ms")
        world.scheduler.sleep(milliseconds + pause)
        if self.dead or world.faults.dies(near):
            if not self.dead:
                world.note(f"{self.name} dies")
            self.dead = True
            raise Died


class SimTransport:
    """`open_payments.Transport` of one process."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def send(self, request: Request, *, timeout: float) -> Response:
        process, world = self._process, self._process.world
        if process.dead:
            raise Died
        process.sends += 1
        world.checker.sending(process, request)
        rotates = world.checker.of_approval(request)
        call = name(request)
        process.pass_turn(world.rng.randrange(5, 80), near=call)
        fault = world.faults.http(call, request.url, world.scheduler.now)
        what = f"{process.name} {label(request)}"
        # Now, because the process may wake much later.
        tokens = world.checker.refunds.tokens() if rotates else {}
        if fault is None:
            answer = world.deliver(request, what)
        else:
            answer = self._faulty(request, what, fault, timeout)
        process.pass_turn(world.rng.randrange(5, 80), near=call)
        world.checker.answered(request, answer)
        if isinstance(answer, Response):
            if answer.status == 201 and fault is not Http.GARBLED:
                world.checker.accepted(request)
            if fault is not Http.GARBLED:
                world.checker.has_read(request, answer)
            if rotates and answer.status == 200 and b"access_token" in answer.body:
                world.checker.rotated(rotates, tokens)
            return answer
        raise answer

    def _faulty(  # noqa: C901 - one case a fault
        self, request: Request, what: str, fault: Http, timeout: float
    ) -> Response | OpenPaymentsError:
        process, world = self._process, self._process.world
        what = f"{what} [{fault.value}]"
        if fault in _UNSEEN:
            world.note(what)
        match fault:
            case Http.UNREACHABLE:
                return NotSent("unreachable")
            case Http.DOWN:
                status = world.faults.rates.down_status
                return Response(status, {}, b"no") if status else NotSent("unreachable")
            case Http.REFUSED:
                status = _STRAY_STATUSES[world.rng.randrange(len(_STRAY_STATUSES))]
                return Response(status, {}, b"no")
            case Http.BUSY:
                if world.rng.random() < 0.5:
                    self._deliver_late(request, what)
                status = _BUSY_STATUSES[world.rng.randrange(len(_BUSY_STATUSES))]
                return Response(status, {}, b"later")
            case Http.SLOW:
                answer = world.deliver(request, what)
                process.pass_turn(world.rng.randrange(round(timeout * 1000)))
                return answer
            case Http.REQUEST_LOST | Http.LATE:
                if fault is Http.LATE:
                    self._deliver_late(request, what)
                process.pass_turn(round(timeout * 1000))
                return OutcomeUnknown("no answer")
            case Http.ANSWER_LOST:
                world.deliver(request, what)
                return OutcomeUnknown("the connection broke")
            case Http.HANGS:
                world.deliver(request, what)
                process.pass_turn(round(timeout * 1000))
                return OutcomeUnknown("no answer in time")
            case Http.FAILED:
                if world.rng.random() < 0.5:
                    world.deliver(request, what)
                return Response(502, {}, b"Bad Gateway")
            case Http.GARBLED:
                answer = world.deliver(request, what)
                return Response(answer.status, {}, b"{") if isinstance(answer, Response) else answer
            case Http.DOUBLED:
                return self._doubled(request, what)

    def _doubled(self, request: Request, what: str) -> Response | OpenPaymentsError:
        process, world = self._process, self._process.world
        world.checker.doubling(request)
        first = world.deliver(request, what)
        if world.rng.random() < 0.5:
            self._deliver_late(request, what)
            return first
        process.pass_turn(world.rng.randrange(0, 50))
        second = world.deliver(request, what)
        return first if world.rng.random() < 0.5 else second

    def _deliver_late(self, request: Request, what: str) -> None:
        world = self._process.world
        world.scheduler.later(world.faults.late(), lambda: void(world.deliver(request, what)))


class SimDynamo:
    """The used part of boto3's DynamoDB client, for one process, over the tables."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        return lambda **request: self._call(operation, request)

    def _call(self, operation: str, request: dict[str, Any]) -> Any:  # noqa: C901 - as above
        process, world = self._process, self._process.world
        if process.dead:
            raise Died
        writes = operation in WRITES
        process.writes += writes
        world.checker.calling_aws(operation)
        if operation == "get_item" and not request.get("ConsistentRead"):
            world.checker.fail("reads_are_strong", request["TableName"])
        process.pass_turn(world.rng.randrange(1, 8))
        if world.crosser is not None:
            world.crosser.before(process, operation, request)
        fault = world.faults.aws(reads=not writes)
        if fault is None and self._overloaded(writes):
            fault = Aws.THROTTLED
        if process.later and writes and swarm.of_a_later_release(request):
            world.faults.happened(Wider.LATER)
        what, by = f"{process.name} {operation}", world.scheduler.actor
        result: Any = None
        error: Exception | None = None
        if operation == "transact_write_items" and world.denied(by):
            world.note(f"{what} [{Around.DENIED.value}]")
            world.checker.store_failed()
            raise ClientError({"Error": {"Code": "AccessDeniedException"}}, operation)
        if fault in (Aws.THROTTLED, Aws.CONFLICT):
            world.note(f"{what} [{fault.value}]")
            error = _throttled(operation) if fault is Aws.THROTTLED else _conflict(operation)
        elif fault in (Aws.REQUEST_LOST, Aws.LATE):
            world.note(f"{what} [{fault.value}]")
            if fault is Aws.LATE:
                world.scheduler.later(
                    world.faults.late(), lambda: void(_late(world, operation, request, what, by))
                )
            process.pass_turn(4_000)
            error = ReadTimeoutError(endpoint_url="dynamodb")
        else:
            suffix = f" [{fault.value}]" if fault else ""
            try:
                result = self._done(operation, request, what + suffix, by)
                if fault is Aws.SEEN_OWN:
                    process.pass_turn(world.rng.randrange(20, 4_000))
                    result = world.apply(operation, request, what + " again", by)
            except ClientError as refused:
                error = refused
            if fault is Aws.ANSWER_LOST:
                error = ReadTimeoutError(endpoint_url="dynamodb")
        process.pass_turn(world.rng.randrange(1, 8))
        if error is not None:
            world.checker.store_failed()
            raise error
        return result

    def _overloaded(self, writes: bool) -> bool:
        world = self._process.world
        overloaded = writes and world.scheduler.now in world.swarm.throttled
        if not overloaded or world.faults.rates is CALM:
            return False
        world.faults.happened(Wider.OVERLOADED)
        return True

    def _done(self, operation: str, request: dict[str, Any], what: str, by: str) -> Any:
        """Return AWS's answer, which may have done a part of a batch only."""
        world, name = self._process.world, "UnprocessedItems"
        partial = 0 if world.faults.rates is CALM else world.swarm.partial
        batch = operation.startswith("batch_")
        if not (batch and partial and world.wide.random() < partial):
            return world.apply(operation, request, what, by)
        ((table, asked),) = request["RequestItems"].items()
        each = asked
        if operation == "batch_get_item":
            name, each = "UnprocessedKeys", asked["Keys"]
        some = world.wide.randrange(len(each))
        now, later = each[:some], each[some:]
        if operation == "batch_get_item":
            left: Any = {**asked, "Keys": later}
            now = {**asked, "Keys": now}
        else:
            left = later
        world.faults.happened(Wider.PARTIAL)
        answer: dict[str, Any] = {"Responses": {table: []}}
        if some:
            answer = world.apply(operation, {"RequestItems": {table: now}}, f"{what} in part", by)
        else:
            world.note(f"{what} [nothing done]")
            world.checker.store_failed()
        return {**answer, name: {table: left}}


def moment(milliseconds: int) -> datetime:
    return BEGINNING + timedelta(milliseconds=milliseconds)


def name(request: Request) -> str:
    """Method and path without ids: what faults are focused on."""
    parts = request.url.split("?")[0].split("/")[3:]
    return f"{request.method} {'/'.join(part for part in parts if len(part) < 30)}"


def label(request: Request) -> str:
    """Method and the path's telling part."""
    parts = request.url.split("?")[0].split("/")[3:]
    shown = [part if len(part) < 30 else part[:4] for part in parts]
    return f"{request.method} /{'/'.join(shown)}"


def void(_: object) -> None:
    """For callbacks whose result nobody waits for."""


def _late(world: SimWorld, operation: str, request: dict[str, Any], what: str, by: str) -> object:
    try:
        return world.apply(operation, request, f"{what} [arrives]", by)
    except ClientError as refused:
        return refused


def _throttled(operation: str) -> ClientError:
    error = {"Code": "ThrottlingException", "Message": "Rate exceeded"}
    return ClientError({"Error": error, "ResponseMetadata": {"HTTPStatusCode": 400}}, operation)


def _conflict(operation: str) -> ClientError:
    if operation != "transact_write_items":
        error = {"Code": "TransactionConflictException", "Message": "conflict"}
        return ClientError({"Error": error}, operation)
    error = {"Code": "TransactionCanceledException", "Message": "conflict"}
    reasons = [{"Code": "TransactionConflict"}, {"Code": "None"}]
    return ClientError({"Error": error, "CancellationReasons": reasons}, operation)
