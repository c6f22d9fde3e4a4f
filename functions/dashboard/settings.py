"""The settings: the customers' pages with a preview, contact, return hosts and tolerance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from fastapi import APIRouter, Request, Response

from checkout.domain.errors import ResourceMissing
from checkout.domain.languages import LANGUAGES, language_of
from checkout.domain.merchant import NAME_MAX, Merchant
from checkout.domain.money import from_minor_units
from checkout.domain.people import Actor
from checkout.domain.providers import PROVIDERS_MAX, written
from checkout.domain.session import LineItem, Session, Status
from checkout.flows import merchants
from checkout.flows.merchant import settings
from checkout.flows.merchant.settings import HOSTS_MAX, LOGO_MAX
from checkout.open_payments.models import Amount
from checkout.pages import nonce_of, on_success_header
from checkout.ports.services import DashboardServices
from dashboard.dependencies import Form, FormWithFile, Injected, Key, Visited
from dashboard.rendering import page, saved, see
from dashboard.view import USUAL_COLOR, readable

router = APIRouter(prefix="/settings")
SAVED: Final = "/settings?saved=1"
_PREVIEW_POLICY: Final = (
    "default-src 'none'; style-src 'nonce-{nonce}'; img-src 'self' data:; form-action 'none'; "
    "frame-ancestors 'self'; base-uri 'none'"
)
_PREVIEW_PRICE: Final = 1000  # minor units


@dataclass(frozen=True, slots=True)
class SettingsShown:
    """The settings, as stored or as typed.

    `usual` stands for the default colour. `tolerance` is in `unit`s, `tolerated` is the stored
    tolerance as an amount. `offered` names the operator's providers.
    """

    name: str
    color: str
    usual: bool
    locale: str
    hosts: str
    logo: bool
    tolerance: str
    tolerated: str
    unit: str
    contact: str
    website: str
    providers: str
    offered: str


@router.get("")
async def settings_page(services: Injected, request: Request, key: Key) -> Response:
    return _page(services, request, key)


@router.post("")
async def set_look(
    services: Injected, visit: Visited, request: Request, key: Key, form: Form
) -> Response:
    name, locale, color = form.get("name", ""), form.get("locale", ""), _color_of(form)

    def save() -> None:
        settings.look(services, key, name=name, accent_color=color, locale=locale)

    return saved(save, visit, SAVED, _page, services, request, key, form)


@router.post("/return-hosts")
async def set_return_hosts(
    services: Injected, visit: Visited, request: Request, key: Key, form: Form
) -> Response:
    """Limit the hosts of return URLs in new sessions."""

    def save() -> None:
        settings.limit_return_hosts(services, key, form.get("return_hosts", ""))

    return saved(save, visit, SAVED, _page, services, request, key, form)


@router.post("/contact")
async def set_contact(
    services: Injected, visit: Visited, request: Request, key: Key, form: Form
) -> Response:
    contact, website = form.get("contact", ""), form.get("website", "")

    def save() -> None:
        settings.introduce(services, key, contact=contact, website=website)

    return saved(save, visit, SAVED, _page, services, request, key, form)


@router.post("/providers")
async def set_providers(
    services: Injected, visit: Visited, request: Request, key: Key, form: Form
) -> Response:
    """Set the wallet providers that the hosted page offers."""

    def save() -> None:
        settings.offer(services, key, form.get("providers", ""))

    return saved(save, visit, SAVED, _page, services, request, key, form)


@router.post("/tolerance")
async def set_tolerance(
    services: Injected, visit: Visited, request: Request, key: Key, form: Form
) -> Response:
    """Set how much may be missing from a payment by rounding."""

    def save() -> None:
        settings.tolerate(services, key, form.get("tolerance", ""))

    return saved(save, visit, SAVED, _page, services, request, key, form)


@router.get("/logo")
async def logo(services: Injected, key: Key) -> Response:
    found = merchants.get(services.merchants, key.merchant).logo
    if found is None:
        raise ResourceMissing("There is no logo.")
    return Response(found.data, media_type=found.media_type)


@router.post("/logo")
async def put_logo(
    services: Injected, visit: Visited, request: Request, key: Key, form: FormWithFile
) -> Response:

    def save() -> None:
        settings.put_logo(services, key, form.get("logo", b""))

    return saved(save, visit, SAVED, _page, services, request, key)


@router.post("/logo/remove")
async def remove_logo(services: Injected, visit: Visited, key: Key, _: Form) -> Response:
    settings.remove_logo(services, key)
    return see(visit, SAVED)


@router.get("/preview")
async def preview(services: Injected, visit: Visited, request: Request, key: Key) -> Response:
    """Return the customers' page as it would look with the settings in the query string.

    The code of functions/pay renders it, with a sample purchase. Its form does nothing, and it has
    no script. That code is loaded here, because previews are rare.
    """
    from pay import render
    from pay.language import reader
    from pay.pictures import logo_mark
    from pay.view import shown

    query = dict(request.query_params)
    merchant = settings.imagined(
        merchants.get(services.merchants, key.merchant),
        name=query.get("name", ""),
        accent_color=_color_of(query) if {"usual", "accent_color"} & set(query) else None,
        locale=query.get("locale", ""),
    )
    reads = reader(wished=merchant.locale, accepted="", default=None)
    session = _sample(services, merchant)
    seen = shown(
        session,
        merchant,
        reads,
        base_url=services.base_url,
        now=session.created_at,
        providers=services.providers,
    )
    mark = logo_mark(merchant.logo)
    path = f"{visit.home}/settings/logo?v={mark}" if mark else None
    policy = _PREVIEW_POLICY.format(nonce=nonce_of(request))
    on_success_header(request, "content-security-policy", policy)
    return render.page(
        request,
        reads,
        "preview.html",
        s=replace(seen, paths=replace(seen.paths, logo=path), cancel_url=None),
        alert=None,
        typed="",
        at="",
    )


def _page(
    services: DashboardServices,
    request: Request,
    key: Actor,
    typed: dict[str, str] | None = None,
    *,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    merchant = merchants.get(services.merchants, key.merchant)
    return page(
        request,
        "settings.html",
        status=status,
        section="/settings",
        setting=_setting(services, merchant, typed or {}),
        saved="saved" in request.query_params and alert is None,
        behind=settings.keys_behind(services, merchant),
        alert=alert,
        languages=LANGUAGES.items(),
        name_max=NAME_MAX,
        hosts_max=HOSTS_MAX,
        providers_max=PROVIDERS_MAX,
        logo_kib=LOGO_MAX // 1024,
    )


def _color_of(form: dict[str, str]) -> str:
    """Return the accent colour of a form, or "" for the default."""
    return "" if "usual" in form else form.get("accent_color", "")


def _setting(
    services: DashboardServices, merchant: Merchant, typed: dict[str, str]
) -> SettingsShown:
    looks = "name" in typed
    color = _color_of(typed) if looks else merchant.accent_color
    return SettingsShown(
        name=typed["name"] if looks else merchant.name,
        color=color or USUAL_COLOR,
        usual=not color,
        locale=language_of((typed if looks else {}).get("locale") or merchant.locale or "") or "en",
        hosts=typed.get("return_hosts", "\n".join(merchant.return_hosts)),
        logo=merchant.logo is not None,
        tolerance=typed.get("tolerance", str(merchant.tolerance)),
        tolerated=_units(merchant, merchant.tolerance),
        unit=_units(merchant, 1),
        contact=typed.get("contact", merchant.contact or ""),
        website=typed.get("website", merchant.website or ""),
        providers=typed.get("providers", written(merchant.providers)),
        offered=", ".join(each.name for each in services.providers),
    )


def _units(merchant: Merchant, value: int) -> str:
    """Return units of the merchant's wallet as an amount for people."""
    return readable(Amount(value, merchant.asset_code, merchant.asset_scale))


def _sample(services: DashboardServices, merchant: Merchant) -> Session:
    """Return an open session for two items. It is not stored."""
    now, currency = services.clock.now(), merchant.asset_code.lower()
    return Session(
        id="cs_" + "0" * 22,
        merchant=merchant.id,
        status=Status.OPEN,
        version=1,
        writer="",
        created_at=now,
        updated_at=now,
        expires_at=now + timedelta(days=1),
        amount_total=2 * _PREVIEW_PRICE,
        currency=currency,
        receive=from_minor_units(
            2 * _PREVIEW_PRICE, currency=currency, wallet_scale=merchant.asset_scale
        ),
        line_items=(LineItem(currency, "Tea", None, _PREVIEW_PRICE, 2),),
        metadata_json="{}",
        success_url="",
        cancel_url="",
    )
