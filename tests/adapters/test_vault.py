from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock, call

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from checkout import telemetry
from checkout.adapters.vault import (
    REFRESH,
    UNKNOWN_PAUSE,
    AesVault,
    derive,
    key_from_secrets_manager,
)
from checkout.domain.ground.errors import Unavailable
from checkout.ports import SecretUnreadable
from tests.support.basics import HandClock, seeded

pytestmark = pytest.mark.untraced

SECRET = "0123456789abcdef" * 4
NEXT = "fedcba9876543210" * 4
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
    fetch, counting = Mock(return_value=SECRET), Mock(side_effect=derive)
    vault = AesVault(fetch, seeded(), derive=counting)
    assert (fetch.call_count, counting.call_count) == (0, 0)

    def use(number: int) -> str:
        return vault.open(vault.seal(str(number), place=PLACE), place=PLACE)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(use, range(50))) == [str(number) for number in range(50)]
    assert (fetch.call_count, counting.call_count) == (1, 1)


def test_a_key_that_could_not_be_had_is_counted_and_asked_for_again(
    told: Callable[[], list[dict[str, Any]]],
) -> None:
    telemetry.start("pay")
    vault = AesVault(Mock(side_effect=[Unavailable("no answer"), SECRET]), seeded())
    with pytest.raises(Unavailable):
        vault.seal("secret", place=PLACE)
    assert vault.open(vault.seal("secret", place=PLACE), place=PLACE) == "secret"
    telemetry.observed(lambda event, context: None)(None, None)
    assert [line["KeyUnreadable"] for line in told()] == [[1]]


@pytest.mark.parametrize(
    "secret",
    [
        *("", "hunter2", "ab" * 31, "ab" * 33, "zz" * 32, "ab" * 32 + "\n", "٣" * 64),
        *(f"{SECRET},", f"{SECRET},hunter2", f"{SECRET} {NEXT}", f"{SECRET},{NEXT},{'ab' * 32}"),
    ],
)
def test_a_key_of_another_form_is_a_key_that_cannot_be_had_and_is_not_echoed(secret: str) -> None:
    sealed = a_vault().seal("x", place=PLACE)
    for use in (a_vault(secret).seal, lambda _, place: a_vault(secret).open(sealed, place=place)):
        with pytest.raises(Unavailable, match="must be 64 hexadecimal characters") as refused:
            use("x", place=PLACE)
        assert "hunter2" not in str(refused.value)
        assert SECRET not in str(refused.value)


# --- rotation ---


class Source:
    """ENCRYPTION_KEY as the operator keeps changing it, in a process with a hand-moved clock."""

    def __init__(self, text: str = SECRET) -> None:
        self.text = text
        self.asked = 0
        self.failing = False
        self.clock = HandClock()
        self.vault = AesVault(self, seeded(), clock=self.clock)

    def __call__(self) -> str:
        self.asked += 1
        if self.failing:
            raise Unavailable("The key service is not answering.")
        return self.text


def key_id(sealed: str) -> str:
    return sealed.split(".")[1]


def test_of_two_keys_the_first_seals_and_both_open() -> None:
    old = a_vault(SECRET).seal("old", place=PLACE)
    both = a_vault(f"{NEXT},{SECRET}")
    new = both.seal("new", place=PLACE)
    assert (both.open(old, place=PLACE), both.open(new, place=PLACE)) == ("old", "new")
    assert a_vault(NEXT).open(new, place=PLACE) == "new"
    assert both.is_current(new)
    assert not both.is_current(old)


def test_an_old_key_is_derived_only_when_something_of_it_is_opened() -> None:
    noting = Mock(side_effect=derive)
    old = a_vault(SECRET).seal("old", place=PLACE)
    both = AesVault(lambda: f"{NEXT},{SECRET}", seeded(), derive=noting)
    both.open(both.seal("new", place=PLACE), place=PLACE)
    assert noting.call_args_list == [call(NEXT)]
    for _ in range(3):
        both.open(old, place=PLACE)
    assert noting.call_args_list == [call(NEXT), call(SECRET)]


