"""Test a merchant's colour and logo on the pages, and the QR code."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pay
from checkout.domain.merchant import Logo
from pay.colors import DARK, LIGHT, accent, contrast
from tests.domain.test_pictures import PICTURES
from tests.hosted_pages import Customer

ANY_COLOR = st.integers(0, 0xFFFFFF).map(lambda number: f"#{number:06x}")


@given(ANY_COLOR)
def test_whatever_colour_is_picked_can_be_read_in_both_schemes(color: str) -> None:
    found = accent(color)
    assert found is not None
    assert min(contrast(found.light, each) for each in LIGHT) >= 4.5
    assert min(contrast(found.dark, each) for each in DARK) >= 4.5
    assert found.brand == color
    assert contrast(found.brand, found.ink) >= 4.5


def test_a_colour_that_can_be_read_is_left_as_it_is() -> None:
    found = accent("#0b5cad")
    assert found is not None
    assert (found.light, found.dark != "#0b5cad") == ("#0b5cad", True)


def test_contrast_is_wcags() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


def test_the_colours_that_it_is_held_against_are_the_pages() -> None:
    css = (Path(pay.__file__).parent / "templates" / "page.css").read_text()
    for name, light, dark in (
        ("ground", LIGHT[0], DARK[0]),
        ("sheet", LIGHT[1], DARK[1]),
    ):
        found = re.findall(rf"--{name}: (#[0-9a-f]+);", css)
        assert [one.replace("#fff", "#ffffff") if len(one) == 4 else one for one in found] == [
            light,
            dark,
        ]


@pytest.mark.parametrize("color", [None, "", "red", "#fff", "#12345g", "#123456;}*{", "123456"])
def test_what_is_no_colour_is_no_accent(color: str | None) -> None:
    assert accent(color) is None


def test_the_accent_is_in_the_pages_style(visitor: Customer) -> None:
    visitor.give(accent_color="#ffcc00")
    found = accent("#ffcc00")
    assert found is not None
    body = visitor.open(visitor.world.create()).body
    assert f"--accent: {found.light}" in body
    assert f"--accent: {found.dark}" in body
    assert "--brand: #ffcc00; --on-brand: #000000" in body


def test_a_logo_is_a_picture_of_this_origin_that_the_browser_may_keep(visitor: Customer) -> None:
    session = visitor.world.create()
    assert visitor.open(session).page.all("img", alt="") == []
    assert visitor.open(session, "/logo").status == 404
    visitor.give(logo=Logo("image/png", PICTURES["image/png"]))
    first = visitor.open(session).page.one("img", alt="").attributes["src"]
    answer = visitor.get(first)
    assert (answer.status, answer.headers["content-type"]) == (200, "image/png")
    assert answer.headers["cache-control"] == "private, max-age=86400"
    assert "script-src 'nonce-" in answer.headers["content-security-policy"]
    visitor.give(logo=Logo("image/webp", PICTURES["image/webp"]))
    assert visitor.open(session).page.one("img", alt="").attributes["src"] != first


@pytest.mark.parametrize(
    "logo",
    [
        Logo("text/html", b"<script>alert(1)</script>"),
        Logo("image/svg+xml", b'<svg xmlns="http://www.w3.org/2000/svg"/>'),
        Logo("image/gif", b"GIF89a"),
        Logo("image/png", b"<script>alert(1)</script>"),
    ],
)
def test_only_a_picture_that_the_settings_accept_is_served_as_a_logo(
    visitor: Customer, logo: Logo
) -> None:
    visitor.give(logo=logo)
    session = visitor.world.create()
    assert visitor.open(session).page.all("img", alt="") == []
    answer = visitor.open(session, "/logo")
    assert answer.status == 404
    assert answer.headers["cache-control"] == "no-store"


def test_the_qr_code_is_a_drawing_from_an_address_of_its_own(visitor: Customer) -> None:
    session = visitor.world.create()
    page = visitor.open(session).page
    (picture,) = page.all("img")
    assert picture.attributes["loading"] == "lazy"
    answer = visitor.get(picture.attributes["src"])
    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.headers["cache-control"] == "no-store"  # it is the session's secret address
    drawing = ElementTree.fromstring(answer.body)  # noqa: S314 - our own
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    assert re.fullmatch(r"0 0 \d+ \d+", drawing.attrib["viewBox"])


def test_there_is_no_qr_code_of_a_session_that_is_not_there(visitor: Customer) -> None:
    assert visitor.get("/pay/cs_0000000000000000000000/qr").status == 404
    assert visitor.get("/pay/cs_0000000000000000000000/logo").status == 404
