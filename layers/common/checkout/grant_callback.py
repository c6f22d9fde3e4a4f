"""Parse what a wallet appends to the address to which it sends the browser back.

Anything ambiguous is rejected: a doubled parameter, an incomplete callback.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastapi import Request

from checkout.domain.ground.errors import CallbackInvalid

_NAMES: Final = ("interact_ref", "hash", "result")


@dataclass(frozen=True, slots=True)
class GrantCallback:
    """A reference and its hash (RFC 9635 section 4.2.1), or an unsigned `result` without one."""

    interact_ref: str = ""
    hash: str = ""
    result: str | None = None


def callback_of(request: Request) -> GrantCallback:
    """Return the callback's parameters; a reference with its hash overrides any `result`.

    Raise CallbackInvalid for a missing or doubled parameter.
    """
    query = request.query_params
    if any(len(query.getlist(name)) > 1 for name in _NAMES):
        raise CallbackInvalid("The wallet's answer has a parameter twice.")
    interact_ref, presented = query.get("interact_ref", ""), query.get("hash", "")
    if interact_ref and presented:
        return GrantCallback(interact_ref=interact_ref, hash=presented)
    if interact_ref or presented or not query.get("result"):
        raise CallbackInvalid("The wallet's answer is incomplete.")
    return GrantCallback(result=query["result"])
