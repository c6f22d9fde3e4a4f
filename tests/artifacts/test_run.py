"""The built functions under Lambda's own runtime client: events in, answers out."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from checkout.adapters.dynamo import DynamoMerchants
from checkout.domain.ground.ids import api_key_hash, new_api_key
from sandbox import cloud
from sandbox.gateway import answer_of, event_of
from sandbox.server import Answer, Incoming
from sandbox.template import resources
from tests.artifacts.runtime import Invocation, environment
from tests.support.basics import seeded
from tests.support.merchant_api import SESSIONS, a_body
from tests.support.samples import a_key, a_merchant

pytestmark = pytest.mark.artifacts

FUNCTIONS = resources("AWS::Serverless::Function")
PATHS = {
    "ApiFunction": "/api/health",
    "DashboardFunction": "/dashboard",
    "PayFunction": "/pay/cs_unknown",
}


def queued(body: Mapping[str, Any]) -> dict[str, Any]:
    """One message as Lambda's mapping of an SQS queue hands it over."""
    record = {
        "messageId": str(uuid.uuid4()),
        "receiptHandle": "handle",
        "body": json.dumps(body),
        "attributes": {"ApproximateReceiveCount": "1"},
        "messageAttributes": {},
        "md5OfBody": "",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:queue",
        "awsRegion": "us-east-1",
    }
    return {"Records": [record]}


@dataclass
class Deployed:
    """The built functions with tables, queues and a secret, and one merchant's API key."""

    build: Path
    variables: dict[str, str]
    api_key: str
    scratch: Path
    logs: list[Path] = field(default_factory=list)

    def invoke(self, function: str, *events: Any) -> list[Invocation]:
        """All events in one environment, one after the other."""
        with environment(self.build, function, self.variables, self.scratch) as runtime:
            return [runtime.invoke(event) for event in events]

    def log(self, function: str) -> str:
        return (self.scratch / f"{function}.log").read_text("utf-8")

    def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        headers = [
            ("Host", "pay.example"),
            ("Authorization", f"Bearer {self.api_key}"),
            ("Content-Type", "application/json"),
        ]
        raw = b"" if body is None else json.dumps(body).encode()
        return event_of(Incoming(method, path, headers, raw), "$default", {})


def answered(invocation: Invocation) -> Answer:
    assert invocation.error is None, invocation.error
    return answer_of(invocation.answer)


@pytest.fixture(scope="module")
def deployed(runnable: Path, emulator: str, tmp_path_factory: pytest.TempPathFactory) -> Deployed:
    prefix = f"built-{uuid.uuid4().hex[:8]}"
    stack = cloud.create_stack(emulator, prefix)
    secret = new_api_key(seeded(7))
    key = a_key(hash=api_key_hash(secret), merchant="mer_built")
    merchant = a_merchant(id="mer_built", name="Built Shop")
    assert DynamoMerchants(cloud.client("dynamodb", emulator), prefix).add(merchant, key) is None
    variables = {
        "DATABASE_URL": f"dynamodb:///{prefix}",
        "BASE_URL": "https://pay.example",
        "ENCRYPTION_KEY_SECRET": stack.encryption_key_secret,
        "COMPLETION_POLICY": "received",
        "EVENTS_QUEUE_URL": stack.events_queue_url,
        "TASKS_QUEUE_URL": stack.tasks_queue_url,
        "AWS_ENDPOINT_URL": emulator,
        "AWS_REGION": cloud.REGION,
        "AWS_DEFAULT_REGION": cloud.REGION,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
    }
    return Deployed(runnable, variables, secret, tmp_path_factory.mktemp("lambda"))


def test_the_api_creates_a_session_that_the_page_then_shows(deployed: Deployed) -> None:
    health, created, refused = (
        answered(each)
        for each in deployed.invoke(
            "ApiFunction",
            deployed.request("GET", "/api/health"),
            deployed.request("POST", SESSIONS, a_body()),
            deployed.request("POST", SESSIONS, a_body(mode="subscription")),
        )
    )
    assert (health.status, json.loads(health.body)["status"]) == (200, "healthy")
    assert created.status == 201, created.body
    assert refused.status == 400
    session = json.loads(created.body)
    [shown] = deployed.invoke("PayFunction", deployed.request("GET", f"/pay/{session['id']}"))
    page = answered(shown)
    assert page.status == 200, page.body
    assert dict(page.headers)["content-type"].startswith("text/html")
    assert b"Built Shop" in page.body


