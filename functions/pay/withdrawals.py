"""The page on which a customer withdraws from a purchase, in two steps.

To withdraw is to declare that one does not want to keep the purchase. The first step shows the
purchase and asks for the customer's name. In the second step the customer confirms the withdrawal,
and only then is it stored. Afterwards the page shows the acknowledgement, which is also sent by
e-mail if the operator has configured a sender. The page needs no script.
"""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request, Response

from checkout.domain.ground.addresses import Fault
from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.merchant.record import Merchant
from checkout.domain.session import customer_details
from checkout.domain.session.customer_details import NONE_GIVEN, CustomerDetails
from checkout.domain.session.record import Session, Status
from checkout.domain.session.withdrawal import ASKED, Withdrawal, last_moment
from checkout.flows import merchants
from checkout.flows.session import details, lookup, withdrawals
from checkout.pages import form_fields, see_other
from checkout.services import PayServices
from pay import browser, emails, forms, pages, render
from pay.dependencies import Injected, counted
from pay.forms import BODY_MAX
from pay.headers import READ, CustomersOnly
from pay.view import moment

router = APIRouter(prefix="/pay/{session_id}/withdrawal", route_class=CustomersOnly)
_CONFIRMED: Final = "confirmed"  # the field of the second step
_CHANGE: Final = "change"  # the button that leads back to the first step


@router.api_route("", methods=READ)
async def withdraw(services: Injected, request: Request, session_id: str) -> Response:
    """Show the first step, or the acknowledgement if a withdrawal was filed."""
    counted(services, request)
    session, merchant = _paid(services, session_id)
    filed = withdrawals.find(services, merchant, session)
    if filed is not None:
        return _page(services, request, session, merchant, filed=filed)
    given = details.opened(services.vault, merchant, session)
    known = given if browser.has_paid(services, request, session, merchant) else NONE_GIVEN
    typed = {"name": known.name or "", "email": known.email or ""}
    return _page(services, request, session, merchant, typed=typed, hidden=known != given)


@router.post("")
async def declare(services: Injected, request: Request, session_id: str) -> Response:
    """Show the second step, or file the confirmed withdrawal."""
    counted(services, request)
    session, merchant = _paid(services, session_id)
    typed = await form_fields(request, most=BODY_MAX)
    path = request.url.path
    if withdrawals.find(services, merchant, session) is not None:
        return see_other(path)
    if not withdrawals.is_open(services, merchant, session):
        return _page(services, request, session, merchant)
    said, wrong = customer_details.checked(typed, ASKED)
    if wrong or _CHANGE in typed:
        return _page(services, request, session, merchant, typed=typed, wrong=wrong)
    if _CONFIRMED not in typed:
        return _page(services, request, session, merchant, said=said)
    if not browser.asked_here(services, request):
        return _page(services, request, session, merchant, said=said, unproven=True)
    language = pages.reader_of(request, session=session, default=merchant.locale).tag
    filed, first = withdrawals.file(services, merchant, session, said, language=language)
    if not first:
        return see_other(path)
    # The page shows the same acknowledgement as the e-mail. If the e-mail cannot be sent now, the
    # scheduled sweep sends it later.
    withdrawals.acknowledge(services, merchant, session, filed, emails.acknowledgement)
    return browser.filed(services, see_other(path), session, merchant)


def _paid(services: PayServices, session_id: str) -> tuple[Session, Merchant]:
    """Return the session and its merchant. Raise ResourceMissing if it allows no withdrawal."""
    session = lookup.load(services, session_id)
    merchant = merchants.get(services.merchants, session.merchant)
    if session.status is Status.COMPLETED and not merchant.withdrawal_days:
        # The cached merchant may be a minute old, and the shop may just have begun to allow
        # withdrawals.
        merchant = services.merchants.latest(session.merchant) or merchant
    if last_moment(session, merchant.withdrawal_days) is None:
        raise ResourceMissing(withdrawals.NONE)
    return session, merchant


def _page(
    services: PayServices,
    request: Request,
    session: Session,
    merchant: Merchant,
    *,
    typed: dict[str, str] | None = None,
    wrong: dict[str, Fault] | None = None,
    said: CustomerDetails | None = None,
    filed: Withdrawal | None = None,
    hidden: bool = False,
    unproven: bool = False,
) -> Response:
    """Return the page of a step.

    With `said`, the page asks the customer to confirm this statement. With `filed`, the page shows
    the acknowledgement of this withdrawal. `hidden` means that the customer's details are known but
    must not be shown to this browser. `unproven` means that a page of another site may have sent
    the form.
    """
    now_shown = pages.seen(services, request, session)
    reads = now_shown.reader
    until = last_moment(session, merchant.withdrawal_days)
    asks = filed is None and said is None and withdrawals.is_open(services, merchant, session)
    if filed is not None:
        said = details.opened_said(services.vault, merchant, filed)
        if not (
            browser.has_paid(services, request, session, merchant)
            or browser.has_filed(services, request, session, merchant)
        ):
            hidden, said = said != NONE_GIVEN, said.masked
    values: dict[str, Any] = {
        "said": said,
        "filed": moment(filed.at, reads) if filed else None,
        "until": moment(until, reads) if until else None,
        "groups": forms.groups(ASKED, reads, "", typed or {}, wrong or {}) if asks else [],
        "wrong": wrong,
        "hidden": hidden,
        "unproven": unproven,
        "path": request.url.path,
    }
    status = 403 if unproven else 400 if wrong else 200
    return render.page(request, reads, "withdrawal.html", s=now_shown, status=status, **values)
