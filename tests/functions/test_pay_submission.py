from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from checkout.domain.errors import Unavailable
from checkout.domain.session import Phase, Status
from checkout.web import BODY_MAX
from tests.hosted_pages import AWAITING, Answer, Customer, customer
from tests.product import CEDAR
from tests.support import NOW

FORM = {"content-type": "application/x-www-form-urlencoded"}
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Customer]:
    with customer() as found:
        yield found


def raw(browser: Customer, session_id: str, content: bytes, headers: dict[str, str]) -> Answer:
    return browser.ask("POST", f"/pay/{session_id}/wallet", content=content, headers=headers)


def test_json_gets_the_price_and_where_to_approve(browser: Customer) -> None:
    session = browser.world.create()
    answer = browser.submit_json(session, {"wallet_address": f"{CEDAR}/alice"})
    stored = browser.world.session(session.id)
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


def test_a_quote_that_does_not_say_when_it_ends_has_null_there(browser: Customer) -> None:
    session = browser.world.create()
    answer = browser.submit_json(session, {"wallet_address": f"{CEDAR}/no-quote-expiry"})
    assert answer.json["quote"]["expires_at"] is None


def test_a_form_gets_a_page_of_ours_with_the_price_and_the_link_that_leaves(
    browser: Customer,
) -> None:
    session = browser.world.create()
    answer = browser.form(session)
    assert answer.location == f"/pay/{session.id}"
    page = browser.get(answer.location).page
    assert browser.world.session(session.id).interact_url in page.links
    assert "You pay" in page.main


def test_a_form_may_name_its_charset(browser: Customer) -> None:
    session = browser.world.create()
    content = b"wallet_address=https%3A%2F%2Flocalhost%3A4101%2Falice"
    media_type = "Application/X-WWW-Form-Urlencoded; charset=UTF-8"
    answer = raw(browser, session.id, content, {"content-type": media_type})
    assert answer.status == 303


