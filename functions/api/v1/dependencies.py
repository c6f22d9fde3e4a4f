"""Dependencies of the routes of /v1: keys in two forms, parameters in two."""

from __future__ import annotations

import base64
import binascii
from functools import partial
from typing import Annotated

from fastapi import Depends, Header, Request

from api import refusals
from api.dependencies import Injected, services
from api.v1.forms import Leaf, from_form, from_json
from checkout import wiring
from checkout.domain.ground.errors import ContentTypeInvalid, ParameterInvalid, PermissionMissing
from checkout.domain.ground.strict_json import parse_object
from checkout.domain.merchant.record import ApiKey
from checkout.domain.stripe.objects import account_id
from checkout.flows.merchant import api_keys
from checkout.services import DashboardServices
from checkout.web import body_bytes, require_json

__all__ = [
    "Body",
    "IdempotencyKey",
    "Injected",
    "Key",
    "Managing",
    "Query",
    "managing",
    "services",
]

_FORM = "application/x-www-form-urlencoded"
_JSON = "application/json"
# Both name the account for which Stripe would act.
_OTHER_ACCOUNT = ("Stripe-Account", "Stripe-Context")


async def managing() -> DashboardServices:
    """Return the services of this process, including those for a merchant's own records."""
    return wiring.dashboard_services()


Managing = Annotated[DashboardServices, Depends(managing)]


async def api_key(
    injected: Injected, request: Request, authorization: Annotated[str | None, Header()] = None
) -> ApiKey:
    """Return the key of a Bearer token or of a Basic user name.

    Raises as `authenticate` does, and PermissionMissing for a request in another account's name:
    its money would go to this key's wallet. The key's own account is accepted, as at Stripe.
    """
    key = api_keys.authenticate(
        injected,
        _bearer(authorization),
        request.method,
        request.scope["route"].path,
        known=partial(refusals.remember, injected, request),
    )
    own = account_id(key.merchant)
    for name in _OTHER_ACCOUNT:
        if request.headers.get(name, own) != own:
            raise PermissionMissing(
                f"There are no connected accounts here: send no header {name}, and the API key of "
                "the merchant who is to be paid."
            )
    return key


async def query(request: Request) -> list[Leaf]:
    """Return the parameters of the query. A body is not read."""
    return from_form(request.url.query)


async def body(request: Request) -> list[Leaf]:
    """Return the parameters of the body, a form or JSON, which may be empty.

    Raises ContentTypeInvalid, BodyTooLarge, InvalidJson, ParameterInvalid.
    """
    raw = await body_bytes(request)
    sent = request.headers.get("content-type", "")
    if request.url.query:
        raise ParameterInvalid("Send the parameters in the body.")
    if not raw:
        return []
    if sent.partition(";")[0].strip().lower() == _FORM:
        try:
            return from_form(raw.decode("ascii"))
        except UnicodeDecodeError:
            raise ParameterInvalid("The parameters are not form-encoded.") from None
    try:
        require_json(sent)
    except ContentTypeInvalid:
        if sent.partition(";")[0].strip().lower() == _JSON:
            raise  # it is about the charset
        raise ContentTypeInvalid(f"Send the body as {_FORM} or {_JSON}.") from None
    return from_json(parse_object(raw))


Key = Annotated[ApiKey, Depends(api_key)]
IdempotencyKey = Annotated[str | None, Header()]
Query = Annotated[list[Leaf], Depends(query)]
Body = Annotated[list[Leaf], Depends(body)]


def _bearer(authorization: str | None) -> str | None:
    """Turn `Basic …` with the key as user name (RFC 7617) into `Bearer …`, if it is one."""
    scheme, _, credentials = (authorization or "").strip().partition(" ")
    if scheme.lower() != "basic":
        return authorization
    try:
        user = base64.b64decode(credentials.strip(), validate=True).decode().partition(":")[0]
    except (binascii.Error, UnicodeDecodeError):
        return None
    return f"Bearer {user}"
