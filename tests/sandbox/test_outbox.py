"""The outbox as boto3 sees it, and as a developer does."""

from __future__ import annotations

import json

import pytest

from sandbox.outbox import Outbox
from sandbox.server import Answer, Incoming
from tests.support.mailbox import ses_request

SEND = "/v2/email/outbound-emails"


def send(outbox: Outbox, body: object) -> Answer:
    return outbox.answer(Incoming("POST", SEND, [], json.dumps(body).encode()))


def test_an_e_mail_is_kept_and_shown_as_text_and_as_html() -> None:
    outbox = Outbox()
    assert b"No e-mail yet" in outbox.answer(Incoming("GET", "/", [])).body
    answer = send(outbox, ses_request("help@shop.example"))
    assert (answer.status, list(json.loads(answer.body))) == (200, ["MessageId"])
    page = outbox.answer(Incoming("GET", "/", [])).body.decode()
    for said in ("Order 42", "eva@customer.example", "help@shop.example", "Paid: 18.54 €"):
        assert said in page
    assert outbox.answer(Incoming("GET", "/0", [])).body == b"<p>Paid</p>"
    assert outbox.answer(Incoming("GET", "/1", [])).status == 404
    assert outbox.answer(Incoming("PUT", "/0", [])).status == 404


def test_what_it_shows_can_do_nothing() -> None:
    outbox = Outbox()
    letter = ses_request()
    letter["Content"]["Simple"]["Subject"]["Data"] = "<script>alert(1)</script>"
    send(outbox, letter)
    answer = outbox.answer(Incoming("GET", "/", []))
    assert b"<script>" not in answer.body
    assert "sandbox" in dict(answer.headers)["content-security-policy"]


@pytest.mark.parametrize(
    "body", [None, [], {}, {"Content": {}}, {**ses_request(), "Destination": {}}]
)
def test_what_is_no_e_mail_is_refused(body: object) -> None:
    assert send(Outbox(), body).status == 400
