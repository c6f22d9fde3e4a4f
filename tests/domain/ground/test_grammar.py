from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkout.domain.ground.errors import UrlInvalid
from checkout.domain.ground.grammar import URL_MAX, picture_url, position, redirect_url, webhook_url
from tests.support.basics import NOW, words
from tests.support.samples import MS

ID = "cs_0123456789abcdefABCDEF"
UNPRINTABLE = "\n\t\x00\x7f\x85\u2028\u202e\u200b\ud800"


def checked(url: str, *, base_is_http: bool = False) -> str:
    return redirect_url(url, session_id=ID, base_is_http=base_is_http, param="success_url")


@pytest.mark.parametrize(
    "url",
    words("""
    https://shop.example https://shop.example/thanks?a=b&c[]=d#top HTTPS://Shop.Example:8443/
    https://xn--mnchen-3ya.example/danke https://shop.example/d%C3%A4nke https://shop.example/dänke
    https://shop_1.example./ https://192.0.2.7/x https://[2001:db8::1]:443/x
    https://shop.example/next?url=https://other.example/@me https://shop.example/a//b
    """),
)
def test_an_ordinary_address_stays_exactly_as_it_was_written(url: str) -> None:
    assert checked(url) == url


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("https://s.example/{CHECKOUT_SESSION_ID}", f"https://s.example/{ID}"),
        (
            "https://s.example/{CHECKOUT_SESSION_ID}?a={CHECKOUT_SESSION_ID}#{CHECKOUT_SESSION_ID}",
            f"https://s.example/{ID}?a={ID}#{ID}",
        ),
        ("https://s.example/?a=%7BCHECKOUT_SESSION_ID%7D", f"https://s.example/?a={ID}"),
        ("https://s.example/?a=%7bCHECKOUT_SESSION_ID%7d", f"https://s.example/?a={ID}"),
        ("https://s.example/?a={CHECKOUT_SESSION_ID%7D", f"https://s.example/?a={ID}"),
        ("https://s.example?{CHECKOUT_SESSION_ID}//x", f"https://s.example?{ID}//x"),
        ("https://s.example#{CHECKOUT_SESSION_ID}", f"https://s.example#{ID}"),
    ],
)
def test_every_placeholder_in_path_query_and_fragment_becomes_the_id(
    template: str, expected: str
) -> None:
    assert checked(template) == expected


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://shop.example\\@evil.example/",
        "https:\\\\shop.example/",
        " https://shop.example/",
        *(f"https://shop.example/{odd}" for odd in (" ", "a b", *UNPRINTABLE)),
        "ht\ntps://shop.example/",
        f"https://{'a' * 64}.example/",
        f"https://{'a.' * 127}example/",
        *words("""
        thanks /thanks //shop.example/ https:shop.example https:/shop.example https:///shop.example
        https:// https://?x ftp://shop.example/ javascript:alert(1)
        javascript://shop.example/%0aalert(1) data:text/html,x http://shop.example/
        http://localhost:3000/ https://user@shop.example/ https://user:pass@shop.example/
        https://@shop.example/ https://münchen.example/ https://shop。example/
        https://evil.example／.shop.example/ https://shop%2eexample/ https://shop..example/
        https://.example/ https://-shop.example/ https://shop.example:/ https://shop.example:0/
        https://shop.example:65536/ https://shop.example:443:443/ https://shop.example:+443/
        https://shop.example:٤٤٣/ https://[::1/ https://[zz]/ https://[::1]x/
        https://shop.example/%zz https://shop.example/% https://shop.example/<script>
        https://shop.example/"x https://shop.example/{OTHER}
        https://shop.example/{CHECKOUT_SESION_ID} https://shop.example/{checkout_session_id}
        https://{CHECKOUT_SESSION_ID}/ https://{CHECKOUT_SESSION_ID}.example/
        https://%7BCHECKOUT_SESSION_ID%7D.example/ https://shop.example:{CHECKOUT_SESSION_ID}/
        https://{CHECKOUT_SESSION_ID}@shop.example/ {CHECKOUT_SESSION_ID}://shop.example/
        {CHECKOUT_SESSION_ID}
        """),
    ],
)
def test_what_two_programs_could_read_differently_is_refused_by_name(url: str) -> None:
    with pytest.raises(UrlInvalid) as refused:
        checked(url)
    assert refused.value.param == "success_url"
    assert refused.value.message


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:3000", "shop.localhost", "127.0.0.1:1", "127.0.0.2", "[::1]"],
)
def test_http_is_for_this_machine_while_the_service_itself_is_http(host: str) -> None:
    url = f"http://{host}/"
    assert checked(url, base_is_http=True) == url
    with pytest.raises(UrlInvalid):
        checked(url)


