"""The page on which members choose their notices by e-mail, and confirm their address.

Only members get notices; API keys do not.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Depends, Response

from checkout.domain.ground.errors import PermissionMissing, ResourceMissing
from checkout.domain.ground.grammar import EMAIL_MAX
from checkout.domain.ground.languages import LANGUAGES
from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.notices import Pace, Topic
from checkout.domain.merchant.people import Member, Right
from checkout.domain.merchant.reach import Effect, refusal
from checkout.flows import mailing, merchants, notices
from checkout.flows.idempotency import Reserve
from checkout.flows.notices import Chosen
from checkout.services import DashboardServices
from dashboard.dependencies import Form, Page, PageRequest
from dashboard.forms import Fields
from dashboard.rendering import page, see
from dashboard.routing import PageRouter
from dashboard.texts import PACE, TOPIC

router = PageRouter(prefix="/notices", section=("/notices", "Notices"))
_SAVED: Final = "/notices?saved=1"


class NoticesForm(Fields):
    """The member's choice. Each chosen topic is a separate field."""

    email: str
    pace: str
    language: str


async def person(request: Page) -> Member:
    """Return the member. Raise PermissionMissing for a key."""
    if not isinstance(request.key, Member):
        raise PermissionMissing("Notices go to people: sign in with your passkey.")
    return request.key


async def addressee(request: Page) -> Member:
    """Return the member who follows an e-mailed link.

    Raise ResourceMissing for a key, because no key gets an e-mailed link.
    """
    if not isinstance(request.key, Member):
        raise ResourceMissing("No such link. Sign in as the person who got it.")
    return request.key


Person = Annotated[Member, Depends(person)]
Addressee = Annotated[Member, Depends(addressee)]


def _page(request: PageRequest, *, alert: str | None = None, status: int = 200) -> Response:
    services, key = request.services, request.key
    member = key if isinstance(key, Member) else None
    merchant = merchants.get(services.merchants, key.merchant)
    return page(
        request.http,
        "notices.html",
        status=status,
        section="/notices",
        shown=_shown(services, member, request.form or None) if member else None,
        sends=services.mail is not None,
        refusal=refusal(merchant, Effect.CONFIRMATION),
        saved="saved" in request.http.query_params and alert is None,
        alert=alert,
        topics=[(each.value, TOPIC[each]) for each in Topic],
        paces=[(each.value, PACE[each]) for each in Pace],
        languages=LANGUAGES.items(),
        email_max=EMAIL_MAX,
    )


@router.page("", Door(Right.READ, "one's own notices"))
async def notices_page(request: Page) -> Response:
    return _page(request)


@router.form("", Door(Right.READ, "e-mail to an address of one's own"), again=_page)
async def choose(request: Form, member: Person) -> Response:
    """Store the choice, and send a confirmation link if the address is new."""
    from pay.emails import confirmation  # loaded here, because most visits send no e-mail

    services, typed = request.services, request.read(NoticesForm)

    def act(reserve: Reserve[Chosen] | None) -> Chosen:
        return notices.choose(
            services,
            member,
            client=request.client,
            address=typed.email,
            topics=[each for each in Topic if f"topic-{each}" in request.form],
            pace=Pace.DAILY if typed.pace == Pace.DAILY else Pace.AT_ONCE,
            language=typed.language,
            reserve=reserve,
        )

    done = request.once(act, lambda _: _SAVED)
    stored, token = done.made or (None, None)
    if token and stored and stored.asked is not None and services.mail is not None:
        merchant = merchants.get(services.merchants, member.merchant)
        link = f"{services.base_url}/dashboard/notices/confirm/{token}"
        letter = confirmation(stored.asked, language=stored.language, page=link)
        mailing.send(services.mail, merchant, Effect.CONFIRMATION, letter)
    return see(request.visit, _SAVED)


@router.form("/stop", Door(Right.READ, "one's own notices"), again=_page)
async def stop(request: Form, member: Person) -> Response:
    notices.stop(request.services, member)
    return see(request.visit, _SAVED)


@router.page("/confirm/{token}", Door(Right.READ, "one's own notices"))
async def confirm_page(request: Page, _: Addressee, token: str) -> Response:
    """Show a form to confirm the address, so that programs that open links confirm nothing."""
    return page(request.http, "notices_confirm.html", section="/notices", token=token)


@router.form("/confirm/{token}", Door(Right.READ, "e-mail to an address of one's own"), again=_page)
async def confirm(request: Form, member: Addressee, token: str) -> Response:
    notices.confirm(request.services, member, token)
    return see(request.visit, _SAVED)


def _shown(
    services: DashboardServices, member: Member, typed: dict[str, str] | None
) -> dict[str, Any]:
    """Return the choice, stored or typed. `asked` in it is an address that is not confirmed yet."""
    stored = notices.of(services, member)
    waits = stored is not None and stored.waits_at(services.clock.now())
    asked = stored.asked if stored and waits else None
    address = stored.address if stored else None
    choice: dict[str, Any] = {
        "email": asked or address or "",
        "pace": stored.pace if stored else "at_once",
        "language": stored.language if stored else "en",
        "topics": stored.topics if stored else tuple(Topic),
    }
    if typed is not None:
        choice |= {"email": typed.get("email", ""), "pace": typed.get("pace", "")}
        choice["language"] = typed.get("language") or choice["language"]
        choice["topics"] = [each for each in Topic if f"topic-{each}" in typed]
    return {**choice, "address": address, "asked": asked, "on": stored is not None}
