"""The verifier accepts and rejects the same signatures as the reference implementation."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from open_payments.transports import Request
from sandbox.wallets import javascript, verifier
from tests.support.wallet_client import KEY, compact, jwk, signed

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "data" / "signature_vectors.json").read_text("utf-8")
)
JWK = VECTORS["key"]["jwk"]
PRIVATE_KEY = load_pem_private_key(VECTORS["key"]["private_key_pkcs8_pem"].encode(), None)
*NEGATIVE, MATRIX = VECTORS["negative_and_acceptance"]
URL = "https://wallet.example/t/quotes"


def check(method: str, url: str, headers: dict[str, str], body: str | None) -> bool:
    lowered = {name.lower(): value for name, value in headers.items()}
    parsed = None if body is None else javascript.parse(body.encode())
    return verifier.verify(method, url, lowered, parsed, JWK)


@pytest.mark.parametrize("vector", VECTORS["positive"], ids=lambda vector: vector["name"])
def test_every_request_of_the_reference_client_verifies(vector: dict[str, Any]) -> None:
    request = vector["request"]
    headers = request["headers"] | vector["expected_headers"]
    assert check(request["method"], request["url"], headers, request["body_utf8"])


@pytest.mark.parametrize("vector", NEGATIVE, ids=lambda vector: vector["name"])
def test_every_recorded_mistake_is_refused(vector: dict[str, Any]) -> None:
    request = vector["request"]
    url = vector.get("server_url", request.get("url"))
    assert not check(request["method"], url, request["headers"], request["body_utf8"])


def test_the_recorded_mistakes_are_mistakes_of_form_and_not_of_the_key() -> None:
    spaced = NEGATIVE[0]["request"]
    raw = hashlib.sha512(spaced["body_utf8"].encode()).digest()
    assert base64.b64encode(raw).decode() in spaced["headers"]["Content-Digest"]


@pytest.mark.parametrize("name", MATRIX["cases"])
def test_the_acceptance_matrix_is_the_references(name: str) -> None:
    case = MATRIX["cases"][name]
    body = b'{"interact_ref":"ad82597c-bbfa-4eb0-b72e-328e005b8689"}'
    algorithm = case.get("content_digest", "sha-512").split("=")[0]
    digest = hashlib.new(algorithm.replace("-", ""), body).digest()
    headers = {
        "authorization": "GNAP 33OMUKMKSKU80UPRY5NM",
        "content-digest": f"{algorithm}=:{base64.b64encode(digest).decode()}:",
        "content-length": str(len(body)),
        "content-type": "application/json",
    }
    if name.endswith("_header_missing"):
        del headers["content-length" if "length" in name else "content-type"]
    label, _, parameters = case["signature_input"].partition("=")
    # A list of two signatures: ours is the first.
    parameters = parameters.split(", other=")[0]
    components = parameters.split(")")[0].strip("(").replace('"', "").split()
    values = {"@method": "POST", "@target-uri": URL, **headers}
    lines = [f'"{each}": {values[each.lower()]}' for each in components]
    base = "\n".join([*lines, f'"@signature-params": {parameters}'])
    assert isinstance(PRIVATE_KEY, Ed25519PrivateKey)
    signature = base64.b64encode(PRIVATE_KEY.sign(base.encode())).decode()
    headers["signature-input"] = case["signature_input"]
    headers["signature"] = f"{label}=:{signature}:"
    assert check("POST", URL, headers, body.decode()) is case["accepted"]


def accepts(request: Request, url: str = URL) -> bool:
    body = None if request.body is None else javascript.parse(request.body)
    return verifier.verify(request.method, url, request.headers, body, jwk())


def test_a_signature_is_bound_to_method_url_token_and_body() -> None:
    good = signed("POST", URL, b'{"a":"b"}', "TOKEN")
    assert accepts(good)
    assert not accepts(Request("PUT", good.url, good.headers, good.body))
    assert not accepts(good, url=URL + "?x=1")
    stolen = {**good.headers, "authorization": "GNAP OTHER"}
    assert not accepts(Request("POST", URL, stolen, good.body))
    assert not accepts(Request("POST", URL, good.headers, b'{"a":"c"}'))
    assert not accepts(Request("POST", URL, good.headers, None))


@pytest.mark.parametrize("header", ["signature", "signature-input"])
@pytest.mark.parametrize("value", ["", "sig1", "sig1=", "sig1=()", "sig1=::", "sig1=:!:", "x"])
def test_a_malformed_header_is_refused_and_never_an_error(header: str, value: str) -> None:
    good = signed("POST", URL, b"{}", "TOKEN")
    assert not accepts(Request("POST", URL, {**good.headers, header: value}, good.body))


def test_a_key_that_is_no_key_is_refused() -> None:
    good = signed("GET", URL, key=KEY)
    assert not verifier.verify("GET", URL, good.headers, None, {**jwk(), "x": "AAAA"})


def test_a_body_with_escaped_letters_is_digested_as_javascript_writes_it() -> None:
    escaped = b'{"d":"Caf\\u00e9"}'
    assert not accepts(signed("POST", URL, escaped))
    assert accepts(signed("POST", URL, escaped, digested=compact({"d": "Café"})))
