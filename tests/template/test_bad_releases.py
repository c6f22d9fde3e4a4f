"""A release that breaks one step of a purchase goes beyond a threshold of an alarm.

The routes and their numbers are those of the purchase that benchmarks/cost.py counts, and what a
request counts is what the real handlers send. The requests of each minute come evenly.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pytest
from fastapi.routing import APIRoute
from starlette.routing import Match

import api.routes
import pay.routes
from benchmarks import cost
from checkout.domain.ground.errors import Unavailable
from open_payments.transports import Request, Response
from sandbox.template import resources, template
from tests.support.deployment import Deployment

ALARMS = resources("AWS::CloudWatch::Alarm")
FUNCTIONS = {"api": "ApiFunction", "pay": "PayFunction"}
ROUTERS = {
    "api": (api.routes.router, api.routes.clients_router),
    "pay": (pay.routes.router,),
}
POLL, SUBMIT = "GET /pay/{session_id}/status", "POST /pay/{session_id}/wallet"
Values = Mapping[str, list[float]]  # of a request's metrics
Samples = dict[str, list[float]]  # of a minute: the sum of each metric, and how many they are


@dataclass(frozen=True)
class Asked:
    """A request of the counted purchase, with the metrics that it sent."""

    function: str
    route: str
    event: dict[str, Any] = field(compare=False, hash=False)
    sent: Values = field(compare=False, hash=False)


def route_of(function: str, event: dict[str, Any]) -> str:
    http = event["requestContext"]["http"]
    scope = {"type": "http", "headers": [], **{name: http[name] for name in ("method", "path")}}
    [path] = {
        route.path
        for router in ROUTERS[function]
        for route in router.routes
        if isinstance(route, APIRoute) and route.matches(dict(scope))[0] is Match.FULL
    }
    return f"{http['method']} {path}"


def metrics(lines: str) -> Values:
    """Return the values of the metrics by stack that these lines send."""
    found: dict[str, list[float]] = defaultdict(list)
    for line in map(json.loads, lines.splitlines()):
        for sent in line.get("_aws", {}).get("CloudWatchMetrics", ()):
            if sent["Dimensions"] == [["stack"]]:
                for name in (each["Name"] for each in sent["Metrics"]):
                    found[name] += line[name]
    return found


@dataclass(frozen=True)
class Counted:
    """The requests of a purchase that is paid, and of a cart that is left."""

    deployed: Deployment
    paid: tuple[Asked, ...]
    left: tuple[Asked, ...]


@cache
def counted() -> Counted:
    with cost._logging():
        observed = cost.Observed()
        deployed, asked = observed.deployed, list[Asked]()
        answer = deployed.answer

        def noted(function: str, event: dict[str, Any]) -> dict[str, Any]:
            lines: Any = sys.stdout
            begun = len(lines.getvalue())
            answered = answer(function, event)
            sent = metrics(lines.getvalue()[begun:])
            asked.append(Asked(function, route_of(function, event), event, sent))
            return answered

        cost.checkout(observed, 1)  # warm-up
        deployed.world.clock.pass_time(60)
        deployed.answer = noted  # type: ignore[method-assign]
        cost.checkout(observed, 2)
        paid = tuple(asked)
        asked.clear()
        cost.left(observed, 3)
        deployed.answer = answer  # type: ignore[method-assign]
        return Counted(deployed, paid, tuple(asked))


def routes() -> list[tuple[str, str]]:
    return list(dict.fromkeys((each.function, each.route) for each in counted().paid))


def repeated(route: tuple[str, str]) -> bool:
    """Return whether the purchase goes on without an answer, because it is asked again."""
    return route[1] == POLL or route[1].endswith("/jwks.json")


def sent_by(route: tuple[str, str], error: Exception) -> Values:
    """Return what the real handler of a route sends if its table raises this error."""
    deployed = counted().deployed
    [*_, asked] = [each for each in counted().paid if (each.function, each.route) == route]

    def fault(name: str, request: dict[str, Any]) -> None:
        raise error

    lines = io.StringIO()
    deployed.world.clock.pass_time(120)  # no merchant is remembered
    deployed.dynamo.fault = fault
    try:
        with cost._logging(), contextlib.redirect_stdout(lines):
            status = deployed.answer(asked.function, asked.event)["statusCode"]
    finally:
        deployed.dynamo.fault = None
    assert status >= 500, (route, status)
    return metrics(lines.getvalue())


def with_a_wrong_signature() -> Values:
    """Return what the submission of a wallet sends if every signature is wrong."""
    deployed = Deployment()
    wallets = deployed.world.transport.network

    def handle(request: Request) -> Response:
        headers = {
            name: re.sub(":.", ":A" if ":A" not in value else ":B", value, count=1)
            if name.lower() == "signature"
            else value
            for name, value in request.headers.items()
        }
        return wallets.handle(replace(request, headers=headers))

    deployed.world.transport.network = type("Wrong", (), {"handle": staticmethod(handle)})()
    lines = io.StringIO()
    session = deployed.created()
    with cost._logging(), contextlib.redirect_stdout(lines):
        assert deployed.submit(session).status == 424
    return metrics(lines.getvalue())


# --- what fails ---


@dataclass(frozen=True)
class Fault:
    """What becomes of a request: `status` at API Gateway, whether its function fails, its metrics.

    `of` are the requests that it happens to: a route, or all of a function.
    """

    of: Callable[[tuple[str, str]], bool]
    status: int
    sent: Values = field(default_factory=dict, compare=False)
    dies: bool = False
    times: int = 1  # as often the customer tries


def at(route: tuple[str, str]) -> Callable[[tuple[str, str]], bool]:
    return lambda asked: asked == route


def within(function: str) -> Callable[[tuple[str, str]], bool]:
    return lambda asked: asked[0] == function


@dataclass(frozen=True)
class Traffic:
    """`rate` purchases a minute come with the carts that are left, and `share` meet the fault."""

    share: float
    rate: float
    conversion: float
    minutes: int

    @property
    def canary(self) -> bool:
        return self.minutes == 5


QUIET, BUSY = 6, 6_000  # the first is the peak of a shop with a thousand a day
CANARY = [Traffic(0.1, rate, paid, 5) for rate in (QUIET, BUSY) for paid in (0.3, 1)]
FULL = [Traffic(1, rate, paid, 60) for rate in (1, BUSY) for paid in (0.3, 1)]


def requests(fault: Fault, traffic: Traffic) -> Iterable[tuple[Asked, float, float]]:
    """Yield the requests of a minute with how many succeed and fail. Who meets a fault stops."""
    found = counted()
    for cart, rate in (
        (found.paid, traffic.rate),
        (found.left, traffic.rate * (1 / traffic.conversion - 1)),
    ):
        going = rate
        for each in cart:
            route = (each.function, each.route)
            failing = going * traffic.share if fault.of(route) else 0.0
            yield each, going - failing, failing * fault.times
            if not repeated(route):
                going -= failing


def minutes(fault: Fault, traffic: Traffic) -> list[Samples]:
    """Return the samples of all metrics, by minute. A metric of AWS is named with its dimension."""
    found: list[Samples] = [defaultdict(lambda: [0, 0]) for _ in range(traffic.minutes)]
    for asked, well, ill in requests(fault, traffic):
        own = FUNCTIONS[asked.function]
        good = {**asked.sent, "5xx": [0.0], "4xx": [0.0], f"Errors {own}": [0.0]}
        bad = {
            **fault.sent,
            "5xx": [float(fault.status >= 500)],
            "4xx": [float(400 <= fault.status < 500)],
            "RequestsThrottled": [1.0] if fault.status == 429 else [],
            f"Errors {own}": [float(fault.dies)],
        }
        for rate, samples in ((well, good), (ill, bad)):
            for minute, into in enumerate(found):
                times = int(rate * (minute + 1) + 0.5) - int(rate * minute + 0.5)
                for name, values in samples.items():
                    into[name][0] += sum(values) * times
                    into[name][1] += len(values) * times
    return found


def goes_off(name: str, found: list[Samples]) -> bool:
    """Return whether an alarm goes off in these minutes."""
    alarm = ALARMS[name]
    metric = alarm["MetricName"]
    if metric == "Errors":
        metric += f" {alarm['Dimensions'][0]['Value']['Ref']}"
    together = alarm["Period"] // 60
    periods = [found[at : at + together] for at in range(0, len(found), together)]
    sums = [[each.get(metric, (0, 0)) for each in some] for some in periods]
    bad = [_beyond(alarm, *map(sum, zip(*some, strict=True))) for some in sums]
    of = int(alarm["EvaluationPeriods"])
    windows = [bad[max(0, end - of) : end] for end in range(1, len(bad) + 1)]
    return any(sum(each) >= int(alarm.get("DatapointsToAlarm", of)) for each in windows)


def _beyond(alarm: dict[str, Any], total: float, values: float) -> bool:
    if not values:
        return bool(alarm["TreatMissingData"] == "breaching")
    found = {"Sum": total, "Average": total / values}[alarm["Statistic"]]
    limit = float(alarm["Threshold"])
    return {
        "GreaterThanThreshold": found > limit,
        "GreaterThanOrEqualToThreshold": found >= limit,
        "LessThanOrEqualToThreshold": found <= limit,
    }[alarm["ComparisonOperator"]]


WATCHED = {  # by requests; the others watch the sweep, the queues and the keys
    *("AnswersFail", "UnforeseenErrors", "RequestsFail", "ApiFails", "PayFails", "SessionsFail"),
    *("NobodyPays", "RequestsRefused", "RequestsThrottled"),
}


def taking_back() -> set[str]:
    """Return the alarms that take an upgrade of the API or the pages back."""
    functions = resources("AWS::Serverless::Function")
    each = [template()["Globals"]["Function"], *(functions[name] for name in FUNCTIONS.values())]
    found = [alarm["Ref"] for one in each for alarm in one["DeploymentPreference"]["Alarms"]]
    return {name.removesuffix("Alarm") for name in found}


@cache
def seen(fault: Fault, traffic: Traffic) -> frozenset[str]:
    """Return the alarms that go off, in a canary those that take the release back."""
    found = minutes(fault, traffic)
    asked = WATCHED & taking_back() if traffic.canary else WATCHED
    return frozenset(name for name in asked if goes_off(f"{name}Alarm", found))


def test_without_a_fault_no_alarm_goes_off() -> None:
    healthy = Fault(lambda route: False, 200)
    assert [seen(healthy, traffic) for traffic in (*CANARY, *FULL)] == [frozenset()] * 8


@cache
def faults() -> dict[str, Fault]:
    """Return each fault of a release that must be taken back, and told if it was not."""
    found = {}
    for route in routes():
        name = f"{route[0]}: {route[1]}"
        found[f"{name} has a bug"] = Fault(at(route), 500, sent_by(route, RuntimeError("bug")))
        unavailable = Unavailable("The data store is not answering.")
        found[f"{name} is unavailable"] = Fault(at(route), 503, sent_by(route, unavailable))
        found[f"{name} is killed"] = Fault(at(route), 500, dies=True)
    for function in FUNCTIONS:
        found[f"{function} does not start"] = Fault(within(function), 500, dies=True)
    found["each signature is wrong"] = Fault(at(("pay", SUBMIT)), 424, with_a_wrong_signature())
    return found


@pytest.mark.parametrize("traffic", [*CANARY, *FULL], ids=str)
def test_a_release_in_which_a_route_fails_goes_beyond_a_threshold(traffic: Traffic) -> None:
    assert len(routes()) >= 8
    unseen = [name for name, fault in faults().items() if not seen(fault, traffic)]
    assert unseen == []


def test_a_bug_that_every_tenth_cart_meets_takes_a_release_back() -> None:
    tenth = Traffic(0.01, BUSY, 0.3, 5)
    unseen = [name for name, fault in faults().items() if "bug" in name and not seen(fault, tenth)]
    assert unseen == []


@cache
def refused() -> dict[str, Fault]:
    """Return what no canary can see: a step of the purchase that refuses everybody."""
    steps = ("POST /api/checkout/sessions", SUBMIT, "GET /pay/{session_id}/grant/callback")
    found = {route[1]: Fault(at(route), 400) for route in routes() if route[1] in steps}
    assert set(found) == set(steps)
    return found


# 500 customers a minute get through; each of the others tries four times.
CROWD = Fault(at(("pay", SUBMIT)), 429, times=4)


def test_if_nobody_can_pay_somebody_is_told() -> None:
    unseen = [
        (name, traffic)
        for name, fault in refused().items()
        for traffic in FULL
        if not seen(fault, traffic)
    ]
    assert unseen == []


def test_a_throttle_that_refuses_customers_is_told() -> None:
    for conversion in (0.3, 1):
        assert "RequestsThrottled" in seen(CROWD, Traffic(0.8, BUSY, conversion, 15))
    [limited] = resources("AWS::Logs::MetricFilter").values()
    [line] = limited["MetricTransformations"]
    assert limited["FilterPattern"] == '{ $.status = "429" }'
    assert line["MetricName"] == ALARMS["RequestsThrottledAlarm"]["MetricName"]
    assert line["MetricNamespace"] == ALARMS["RequestsThrottledAlarm"]["Namespace"]
    stage = resources("AWS::ApiGatewayV2::Stage")["HttpStage"]
    assert '"status":"$context.status"' in stage["AccessLogSettings"]["Fn::If"][1]["Format"]


@pytest.mark.parametrize("alarm", sorted(WATCHED - {"RequestsRefused"}))
def test_without_one_of_the_alarms_a_release_goes_unseen(alarm: str) -> None:
    """So none of them is there for nothing."""
    cells = [
        *((fault, traffic) for fault in faults().values() for traffic in (*CANARY, *FULL)),
        *((fault, Traffic(0.01, BUSY, 0.3, 5)) for fault in faults().values()),
        *((fault, traffic) for fault in refused().values() for traffic in FULL),
        (Fault(lambda route: True, 503), Traffic(0.05, BUSY, 0.3, 5)),  # no execution is left
    ]
    if alarm == "RequestsThrottled":
        cells = [(CROWD, Traffic(0.8, BUSY, 0.3, 15))]
    assert any(seen(fault, traffic) == {alarm} for fault, traffic in cells)
