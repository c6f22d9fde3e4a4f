"""Ciphertexts in places of others: an attacker who can write a table moves one to another record.

It does not open. The answer is a 503, the metric is an alarm, and no wallet is asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from checkout import telemetry
from checkout.adapters.dynamo.codec import Value, deflated, text
from checkout.domain.session.record import Session, Status
from sandbox.template import resources
from sandbox.wallets.state import Account
from tests.support.deployment import Deployment
from tests.support.flows import HARBOR, PREFIX

Told = Callable[[], list[dict[str, Any]]]


def with_field(place: Deployment, table: str, record: str, field: str, value: Value) -> None:
    """Write a row's field, as somebody with access to the table would."""
    place.dynamo.client.update_item(
        TableName=f"{PREFIX}-{table}",
        Key={"id": {"S": record}},
        UpdateExpression="SET #field = :value",
        ExpressionAttributeNames={"#field": field},
        ExpressionAttributeValues={":value": value},
    )


def awaiting(place: Deployment) -> tuple[Session, tuple[str, str]]:
    session = place.created()
    assert place.submit(session).status == 200
    session = place.stored(session)
    assert session.interact_url is not None
    return session, place.approve(session.interact_url)


def assert_alarmed(told: Told, *, service: str, field: str) -> None:
    lines = told()
    [counted] = [line for line in lines if "SecretsUnreadable" in line]
    assert "NeedsAttention" not in counted
    [line] = [line for line in lines if line.get("field")]
    assert (line["level"], line["service"], line["field"]) == ("ERROR", service, field)
    alarm = resources("AWS::CloudWatch::Alarm")["SecretsUnreadableAlarm"]
    assert alarm["MetricName"] == "SecretsUnreadable"
    assert alarm["Dimensions"] == [{"Name": "stack", "Value": {"Ref": "AWS::StackName"}}]


def test_another_sessions_grant_is_a_503_and_redeems_nothing(told: Told) -> None:
    place = Deployment()
    (session, callback), (other, _) = awaiting(place), awaiting(place)
    assert other.grant is not None
    with_field(place, "checkout_sessions", session.id, "grant", deflated(other.grant))
    before = place.stored(session)
    place.world.forget()
    telemetry.start("pay")
    answer = place.come_back(session, callback)
    assert (answer.status, "Traceback" in answer.body) == (503, False)
    assert_alarmed(told, service="pay", field="grant")
    assert not place.world.transport.sent
    assert place.stored(session) == before


def test_another_sessions_grant_opens_nowhere_else() -> None:
    place = Deployment()
    (session, callback), (other, _) = awaiting(place), awaiting(place)
    assert other.grant is not None
    with_field(place, "checkout_sessions", session.id, "grant", deflated(other.grant))
    assert place.come_back(session, callback).status == 503


def test_another_merchants_private_key_is_a_503_and_signs_nothing(told: Told) -> None:
    place = Deployment()
    place.world.network.add_account(Account(f"{HARBOR}/mallory", "Mallory", "USD", 2, 0))
    other = place.world.join(f"{HARBOR}/mallory").merchant
    session = place.created()
    with_field(place, "merchants", place.world.merchant.id, "private_key", text(other.private_key))
    place.world.forget()
    telemetry.start("pay")
    answer = place.submit(session)
    assert (answer.status, answer.code) == (503, "unavailable")
    assert_alarmed(told, service="pay", field="private_key")
    assert not place.world.transport.sent
    assert place.stored(session).status is Status.OPEN


def test_another_sessions_token_asks_no_wallet_and_leaves_the_payment_in_doubt(told: Told) -> None:
    place = Deployment()
    session = place.world.in_doubt()
    with_field(place, "checkout_sessions", session.id, "token", deflated("v1.00000000.AAAA"))
    before = place.stored(session)
    place.world.clock.pass_time(60)
    place.world.forget()
    telemetry.start("pay")
    assert place.visit("GET", session, "/status").status == 503
    assert_alarmed(told, service="pay", field="token")
    after = place.stored(session)
    assert (after.status, after.phase, after.instruction) == (
        before.status,
        before.phase,
        before.instruction,
    )
    assert not [sent for sent in place.world.transport.sent if "/outgoing" in json.dumps(str(sent))]


def test_a_webhook_secret_of_another_merchant_signs_nothing(told: Told) -> None:
    place = Deployment()
    place.wants_webhooks()
    merchants = place.world.services.merchants
    merchant = place.world.stored()
    assert merchant.endpoint is not None
    [secret] = merchant.endpoint.secrets
    moved = replace(secret, sealed=merchant.private_key)
    endpoint = replace(merchant.endpoint, secrets=(moved,))
    merchants.replace(merchant.changed(endpoint=endpoint))
    session = place.created()
    assert place.call("POST", f"/sessions/{session.id}/cancel").status == 200
    session, callback = awaiting(place)
    place.come_back(session, callback)
    assert place.stored(session).status is Status.COMPLETED
    telemetry.start("webhook_sender")
    assert place.send_webhooks() == []
    assert_alarmed(told, service="webhook_sender", field="webhook_secret")
