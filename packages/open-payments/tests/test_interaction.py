"""Test the interaction hash: each server generation's form, and nothing else."""

from __future__ import annotations

import base64
import hashlib
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from client_script import load
from hypothesis import given
from hypothesis import strategies as st

from open_payments.interaction import matches

VECTORS = load("vectors.json")["interaction_hash"]
GRANT = "https://auth.example/tenant"
CONTINUE = "https://auth.example/continue/1"


def _hash(endpoint: str, *, nonce: str = "ours", finish: str = "theirs", ref: str = "ref") -> bytes:
    return hashlib.sha256(f"{nonce}\n{finish}\n{ref}\n{endpoint}".encode()).digest()


def _match(presented: str, **changes: str) -> str | None:
    known = {"client_nonce": "ours", "finish_nonce": "theirs", "interact_ref": "ref"}
    known |= {"grant_url": GRANT, "continue_uri": CONTINUE}
    return matches(presented, **(known | changes))


def _std(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["source"][:24])
def test_all_recorded_hashes_are_recognised_in_both_encodings(vector: dict[str, Any]) -> None:
    in_callback = parse_qs(urlsplit(vector["callback_url_as_rafiki_sends"]).query)["hash"][0]
    for presented in (vector["hash_base64_std"], vector["hash_base64url_nopad"], in_callback):
        found = matches(
            presented,
            client_nonce=vector["client_nonce"],
            finish_nonce=vector["as_finish_nonce"],
            interact_ref=vector["interact_ref"],
            grant_url=vector["grant_endpoint"],
            continue_uri="",
        )
        assert found == "grant_url"


@pytest.mark.parametrize("name", ["cross-currency", "one-provider", "yen"])
def test_the_hash_of_a_running_provider_is_recognised_in_its_callback(name: str) -> None:
    recording = load("recordings.json")[name]
    seen = recording["hash"]
    query = parse_qs(urlsplit(recording["callback"]).query)
    pending = next(e for e in recording["exchanges"] if "interactive" in e["step"])["response"]
    found = matches(
        query["hash"][0],
        client_nonce=seen["clientNonce"],
        finish_nonce=pending["interact"]["finish"],
        interact_ref=query["interact_ref"][0],
        grant_url=seen["grantUrl"],
        continue_uri=pending["continue"]["uri"],
    )
    assert found == "grant_url"


@pytest.mark.parametrize(
    ("endpoint", "name"),
    [
        ("https://auth.example/tenant", "grant_url"),
        ("https://auth.example/tenant/", "grant_url_slash_toggled"),
        ("https://inside.example/", "server_root"),
        ("https://inside.example/tenant", "server_tenant"),
    ],
)
def test_trap_04_each_server_generations_hash_is_accepted_and_named(
    endpoint: str, name: str
) -> None:
    digest = _hash(endpoint)
    url_safe = base64.urlsafe_b64encode(digest).decode()
    forms = (_std(digest), _std(digest).rstrip("="), url_safe, url_safe.rstrip("="))
    for presented in (*forms, _std(digest).replace("+", " ")):
        assert _match(presented, continue_uri="https://inside.example/continue/1") == name


def test_a_grant_url_with_a_slash_is_also_tried_without() -> None:
    digest = _hash("https://auth.example")
    assert _match(_std(digest), grant_url="https://auth.example/") == "grant_url_slash_toggled"


def test_without_a_continue_path_only_the_grant_url_counts() -> None:
    digest = _hash("https://auth.example/")
    assert _match(_std(digest)) == "server_root"
    assert _match(_std(digest), continue_uri="https://auth.example/c/1") is None


@pytest.mark.parametrize(
    "changed",
    [
        {"client_nonce": "other"},
        {"finish_nonce": "other"},
        {"interact_ref": "other"},
        {"grant_url": "https://evil.example/tenant", "continue_uri": ""},
    ],
)
def test_a_hash_of_anything_else_matches_nothing(changed: dict[str, str]) -> None:
    presented = _std(_hash(GRANT))
    assert _match(presented) == "grant_url"
    assert _match(presented, **changed) is None


@pytest.mark.parametrize(
    "presented",
    ["", "=", "x", "é" * 43, "A" * 43 + "!", "A" * 42, "A" * 44, "A" * 500, "\x00" * 43],
)
def test_what_is_no_digest_matches_nothing(presented: str) -> None:
    assert _match(presented) is None


@pytest.mark.parametrize("ref", ["", "re\nf", "re\x00f", "é", "r" * 1025])
def test_a_reference_that_could_shift_the_lines_matches_nothing(ref: str) -> None:
    assert _match(_std(_hash(GRANT, ref=ref)), interact_ref=ref) is None


def test_unsigned_results_in_the_browser_hold_no_hash_to_match() -> None:
    seen = [case["body"] for case in load("answers.json") if case.get("seen_by") == "browser"]
    callbacks = [url for url in seen if isinstance(url, str) and url.startswith("https://")]
    assert len(callbacks) == 7
    for url in callbacks:
        query = parse_qs(urlsplit(url).query)
        assert "result" in query
        assert _match(query.get("hash", [""])[0]) is None


@given(
    presented=st.text(max_size=60) | st.binary(min_size=32, max_size=32).map(_std),
    ref=st.text(max_size=20),
)
def test_whatever_is_presented_matches_nothing(presented: str, ref: str) -> None:
    assert _match(presented, interact_ref=ref) is None  # 256 bits are not met by chance


@given(place=st.integers(0, 31), bit=st.integers(0, 7))
def test_a_hash_with_another_bit_matches_nothing(place: int, bit: int) -> None:
    digest = bytearray(_hash(GRANT))
    assert _match(_std(bytes(digest))) == "grant_url"
    digest[place] ^= 1 << bit
    assert _match(_std(bytes(digest))) is None
