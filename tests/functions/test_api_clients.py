"""The client documents that wallets read, from API Gateway's event to the answer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from checkout.domain.merchant import Merchant, ServiceKey
from tests.support.basics import NOW
from tests.support.merchant_api import Answer, MerchantApi
from tests.support.samples import a_key, a_merchant

MER = "mer_" + "1" * 22
FILE = "mer_" + "2" * 22
CLIENT, OF_FILE = "31" * 22, "32" * 22  # the ends of their URLs
KEYS = tuple(
    ServiceKey(key_id=f"kid-{n}", x=f"x{n}", private_key="v1.00000000.c2VjcmV0", signs_from=NOW)
    for n in (1, 2)
)


@pytest.fixture
def api() -> MerchantApi:
    made = MerchantApi()
    url = f"https://pay.example/clients/{CLIENT}"
    add(made, a_merchant(id=MER, name="Harbor <Coffee>", client=url, service_keys=KEYS))
    add(made, a_merchant(id=FILE))
    made.dynamo.calls.clear()
    return made


def add(api: MerchantApi, merchant: Merchant) -> None:
    merchant = replace(merchant, wallet_address=f"https://wallet.example/{merchant.id}")
    key = a_key(id=merchant.id, hash=merchant.id, merchant=merchant.id)
    assert api.services.merchants.add(merchant, key) is None


def read(api: MerchantApi, path: str, method: str = "GET", **headers: str) -> Answer:
    return api.send(method, path, headers=headers)


def test_the_document_has_all_six_fields_and_our_own_address(api: MerchantApi) -> None:
    answer = read(api, f"/clients/{CLIENT}", accept="application/json")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json == {
        "id": f"https://pay.example/clients/{CLIENT}",
        "publicName": "Harbor <Coffee>",
        "assetCode": "USD",
        "assetScale": 2,
        "authServer": a_merchant().auth_server,
        "resourceServer": a_merchant().resource_server,
    }


def test_the_keys_are_public_halves_only(api: MerchantApi) -> None:
    answer = read(api, f"/clients/{CLIENT}/jwks.json")
    okp = {"alg": "EdDSA", "kty": "OKP", "crv": "Ed25519"}
    assert answer.json == {
        "keys": [{"kid": "kid-1", **okp, "x": "x1"}, {"kid": "kid-2", **okp, "x": "x2"}]
    }
    assert "c2VjcmV0" not in answer.body


def test_both_may_be_kept_for_a_minute_and_need_no_key(api: MerchantApi) -> None:
    for path in (f"/clients/{CLIENT}", f"/clients/{CLIENT}/jwks.json"):
        answer = read(api, path)
        assert answer.headers["cache-control"] == "public, max-age=60"
        assert "set-cookie" not in answer.headers


def test_eleven_reads_of_the_keys_cost_one_call_to_the_database(api: MerchantApi) -> None:
    for _ in range(11):
        assert read(api, f"/clients/{CLIENT}/jwks.json").status == 200
    assert read(api, f"/clients/{CLIENT}").status == 200
    assert list(api.dynamo.calls.elements()) == ["get_item"]
    api.clock.pass_time(61)
    assert read(api, f"/clients/{CLIENT}").status == 200
    assert list(api.dynamo.calls.elements()) == ["get_item", "get_item"]


@pytest.mark.parametrize(
    "accept", ["application/json", "application/*", "text/html, */*;q=0.8", ""]
)
def test_a_reader_that_takes_json_gets_it(api: MerchantApi, accept: str) -> None:
    assert read(api, f"/clients/{CLIENT}", accept=accept).status == 200


@pytest.mark.parametrize("path", ["", "/jwks.json"])
def test_a_reader_that_takes_no_json_is_refused_as_wallets_do(api: MerchantApi, path: str) -> None:
    answer = read(api, f"/clients/{CLIENT}{path}", accept="text/html")
    assert answer.status == 406
    assert answer.headers["cache-control"] == "no-store"


# tests/attacks/test_client_documents.py has more.
@pytest.mark.parametrize("name", [OF_FILE, "33" * 22, FILE, "é"])
@pytest.mark.parametrize("rest", ["", "/jwks.json"])
def test_who_has_no_client_document_is_one_404_that_is_not_kept(
    api: MerchantApi, name: str, rest: str
) -> None:
    answer = read(api, f"/clients/{name}{rest}")
    assert (answer.status, answer.code) == (404, "resource_missing")
    assert answer.headers["cache-control"] == "no-store"
    said: dict[str, Any] = json.loads(answer.body)["error"]
    assert name not in said["message"]


def test_a_head_request_has_the_headers_of_a_get(api: MerchantApi) -> None:
    answer = read(api, f"/clients/{CLIENT}/jwks.json", "HEAD")
    assert (answer.status, answer.headers["cache-control"]) == (200, "public, max-age=60")