def test_the_page_of_an_unknown_session_is_a_page_too(deployed: Deployed) -> None:
    [answer] = deployed.invoke("PayFunction", deployed.request("GET", "/pay/cs_unknown"))
    assert answered(answer).status == 404


def test_the_dashboard_lets_in_who_has_the_key_and_shows_the_customers_page(
    deployed: Deployed,
) -> None:
    with environment(
        deployed.build, "DashboardFunction", deployed.variables, deployed.scratch
    ) as runtime:

        def visited(path: str, cookie: str = "", **form: str) -> Answer:
            headers = [("Host", "pay.example"), ("Origin", "https://pay.example")]
            headers += [("Cookie", cookie)] if cookie else []
            headers += [("Content-Type", "application/x-www-form-urlencoded")] if form else []
            method, raw = "POST" if form else "GET", urlencode(form).encode()
            event = event_of(Incoming(method, f"/dashboard{path}", headers, raw), "$default", {})
            return answered(runtime.invoke(event))

        form = visited("/sign-in")
        token = re.search(rb'name="form_token" value="([^"]+)"', form.body)
        assert token is not None
        signed_in = visited(
            "/sign-in", _cookie(form), form_token=token[1].decode(), api_key=deployed.api_key
        )
        assert (signed_in.status, dict(signed_in.headers)["location"]) == (
            303,
            "/dashboard/overview",
        )
        cookie = _cookie(signed_in)
        for path in ("", "/keys", "/webhooks", "/settings", "/audit"):
            assert visited(path, cookie).status == 200, path
        preview = visited("/settings/preview", cookie)
        assert preview.status == 200
        assert b"Built Shop" in preview.body
        assert visited("/keys").status == 303


def _cookie(answer: Answer) -> str:
    [cookie] = [value for name, value in answer.headers if name == "set-cookie"]
    return cookie.partition(";")[0]


def test_the_schedule_gets_the_counts_of_two_rounds(deployed: Deployed) -> None:
    for each in deployed.invoke("ExpirerFunction", {}, {}):
        assert each.error is None
        assert each.answer["Failed"] == 0
        assert {"OldestDueEvent", "OldestDuePayment", "SweepBacklog"} <= set(each.answer)
    assert '"_aws"' not in deployed.log("ExpirerFunction")  # a metric of zero would cost money


def test_a_message_about_nothing_is_done_with(deployed: Deployed) -> None:
    [done] = deployed.invoke("WebhookSenderFunction", queued({"event": "evt_" + "0" * 22}))
    assert done == Invocation({"batchItemFailures": []})


@pytest.mark.parametrize("function", ["TasksFunction", "WebhookSenderFunction"])
def test_a_message_that_cannot_be_read_comes_again_alone(deployed: Deployed, function: str) -> None:
    event = queued({"nothing": "known"})
    [done] = deployed.invoke(function, event)
    [record] = event["Records"]
    assert done.error is None
    assert done.answer == {"batchItemFailures": [{"itemIdentifier": record["messageId"]}]}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_starts_and_answers_again_once_it_is_warm(
    deployed: Deployed, name: str
) -> None:
    event = deployed.request("GET", PATHS[name]) if name in PATHS else queued({})
    with environment(deployed.build, name, deployed.variables, deployed.scratch) as runtime:
        began = time.monotonic()
        first = runtime.invoke(event)
        cold = time.monotonic() - began
        for _ in range(3):
            again = time.monotonic()
            assert runtime.invoke(event).error is None
            warm = time.monotonic() - again
    assert first.error is None, first.error
    print(f"{name}: first answer {cold * 1000:.0f} ms after the start, then {warm * 1000:.0f} ms")


def test_an_event_of_no_known_kind_is_reported_and_ends_nothing(deployed: Deployed) -> None:
    broken, fine = deployed.invoke(
        "ApiFunction", {"no": "request"}, deployed.request("GET", "/api/health")
    )
    assert broken.error["errorType"]
    assert answered(fine).status == 200
