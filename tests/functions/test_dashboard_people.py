"""/dashboard/people, invitations and passkeys: sign-ins, roles and their duration."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from checkout.domain.ground.limits import CHALLENGE, WRONG_KEY
from checkout.domain.merchant.people import MEMBERS_MAX, USUAL, Role
from checkout.domain.session.record import Status
from checkout.flows.people import people
from dashboard import app
from tests.support.authenticator import Authenticator, b64
from tests.support.dashboard_pages import BASE, Browser, Dashboard, linked, members, path_of
from tests.support.dashboard_routes import (
    FORMS,
    RIVAL,
    TABLES,
    routes,
    with_something_of_everything,
)
from tests.support.hosted_pages import PAID, Answer
from tests.support.merchant_api import PREFIX, a_body
from tests.support.protected import (
    CHALLENGE_LASTS,
    FORMS_OF_ALL,
    FORMS_OF_DEVELOPERS,
    FORMS_OF_MONEY_AND_PEOPLE,
    FORMS_OF_OWNERS,
    FORMS_OF_REFUNDERS,
    FORMS_OF_WRITERS,
    INVITATION_LASTS,
    NEEDED,
    OPEN,
    SHOWN,
)
from tests.support.services import put_key

DAY = 24 * 3600
# These change nothing of the shop: one compares, and the others are a member's own.
OWN = FORMS_OF_ALL - {"/sign-out"}


def alert(answer: Answer) -> str:
    return answer.page.one("div", role="alert").text[0]


def asked(browser: Browser, path: str) -> dict[str, Any]:
    """Open the page, and return what it asks of a passkey."""
    browser.get(path)
    options: dict[str, Any] = json.loads(browser.post(f"{path}/options").body)
    return options


def test_the_first_owner_is_invited_joins_and_signs_in_with_a_passkey(shop: Dashboard) -> None:
    link = linked(shop.signed_in(), "Ada Ñandú")
    assert link.startswith(f"{BASE}/dashboard/invitation/")
    browser, device = shop.browser(), Authenticator(BASE)
    opened = browser.get(path_of(link))
    assert "Ada Ñandú" in opened.page.main
    assert "Owner: everything, settings and people included" in opened.page.main
    assert browser.join(link, device).location == "/dashboard/overview"
    assert "This is you." in browser.get("/people").page.main
    assert browser.post("/sign-out").location == "/dashboard/sign-in"
    assert "__Host-dashboard" not in browser.client.cookies
    assert browser.get("/people").status == 303
    assert browser.use(device).location == "/dashboard/overview"
    log = browser.get("/audit").page.main
    (ada,) = members(shop).values()
    assert f"Ada Ñandú ({ada.id})" in log
    assert "Accepted an invitation" in log
    assert "Ada Ñandú, owner" in log


def test_neither_the_link_nor_the_challenge_is_readable_where_it_is_stored(
    shop: Dashboard,
) -> None:
    owner = shop.signed_in()
    link = linked(owner)
    assert link.rpartition("/")[2] not in str(shop.rows("api_keys"))
    shown_again = [owner.get(path).body for path in ("/people", "/audit")]
    assert link.rpartition("/")[2] not in str(shown_again)
    browser = shop.browser()
    browser.join(link, Authenticator(BASE))
    cookie = browser.client.cookies["__Host-dashboard"]
    assert cookie not in str([shop.rows("api_keys"), shop.rows("idempotency_keys")])


def test_a_link_works_once(shop: Dashboard) -> None:
    link, thief = linked(shop.signed_in()), shop.browser()
    path = path_of(link)
    options = asked(thief, path)
    assert shop.browser().join(link, Authenticator(BASE)).status == 303
    late = thief.post(path, {"credential": Authenticator(BASE).create(options)})
    assert late.status == 404
    assert thief.get(path).status == 404
    assert thief.post(f"{path}/options").status == 404
    assert len(members(shop)) == 1


def test_of_two_at_once_one_joins(shop: Dashboard) -> None:
    link, browser, device = linked(shop.signed_in()), shop.browser(), Authenticator(BASE)
    path = path_of(link)
    options = asked(browser, path)
    other = shop.browser()
    shop.meanwhile("challenges", "take", lambda: other.join(link, Authenticator(BASE)))
    assert browser.post(path, {"credential": device.create(options)}).status == 404
    assert len(members(shop)) == 1


def test_a_link_ends_after_seven_days_or_when_it_is_withdrawn(shop: Dashboard) -> None:
    owner = shop.signed_in()
    old, withdrawn = linked(owner, "Old"), linked(owner, "Withdrawn")
    listed = owner.get("/people").page
    assert "Old, Owner, until" in listed.main
    (found,) = [e for e in shop.services.people.invitations_of("mer_1") if e.name == "Withdrawn"]
    way = f"/people/invitations/{found.id}/withdraw"
    assert owner.post(way).location == "/dashboard/people"
    assert "already accepted or withdrawn" in alert(owner.post(way))
    assert owner.post("/people/invitations/inv_x/withdraw").status == 404
    assert shop.browser().get(path_of(withdrawn)).status == 404
    shop.clock.pass_time(INVITATION_LASTS.total_seconds() - 1)
    assert shop.browser().get(path_of(old)).status == 200
    shop.clock.pass_time(1)
    assert shop.browser().get(path_of(old)).status == 404


def test_wrong_links_are_counted_for_each_client(shop: Dashboard) -> None:
    stranger = shop.browser()
    for _ in range(WRONG_KEY.burst):
        assert stranger.get("/invitation/nothing").status == 404
    assert stranger.get("/invitation/nothing").status == 429


def test_a_revoked_member_is_signed_out_at_the_next_request(shop: Dashboard) -> None:
    owner, ada = shop.member(name="Olga"), Authenticator(BASE)
    browser = shop.browser()
    browser.join(shop.invited(Role.SUPPORT), ada)
    assert browser.get().status == 200
    revoked = owner.post(f"/people/{members(shop)['Ada'].id}/revoke")
    assert revoked.location == "/dashboard/people"
    assert browser.get().location.startswith("/dashboard/sign-in")
    assert shop.browser().use(ada).status == 401
    assert "Revoked" in owner.get("/people").page.main
    assert owner.post(f"/people/{members(shop)['Ada'].id}/revoke").status == 400


def test_a_member_costs_as_many_reads_as_a_key(shop: Dashboard) -> None:
    browser = shop.member()
    shop.calls()
    browser.get("/audit")
    as_member = sorted(shop.calls())
    key_browser = shop.signed_in()
    shop.calls()
    key_browser.get("/audit")
    assert as_member == sorted(shop.calls())


def test_a_role_counts_from_the_next_request_on(shop: Dashboard) -> None:
    owner, ada = shop.member(name="Olga"), shop.member(Role.SUPPORT)
    assert ada.post("/keys", {"name": "Web shop"}).status == 403
    way = f"/people/{members(shop)['Ada'].id}/role"
    assert owner.post(way, {"role": "king"}).status == 400
    assert owner.post(way, {"role": "developer"}).location == "/dashboard/people"
    assert ada.post("/keys", {"name": "Web shop"}).status == 200
    assert ada.post("/settings", {"tolerance": "2"}).status == 403
    owner.post(way, {"role": "owner"})
    assert ada.post("/settings", {"tolerance": "2"}).status == 303


def test_the_last_owner_stays(shop: Dashboard) -> None:
    owner = shop.member(name="Olga")
    way = f"/people/{members(shop)['Olga'].id}"
    for last in (owner.post(f"{way}/revoke"), owner.post(f"{way}/role", {"role": "support"})):
        assert last.status == 400
        assert "last owner" in alert(last)
    shop.member()
    assert owner.post(f"{way}/role", {"role": "support"}).status == 303
    assert owner.post("/people", {"name": "Eve", "role": "owner"}).status == 403


def test_two_owners_who_revoke_each_other_at_once_leave_one(shop: Dashboard) -> None:
    olga, ada = shop.member(name="Olga"), shop.member()
    found = members(shop)
    shop.meanwhile("people", "replace", lambda: ada.post(f"/people/{found['Olga'].id}/revoke"))
    assert olga.post(f"/people/{found['Ada'].id}/revoke").status == 409
    assert [each.name for each in members(shop).values() if each.owns] == ["Ada"]


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        *(({"role": role}, "first member must be an owner") for role in ("support", "developer")),
        *(({"name": name}, "name") for name in ("", "   ", "x" * 61, "a\nb")),
    ],
)
def test_a_person_without_a_usable_name_and_a_first_member_who_owns_nothing_are_not_invited(
    browser: Browser, typed: dict[str, str], says: str
) -> None:
    refused = browser.post("/people", {"name": "Ada", "role": "owner", **typed})
    assert refused.status == 400
    assert says in alert(refused)


def test_there_are_at_most_so_many_members_and_invitations(browser: Browser) -> None:
    for _ in range(MEMBERS_MAX):
        linked(browser)
    assert str(MEMBERS_MAX) in alert(browser.post("/people", {"name": "Ada", "role": "owner"}))


def test_the_sign_in_with_keys_ends_only_where_an_owner_has_a_passkey(shop: Dashboard) -> None:
    browser = shop.signed_in()
    refused = browser.post("/people/key-sign-in", {"allowed": "no"})
    assert refused.status == 400
    assert "nobody could sign in" in alert(refused)
    owner = shop.member()
    asked = browser.get("/people").page.main
    assert "signed out at once, you too" in asked
    assert "Ada (Owner)" in asked
    assert "you too" not in owner.get("/people").page.main
    assert owner.post("/people/key-sign-in", {"allowed": "no"}).location == "/dashboard/people"
    assert browser.get().status == 303, "it had signed in with a key"
    closed = shop.tried(shop.secret)
    assert closed.status == 403
    assert "cannot sign in" in alert(closed)
    assert shop.get("/api/checkout/sessions").status == 200, "servers use it as before"
    assert "API keys do not sign in here" in owner.get("/people").page.main
    assert owner.post("/people/key-sign-in", {"allowed": "yes"}).status == 303
    assert shop.signed_in().get().status == 200


def test_a_key_that_is_made_while_keys_do_not_sign_in_does_not_either(shop: Dashboard) -> None:
    browser, owner = shop.signed_in(), shop.member()
    before = browser.post("/keys", {"name": "Before"}).secret
    owner.post("/people/key-sign-in", {"allowed": "no"})
    made = owner.post("/keys", {"name": "After"}).secret
    for key in (before, made):
        assert shop.tried(key).status == 403


def test_a_key_of_a_member_gives_no_more_rights_than_the_member_has(shop: Dashboard) -> None:
    developer = shop.member(Role.DEVELOPER)
    made = developer.post("/keys", {"name": "Server"}).secret
    way = f"/keys/{shop.key_named('Server').id}/roll"
    rolled = developer.post(way, {"overlap": "3600"}).secret
    for key in (made, rolled):
        assert shop.tried(key).status == 403
        assert shop.get("/api/checkout/sessions", key=key).status == 200
    assert "does not sign in here" in developer.get("/keys").page.main


ENDS = ("cancel", "accept_as_paid", "give_up")
TOO_MUCH = ("full", "end")


def test_a_developers_key_creates_and_reads_and_ends_nothing(shop: Dashboard) -> None:
    key = shop.member(Role.DEVELOPER).post("/keys", {"name": "Server"}).secret
    sessions = "/api/checkout/sessions"
    created = shop.post(sessions, a_body(), key=key)
    assert created.status == 201
    for end in ENDS:
        refused = shop.post(f"{sessions}/{created.json['id']}/{end}", key=key)
        assert (refused.status, refused.code) == (403, "permission_missing")
    assert shop.get(f"{sessions}/{created.json['id']}", key=key).json["status"] == "open"


@pytest.mark.parametrize("scopes", TOO_MUCH)
def test_a_developer_gives_no_key_what_they_may_not_do(shop: Dashboard, scopes: str) -> None:
    developer = shop.member(Role.DEVELOPER)
    before = shop.services.api_keys.of("mer_1")
    offered = developer.get("/keys").page.one("select", id="scopes")
    assert not set(TOO_MUCH) & set("".join(offered.text).split())
    assert developer.post("/keys", {"name": "More", "scopes": scopes}).status == 403
    rolled = developer.post(f"/keys/{shop.key.id}/roll", {"overlap": "3600"})
    assert rolled.status == 403, "a key that does more than a developer"
    assert shop.services.api_keys.of("mer_1") == before


def test_a_browser_lists_the_passkey_under_the_names_of_shop_and_member(shop: Dashboard) -> None:
    path = path_of(shop.member().post("/people", {"name": "Ada", "role": "support"}).secret)
    browser = shop.browser()
    browser.get(path)
    user = json.loads(browser.post(f"{path}/options").body)["user"]
    assert user["name"] == user["displayName"] == "Shop – Ada"


@pytest.mark.parametrize("end", ["revoke", "role"])
def test_an_invitation_ends_with_its_senders_rights(shop: Dashboard, end: str) -> None:
    first, second = shop.member(), shop.member(name="Bea")
    link = second.post("/people", {"name": "Backdoor", "role": "owner"}).secret
    bea = members(shop)["Bea"]
    assert first.post(f"/people/{bea.id}/{end}", {"role": "developer"}).status == 303
    assert "Backdoor" not in first.get("/people").page.main
    assert shop.browser().get(path_of(link)).status == 404
    assert "Backdoor" not in members(shop)


def test_an_invitation_that_the_index_did_not_have_is_refused(
    shop: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sender is checked in the write that makes the member, too."""
    first, second = shop.member(), shop.member(name="Bea")
    link = second.post("/people", {"name": "Backdoor", "role": "owner"}).secret
    bea = members(shop)["Bea"]
    monkeypatch.setattr(people, "_end_invitations", lambda *_: None)
    first.post(f"/people/{bea.id}/revoke")
    assert shop.browser().get(path_of(link)).status == 404
    monkeypatch.setattr(people, "inviter_owns", lambda *_: bea)  # as it was read a moment ago
    assert shop.browser().join(link, Authenticator(BASE)).status == 404
    assert "Backdoor" not in members(shop)


