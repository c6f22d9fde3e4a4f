"""The dashboard: forms of other sites, planted cookies, ended sign-ins, and objects of others.

Every route and every form, as the application has them: one that is added is tried too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

import pytest

from checkout.domain.merchant.people import Role
from checkout.domain.session.record import Status
from checkout.flows.people import people
from tests.support.attack_counts import Attack
from tests.support.basics import a_link, a_refund, count_ends
from tests.support.cases import PICTURES
from tests.support.dashboard_routes import FORMS, RIVAL, filled, paths
from tests.support.doors import BASE, FORM, TABLES, Doors, Visitor
from tests.support.flows import CEDAR, PREFIX
from tests.support.hosted_pages import Answer
from tests.support.merchant_api import a_body
from tests.support.protected import OPEN
from tests.support.samples import a_member
from tests.support.services import store_refund

Case = TypeVar("Case")
COOKIE = "__Host-dashboard"
POSTS = sorted(FORMS)
GETS = paths("GET")
SIGNED_IN = {path for _, path in OPEN}  # the paths that need no sign-in


def owned(doors: Doors) -> dict[str, str]:
    """Return the ids of the merchant's own records, so that each form has something to change."""
    browser = doors.signed_in()
    form = {"url": "https://shop.example/hooks", "form_token": browser.form_token}
    doors.dashboard("POST", "/webhooks", form, visitor=browser)
    location = doors.dashboard(
        "POST", "/webhooks/test", {"form_token": browser.form_token}, visitor=browser
    ).location
    return {
        "session_id": doors.create().id,
        "event_id": location.rpartition("/")[2],
        "key_id": doors.world.key().id,
    }


def of(path: str, ids: dict[str, str]) -> str:
    """Return the path with the ids in their places."""
    for name, value in ids.items():
        path = path.replace(f"{{{name}}}", value)
    return filled(path)


ORIGINS: dict[str, dict[str, str]] = {
    name: {"Origin": origin}
    for name, origin in {
        "another site": "https://evil.example",
        "null": "null",
        "empty": "",
        "without TLS": "http://pay.example",
        "another port": "https://pay.example:8443",
        "the usual port": "https://pay.example:443",
        "a suffix": "https://pay.example.evil.example",
        "a prefix": "https://notpay.example",
        "a subdomain": "https://a.pay.example",
        "a user": "https://pay.example@evil.example",
        "a slash": "https://pay.example/",
        "in capitals": "HTTPS://PAY.EXAMPLE",
        "two": "https://pay.example https://evil.example",
        "two with a comma": "https://pay.example, https://evil.example",
        "a blank": " https://pay.example",
        "our wallet": "https://localhost:4101",
        "a dot": "https://pay.example.",
    }.items()
}
TYPES = [
    "text/plain",
    "application/json",
    "",
    "multipart/form-data; boundary=x",
    f"{FORM}x",
    f"x{FORM}",
]


class Place:
    """Doors behind which there is something of everything, a signed-in browser, wrong tokens."""

    def __init__(self, doors: Doors) -> None:
        self.doors, self.ids = doors, owned(doors)
        self.browser = doors.signed_in()
        self.tokens = tokens(doors, self.browser)


@pytest.fixture(scope="module")
def place() -> Place:
    return Place(Doors())


def share(path: str, cases: Mapping[str, Case]) -> dict[str, Case]:
    """Return the first case and a third of the others, another third for each of three forms."""
    first, *others = cases.items()
    return dict([first, *others[POSTS.index(path) % 3 :: 3]])


def test_every_form_is_tried_and_with_each_kind_of_record(doors: Doors) -> None:
    assert paths("POST") == POSTS
    named = set(re.findall(r"\{(\w+_id)\}", "".join(GETS + POSTS)))
    assert named == {each for each in of_the_other(doors) if each.endswith("_id")}


@pytest.mark.parametrize("path", POSTS)
def test_no_form_of_another_site_is_taken(place: Place, attack: Attack, path: str) -> None:
    """The browser is signed in, and the form has its token, as if another site had guessed it."""
    doors, ids, browser = place.doors, place.ids, place.browser
    fields = {**FORMS[path], "form_token": browser.form_token}

    def attempt(headers: dict[str, str]) -> None:
        with doors.nothing_happens():
            answer = doors.dashboard(
                "POST", of(path, ids), fields, visitor=browser, headers=headers
            )
            assert answer.status in (400, 415), answer.status

    types = {each: {"Content-Type": each} for each in TYPES}
    attack.each(share(path, ORIGINS | types), attempt)


