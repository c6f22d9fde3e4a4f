"""The fuzzer itself: it repeats itself from its seed, and it notices what it is there for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import api.routes
import pay.pages
from checkout import web
from checkout.domain.ground.errors import ParameterInvalid, ResourceMissing
from checkout.domain.session.public import public_session
from checkout.flows.session import close, create
from sandbox.server import Incoming
from tests.fuzzing.__main__ import DOCUMENTS, Run, fuzz
from tests.fuzzing.target import Heard, function_of, problems

pytestmark = pytest.mark.endurance
REQUESTS = 100


def run(number: int = 1) -> Run:
    return fuzz(REQUESTS, number, DOCUMENTS, socket_share=0)


def test_nothing_is_found_and_the_seed_decides_all() -> None:
    first, again, other = run(), run(), run(2)
    assert first.found == Counter()
    assert first.statuses == again.statuses
    assert first.counts == again.counts
    assert first.statuses != other.statuses
    assert first.statuses.total() == REQUESTS
    assert {"api", "pay", "dashboard", "of documents"} <= set(first.counts)


def broken(*_: Any, **__: Any) -> Any:
    raise RuntimeError("a bug")


def test_a_5xx_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(close, "expire", broken)
    monkeypatch.setattr(pay.pages, "confirmation", broken)
    found = run()
    assert found.counts["5xx"] >= found.found["status 500"] > 1


def test_an_undocumented_status_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(web.STATUS, ParameterInvalid, (418, "invalid_request_error"))
    monkeypatch.setitem(web.STATUS, ResourceMissing, (410, "invalid_request_error"))
    found = set(run().found)
    assert {"the undocumented status 418", "the undocumented status 410"} <= found
    assert any("Undocumented status code" in each for each in found), "Schemathesis says so"


def test_an_undocumented_answer_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = public_session
    for place in (create, api.routes):  # which of them answers is the seed's choice
        monkeypatch.setattr(
            place, "public_session", lambda *_, **how: shown(*_, **how) | {"amount_total": "7"}
        )
    assert any("Response violates schema" in each for each in run().found)


@pytest.mark.parametrize(
    ("target", "heard", "said"),
    [
        ("/pay/x", Heard(303, {"location": "https://evil.example"}, b""), "a redirect to"),
        ("/pay/x", Heard(303, {"location": "//evil.example"}, b""), "a redirect to"),
        ("/pay/x", Heard(200, {}, b"<script>alert(1)</script>"), "markup came out"),
        ("/dashboard", Heard(200, {}, b"Traceback (most recent call last)"), "a traceback"),
        ("/dashboard", Heard(200, {}, b""), "no policy"),
        ("/api/x", Heard(404, {}, b"{}"), "an error of another shape"),
        ("/api/x", Heard(200, {}, b"<html>"), "no JSON"),
        ("/api/x", Heard(302, {}, b"{}"), "the undocumented status 302"),
    ],
)
def test_each_problem_is_told(target: str, heard: Heard, said: str) -> None:
    assert any(each.startswith(said) for each in problems(Incoming("GET", target, []), heard))


def test_each_path_belongs_to_a_function() -> None:
    assert [function_of(path) for path in ("/api/x", "//api", "/pay?x", "/payx", "/")] == [
        *("api", "api", "pay", None, None),
    ]


def test_another_document_may_be_given(tmp_path: Path) -> None:
    document = tmp_path / "other.json"
    document.write_text(DOCUMENTS[0].read_text("utf-8").replace('"404"', '"410"'))
    found = fuzz(REQUESTS, 1, [document], socket_share=0).found
    assert any("Undocumented status code" in each for each in found)