def test_an_invitation_of_a_key_ends_with_the_key(shop: Dashboard, browser: Browser) -> None:
    browser.post("/keys", {"name": "Stays"})
    link = browser.post("/people", {"name": "Backdoor", "role": "owner"}).secret
    assert shop.browser().get(path_of(link)).status == 200
    assert browser.post(f"/keys/{shop.key.id}/revoke").status == 303
    assert shop.browser().get(path_of(link)).status == 404


@pytest.mark.parametrize("end", ["revoke", "role"])
def test_the_keys_of_a_member_who_may_no_more_are_shown_to_the_owners(
    shop: Dashboard, end: str
) -> None:
    first, second = shop.member(), shop.member(name="Bea")
    key = second.post("/keys", {"name": "Server"}).secret
    assert "still work" not in first.get("/people").page.main
    first.post(f"/people/{members(shop)['Bea'].id}/{end}", {"role": "developer"})
    assert shop.get("/api/checkout/sessions", key=key).status == 200, "servers depend on it"
    assert f"Server (…{key[-4:]}) of Bea" in first.get("/people").page.main
    assert "Created by Bea, who may not do this any more" in first.get("/keys").page.main
    first.post(f"/keys/{shop.key_named('Server').id}/roll", {"overlap": "0"})
    assert "Bea" not in first.get("/keys").page.main