def tokens(doors: Doors, browser: Visitor) -> dict[str, str | None]:
    other = doors.signed_in(doors.other_key)
    again = doors.signed_in()
    own = browser.form_token
    return {
        "another merchant's": other.form_token,
        "none": None,
        "empty": "",
        "another sign-in's": again.form_token,
        "the cookie": browser.cookies[COOKIE],
        "cut": own[:-1],
        "longer": own + "0",
        "in capitals": own.upper(),
        "a bit": own[:-1] + ("0" if own[-1] != "0" else "1"),
        "zeros": "0" * 64,
        "a nul": own + "\x00",
        "not ASCII": "é" * 64,
        "a blank": f" {own}",
        "two": f"{own},{own}",
        "null": "null",
        "long": "0" * 20_000,
    }


@pytest.mark.parametrize("path", POSTS)
def test_no_form_without_its_own_token_is_taken(place: Place, attack: Attack, path: str) -> None:
    doors, ids, browser = place.doors, place.ids, place.browser
    own = browser.form_token

    def attempt(token: str | None) -> None:
        assert browser.form_token == own
        fields = dict(FORMS[path]) | ({} if token is None else {"form_token": token})
        with doors.nothing_happens():
            answer = doors.dashboard(
                "POST", of(path, ids), fields, visitor=Visitor(browser.cookies)
            )
            assert answer.status == 400, answer.status

    attack.each(share(path, place.tokens), attempt)


def picture(token: str | None) -> bytes:
    """Return the form with the shop's picture, which is in a type of its own."""
    fields = [] if token is None else [("form_token", "", token.encode())]
    kind = '; filename="x.jpg"\r\nContent-Type: image/jpeg'
    fields.append(("logo", kind, PICTURES["image/jpeg"]))
    head = '--x\r\nContent-Disposition: form-data; name="{}"{}\r\n\r\n'
    parts = (head.format(*names).encode() + value + b"\r\n" for *names, value in fields)
    return b"".join(parts) + b"--x--\r\n"


def test_no_picture_is_taken_from_elsewhere(place: Place, attack: Attack) -> None:
    own, kind = place.browser.form_token, {"Content-Type": "multipart/form-data; boundary=x"}

    def send(
        token: str | None = own, headers: Mapping[str, str] = kind, who: Visitor = place.browser
    ) -> Answer:
        return place.doors.dashboard(
            "POST", "/settings", picture(token), visitor=Visitor(dict(who.cookies)), headers=headers
        )

    def attempt(ask: Callable[[], Answer]) -> None:
        with place.doors.nothing_happens():
            assert ask().status == 400

    tries = {name: partial(send, token) for name, token in place.tokens.items()}
    tries |= {f"from {each}": partial(send, own, kind | ORIGINS[each]) for each in ORIGINS}
    attack.each(tries, attempt)
    with place.doors.nothing_happens():
        assert send(who=Visitor()).location.startswith("/dashboard/sign-in")
    assert send().status == 303


def test_no_form_is_taken_by_another_method(place: Place, attack: Attack) -> None:
    doors, ids, browser = place.doors, place.ids, place.browser
    query = f"form_token={browser.form_token}&_method=POST&overlap=0&name=x"

    def attempt(case: tuple[str, str]) -> None:
        method, path = case
        headers = {"X-HTTP-Method-Override": "POST", "Origin": BASE, "Content-Type": FORM}
        with doors.nothing_happens():
            answer = doors.dashboard(
                method, of(path, ids), query=query, visitor=browser, headers=headers
            )
            assert answer.status in (200, 404, 405), answer.status

    attack.each([(method, path) for path in POSTS for method in ("GET", "PUT", "DELETE")], attempt)


# --- who is signed in


def planted(doors: Doors) -> Visitor:
    """A cookie that somebody else put into the browser, of a form that may be right."""
    return Visitor({COOKIE: "ab" * 32})


def signed_out(doors: Doors) -> Visitor:
    browser = doors.signed_in()
    cookies = dict(browser.cookies)
    doors.dashboard("POST", "/sign-out", {"form_token": browser.form_token}, visitor=browser)
    return Visitor(cookies)


def idle(doors: Doors) -> Visitor:
    browser = doors.signed_in()
    doors.world.clock.pass_time(31 * 60)
    return browser


def revoked(doors: Doors) -> Visitor:
    owner = doors.signed_in()
    made = doors.dashboard(
        "POST", "/keys", {"name": "second", "form_token": owner.form_token}, visitor=owner
    ).secret
    browser = doors.signed_in(made)
    [key_id] = {key.id for key in doors.world.core.api_keys.of(doors.merchant.id)} - {
        doors.world.key().id
    }
    form = {"form_token": owner.form_token}
    assert doors.dashboard("POST", f"/keys/{key_id}/revoke", form, visitor=owner).status == 303
    return browser


