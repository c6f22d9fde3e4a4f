from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from checkout.adapters.vault import AesVault, derive, key_from_secrets_manager
from checkout.domain.errors import Unavailable
from tests.support import seeded

SECRET = "0123456789abcdef" * 4
PLACE = ("checkout_sessions", "cs_1", "grant")


def a_vault(secret: str = SECRET, seed: int = 1) -> AesVault:
    return AesVault(lambda: secret, seeded(seed))


@pytest.mark.parametrize("plain", ["", "x", "nötig 🫖", "a" * 10_000])
def test_what_was_sealed_opens_at_its_place(plain: str) -> None:
    vault = a_vault()
    assert vault.open(vault.seal(plain, place=PLACE), place=PLACE) == plain


def test_another_process_with_the_same_key_opens_it() -> None:
    sealed = a_vault().seal("secret", place=PLACE)
    assert a_vault(SECRET.upper(), seed=2).open(sealed, place=PLACE) == "secret"


@pytest.mark.parametrize(
    "place",
    [
        ("checkout_sessions", "cs_1", "token"),
        ("checkout_sessions", "cs_2", "grant"),
        ("merchants", "cs_1", "grant"),
        ("checkout_session", "scs_1", "grant"),
        ("checkout_sessions", "cs_1grant", ""),
        ("checkout_sessions", 'cs_1","grant', ""),
        ("checkout_sessions,cs_1", "grant", ""),
    ],
)
def test_a_ciphertext_opens_at_no_other_place(place: tuple[str, str, str]) -> None:
    vault = a_vault()
    sealed = vault.seal("secret", place=PLACE)
    with pytest.raises(ValueError, match="does not open at this place"):
        vault.open(sealed, place=place)


def test_every_changed_character_is_noticed() -> None:
    vault = a_vault()
    sealed = vault.seal("secret", place=PLACE)
    for index in range(len(sealed) - 1):  # the last one's spare bits are not part of the bytes
        changed = "B" if sealed[index] == "A" else "A"
        with pytest.raises(ValueError, match=r"sealed"):
            vault.open(sealed[:index] + changed + sealed[index + 1 :], place=PLACE)


@pytest.mark.parametrize(
    "sealed",
    ["", "v1", "v1.", "v1..", "v2.00000000.AAAA", "secret", "v1.{id}.", "v1.{id}.AAAA", "v1.{id}.ü",
     "v1.{id}.A", "v1.{id}.****"],
)  # fmt: skip
def test_what_was_never_sealed_is_refused_and_not_echoed(sealed: str) -> None:
    vault = a_vault()
    key_id = vault.seal("x", place=PLACE).split(".")[1]
    with pytest.raises(ValueError, match=r"the (sealed )?value") as refused:
        vault.open(sealed.replace("{id}", key_id), place=PLACE)
    assert str(refused.value) in (
        "the sealed value does not open at this place",
        "the value was sealed under another ENCRYPTION_KEY",
    )


def test_another_encryption_key_does_not_open_it_and_says_so() -> None:
    sealed = a_vault().seal("secret", place=PLACE)
    with pytest.raises(ValueError, match="another ENCRYPTION_KEY"):
        a_vault("ab" * 32).open(sealed, place=PLACE)


def test_the_same_plaintext_is_never_sealed_the_same_way_twice() -> None:
    vault = a_vault()
    sealed = [vault.seal("secret", place=PLACE) for _ in range(100)]
    assert len(set(sealed)) == 100
    assert all("secret" not in one for one in sealed)
    assert {one.rsplit(".", 1)[0] for one in sealed} == {sealed[0].rsplit(".", 1)[0]}
    assert all(one != other for one, other in pairwise(sealed))


def test_the_form_is_scrypt_then_aes_256_gcm_with_the_place_as_additional_data() -> None:
    """Done again with the library's primitives: what is stored today must open for ever."""
    data_key = Scrypt(salt=b"checkout-sessions/data-key/v1", length=32, n=2**14, r=8, p=1).derive(
        bytes.fromhex(SECRET)
    )
    assert derive(SECRET) == data_key
    nonce = seeded()(12)
    version, key_id, encoded = a_vault().seal("secret", place=PLACE).split(".")
    assert version == "v1"
    assert key_id == hashlib.sha256(data_key).hexdigest()[:8]
    raw = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    assert raw[:12] == nonce
    place = b'["checkout_sessions","cs_1","grant"]'
    assert AESGCM(data_key).decrypt(nonce, raw[12:], place) == b"secret"


def test_the_key_is_fetched_and_derived_once_per_process_and_not_before_it_is_needed() -> None:
    counts = {"fetched": 0, "derived": 0}

    def fetch() -> str:
        counts["fetched"] += 1
        return SECRET

    def counting(secret: str) -> bytes:
        counts["derived"] += 1
        return derive(secret)

    vault = AesVault(fetch, seeded(), derive=counting)
    assert counts == {"fetched": 0, "derived": 0}

    def use(number: int) -> str:
        return vault.open(vault.seal(str(number), place=PLACE), place=PLACE)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(use, range(50))) == [str(number) for number in range(50)]
    assert counts == {"fetched": 1, "derived": 1}


def test_a_key_that_could_not_be_had_is_asked_for_again() -> None:
    answers: list[Callable[[], str]] = [unavailable, lambda: SECRET]
    vault = AesVault(lambda: answers.pop(0)(), seeded())
    with pytest.raises(Unavailable):
        vault.seal("secret", place=PLACE)
    assert vault.open(vault.seal("secret", place=PLACE), place=PLACE) == "secret"


def unavailable() -> str:
    raise Unavailable("The key service is not answering.")


@pytest.mark.parametrize(
    "secret", ["", "hunter2", "ab" * 31, "ab" * 33, "zz" * 32, "ab" * 32 + "\n", "٣" * 64]
)
def test_a_key_of_another_form_is_refused_and_not_echoed(secret: str) -> None:
    with pytest.raises(ValueError, match="must be 64 hexadecimal characters") as refused:
        a_vault(secret).seal("x", place=PLACE)
    assert str(refused.value) == "ENCRYPTION_KEY must be 64 hexadecimal characters."


class Secrets:
    """A Secrets Manager client with one answer."""

    def __init__(self, answer: dict[str, Any] | Exception) -> None:
        self.answer = answer
        self.requests: list[dict[str, Any]] = []

    def get_secret_value(self, **request: Any) -> dict[str, Any]:
        self.requests.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_the_key_is_read_from_secrets_manager_when_it_is_needed() -> None:
    client = Secrets({"SecretString": SECRET})
    source = key_from_secrets_manager(client, "arn:aws:secretsmanager:secret")
    assert client.requests == []
    assert source() == SECRET
    assert client.requests == [{"SecretId": "arn:aws:secretsmanager:secret"}]


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "InternalServiceError"}}, "GetSecretValue"),
        EndpointConnectionError(endpoint_url="http://10.0.0.1"),
    ],
    ids=["client", "connection"],
)
def test_a_key_service_that_does_not_answer_is_unavailable(error: Exception) -> None:
    source = key_from_secrets_manager(Secrets(error), "secret")
    with pytest.raises(Unavailable) as unavailable:
        source()
    assert "10.0.0.1" not in str(unavailable.value)