@pytest.mark.parametrize(
    "host",
    words("""shop.example localhost.evil.example 127.0.0.1.evil.example 128.0.0.2 notlocalhost
    localhost@evil.example"""),
)
def test_http_elsewhere_is_refused_even_then(host: str) -> None:
    with pytest.raises(UrlInvalid):
        checked(f"http://{host}/", base_is_http=True)


def test_the_length_counts_after_the_placeholders_are_replaced() -> None:
    start = "https://s.example/?{CHECKOUT_SESSION_ID}"
    grown = len(start.replace("{CHECKOUT_SESSION_ID}", ID))
    longest = start + "a" * (URL_MAX - grown)
    assert len(longest) < URL_MAX
    assert len(checked(longest)) == URL_MAX
    with pytest.raises(UrlInvalid):
        checked(longest + "a")


@given(st.text(max_size=60), st.booleans())
def test_whatever_passes_is_https_without_user_and_unchanged(rest: str, base_is_http: bool) -> None:
    for url in (rest, "https://" + rest, "https://shop.example" + rest):
        try:
            result = checked(url, base_is_http=base_is_http)
        except UrlInvalid:
            continue
        parts = urlsplit(result)
        assert result == url
        assert parts.scheme == "https"
        assert parts.hostname
        assert "@" not in parts.netloc
        assert result.isprintable()


# --- webhook_url ---


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://shop.example", "shop.example"),
        ("https://Shop.Example/hooks?a=%20b", "Shop.Example"),
        ("https://shop.example:443/", "shop.example"),
        ("https://xn--kfer-soa.example/", "xn--kfer-soa.example"),
        ("https://8.8.8.8/", "8.8.8.8"),
        ("https://[2606:4700::1111]:443/", "2606:4700::1111"),
    ],
)
def test_a_receivers_address_is_taken_and_its_host_named(url: str, host: str) -> None:
    for allow_loopback in (False, True):
        assert webhook_url(url, allow_loopback=allow_loopback, param="url") == host


@pytest.mark.parametrize("port", [1, 80, 4101, 8443, 65535])
def test_another_port_is_for_development(port: int) -> None:
    url = f"https://shop.example:{port}/"
    assert webhook_url(url, allow_loopback=True, param="url") == "shop.example"
    with pytest.raises(UrlInvalid, match="port 443"):
        webhook_url(url, allow_loopback=False, param="url")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://shop.example/", "https"),
        ("http://10.0.0.1/", "https"),
        ("HTTP://localhost/", "lower case"),
        ("HTTPS://shop.example/", "lower case"),
        ("https://shop.example/#", "fragment"),
        ("https://shop.example/h\u00fcks", "ASCII"),
        ("https://sh\u00f6p.example/", "ASCII"),
        ("https://a@shop.example/", "user name"),
        ("https://shop.example/\\", "backslashes"),
        ("https://shop.example/\u202e", "control"),
        ("https://shop.example/" + "a" * 2028, "2048"),
        ("https://shop.example:0/", "port"),
        ("https://[::1%25lo]/", "malformed"),
    ],
)
def test_a_receivers_address_is_refused_with_the_reason_also_in_development(
    url: str, problem: str
) -> None:
    with pytest.raises(UrlInvalid, match=problem) as caught:
        webhook_url(url, allow_loopback=True, param="endpoint")
    assert caught.value.param == "endpoint"


