"""The settings: the customers' pages with a preview, and what the shop allows."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Final

from fastapi import Response

from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.ground.languages import LANGUAGES, language_of
from checkout.domain.ground.money import from_minor_units
from checkout.domain.ground.pictures import SIDE_MAX
from checkout.domain.ground.providers import LOGO_MAX as PROVIDER_LOGO_MAX
from checkout.domain.ground.providers import PROVIDERS_MAX, Provider
from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import Right
from checkout.domain.merchant.record import COMPANY_MAX, NAME_MAX, Footer, Merchant
from checkout.domain.session.record import LineItem, Session, Status
from checkout.flows import merchants
from checkout.flows.merchant import settings
from checkout.flows.merchant.settings import HOSTS_MAX, LOGO_MAX
from checkout.open_payments.models import Amount
from checkout.pages import use_policy
from checkout.services import DashboardServices
from dashboard.dependencies import FormWithFile, Page, PageRequest
from dashboard.rendering import page, see
from dashboard.routing import PageRouter
from dashboard.view import USUAL_COLOR, readable

router = PageRouter(prefix="/settings", section=("/settings", "Settings"))
SAVED: Final = "/settings?saved=1"
_PREVIEW_POLICY: Final = (
    "default-src 'none'; style-src 'nonce-{nonce}'; img-src 'self' data:; form-action 'none'; "
    "frame-ancestors 'self'; base-uri 'none'"
)
# The fields of a provider, in the order of its line (domain/ground/providers.py).
_FIELDS: Final = ("name", "form", "website", "countries", "logo")
_PREVIEW_PRICE: Final = 1000  # minor units


@dataclass(frozen=True, slots=True)
class ProviderShown:
    """A provider as stored or as typed; `asks` is what its customers are asked for.

    The `new` one is there to be filled in. An `open` one is shown with its fields.
    """

    name: str
    form: str
    website: str
    countries: str
    logo: str
    logo_url: str | None = None
    asks: str = ""
    new: bool = False
    open: bool = False


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
    withdrawal_days: str
    contact: str
    website: str
    footer: dict[str, str]
    providers: list[ProviderShown]
    offered: str


def _page(request: PageRequest, *, alert: str | None = None, status: int = 200) -> Response:
    services = request.services
    merchant = merchants.get(services.merchants, request.key.merchant)
    return page(
        request.http,
        "settings.html",
        status=status,
        section="/settings",
        setting=_setting(services, merchant, request.form),
        saved="saved" in request.http.query_params and alert is None,
        behind=settings.keys_behind(services, merchant),
        alert=alert,
        languages=LANGUAGES.items(),
        name_max=NAME_MAX,
        company_max=COMPANY_MAX,
        hosts_max=HOSTS_MAX,
        providers_max=PROVIDERS_MAX,
        provider_logo_max=PROVIDER_LOGO_MAX,
        logo_text=PROVIDER_LOGO_MAX * 4 // 3 + 4,
        logo_kib=LOGO_MAX // 1024,
        logo_side=SIDE_MAX,
    )


@router.page("", Door(Right.READ, "settings"))
async def settings_page(request: Page) -> Response:
    return _page(request)


@router.form(
    "",
    Door(Right.MANAGE, "what customers see, and where they are sent back to"),
    again=_page,
)
async def save_settings(request: FormWithFile) -> Response:
    """Save all settings of the form, or none. A setting that it does not have stays.

    The logo is a write of its own, the last one, so it is looked at before the first.
    """
    services, key, logo = request.services, request.key, request.file
    if logo:
        settings.logo_of(logo)
    settings.change(services, key, _typed(request.form))
    if logo:
        settings.put_logo(services, key, logo)
    elif "logo_remove" in request.form:
        settings.remove_logo(services, key)
    return see(request.visit, SAVED)


@router.page("/logo", Door(Right.READ, "the logo"))
async def logo(request: Page) -> Response:
    found = merchants.get(request.services.merchants, request.key.merchant).logo
    if found is None:
        raise ResourceMissing("There is no logo.")
    return Response(found.data, media_type=found.media_type)


@router.page("/preview", Door(Right.READ, "the page of the customers"))
async def preview(request: Page) -> Response:
    """Return the customers' page as it would look with the settings in the query string.

    The code of functions/pay renders it, with a sample purchase. Its form does nothing, and it has
    no script. That code is loaded here, because previews are rare.
    """
    from pay import render
    from pay.language import reader
    from pay.looks import logo_mark
    from pay.view import shown

    services, query = request.services, dict(request.http.query_params)
    merchant = settings.imagined(
        merchants.get(services.merchants, request.key.merchant),
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
    path = f"{request.visit.home}/settings/logo?v={mark}" if mark else None
    use_policy(request.http, _PREVIEW_POLICY)
    return render.page(
        request.http,
        reads,
        "preview.html",
        s=replace(seen, paths=replace(seen.paths, logo=path), cancel_url=None),
        alert=None,
        typed="",
        at="",
        refused="",
    )


def _typed(form: dict[str, str]) -> dict[str, str]:
    """Return the settings that a form has, as flows/merchant/settings.py names them."""
    typed = dict(form)
    if {"usual", "accent_color"} & set(form):
        typed["accent_color"] = _color_of(form)
    rows = _rows(form)
    if rows:
        kept = [row for number, row in rows.items() if f"provider_{number}_remove" not in form]
        typed["providers"] = "\n".join(" | ".join(row) for row in kept if any(row))
    return typed


def _rows(form: dict[str, str]) -> dict[int, list[str]]:
    """Return the fields of each provider in a form, by its number. None has a line break."""
    return {
        number: [" ".join(form.get(f"provider_{number}_{name}", "").split()) for name in _FIELDS]
        for number in range(1, PROVIDERS_MAX + 2)
        if f"provider_{number}_name" in form
    }


def _color_of(form: dict[str, str]) -> str:
    """Return the accent colour of a form, or "" for the default."""
    return "" if "usual" in form else form.get("accent_color", "")


def _setting(
    services: DashboardServices, merchant: Merchant, form: dict[str, str]
) -> SettingsShown:
    typed = _typed(form)
    color = typed.get("accent_color", merchant.accent_color)
    footer = merchant.footer or Footer()
    return SettingsShown(
        name=typed.get("name", merchant.name),
        color=color or USUAL_COLOR,
        usual=not color,
        locale=language_of(typed.get("locale") or merchant.locale or "") or "en",
        hosts=typed.get("return_hosts", "\n".join(merchant.return_hosts)),
        logo=merchant.logo is not None,
        tolerance=typed.get("tolerance", str(merchant.tolerance)),
        tolerated=_units(merchant, merchant.tolerance),
        unit=_units(merchant, 1),
        withdrawal_days=typed.get("withdrawal_days", str(merchant.withdrawal_days)),
        contact=typed.get("contact", merchant.contact or ""),
        website=typed.get("website", merchant.website or ""),
        footer={name: typed.get(name, text or "") for name, text in asdict(footer).items()},
        providers=_providers(merchant, form),
        offered=", ".join(each.name for each in services.providers),
    )


def _providers(merchant: Merchant, form: dict[str, str]) -> list[ProviderShown]:
    """Return the providers and, as long as there may be more, an empty one."""
    rows = _rows(form)
    shown = [
        ProviderShown(name, at, website, countries, logo, open=True)
        for name, at, website, countries, logo in rows.values()
        if any((name, at, website, countries, logo))
    ]
    if not rows:
        shown = [
            ProviderShown(
                each.name,
                each.form,
                each.website,
                each.countries,
                each.logo,
                logo_url=each.logo_url,
                asks=_asks(each),
            )
            for each in merchant.providers
        ]
    return [*shown, ProviderShown("", "", "", "", "", new=True)][:PROVIDERS_MAX]


def _asks(provider: Provider) -> str:
    """Return what a provider's customers are asked for, with its example."""
    words = " and ".join(each.label or "name" for each in provider.fields)
    return f"{words}, such as {provider.example}" if provider.example else words


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
