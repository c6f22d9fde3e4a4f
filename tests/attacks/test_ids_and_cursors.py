"""Ids, cursors and idempotency keys of others, forged, mutated or guessed.

Another merchant's records look like missing ones, and nothing changes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkout.domain.ground.errors import CursorInvalid
from checkout.domain.ground.grammar import BASE62
from checkout.domain.session.record import Session
from checkout.flows.cursors import cursor, position_of
from tests.support.attack_counts import Attack
from tests.support.dashboard_routes import paths
from tests.support.doors import Doors, Visitor
from tests.support.hosted_pages import Answer
from tests.support.merchant_api import a_body, gateway_event

ACTIONS = ["", "/cancel", "/expire", "/accept_as_paid", "/give_up"]
NOBODY = f"cs_{'0' * 22}"
SESSION = re.compile(f"cs_{BASE62}")


def an_open(doors: Doors) -> Session:
    return doors.create()


def an_approved(doors: Doors) -> Session:
    return doors.approved()[0]


def a_completed(doors: Doors) -> Session:
    browser = Visitor()
    session, back = doors.approved(browser)
    assert doors.follow(back, browser).status == 303
    return doors.world.session(session.id)


def in_doubt(doors: Doors) -> Session:
    return doors.world.in_doubt()


STAGES: dict[str, Callable[[Doors], Session]] = {
    "open": an_open,
    "awaiting_approval": an_approved,
    "processing": in_doubt,
    "completed": a_completed,
}


def ask(doors: Doors, session_id: str, action: str, key: str = "") -> Answer:
    return doors.call("POST" if action else "GET", f"/{session_id}{action}", key=key)


def without_ids(answer: Answer) -> tuple[int, dict[str, Any]]:
    error = dict(answer.json["error"])
    del error["request_id"]
    return answer.status, error


@pytest.mark.parametrize("stage", STAGES)
def test_another_merchants_session_is_missing_at_every_stage(
    doors: Doors, attack: Attack, stage: str
) -> None:
    session = STAGES[stage](doors)

    def attempt(action: str) -> None:
        with doors.nothing_happens():
            theirs = ask(doors, session.id, action, doors.other_key)
            nobodys = ask(doors, NOBODY, action, doors.other_key)
        assert theirs.status == 404
        assert without_ids(theirs) == without_ids(nobodys)

    attack.each(ACTIONS, attempt)
    assert session.id not in doors.call("GET", key=doors.other_key).body


# What /v1 makes of a session: how its id begins, and what follows the session's digits.
MADE_OF_IT = {
    "payment_intents": ("pi_", ""),
    "charges": ("ch_", ""),
    "payment_methods": ("pm_", ""),
    "balance_transactions": ("txn_", ""),  # of a refund: test_crossings.py
    "prices": ("price_", "00"),
    "products": ("prod_", "00"),
    "checkout/sessions": ("cs_", ""),
}


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_that_is_made_of_another_merchants_session_is_shown(
    doors: Doors, attack: Attack, stage: str
) -> None:
    session = STAGES[stage](doors)

    def attempt(case: tuple[str, tuple[str, str]]) -> None:
        path, (prefix, rest) = case

        def asked(session_id: str) -> tuple[int, dict[str, Any]]:
            named = session_id.replace("cs_", prefix) + rest
            status, error = without_ids(v1(doors, f"/v1/{path}/{named}"))
            return status, {name: str(each).replace(named, "…") for name, each in error.items()}

        with doors.nothing_happens():
            theirs, nobodys = asked(session.id), asked(NOBODY)
        assert theirs[0] == 404
        assert theirs == nobodys

    attack.each(MADE_OF_IT.items(), attempt)


def v1(doors: Doors, path: str) -> Answer:
    """Ask /v1 with the key of the other merchant."""
    headers = {"Host": "pay.example", "Authorization": f"Bearer {doors.other_key}"}
    return doors.send("v1", gateway_event("GET", path, "", headers, None))


def mutations(identifier: str) -> dict[str, str]:
    """Return what a careless look-up would take for the id."""
    prefix, _, digits = identifier.partition("_")
    return {
        "in other case": identifier.swapcase(),
        "the prefix in capitals": f"CS_{digits}",
        "without prefix": digits,
        "another prefix": f"evt_{digits}",
        "cut": identifier[:-1],
        "longer": f"{identifier}0",
        "a blank behind": f"{identifier}%20",
        "a blank before": f"%20{identifier}",
        "a line break": f"{identifier}%0a",
        "a carriage return": f"{identifier}%0d",
        "a nul": f"{identifier}%00",
        "a slash": f"{identifier}/",
        "a dot": f"{identifier}/.",
        "a path": f"x/../{identifier}",
        "an encoded path": f"x%2f..%2f{identifier}",
        "a double slash": f"/{identifier}",
        "a semicolon": f"{identifier};x=1",
        "a suffix": f"{identifier}.json",
        "a hash": f"{identifier}%23",
        "a star": f"{prefix}_*",
        "a percent": f"{prefix}_%25",
        "an underscore": f"{prefix}_{'_' * 22}",
        "SQL": f"{identifier}'%20OR%20'1'='1",
        "a brace": f"{identifier}%7B%24ne%3A1%7D",
        "full width": f"cs_{digits[:-1]}%EF%BC%91",
        "an encoded digit": f"cs_%25{ord(digits[0]):x}{digits[1:]}",
        "doubled": f"{identifier},{identifier}",
        "doubled by a slash": f"{identifier}/{identifier}",
        "a zero-width space": f"{identifier}%E2%80%8B",
        "not UTF-8": f"{identifier}%ff",
        "the row's key": f"checkout_sessions%23{identifier}",
        "an event's form": f"evt_{'0' * 22}",
        "a merchant's form": f"mer_{'0' * 22}",
        "dots": "..",
        "nothing": "%20",
        "long": "cs_" + "a" * 8000,
    }


def test_no_id_is_nearly_right(shared: Doors, attack: Attack) -> None:
    """Under the merchant's own key, and as the address of a page, which needs none."""
    session = shared.create()

    def attempt(identifier: str) -> None:
        with shared.nothing_happens():
            for action in ACTIONS:
                answer = ask(shared, identifier, action)
                assert answer.status in (404, 405), answer.status
            for path in ("", "/success", "/status", "/qr", "/logo"):
                page = shared.pay("GET", f"/{identifier}{path}")
                # Mail programs put such signs behind an address: it leads to the address itself.
                before, _, behind = f"{identifier}{path}".partition(session.id)
                leads = not before and behind in ("%20", "%E2%80%8B", "/", "/.")
                assert page.status == (303 if leads else 404), (path, page.status)
                assert session.id not in page.body.replace(identifier, "")

    attack.each(mutations(session.id), attempt)


