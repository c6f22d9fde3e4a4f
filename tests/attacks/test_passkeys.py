"""Passkeys: answers of browsers and devices that were forged, changed, replayed or made up.

Each begins as a right answer to a fresh challenge, so that only what was changed can refuse it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import cbor2
import pytest

from tests.support import services
from tests.support.attack_counts import Attack
from tests.support.authenticator import Authenticator, b64, unb64
from tests.support.dashboard_pages import BASE, Dashboard, dashboard
from tests.support.merchant_api import PREFIX

pytestmark = pytest.mark.untraced

Answered = dict[str, Any]
Change = Callable[[Answered], object]


@contextmanager
def unlimited() -> Iterator[Dashboard]:
    """Without limits by client: each attack is to be refused for what it is."""
    with dashboard() as found:
        limits = services.limits(found.services.clock, found.dynamo, PREFIX, 0)
        found.services = replace(found.services, limits=limits)
        yield found


@pytest.fixture
def shop() -> Iterator[Dashboard]:
    with unlimited() as found:
        yield found


def flipped(place: int) -> Callable[[bytes], bytes]:
    """Return a function that changes one bit."""

    def apply(raw: bytes) -> bytes:
        at = place % len(raw)
        return raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]

    return apply


def without(flag: int) -> Callable[[bytes], bytes]:
    """Return a function that takes a flag out of an authenticator's data."""
    return lambda raw: raw[:32] + bytes([raw[32] & ~flag & 0xFF]) + raw[33:]


def part(name: str, change: Callable[[bytes], bytes]) -> Change:
    """Change the bytes of a part of the response."""

    def apply(answer: Answered) -> None:
        answer["response"][name] = b64(change(unb64(answer["response"][name])))

    return apply


def said(**values: Any) -> Change:
    """Change what the browser says that it did."""
    return part("clientDataJSON", lambda raw: json.dumps({**json.loads(raw), **values}).encode())


def put(where: str, name: str, value: Any) -> Change:
    def apply(answer: Answered) -> None:
        (answer["response"] if where else answer)[name] = value

    return apply


JUNK: tuple[Any, ...] = (
    None,
    0,
    [],
    {},
    "",
    "x",
    "=",
    "é",
    "\x00",
    "A" * 100_000,
    {"a": {"a": {"a": []}}},
)
ORIGINS = (
    "http://pay.example",
    "https://pay.example:444",
    "https://pay.example.evil.example",
    "https://evil.example",
    "https://sub.pay.example",
    "https://pay.example/",
    "HTTPS://PAY.EXAMPLE",
    "null",
    "",
    "android:apk-key-hash:x",
)
OF_BOTH: dict[str, Change] = {
    **{f"origin {each}": said(origin=each) for each in ORIGINS},
    **{f"challenge {n}": said(challenge=b64(bytes([n]) * 32)) for n in range(4)},
    **{f"{n} for clientDataJSON": put("r", "clientDataJSON", junk) for n, junk in enumerate(JUNK)},
    **{f"{n} for id": put("", "id", junk) for n, junk in enumerate(JUNK)},
    **{f"{n} for rawId": put("", "rawId", junk) for n, junk in enumerate(JUNK)},
    **{f"{n} for type": put("", "type", junk) for n, junk in enumerate(JUNK)},
    **{f"{n} for response": put("", "response", junk) for n, junk in enumerate(JUNK)},
    "no type": said(type=None),
    "no challenge": said(challenge=None),
    "in a frame of another site": said(crossOrigin=True),
    "perhaps in a frame of another site": said(crossOrigin="false"),
    "a list": part("clientDataJSON", lambda raw: b"[]"),
    "no JSON": part("clientDataJSON", lambda raw: b"\xff\xfe"),
}


