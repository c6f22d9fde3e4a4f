"""Requests that Schemathesis makes of an OpenAPI document, right and wrong ones, and its checks of
the responses: no 5xx, and nothing that the document does not say.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from sandbox.server import Incoming
from tests.fuzzing.target import Heard
from tests.support.doors import BASE

CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
# Schemathesis takes a tenth of a second to make a whole right body, and much less for the rest.
RIGHT_BODIES: Final = 0.05
Ask = Callable[[Incoming], Heard]
Found = Callable[[Incoming, str], None]


def run(
    document: Path, *, count: int, number: int, key: str, ids: list[str], ask: Ask, found: Found
) -> None:
    """Ask `count` times or a little less, and hand on each failure. `number` is the seed.

    Two of three ids in paths are of records that exist.
    """
    schema = schemathesis.openapi.from_dict(json.loads(document.read_text("utf-8")))
    operations: list[Any] = [cast(Any, each).ok() for each in schema.get_all_operations()]
    pairs = [(each, mode) for each in operations for mode in GenerationMode]
    drawn = random.Random(number)

    def attempt(case: Any) -> None:
        for name in case.path_parameters or {}:
            if drawn.random() < 2 / 3:
                case.path_parameters[name] = drawn.choice(ids)
        prepared = _prepared(case)
        headers = [(name, str(value)) for name, value in prepared.headers.items()]
        if drawn.random() < 7 / 8:
            headers = [pair for pair in headers if pair[0].lower() != "authorization"]
            headers.append(("Authorization", f"Bearer {key}"))
        body: Any = prepared.body or b""
        request = Incoming(
            str(prepared.method),
            prepared.path_url,
            [*headers, ("Host", "pay.example")],
            body if isinstance(body, bytes) else body.encode(),
            client=f"203.0.{drawn.randrange(256)}.{drawn.randrange(256)}",
        )
        heard = ask(request)
        if heard.foreign:
            return
        for said in _failures(case, prepared, heard):
            found(request, said)

    for operation, mode in pairs:
        heavy = operation.body and operation.method == "post" and mode is GenerationMode.POSITIVE
        share = RIGHT_BODIES if heavy and "{" not in operation.path else 1 / len(pairs)
        quiet = settings(
            max_examples=max(1, int(count * share)),
            database=None,
            phases=[Phase.generate],
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        strategy = operation.as_strategy(generation_mode=mode)
        with suppress(Unsatisfiable):  # a request without a part that could be wrong
            seed(number)(quiet(given(case=strategy)(attempt)))()


def _prepared(case: Any) -> requests.PreparedRequest:
    taken = ("method", "url", "headers", "params", "data", "json", "cookies", "files")
    arguments = case.as_transport_kwargs(base_url=BASE)
    return requests.Request(
        **{name: value for name, value in arguments.items() if name in taken}
    ).prepare()


def _failures(case: Any, prepared: requests.PreparedRequest, heard: Heard) -> Iterator[str]:
    response = schemathesis.Response(
        status_code=heard.status,
        headers={name: [value] for name, value in heard.headers.items()},
        content=heard.body,
        request=prepared,
        elapsed=0.0,
        verify=True,
    )
    try:
        case.validate_response(response, checks=CHECKS)
    except FailureGroup as group:
        yield from (f"{each.title}: {each.message}" for each in group.exceptions)
