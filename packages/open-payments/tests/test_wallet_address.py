"""Test how an address that a customer types becomes a URL."""

from __future__ import annotations

import string

import pytest
from client_script import words
from hypothesis import given
from hypothesis import strategies as st

from open_payments.urls import target_uri
from open_payments.wallet_address import InvalidWalletAddress, Mistake, parse

labels = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=20)
top_level = st.text(string.ascii_lowercase, min_size=2, max_size=6)
hosts = st.tuples(st.lists(labels, min_size=1, max_size=3), top_level).map(
    lambda parts: ".".join((*parts[0], parts[1]))
)
paths = st.lists(st.text(string.ascii_letters + string.digits + "-_~", min_size=1), max_size=3).map(
    lambda parts: "".join(f"/{part}" for part in parts)
)


# By the URL that is meant.
SPELLINGS = {
    "https://wallet.example/alice": [
        "  https://wallet.example/alice\n",
        "“https://wallet.example/alice”",
        "<https://wallet.example/alice>",
        "(https://wallet.example/alice)",
        "[https://wallet.example/alice].",
        "“https://wallet.example/alice.”",
        "https://wallet.example/alice),",
        "https://wallet.example/alice.",
        "$wallet.example/alice;",
        *(f"{each}wallet.example/alice{each}" for each in "\u200b\u200e\u200f\u2060\ufeff\xad"),
        "\u2066https://wallet.example/alice\u2069",
        "\u202bhttps://wallet.example/alice\u202c.",
        "http://wallet.example/alice",
        "HTTP://WALLET.example/alice",
        *words("""https://wallet.example/alice wallet.example/alice $wallet.example/alice
        https://wallet.example:443/alice https://wallet.example./alice"""),
    ],
    "https://wallet.example/alice/": ["https://wallet.example/alice/"],
    "https://wallet.example/Alice": ["HTTPS://WALLET.EXAMPLE/Alice"],
    "https://wallet.example/": ["wallet.example"],
    "https://wallet.example/.well-known/pay": ["$wallet.example", "$wallet.example/"],
    "https://xn--bcher-kva.example/": ["BÜCHER.example"],
    "https://xn--bcher-kva.example/a": words("https://bücher.example/a xn--bcher-kva.example/a"),
    "https://wallet.example/jos%C3%A9": words("wallet.example/josé wallet.example/jos%C3%A9"),
    "https://wallet.example/%3Ca%3E": ["https://wallet.example/<a>"],  # harmless where shown
    "https://wallet.example/a(b)": ["wallet.example/a(b)"],
}


@pytest.mark.parametrize(
    ("typed", "url"), [(each, url) for url, typed in SPELLINGS.items() for each in typed]
)
def test_a_wallet_address_is_understood_as_customers_write_it(typed: str, url: str) -> None:
    assert parse(typed, allow_ports=False) == url


WRONG = {
    Mistake.NOTHING: ["", "   ", "“”"],
    Mistake.TOO_LONG: [
        "https://wallet.example/" + "a" * 2048,
        "wallet.example/" + "é" * 800,
    ],
    Mistake.SPACES: [
        *(f"https://wallet.example/{odd}" for odd in ("al ice", "al\tice", "a\u200bb", "\ud800")),
        "wallet.example / alice",
        "wallet.example/\x00",
    ],
    Mistake.BEGINNING: words(
        r"""ftp://wallet.example/alice javascript://wallet.example/alice $https://wallet.example/a
        https//wallet.example/alice https:/wallet.example/alice htps://wallet.example/alice
        https;//wallet.example/alice https:\\wallet.example\alice https:///alice mailto:alice
        https://https://wallet.example/alice https://$wallet.example/alice javascript:alert(1)"""
    ),
    Mistake.CHARACTER: words(
        r"""https://alice:secret@wallet.example/ https://wallet.example@evil.example/
        https://wallet.example/alice?a=b https://wallet.example/alice? wallet.example\alice
        https://wallet.example/alice#a https://wallet.example/a/../b"""
    ),
    Mistake.COMMA: words("wallet,example/alice https://wallet,example/alice"),
    Mistake.PORT: words(
        "https://wallet.example:8443/alice https://wallet.example:/a https://wallet.example:x/a"
    ),
    Mistake.HOST: [
        "é" * 800 + ".example",
        "https://" + "a." * 130 + "example/",
        "https://⒈⒈.example/\u2024",
        *words("""$ & https://localhost/alice wallet/alice /alice https://wallet..example/alice
        https://-wallet.example/alice https://wal_let.example/alice https://10.0.0.1/alice
        https://[::1]/alice https://[::1/alice metadata.google.internal/a"""),
    ],
}


@pytest.mark.parametrize(
    ("typed", "mistake"), [(each, mistake) for mistake, typed in WRONG.items() for each in typed]
)
def test_what_cannot_be_a_wallet_address_is_refused_with_the_mistake(
    typed: str, mistake: Mistake
) -> None:
    with pytest.raises(InvalidWalletAddress) as caught:
        parse(typed, allow_ports=False)
    assert caught.value.mistake is mistake
    assert str(caught.value).endswith(".")
    assert "{" not in str(caught.value)


def test_each_mistake_has_an_example() -> None:
    assert set(WRONG) == set(Mistake)


def test_development_allows_ports_and_names_without_a_dot() -> None:
    assert parse("localhost:4100/a", allow_ports=True) == "https://localhost:4100/a"
    assert parse("https://LOCALHOST:443/a", allow_ports=True) == "https://localhost/a"
    pointer = parse("$wallet.test:8443", allow_ports=True)
    assert pointer == "https://wallet.test:8443/.well-known/pay"
    for name in ("t", "http", "ttps"):
        assert parse(f"https://{name}/", allow_ports=True) == f"https://{name}/"
    for typed in ("localhost:/a", "localhost:99999/a", "localhost:0/a", "localhost:4x/a"):
        with pytest.raises(ValueError, match=r"port|host name"):
            parse(typed, allow_ports=True)


@given(hosts, paths)
def test_all_spellings_of_one_address_name_one_url(host: str, path: str) -> None:
    url = parse(f"https://{host}{path}", allow_ports=False)
    assert url == f"https://{host}{path or '/'}"
    assert parse(f" {host}{path} ", allow_ports=False) == url
    assert parse(f"HTTPS://{host.upper()}{path}", allow_ports=False) == url
    if path:
        assert parse(f"${host}{path}", allow_ports=False) == url
    assert parse(url, allow_ports=False) == url


@given(st.text(max_size=60), st.booleans())
def test_any_text_gives_a_signable_https_url_or_a_sentence(typed: str, allow_ports: bool) -> None:
    try:
        url = parse(typed, allow_ports=allow_ports)
    except ValueError as error:
        url, sentence = "", str(error)
    if url:
        assert url.startswith("https://")
        assert url.isascii()
        assert target_uri(url) == url
        assert parse(url, allow_ports=allow_ports) == url
    else:
        assert sentence[0].isupper()
        assert sentence.endswith(".")


def test_a_text_that_grows_beyond_the_limit_is_too_long() -> None:
    """One character of 18, when it is normalized, is in none of these patterns."""
    for text in ("ﷺ" * 200, "㎯" * 700, "a" * 2049):
        with pytest.raises(InvalidWalletAddress, match="too long"):
            parse(text, allow_ports=False)
