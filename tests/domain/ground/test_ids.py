from __future__ import annotations

import hashlib
import re
from functools import partial

import pytest

from checkout.domain.ground import ids
from tests.support.basics import seeded


@pytest.mark.parametrize(
    ("make", "form"),
    [
        (ids.new_session_id, r"cs_[0-9A-Za-z]{22}"),
        (ids.new_merchant_id, r"mer_[0-9A-Za-z]{22}"),
        (ids.new_event_id, r"evt_[0-9A-Za-z]{22}"),
        (ids.new_key_id, r"key_[0-9A-Za-z]{22}"),
        (ids.new_request_id, r"req_[0-9A-Za-z]{22}"),
        (ids.new_api_key, r"sk_live_[0-9A-Za-z]{43}"),
        (partial(ids.new_session_id, test=True), r"cs_test_[0-9A-Za-z]{22}"),
        (partial(ids.new_api_key, test=True), r"sk_test_[0-9A-Za-z]{43}"),
        (ids.new_nonce, r"[0-9A-Za-z]{22}"),
    ],
)
def test_an_identifier_has_its_prefix_and_never_repeats(make: object, form: str) -> None:
    assert callable(make)
    random_bytes = seeded()
    made = {make(random_bytes) for _ in range(200)}
    assert len(made) == 200
    assert all(re.fullmatch(form, one) for one in made)


def test_every_digit_is_as_likely_as_any_other() -> None:
    random_bytes = seeded()
    text = "".join(ids.new_nonce(random_bytes) for _ in range(4_000))
    counts = [text.count(digit) for digit in set(text)]
    assert len(counts) == 62
    assert max(counts) - min(counts) < 0.2 * len(text) / 62


def test_a_key_is_stored_as_its_sha256() -> None:
    assert ids.api_key_hash("sk_x") == hashlib.sha256(b"sk_x").hexdigest()
    assert len(ids.api_key_hash("\ud800")) == 64
