"""Something of AWS fails while a customer buys: a clear 503 and a metric to alarm on, nothing is
lost, and it goes on by itself once AWS answers again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from checkout import telemetry
from checkout.adapters.vault import REFRESH
from checkout.domain.ground.errors import Unavailable
from checkout.domain.payment.in_flight import Phase
from checkout.domain.session.record import Session, Status
from checkout.flows.webhooks.deliver import ENQUEUED_FOR
from tests.support.deployment import Deployment, Fault, refusal

Told = Callable[[], list[dict[str, Any]]]

KMS_DISABLED = "com.amazonaws.services.kms.model.DisabledException: the key is disabled."
KEY_FAULTS = {
    "key service": refusal("InternalServiceError", "GetSecretValue", 500),
    "KMS": refusal("DecryptionFailure", "GetSecretValue"),
    "throttled": refusal("ThrottlingException", "GetSecretValue"),
    "not allowed": refusal("AccessDeniedException", "GetSecretValue"),
    "deleted": refusal("ResourceNotFoundException", "GetSecretValue"),
    "connection": EndpointConnectionError(endpoint_url="https://10.0.0.1"),
}


@pytest.fixture
def deployed(told: Told) -> Deployment:
    telemetry.start("pay")
    return Deployment()


def counted(told: Told) -> dict[str, float]:
    """The metrics since the last look, summed up."""
    sums: dict[str, float] = {}
    for line in told():
        for metric in line.get("_aws", {"CloudWatchMetrics": []})["CloudWatchMetrics"]:
            if metric["Dimensions"] == [["stack"]]:
                for name in (each["Name"] for each in metric["Metrics"]):
                    sums[name] = sums.get(name, 0) + sum(line[name])
    return sums


def always(error: Exception, *, operation: str = "", table: str = "") -> Fault:
    """Every call of `operation` that touches `table` fails so."""

    def fault(name: str, request: dict[str, Any]) -> None:
        if operation in name and f"test-{table}" in repr(request) + "test-":
            raise error

    return fault


def buys(deployed: Deployment, session: Session) -> list[int]:
    """A patient customer, and a sweep each minute: the statuses of all answers, up to "paid"."""
    statuses: list[int] = []
    for _ in range(30):
        current = deployed.stored(session)
        if current.status is Status.COMPLETED:
            return statuses
        if current.status in (Status.OPEN, Status.AWAITING_APPROVAL) and current.phase is None:
            submitted = deployed.submit(session)
            statuses.append(submitted.status)
            if submitted.status == 200:
                callback = deployed.approve(submitted.json["interact_url"])
                statuses += [deployed.come_back(session, callback).status for _ in range(2)]
        deployed.world.clock.pass_time(60)
        try:
            deployed.sweep()
        except Unavailable:  # told by Lambda's own metric; the next round comes in a minute
            continue
    raise AssertionError(statuses)


def paid_once(deployed: Deployment, session: Session) -> bool:
    """And the merchant is owed exactly one event of it."""
    events = [event["session"] for event in deployed.world.events()]
    return deployed.world.received() == 2000 and events == [session.id]


# --- a throttled table ---


@pytest.mark.parametrize(
    ("operation", "table"),
    [
        ("get_item", "api_keys"),
        ("put_item", "idempotency_keys"),
        ("put_item", "checkout_sessions"),
    ],
)
@pytest.mark.parametrize(
    "error",
    [
        refusal("ProvisionedThroughputExceededException", "GetItem"),
        refusal("ThrottlingException", "GetItem"),
        refusal("AccessDeniedException", "GetItem", message=KMS_DISABLED),
        refusal("InternalServerError", "GetItem", 500),
    ],
    ids=["throttled", "throttled otherwise", "the tables' key disabled", "failing"],
)
def test_a_creation_is_refused_clearly_and_the_same_request_succeeds_later(
    deployed: Deployment, told: Told, operation: str, table: str, error: Exception
) -> None:
    deployed.dynamo.fault = always(error, operation=operation, table=table)
    refused = deployed.create(Idempotency_Key="order-1")
    assert (refused.status, refused.code) == (503, "unavailable")
    assert refused.json["error"]["type"] == "api_error"
    assert refused.json["error"]["request_id"] == refused.headers["request-id"]
    assert counted(told)["Unavailable"] == 1
    deployed.dynamo.fault = None
    again = [deployed.create(Idempotency_Key="order-1") for _ in range(2)]
    assert [answer.status for answer in again] == [201, 201]
    assert len(deployed.dynamo.rows("test-checkout_sessions")) == 1
    assert "Unavailable" not in counted(told)


def test_every_call_of_a_purchase_may_be_throttled_for_a_moment_and_one_payment_is_made(
    told: Told,
) -> None:
    """The n-th call to DynamoDB is refused, and its repetition too, for each n until a purchase has
    no n-th call.
    """
    refused_at: list[int] = []
    for n in range(1, 100):
        telemetry.start("pay")
        deployed = Deployment()
        session = deployed.created()
        calls = [0]

        def fault(name: str, _: Any, calls: list[int] = calls, n: int = n) -> None:
            calls[0] += 1
            if calls[0] in (n, n + 1):
                raise refusal("ThrottlingException", name)

        deployed.dynamo.fault = fault
        told()
        statuses = buys(deployed, session)
        assert set(statuses) <= {200, 303, 409, 503}, (n, statuses)
        assert counted(told).get("Unavailable", 0) == statuses.count(503), (n, statuses)
        assert paid_once(deployed, session), n
        if 503 in statuses:
            refused_at.append(n)
        if calls[0] < n:
            break
    else:
        raise AssertionError("a purchase takes fewer calls than that")
    assert len(refused_at) >= 5


def test_a_sweep_that_cannot_read_its_index_fails_and_the_next_works(deployed: Deployment) -> None:
    session = deployed.world.abandoned()
    deployed.world.clock.pass_time(86_400)
    deployed.dynamo.fault = always(refusal("ThrottlingException", "Query"), operation="query")
    with pytest.raises(Unavailable):
        deployed.sweep()
    deployed.dynamo.fault = None
    assert deployed.sweep()["Moved"] == 1
    assert deployed.world.session(session.id).status is Status.EXPIRED


def test_a_throttled_check_is_counted_and_comes_again(deployed: Deployment, told: Told) -> None:
    session = deployed.world.abandoned()
    deployed.world.clock.pass_time(86_400)
    throttled = refusal("ThrottlingException", "UpdateItem")
    deployed.dynamo.fault = always(throttled, operation="update_item")
    told()
    assert deployed.sweep()["Failed"] == 1
    assert counted(told)["Failed"] == 1
    deployed.dynamo.fault = None
    assert deployed.sweep()["Moved"] == 1
    assert deployed.world.session(session.id).status is Status.EXPIRED


@pytest.mark.parametrize(
    "said", ["DisabledException", "AccessDeniedException", "KMSInvalidStateException"]
)
def test_a_key_that_the_tables_cannot_use_is_counted_and_named(
    deployed: Deployment, told: Told, said: str
) -> None:
    session, message = deployed.created(), f"com.amazonaws.services.kms.model.{said}: arn:aws:kms:…"
    told()
    refused = refusal("AccessDeniedException", "GetItem", message=message)
    deployed.dynamo.fault = always(refused)
    assert [deployed.create().status, deployed.visit("GET", session).status] == [503, 503]
    lines = told()
    assert {each["cause"] for each in lines if each.get("message") == "unavailable"} == {
        f"AccessDeniedException ({said})"
    }
    assert sum(sum(each["KeyUnreadable"]) for each in lines if "KeyUnreadable" in each) >= 2
    assert "arn:aws:kms" not in repr(lines)
    deployed.dynamo.fault = always(refusal("InternalServerError", "GetItem", 500))
    assert deployed.visit("GET", session).status == 503
    assert "KeyUnreadable" not in counted(told)


# --- the key service, and the secret ---


@pytest.mark.parametrize("cause", KEY_FAULTS)
def test_without_the_key_a_wallet_is_refused_clearly_and_the_next_try_pays(
    deployed: Deployment, told: Told, cause: str
) -> None:
    session = deployed.created()
    deployed.keys.fault = always(KEY_FAULTS[cause])
    told()
    refused = deployed.submit(session)
    assert (refused.status, refused.code) == (503, "unavailable")
    assert counted(told)["Unavailable"] == 1
    assert deployed.stored(session).status is Status.OPEN
    deployed.keys.fault = None
    assert set(buys(deployed, session)) == {200, 303}
    assert paid_once(deployed, session)


@pytest.mark.parametrize("text", ["", "hunter2", "{}", "11" * 31])
def test_a_secret_that_holds_no_key_is_no_key(deployed: Deployment, told: Told, text: str) -> None:
    session = deployed.created()
    good, deployed.secrets.text = deployed.secrets.text, text
    refused = deployed.submit(session)
    assert (refused.status, refused.code) == (503, "unavailable")
    assert counted(told)["Unavailable"] == 1
    deployed.secrets.text = good
    assert set(buys(deployed, session)) == {200, 303}


@pytest.mark.parametrize("cause", KEY_FAULTS)
def test_an_approval_that_comes_back_while_the_key_cannot_be_had_is_not_lost(
    deployed: Deployment, told: Told, cause: str
) -> None:
    session = deployed.created()
    callback = deployed.approve(deployed.submit(session).json["interact_url"])
    deployed.restart()
    deployed.keys.fault = always(KEY_FAULTS[cause])
    told()
    refused = deployed.come_back(session, callback)
    assert refused.status == 503
    assert counted(told)["Unavailable"] == 1
    assert deployed.stored(session).status is Status.AWAITING_APPROVAL
    deployed.keys.fault = None
    assert deployed.come_back(session, callback).status == 303
    assert paid_once(deployed, session)


def test_a_payment_in_doubt_waits_for_the_key_and_is_found_then(deployed: Deployment) -> None:
    session = deployed.created()
    callback = deployed.approve(deployed.submit(session).json["interact_url"])
    throttled = refusal("ThrottlingException", "UpdateItem")

    def after_w6(name: str, request: dict[str, Any]) -> None:
        if name == "update_item" and deployed.stored(session).phase is Phase.PAYING:
            raise throttled

    deployed.dynamo.fault = after_w6
    assert deployed.come_back(session, callback).status == 503
    deployed.dynamo.fault = None
    deployed.restart()
    deployed.keys.fault = always(KEY_FAULTS["KMS"])
    deployed.world.clock.pass_time(60)
    assert deployed.sweep()["Failed"] == 1
    assert deployed.stored(session).phase is Phase.PAYING
    deployed.keys.fault = None
    deployed.world.clock.pass_time(60)
    deployed.sweep()
    assert deployed.stored(session).status is Status.COMPLETED
    assert paid_once(deployed, session)


def test_a_running_process_keeps_its_key_and_says_so(deployed: Deployment, told: Told) -> None:
    assert set(buys(deployed, deployed.created())) == {200, 303}
    deployed.keys.fault = always(KEY_FAULTS["not allowed"])
    deployed.world.clock.pass_time(REFRESH.total_seconds())
    told()
    assert set(buys(deployed, deployed.created())) == {200, 303}
    seen = counted(told)
    assert seen["KeyUnreadable"] == 1
    assert "Unavailable" not in seen


# --- the queues ---


@pytest.mark.parametrize("fault", [always(refusal("KmsThrottledException", "SendMessage")), None])
def test_messages_that_are_lost_cost_nothing_but_time(
    deployed: Deployment, told: Told, fault: Fault | None
) -> None:
    """They are refused, or taken and never seen again."""
    deployed.wants_webhooks()
    deployed.queue.fault = fault
    session = deployed.created()
    told()
    assert set(buys(deployed, session)) == {200, 303}
    assert paid_once(deployed, session)
    assert (counted(told).get("MessagesLost", 0) > 0) == (fault is not None)
    deployed.sqs.messages.clear()
    assert deployed.send_webhooks() == []
    deployed.queue.fault = None
    deployed.world.clock.pass_time(ENQUEUED_FOR.total_seconds() + 60)
    deployed.sweep()
    assert deployed.send_webhooks() == [deployed.world.events()[0]["id"]]


@pytest.mark.parametrize("cause", KEY_FAULTS)
def test_an_event_waits_for_the_key_that_signs_it(deployed: Deployment, cause: str) -> None:
    deployed.wants_webhooks()
    session = deployed.created()
    buys(deployed, session)
    deployed.restart()
    deployed.keys.fault = always(KEY_FAULTS[cause])
    assert deployed.send_webhooks() == []
    assert len(deployed.sqs.messages) >= 1  # they come again
    deployed.keys.fault = None
    assert deployed.send_webhooks() == [deployed.world.events()[0]["id"]]
    assert deployed.world.events()[0]["status"] == "delivered"


def test_a_cancellation_without_its_task_is_one_too(deployed: Deployment, told: Told) -> None:
    session = deployed.created()
    deployed.submit(session)
    deployed.queue.fault = always(refusal("ServiceUnavailable", "SendMessage", 503))
    told()
    assert deployed.call("POST", f"/sessions/{session.id}/cancel").status == 200
    assert counted(told)["MessagesLost"] == 1
    assert deployed.stored(session).status is Status.CANCELED
