"""The mail service as SES is asked, and what becomes of its refusals."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import boto3
import pytest
from botocore.exceptions import ReadTimeoutError
from botocore.stub import Stubber

from checkout import telemetry
from checkout.adapters.mail import ONCE, SesMail
from checkout.domain.ground.errors import MailRefused
from checkout.ports import Email
from tests.support.mailbox import ses_request

LETTER = Email("eva@customer.example", "Order 42", "Paid: 18.54 €", "<p>Paid</p>")


@pytest.fixture
def client() -> Any:
    return boto3.client(
        "sesv2",
        config=ONCE,
        region_name="eu-central-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
    )


def test_a_letter_is_one_call_with_both_parts(client: Any) -> None:
    mail = SesMail(lambda: client, "receipts@pay.example")
    with Stubber(client) as ses:
        ses.add_response("send_email", {"MessageId": "1"}, ses_request())
        mail.send(LETTER)
        ses.add_response("send_email", {"MessageId": "2"}, ses_request("help@shop.example"))
        mail.send(Email(LETTER.to, LETTER.subject, LETTER.text, LETTER.html, "help@shop.example"))
        ses.assert_no_pending_responses()


@pytest.mark.parametrize(
    "code",
    ["MessageRejected", "MailFromDomainNotVerifiedException", "AccessDeniedException",
     "TooManyRequestsException", "SendingPausedException", "InternalFailure"],
)  # fmt: skip
def test_a_refusal_is_logged_without_the_address_and_not_tried_again(
    client: Any, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    mail = SesMail(lambda: client, "receipts@pay.example")
    with Stubber(client) as ses:
        ses.add_client_error("send_email", code, f"Email address {LETTER.to} is not verified.")
        with caplog.at_level(logging.INFO), pytest.raises(MailRefused) as refused:
            mail.send(LETTER)
        ses.assert_no_pending_responses()
    assert code in caplog.text
    assert LETTER.to not in caplog.text + str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    ("code", "counted"), [("SendingPausedException", [1]), ("BadRequestException", None)]
)
def test_a_refusal_is_for_a_person_unless_it_is_about_the_typed_address(
    client: Any, told: Callable[[], list[dict[str, Any]]], code: str, counted: list[int] | None
) -> None:
    telemetry.start("pay")

    @telemetry.observed
    def handler(event: Any, context: Any) -> None:
        with suppress(MailRefused):
            SesMail(lambda: client, "receipts@pay.example").send(LETTER)

    with Stubber(client) as ses:
        ses.add_client_error("send_email", code)
        handler({}, None)
    *_, line = told()
    assert line.get("MailRefused") == line.get(telemetry.ATTENTION) == counted


def test_a_service_that_is_silent_is_a_refusal(caplog: pytest.LogCaptureFixture) -> None:
    class Silent:
        def send_email(self, **_: Any) -> None:
            raise ReadTimeoutError(endpoint_url="https://email.eu-central-1.amazonaws.com")

    with pytest.raises(MailRefused):
        SesMail(Silent, "receipts@pay.example").send(LETTER)
    assert "ReadTimeoutError" in caplog.text
