"""Keep every secret of a run as it is made, and every text that leaves the product, and search each
in each.

A secret is searched as it is, percent-encoded, in base64 and in hex. `PERMITTED` lists the places
where a secret belongs. A secret that is shown once may be in one page and in no other text.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any, Final
from urllib.parse import quote

import pytest

from checkout.adapters.vault import AesVault
from checkout.domain.ground import ids
from checkout.flows.payment.sealed import Grant
from checkout.flows.people import sign_in
from checkout.flows.session import details
from tests.support.overheard import SHORTEST, Overheard

# Kinds of secrets, and the places where they may be. Nothing else may be anywhere.
PERMITTED: Final[dict[str, set[str]]] = {
    # A cookie that is for one session's pages has their path.
    "session id": {"api", "pay", "dashboard", "webhook", "queue", "row", "cookie of pay"},
    "API key": set(),
    "webhook secret": set(),
    "wrong API key": set(),
    "dashboard cookie": {"cookie of dashboard"},
    "form token": {"dashboard"},
    "browser's proof": {"cookie of pay"},
    "device's proof": set(),
    "private key": set(),
    "key of details": set(),
    "ENCRYPTION_KEY": set(),
    "sealed": {"row", "queue"},  # a cleanup names the grant that it gives back
    "grant's nonce": set(),
    "address for the approval": {"pay", "row"},
    "interact_ref": set(),
    "callback's hash": set(),
    "token": set(),
    "signature": set(),
    "address with a right": set(),
}
SHOWN_ONCE: Final = frozenset({"API key", "webhook secret"})
_OVERHEARD: Final = {
    "authorization": "token",
    "signature": "signature",
    "value": "token",
    "nonce": "grant's nonce",
    "finish": "address for the approval",  # a part of it, at some providers
    "redirect": "address for the approval",
    "interact_ref": "interact_ref",
    "uri": "address with a right",
    "manage": "address with a right",
}
_WORD: Final = 12  # digits by which a secret is found
_WORDS: Final = re.compile(rf"[0-9A-Za-z+/_-]{{{_WORD},}}")
Leak = tuple[str, str]  # the kind of the secret, and the place


@dataclass(frozen=True, slots=True)
class Scanned:
    """The size of a scan, and what it found."""

    texts: int
    size: int
    secrets: int
    leaks: tuple[Leak, ...]

    def __str__(self) -> str:
        return (
            f"secrets: {self.secrets} searched in {self.texts} texts of {self.size} bytes: "
            f"{len(self.leaks)} found"
        )


class Ledger:
    """The secrets, by kind, and the texts, by place."""

    def __init__(self) -> None:
        self.secrets: dict[str, str] = {}
        self.texts: list[tuple[str, str]] = []

    def made(self, kind: str, secret: str) -> None:
        assert kind in PERMITTED, kind
        if len(secret) >= SHORTEST:
            self.secrets.setdefault(secret, kind)

    def heard(self, place: str, text: str) -> None:
        self.texts.append((place, text))

    def answered(self, function: str, event: dict[str, Any], answer: dict[str, Any]) -> None:
        """Take a response, for `Doors.heard`."""
        body = str(answer.get("body") or "")
        if answer.get("isBase64Encoded"):
            body = base64.b64decode(body).decode("latin-1")
        self.heard(function, f"{json.dumps(answer['headers'])}\n{body}")
        for cookie in answer.get("cookies", []):
            self.heard(f"cookie of {function}", cookie)

    def overhear(self) -> Overheard:
        return Overheard(lambda name, value: self.made(_OVERHEARD[name], value))

    def follow(self, patch: pytest.MonkeyPatch) -> None:
        """Have everything that makes secrets enter them here, from now on."""
        self._follow_ids(patch)
        self._follow_vault(patch)

        def noting(owner: Any, name: str, kind_of: Callable[..., str]) -> None:
            make = getattr(owner, name)

            def noted(*given: Any) -> Any:
                made = make(*given)
                self.made(kind_of(*given), made)
                return made

            patch.setattr(owner, name, noted)

        noting(sign_in, "new_token", lambda _: "dashboard cookie")
        noting(sign_in, "form_token", lambda _: "form token")
        noting(Grant, "proof", lambda grant, session_id, use: f"{use.value}'s proof")
        noting(details, "browser_proof", lambda *_: "browser's proof")

    def _follow_ids(self, patch: pytest.MonkeyPatch) -> None:
        base62 = ids._base62
        kinds = {"new_session_id": "session id", "new_api_key": "API key"}

        def drawn(random_bytes: Any, digits: int) -> str:
            made = base62(random_bytes, digits)
            caller = sys._getframe(1).f_code.co_name
            if caller in kinds:
                self.made(kinds[caller], made)
            return made

        patch.setattr(ids, "_base62", drawn)

    def _follow_vault(self, patch: pytest.MonkeyPatch) -> None:
        seal = AesVault.seal
        kinds = {
            "private_key": "private key",
            "webhook_secret": "webhook secret",
            "details_key": "key of details",
        }
        right = "address with a right"
        members = {  # in the order in which they are sealed
            "grant": ("grant's nonce", "address for the approval", right, "token"),
            "token": ("token", right),
        }

        def sealing(vault: AesVault, plain: str, *, place: tuple[str, str, str]) -> str:
            sealed = seal(vault, plain, place=place)
            self.made("sealed", sealed)
            if place[2] in kinds:
                self.made(kinds[place[2]], plain)
            else:
                for kind, value in zip(members[place[2]], json.loads(plain), strict=False):
                    if value is not None:
                        self.made(kind, value)
            return sealed

        patch.setattr(AesVault, "seal", sealing)

    def scan(self) -> Scanned:
        """Search every secret in every text."""
        index: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for secret in self.secrets:
            for form in set(forms(secret)):
                index[_core(form)[:_WORD]].append((form, secret))
        found: list[tuple[str, str]] = []  # of the secret and the place
        clean: set[str] = set()
        for place, text in self.texts:
            for line in text.splitlines():
                if line in clean:
                    continue
                here = {
                    secret for secret in _in_line(line, index) if not self._belongs(secret, place)
                }
                found += [(secret, place) for secret in here]
                if not here:
                    clean.add(line)
        return Scanned(
            texts=len(self.texts),
            size=sum(len(text.encode("utf-8", "replace")) for _, text in self.texts),
            secrets=len(self.secrets),
            leaks=tuple(self._leaks(found)),
        )

    def _belongs(self, secret: str, place: str) -> bool:
        return place in PERMITTED[self.secrets[secret]]

    def _leaks(self, found: list[tuple[str, str]]) -> Iterator[Leak]:
        """Return what was found without the one page that shows each new key."""
        shown: set[str] = set()
        for secret, place in found:
            kind = self.secrets[secret]
            if kind in SHOWN_ONCE and place == "dashboard" and secret not in shown:
                shown.add(secret)
            else:
                yield kind, place


def forms(secret: str) -> Iterator[str]:
    """Return the secret as texts may hold it."""
    raw = secret.encode("utf-8", "replace")
    yield from (secret, quote(secret, safe=""), quote(secret), escape(secret), raw.hex())
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret)[1:-1].replace("/", "\\/")
    for shift in range(3):  # base64 of something that contains it
        inner = base64.b64encode(b"\x00" * shift + raw)[4 if shift else 0 :]
        inner = inner[: len(inner) // 4 * 4 - 4]  # the last digits depend on what follows
        yield from (inner.decode(), inner.decode().translate(str.maketrans("+/", "-_")))


def _core(form: str) -> str:
    """Return the longest part of a form that `_WORDS` finds whole or in a longer word."""
    words = _WORDS.findall(form)
    assert words, "a secret without twelve digits in a row"
    return str(max(words, key=len))


def _in_line(line: str, index: dict[str, list[tuple[str, str]]]) -> Iterator[str]:
    for word in _WORDS.findall(line):
        for start in range(len(word) - _WORD + 1):
            for form, secret in index.get(word[start : start + _WORD], ()):
                if form in line:
                    yield secret
