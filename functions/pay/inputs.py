"""What customers and wallets send: the wallet submission, as JSON or as a form, and the grant
callback's query.

Refuses what could be read in two ways: unknown or doubled fields, half a callback.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict

from checkout.domain.errors import CallbackInvalid, ParameterInvalid
from checkout.ports.services import PayServices
from checkout.web import PARAM_MAX, body_bytes, json_object, validated
from pay.dependencies import Injected

FORM: Final = "application/x-www-form-urlencoded"
TYPED_SHOWN: Final = 2048  # characters of a typed wallet address that a page repeats
_UNITS: Final = re.compile(r"[0-9]{0,20}")
_CALLBACK_NAMES: Final = ("interact_ref", "hash", "result")


class WalletForm(BaseModel):
    """The body of a wallet submission. What a wallet address may be is the flow's to judge."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    wallet_address: str


@dataclass(frozen=True, slots=True)
class FormPost:
    """A form that is being answered: what is needed to show its page again with an error on it."""

    services: PayServices
    session_id: str
    typed: str


@dataclass(frozen=True, slots=True)
class Submission:
    """`by_form`: the answer is a page, not JSON. `was`: the price that the form's page showed, in
    the wallet's units; "" where it showed none.
    """

    wallet_address: str
    by_form: bool
    was: str = ""


@dataclass(frozen=True, slots=True)
class GrantCallback:
    """Either a reference and its hash (RFC 9635 section 4.2.1), or the wallet's unsigned word that
    there is none.
    """

    interact_ref: str = ""
    hash: str = ""
    result: str | None = None


def sent_by_form(request: Request) -> bool:
    media_type = request.headers.get("content-type", "").partition(";")[0]
    return media_type.strip().lower() == FORM


def form_post(request: Request) -> FormPost | None:
    """The form that `request` posts, once `submission` has begun to read it."""
    found: FormPost | None = getattr(request.state, "form_post", None)
    return found


async def submission(request: Request, services: Injected, session_id: str) -> Submission:
    """A dependency. Raises what `json_object` and `validated` raise, ParameterInvalid for a doubled
    field.
    """
    if not sent_by_form(request):
        body = validated(WalletForm, await json_object(request))
        return Submission(body.wallet_address, by_form=False)
    request.state.form_post = FormPost(services, session_id, "")
    fields = _form_fields(await body_bytes(request))
    typed = fields.get("wallet_address", "")[:TYPED_SHOWN]
    request.state.form_post = FormPost(services, session_id, typed)
    was = fields.pop("was", "")
    if not _UNITS.fullmatch(was):
        raise ParameterInvalid("This is no price.", param="was")
    return Submission(validated(WalletForm, fields).wallet_address, by_form=True, was=was)


async def grant_callback(request: Request) -> GrantCallback:
    """A dependency. A reference with its hash proves itself and wins over any `result` beside it.

    Raises CallbackInvalid where a parameter is missing or doubled.
    """
    query = request.query_params
    if any(len(query.getlist(name)) > 1 for name in _CALLBACK_NAMES):
        raise CallbackInvalid("The wallet's answer has a parameter twice.")
    interact_ref, presented = query.get("interact_ref", ""), query.get("hash", "")
    if interact_ref and presented:
        return GrantCallback(interact_ref=interact_ref, hash=presented)
    if interact_ref or presented or not query.get("result"):
        raise CallbackInvalid("The wallet's answer is incomplete.")
    return GrantCallback(result=query["result"])


def _form_fields(raw: bytes) -> dict[str, Any]:
    """What is not UTF-8 becomes U+FFFD, which no wallet address may hold."""
    pairs = parse_qsl(raw.decode("utf-8", "replace"), keep_blank_values=True, errors="replace")
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise ParameterInvalid("This field is given twice.", param=name[:PARAM_MAX])
        fields[name] = value
    return fields


Submitted = Annotated[Submission, Depends(submission)]
Returned = Annotated[GrantCallback, Depends(grant_callback)]