def with_cookie(change: Callable[[str], str], name: str = COOKIE) -> Callable[[Doors], Visitor]:
    return lambda doors: Visitor({name: change(doors.signed_in().cookies[COOKIE])})


NOBODIES: dict[str, Callable[[Doors], Visitor]] = {
    "nobody": lambda doors: Visitor(),
    "a planted cookie": planted,
    "a signed-out one": signed_out,
    "an idle one": idle,
    "one with a revoked key": revoked,
    "an API key as cookie": lambda doors: Visitor({COOKIE: doors.key}),
    "a form's token as cookie": lambda doors: Visitor({COOKIE: doors.signed_in().form_token}),
    "a cookie in capitals": with_cookie(str.upper),
    "a cookie cut": with_cookie(lambda value: value[:-1]),
    "a longer cookie": with_cookie(lambda value: value + "0"),
    "a cookie with a blank": with_cookie(lambda value: f"{value} x"),
    "a cookie without its prefix": with_cookie(lambda value: value, "dashboard"),
    "a cookie of the pages": with_cookie(lambda value: value, "__Host-pay"),
    "a cookie in other case": with_cookie(lambda value: value, COOKIE.lower()),
    "a quoted cookie": with_cookie(lambda value: f'"{value}x"'),
    "SQL": lambda doors: Visitor({COOKIE: "' OR '1'='1"}),
}


@pytest.mark.parametrize("who", NOBODIES)
def test_no_path_is_open_to(attack: Attack, who: str) -> None:
    doors = Doors()
    ids = owned(doors)
    cookies = NOBODIES[who](doors).cookies

    def attempt(case: tuple[str, str]) -> None:
        method, path = case
        with doors.nothing_happens():
            answer = doors.dashboard(
                method,
                of(path, ids),
                {"form_token": "x", **FORMS[path]} if method == "POST" else None,
                visitor=Visitor(dict(cookies)),
            )
            assert answer.location.partition("?")[0] == "/dashboard/sign-in"
            assert ids["session_id"] not in answer.body

    cases = [("GET", path) for path in GETS] + [("POST", path) for path in POSTS]
    attack.each([case for case in cases if case[1] not in SIGNED_IN], attempt)


def test_a_planted_cookie_is_worth_nothing_after_the_sign_in(doors: Doors, attack: Attack) -> None:
    """Session fixation: the victim signs in with the attacker's cookie in the browser."""

    def attempt(cookie: str) -> None:
        attacker = Visitor({COOKIE: cookie})
        doors.dashboard("GET", "/sign-in", visitor=attacker)
        known = dict(attacker.cookies)
        victim = Visitor(dict(known), attacker.form_token)
        fields = {"api_key": doors.key, "form_token": victim.form_token}
        answer = doors.dashboard("POST", "/sign-in", fields, visitor=victim)
        assert answer.location == "/dashboard/overview"
        assert victim.cookies[COOKIE] not in known.values()
        for each in (known, {COOKIE: cookie}):
            assert doors.dashboard("GET", visitor=Visitor(dict(each))).status == 303

    attack.each(["ab" * 32, "0" * 64, "f" * 64, "", "x", doors.key], attempt)


def test_a_sign_in_form_of_another_browser_signs_nobody_in(doors: Doors, attack: Attack) -> None:
    """Login CSRF: a victim is to be signed in as the attacker, to type secrets there."""
    attacker = doors.signed_in(doors.other_key)
    fields = {"api_key": doors.other_key, "form_token": attacker.form_token}

    def attempt(case: tuple[Visitor, dict[str, str]]) -> None:
        victim, headers = case
        cookies = dict(victim.cookies)
        with doors.nothing_happens():
            answer = doors.dashboard("POST", "/sign-in", fields, visitor=victim, headers=headers)
            assert answer.status == 400
        assert doors.dashboard("GET", visitor=Visitor(cookies)).status in (200, 303)

    fresh = Visitor()
    doors.dashboard("GET", "/sign-in", visitor=fresh)
    victims = {"fresh": fresh, "without cookies": Visitor(), "signed in": doors.signed_in()}
    own: dict[str, dict[str, str]] = {"our own": {}}
    cases = {
        f"{name}, {origin}": (victim, headers)
        for name, victim in victims.items()
        for origin, headers in (own | ORIGINS).items()
    }
    attack.each(cases, attempt)


# --- whose is it


