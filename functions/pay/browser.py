"""Bind an approval to the browser that began it, with a cookie.

Somebody could send a customer the link to a wallet's approval page, so that the customer pays for a
purchase that they have never seen. To prevent this, a customer who returns from the wallet in a
browser without the cookie must confirm the payment first (RFC 9635, "Session Management for
Interaction Finish Methods").

The browser that submits the wallet gets the cookie. The QR code on the page hands the approval over
to a phone. The link in the code contains a proof, and the phone gets the cookie in exchange for the
proof. A page of another site could open this link without the phone's owner noticing. So the phone
gets the cookie only if its browser reports that no other site led to the link.

Both browsers also get a second cookie, which is kept after the payment. The second cookie proves
that the browser made this attempt to pay. If the attempt has paid, only a browser with this proof
sees the customer's details. Other people can know the page's address, too: the shop, for example,
can get the session's id in its return URL. A browser that files a withdrawal gets a cookie of this
kind for it.
"""

from __future__ import annotations

import hmac
from typing import Final

from fastapi import Request, Response

from checkout.domain.ground.grammar import is_http
from checkout.domain.ground.ids import session_ref
from checkout.domain.merchant.record import Merchant
from checkout.domain.payment.attempt import Outcome
from checkout.domain.session.attempts import attempts_of
from checkout.domain.session.record import Session
from checkout.flows.payment import sealed
from checkout.flows.payment.sealed import Proof
from checkout.flows.session import details
from checkout.pages import see_other
from checkout.services import PayServices
from open_payments.urls import split
from pay.view import paths_of

DEVICE: Final = "device"  # the parameter of the hand-over link that contains the proof
# A browser can show the details for this many seconds after the wallet was submitted or the
# withdrawal was filed. During the same time, the page can send the receipt by e-mail.
SHOWN_FOR: Final = 30 * 86_400
_FILED: Final = "withdrawal"
_PAID: Final = frozenset({Outcome.PAID, Outcome.PAID_IN_PART})


def presented(services: PayServices, request: Request, session_id: str) -> str:
    """Return the proof in this session's cookie, or "" without a cookie."""
    return request.cookies.get(_name(services, session_id), "")


def bind(
    services: PayServices, response: Response, session: Session, *, verified: bool = False
) -> Response:
    """Add the cookie to `response`, so that the customer need not confirm the payment on return.

    Browsers send the cookie when a wallet redirects back to us (SameSite=Lax).

    Also add a second cookie: it proves that this browser made the attempt, and stays valid when no
    approval is pending any more. If the browser's approval was `verified`, the second cookie is
    added even if no approval is pending now.
    """
    grant = sealed.pending_grant(services.vault, session)
    if grant is not None:
        left = session.expires_at - services.clock.now()
        keep(
            services,
            response,
            _name(services, session.id),
            grant.proof(session.id, Proof.BROWSER),
            seconds=max(0, int(left.total_seconds())),
        )
    if grant is not None or verified:
        merchant = services.merchants.get(session.merchant)
        attempts = attempts_of(session)
        if merchant is not None and attempts:
            _remember(services, response, session, merchant, _attempt(attempts[-1].number))
    return response


def filed(
    services: PayServices, response: Response, session: Session, merchant: Merchant
) -> Response:
    """Add the cookie that lets this browser see the statement of the withdrawal that it filed."""
    _remember(services, response, session, merchant, _FILED)
    return response


def has_paid(services: PayServices, request: Request, session: Session, merchant: Merchant) -> bool:
    """Return whether this browser began the attempt that paid, or took it over by QR code."""
    attempts = attempts_of(session)
    if not attempts or attempts[-1].outcome not in _PAID:
        return False  # the newest attempt has not paid, so the money may be from anybody
    act = _attempt(attempts[-1].number)
    return _proves(services, request, session, merchant, act)


def has_filed(
    services: PayServices, request: Request, session: Session, merchant: Merchant
) -> bool:
    """Return whether this browser filed the session's withdrawal."""
    return _proves(services, request, session, merchant, _FILED)


def _attempt(number: int) -> str:
    return f"attempt {number}"