def test_a_key_that_reads_signs_in_as_support(shop: Dashboard, browser: Browser) -> None:
    reading = browser.post("/keys", {"name": "Reads", "scopes": "read"}).secret
    writing = browser.post("/keys", {"name": "Writes", "scopes": "write"}).secret
    support = shop.signed_in(reading)
    assert support.get("/settings").status == 200
    assert support.post("/keys", {"name": "More"}).status == 403
    assert shop.tried(writing).status == 403


def test_a_challenge_serves_once_in_one_browser_for_five_minutes(shop: Dashboard) -> None:
    device, browser = Authenticator(BASE), shop.browser()
    browser.join(shop.invited(), device)
    first, second = shop.browser(), shop.browser()
    second.get("/sign-in")
    answer = {"credential": device.get(asked(first, "/sign-in"))}
    assert second.post("/sign-in/passkey", answer).status == 400, "another browser's"
    second.post("/sign-in/options")
    assert second.post("/sign-in/passkey", answer).status == 401, "another challenge"
    assert first.post("/sign-in/passkey", answer).status == 303
    first.get("/sign-in")
    assert first.post("/sign-in/passkey", answer).status == 400, "it was used"
    late = shop.browser()
    options = asked(late, "/sign-in")
    shop.clock.pass_time(CHALLENGE_LASTS.total_seconds())
    assert late.post("/sign-in/passkey", {"credential": device.get(options)}).status == 400


