from __future__ import annotations

from typing import Any

import pytest

from checkout.domain.ground.errors import Unavailable
from checkout.domain.session.record import Status
from open_payments.transports import Response
from tests.support.flows import CEDAR, answering
from tests.support.hosted_pages import Answer, Customer, customer

pytestmark = pytest.mark.untraced

BODY_MAX = 32 * 1024  # bytes that a customer sends
FORM = {"content-type": "application/x-www-form-urlencoded"}
JSON = {"content-type": "application/json"}


def raw(visitor: Customer, session_id: str, content: bytes, headers: dict[str, str]) -> Answer:
    return visitor.ask("POST", f"/pay/{session_id}/wallet", content=content, headers=headers)


def test_json_gets_the_price_and_where_to_approve(visitor: Customer) -> None:
    session = visitor.world.create()
    answer = visitor.submit_json(session, {"wallet_address": f"{CEDAR}/alice"})
    stored = visitor.world.session(session.id)
    assert answer.status == 200
    assert stored.quote is not None
    assert answer.json == {
        "status": "awaiting_approval",
        "interact_url": stored.interact_url,
        "quote": {
            "debit_amount": {
                "value": str(stored.quote.debit.value),
                "asset_code": "EUR",
                "asset_scale": 2,
            },
            "receive_amount": {"value": "2000", "asset_code": "USD", "asset_scale": 2},
            "expires_at": "2026-03-01T12:05:00.000Z",
        },
    }


def test_a_quote_that_does_not_say_when_it_ends_has_null_there(visitor: Customer) -> None:
    session = visitor.world.create()
    answer = visitor.submit_json(session, {"wallet_address": f"{CEDAR}/no-quote-expiry"})
    assert answer.json["quote"]["expires_at"] is None


def test_a_form_gets_a_page_with_the_price_and_the_link_that_leaves(visitor: Customer) -> None:
    session = visitor.world.create()
    answer = visitor.form(session)
    assert answer.location == f"/pay/{session.id}"
    page = visitor.get(answer.location).page
    assert visitor.world.session(session.id).interact_url in page.links
    assert "You pay" in page.main


def test_a_form_may_name_its_charset(visitor: Customer) -> None:
    session = visitor.world.create()
    content = b"wallet_address=https%3A%2F%2Flocalhost%3A4101%2Falice"
    media_type = "Application/X-WWW-Form-Urlencoded; charset=UTF-8"
    answer = raw(visitor, session.id, content, {"content-type": media_type})
    assert answer.status == 303


