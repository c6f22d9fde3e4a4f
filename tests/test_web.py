from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

from checkout import telemetry, web, wiring
from checkout.domain.ground import errors
from checkout.domain.ground.errors import CheckoutError
from tests.support.basics import seeded
from tests.support.merchant_api import gateway_event


def every_error(base: type[CheckoutError] = CheckoutError) -> Iterator[type[CheckoutError]]:
    for error in base.__subclasses__():
        yield error
        yield from every_error(error)


# decisions.md "Errors", a second time.
DECIDED = """
400 invalid_request_error amount_not_representable amount_too_large amount_too_small
400 invalid_request_error callback_invalid currency_mismatch currency_not_supported
400 invalid_request_error cursor_invalid invalid_json key_unexpected_state parameter_invalid
400 invalid_request_error parameter_invalid_integer parameter_missing parameter_unknown
400 invalid_request_error session_unexpected_state url_invalid webhook_unexpected_state
400 invalid_request_error email_invalid receipts_used_up
400 idempotency_error idempotency_key_invalid idempotency_key_reused
400 invalid_request_error member_unexpected_state
401 authentication_error api_key_invalid api_key_missing passkey_invalid
403 permission_error merchant_suspended merchant_unproven permission_missing
404 invalid_request_error resource_missing
405 invalid_request_error method_not_allowed
400 invalid_request_error refund_unexpected_state
413 invalid_request_error body_too_large
415 invalid_request_error content_type_invalid
409 conflict_error conflict payment_in_progress session_busy
424 wallet_error amount_too_small_for_wallet merchant_wallet_error
424 wallet_error wallet_invalid wallet_unavailable wallet_unreachable
424 api_error mail_refused
429 rate_limit_error rate_limited
503 api_error unavailable
"""


def made(error: type[CheckoutError]) -> CheckoutError:
    if error is errors.RateLimited:
        return errors.RateLimited("Slow down.", retry_after=7)
    return error("It is wrong.", param="a.b")


def test_every_error_has_its_own_place_in_the_table() -> None:
    found = []
    for error in every_error():
        problem = web.problem_of(made(error), "req_1")
        found.append((str(problem.status), problem.type, problem.code))
        assert web.status_of(made(error)) == problem.status
    rows = [line.split() for line in DECIDED.strip().splitlines()]
    decided = [(status, kind, code) for status, kind, *codes in rows for code in codes]
    assert sorted(found) == sorted(decided)


def test_401_and_429_say_what_to_do_in_a_header() -> None:
    for error in every_error():
        problem = web.problem_of(made(error), "req_1")
        headers = problem.headers
        assert headers.get("WWW-Authenticate") == ("Bearer" if problem.status == 401 else None)
        assert headers.get("Retry-After") == ("7" if error.code == "rate_limited" else None)


def an_app(**options: Any) -> FastAPI:
    app = web.application(random_bytes=seeded(), **options)

    @app.get("/fine")
    async def fine() -> Response:
        return PlainTextResponse("fine", headers={"Cache-Control": "public"})

    @app.post("/fine")
    async def also_fine() -> Response:
        return PlainTextResponse("posted")

    @app.get("/typed")
    async def typed(number: int = Query(ge=1)) -> Response:
        return PlainTextResponse(str(number))

    @app.get("/raises/{name}")
    async def raises(name: str) -> Response:
        raise made({error.code: error for error in every_error()}[name])

    @app.get("/bug")
    async def bug() -> Response:
        try:
            raise ValueError("SECRET token")
        except ValueError as error:
            raise RuntimeError("SECRET again") from error

    @app.get("/half")
    async def half() -> Response:
        async def chunks() -> AsyncIterator[str]:
            yield "a"
            raise ValueError("SECRET")

        return StreamingResponse(chunks())

    @app.post("/form")
    async def form(request: Request) -> Response:
        raise HTTPException(400, "SECRET detail of the framework")

    return app


def call(app: FastAPI, method: str, path: str, query: str = "") -> dict[str, Any]:
    return web.lambda_handler(app)(gateway_event(method, path, query, {}, None), None)


def error_of(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer["body"])["error"]
    assert found["request_id"] == answer["headers"]["request-id"]
    return found


@pytest.mark.parametrize("error", list(every_error()), ids=lambda error: error.code)
def test_an_error_is_answered_in_the_decided_shape(error: type[CheckoutError]) -> None:
    answer = call(an_app(), "GET", f"/raises/{error.code}")
    body = error_of(answer)
    assert answer["statusCode"] == web.status_of(made(error))
    assert list(body) == [
        "type",
        "code",
        "message",
        *(["param"] if error is not errors.RateLimited else []),
        "request_id",
    ]


@pytest.mark.parametrize("path", ["/fine", "/nowhere", "/raises/unavailable", "/bug", "/typed"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_every_answer_has_an_id_and_is_not_stored(method: str, path: str) -> None:
    app = an_app()
    answers = [call(app, method, path) for _ in range(2)]
    for answer in answers:
        assert re.fullmatch(r"req_[0-9A-Za-z]{22}", answer["headers"]["request-id"])
        assert answer["headers"]["cache-control"] == "no-store"
        assert answer["headers"]["x-content-type-options"] == "nosniff"
    assert len({answer["headers"]["request-id"] for answer in answers}) == 2


def test_a_wrong_method_names_the_right_ones() -> None:
    answer = call(an_app(), "PUT", "/fine")
    assert (answer["statusCode"], error_of(answer)["code"]) == (405, "method_not_allowed")
    assert answer["headers"]["allow"] == "GET, POST"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("", "parameter_missing"),
        ("number=x", "parameter_invalid_integer"),
        ("number=0", "parameter_invalid_integer"),
    ],
)
def test_the_frameworks_own_validation_speaks_the_same_language(query: str, code: str) -> None:
    answer = call(an_app(), "GET", "/typed", query)
    assert answer["statusCode"] == 400
    assert (error_of(answer)["code"], error_of(answer)["param"]) == (code, "number")