def test_a_process_learns_of_a_new_key_by_the_first_ciphertext_of_it() -> None:
    source = Source()
    running = source.vault
    before = running.seal("before", place=PLACE)
    source.text = f"{NEXT},{SECRET}"
    others = a_vault(source.text).seal("from another process", place=PLACE)
    assert running.open(others, place=PLACE) == "from another process"
    assert running.open(before, place=PLACE) == "before"
    assert key_id(running.seal("after", place=PLACE)) == key_id(others)
    assert source.asked == 2


def test_a_process_that_meets_no_such_ciphertext_uses_the_new_key_within_minutes() -> None:
    source = Source()
    running, clock = source.vault, source.clock
    old = key_id(running.seal("x", place=PLACE))
    source.text = f"{NEXT},{SECRET}"
    clock.pass_time(REFRESH.total_seconds() - 1)
    assert key_id(running.seal("x", place=PLACE)) == old
    clock.pass_time(1)
    assert key_id(running.seal("x", place=PLACE)) != old


def test_the_keys_are_asked_for_a_bounded_number_of_times_however_often_they_are_used() -> None:
    source = Source()
    running, clock = source.vault, source.clock
    derived_before = running.seal("x", place=PLACE)
    for _ in range(3600):
        assert running.open(derived_before, place=PLACE) == "x"
        clock.pass_time(1)
    assert source.asked == 3600 / REFRESH.total_seconds()


def test_ciphertexts_of_a_key_that_nobody_has_cannot_make_it_ask_without_end() -> None:
    source = Source()
    running, clock = source.vault, source.clock
    foreign = a_vault(NEXT).seal("x", place=PLACE)
    running.seal("x", place=PLACE)
    for _ in range(60):
        with pytest.raises(ValueError, match="another ENCRYPTION_KEY"):
            running.open(foreign, place=PLACE)
        clock.pass_time(1)
    assert source.asked == 1 + 60 / UNKNOWN_PAUSE.total_seconds()


@pytest.mark.parametrize("mistake", ["failing", "hunter2"])
def test_what_is_known_stays_in_use_while_the_key_cannot_be_read_again(mistake: str) -> None:
    source = Source()
    running, clock = source.vault, source.clock
    sealed = running.seal("x", place=PLACE)
    source.text, source.failing = (SECRET, True) if mistake == "failing" else (mistake, False)
    clock.pass_time(REFRESH.total_seconds())
    assert running.open(sealed, place=PLACE) == "x"
    assert running.open(running.seal("y", place=PLACE), place=PLACE) == "y"
    assert source.asked == 2


def test_a_key_that_was_taken_away_opens_no_more() -> None:
    source = Source(f"{NEXT},{SECRET}")
    running, clock = source.vault, source.clock
    old = a_vault(SECRET).seal("old", place=PLACE)
    assert running.open(old, place=PLACE) == "old"
    source.text = NEXT
    clock.pass_time(REFRESH.total_seconds())
    with pytest.raises(ValueError, match="another ENCRYPTION_KEY"):
        running.open(old, place=PLACE)


def test_the_key_is_read_from_secrets_manager_when_it_is_needed() -> None:
    client = Mock()
    client.get_secret_value.return_value = {"SecretString": SECRET}
    source = key_from_secrets_manager(client, "arn:aws:secretsmanager:secret")
    client.get_secret_value.assert_not_called()
    assert source() == SECRET
    client.get_secret_value.assert_called_once_with(SecretId="arn:aws:secretsmanager:secret")


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "InternalServiceError"}}, "GetSecretValue"),
        EndpointConnectionError(endpoint_url="http://10.0.0.1"),
    ],
    ids=["client", "connection"],
)
def test_a_key_service_that_does_not_answer_is_unavailable(error: Exception) -> None:
    client = Mock(**{"get_secret_value.side_effect": error})
    source = key_from_secrets_manager(client, "secret")
    with pytest.raises(Unavailable) as unavailable:
        source()
    assert "10.0.0.1" not in str(unavailable.value)


def test_a_vault_within_seals_under_its_own_key_and_derives_nothing() -> None:
    outer = a_vault(SECRET)
    inner = outer.inner(NEXT)
    sealed = inner.seal("plain", place=PLACE)
    assert outer.inner(NEXT).open(sealed, place=PLACE) == "plain"
    for other in (outer, outer.inner(SECRET), a_vault(NEXT)):
        with pytest.raises(SecretUnreadable):
            other.open(sealed, place=PLACE)
