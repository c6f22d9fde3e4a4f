"""Test signatures: the reference client's, byte for byte, and an independent verifier's verdict."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from client_script import header, identity, load
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from http_message_signatures import (
    HTTPMessageVerifier,
    HTTPSignatureKeyResolver,
    InvalidSignature,
    algorithms,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from open_payments.models import ClientIdentity
from open_payments.signatures import canonical, content_digest, load_private_key, public_x, sign
from open_payments.transports import Request

VECTORS = load("vectors.json")
KEY = VECTORS["key"]
CREATED = VECTORS["created"]


def _request(vector: dict[str, Any]) -> Request:
    body = vector.get("body_utf8")
    return Request(
        vector["method"],
        vector["url"],
        vector["headers"],
        None if body is None else canonical(json.loads(body)),
    )


NEGATIVE = {case["name"]: case for case in VECTORS["negative_and_acceptance"]}


def _signed(
    method: str = "GET", path: str = "/", body: bytes | None = None, **headers: str
) -> Request:
    request = Request(method, f"https://a.example{path}", headers, body)
    return sign(request, identity(), created=CREATED)


@pytest.mark.parametrize("vector", VECTORS["positive"], ids=lambda vector: vector["name"])
def test_the_reference_clients_signature_is_reproduced_byte_for_byte(
    vector: dict[str, Any],
) -> None:
    given = _request(vector["request"])
    signed = sign(given, identity(), created=CREATED)
    assert signed.headers == vector["request"]["headers"] | vector["expected_headers"]
    assert (signed.method, signed.url, signed.body) == (given.method, given.url, given.body)
    assert _verifies(signed)  # an independent implementation of RFC 9421


def test_trap_01_a_body_printed_the_python_way_is_not_what_we_sign() -> None:
    for name in ("python_default_json_dumps_spaces", "python_ensure_ascii_escapes"):
        request = NEGATIVE[name]["request"]
        assert NEGATIVE[name]["rafiki_style_result"] is False
        bare = {"Authorization": request["headers"]["Authorization"]}
        ours = sign(_request(request | {"headers": bare}), identity(), created=CREATED)
        assert header(ours, "Content-Digest") != request["headers"]["Content-Digest"]
        assert ours.body == canonical(json.loads(request["body_utf8"]))


def test_trap_02_the_signature_is_labelled_sig1() -> None:
    signed = _signed()
    assert header(signed, "Signature").startswith("sig1=:")
    assert header(signed, "Signature-Input").startswith('sig1=("@method" "@target-uri");keyid="')


def test_trap_03_the_url_sent_is_the_url_signed() -> None:
    case = NEGATIVE["target_uri_without_root_slash"]
    request = case["request"] | {"url": case["signed_url"], "headers": {}}
    signed = sign(_request(request), identity(), created=CREATED)
    assert signed.url == case["server_url"]
    assert header(signed, "Signature") != case["request"]["headers"]["Signature"]
    assert _verifies(signed)


def test_only_the_accepted_form_of_the_acceptance_matrix_is_ever_made() -> None:
    reference = NEGATIVE["acceptance_matrix"]["cases"]["node_order"]
    assert reference["accepted"] is True
    signed = _signed("POST", "/", b"{}", Authorization="GNAP t")
    assert header(signed, "Signature-Input") == reference["signature_input"]


def test_authorization_is_covered_however_its_name_is_written() -> None:
    one, two = _signed(authorization="GNAP t"), _signed(AUTHORIZATION="GNAP t")
    assert '"authorization"' in header(one, "Signature-Input")
    assert header(one, "Signature") == header(two, "Signature")


def test_a_request_without_body_carries_no_digest_and_no_length() -> None:
    signed = _signed("POST", "/complete")
    assert set(signed.headers) == {"Signature", "Signature-Input"}


@pytest.mark.parametrize("key_id", ["", "a;b", 'a"b', "a b", "a\\b", "é", "a\n", "a" * 257])
def test_a_key_id_that_servers_cannot_parse_is_refused(key_id: str) -> None:
    odd = ClientIdentity("https://shop.example/", key_id, identity().private_key)
    with pytest.raises(ValueError, match="key id"):
        sign(Request("GET", "https://a.example/", {}), odd, created=1)


def test_the_digest_is_sha_512_of_the_bytes_sent() -> None:
    digest = base64.b64encode(hashlib.sha512(b"{}").digest()).decode()
    assert content_digest(b"{}") == f"sha-512=:{digest}:"


# An independent implementation of RFC 9421.


class _Keys(HTTPSignatureKeyResolver):
    def resolve_public_key(self, key_id: str) -> Ed25519PublicKey:
        assert key_id == KEY["keyId"]
        return Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(KEY["jwk"]["x"] + "="))


def _verifies(request: Request) -> bool:
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=_Keys())
    message = SimpleNamespace(method=request.method, url=request.url, body=request.body)
    message.headers = dict(request.headers)
    results = verifier.verify(message, max_age=timedelta(days=36500))
    return len(results) == 1


def test_an_independent_verifier_rejects_what_was_changed_afterwards() -> None:
    signed = sign(_request(VECTORS["positive"][2]["request"]), identity(), created=CREATED)
    stolen = {**signed.headers, "Authorization": "GNAP other"}
    for changed in ({"url": f"{signed.url}0"}, {"headers": stolen}):
        with pytest.raises(InvalidSignature):
            _verifies(replace(signed, **changed))


@settings(max_examples=30)
@given(
    st.binary(min_size=1, max_size=60).map(lambda raw: b'{"a":"' + raw.hex().encode() + b'"}'),
    st.from_regex(
        r"/[a-z0-9/._~-]{0,12}(\?([a-z0-9=&-]|%[0-9A-F]{2}){0,8})?", fullmatch=True
    ).filter(
        lambda path: not {".", ".."} & set(path.partition("?")[0].split("/"))
    ),  # dot segments are refused
    st.text("abcXYZ019/=+-_.", min_size=1, max_size=12),
    st.sampled_from(["method", "url", "authorization", "digest", "length", "type"]),
)
def test_no_part_of_what_was_signed_can_be_changed(
    body: bytes, path: str, token: str, part: str
) -> None:
    signed = _signed("POST", path, body, Authorization=f"GNAP {token}")
    assert _verifies(signed)
    assert signed.headers["Content-Digest"] == content_digest(body)
    headers = dict(signed.headers)
    other = {
        "authorization": {"Authorization": f"GNAP {token}x"},
        "digest": {"Content-Digest": content_digest(body + b" ")},
        "length": {"Content-Length": str(len(body) + 1)},
        "type": {"Content-Type": "text/plain"},
    }
    changed = {
        "method": lambda: replace(signed, method="PUT"),
        "url": lambda: replace(signed, url=f"{signed.url}x"),
    }.get(part, lambda: replace(signed, headers=headers | other[part]))()
    with pytest.raises(InvalidSignature):
        _verifies(changed)


# Keys.

OTHER, PUBLIC = Ed25519PrivateKey.generate(), PublicFormat.SubjectPublicKeyInfo


def _pem(key: Any, encryption: Any = None) -> str:
    encryption = encryption or NoEncryption()
    text: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    return text.decode()


def test_a_key_is_read_from_pem_and_from_base64_of_pem() -> None:
    pem = KEY["private_key_pkcs8_pem"]
    seed = bytes.fromhex(KEY["seed_hex"])
    encoded = base64.b64encode(pem.encode()).decode()
    folded = "\n".join(encoded[at : at + 60] for at in range(0, len(encoded), 60)) + "\n"
    for text in (pem, f"\n {pem}\n", pem.replace("\n", "\r\n"), encoded, folded):
        assert load_private_key(text) == seed


def test_the_public_half_is_the_x_of_the_registered_key() -> None:
    assert public_x(bytes.fromhex(KEY["seed_hex"])) == KEY["jwk"]["x"]


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("", "not a PEM file"),
        ("nonsense-secret", "not a PEM file"),
        (base64.b64encode(b"\xff\xfe-secret").decode(), "not a PEM file"),
        (base64.b64encode(b"something else").decode(), "not a PEM file"),
        ("-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----", "convert it"),
        (_pem(OTHER, BestAvailableEncryption(b"secret")), "protected by a passphrase"),
        (_pem(generate_private_key(SECP256R1())), "not an Ed25519 key"),
        (OTHER.public_key().public_bytes(Encoding.PEM, PUBLIC).decode(), "the public key"),
    ],
    ids=["empty", "text", "binary", "base64", "broken", "encrypted", "curve", "public"],
)
def test_a_text_that_is_no_usable_key_is_refused_with_advice_and_without_its_content(
    text: str, advice: str
) -> None:
    with pytest.raises(ValueError, match=advice) as caught:
        load_private_key(text)
    assert caught.value.__cause__ is None
    for line in text.split():
        if len(line) > 12 and "-" not in line:
            assert line not in str(caught.value)


NONE_ALONE = {
    "two keys": _pem(OTHER) + _pem(OTHER),
    "two in base64": base64.b64encode((_pem(OTHER) * 2).encode()).decode(),
    "zeros": _pem(Ed25519PrivateKey.from_private_bytes(bytes(32))),
    "one byte": _pem(Ed25519PrivateKey.from_private_bytes(b"\x07" * 32)),
}


@pytest.mark.parametrize("case", NONE_ALONE)
def test_a_file_with_two_keys_or_with_one_byte_repeated_is_refused(case: str) -> None:
    with pytest.raises(ValueError, match=r"more than one key|one byte repeated"):
        load_private_key(NONE_ALONE[case])


def test_no_key_and_no_token_shows_in_a_repr() -> None:
    assert "hidden" not in repr(_signed(Authorization="GNAP hidden"))
    assert repr(identity().private_key) not in repr(identity())