def test_no_forged_answer_signs_in(shop: Dashboard, attack: Attack) -> None:
    device = Authenticator(BASE)
    assert shop.browser().join(shop.invited(), device).status == 303
    other = Authenticator(BASE, credential=b"o" * 32)
    assert shop.browser().join(shop.invited(name="Bo"), other).status == 303

    def attempt(change: Change) -> None:
        browser = shop.browser()
        browser.get("/sign-in")
        answer = json.loads(device.get(json.loads(browser.post("/sign-in/options").body)))
        change(answer)
        given = browser.post("/sign-in/passkey", {"credential": json.dumps(answer)})
        assert attack.answered(given.status) == 401
        assert browser.get().status == 303, "nobody is signed in"

    parts = ("authenticatorData", "signature")
    cases = OF_BOTH | {
        **{
            f"{name}, bit at {place}": part(name, flipped(place))
            for name in parts
            for place in range(0, 72, 3)
        },
        "nobody there": part("authenticatorData", without(0x01)),
        "not verified": part("authenticatorData", without(0x04)),
        **{
            f"{n} for {name}": put("r", name, junk)
            for name in (*parts, "userHandle")
            for n, junk in enumerate(JUNK)
        },
        "a registration's": said(type="webauthn.create"),
        "another member's handle": put("r", "userHandle", b64(other.user)),
        "a key's handle": put("r", "userHandle", b64(shop.key.id.encode())),
        "a handle with a row's prefix": put("r", "userHandle", b64(b"member#" + device.user)),
        "another member's key": put("", "rawId", b64(other.credential)),
        "no data": part("authenticatorData", lambda raw: b""),
        "short data": part("authenticatorData", lambda raw: raw[:36]),
        "longer data": part("authenticatorData", lambda raw: raw + b"\x00"),
        "no signature": part("signature", lambda raw: b""),
    }
    attack.each(cases, attempt)
    assert shop.browser().use(device).status == 303, "the right one still does"


@pytest.mark.parametrize("length", [0, 1024, 5000])
def test_a_passkey_with_an_id_of_no_length_that_there_is_makes_no_member(
    shop: Dashboard, length: int
) -> None:
    device = Authenticator(BASE, credential=b"c" * length)
    assert shop.browser().join(shop.invited(), device).status == 400
    assert not shop.services.people.members_of("mer_1")


def test_no_forged_answer_makes_a_member(shop: Dashboard, attack: Attack) -> None:
    link = shop.invited()
    path = link.removeprefix(f"{BASE}/dashboard")

    def attempt(change: Change) -> None:
        browser, device = shop.browser(), Authenticator(BASE)
        browser.get(path)
        answer = json.loads(device.create(json.loads(browser.post(f"{path}/options").body)))
        change(answer)
        given = browser.post(path, {"credential": json.dumps(answer)})
        assert attack.answered(given.status) == 400
        assert not shop.services.people.members_of("mer_1")

    def attested(**values: Any) -> Change:
        name = "attestationObject"
        return part(name, lambda raw: cbor2.dumps({**cbor2.loads(raw), **values}))

    def data(change: Callable[[bytes], bytes]) -> Change:
        def apply(raw: bytes) -> bytes:
            found = cbor2.loads(raw)
            return cbor2.dumps({**found, "authData": change(found["authData"])})

        return part("attestationObject", apply)

    def keyed(**values: Any) -> Change:
        """Change the public key, which begins 55 + 32 bytes into the data."""
        numbers = {"kind": 1, "algorithm": 3, "curve": -1, "x": -2, "y": -3}

        def apply(raw: bytes) -> bytes:
            key = cbor2.loads(raw[87:]) | {numbers[name]: each for name, each in values.items()}
            return raw[:87] + cbor2.dumps(key)

        return data(apply)

    formats = ("tpm", "android-key", "android-safetynet", "apple", "fido-u2f", "x", "", 1, None)
    cases = OF_BOTH | {
        **{f"format {each}": attested(fmt=each) for each in formats},
        **{f"{n} for data": attested(authData=junk) for n, junk in enumerate((b"", b"x", 1, "x"))},
        **{f"{n} for object": put("r", "attestationObject", junk) for n, junk in enumerate(JUNK)},
        **{f"bit at {place}": data(flipped(place)) for place in range(32)},
        "a sign-in's": said(type="webauthn.get"),
        "packed, unsigned": attested(fmt="packed", attStmt={"alg": -7, "sig": b"x"}),
        "packed, empty": attested(fmt="packed"),
        "none, with a statement": attested(attStmt={"sig": b"x"}),
        "nobody there": data(without(0x01)),
        "not verified": data(without(0x04)),
        "backed up, not eligible": data(lambda raw: raw[:32] + b"\x55" + raw[33:]),
        "without a credential": data(lambda raw: raw[:32] + b"\x1d" + raw[33:37]),
        "short data": data(lambda raw: raw[:60]),
        "longer data": data(lambda raw: raw + b"\x00"),
        "an id that is longer than all": data(lambda raw: raw[:53] + b"\xff\xff" + raw[55:]),
        "an unknown algorithm": keyed(algorithm=-999),
        "no algorithm": keyed(algorithm=None),
        "deep CBOR": part("attestationObject", lambda raw: b"\x81" * 5_000 + b"\x00"),
        "no CBOR": part("attestationObject", lambda raw: b"\xff" * 9),
        "a long CBOR string": part("attestationObject", lambda raw: b"\x5b" + b"\x7f" * 8),
    }
    attack.each(cases, attempt)
    assert shop.browser().join(link, Authenticator(BASE)).status == 303, "the right one still does"