def _remember(
    services: PayServices, response: Response, session: Session, merchant: Merchant, act: str
) -> None:
    """Add the cookie that proves `act`, if the session has details, or can still get details.

    `act` is an attempt to pay or a withdrawal. Browsers send the cookie only to this session's
    pages, so that a request does not contain the cookies of all earlier purchases.
    """
    if session.customer_details is None and not merchant.withdrawal_days:
        return
    proof = details.browser_proof(services.vault, merchant, session.id, act)
    if proof is not None:
        name = _shown_name(services, session.id, act)
        page = paths_of(session, services.base_url).page
        keep(services, response, name, proof, seconds=SHOWN_FOR, path=page)


def _proves(
    services: PayServices, request: Request, session: Session, merchant: Merchant, act: str
) -> bool:
    presented = request.cookies.get(_shown_name(services, session.id, act))
    if presented is None:
        return False
    proof = details.browser_proof(services.vault, merchant, session.id, act)
    return proof is not None and hmac.compare_digest(presented.encode(), proof.encode())


def link(services: PayServices, request: Request, session: Session) -> str:
    """Return the URL with which another device opens this page.

    If this browser began the approval, the URL hands the approval over to the other device.
    """
    url = f"{services.base_url}/pay/{session.id}"
    grant = sealed.pending_grant(services.vault, session)
    cookie = presented(services, request, session.id)
    if grant is None or not grant.proves(cookie, session.id, Proof.BROWSER):
        return url
    return f"{url}?{DEVICE}={grant.proof(session.id, Proof.DEVICE)}"


def taken_over(services: PayServices, request: Request, session: Session, proof: str) -> Response:
    """Redirect to the page's address without the `proof`. Set the cookie if the proof is right.

    Exception: if a page of another site may have opened the link, the cookie is not set. The
    customer must then confirm the payment on return from the wallet.
    """
    response = see_other(paths_of(session, services.base_url).page)
    grant = sealed.pending_grant(services.vault, session)
    proven = grant is not None and grant.proves(proof, session.id, Proof.DEVICE)
    if proven and _opened_by_customer(request):
        bind(services, response, session)
    return response


def asked_here(services: PayServices, request: Request) -> bool:
    """Return whether the browser reports that our own page sent the form.

    Browsers report this in Fetch Metadata headers. Older browsers send only the page's Origin.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    return _is_own(services, request.headers.get("origin"))


def _opened_by_customer(request: Request) -> bool:
    """Return whether the browser reports that no page of another site opened this URL."""
    return request.headers.get("sec-fetch-site") in ("none", "same-origin")


def _is_own(services: PayServices, origin: str | None) -> bool:
    """Return whether an Origin header names our own origin or is missing."""
    base = split(services.base_url)
    return origin in (None, f"{base.scheme}://{base.authority}")


def cookie_name(services: PayServices, name: str, *, one_page: bool = False) -> str:
    """Return the cookie's name with the prefix that makes browsers insist on TLS.

    Browsers accept the prefix `__Host-` only from our own host, and only with the path "/". So a
    cookie for `one_page` has the prefix `__Secure-`. Under `make dev` there is no TLS, and no
    prefix.
    """
    prefix = "__Secure-" if one_page else "__Host-"
    return name if is_http(services.base_url) else f"{prefix}{name}"


def keep(
    services: PayServices,
    response: Response,
    name: str,
    value: str,
    *,
    seconds: int,
    path: str = "/",
) -> None:
    """Add a cookie that scripts cannot read. `name` comes from `cookie_name`."""
    response.set_cookie(
        name,
        value,
        max_age=seconds,
        path=path,
        secure=not is_http(services.base_url),
        httponly=True,
        samesite="lax",
    )


def _name(services: PayServices, session_id: str) -> str:
    return cookie_name(services, f"pay-{session_ref(session_id)}")


def _shown_name(services: PayServices, session_id: str, act: str) -> str:
    kind = "filed" if act == _FILED else "paid"
    return cookie_name(services, f"{kind}-{session_ref(session_id)}", one_page=True)