def test_a_challenge_of_one_purpose_serves_no_other(shop: Dashboard) -> None:
    browser, link = shop.browser(), shop.invited()
    path = path_of(link)
    browser.get(path)
    options = asked(browser, "/sign-in") | {"user": {"id": b64(b"mbr_x")}}
    answer = {"credential": Authenticator(BASE).create(options)}
    assert browser.post(path, answer).status == 400
    assert not members(shop)


def test_a_sign_in_is_refused_in_one_way_whatever_is_wrong(shop: Dashboard) -> None:
    device = Authenticator(BASE)
    shop.browser().join(shop.invited(), device)
    ada = members(shop)["Ada"]
    other = Authenticator(BASE, credential=b"d" * 32, user=ada.id.encode())
    wrong = [
        Authenticator(BASE, user=ada.id.encode(), credential=device.credential),
        other,
        Authenticator(BASE, user=b"mbr_" + b"0" * 22),
        Authenticator(BASE, user=b"\xff" * 64),
        Authenticator("https://evil.example", key=device.key, user=device.user, count=9),
        Authenticator(BASE, host="evil.example", key=device.key, user=device.user, count=9),
        Authenticator(BASE, key=device.key, user=device.user, count=9, verifies=False),
        Authenticator(BASE, key=device.key, user=device.user, count=0),
    ]
    told = set()
    for each in wrong:
        answer = shop.browser().use(each)
        told.add((answer.status, alert(answer)))
    assert told == {(401, "This passkey is not valid here.")}
    assert shop.browser().use(device).status == 303


