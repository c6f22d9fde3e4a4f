"""The reference at /docs: made from the documents, static, and enough for a newcomer."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.request import Request

import pytest

from checkout import wiring
from checkout.domain.webhooks.signature import hex_signature
from checkout.web import STATUS
from docs.openapi import examples
from docs.openapi.__main__ import REFERENCE
from docs.openapi.page import files
from tests.support.basics import NOW
from tests.support.documented import NATIVE, STRIPE, Documented
from tests.support.merchant_api import SESSIONS, MerchantApi

PAGES = ("/docs", "/docs/v1")
# Bytes. Nothing of it is loaded on other routes.
PAGE_MAX = 280_000
ALL_MAX = 700_000


@pytest.fixture(scope="module")
def api() -> MerchantApi:
    return MerchantApi()


def shown(api: MerchantApi, path: str) -> str:
    answer = api.send("GET", path, key=None)
    assert answer.status == 200, answer
    return answer.body


def code_of(page: str, title: str) -> str:
    """The block of code below this title, as a browser shows it."""
    heading = f"<(?:figcaption|summary)>{title}</(?:figcaption|summary)>"
    found = re.search(f"{heading}<pre><code>(.*?)</code>", page, re.S)
    assert found is not None, title
    return unescape(found[1])


def test_the_files_are_fresh() -> None:
    documents = {"openapi.json": NATIVE.document, "openapi-v1.json": STRIPE.document}
    for name, text in files(documents.items()).items():
        assert (REFERENCE / name).read_text("utf-8") == text, f"{name}: run make docs"


@pytest.mark.parametrize("path", PAGES)
def test_a_page_needs_no_key_and_no_other_host(api: MerchantApi, path: str) -> None:
    answer = api.send("GET", path, key=None)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self'; base-uri")
    assert not re.search(r"<img|<iframe|style=|\son\w+=", answer.body)
    assert re.findall("<script[^>]*>", answer.body) == ['<script src="/docs/script.js" defer>']
    assert "</pre>" in answer.body, "the code is there without the script, too"
    script = api.send("GET", "/docs/script.js", key=None)
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert not re.search(r"https?:|\bfetch\b|innerHTML", script.body)
    assert re.findall(r'<link [^>]*href="([^"]*)"', answer.body) == ["/docs/style.css"]
    assert "url(" not in shown(api, "/docs/style.css")
    assert "@import" not in shown(api, "/docs/style.css")
    assert len(answer.body.encode()) <= PAGE_MAX


def test_every_link_leads_somewhere(api: MerchantApi) -> None:
    pages = {path: shown(api, path) for path in PAGES}
    places = {path: re.findall(r'\sid="([^"]+)"', page) for path, page in pages.items()}
    for path, page in pages.items():
        assert len(set(places[path])) == len(places[path])
        for link in re.findall(r'<a [^>]*?href="([^"]+)"', page):
            target, _, anchor = link.partition("#")
            if target.startswith("/dashboard"):
                continue
            assert not target or shown(api, target), link
            assert not anchor or anchor in places[target or path], link


def test_every_error_has_its_line_and_every_operation_its_place(api: MerchantApi) -> None:
    page = shown(api, "/docs")
    for code in [*(error.code for error in STATUS), "internal_error"]:
        assert f'id="{code}"' in page
    for path, document in zip(PAGES, (NATIVE.document, STRIPE.document), strict=True):
        for methods in document["paths"].values():
            for operation in methods.values():
                assert f'<article id="{operation["operationId"]}">' in shown(api, path)


def test_the_documents_are_served_and_anything_else_is_missing(api: MerchantApi) -> None:
    assert json.loads(shown(api, "/docs/openapi.json")) == NATIVE.document
    assert json.loads(shown(api, "/docs/openapi-v1.json")) == STRIPE.document
    for path in ("/docs/", "/docs/../app.py", "/docs/__init__.py", "/docsx", "/docs/v1/"):
        assert api.send("GET", path, key=None).status == 404, path
    assert api.send("POST", "/docs", key=None).status == 405
    error = api.send("GET", "/docs/nothing", key=None).json["error"]
    assert error["doc_url"].endswith("/docs#resource_missing")


def test_the_pages_name_the_host_that_serves_them(
    api: MerchantApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wiring, "base_url", lambda: "https://pay.harbor.example")
    for path in PAGES:
        assert "https://pay.harbor.example" in shown(api, path)
        assert "https://checkout.example" not in shown(api, path)
    error = api.send("GET", SESSIONS, key=None).json["error"]
    assert error["doc_url"] == "https://pay.harbor.example/docs#api_key_missing"


def test_a_test_stage_names_a_wallet_to_pay_from(
    api: MerchantApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "cedar" not in shown(api, "/docs")
    monkeypatch.setattr(wiring, "test_wallets", lambda: "https://pay.example/test-wallets")
    assert (
        "<li>Pay from <code>https://pay.example/test-wallets/cedar/alice</code> to try it.</li>"
    ) in shown(api, "/docs")


def test_a_first_payment_needs_no_customer(api: MerchantApi) -> None:
    section = shown(api, "/docs").partition('<section id="try">')[2].partition("</section>")[0]
    for said in ("https://localhost:4101/alice", "make dev", "make trigger EVENT=completed"):
        assert said in unescape(section).replace("\n", " "), said
    assert "All endpoints" in shown(api, "/docs")


@pytest.mark.parametrize("path", PAGES)
def test_the_pages_refer_to_no_file_that_is_not_served(api: MerchantApi, path: str) -> None:
    assert not re.search(r"docs/\w+\.md|…\"", shown(api, path))


@pytest.mark.parametrize(
    ("documented", "made"), [(NATIVE, examples.NATIVE), (STRIPE, examples.STRIPE)]
)
def test_the_examples_are_what_the_documents_describe(
    documented: Documented, made: dict[str, Any]
) -> None:
    operations = {
        each["operationId"]: each
        for methods in documented.document["paths"].values()
        for each in methods.values()
    }
    for name, example in made.items():
        good = next(iter(operations[name]["responses"].values()))
        schema = good["content"]["application/json"]["schema"]
        documented.check_body(schema, json.dumps(example))


def test_the_examples_of_events_are_what_the_document_describes() -> None:
    for name, example in examples.EVENTS.items():
        sent = NATIVE.document["webhooks"][name]["post"]["requestBody"]["content"]
        NATIVE.check_body(sent["application/json"]["schema"], json.dumps(example))


def test_an_event_is_shown_with_the_status_that_it_tells(api: MerchantApi) -> None:
    section = shown(api, "/docs").partition('<section id="events">')[2]
    found = r"<h3><code>([\w.]+)</code>.*?&quot;status&quot;: &quot;(\w+)"
    told = dict(re.findall(found, section, re.S))
    assert told["checkout.session.canceled"] == "canceled"
    assert told["checkout.session.payment_failed"] == "open"
    assert told["checkout.session.partially_paid"] == "processing"


def test_the_elements_of_a_list_are_described(api: MerchantApi) -> None:
    section = shown(api, "/docs/v1").partition('<article id="createEndpoint">')[2]
    assert "<code>enabled_events</code>" in section
    assert "The types that it gets, or <code>*</code> for all" in section.partition("</article>")[0]
    assert "<code>application/x-www-form-urlencoded</code>" in section


def test_nothing_of_it_is_loaded_for_other_requests_and_it_stays_small() -> None:
    assert sum(each.stat().st_size for each in REFERENCE.glob("*.*")) <= ALL_MAX
    of_document = "('api.reference', 'checkout.answers')"
    code = f"import sys, api.app; print(*(m for m in sys.modules if m.startswith({of_document})))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == ""


# --- a newcomer with this page alone ---


class FromTheAnswer(io.BytesIO):
    """An answer as `urlopen` returns it."""


@pytest.mark.parametrize("section", ["start", "refund"])
def test_a_snippet_that_runs_again_makes_something_new(api: MerchantApi, section: str) -> None:
    """A constant key would show the first session again, or refuse another price."""
    page = shown(api, "/docs").partition(f'<section id="{section}">')[2]
    for title in ("curl", "Python", "JavaScript, Node 18 or newer"):
        code = code_of(page, title)
        [key] = re.findall(r'"Idempotency-Key"?: ([^\n]+)', code)
        assert re.search(r"\$NUMBER|\{number\}", key), (title, key)


def test_a_newcomer_refunds_a_payment(api: MerchantApi) -> None:
    page = shown(api, "/docs").partition('<section id="refund">')[2]
    found = re.search(r"-d '(.*)'$", code_of(page, "curl"), re.S)
    assert found is not None
    answer = api.post("/api/checkout/refunds", json.loads(found[1]))
    assert answer.json["error"]["code"] == "permission_missing"
    assert "the scope <code>refund</code>" in page


def test_a_newcomer_creates_a_session(
    api: MerchantApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = shown(api, "/docs")
    monkeypatch.setattr("time.time", lambda: 1234)

    def sent(request: Request) -> FromTheAnswer:
        assert request.full_url == f"https://checkout.example{SESSIONS}"
        assert isinstance(request.data, bytes)
        answer = api.send("POST", SESSIONS, raw=request.data, headers=dict(request.header_items()))
        assert answer.status == 201, answer
        return FromTheAnswer(answer.body.encode())

    monkeypatch.setenv("API_KEY", api.secret)
    monkeypatch.setattr("urllib.request.urlopen", sent)
    exec(code_of(page, "Python"), {})  # noqa: S102 - as a newcomer does
    session_id, url = capsys.readouterr().out.split()
    assert url == f"https://pay.example/pay/{session_id}"
    # The other two send the same.
    curl, node = code_of(page, "curl"), code_of(page, "JavaScript, Node 18 or newer")
    bodies = [re.search(r"-d '(.*)'$", curl, re.S), re.search(r"order = (.*?);\n", node, re.S)]
    for found in bodies:
        assert found is not None
        again = api.post(SESSIONS, json.loads(found[1]), headers={"Idempotency-Key": "order-1234"})
        assert (again.status, again.json["id"]) == (201, session_id)
        assert again.headers["idempotent-replayed"] == "true"


def test_a_newcomer_verifies_a_webhook(api: MerchantApi, monkeypatch: pytest.MonkeyPatch) -> None:
    section = shown(api, "/docs").partition('<section id="verify">')[2]
    names: dict[str, Any] = {}
    exec(code_of(section, "Python"), names)  # noqa: S102 - as a newcomer does
    body, secret, at = b'{"id":"cs_1","status":"completed"}', "whsec_abc", int(NOW.timestamp())
    monkeypatch.setattr(names["time"], "time", lambda: at)
    signature = f"t={at},v1={hex_signature(str(at), body.decode(), secret)}"
    assert names["verify"](body, signature, secret)
    assert not names["verify"](body, None, secret)  # a request without the header
    for wrong in wrong_deliveries(body, signature, secret, at):
        assert not names["verify"](*wrong)
    # The tests of docs/webhooks.md run this code.
    javascript = code_of(section, "JavaScript")
    assert javascript in (REFERENCE.parents[2] / "docs/webhooks.md").read_text("utf-8")


def wrong_deliveries(
    body: bytes, signature: str, secret: str, at: int
) -> Iterator[tuple[bytes, str, str]]:
    yield body + b" ", signature, secret
    yield body, signature, secret + "x"
    yield body, signature.replace(str(at), str(at - 301)), secret
