"""Fingerprints of requests to create a session, which outlive releases: replays come later."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import pytest

from checkout.domain.session.new import NewSession
from checkout.domain.session.record import LineItem, Session
from tests.support.basics import NOW, SESSION_ID
from tests.support.samples import a_key

BARE = NewSession(
    line_items=(LineItem("usd", "Tea", None, 450, 2),),
    success_url="https://shop.example/thanks?session={CHECKOUT_SESSION_ID}",
    cancel_url="https://shop.example/basket",
)
FULL = NewSession(
    line_items=(LineItem("eur", "Käse 🧀", "mild", 1000, 1), LineItem("eur", "Tee", "", 0, 3)),
    success_url="https://shop.example/danke",
    cancel_url="https://shop.example/korb",
    metadata_json='{"order":"ü-1","n":1,"b":true,"none":null}',
    expires_in_seconds=3600,
    locale="de",
)


@pytest.mark.parametrize(
    ("request_", "digest"),
    [
        (BARE, "456c51164d457fd0c2a9f9b38c177b75ba6fb6d919df97ca54c0095791c10d8a"),
        (FULL, "d9a1961322a21a3c2a8f864323e81301615d42b311448d493a069ec1b87d215a"),
    ],
    ids=["bare", "full"],
)
def test_a_fingerprint_is_the_same_in_every_release(request_: NewSession, digest: str) -> None:
    assert request_.fingerprint() == digest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Next(NewSession):
    """A request of a later release, with one more optional field."""

    gift_note: str | None = None


def _as_next(request: NewSession, gift_note: str | None = None) -> _Next:
    known: dict[str, Any] = {f.name: getattr(request, f.name) for f in fields(request)}
    return _Next(**known, gift_note=gift_note)


@pytest.mark.parametrize("request_", [BARE, FULL], ids=["bare", "full"])
def test_an_optional_field_that_is_absent_changes_no_fingerprint(request_: NewSession) -> None:
    assert _as_next(request_).fingerprint() == request_.fingerprint()
    named = _as_next(request_, gift_note="For Eva")
    assert named.fingerprint() != request_.fingerprint()


def test_each_parameter_that_the_session_also_has_is_passed_on() -> None:
    sealed = {"customer_email"}  # stored by the flow, which has the key
    optional = [each.name for each in fields(NewSession) if each.default is None]
    optional = [name for name in optional if name not in sealed]
    given: dict[str, Any] = {name: f"the {name}" for name in optional}
    request = replace(FULL, **given)
    key = a_key(asset_code="EUR")
    session = request.opened(key, session_id=SESSION_ID, writer="w", now=NOW, base_is_http=False)
    shared = {each.name for each in fields(NewSession)} & {each.name for each in fields(Session)}
    assert {*optional, "line_items", "metadata_json"} <= shared
    for name in shared:
        assert getattr(session, name) == getattr(request, name), name