def test_a_device_that_does_not_count_signs_in_again_and_again(shop: Dashboard) -> None:
    device = Authenticator(BASE, counts=False)
    shop.browser().join(shop.invited(), device)
    for _ in range(2):
        assert shop.browser().use(device).status == 303


@pytest.mark.parametrize("junk", ["", "x", "[]", "{}", '{"id":1}', '{"id":"a","id":"b"}', "é" * 99])
def test_junk_for_a_passkey_is_refused(shop: Dashboard, junk: str) -> None:
    browser, link = shop.browser(), shop.invited()
    path = path_of(link)
    browser.get(path)
    browser.post(f"{path}/options")
    refused = browser.post(path, {"credential": junk})
    assert (refused.status, "could not be verified" in alert(refused)) == (400, True)
    browser.post("/sign-in/options")
    assert browser.post("/sign-in/passkey", {"credential": junk}).status == 401


def test_wrong_passkeys_and_challenges_are_counted_for_each_client(shop: Dashboard) -> None:
    browser = shop.browser()
    browser.get("/sign-in")
    for _ in range(CHALLENGE.burst):
        assert browser.post("/sign-in/options").status == 200
        assert browser.post("/sign-in/passkey", {"credential": "{}"}).status == 401
    assert browser.post("/sign-in/options").status == 429
    shop.clock.pass_time(CHALLENGE.every.total_seconds())
    assert browser.post("/sign-in/options").status == 200
    refused = browser.post("/sign-in/passkey", {"credential": "{}"})
    assert refused.status == 429
    assert int(refused.headers["retry-after"]) > 0


