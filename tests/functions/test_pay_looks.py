"""Test a merchant's colour and logo on the pages, and the QR code."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pay
from checkout.domain.merchant.record import Logo
from pay.looks import DARK, LIGHT, accent, contrast, tint
from tests.support.cases import PICTURES
from tests.support.hosted_pages import STAGES, Answer, Customer, line

ANY_COLOR = st.integers(0, 0xFFFFFF).map(lambda number: f"#{number:06x}")


@given(ANY_COLOR)
def test_whatever_colour_is_picked_can_be_read_in_both_schemes(color: str) -> None:
    found = accent(color)
    assert found is not None
    assert min(contrast(found.light, each) for each in (*LIGHT, tint(color))) >= 4.5
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


def test_the_pages_script_comes_without_its_comments_and_is_the_same_otherwise(
    visitor: Customer,
) -> None:
    source = (Path(pay.__file__).parent / "templates" / "page.js").read_text("utf-8")
    script = "".join(visitor.open(visitor.world.create()).page.one("script").text)
    assert "//" not in script.replace("https://", "")
    code = [line.split("  // ")[0].strip() for line in source.splitlines()]
    kept = [line for line in code if line and not line.startswith("//")]
    assert [line for line in script.splitlines() if line] == kept


def test_the_pages_style_comes_without_its_comments_and_is_the_same_otherwise(
    visitor: Customer,
) -> None:
    source = (Path(pay.__file__).parent / "templates" / "page.css").read_text("utf-8")
    body = visitor.open(visitor.world.create()).body
    style = body.partition("<style")[2].partition("</style>")[0]
    assert "/*" in source
    assert "/*" not in style
    assert _words(re.sub(r"/\*.*?\*/", " ", source, flags=re.DOTALL)) == _words(
        style.partition(">")[2]
    )


def _words(style: str) -> list[str]:
    """Split where space means nothing; a `;` before a `}` means nothing either."""
    words = re.findall(r'"[^"]*"|[{};,]|[^\s{};,"]+', style)
    return [word for word, then in pairwise((*words, "")) if (word, then) != (";", "}")]


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


def items(*images: str | None) -> dict[str, Any]:
    return {"line_items": tuple(line(f"Tea {n}", image=url) for n, url in enumerate(images))}


def pictures(answer: Answer) -> list[str]:
    """Return the sources of all pictures but the QR code, and check how they are loaded."""
    found = answer.page.all("img", alt="")
    for one in found:
        if one.attributes["src"].startswith("https:"):
            assert one.attributes["referrerpolicy"] == "no-referrer"
            assert one.attributes["loading"] == "lazy"
            assert one.attributes["width"] == one.attributes["height"] == "96"
    return [one.attributes["src"] for one in found]


def sources(answer: Answer) -> str:
    """Return what the policy says of pictures."""
    return answer.headers["content-security-policy"].partition("img-src ")[2].partition(";")[0]


def test_a_page_shows_the_pictures_of_the_first_items_from_their_hosts_only(
    visitor: Customer,
) -> None:
    one, two = "https://cdn.shop.example/a.webp?w=96", "https://Img.Shop.example:8443/b.png"
    session = visitor.put(**items(None, one, two, "https://cdn.shop.example/c.png"))
    answer = visitor.open(session)
    assert pictures(answer) == [one, two]
    assert sources(answer) == (
        "'self' data: https://cdn.shop.example https://img.shop.example:8443"
    )
    marks = [
        each.attributes["data-initial"] for each in answer.page.all("span", **{"class": "mark"})
    ]
    assert marks[-4:] == ["T"] * 4, "the letter is behind each picture, and in place of the others"
    refused = visitor.form(session, "not a wallet")
    assert pictures(refused) == [one, two]
    assert sources(refused) == sources(answer)


def test_every_stage_shows_the_pictures(visitor: Customer) -> None:
    for stage in STAGES:
        session = visitor.put_in(stage, **items("https://cdn.shop.example/a.webp"))
        answer = visitor.open(session)
        if answer.status == 303:
            answer = visitor.get(answer.headers["location"])
        assert pictures(answer) == ["https://cdn.shop.example/a.webp"], stage
        assert sources(answer) == "'self' data: https://cdn.shop.example", stage


def test_without_a_picture_there_is_no_mark_and_no_other_origin(visitor: Customer) -> None:
    answer = visitor.open(visitor.put(**items(None, None)))
    assert pictures(answer) == []
    assert sources(answer) == "'self' data:"
    assert len(answer.page.all("span", **{"class": "mark"})) == 1  # of the shop


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "http://shop.example/a.png", "https://a.example;b/", "https://[/"],
)
def test_a_picture_that_could_not_have_been_stored_is_not_shown(
    visitor: Customer, url: str
) -> None:
    answer = visitor.open(visitor.put(**items(url)))
    assert (pictures(answer), sources(answer)) == ([], "'self' data:")


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
