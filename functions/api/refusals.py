"""Refused requests under /api and /v1: hints about wrong ids, and the log of each API key."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Final

from fastapi import Request

from checkout import telemetry
from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.ground.grammar import SESSION_ID
from checkout.domain.merchant.failed_requests import Refusal
from checkout.domain.merchant.record import ApiKey
from checkout.flows.merchant import api_keys
from checkout.services import Services
from checkout.web import ErrorResponse

SHOWN_MAX: Final = 40  # characters of a wrong id that the answer repeats
_SECRETS: Final = ("sk_", "rk_", "whsec_")  # of ours and of Stripe's


def with_id(request: Request, found: ErrorResponse) -> ErrorResponse:
    """Return the error, with the likely kind of the id if the path has an impossible one.

    The hint depends on the text alone, so it does not reveal whether there is such a session.
    """
    given = request.path_params.get("session_id")
    if found.code != ResourceMissing.code or given is None or SESSION_ID.fullmatch(given):
        return found
    said = "A session's id looks like cs_ and 22 letters or digits"
    if not any(each in given for each in _SECRETS):
        said += f"; this is {json.dumps(given[:SHOWN_MAX])}"
    return replace(found, message=f"{said}.")


def remember(services: Services, request: Request, key: ApiKey) -> None:
    """Remember the API key of this request until it is answered."""
    request.state.refused = partial(_note, services, request, key)


def note(request: Request, found: ErrorResponse, status: int) -> None:
    """Record the refusal of a request with a valid key. A 5xx is not a refusal."""
    told = getattr(request.state, "refused", None)
    if told is not None and status < 500:
        told(found, status)


def _note(
    services: Services, request: Request, key: ApiKey, found: ErrorResponse, status: int
) -> None:
    # A secret in a wrong place, such as a key as the name of a field, is in message or param.
    refusal = Refusal(
        at=services.clock.now(),
        method=request.method,
        route=request.scope["route"].path,
        status=status,
        code=found.code,
        message=telemetry.redacted(found.message),
        request_id=found.request_id,
        param=telemetry.redacted(found.param),
    )
    api_keys.note_failed_request(services, key, refusal)