def test_a_passkey_that_is_used_twice_at_once_signs_in_once(shop: Dashboard) -> None:
    device, browser = Authenticator(BASE), shop.browser()
    browser.join(shop.invited(), device)
    shop.meanwhile("people", "replace", lambda: browser.use(device))
    assert shop.browser().use(device).status == 409
    assert browser.answers[-1].status == 303


def test_the_cookie_changes_at_a_sign_in_with_a_passkey(shop: Dashboard) -> None:
    device, browser = Authenticator(BASE), shop.browser()
    browser.get("/sign-in")
    planted = browser.client.cookies["__Host-dashboard"]
    browser.join(shop.invited(), device)
    assert browser.client.cookies["__Host-dashboard"] != planted


# --- what each role may do


def test_every_route_declares_its_right_in_one_place() -> None:
    assert set(NEEDED) | OPEN == routes()
    assert not set(NEEDED) & OPEN


def test_a_route_that_declares_no_right_is_refused_to_everybody(
    shop: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = shop.member()
    monkeypatch.delitem(app.NEEDED, ("GET", "/audit"))
    assert owner.get("/audit").status == 403


def tried(shop: Dashboard, browser: Browser, ids: dict[str, str]) -> dict[str, list[str]]:
    """By "shown", "changed" and "refused" the paths of all routes that know who asks."""
    done: dict[str, list[str]] = {"shown": [], "refused": [], "changed": []}
    fields = {"role": "support", "name": "New", "overlap": "0", "allowed": "yes"}
    for method, path in sorted(routes() - OPEN):
        if path == "/sign-out":
            continue
        before = [shop.rows(table) for table in TABLES]
        where = path.format(**ids)
        typed = {**fields, **{k: v for k, v in FORMS.get(path, {}).items() if v != RIVAL}}
        answer = browser.get(where) if method == "GET" else browser.post(where, typed)
        if answer.status == 403:
            done["refused"].append(path)
            assert [shop.rows(table) for table in TABLES] == before, path
        else:
            returned = path.endswith("/callback")  # without what the wallet appends
            usual = (200,) if method == "GET" and not returned else (200, 303, 400)
            assert answer.status in usual, (path, answer)
            done["shown" if method == "GET" else "changed"].append(path)
    return done


def test_a_support_member_reads_everything_and_changes_nothing_but_notes(shop: Dashboard) -> None:
    ids = with_something_of_everything(shop)
    browser = shop.member(Role.SUPPORT)
    done = tried(shop, browser, ids)
    assert done["shown"] == sorted(SHOWN)
    assert set(done["changed"]) == FORMS_OF_WRITERS | OWN
    buttons = set()
    for path in SHOWN - {"/notices/confirm/{token}"}:
        answer = browser.get(path.format(**ids))
        if "html" in answer.headers["content-type"]:
            buttons |= {each.text[0] for each in answer.page.all("button")}
    files = ("transactions", "items", "payment attempts", "for accounting")
    exports = {f"Download {each}" for each in files}
    harmless = {"Sign out", "Show", "See the price", "Copy", "Print", "Save the note"}
    assert buttons == harmless | exports


def test_a_key_without_refunds_moves_no_money_and_gives_nobody_rights(shop: Dashboard) -> None:
    ids = with_something_of_everything(shop)
    leaked = shop.signed_in(shop.signed_in().post("/keys", {"name": "Usual"}).secret)
    assert leaked.get("/settings").status == 200
    assert leaked.post("/links", {"name": "Tea", "amount": "1"}).status == 303
    before = [shop.rows(table) for table in TABLES]
    for path in FORMS_OF_MONEY_AND_PEOPLE | FORMS_OF_REFUNDERS:
        typed = {"role": "owner", **FORMS[path]}
        refused = leaked.post(path.format(**ids), typed)
        assert refused.status == 403, path
        assert "ask the operator for an invitation: `checkout invite`." in refused.page.main
    for path in ("/refunds/{refund_id}/callback", "/budget/callback"):
        assert leaked.get(path.format(**ids)).status == 403
    assert leaked.post("/keys", {"name": "More", "scopes": "refund"}).status == 403
    assert [shop.rows(table) for table in TABLES] == before
    page = leaked.get("/people").page.main
    assert "Invite a person" not in page
    assert "`checkout invite`" in page


def test_an_invitation_of_a_key_without_refunds_makes_nobody_an_owner(shop: Dashboard) -> None:
    """One that a release of before has let it send."""
    shop.member(name="Olga")
    invited = people.invite(shop.services, shop.key, name="Thief", role=Role.OWNER)
    put_key(shop.dynamo, PREFIX, replace(shop.key, scopes=USUAL))
    assert shop.browser().get(path_of(invited.link)).status == 404


def limit(shop: Dashboard, once: str, day: str = "") -> Answer:
    """Let Sam refund up to this, at once and a day."""
    sam = members(shop)["Sam"]
    return shop.signed_in().post(f"/people/{sam.id}/refunds", {"once": once, "day": day})


def test_a_member_with_a_limit_also_refunds_and_changes_nothing_else(shop: Dashboard) -> None:
    ids = with_something_of_everything(shop)
    browser = shop.member(Role.SUPPORT, name="Sam")
    assert limit(shop, "20").location == "/dashboard/people"
    page = shop.signed_in().get("/people").page.main
    assert "refunds at most 20.00 USD each." in page
    assert "Sam: refunds at most 20.00 USD each" in shop.signed_in().get("/audit").page.main
    done = tried(shop, browser, ids)
    requests = {each for each in FORMS_OF_REFUNDERS if each.startswith("/transactions")}
    assert set(done["changed"]) == requests | FORMS_OF_WRITERS | OWN, "the refund is another's"
    assert set(done["shown"]) == SHOWN | {"/refunds/{refund_id}/callback"}
    limit(shop, "10", "10000")
    limit(shop, "")
    assert members(shop)["Sam"].refund_cap is None
    audit = shop.signed_in().get("/audit").page.main
    assert "Sam: refunds at most 10.00 USD each and 10000.00 USD a day" in audit
    assert "Sam: refunds nothing" in audit
    for path in FORMS_OF_REFUNDERS:
        assert browser.post(path.format(**ids), {"amount": "1", "how": "cash"}).status == 403


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("-1", "This is not an amount of USD."),
        ("x", "This is not an amount of USD."),
        ("1.001", "“1.001” can be read in two ways. Type 1001.00."),
        ("9" * 30, "This is not an amount of USD."),
        ("9" * 15, "A limit must be at most"),
    ],
)
def test_a_limit_of_a_member_that_is_no_amount_is_refused(
    shop: Dashboard, typed: str, says: str
) -> None:
    shop.member(Role.SUPPORT, name="Sam")
    answer = limit(shop, typed)
    assert answer.status == 400
    assert says in answer.page.main
    assert members(shop)["Sam"].refund_cap is None