def test_a_bug_is_answered_and_logged_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        answer = call(an_app(), "GET", "/bug")
    assert answer["statusCode"] == 500
    assert (error_of(answer)["type"], error_of(answer)["code"]) == ("api_error", "internal_error")
    [record] = [record for record in caplog.records if record.name == "checkout.web"]
    fields = vars(record)
    assert record.levelno == logging.ERROR
    assert fields["request_id"] == answer["headers"]["request-id"]
    assert fields["route"] == "/bug"
    told = fields["trace"]
    for expected in ("builtins.RuntimeError", "builtins.ValueError", "test_web.py", "bug"):
        assert expected in told
    assert "SECRET" not in repr(fields) + answer["body"]


def test_an_answer_that_breaks_off_is_a_500_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    answer = call(an_app(), "GET", "/half")
    assert answer["statusCode"] == 500
    assert [record.message for record in caplog.records] == ["unforeseen error"]
    assert "SECRET" not in caplog.text


def test_no_address_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        call(an_app(), "GET", "/fine")
        call(an_app(), "GET", "/raises/resource_missing")
    assert "/fine" not in caplog.text
    assert "/raises" not in caplog.text


def test_a_refusal_of_the_framework_is_answered_in_our_words() -> None:
    answer = call(an_app(), "POST", "/form")
    assert (answer["statusCode"], error_of(answer)["code"]) == (400, "parameter_invalid")
    assert "SECRET" not in answer["body"]


def test_an_unavailable_store_is_logged_for_the_operator(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        call(an_app(), "GET", "/raises/unavailable")
        call(an_app(), "GET", "/raises/resource_missing")
    assert [record.message for record in caplog.records] == ["unavailable"]


def test_another_renderer_gets_the_same_problems() -> None:
    def page(request: Request, problem: web.ErrorResponse) -> Response:
        return PlainTextResponse(f"<{problem.code}>", problem.status, dict(problem.headers))

    app = an_app(render=page)
    for path, expected in [("/nowhere", 404), ("/bug", 500), ("/raises/rate_limited", 429)]:
        answer = call(app, "GET", path)
        assert answer["statusCode"] == expected
        assert answer["body"].startswith("<")
        assert answer["headers"]["request-id"]
    assert answer["headers"]["retry-after"] == "7"


def test_the_handler_works_in_any_thread_and_after_another_loop() -> None:
    handler = web.lambda_handler(an_app())
    event = gateway_event("GET", "/fine", "", {}, None)
    statuses: list[int] = []

    def run() -> None:
        statuses.append(handler(event, None)["statusCode"])

    async def nothing() -> None:
        return None

    run()
    asyncio.run(nothing())  # leaves the thread without a loop
    run()
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert statuses == [200, 200, 200]


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/json;",
    ],
)
def test_json_in_utf_8_is_taken_however_it_is_written(content_type: str) -> None:
    web.require_json(content_type)


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/problem+json",
        "application/jsonp",
        "application/json, text/plain",
        "application/json; charset=latin-1",
        "application/json; charset=utf-16",
        "application/json; x=y",
    ],
)
def test_any_other_content_type_is_refused(content_type: str | None) -> None:
    with pytest.raises(errors.ContentTypeInvalid):
        web.require_json(content_type)


# --- the edge ---


@pytest.mark.parametrize(
    ("secret", "given", "status"),
    [
        ("", None, 200),
        ("", "anything", 200),
        ("s3cret", "s3cret", 200),
        ("new,s3cret", "s3cret", 200),
        ("new,s3cret", "new", 200),
        ("s3cret", None, 403),
        ("s3cret", "", 403),
        ("s3cret", "s3cret ", 403),
        ("s3cret,", "", 403),
        ("new,s3cret", "new,s3cret", 403),
        ("s3cret", "\ud800", 403),
    ],
)
def test_with_an_edge_the_direct_address_is_closed(
    secret: str, given: str | None, status: int
) -> None:
    headers = {} if given is None else {"Edge-Secret": given}
    event = gateway_event("GET", "/fine", "", headers, None)
    event["headers"] = {name.lower(): value for name, value in event["headers"].items()}
    answer = web.lambda_handler(an_app(), lambda: secret)(event, None)
    assert answer["statusCode"] == status
    if status == 403:
        assert answer["body"] == '{"message":"Forbidden"}'


def test_what_goes_around_the_edge_is_counted(told: Callable[[], list[dict[str, Any]]]) -> None:
    telemetry.start("pay", stack="shop")
    handler = web.lambda_handler(an_app(), lambda: "s3cret")
    for headers in ({}, {"edge-secret": "s3cret"}):
        event = gateway_event("GET", "/fine", "", {}, None)
        event["headers"] = headers
        handler(event, None)
    [line] = [each for each in told() if "DirectRequests" in each]
    assert (line["DirectRequests"], line["stack"]) == ([1.0], "shop")


def test_only_a_deployed_function_has_an_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGE_SECRET", "s3cret")
    monkeypatch.setenv("DATABASE_URL", "dynamodb:///shop")
    monkeypatch.setenv("BASE_URL", "https://pay.example")
    monkeypatch.delenv("AWS_LAMBDA_FUNCTION_NAME", raising=False)
    wiring.settings.cache_clear()
    assert wiring.edge_secret() == ""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "checkout-pay")
    assert wiring.edge_secret() == "s3cret"
    wiring.settings.cache_clear()
