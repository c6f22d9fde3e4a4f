from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from checkout import telemetry, wiring
from checkout.domain.ground.ids import session_ref
from tests.support.basics import SESSION_ID
from tests.support.deployment import Context

Told = Callable[[], list[dict[str, Any]]]
PEM = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA==\n-----END PRIVATE KEY-----"
FORMS = {
    "an API key": "sk_" + "aB3" * 14 + "x",
    "an API key of a live stage": "sk_live_" + "aB3" * 14 + "x",
    "an API key of a test stage": "sk_test_" + "aB3" * 14 + "x",
    "a restricted key of Stripe's": "rk_live_" + "aB3" * 14 + "x",
    "a session": SESSION_ID,
    "a session of a test stage": "cs_test_" + "aB3" * 7 + "x",
    "a session's address": f"https://pay.example/pay/{SESSION_ID}/success",
    "a webhook secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw+/==",
    "what the vault sealed": "v1.0a1b2c3d.AAAA-bbbb_cccc",
    "an access token": "GNAP OZB8CDFONP219RP1LT0OS9M2PMHKUR64TB8N6BW7",
    "a bearer": "Bearer abc.def",
    "a private key": PEM,
    "an encryption key": "0123456789abcdef" * 4,
}
NAMES = ["token", "Authorization", "nonce", "interact_ref", "hash", "private_key", "api_key", "url"]

log = logging.getLogger("checkout.somewhere")


@pytest.mark.parametrize("form", FORMS)
def test_a_text_of_a_secrets_form_is_blotted_out_wherever_it_is(told: Told, form: str) -> None:
    telemetry.start("pay")
    secret = FORMS[form]
    log.info("it was %s, so", secret, extra={"deep": {"in": ["a", {"list": f"({secret})"}]}})
    log.warning("x", extra={secret: 1})
    lines = told()
    assert len(lines) == 2
    core = secret.removeprefix("https://pay.example/pay/").removesuffix("/success")
    assert core not in json.dumps(lines)
    assert telemetry.BLOT in lines[0]["message"]
    assert lines[0]["message"].endswith(" so")


@pytest.mark.parametrize("name", NAMES)
def test_a_field_of_a_secrets_name_is_blotted_out_whatever_it_holds(told: Told, name: str) -> None:
    telemetry.start("pay")
    log.info("x", extra={name: {"value": 4711}, "deep": [{name: "4712"}]})
    [line] = told()
    assert line[name] == telemetry.BLOT
    assert line["deep"] == [{name: telemetry.BLOT}]


def test_what_is_no_secret_is_told_as_it_is(told: Told) -> None:
    telemetry.start("pay")
    fields = {"number": 7, "yes": True, "none": None, "text": "evt_1 of mer_1", "list": [1, "a"]}
    log.info("A sentence, with v1.0 and 20.00 USD.", extra=fields)
    [line] = told()
    assert line["message"] == "A sentence, with v1.0 and 20.00 USD."
    assert {name: line.get(name) for name in fields} == fields
    assert (line["level"], line["service"]) == ("INFO", "pay")


def test_an_exception_is_told_by_its_place_and_not_its_text(told: Told) -> None:
    telemetry.start("pay")
    try:
        raise ValueError("hunter2")
    except ValueError:
        log.exception("went wrong")
    [line] = told()
    assert "hunter2" not in json.dumps(line)
    assert "builtins.ValueError" in line["exception"]
    assert "test_telemetry.py" in line["exception"]


def test_a_line_names_its_request_or_else_its_invocation(told: Told) -> None:
    telemetry.start("pay")

    @telemetry.observed
    def handler(event: Any, context: Any) -> None:
        log.info("outside")
        with telemetry.request("req_1"):
            log.info("inside")
        log.info("outside")

    handler({}, Context())
    log.info("after")
    ids = [line.get("request_id") for line in told()]
    assert ids == [Context.aws_request_id, "req_1", Context.aws_request_id, None]


def test_debug_lines_are_those_of_about_one_request_in_a_hundred(told: Told) -> None:
    telemetry.start("pay")
    for number in range(5_000):
        with telemetry.request(f"req_{number}"):
            log.debug("first")
            log.debug("second")
    lines = told()
    requests = {line["request_id"] for line in lines}
    assert len(lines) == 2 * len(requests)  # all of a request, or none
    assert 25 < len(requests) < 100
    log.debug("of no request")
    assert told() == []


def test_metrics_are_told_once_in_the_end_also_of_a_handler_that_fails(told: Told) -> None:
    telemetry.start("pay", stack="shop")

    @telemetry.observed
    def handler(event: Any, context: Any) -> None:
        telemetry.count("Tea")
        telemetry.count("Tea", 2)
        telemetry.count("Heat", 90, unit="Milliseconds", reason="kettle")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        handler({}, None)
    by_reason, together = told()
    assert (by_reason["Heat"], by_reason["reason"], by_reason["service"]) == ([90], "kettle", "pay")
    assert (together["Tea"], together["Heat"], together["service"]) == ([1, 2], [90], "pay")
    [directive] = together["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == telemetry.NAMESPACE
    assert directive["Dimensions"] == [["stack"]]
    assert by_reason["stack"] == together["stack"] == "shop"
    assert set(*by_reason["_aws"]["CloudWatchMetrics"][0]["Dimensions"]) == {"stack", "reason"}
    assert directive["Metrics"] == [
        {"Name": "Tea", "Unit": "Count"},
        {"Name": "Heat", "Unit": "Milliseconds"},
    ]
    telemetry.observed(lambda event, context: None)({}, None)
    assert told() == []


def test_a_zero_is_not_sent_because_each_metric_costs(told: Told) -> None:
    telemetry.start("pay")
    telemetry.count("Tea", 0)
    telemetry.observed(lambda event, context: None)({}, None)
    assert told() == []


@pytest.mark.parametrize("name", sorted(telemetry.FOR_A_PERSON))
def test_what_a_person_must_look_at_also_counts_for_the_alarm(told: Told, name: str) -> None:
    telemetry.start("pay")
    telemetry.count(name, 2)
    telemetry.observed(lambda event, context: None)({}, None)
    [line] = told()
    assert line[name] == line[telemetry.ATTENTION] == [2]


def test_two_stacks_count_apart(told: Told) -> None:
    for stack in ("shop", "shop-dev"):
        telemetry.start("pay", stack=stack)
        telemetry.count("Tea")
        telemetry.observed(lambda event, context: None)({}, None)
        telemetry.stop()
    assert [line["stack"] for line in told()] == ["shop", "shop-dev"]


def test_outside_of_lambda_nothing_is_told(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring, "_prefix", lambda: "shop")
    monkeypatch.delenv("AWS_LAMBDA_FUNCTION_NAME", raising=False)
    wiring.observe("pay")
    log.info("x")
    telemetry.count("Tea")
    telemetry.observed(lambda event, context: None)({}, None)
    assert told() == []
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "checkout-pay")
    wiring.observe("pay")
    log.info("x")
    assert [line["service"] for line in told()] == ["pay"]


def test_a_sessions_reference_is_what_the_documentation_computes() -> None:
    import subprocess

    command = f"printf %s {SESSION_ID} | sha256sum | cut -c1-12"
    shell = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)  # noqa: S602
    assert shell.stdout.strip() == session_ref(SESSION_ID)
    assert session_ref(SESSION_ID) not in SESSION_ID