# --- cursors


def with_pages(doors: Doors) -> tuple[str, list[str]]:
    """Return the cursor of the merchant's second page, and the ids that lie there."""
    ids = []
    for _ in range(3):
        ids.append(doors.create().id)
        doors.world.clock.pass_time(1)
    page = doors.call("GET", query="limit=1").json
    assert page["data"][0]["id"] == ids[-1]
    return page["next_cursor"], ids[-2::-1]


def listed(doors: Doors, presented: str, key: str = "") -> Answer:
    return doors.call("GET", query=f"limit=100&cursor={quote(presented, safe='')}", key=key)


# The lists that take a cursor, and how the ids in their cursors begin.
CURSORS = {
    "/api/checkout/sessions": "cs_",
    "/api/checkout/refunds": "re_",
    "/dashboard": "cs_",
    "/dashboard/export": "cs_",
    "/dashboard/export/items.csv": "cs_",
    "/dashboard/export/transactions.csv": "cs_",
    "/dashboard/webhooks": "evt_",
    "/dashboard/audit": "",
    "/dashboard/links": "plink_",
}


def test_no_other_merchants_cursor_is_taken(doors: Doors, attack: Attack) -> None:
    presented, _ = with_pages(doors)
    browser, other = doors.signed_in(), doors.signed_in(doors.other_key)

    def status(path: str, cursor: str, *, mine: bool = False) -> int:
        with doors.nothing_happens():
            if path.startswith("/api"):
                key = doors.key if mine else doors.other_key
                return doors.call("GET", path, query=f"cursor={cursor}", key=key).status
            path = path.removeprefix("/dashboard")
            visitor = browser if mine else other
            return doors.dashboard("GET", path, query=f"cursor={cursor}", visitor=visitor).status

    def attempt(case: tuple[str, str]) -> None:
        path, cursor = case
        assert status(path, cursor) == 400

    made = {
        each: signed(doors.merchant.id, f"{'9' * 13}#{CURSORS[each]}{'0' * 22}") for each in CURSORS
    }
    assert {each: status(each, made[each], mine=True) for each in made} == dict.fromkeys(made, 200)
    listed = {"/dashboard" + path for path in paths("GET") if "{" not in path} - set(CURSORS)
    listed -= {"/dashboard/budget/callback", "/dashboard/wallet/callback"}  # need more than this
    assert not [path for path in listed if status(path, "junk") == 400], "a list that is not tried"
    given = (*made.values(), presented)
    attack.each([(path, cursor) for path in CURSORS for cursor in given], attempt)
    form = {
        "since": "2020-01-01",
        "form_token": other.form_token,
        "after": made["/dashboard/webhooks"],
        "sure": "yes",
    }
    assert doors.dashboard("POST", "/webhooks/resend-failed", form, visitor=other).status == 400


