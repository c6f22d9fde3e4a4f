"""Rehearsal of a deployment: the emulator and its functions also trust the CA of REHEARSAL_CA.

This file also adds to the emulator a condition key of AWS's policies, and lets an edge have one of
the emulator's HTTP APIs as its origin. Python imports the file at startup, because PYTHONPATH
contains its folder. The product's code, its settings and the artifacts are not changed.
"""

from __future__ import annotations

import json
import os
import ssl
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

_create = ssl.create_default_context


def _trusting(*args: Any, **options: Any) -> ssl.SSLContext:
    context = _create(*args, **options)
    context.load_verify_locations(os.environ["REHEARSAL_CA"])
    return context


ssl.create_default_context = _trusting


def _know_encryption_contexts() -> None:
    """Let policies in the emulator have conditions on a KMS request's encryption context.

    The functions' policies use the condition key `kms:EncryptionContext:…`, which the emulator
    itself does not implement.
    """
    from ministack.core import iam_actions, iam_evaluator  # type: ignore[import-not-found]

    prefix = "kms:encryptioncontext:"
    asked: ContextVar[dict[str, str] | None] = ContextVar("asked", default=None)
    action_of, value_of = iam_actions.extract_iam_action, iam_evaluator._resolve_condition_key

    def action(service: str, *request: Any, **options: Any) -> Any:
        if service == "kms":
            body = json.loads(request[3] or b"{}")
            asked.set(body.get("EncryptionContext", {}))
        return action_of(service, *request, **options)

    def value(key: str, context: Any) -> Any:
        if key.lower().startswith(prefix):
            return (asked.get() or {}).get(key[len(prefix) :])
        return value_of(key, context)

    iam_actions.extract_iam_action = action
    iam_evaluator._resolve_condition_key = value


def _know_http_apis() -> None:
    """Let the emulator's CloudFront call the emulator's own HTTP APIs instead of those of AWS."""
    from ministack.services import cloudfront  # type: ignore[import-not-found]

    forward = cloudfront._forward_to_origin
    here = {"domain_name": "127.0.0.1", "protocol_policy": "http-only"}

    def to_origin(origin: dict[str, Any], method: str, uri: str, *request: Any) -> Any:
        api, found, _ = origin["domain_name"].partition(".execute-api.")
        if found:
            origin = {**origin, **here, "http_port": int(os.environ["GATEWAY_PORT"])}
            uri = f"/_aws/execute-api/{api}/$default{uri}"
        return forward(origin, method, uri, *request)

    cloudfront._forward_to_origin = to_origin


with suppress(ImportError):  # the functions cannot import the emulator
    _know_encryption_contexts()
    _know_http_apis()
