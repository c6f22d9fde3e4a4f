"""A merchant's key for customers' details opens for its merchant only, and is asked for once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from botocore.exceptions import EndpointConnectionError

from checkout import telemetry
from checkout.adapters.details_keys import KmsDetailsKeys
from checkout.adapters.vault import AesVault
from checkout.domain.ground.errors import Unavailable
from checkout.ports import SecretUnreadable
from tests.fakes.kms import KEY_ID, HandKms
from tests.support.basics import seeded

pytestmark = pytest.mark.untraced

KEY = "5a" * 32
PLACE = ("checkout_sessions", "cs_1", "customer_details")


def under(key: str) -> AesVault:
    return AesVault(lambda: key, seeded(), derive=bytes.fromhex)


@pytest.fixture
def kms() -> HandKms:
    return HandKms()


@pytest.fixture
def keys(kms: HandKms) -> KmsDetailsKeys:
    return KmsDetailsKeys(lambda: kms, KEY_ID, under)


def test_what_is_sealed_under_a_key_opens_under_its_wrapping(keys: KmsDetailsKeys) -> None:
    sealed = under(KEY).seal("Am Weg 1", place=PLACE)
    wrapped = keys.wrap(KEY, merchant="mer_1")
    assert KEY not in wrapped
    assert keys.vault(wrapped, merchant="mer_1").open(sealed, place=PLACE) == "Am Weg 1"


def test_kms_is_asked_once_for_each_merchant(kms: HandKms, keys: KmsDetailsKeys) -> None:
    wrapped = {each: keys.wrap(KEY, merchant=each) for each in ("mer_1", "mer_2")}
    kms.calls.clear()
    for _ in range(3):
        for merchant, text in wrapped.items():
            keys.vault(text, merchant=merchant)
    assert kms.calls == ["decrypt", "decrypt"]


def test_another_key_of_a_merchant_opens_beside_the_one_that_is_remembered(
    keys: KmsDetailsKeys,
) -> None:
    other = "a5" * 32
    sealed = under(other).seal("Am Weg 1", place=PLACE)
    before, after = (keys.wrap(each, merchant="mer_1") for each in (KEY, other))
    assert keys.key(before, merchant="mer_1") == KEY
    keys.vault(before, merchant="mer_1")
    assert keys.key(after, merchant="mer_1") == other
    assert keys.vault(after, merchant="mer_1").open(sealed, place=PLACE) == "Am Weg 1"


def test_the_purpose_and_the_merchant_are_in_the_encryption_context(kms: HandKms) -> None:
    asked: list[dict[str, str]] = []
    real = kms.encrypt

    def noted(**request: object) -> dict[str, object]:
        context = request["EncryptionContext"]
        assert isinstance(context, dict)
        asked.append(context)
        return real(**request)

    kms.encrypt = noted  # type: ignore[method-assign]
    KmsDetailsKeys(lambda: kms, KEY_ID, under).wrap(KEY, merchant="mer_1")
    assert asked == [{"merchant": "mer_1", "purpose": "customer-details"}]


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    counted: list[str] = []
    monkeypatch.setattr(telemetry, "count", counted.append)
    yield counted
    assert counted == ["SecretsUnreadable"]


def test_a_key_opens_for_no_other_merchant(keys: KmsDetailsKeys, unreadable: list[str]) -> None:
    wrapped = keys.wrap(KEY, merchant="mer_1")
    with pytest.raises(SecretUnreadable):
        keys.vault(wrapped, merchant="mer_2")


@pytest.mark.parametrize("damaged", ["", "AAAA", "no base64!", "ä"])
def test_a_damaged_key_is_counted_and_refused(
    keys: KmsDetailsKeys, unreadable: list[str], damaged: str
) -> None:
    with pytest.raises(SecretUnreadable):
        keys.vault(damaged, merchant="mer_1")


@pytest.mark.parametrize("code", ["KMSInvalidStateException", "ThrottlingException"])
def test_a_kms_that_does_not_answer_is_said_and_asked_again(
    kms: HandKms, keys: KmsDetailsKeys, code: str
) -> None:
    wrapped = keys.wrap(KEY, merchant="mer_1")
    kms.error = code
    with pytest.raises(Unavailable):
        keys.wrap(KEY, merchant="mer_1")
    with pytest.raises(Unavailable):
        keys.vault(wrapped, merchant="mer_1")
    kms.error = None
    assert keys.vault(wrapped, merchant="mer_1")


def test_no_connection_is_no_answer() -> None:
    def client() -> HandKms:
        raise EndpointConnectionError(endpoint_url="https://kms.example")

    keys = KmsDetailsKeys(client, KEY_ID, under)
    with pytest.raises(Unavailable):
        keys.vault("AAAA", merchant="mer_1")