def test_a_changed_cursor_is_refused_or_is_the_same(doors: Doors, attack: Attack) -> None:
    """The last digit of base64 has bits that mean nothing: another one may be the same cursor."""
    presented, ids = with_pages(doors)
    alphabet = "AZaz09-_+/=. "

    def attempt(case: tuple[int, str]) -> None:
        place, digit = case
        changed = presented[:place] + digit + presented[place + 1 :]
        answer = listed(doors, changed)
        if answer.status == 200:
            assert place == len(presented) - 1 or digit == presented[place]
            assert [each["id"] for each in answer.json["data"]] == ids
        else:
            assert (answer.status, answer.code) == (400, "cursor_invalid")

    places = [*range(0, len(presented), 5), len(presented) - 1]
    attack.each([(place, digit) for place in places for digit in alphabet], attempt)


def forged(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def signed(merchant: str, position: str) -> str:
    """Return a cursor as we make it: the way is public, and a merchant's id is no secret to it."""
    checksum = hashlib.sha256(f"cursor\n{merchant}\n{position}".encode()).hexdigest()[:16]
    return forged(f"{position}#{checksum}")


SHAPES = [
    *("", "#", "##", "0", "0" * 13, f"{'0' * 13}#", f"{'0' * 12}#{NOBODY}", f"{'0' * 14}#{NOBODY}"),
    *(f"-{'0' * 12}#{NOBODY}", f"{'9' * 13}#evt_{'0' * 22}", f"{'9' * 13}#{NOBODY}\n"),
    *(f"{'9' * 13}#{NOBODY}#x", f"{'9' * 13}##{NOBODY}", f"{'9' * 13}#cs_{'é' * 11}"),
    *("' OR 1=1", '{"id":{"S":"x"}}', "../../x", "\x00", "9" * 4000, "[]", "null", "٣" * 13),
]  # fmt: skip


def test_no_forged_cursor_is_taken(shared: Doors, attack: Attack) -> None:
    def attempt(text: str) -> None:
        with shared.nothing_happens():
            for presented in (text, forged(text), signed(shared.merchant.id, text)):
                answer = listed(shared, presented)
                code = "parameter_invalid" if "\0" in presented else "cursor_invalid"
                assert (answer.status, answer.code) == (400, code), presented

    attack.each(SHAPES, attempt)


def test_a_position_that_a_merchant_made_up_shows_its_own_sessions_alone(
    doors: Doors, attack: Attack
) -> None:
    """A cursor's form is public: it holds a position, and no right."""
    presented, _ = with_pages(doors)
    theirs = position_of(doors.merchant.id, presented, SESSION) or ""
    mine = doors.call("POST", "", a_body(), key=doors.other_key).json["id"]

    def attempt(position: str) -> None:
        answer = listed(doors, signed(doors.other.id, position), doors.other_key)
        assert answer.status == 200
        assert {each["id"] for each in answer.json["data"]} <= {mine}

    attack.each([theirs, f"{'9' * 13}#{NOBODY}", f"{'0' * 13}#{NOBODY}"], attempt)


@given(st.text(), st.text(), st.text())
def test_a_cursor_is_of_one_merchant_and_one_position(one: str, other: str, text: str) -> None:
    made = cursor("mer_1", f"{1:013d}#{NOBODY}")
    for presented in (text, made + text, text + made, one + made[len(one) :]):
        try:
            found = position_of("mer_1", presented, SESSION)
        except CursorInvalid:
            continue
        assert found == f"{1:013d}#{NOBODY}"
    if other != "mer_1":
        with pytest.raises(CursorInvalid):
            position_of(other.encode("utf-8", "replace").decode(), made, SESSION)


# --- idempotency keys

REFUSED_KEYS = ["", "x" * 256, "é", "a\x00", "a\n", "a\tb", "a\x7f", "\u202e", "a\r\nX: y", "💶"]


def test_no_such_idempotency_key_is_taken(shared: Doors, attack: Attack) -> None:
    def attempt(key: str) -> None:
        with shared.nothing_happens():
            answer = shared.call("POST", "", a_body(), headers={"Idempotency-Key": key})
            assert (answer.status, answer.code) == (400, "idempotency_key_invalid")
            assert answer.json["error"]["type"] == "idempotency_error"
            assert answer.json["error"]["param"] == "Idempotency-Key"

    attack.each(REFUSED_KEYS, attempt)


def same_keys(merchant: str) -> list[str]:
    """Return keys that would meet another merchant's `order-1` in a careless table."""
    return [
        "order-1",
        f"{merchant}#order-1",
        f"{merchant}:order-1",
        f"{merchant}\\norder-1",
        f"idempotency#{merchant}#order-1",
        "order-1#",
        "#order-1",
        "order-1,order-1",
        "ORDER-1",
        hashlib.sha256(f"{merchant}\norder-1".encode()).hexdigest(),
    ]


def test_no_key_replays_another_merchants_answer(doors: Doors, attack: Attack) -> None:
    asked = a_body(metadata={"order": "of the other"})
    first = doors.call("POST", "", asked, headers={"Idempotency-Key": "order-1"})

    def attempt(key: str) -> None:
        headers = {"Idempotency-Key": key}
        answer = doors.call("POST", "", asked, headers=headers, key=doors.other_key)
        assert answer.status == 201
        assert "idempotent-replayed" not in answer.headers
        assert answer.json["id"] != first.json["id"]
        found = doors.world.session(answer.json["id"])
        assert found.merchant == doors.other.id

    attack.each(same_keys(doors.merchant.id), attempt)
    with doors.nothing_happens():
        again = doors.call("POST", "", asked, headers={"Idempotency-Key": "order-1"})
    assert (again.body, again.headers["idempotent-replayed"]) == (first.body, "true")


OTHERS: list[dict[str, Any]] = [
    {"metadata": {"a": "1"}},
    {"metadata": {"a": 1.0}},
    {"metadata": {"a": True}},
    {"metadata": {"a": 1, "b": None}},
    {"success_url": "https://shop.example/other"},
    {"cancel_url": "https://shop.example/basket?"},
    {"expires_in_seconds": 300},
    {"locale": "de"},
    {"line_items": [*a_body()["line_items"], *a_body()["line_items"]]},
]


def test_no_key_is_used_for_another_purchase(doors: Doors, attack: Attack) -> None:
    headers = {"Idempotency-Key": "order-1"}
    first = doors.call("POST", "", a_body(metadata={"a": 1}), headers=headers)
    assert first.status == 201

    def attempt(changes: dict[str, Any]) -> None:
        with doors.nothing_happens():
            body = a_body(**{"metadata": {"a": 1}} | changes)
            answer = doors.call("POST", "", body, headers=headers)
            assert (answer.status, answer.code) == (400, "idempotency_key_reused")
            assert answer.json["error"]["type"] == "idempotency_error"

    attack.each(OTHERS, attempt)
