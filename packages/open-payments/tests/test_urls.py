"""URLs in the one form that is signed and sent."""

from __future__ import annotations

import pytest
from client_script import words

from open_payments import urls


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://auth.example", "https://auth.example/"),
        ("https://auth.example?a=b", "https://auth.example/?a=b"),
        ("HTTPS://Auth.Example/Tenant", "https://auth.example/Tenant"),
        ("https://auth.example:443/a", "https://auth.example/a"),
        ("https://auth.example:/a", "https://auth.example/a"),
        ("https://auth.example:0443/a", "https://auth.example/a"),
        ("https://auth.example:8443/a/", "https://auth.example:8443/a/"),
        ("http://localhost:80", "http://localhost/"),
        ("https://[::1]/a", "https://[::1]/a"),
        ("https://[::1]:4100/a", "https://[::1]:4100/a"),
        ("https://a.example/%7Eb?c=%C3%A9&d=+", "https://a.example/%7Eb?c=%C3%A9&d=+"),
    ],
)
def test_trap_03_the_target_uri_is_the_url_as_the_server_sees_it(url: str, sent: str) -> None:
    assert urls.target_uri(url) == sent


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://auth.example/a b",
        "https://auth.example\\a",
        "https://auth.example/\r\nX: y",
        "https://auth.example/" + "a" * 2048,
        *words("""
        auth.example/a //auth.example/a ftp://auth.example/a https:// https:///a
        https://user@auth.example/ https://user:secret@auth.example/ https://auth.example/a#b
        https://auth.example/é https://auth.example:port/ https://auth.example:0/
        https://auth.example:65536/ https://auth.example:+443/ https://auth.example/a/../b
        https://auth.example/a/. https://[::1/a
        """),
    ],
)
def test_a_url_that_two_libraries_would_print_differently_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        urls.target_uri(url)


def test_a_complaint_never_quotes_the_url() -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        urls.target_uri("https://auth.example/continue/secret#")
    assert "secret" not in str(caught.value)


def test_an_origin_is_the_same_however_it_is_written() -> None:
    assert urls.origin("HTTPS://Auth.Example:443/a?b") == urls.origin("https://auth.example")
    assert urls.origin("https://auth.example") == "https://auth.example"
    assert urls.origin("https://auth.example:444/") != urls.origin("https://auth.example/")
    assert urls.origin("http://auth.example/") != urls.origin("https://auth.example/")


def test_segments_are_put_below_a_base_with_one_slash() -> None:
    assert urls.under("https://a.example/t/", "quotes") == urls.under(
        "https://a.example/t", "quotes"
    )
    assert urls.under("https://a.example", "x", "y") == "https://a.example/x/y"


@pytest.mark.parametrize(
    ("url", "segment"),
    [
        ("https://a.example/quotes/5136cf98", "5136cf98"),
        ("https://a.example/quotes/5136cf98/", "5136cf98"),
        ("https://a.example/quotes/5136cf98?a=b/c", "5136cf98"),
        ("https://a.example", ""),
    ],
)
def test_the_last_segment_names_the_resource(url: str, segment: str) -> None:
    assert urls.last_segment(url) == segment


def test_loopback_is_known_by_name() -> None:
    for host in ("localhost", "wallet.localhost:4000", "127.0.0.1", "127.9.9.9:1", "[::1]:80"):
        assert urls.is_loopback(urls.target(f"http://{host}/").host)
    for host in ("localhost.example", "notlocalhost", "127.0.0.1.example", "128.0.0.1", ""):
        assert not urls.is_loopback(urls.host_and_port(host)[0])


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("https://A.example:8443/x?y@z", "A.example:8443"),
        ("https://[::1]:80", "[::1]:80"),
        ("https:///x", ""),
        ("no url", ""),
        ("", ""),
    ],
)
def test_the_authority_is_as_written_and_empty_where_there_is_none(url: str, written: str) -> None:
    assert urls.authority(url) == written