def test_a_member_with_a_limit_is_shown_the_form_to_refund(shop: Dashboard) -> None:
    session = shop.store(status=Status.COMPLETED, **PAID, received=2000)
    browser = shop.member(Role.SUPPORT, name="Sam")
    way = f"/transactions/{session.id}"
    assert not browser.get(way).page.all("form", action=f"/dashboard{way}/refund")
    limit(shop, "10", "50")
    assert browser.get(way).page.all("form", action=f"/dashboard{way}/refund")
    refused = browser.post(f"{way}/refund", {"amount": "10.01", "how": "price"})
    assert "Your limit for a single refund is 10.00 USD." in refused.page.main


def test_a_developer_also_changes_keys_and_webhooks(shop: Dashboard) -> None:
    ids = with_something_of_everything(shop)
    done = tried(shop, shop.member(Role.DEVELOPER), ids | {"key_id": spare(shop)})
    returns = {"/refunds/{refund_id}/callback", "/budget/callback", "/wallet/callback"}
    assert set(done["refused"]) == FORMS_OF_OWNERS | FORMS_OF_REFUNDERS | returns
    assert set(done["changed"]) == FORMS_OF_DEVELOPERS | FORMS_OF_WRITERS | OWN


def spare(shop: Dashboard) -> str:
    """The id of a key that can be rolled, then revoked."""
    shop.signed_in().post("/keys", {"name": "Spare"})
    return shop.key_named("Spare").id