def of_the_other(doors: Doors) -> dict[str, str]:
    """Return the ids of the other merchant's records, by their names in paths, and other marks."""
    services, world, other = doors.world.endpoints, doors.world, doors.other
    browser = doors.signed_in(doors.other_key)
    form = {"url": "https://mallory.example/hooks", "form_token": browser.form_token}
    doors.dashboard("POST", "/webhooks", form, visitor=browser)
    event = doors.dashboard(
        "POST", "/webhooks/test", {"form_token": browser.form_token}, visitor=browser
    ).location.rpartition("/")[2]
    [key] = world.core.api_keys.of(other.id)
    body = a_body(metadata={"order": "mallory-order"})
    session = world.session(doors.call("POST", "", body, key=doors.other_key).json["id"])
    buyer = Visitor()
    doors.submit(session, visitor=buyer)
    doors.follow(world.network.approve(str(world.session(session.id).interact_url)), buyer)
    assert world.session(session.id).status is Status.COMPLETED
    count_ends(services.daily_totals, world.clock)
    for role in (Role.OWNER, Role.OWNER):
        invited = people.invite_to(services, other.id, name="Mallory", role=role)
    member = a_member(merchant=other.id)
    assert services.people.join(member, replace(invited.invitation, ended_at=member.created_at))
    [waiting] = people.listed(services, other.id).invitations
    link, refund = a_link(merchant=other.id), a_refund(merchant=other.id, session=session.id)
    services.links.add(link)
    stored = services.merchants.get(other.id)
    assert stored is not None
    services.merchants.replace(stored.changed(accent_color="#123456"))
    store_refund(world.dynamo, PREFIX, refund)
    return {
        "session_id": session.id,
        "event_id": event,
        "key_id": key.id,
        "member_id": member.id,
        "invitation_id": waiting.id,
        "link_id": link.id,
        "refund_id": refund.id,
        "merchant": other.id,
        "order": "mallory-order",
        "key's hash": key.hash,
        "key's end": f"…{key.last_four}",
        "colour": "#123456",
    }


def unseen(answer: Answer, theirs: dict[str, str], typed: str) -> None:
    """Nothing of theirs is in the answer but what was typed."""
    shown = answer.body.replace(typed, "") if typed else answer.body
    marks = [*theirs.values(), "Mallory", "mallory"]
    assert [each for each in marks if each in shown] == [], answer.status


def test_no_path_leads_to_anothers_records(doors: Doors, attack: Attack) -> None:
    """Each of the other's ids in each place of each path and of each form's fields."""
    theirs = of_the_other(doors)
    browser = doors.signed_in()

    def attempt(case: tuple[str, str, str]) -> None:
        method, path, value = case
        fields: dict[str, Any] | None = None
        if method == "POST":
            fields = {name: each.replace(RIVAL, value) for name, each in FORMS[path].items()}
            fields |= {"form_token": browser.form_token}
        with doors.nothing_happens():
            answer = doors.dashboard(method, filled(path, value), fields, visitor=browser)
        assert answer.status == 404, answer.status
        unseen(answer, theirs, value)

    cases = [
        (method, path, value)
        for method, of_method in (("GET", GETS), ("POST", POSTS))
        for path in of_method
        if "_id}" in path
        for value in [*theirs.values(), "x" * 3000]
    ]
    attack.each(cases, attempt)


def rows_of(doors: Doors, merchant: str) -> list[str]:
    rows = [str(row) for table in TABLES for row in doors.world.dynamo.rows(table)]
    return [row for row in rows if merchant in row]


def test_no_page_search_or_form_shows_or_changes_anothers_records(
    doors: Doors, attack: Attack
) -> None:
    """The paths without an id, with each of the other's in what may be typed."""
    theirs, browser = of_the_other(doors), doors.signed_in()
    before = rows_of(doors, doors.other.id)

    def attempt(case: tuple[str, str, str, str]) -> None:
        method, path, query, value = case
        visitor = Visitor(dict(browser.cookies), browser.form_token)
        fields = None
        if method == "POST":
            fields = {name: each.replace(RIVAL, value) for name, each in FORMS[path].items()}
            fields |= {"form_token": browser.form_token}
        answer = doors.dashboard(
            method, filled(path), fields, query=query + quote(value), visitor=visitor
        )
        unseen(answer, theirs, value)
        assert rows_of(doors, doors.other.id) == before

    attack.each(
        [
            *(("GET", path, "", "") for path in GETS if "_id}" not in path),
            *(
                ("GET", path, query, value)
                for path in ("", "/export", "/export/{file}.csv", "/webhooks", "/needs", "/audit")
                for query in ("q=", "status=completed&merchant=", "min=0&cursor=")
                for value in (*theirs.values(), f"{CEDAR}/alice")
            ),
            *(
                ("POST", path, "", value)
                for path in sorted(set(POSTS) - {"/sign-out"})
                if "_id}" not in path
                for value in theirs.values()
            ),
        ],
        attempt,
    )
    assert (
        "Payments 0 yesterday 0" in doors.dashboard("GET", "/overview", visitor=browser).page.main
    )