# --- picture_url ---


@pytest.mark.parametrize(
    "url",
    words("""
    https://shop.example/tea.png HTTPS://Shop.Example:8443/a%20b?w=96&h=96 https://xn--kfer-soa.example
    https://cdn.shop.example/a;b,c/(1)'*.webp https://0x.example/a.png
    """),
)
def test_a_picture_is_https_at_a_host_with_a_name(url: str) -> None:
    assert picture_url(url, base_is_http=False, param="image") == url


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://shop.example/tea.png", "https"),
        ("data:image/svg+xml,<svg/>", "absolute"),
        ("javascript:alert(1)", "absolute"),
        ("blob:https://shop.example/1", "absolute"),
        ("//shop.example/tea.png", "absolute"),
        ("/tea.png", "absolute"),
        ("", "absolute"),
        ("https:///tea.png", "absolute"),
        ("https://shop.example@evil.example/tea.png", "user name"),
        ("https://192.0.2.7/tea.png", "IP address"),
        ("https://8.8.8.8./tea.png", "IP address"),
        ("https://0x7f000001/tea.png", "this machine|IP address"),
        ("https://2130706433/tea.png", "this machine|IP address"),
        ("https://[2606:4700::1111]/tea.png", "IP address"),
        ("https://169.254.169.254/latest", "infrastructure"),
        ("https://127.0.0.1/tea.png", "this machine"),
        ("https://[::1]/tea.png", "this machine"),
        ("https://localhost/tea.png", "this machine"),
        ("https://a.localhost/tea.png", "this machine"),
        ("https://metadata.google.internal/", "infrastructure"),
        ("https://shop_1.example/tea.png", "ASCII"),
        ("https://shop.example./tea.png", "ASCII"),
        ("https://shop.example;script-src/tea.png", "malformed"),
        ("https://shop.example,*/tea.png", "malformed"),
        ("https://*.example/tea.png", "malformed"),
        ("https://sh\u00f6p.example/tea.png", "ASCII"),
        ("https://shop.example/t\u00e9.png", "ASCII"),
        ("https://shop.example/../tea.png", "dot"),
        ("https://shop.example/tea.png#x", "dot"),
        ("https://shop.example/a b.png", "spaces"),
        ('https://shop.example/"onerror="x', "encoded"),
        ("https://shop.example:0/tea.png", "port"),
        ("https://shop.example/" + "a" * 480, "500"),
    ],
)
def test_any_other_picture_is_refused_with_the_reason(url: str, problem: str) -> None:
    with pytest.raises(UrlInvalid, match=problem) as caught:
        picture_url(url, base_is_http=False, param="line_items[0].price_data.product_data.image")
    assert caught.value.param == "line_items[0].price_data.product_data.image"


def test_a_picture_of_this_machine_is_for_development() -> None:
    for url in ("http://localhost:4001/tea.png", "https://127.0.0.1/tea.png"):
        assert picture_url(url, base_is_http=True, param="image") == url
    with pytest.raises(UrlInvalid, match="localhost"):
        picture_url("http://shop.example/tea.png", base_is_http=True, param="image")


def test_positions_sort_by_time_then_id_and_a_bare_time_stands_before_both() -> None:
    positions = [
        position(NOW),
        position(NOW, "cs_A"),
        position(NOW, "cs_a"),
        position(NOW + MS),
        position(NOW + MS, "cs_0"),
        position(datetime.max.replace(tzinfo=UTC)),
    ]
    assert positions == sorted(positions)
    assert len(set(positions)) == len(positions)
    assert position(NOW, "cs_A") == "1772366400000#cs_A"