REFUSED: dict[str, tuple[str, int, str]] = {
    "alice?x=1": ("alice?x=1", 424, "wallet_invalid"),
    "nobody there": (f"{CEDAR}/nobody", 424, "wallet_invalid"),
    "no such host": ("https://localhost:9/alice", 424, "wallet_unreachable"),
    "not connected": (f"{CEDAR}/unpeered", 424, "wallet_unavailable"),
    "too small": (f"{CEDAR}/too-small", 424, "amount_too_small_for_wallet"),
    "nothing": ("", 424, "wallet_invalid"),
    "only blanks": ("   ", 424, "wallet_invalid"),
    "too long": (f"{CEDAR}/{'a' * 3000}", 424, "wallet_invalid"),
    "control character": (f"{CEDAR}/a\x00b", 424, "wallet_invalid"),
    "line break": (f"{CEDAR}/a\r\nset-cookie: x", 424, "wallet_invalid"),
    "another scheme": ("javascript:alert(1)", 424, "wallet_invalid"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_wallet_is_told_as_json_to_programs(browser: Customer, case: str) -> None:
    wallet, status, code = REFUSED[case]
    session = browser.world.create()
    answer = browser.submit_json(session, {"wallet_address": wallet})
    assert (answer.status, answer.code) == (status, code)
    assert answer.json["error"]["type"] == "wallet_error"
    assert answer.json["error"]["param"] == "wallet_address"
    assert answer.json["error"]["request_id"] == answer.headers["request-id"]


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_wallet_is_told_on_the_forms_own_page_which_keeps_what_was_typed(
    browser: Customer, case: str
) -> None:
    wallet, status, _ = REFUSED[case]
    session = browser.world.create()
    answer = browser.form(session, wallet)
    assert answer.status == status
    page = answer.page
    field = page.one("input", name="wallet_address").attributes
    assert field["value"] == wallet[:2048]
    assert field["aria-invalid"] == "true"
    described = field["aria-describedby"].split()
    assert page.one("div", role="alert").attributes["id"] in described
    assert "You have not been charged." in page.main
    assert browser.world.session(session.id).status is Status.OPEN


MALFORMED: dict[str, tuple[bytes, dict[str, str], int, str]] = {
    "no field": (b"{}", JSON, 400, "parameter_missing"),
    "unknown field": (b'{"wallet_address":"a","walet":1}', JSON, 400, "parameter_unknown"),
    "number": (b'{"wallet_address":1}', JSON, 400, "parameter_invalid"),
    "null": (b'{"wallet_address":null}', JSON, 400, "parameter_invalid"),
    "list": (b'["a"]', JSON, 400, "invalid_json"),
    "not json": (b"wallet_address=a", JSON, 400, "invalid_json"),
    "nan": (b'{"wallet_address":NaN}', JSON, 400, "invalid_json"),
    "twice": (b'{"wallet_address":"a","wallet_address":"b"}', JSON, 400, "invalid_json"),
    "surrogate": (b'{"wallet_address":"\\ud800"}', JSON, 400, "invalid_json"),
    "deep": (b'{"wallet_address":' + b"[" * 5000 + b"]" * 5000 + b"}", JSON, 400, "invalid_json"),
    "not utf-8": (b'{"wallet_address":"\xff"}', JSON, 400, "invalid_json"),
    "too large": (b" " * (BODY_MAX + 1), JSON, 413, "body_too_large"),
    "no type": (b"{}", {}, 415, "content_type_invalid"),
    "text": (b"a", {"content-type": "text/plain"}, 415, "content_type_invalid"),
    "multipart": (b"a", {"content-type": "multipart/form-data"}, 415, "content_type_invalid"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_body_changes_nothing(browser: Customer, case: str) -> None:
    content, headers, status, code = MALFORMED[case]
    session = browser.world.create()
    asked = len(browser.world.transport.sent)
    answer = raw(browser, session.id, content, {"accept": "application/json", **headers})
    assert (answer.status, answer.code) == (status, code)
    assert browser.world.session(session.id) == session
    assert len(browser.world.transport.sent) == asked


MALFORMED_FORMS: dict[str, tuple[bytes, int, str]] = {
    "no field": (b"", 400, "We could not understand your request."),
    "unknown field": (b"wallet_address=a&x=1", 400, "We could not understand your request."),
    "twice": (b"wallet_address=a&wallet_address=b", 400, "We could not understand your request."),
    "many": (b"a=1&" * 50_000 + b"a=2", 400, "We could not understand your request."),
    "bad escapes": (
        b"wallet_address=%zz%ff%00",
        424,
        "We could not find a wallet at this address.",
    ),
    "not utf-8": (b"wallet_address=\xff\xfe", 424, "We could not find a wallet at this address."),
    "no price": (b"wallet_address=a&was=1e3", 400, "We could not understand your request."),
    "too large": (b"wallet_address=" + b"a" * BODY_MAX, 413, "The request was too large"),
}


@pytest.mark.parametrize("case", MALFORMED_FORMS)
def test_a_malformed_form_gets_a_page_that_says_so(browser: Customer, case: str) -> None:
    content, status, said = MALFORMED_FORMS[case]
    session = browser.world.create()
    answer = raw(browser, session.id, content, FORM)
    assert answer.status == status
    assert said in answer.page.main
    assert browser.world.session(session.id) == session


def test_a_browser_that_posts_another_type_gets_a_page(browser: Customer) -> None:
    session = browser.world.create()
    answer = raw(browser, session.id, b"a", {"content-type": "text/plain"})
    assert answer.status == 415
    assert f"../{session.id}" in answer.page.links


UNFIT: dict[str, tuple[Status, dict[str, Any], int, str, str]] = {
    "canceled": (Status.CANCELED, {}, 400, "session_unexpected_state", "was canceled"),
    "expired": (Status.EXPIRED, {}, 400, "session_unexpected_state", "has expired"),
    "completed": (Status.COMPLETED, {}, 400, "session_unexpected_state", "Paid"),
    "preparing": (Status.PREPARING, {}, 409, "session_busy", "Preparing your payment"),
    "paying": (
        Status.AWAITING_APPROVAL,
        {**AWAITING, "phase": Phase.PAYING},
        409,
        "payment_in_progress",
        "Confirming your payment",
    ),
    "processing": (
        Status.PROCESSING,
        AWAITING,
        409,
        "payment_in_progress",
        "Confirming your payment",
    ),
}


@pytest.mark.parametrize("case", UNFIT)
def test_a_session_that_takes_no_wallet_says_so(browser: Customer, case: str) -> None:
    status, fields, expected, code, said = UNFIT[case]
    lease = NOW.replace(hour=20)
    session = browser.put(status, **{**fields, "lease_until": lease})
    answer = browser.submit_json(session, {"wallet_address": f"{CEDAR}/alice"})
    assert (answer.status, answer.code) == (expected, code)
    page = browser.form(session)
    assert page.status == expected
    assert said in page.page.main
    assert "/pay/" in page.body
    assert browser.world.session(session.id) == session


def test_too_many_tries_are_told_with_the_time_to_wait(browser: Customer) -> None:
    session = browser.put(submissions=(browser.world.clock.now(),) * 10)
    answer = browser.submit_json(session, {"wallet_address": f"{CEDAR}/alice"})
    assert (answer.status, answer.code) == (429, "rate_limited")
    page = browser.form(session)
    assert (page.status, page.headers["retry-after"]) == (429, answer.headers["retry-after"])
    assert "Too many attempts." in page.page.main
    assert page.page.one("input", name="wallet_address").attributes["value"]


def test_another_wallet_can_be_taken_while_the_first_has_not_approved(browser: Customer) -> None:
    session = browser.world.create()
    browser.form(session)
    browser.form(session, f"{CEDAR}/carol")
    stored = browser.world.session(session.id)
    assert stored.customer is not None
    assert stored.customer.id == f"{CEDAR}/carol"


@pytest.mark.parametrize(
    ("wallet", "said"),
    [
        ("alice", "The price has been updated and is still 18.54 EUR."),
        ("expensive-renewal", "The price went up from 18.54 EUR to 20.40 EUR: 1.86 EUR more."),
    ],
)
def test_a_renewed_price_is_shown_with_its_difference_without_script_too(
    browser: Customer, wallet: str, said: str
) -> None:
    session = browser.world.create()
    browser.form(session, f"{CEDAR}/{wallet}")
    page = browser.open(session).page
    fields = {
        one.attributes["name"]: one.attributes["value"] for one in page.all("input", type="hidden")
    }
    answer = browser.ask("POST", f"/pay/{session.id}/wallet", data=fields)
    assert answer.location == f"/pay/{session.id}?was=1854"
    assert said in browser.get(answer.location).page.main
    assert said not in browser.open(session).page.main


@pytest.mark.parametrize("was", ["", "x", "-1", "1.5", "9" * 21, "<b>"])
def test_what_is_no_price_in_an_address_is_left_alone(browser: Customer, was: str) -> None:
    session = browser.world.submit(browser.world.create())
    page = browser.open(session, params={"was": was}).page
    assert not page.all("p", id="change")


def test_a_wrong_other_wallet_leaves_the_typed_one_on_an_open_form(browser: Customer) -> None:
    session = browser.world.create()
    browser.form(session)
    answer = browser.form(session, "not a wallet")
    page = answer.page
    assert answer.status == 424
    assert "open" in page.one("details", id="other").attributes
    (typed,) = [
        one.attributes["value"]
        for one in page.all("input", name="wallet_address")
        if one.attributes.get("type") != "hidden"
    ]
    assert typed == "not a wallet"


def test_an_unknown_session_is_404_to_both(browser: Customer) -> None:
    session = browser.world.create()
    other = session.id[:-4] + "0000"
    content = b'{"wallet_address":"https://wallet.example/alice"}'
    assert raw(browser, other, content, JSON).code == "resource_missing"
    answer = raw(browser, other, b"wallet_address=wallet.example", FORM)
    assert answer.status == 404
    assert "We could not find this checkout" in answer.page.main


@pytest.mark.parametrize("session_id", ["cs_0000000000000000000000", "cs_%00", "x" * 5000, "%ff"])
@pytest.mark.parametrize("content", [b"", b"wallet_address=a&x=1", b"wallet_address=a&&=&a=1"])
def test_a_malformed_form_of_an_unknown_session_is_no_server_error(
    browser: Customer, session_id: str, content: bytes
) -> None:
    answer = raw(browser, session_id, content, FORM)
    assert answer.status == 400
    assert "We could not understand your request" in answer.page.main


def test_a_store_that_is_down_is_a_503_page_and_a_503_json() -> None:
    def down(*_: Any, **__: Any) -> Any:
        raise Unavailable("The data store does not answer.")

    with customer() as browser:
        session = browser.world.create()
        browser.world.dynamo.get_item = down  # type: ignore[method-assign]
        answer = browser.submit_json(session, {"wallet_address": "w.example"})
        assert (answer.status, answer.code) == (503, "unavailable")
        page = browser.form(session)
        assert page.status == 503
        assert "Nothing is lost" in page.page.main
