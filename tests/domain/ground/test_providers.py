"""Test the directory of wallet providers."""

from __future__ import annotations

from base64 import b64encode

import pytest

from checkout.domain.ground import providers
from checkout.domain.ground.providers import Field, Provider
from tests.support.cases import PICTURES, PNG_END, png_head

CEDAR = "Cedar Bank | https://wallet.example/{name} | https://wallet.example/join | DE KE"
HARBOR = "Harbor | https://harbor.example/p/{name}/usd | https://harbor.example/"


def b64(data: bytes) -> str:
    return b64encode(data).decode()


LOGO = b64(b'<svg xmlns="http://www.w3.org/2000/svg"></svg>')


@pytest.mark.parametrize("between", ["\n", ";", " ;\r\n\n"])
def test_a_list_is_read(between: str) -> None:
    found = providers.parse(f"{CEDAR}{between}{HARBOR}")
    assert found == (
        Provider(
            "Cedar Bank", "https://wallet.example/{name}", "https://wallet.example/join", "DE KE"
        ),
        Provider("Harbor", "https://harbor.example/p/{name}/usd", "https://harbor.example/"),
    )
    assert providers.parse("") == ()


def test_a_logo_is_a_small_picture_that_the_page_carries() -> None:
    lines = f"{CEDAR} | {LOGO}\n{HARBOR} | | {b64(PICTURES['image/webp'])}"
    cedar, harbor = providers.parse(lines)
    assert cedar.logo_url == f"data:image/svg+xml;base64,{LOGO}"
    assert harbor.logo_url is not None
    assert harbor.logo_url.startswith("data:image/webp;base64,")
    assert (harbor.countries, cedar.countries) == ("", "DE KE")
    assert providers.parse(CEDAR)[0].logo_url is None


def test_what_is_known_at_the_release_can_be_read() -> None:
    (gatehub,) = providers.parse(providers.KNOWN)
    assert gatehub.address("1234/EUR") == "https://ilp.gatehub.net/1234/EUR"
    assert gatehub.fields == (Field("Wallet number", "123456789"), Field("Currency", "USD"))
    assert gatehub.example == "123456789/USD"
    assert gatehub.parts("1234/EUR") == ("1234", "EUR")
    assert gatehub.has("https://ilp.gatehub.net/1234/EUR")


def test_a_form_of_before_has_one_field_without_example() -> None:
    cedar, harbor = providers.parse(f"{CEDAR};{HARBOR}")
    assert cedar.fields == harbor.fields == (Field("", ""),)
    assert cedar.example == ""
    assert cedar.parts("a/b") == ("a/b", "")


def test_a_field_may_have_a_name_in_any_language_and_an_example() -> None:
    line = "Nord | https://nord.example/{Kontonummer: 12-34} | https://nord.example/"
    (nord,) = providers.parse(line)
    assert nord.fields == (Field("Kontonummer", "12-34"),)
    assert nord.address("56-78") == "https://nord.example/56-78"


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("https://wallet.example/{name}", "alice"),
        ("https://wallet.example/{name}/x", "ä b"),
        ("https://wallet.example/{Number: 12}/{Currency: USD}", "987/EUR"),
    ],
)
def test_what_was_typed_is_read_from_the_address_again(form: str, name: str) -> None:
    provider = Provider("P", form, "https://wallet.example/")
    assert provider.typed(provider.address(name)) == name
    others = ("https://other.example/alice", "https://wallet.example/", "https://wallet.example")
    assert [provider.typed(each) for each in others] == ["", "", ""]


def test_an_address_without_one_of_two_fields_is_none_of_theirs() -> None:
    two = Provider("P", "https://wallet.example/{Number: 1}/{Currency: USD}", "https://w.example/")
    assert two.typed("https://wallet.example/987") == ""


def test_a_name_becomes_an_address_and_an_address_is_known_by_its_host() -> None:
    _, harbor = providers.parse(f"{CEDAR};{HARBOR}")
    assert harbor.address("zoë?#") == "https://harbor.example/p/zo%C3%AB%3F%23/usd"
    assert (harbor.stem, harbor.rest) == ("harbor.example/p/", "/usd")
    assert harbor.has("https://harbor.example/anything")
    assert not harbor.has("https://harbor.example.evil.example/p/zoe/usd")
    assert not harbor.has("https://harbor.example:444/p/zoe/usd")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Cedar", "not of the form"),
        ("Cedar | https://wallet.example/{name}", "not of the form"),
        (f"{CEDAR} | {LOGO} | more", "not of the form"),
        (f"{CEDAR} | more", "the logo"),
        (f"{CEDAR} | {LOGO}=", "the logo"),
        (f"{CEDAR} | {b64(b'<html></html>')}", "the logo"),
        (f"{CEDAR} | {b64(PICTURES['image/png'][:-1])}", "the logo"),
        (f"{CEDAR} | {b64(png_head(2001, 2) + PNG_END)}", "2000 pixels a side"),
        (f"{CEDAR} | {b64(b'<svg ' + b' ' * 600 + b'</svg>')}", "the logo"),
        ("| https://wallet.example/{name} | https://wallet.example/", "the name"),
        ("x" * 41 + " | https://wallet.example/{name} | https://wallet.example/", "the name"),
        ("A\u202eb | https://wallet.example/{name} | https://wallet.example/", "the name"),
        ("Cedar | https://wallet.example/ | https://wallet.example/", "once in its path"),
        ("Cedar | https://{name}.example/ | https://wallet.example/", "once in its path"),
        ("Cedar | https://w.example/{name}/{name} | https://w.example/", "once in its path"),
        ("Cedar | https://w.example/{a}/{b}/{c} | https://w.example/", "once in its path"),
        ("Cedar | https://w.example/{a}{b} | https://w.example/", "once in its path"),
        ("Cedar | https://w.example/{a}?{b} | https://w.example/", "once in its path"),
        ("Cedar | https://w.example/{} | https://w.example/", "once in its path"),
        ("Cedar | https://w.example/{a/{b} | https://w.example/", "once in its path"),
        ("Cedar | https://w.example/{a\u202eb} | https://w.example/", "once in its path"),
        ("Cedar | https://w.example/?{name} | https://w.example/", "once in its path"),
        ("Cedar | http://w.example/{name} | https://w.example/", "once in its path"),
        ("Cedar | javascript:{name} | https://w.example/", "once in its path"),
        ("Cedar | https://w.example/{name} | javascript:alert(1)", "the website"),
        ("Cedar | https://w.example/{name} | http://w.example/", "the website"),
        ("Cedar | https://w.example/{name} | https://w.example/ | Germany", "countries"),
        ("Cedar | https://w.example/{name} | https://w.example/" + "a" * 2000, "characters"),
        ("\n".join([CEDAR] * 13), "at most 12"),
    ],
)
def test_a_line_that_is_none_is_named(line: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        providers.parse(line)
    assert str(caught.value).endswith(".")


def test_two_providers_at_one_host_are_told_apart_by_the_form_of_their_addresses() -> None:
    both = providers.parse(providers.of_test_stage("https://wallets.example"))
    assert [each.name for each in both] == ["Cedar Bank", "Harbor Wallet"]
    named = {
        "https://wallets.example/cedar/alice": "Cedar Bank",
        "https://wallets.example/harbor/bob": "Harbor Wallet",
        "https://wallets.example/of-neither": None,
        "https://other.example/harbor/bob": None,
    }
    assert {wallet: providers.name_of(wallet, both) for wallet in named} == named
    assert providers.name_of("https://wallets.example/of-neither", both[1:]) == "Harbor Wallet"
