"""One request, one answer: deadlines, and what each status says about the effect."""

from __future__ import annotations

from datetime import timedelta

import pytest
from client_script import ALICE, CONTINUATION, TOKEN, Script, answer, words

from open_payments.errors import NotSent, OutcomeUnknown, Reason, Refused, UntrustedAnswer
from open_payments.interaction import Limits
from open_payments.models import Amount, ClientIdentity
from open_payments.protocol import Access

PAYMENT = "https://wallet.example/tenant/incoming-payments/1"
ASKED = Amount(100, "USD", 2)
KEYS: dict[str, object] = {"keys": []}


def test_a_call_takes_no_longer_than_its_own_limit_or_the_time_that_is_left() -> None:
    script = Script(answer(200, KEYS), answer(200, KEYS))
    script.takes = timedelta(seconds=4)
    client = script.client(seconds=12)
    client.get_jwks(PAYMENT)
    client.get_jwks(PAYMENT)
    assert script.timeouts == [10.0, 8.0]


def test_quotes_and_incoming_payments_are_given_more_time() -> None:
    script = Script(answer(500), answer(500))
    client = script.client()
    with pytest.raises(OutcomeUnknown):
        client.create_quote(ALICE, TOKEN, receiver=PAYMENT, receive=ASKED)
    with pytest.raises(OutcomeUnknown):
        client.create_incoming_payment(
            ALICE.resource_server, TOKEN, amount=ASKED, expires_at=script.time
        )
    assert script.timeouts == [15.0, 15.0]


def test_nothing_is_sent_once_the_time_is_over() -> None:
    script = Script()
    with pytest.raises(NotSent, match="no time left"):
        script.client(seconds=0).get_jwks(PAYMENT)
    assert not script.sent


def test_an_error_of_the_transport_learns_which_call_it_ended() -> None:
    script = Script(NotSent("unreachable"), OutcomeUnknown("cut off"))
    client = script.client()
    with pytest.raises(NotSent) as not_sent:
        client.get_jwks(PAYMENT)
    with pytest.raises(OutcomeUnknown) as unknown:
        client.cancel_grant(ALICE.auth_server, CONTINUATION)
    assert not_sent.value.operation == "get_jwks"
    assert unknown.value.operation == "cancel_grant"


@pytest.mark.parametrize("status", [100, 202, 204, 301, 302, 307, 308])
def test_a_status_that_the_call_does_not_expect_is_not_trusted(status: int) -> None:
    with pytest.raises(UntrustedAnswer, match=f"{status} in place of 200"):
        Script(answer(status, KEYS)).client().get_jwks(PAYMENT)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_failed_server_may_have_done_it(status: int) -> None:
    with pytest.raises(OutcomeUnknown) as caught:
        Script(answer(status, "Internal Server Error")).client().get_jwks(PAYMENT)
    assert type(caught.value) is OutcomeUnknown


@pytest.mark.parametrize(
    "body",
    ["", *words("""OK [] null "text" { {"keys":NaN}"""), "[" * 100_000, f'{{"a":{"9" * 5000}}}'],
    ids=["empty", "text", "list", "null", "string", "cut", "nan", "deep", "long"],
)
def test_a_body_that_is_no_json_object_is_not_trusted(body: str) -> None:
    with pytest.raises(UntrustedAnswer):
        Script(answer(200, body)).client().get_jwks(PAYMENT)


@pytest.mark.parametrize(
    "body",
    [
        *(None, "Bad Request", [], {}, "[" * 100_000, {"error": None}),
        {"error": {"code": 7, "description": ["x"], "details": "x"}},
    ],
)
def test_a_refusal_is_certain_whatever_its_body(body: object) -> None:
    with pytest.raises(Refused) as caught:
        Script(answer(400, body)).client().get_jwks(PAYMENT)
    assert (caught.value.reason, caught.value.status) == (Reason.OTHER, 400)


def test_a_bare_error_code_is_understood_as_gnap_allows_it() -> None:
    script = Script(answer(400, {"error": "too_fast"}))
    with pytest.raises(Refused) as caught:
        script.client().continue_grant(
            ALICE, CONTINUATION, interact_ref="r", limits=Limits(debit_amount=Amount(1, "EUR", 2))
        )
    assert caught.value.reason is Reason.TOO_FAST


def test_the_servers_words_do_not_reach_our_message() -> None:
    body = {"error": {"code": "400", "description": "<script>secret</script>"}}
    with pytest.raises(Refused) as caught:
        Script(answer(400, body)).client().get_jwks(PAYMENT)
    assert str(caught.value) == "get_jwks: refused with 400 (other)"
    assert caught.value.answered == "wallet.example answered 400"


@pytest.mark.parametrize("code", ["<script>", "invalid_client ", "Invalid_client", "x" * 99, "401"])
def test_a_code_is_repeated_only_if_it_is_known(code: str) -> None:
    script = Script(answer(401, {"error": code}), answer(401, {"error": "invalid_client"}))
    client = script.client()
    told = []
    for _ in range(2):
        with pytest.raises(Refused) as caught:
            client.request_grant(ALICE.auth_server, Access.QUOTE)
        told.append(caught.value.answered)
    assert told == [
        "auth.wallet.example answered 401",
        "auth.wallet.example answered 401 invalid_client",
    ]


def test_each_refusal_is_told_before_it_is_raised() -> None:
    told: list[Refused] = []
    script = Script(answer(400), answer(500), answer(204))
    client = script.client(on_refusal=told.append)
    with pytest.raises(Refused) as refused:
        client.get_jwks(PAYMENT)
    with pytest.raises(OutcomeUnknown):
        client.get_jwks(PAYMENT)
    client.cancel_grant(ALICE.auth_server, CONTINUATION)
    assert told == [refused.value]


def test_what_cannot_be_signed_is_not_sent() -> None:
    script = Script()
    odd = ClientIdentity("https://shop.example/", "a;b", b"0" * 32)
    with pytest.raises(NotSent, match="key id"):
        script.client(identity=odd).request_grant(ALICE.auth_server, Access.QUOTE)
    with pytest.raises(NotSent, match="not a URL"):
        script.client().get_jwks("https://wallet.example/a b")
    with pytest.raises(NotSent, match="no identity"):
        script.client(identity=None).get_outgoing_payment(PAYMENT, TOKEN)
    assert not script.sent
