"""/dashboard/settings: how the customers' pages look, and where customers may be sent back."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pay
from checkout.adapters.dynamo import DynamoApiKeys
from checkout.domain.ground.errors import ParameterInvalid
from checkout.domain.ground.providers import PROVIDERS_MAX
from checkout.domain.merchant.record import ApiKey, Footer
from checkout.flows.merchant import settings
from checkout.flows.merchant.settings import HOSTS_MAX, LOGO_MAX
from dashboard.dependencies import parts
from dashboard.view import USUAL_COLOR
from tests.support.cases import PICTURES, PNG_END, jpeg, png_head
from tests.support.dashboard_pages import BASE, Browser, Dashboard, path_of, upload
from tests.support.hosted_pages import Answer
from tests.support.merchant_api import PREFIX, SESSIONS, a_body


class Lagging(DynamoApiKeys):
    """Its index does not have some keys yet."""

    unseen: Collection[str] = ()

    def of(self, merchant_id: str) -> tuple[ApiKey, ...]:
        return tuple(key for key in super().of(merchant_id) if key.hash not in self.unseen)


STORED = {"contact": "Help@shop.example", "website": "shop.example"}
MOST, DAYS = {"tolerance": "1000000000"}, {"withdrawal_days": "30"}
LOOKS = {"name": "Café Ñandú", "accent_color": "#AA3300", "locale": "pt"}


def alert(answer: Answer) -> str:
    assert answer.status == 400
    return answer.page.one("div", id="alert").text[0]


def opened(shop: Dashboard, host: str, key: str | None = None) -> int:
    body = a_body(success_url=f"https://{host}/thanks", cancel_url="https://shop.example/basket")
    answer = shop.post(SESSIONS, body, key=key or shop.secret)
    assert answer.status == 201 or answer.code == "url_invalid"
    return answer.status


CONTACT = {"contact": " Help@shop.example ", "website": " Shop.Example. "}
FOOTER = {
    "company": "  Harbor  Coffee Ltd,\tDublin ",
    "terms": " https://shop.example/terms ",
    "refunds": "",
    "privacy": "https://shop.example/privacy",
}
SELLER = Footer(
    company="Harbor Coffee Ltd, Dublin",
    terms="https://shop.example/terms",
    privacy="https://shop.example/privacy",
)


@pytest.mark.parametrize(
    ("typed", "saved", "shown", "noted"),
    [
        (
            LOOKS,
            {"name": "Café Ñandú", "accent_color": "#aa3300", "locale": "pt"},
            {"name": "Café Ñandú", "accent_color": "#aa3300"},
            "display name, accent color, language",
        ),
        (CONTACT, STORED, STORED, "contact, website"),
        (FOOTER, {"footer": SELLER}, {"terms": SELLER.terms, "refunds": ""}, "footer"),
        ({"tolerance": " 25 "}, {"tolerance": 25}, {"tolerance": "25"}, "tolerance"),
        ({"tolerance": "0"}, {"tolerance": 0}, {"tolerance": "0"}, "tolerance"),
        (MOST, {"tolerance": 1000000000}, MOST, "tolerance"),
        ({"withdrawal_days": " 30 "}, {"withdrawal_days": 30}, DAYS, "withdrawal"),
    ],
)
def test_what_is_typed_is_saved_shown_and_noted(
    shop: Dashboard,
    browser: Browser,
    typed: dict[str, str],
    saved: dict[str, object],
    shown: dict[str, str],
    noted: str,
) -> None:
    way = browser.post("/settings", typed).location
    page = browser.get(path_of(way) + "?saved=1").page
    assert way == "/dashboard/settings?saved=1"
    assert "Saved" in page.one("p", role="status").text[0]
    assert {name: getattr(shop.merchant(), name) for name in saved} == saved
    for name, text in shown.items():
        assert page.one("input", name=name).attributes["value"] == text
    assert f"Changed settings {noted}" in browser.get("/audit").page.main


def test_the_chosen_look_is_chosen_in_the_form(browser: Browser) -> None:
    browser.post("/settings", LOOKS)
    page = browser.get("/settings").page
    assert "checked" not in page.one("input", name="usual").attributes
    (chosen,) = [each for each in page.all("option") if "selected" in each.attributes]
    assert chosen.attributes["value"] == "pt"


def test_contact_website_and_footer_can_be_removed(shop: Dashboard, browser: Browser) -> None:
    browser.post("/settings", CONTACT | FOOTER)
    assert "Seller: Harbor Coffee Ltd, Dublin" in browser.get("/settings/preview").page.main
    browser.post("/settings", {"contact": "https://shop.example/help?a=1", "website": ""})
    assert shop.merchant().contact == "https://shop.example/help?a=1"
    browser.post("/settings", {"contact": "", "website": "", **dict.fromkeys(FOOTER, " ")})
    now = shop.merchant()
    assert (now.contact, now.website, now.footer) == (None, None, None)


def test_saving_what_is_there_already_changes_and_notes_nothing(shop: Dashboard) -> None:
    browser = shop.signed_in()
    browser.post("/settings", LOOKS)
    before = shop.merchant()
    shop.calls()
    browser.post("/settings", LOOKS)
    assert sorted(shop.calls()) == ["get_item"] * 4
    assert shop.merchant() == before


def test_the_usual_colour_is_no_colour_of_the_merchants(shop: Dashboard, browser: Browser) -> None:
    browser.post("/settings", LOOKS)
    browser.post("/settings", {**LOOKS, "usual": "on"})
    assert shop.merchant().accent_color is None
    page = browser.get("/settings").page
    assert "checked" in page.one("input", name="usual").attributes
    assert page.one("input", name="accent_color").attributes["value"] == USUAL_COLOR
    css = (Path(pay.__file__).parent / "templates" / "page.css").read_text("utf-8")
    assert f"--accent: {USUAL_COLOR};" in css


# By its field and what the page says: what is typed there and refused.
REFUSED = {
    ("name", "The name"): ["", "  ", "x" * 101, "a\nb", "\u202eabc"],
    ("accent_color", "The color"): ["red", "#fff", "#000000;}*{", "#00000\u0660"],
    ("locale", "language"): ["", "xx", "en-GB"],
    **{
        (field, "must be a page that begins with https://"): [
            *("shop.example/terms", "http://shop.example/terms", "https://shop.example/a b"),
            *("javascript:alert(1)", "https://user@shop.example/", "help@shop.example"),
            "https://shop.example/" + "a" * 2048,
        ]
        for field in ("terms", "refunds", "privacy")
    },
    ("company", "at most 200 printable"): ["x" * 201, "Harbor \x00 Coffee"],
    ("contact", "e-mail address or a page"): [
        *("me", "@shop.example", "me@", "me@localhost", "me@shop..example", "me you@shop.example"),
        *("me@you@shop.example", "me@shop.example?subject=x", "me@[127.0.0.1]"),
        *("a" * 65 + "@shop.example", "m\u00e9@shop.example", "me\r\n@shop.example"),
        *("http://shop.example/help", "https://user@shop.example/", "https://shop.example/a b"),
        "javascript:alert(1)",
    ],
    ("website", "host name like shop.example"): [
        *("https://shop.example", "shop.example/a", "a b", "-shop.example"),
    ],
    ("tolerance", "from 0 to 1000000000"): [
        *("", "-1", "1.5", "one", "1000000001", "9" * 40, "\u0663", "0x1", "1e3", "1 0"),
    ],
    ("withdrawal_days", "from 0 to 365"): ["", "-1", "1.5", "one", "366", "9" * 40, "\u0663"],
    ("return_hosts", "host"): [
        *("https://shop.example", "shop.example/", "shop.example:443", "*.shop.example"),
        *("shop..example", "user@shop.example", "münchen.example", "good.example bad!.example"),
        *("a" * 5_000, "\n".join(f"h{number}.example" for number in range(HOSTS_MAX + 1))),
    ],
}


@pytest.mark.parametrize(
    ("field", "said", "typed"),
    [(*names, typed) for names, values in REFUSED.items() for typed in values],
)
def test_what_is_no_value_of_a_setting_is_refused_and_the_form_keeps_what_was_typed(
    shop: Dashboard, browser: Browser, field: str, said: str, typed: str
) -> None:
    before, form = shop.merchant(), {"name": "Café Ñandú", "website": "shop.example", field: typed}
    answer = browser.post("/settings", form)
    assert said in alert(answer)
    assert shop.merchant() == before
    kept = {
        each.attributes["name"]: each.attributes.get("value") for each in answer.page.all("input")
    }
    kept |= {
        each.attributes["name"]: "".join(each.text).strip() for each in answer.page.all("textarea")
    }
    for name in form.keys() - {"locale"}:
        assert kept[name] == form[name], name


CEDAR = {
    "provider_1_name": "Cedar",
    "provider_1_form": "https://wallet.example/{name}",
    "provider_1_website": "https://wallet.example/join",
    "provider_1_countries": "DE KE",
    "provider_1_logo": "",
}
HARBOR = {
    "provider_2_name": "Harbor",
    "provider_2_form": "https://harbor.example/{Number: 12}/{Currency: USD}",
    "provider_2_website": "https://harbor.example/",
}


def offered(shop: Dashboard) -> list[str]:
    return [each.name for each in shop.merchant().providers]


def test_the_merchants_providers_are_saved_noted_and_previewed(
    shop: Dashboard, browser: Browser
) -> None:
    page = browser.get("/settings").page
    assert "your page offers the operator's: none." in page.main
    assert page.one("input", name="provider_1_name").attributes["value"] == ""
    assert browser.post("/settings", CEDAR | HARBOR).location.endswith("saved=1")
    page = browser.get("/settings").page
    for name, typed in (CEDAR | HARBOR).items():
        assert page.one("input", name=name).attributes["value"] == typed
    assert "Cedar asks for: name" in page.main
    assert "Harbor asks for: Number and Currency, such as 12/USD" in page.main
    assert page.one("input", name="provider_3_name").attributes["value"] == ""  # to add one
    assert "Changed settings wallet providers" in browser.get("/audit").page.main
    assert "I have no wallet yet" in browser.get("/settings/preview").page.main


def test_a_provider_is_removed_by_its_box_or_by_emptying_it(
    shop: Dashboard, browser: Browser
) -> None:
    browser.post("/settings", CEDAR | HARBOR)
    browser.post("/settings", CEDAR | HARBOR | {"provider_1_remove": "on"})
    assert offered(shop) == ["Harbor"]
    browser.post("/settings", {"name": "Shop"})  # a form without them
    assert offered(shop) == ["Harbor"]
    browser.post("/settings", dict.fromkeys(CEDAR, " "))
    assert offered(shop) == []


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("form", "https://wallet.example/", "“Cedar | https://wallet.example/ |"),
        ("form", "https://a.example/{name}; B | https://b.example/{name}", "is not of the form"),
        ("logo", "not base64", "the logo must be an SVG, PNG or WebP picture"),
        ("name", "A | B", "“A | B"),
        ("name", " ", "the name must have 1 to 40"),
    ],
)
def test_a_provider_that_cannot_be_read_is_named_and_kept_in_the_form(
    shop: Dashboard, browser: Browser, field: str, typed: str, said: str
) -> None:
    answer = browser.post("/settings", CEDAR | {f"provider_1_{field}": typed})
    assert said in alert(answer)
    kept = answer.page.one("input", name=f"provider_1_{field}").attributes["value"]
    assert kept == typed.strip()
    first, _ = answer.page.all("details", **{"class": "provider"})
    assert "open" in first.attributes
    assert offered(shop) == []


def test_no_more_providers_are_saved_or_asked_for_than_a_page_may_have(
    shop: Dashboard, browser: Browser
) -> None:
    full = {
        name.replace("_1_", f"_{number}_"): text
        for number in range(1, PROVIDERS_MAX + 1)
        for name, text in CEDAR.items()
    }
    browser.post("/settings", full)
    assert len(offered(shop)) == PROVIDERS_MAX == 12
    page = browser.get("/settings").page
    assert not page.all("input", name=f"provider_{PROVIDERS_MAX + 1}_name")
    more = {name.replace("_1_", "_13_"): text for name, text in CEDAR.items()}
    assert "at most 12 providers" in alert(browser.post("/settings", full | more))


def test_all_settings_are_saved_by_one_form_or_none_of_them(
    shop: Dashboard, browser: Browser
) -> None:
    before = shop.merchant()
    wanted = {"name": "New", "contact": "help@new.example", "return_hosts": "new.example"}
    answer = browser.post("/settings", wanted | {"tolerance": "many"})
    assert "The tolerance must be a whole number" in alert(answer)
    assert shop.merchant() == before
    assert answer.page.one("input", name="name").attributes["value"] == "New"
    shop.calls()
    browser.post("/settings", wanted | {"tolerance": "2"} | CEDAR)
    assert shop.calls().count("transact_write_items") == 1
    after = shop.merchant()
    assert (after.name, after.contact, after.tolerance) == ("New", "help@new.example", 2)
    assert (after.return_hosts, offered(shop)) == (("new.example",), ["Cedar"])
    said = "display name, contact, wallet providers, tolerance, return hosts: new.example"
    assert f"Changed settings {said}" in browser.get("/audit").page.main


def test_a_save_of_other_settings_leaves_the_hosts_that_somebody_sets_meanwhile(
    shop: Dashboard, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.post("/settings", {"return_hosts": "old.example"})

    def meanwhile(*_: object) -> bool:
        monkeypatch.undo()
        browser.post("/settings", {"return_hosts": "new.example"})
        return False

    monkeypatch.setattr(settings, "keys_behind", meanwhile)
    browser.post("/settings", {"name": "Renamed", "return_hosts": "old.example"})
    assert (shop.merchant().name, shop.merchant().return_hosts) == ("Renamed", ("new.example",))


def test_the_tolerance_is_explained_as_an_amount(browser: Browser) -> None:
    page = browser.get("/settings").page
    assert page.one("input", name="tolerance").attributes["value"] == "1"
    assert "in units of 0.01 USD" in page.main
    assert "Now 0.01 USD." in page.main
    browser.post("/settings", {"tolerance": "25"})
    assert "Now 0.25 USD." in browser.get("/settings").page.main


@pytest.mark.parametrize("kind", PICTURES)
def test_a_logo_is_kept_as_what_its_bytes_are(shop: Dashboard, kind: str, browser: Browser) -> None:
    assert upload(browser, PICTURES[kind]).location == "/dashboard/settings?saved=1"
    answer = browser.client.get("/dashboard/settings/logo")
    assert (answer.content, answer.headers["content-type"]) == (PICTURES[kind], kind)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert browser.get("/settings").page.all("img", alt="Your logo")
    assert "Changed settings logo" in browser.get("/audit").page.main
    browser.post("/settings", {"logo_remove": "on"})
    assert shop.merchant().logo is None
    assert browser.get("/settings/logo").status == 404


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"<svg onload='alert(1)'>", "PNG, JPEG or WebP"),
        (PICTURES["image/png"][:-1], "PNG, JPEG or WebP"),
        (png_head(2, 2) + b"0" * LOGO_MAX + PNG_END, "16429 bytes"),
        (png_head(2, 0) + PNG_END, "PNG, JPEG or WebP"),
        (png_head(30_000, 2) + PNG_END, "30000 × 2 pixels"),
        (jpeg(2000, 2001), "2000 × 2001 pixels"),
    ],
)
def test_what_is_no_small_picture_is_no_logo(shop: Dashboard, data: bytes, said: str) -> None:
    assert said in alert(upload(shop.signed_in(), data))
    assert shop.merchant().logo is None


def test_the_largest_logo_fits(shop: Dashboard) -> None:
    head = png_head(2000, 2000)
    data = head + b"0" * (LOGO_MAX - len(head) - len(PNG_END)) + PNG_END
    assert upload(shop.signed_in(), data).status == 303
    found = shop.merchant().logo
    assert found is not None
    assert found.data == data


def test_a_logo_is_taken_from_our_own_form_only(shop: Dashboard) -> None:
    browser, data = shop.signed_in(), PICTURES["image/png"]
    assert upload(browser, data, fields={}).status == 400
    twice = {"form_token": [browser.form_token, browser.form_token]}
    assert upload(browser, data, fields=twice).status == 400
    assert upload(browser, b"x" * 300_000).status == 413
    assert browser.post("/settings", {"logo": "x"}).status == 400
    assert shop.merchant().logo is None


def test_the_logo_is_saved_with_the_other_settings_or_none_of_them_is(
    shop: Dashboard, browser: Browser
) -> None:
    picture = PICTURES["image/png"]
    token = {"form_token": browser.form_token}
    before = shop.merchant()
    assert "The tolerance" in alert(upload(browser, picture, fields=token | {"tolerance": "many"}))
    refused = upload(browser, b"no picture", fields=token | {"name": "Café Ñandú"})
    assert "PNG, JPEG or WebP" in alert(refused)
    assert refused.page.one("input", name="name").attributes["value"] == "Café Ñandú"
    assert shop.merchant() == before
    assert upload(browser, picture, fields=token | {"name": "Café Ñandú"}).status == 303
    after = shop.merchant()
    assert after.logo is not None
    assert (after.name, after.logo.data) == ("Café Ñandú", picture)
    assert upload(browser, b"", fields=token | {"name": "New"}).status == 303
    assert (shop.merchant().name, shop.merchant().logo) == ("New", after.logo)


@given(data=st.binary(max_size=600), more=st.binary(max_size=40))
def test_a_file_comes_through_byte_by_byte(data: bytes, more: bytes) -> None:
    lines = b'--b0undary\r\nContent-Disposition: form-data; name="logo"; filename="a"\r\n'
    body = lines + b"Content-Type: image/png\r\n\r\n" + data + b"\r\n--b0undary\r\n"
    body += b'Content-Disposition: form-data; name="x"\r\n\r\n' + more + b"\r\n--b0undary--\r\n"
    if b"--b0undary" not in data + more:
        assert parts("multipart/form-data; boundary=b0undary", body) == {"logo": data, "x": more}


@given(content_type=st.text(max_size=60), raw=st.binary(max_size=300))
def test_no_body_breaks_the_parser(content_type: str, raw: bytes) -> None:
    for value in (f"multipart/form-data; boundary={content_type}", content_type):
        with suppress(ParameterInvalid):
            assert isinstance(parts(value, raw), dict)


def test_a_form_without_a_boundary_is_refused(browser: Browser) -> None:
    headers = {"origin": BASE, "content-type": "multipart/form-data"}
    path = "/dashboard/settings"
    assert browser.client.post(path, content=b"--x", headers=headers).status_code == 400


def test_return_hosts_limit_every_key_at_the_next_session(shop: Dashboard) -> None:
    browser = shop.signed_in()
    second = browser.post("/keys", {"name": "Second"}).secret
    assert [opened(shop, "elsewhere.example", key) for key in (shop.secret, second)] == [201, 201]
    hosts = "shop.example\r\n  WWW.Shop.Example. \r\nshop.example"
    assert browser.post("/settings", {"return_hosts": hosts}).status == 303
    for key in (shop.secret, second):
        assert opened(shop, "elsewhere.example", key) == 400
        assert opened(shop, "sub.shop.example", key) == 400
        assert opened(shop, "www.SHOP.example", key) == 201
    third = browser.post("/keys", {"name": "Third"}).secret
    rolled = browser.post(f"/keys/{shop.key_named('Third').id}/roll", {"overlap": "3600"})
    for key in (third, rolled.secret):
        assert opened(shop, "elsewhere.example", key) == 400
    assert "return hosts: shop.example, www.shop.example" in browser.get("/audit").page.main
    typed = "".join(browser.get("/settings").page.one("textarea", name="return_hosts").text)
    assert typed.split() == ["shop.example", "www.shop.example"]
    browser.post("/settings", {"return_hosts": ""})
    assert {opened(shop, "elsewhere.example", key) for key in (shop.secret, second, third)} == {201}


def test_creating_a_session_still_asks_aws_twice(shop: Dashboard) -> None:
    shop.signed_in().post("/settings", {"return_hosts": "shop.example"})
    shop.calls()
    assert opened(shop, "shop.example") == 201
    assert sorted(shop.calls()) == ["get_item", "put_item"]


def test_a_key_made_meanwhile_is_mended_by_saving_again(shop: Dashboard, browser: Browser) -> None:
    answer = browser.post("/keys", {"name": "Late"})
    keys = Lagging(shop.dynamo, PREFIX)
    keys.unseen = {shop.key_named("Late").hash}
    shop.services = replace(shop.services, api_keys=keys)
    hosts = {"return_hosts": "shop.example"}
    browser.post("/settings", hosts)
    assert "Save the settings again" not in browser.get("/settings").page.main
    keys.unseen = set()
    assert "Save the settings again" in browser.get("/settings").page.main
    browser.post("/settings", hosts)
    assert "Save the settings again" not in browser.get("/settings").page.main
    assert opened(shop, "elsewhere.example", answer.secret) == 400


class Stale(DynamoApiKeys):
    """Its index still has the keys as they were."""

    def of(self, merchant_id: str) -> tuple[ApiKey, ...]:
        return tuple(replace(key, return_hosts=()) for key in super().of(merchant_id))


def test_an_index_that_lags_behind_the_change_is_no_alarm(shop: Dashboard) -> None:
    browser = shop.signed_in()
    shop.services = replace(shop.services, api_keys=Stale(shop.dynamo, PREFIX))
    browser.post("/settings", {"return_hosts": "shop.example"})
    assert "Save the settings again" not in browser.get("/settings").page.main


def test_settings_of_two_browsers_at_once_are_both_kept(shop: Dashboard) -> None:
    browser, write = shop.signed_in(), shop.services.merchants.replace
    seen = shop.merchant()
    write(seen.changed(locale="sw"))
    upload(browser, PICTURES["image/png"])
    now = shop.merchant()
    assert (now.locale, now.logo is not None) == ("sw", True)


def test_the_preview_is_the_customers_page_with_what_is_typed(shop: Dashboard) -> None:
    browser = shop.signed_in()
    upload(browser, PICTURES["image/png"])
    saved = browser.get("/settings/preview")
    assert "Total $20.00" in saved.page.main
    picture = saved.page.one("img").attributes["src"]
    assert browser.get(picture.removeprefix("/dashboard")).headers["content-type"] == "image/png"
    asked = "/settings/preview?name=Caf%C3%A9&accent_color=%23aa3300&locale=es"
    imagined = browser.get(asked)
    assert imagined.page.one("html").attributes["lang"] == "es"
    assert "Café" in imagined.page.main
    assert "--accent: #aa3300" in imagined.body
    assert "--accent: #aa3300" not in browser.get(asked + "&usual=on").body
    assert shop.merchant().name == "Shop"


def test_the_preview_can_be_framed_by_us_alone_and_does_nothing(shop: Dashboard) -> None:
    answer = shop.signed_in().get("/settings/preview")
    policy = answer.headers["content-security-policy"]
    assert "frame-ancestors 'self'" in policy
    assert "form-action 'none'" in policy
    assert "script" not in policy
    assert not answer.page.all("script")
    assert not answer.page.links


@pytest.mark.parametrize(
    "query",
    ["name=%00", "name=" + "x" * 200, "accent_color=%3C/style%3E", "locale=xx", "name=%3Cb%3E"],
)
def test_what_the_pages_could_not_show_is_not_previewed(query: str, browser: Browser) -> None:
    browser.post("/settings", LOOKS)
    answer = browser.get(f"/settings/preview?{query}")
    assert answer.status == 200
    assert not answer.page.all("b")
    assert answer.page.one("html").attributes["lang"] == "pt"
    assert "--accent: #aa3300" in answer.body