REFUSED: dict[str, tuple[str, str]] = {
    "alice?x=1": ("alice?x=1", "wallet_invalid"),
    "nobody there": (f"{CEDAR}/nobody", "wallet_invalid"),
    "no such host": ("https://localhost:9/alice", "wallet_unreachable"),
    "not connected": (f"{CEDAR}/unpeered", "wallet_unavailable"),
    "too small": (f"{CEDAR}/too-small", "amount_too_small_for_wallet"),
    "nothing": ("", "wallet_invalid"),
    "only blanks": ("   ", "wallet_invalid"),
    "too long": (f"{CEDAR}/{'a' * 3000}", "wallet_invalid"),
    "control character": (f"{CEDAR}/a\x00b", "wallet_invalid"),
    "line break": (f"{CEDAR}/a\r\nset-cookie: x", "wallet_invalid"),
    "another scheme": ("javascript:alert(1)", "wallet_invalid"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_wallet_is_told_as_json_and_on_the_form(visitor: Customer, case: str) -> None:
    wallet, code = REFUSED[case]
    answer = visitor.submit_json(visitor.world.create(), {"wallet_address": wallet})
    assert (answer.status, answer.code) == (424, code)
    assert answer.json["error"]["type"] == "wallet_error"
    assert answer.json["error"]["param"] == "wallet_address"
    assert answer.json["error"]["request_id"] == answer.headers["request-id"]
    session = visitor.world.create()
    answer = visitor.form(session, wallet)
    assert answer.status == 424
    page = answer.page
    field = page.one("input", name="wallet_address").attributes
    if code not in ("wallet_unavailable", "amount_too_small_for_wallet"):
        assert field["value"] == wallet[:2048]
        assert field["aria-invalid"] == "true"
        described = field["aria-describedby"].split()
        assert page.one("div", role="alert").attributes["id"] in described
    else:
        assert field["value"] == "", "the same wallet would fail again"
        assert "aria-invalid" not in field
    assert "You have not been charged." in page.main
    assert visitor.world.session(session.id).status is Status.OPEN


def test_a_wallet_provider_that_refuses_us_is_named_as_what_it_is(visitor: Customer) -> None:
    answering(visitor.world, "GET", "/alice", lambda request: Response(403, {}, b"no"))
    session = visitor.world.create()
    said = visitor.form(session).page.main
    assert "Your wallet provider refused to answer us. The address may be right." in said
    assert "We could not get a usable answer from your wallet" in visitor.open(session).page.main


MALFORMED: dict[str, tuple[bytes, dict[str, str], int, str]] = {
    "no field": (b"{}", JSON, 400, "parameter_missing"),
    "unknown field": (b'{"wallet_address":"a","walet":1}', JSON, 400, "parameter_unknown"),
    "number": (b'{"wallet_address":1}', JSON, 400, "parameter_invalid"),
    "null": (b'{"wallet_address":null}', JSON, 400, "parameter_invalid"),
    "list": (b'["a"]', JSON, 400, "invalid_json"),
    "not json": (b"wallet_address=a", JSON, 400, "invalid_json"),
    "twice": (b'{"wallet_address":"a","wallet_address":"b"}', JSON, 400, "invalid_json"),
    "too large": (b" " * (BODY_MAX + 1), JSON, 413, "body_too_large"),
    "no type": (b"{}", {}, 415, "content_type_invalid"),
    "text": (b"a", {"content-type": "text/plain"}, 415, "content_type_invalid"),
    "multipart": (b"a", {"content-type": "multipart/form-data"}, 415, "content_type_invalid"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_body_changes_nothing(visitor: Customer, case: str) -> None:
    content, headers, status, code = MALFORMED[case]
    session = visitor.world.create()
    asked = len(visitor.world.transport.sent)
    answer = raw(visitor, session.id, content, {"accept": "application/json", **headers})
    assert (answer.status, answer.code) == (status, code)
    assert visitor.world.session(session.id) == session
    assert len(visitor.world.transport.sent) == asked


MALFORMED_FORMS: dict[str, tuple[bytes, int, str]] = {
    "no field": (b"", 400, "We could not understand your request."),
    "unknown field": (b"wallet_address=a&x=1", 400, "We could not understand your request."),
    "twice": (b"wallet_address=a&wallet_address=b", 400, "We could not understand your request."),
    "many": (b"a=1&" * 5_000 + b"a=2", 400, "We could not understand your request."),
    "bad escapes": (b"wallet_address=%zz%ff%00", 424, "has no spaces and no invisible characters"),
    "not utf-8": (b"wallet_address=\xff\xfe", 424, "is not a provider's address."),
    "no price": (b"wallet_address=a&was=1e3", 400, "We could not understand your request."),
    "too large": (b"wallet_address=" + b"a" * BODY_MAX, 413, "The request was too large"),
}


@pytest.mark.parametrize("case", MALFORMED_FORMS)
def test_a_malformed_form_gets_a_page_that_says_so(visitor: Customer, case: str) -> None:
    content, status, said = MALFORMED_FORMS[case]
    session = visitor.world.create()
    answer = raw(visitor, session.id, content, FORM)
    assert answer.status == status
    assert said in answer.page.main
    assert visitor.world.session(session.id) == session


def test_a_browser_that_posts_another_type_gets_a_page(visitor: Customer) -> None:
    session = visitor.world.create()
    answer = raw(visitor, session.id, b"a", {"content-type": "text/plain"})
    assert answer.status == 415
    assert f"../{session.id}" in answer.page.links


@pytest.mark.parametrize(
    ("stage", "expected", "code", "said"),
    [
        ("canceled", 400, "session_unexpected_state", "was canceled"),
        ("expired", 400, "session_unexpected_state", "has expired"),
        ("completed", 400, "session_unexpected_state", "Paid"),
        ("preparing", 409, "session_busy", "Preparing your payment"),
        ("paying", 409, "payment_in_progress", "Sending your payment"),
        ("processing", 409, "payment_in_progress", "Waiting for the money"),
    ],
)
def test_a_session_that_takes_no_wallet_says_so(
    visitor: Customer, stage: str, expected: int, code: str, said: str
) -> None:
    session = visitor.put_in(stage)
    answer = visitor.submit_json(session, {"wallet_address": f"{CEDAR}/alice"})
    assert (answer.status, answer.code) == (expected, code)
    page = visitor.form(session)
    assert page.status == expected
    assert said in page.page.main
    assert "/pay/" in page.body
    assert visitor.world.session(session.id) == session


def test_too_many_tries_are_told_with_the_time_to_wait(visitor: Customer) -> None:
    session = visitor.put(submissions=(visitor.world.clock.now(),) * 10)
    answer = visitor.submit_json(session, {"wallet_address": f"{CEDAR}/alice"})
    assert (answer.status, answer.code) == (429, "rate_limited")
    page = visitor.form(session)
    assert (page.status, page.headers["retry-after"]) == (429, answer.headers["retry-after"])
    assert "Too many attempts." in page.page.main
    assert page.page.one("input", name="wallet_address").attributes["value"]


def test_another_wallet_can_be_taken_while_the_first_has_not_approved(visitor: Customer) -> None:
    session = visitor.world.create()
    visitor.form(session)
    visitor.form(session, f"{CEDAR}/carol")
    stored = visitor.world.session(session.id)
    assert stored.customer is not None
    assert stored.customer.id == f"{CEDAR}/carol"


@pytest.mark.parametrize(
    ("wallet", "said"),
    [
        ("alice", "The price has been updated and is still €18.54."),
        ("expensive-renewal", "The price went up from €18.54 to €20.40: €1.86 more."),
    ],
)
def test_a_renewed_price_is_shown_with_its_difference_without_script_too(
    visitor: Customer, wallet: str, said: str
) -> None:
    session = visitor.world.create()
    visitor.form(session, f"{CEDAR}/{wallet}")
    page = visitor.open(session).page
    fields = {
        one.attributes["name"]: one.attributes["value"] for one in page.all("input", type="hidden")
    }
    answer = visitor.ask("POST", f"/pay/{session.id}/wallet", data=fields)
    assert answer.location == f"/pay/{session.id}?was=1854"
    assert said in visitor.get(answer.location).page.main
    assert said not in visitor.open(session).page.main


PREFERS = {"prefer": "return=representation"}  # as the page's script does


def test_the_script_of_a_page_gets_the_price_at_once(visitor: Customer) -> None:
    session = visitor.world.create()
    answer = visitor.form(session, headers=PREFERS)
    assert answer.status == 200
    assert answer.page.one("main").attributes == visitor.open(session).page.one("main").attributes
    assert answer.page.main == visitor.open(session).page.main
    asked = visitor.world.session(session.id).interact_url
    assert asked is not None
    assert visitor.back_from(visitor.world.network.approve(asked)).location.endswith("/success")


def test_the_script_of_a_page_is_told_how_a_renewed_price_has_changed(visitor: Customer) -> None:
    session = visitor.world.create()
    visitor.form(session, f"{CEDAR}/expensive-renewal")
    fields = {"wallet_address": f"{CEDAR}/expensive-renewal", "was": "1854"}
    path = f"/pay/{session.id}/wallet"
    page = visitor.ask("POST", path, data=fields, headers=PREFERS).page
    assert "The price went up from €18.54 to €20.40: €1.86 more." in page.main


def test_the_script_of_a_page_follows_to_the_confirmation_where_money_has_come(
    visitor: Customer,
) -> None:
    session = visitor.submitted()
    visitor.world.pay_from_outside(session, 2000)
    answer = visitor.form(session, headers=PREFERS)
    assert answer.location == f"/pay/{session.id}/success"


@pytest.mark.parametrize("was", ["", "x", "-1", "1.5", "9" * 21, "<b>"])
def test_what_is_no_price_in_an_address_is_left_alone(visitor: Customer, was: str) -> None:
    session = visitor.world.submit(visitor.world.create())
    page = visitor.open(session, params={"was": was}).page
    assert not page.all("p", id="change")


def test_a_wrong_other_wallet_leaves_the_typed_one_on_an_open_form(visitor: Customer) -> None:
    session = visitor.world.create()
    visitor.form(session)
    answer = visitor.form(session, "not a wallet")
    page = answer.page
    assert answer.status == 424
    assert "open" in page.one("details", id="other").attributes
    (typed,) = [
        one.attributes["value"]
        for one in page.all("input", name="wallet_address")
        if one.attributes.get("type") != "hidden"
    ]
    assert typed == "not a wallet"


def test_an_unknown_session_is_404_to_both(visitor: Customer) -> None:
    session = visitor.world.create()
    other = session.id[:-4] + "0000"
    content = b'{"wallet_address":"https://wallet.example/alice"}'
    assert raw(visitor, other, content, JSON).code == "resource_missing"
    answer = raw(visitor, other, b"wallet_address=wallet.example", FORM)
    assert answer.status == 404
    assert "We could not find this checkout" in answer.page.main


@pytest.mark.parametrize("session_id", ["cs_0000000000000000000000", "cs_%00", "x" * 5000, "%ff"])
@pytest.mark.parametrize("content", [b"", b"wallet_address=a&x=1", b"wallet_address=a&&=&a=1"])
def test_a_malformed_form_of_an_unknown_session_is_no_server_error(
    visitor: Customer, session_id: str, content: bytes
) -> None:
    answer = raw(visitor, session_id, content, FORM)
    assert answer.status == 400
    assert "We could not understand your request" in answer.page.main


def test_a_store_that_is_down_is_a_503_page_and_a_503_json() -> None:
    def down(*_: Any, **__: Any) -> Any:
        raise Unavailable("The data store does not answer.")

    with customer() as visitor:
        session = visitor.world.create()
        visitor.world.dynamo.get_item = down  # type: ignore[method-assign]
        answer = visitor.submit_json(session, {"wallet_address": "w.example"})
        assert (answer.status, answer.code) == (503, "unavailable")
        page = visitor.form(session)
        assert page.status == 503
        assert "Nothing is lost" in page.page.main
