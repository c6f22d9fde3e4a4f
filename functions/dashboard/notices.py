"""The page on which members choose what they are told by e-mail, and confirm their address.

An API key has no notices: it is nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter, Request, Response

from checkout.clients import client_of
from checkout.domain.errors import PermissionMissing, ResourceMissing
from checkout.domain.grammar import EMAIL_MAX
from checkout.domain.languages import LANGUAGES
from checkout.domain.notices import Pace, Topic
from checkout.domain.people import Actor, Member
from checkout.domain.reach import Effect, refusal
from checkout.flows import mailing, merchants
from checkout.flows.merchant import notices
from checkout.ports.services import DashboardServices
from dashboard.dependencies import Form, Injected, Key, Visited, once
from dashboard.rendering import page, saved
from dashboard.texts import PACE, TOPIC

router = APIRouter(prefix="/notices")
_SAVED: Final = "/notices?saved=1"


@dataclass(frozen=True, slots=True)
class NoticesShown:
    """The choice, as stored or as typed. `asked` waits for its confirmation."""

    email: str
    address: str | None
    asked: str | None
    topics: frozenset[str]
    pace: str
    language: str
    on: bool


@router.get("")
async def notices_page(services: Injected, request: Request, key: Key) -> Response:
    return _page(services, request, key)


@router.post("")
async def choose(
    services: Injected, visit: Visited, request: Request, key: Key, form: Form
) -> Response:
    """Store the choice, and send a link to an address that is new."""
    member = _member(key)

    def save() -> None:
        from pay.notices import confirmation  # most visits send nothing

        done = once(
            services,
            request,
            member,
            form,
            lambda reserve: notices.choose(
                services,
                member,
                client=client_of(request, services.edge_secret),
                address=form.get("email", ""),
                topics=[each for each in Topic if f"topic-{each}" in form],
                pace=Pace.DAILY if form.get("pace") == Pace.DAILY else Pace.AT_ONCE,
                language=form.get("language", ""),
                reserve=reserve,
            ),
            lambda _: _SAVED,
        )
        stored, token = done.made or (None, None)
        if token and stored and stored.asked is not None and services.mail is not None:
            merchant = merchants.get(services.merchants, key.merchant)
            link = f"{services.base_url}/dashboard/notices/confirm/{token}"
            letter = confirmation(stored.asked, language=stored.language, page=link)
            mailing.send(services.mail, merchant, Effect.CONFIRMATION, letter)

    return saved(save, visit, _SAVED, _page, services, request, key, form)


@router.post("/stop")
async def stop(services: Injected, visit: Visited, request: Request, key: Key, _: Form) -> Response:
    member = _member(key)

    def save() -> None:
        notices.stop(services, member)

    return saved(save, visit, _SAVED, _page, services, request, key)


@router.get("/confirm/{token}")
async def confirm_page(_: Injected, request: Request, key: Key, token: str) -> Response:
    """Ask for the confirmation: programs that open links of e-mails confirm nothing."""
    _addressee(key)
    return page(request, "notices_confirm.html", section="/notices", token=token)


@router.post("/confirm/{token}")
async def confirm(
    services: Injected, visit: Visited, request: Request, key: Key, token: str, _: Form
) -> Response:
    member = _addressee(key)

    def save() -> None:
        notices.confirm(services, member, token)

    return saved(save, visit, _SAVED, _page, services, request, key)


def _member(key: Actor) -> Member:
    if not isinstance(key, Member):
        raise PermissionMissing("Notices go to people: sign in with your passkey.")
    return key


def _addressee(key: Actor) -> Member:
    """Return the member. A key got no link."""
    if not isinstance(key, Member):
        raise ResourceMissing("No such link. Sign in as the person who got it.")
    return key


def _page(
    services: DashboardServices,
    request: Request,
    key: Actor,
    typed: dict[str, str] | None = None,
    *,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    member = key if isinstance(key, Member) else None
    merchant = merchants.get(services.merchants, key.merchant)
    return page(
        request,
        "notices.html",
        status=status,
        section="/notices",
        shown=_shown(services, member, typed) if member else None,
        sends=services.mail is not None,
        refusal=refusal(merchant, Effect.CONFIRMATION),
        saved="saved" in request.query_params and alert is None,
        alert=alert,
        topics=[(each.value, TOPIC[each]) for each in Topic],
        paces=[(each.value, PACE[each]) for each in Pace],
        languages=LANGUAGES.items(),
        email_max=EMAIL_MAX,
    )


def _shown(
    services: DashboardServices, member: Member, typed: dict[str, str] | None
) -> NoticesShown:
    stored = notices.of(services, member)
    waits = stored is not None and stored.waits_at(services.clock.now())
    asked = stored.asked if stored and waits else None
    address = stored.address if stored else None
    if typed is not None:
        topics = frozenset(each for each in Topic if f"topic-{each}" in typed)
    else:
        topics = frozenset(stored.topics if stored else Topic)
    return NoticesShown(
        email=typed.get("email", "") if typed is not None else asked or address or "",
        address=address,
        asked=asked,
        topics=topics,
        pace=typed.get("pace", "") if typed is not None else (stored.pace if stored else "at_once"),
        language=(typed or {}).get("language") or (stored.language if stored else "en"),
        on=stored is not None,
    )
