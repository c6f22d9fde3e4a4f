"""Serve the client documents of merchants without a key file, to wallet providers.

They are public. Providers read the keys at each signed request, and a payment waits for the answer.
So these routes are in this function, which never waits for a wallet; a merchant is read once a
minute in each process; and caches may keep the answers for a minute. Requests are not counted
against their client: a provider asks from few addresses for all its customers.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse

from checkout import wiring
from checkout.flows.merchant import client_documents
from checkout.services import Services
from checkout.web import may_be_kept

router = APIRouter(prefix="/clients/{client_id}", include_in_schema=False)
READ: Final = ["GET", "HEAD"]
_KEPT: Final = "public, max-age=60"
_JSON: Final = frozenset({"application/json", "application/*", "*/*"})


async def services() -> Services:
    """Return the services of this process, whose merchants may be a minute old."""
    return wiring.client_services()


Injected = Annotated[Services, Depends(services)]


@router.api_route("", methods=READ)
async def document(services: Injected, request: Request, client_id: str) -> Response:
    """Return the wallet address document of the client."""
    return _kept(
        request, client_documents.document(services.merchants, services.base_url, client_id)
    )


@router.api_route("/jwks.json", methods=READ)
async def jwks(services: Injected, request: Request, client_id: str) -> Response:
    """Return the public keys of the client."""
    return _kept(request, client_documents.jwks(services.merchants, client_id))


def _kept(request: Request, answer: dict[str, Any]) -> Response:
    """Return `answer`, cacheable; 406 for a reader that does not accept JSON, as at wallets."""
    accepted = request.headers.get("accept") or "*/*"
    if all(each.split(";")[0].strip().lower() not in _JSON for each in accepted.split(",")):
        return Response("This address has JSON only.", 406, media_type="text/plain")
    may_be_kept(request, _KEPT)
    return JSONResponse(answer)
