"""Bind an approval to the browsers that it was handed to, by a cookie.

The browser that submits the wallet gets the cookie. The QR code that it shows hands the approval
over to a phone: its link has a proof of its own, for which the phone gets the cookie too. Any other
browser that returns from the wallet is asked first (RFC 9635, "Session Management for Interaction
Finish Methods"): a link to approve at the wallet, sent to somebody, must not make them pay unseen.
"""

from __future__ import annotations

from typing import Final

from fastapi import Request, Response

from checkout.domain.grammar import is_http
from checkout.domain.session import Session
from checkout.flows.payment import sealed
from checkout.flows.payment.sealed import Proof
from checkout.pages import see_other
from checkout.ports.services import PayServices
from checkout.telemetry import session_ref
from pay.view import paths_of

DEVICE: Final = "device"  # the parameter of a link that hands over


def presented(services: PayServices, request: Request, session_id: str) -> str:
    """Return the proof in this session's cookie, "" without one."""
    return request.cookies.get(_name(services, session_id), "")


def bind(services: PayServices, response: Response, session: Session) -> Response:
    """Add the cookie to `response`, so that the browser can return without being asked.

    A browser sends it along when a wallet leads back to us (SameSite=Lax). The prefix `__Host-`
    makes it refuse the cookie from any other host and without TLS; the local world has no TLS.
    """
    grant = sealed.pending_grant(services.vault, session)
    if grant is not None:
        left = session.expires_at - services.clock.now()
        response.set_cookie(
            _name(services, session.id),
            grant.proof(session.id, Proof.BROWSER),
            max_age=max(0, int(left.total_seconds())),
            secure=not is_http(services.base_url),
            httponly=True,
            samesite="lax",
        )
    return response


def link(services: PayServices, request: Request, session: Session) -> str:
    """Return the page's URL for another device; it hands the approval over if it is this one's."""
    url = f"{services.base_url}/pay/{session.id}"
    grant = sealed.pending_grant(services.vault, session)
    cookie = presented(services, request, session.id)
    if grant is None or not grant.proves(cookie, session.id, Proof.BROWSER):
        return url
    return f"{url}?{DEVICE}={grant.proof(session.id, Proof.DEVICE)}"


def taken_over(services: PayServices, session: Session, proof: str) -> Response:
    """Return the redirect to the page without `proof`, with the cookie if the proof is right."""
    response = see_other(paths_of(session, services.base_url).page)
    grant = sealed.pending_grant(services.vault, session)
    if grant is not None and grant.proves(proof, session.id, Proof.DEVICE):
        bind(services, response, session)
    return response


def asked_here(request: Request) -> bool:
    """Return whether a form of ours was sent, as far as the browser tells (Fetch Metadata)."""
    return request.headers.get("sec-fetch-site", "same-origin") == "same-origin"


def _name(services: PayServices, session_id: str) -> str:
    prefix = "" if is_http(services.base_url) else "__Host-"
    return f"{prefix}pay-{session_ref(session_id)}"
