"""The form of `client` that a server wants is learned from its refusal, and remembered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from client_calls import CALLS, GRANTED, PENDING
from client_script import ALICE, SHOP, Script, answer, header

from open_payments import protocol
from open_payments.errors import OpenPaymentsError, OutcomeUnknown, Reason, Refused
from open_payments.exchange import reason
from open_payments.protocol import Access, ClientForms, OpenPayments
from open_payments.transports import Response

OBJECT = {"walletAddress": SHOP}
ASKED = {"grant": GRANTED, "pending": PENDING}
RAFIKI = "Received error validating OpenAPI request: "


def wrong(description: str, code: str | None = None, status: int = 400) -> Response:
    error = {"description": description} | ({"code": code} if code else {})
    return answer(status, {"error": error})


WANTS_OBJECT = wrong(f"{RAFIKI}body.client must be object")
WANTS_STRING = wrong(f"{RAFIKI}body.client must be string")
UNKNOWN = wrong("could not determine client", "invalid_client")


def clients(script: Script) -> list[Any]:
    """Return the `client` of each request that was sent."""
    return [json.loads(request.body or b"")["client"] for request in script.sent]


def ask(client: OpenPayments, call: str = "grant") -> Any:
    return CALLS[call][2](client)


@pytest.mark.parametrize("call", ASKED)
def test_a_server_is_given_the_string_that_all_versions_take(call: str) -> None:
    script = Script(answer(200, ASKED[call]))
    ask(script.client(), call)
    assert clients(script) == [SHOP]


@pytest.mark.parametrize("call", ASKED)
def test_a_server_that_wants_the_object_is_given_it_once_more_and_from_then_on(call: str) -> None:
    forms = ClientForms()
    script = Script(WANTS_OBJECT, answer(200, ASKED[call]), answer(200, GRANTED), answer(418))
    ask(script.client(forms=forms), call)
    ask(script.client(forms=forms))
    assert clients(script) == [SHOP, OBJECT, OBJECT]
    first, second = script.sent[:2]
    rest = [json.loads(each.body or b"") for each in (first, second)]
    assert all(each.pop("client") for each in rest)
    assert rest[0] == rest[1]
    assert header(first, "signature") != header(second, "signature")
    with pytest.raises(Refused):
        script.client(forms=forms).request_grant("https://other.example/", Access.QUOTE)
    assert clients(script)[-1] == SHOP  # another server's form is its own


def test_a_server_that_returns_to_the_string_is_given_it_again() -> None:
    forms = ClientForms()
    forms.learn(ALICE.auth_server, wants_object=True)
    script = Script(WANTS_STRING, answer(200, GRANTED), answer(200, GRANTED))
    ask(script.client(forms=forms))
    ask(script.client(forms=forms))
    assert clients(script) == [OBJECT, SHOP, SHOP]


@pytest.mark.parametrize("second", [WANTS_STRING, UNKNOWN, answer(500), OutcomeUnknown("lost")])
def test_the_other_form_is_tried_once_and_remembered_only_if_it_was_accepted(
    second: Response | OpenPaymentsError,
) -> None:
    forms = ClientForms()
    script = Script(WANTS_OBJECT, second, answer(200, GRANTED))
    with pytest.raises(OpenPaymentsError):
        ask(script.client(forms=forms))
    ask(script.client(forms=forms))
    assert clients(script) == [SHOP, OBJECT, SHOP]


@pytest.mark.parametrize(
    "first",
    [
        UNKNOWN,
        OutcomeUnknown("lost"),
        answer(500, {"error": {"description": "body.client must be object"}}),
        answer(200, "body.client must be object"),
        wrong("body.client must be object", status=429),
        wrong("missing required request field 'client'", "invalid_client"),
        wrong("invalid signature", "invalid_client", 401),
        wrong("Not Found", "invalid_request", 404),
        answer(400, "Bad Request"),
    ],
    ids=lambda first: getattr(first, "status", "lost"),
)
@pytest.mark.parametrize("call", ASKED)
def test_no_other_failure_is_followed_by_a_second_request(
    call: str, first: Response | OpenPaymentsError
) -> None:
    script = Script(first)
    with pytest.raises(OpenPaymentsError):
        ask(script.client(), call)
    assert clients(script) == [SHOP]


@pytest.mark.parametrize(
    ("code", "description"),
    [
        ("", f"{RAFIKI}body.client must be string"),
        ("", f"{RAFIKI}body.client must match exactly one schema in oneOf"),
        ("", "body/client must be object"),
        ("invalid_request", "client: Expected object, received string"),
        ("invalid_client", "client: Input should be a valid dictionary"),
    ],
)
def test_a_complaint_about_the_type_of_client_is_known(code: str, description: str) -> None:
    for operation in ("request_grant", "request_payment_grant"):
        assert reason(operation, 400, code, description) is Reason.CLIENT_FORM
    assert reason("continue_grant", 400, code, description) is not Reason.CLIENT_FORM


def test_the_second_refusal_is_the_one_that_is_reported() -> None:
    with pytest.raises(Refused) as caught:
        ask(Script(WANTS_OBJECT, UNKNOWN).client())
    assert caught.value.reason is Reason.CLIENT_UNKNOWN


def test_the_number_of_remembered_servers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "_MOST_FORMS", 2)
    forms = ClientForms()
    for server in "abca":
        forms.learn(server, wants_object=True)
    assert [server for server in "abc" if forms.wants_object(server)] == ["a", "c"]


def test_where_the_object_goes_first_only_the_servers_of_the_string_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(protocol, "_MOST_FORMS", 1)
    forms = ClientForms(object_first=True)
    assert forms.wants_object("https://a.example")
    forms.learn("https://a.example", wants_object=False)
    assert not forms.wants_object("https://a.example")
    forms.learn("https://b.example", wants_object=False)
    assert forms.wants_object("https://a.example")
    forms.learn("https://b.example", wants_object=True)
    assert forms.wants_object("https://b.example")
