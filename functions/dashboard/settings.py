"""The page of the settings for the customers' pages, with a preview, and for the shop's rules."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any, Final

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
from checkout.pages import use_policy
from checkout.services import DashboardServices
from dashboard.dependencies import FormWithFile, Page, PageRequest
from dashboard.rendering import page, see
from dashboard.routing import PageRouter
from dashboard.view import USUAL_COLOR, readable
from open_payments.models import Amount

router = PageRouter(prefix="/settings", section=("/settings", "Settings"))
SAVED: Final = "/settings?saved=1"
_PREVIEW_POLICY: Final = (
    "default-src 'none'; style-src 'nonce-{nonce}'; img-src 'self' data:; form-action 'none'; "
    "frame-ancestors 'self'; base-uri 'none'"
)
# The fields of a provider, in the order of the line that stores it (domain/ground/providers.py).
_FIELDS: Final = ("name", "form", "website", "countries", "logo")
_PREVIEW_PRICE: Final = 1000  # minor units


def _page(request: PageRequest, *, alert: str | None = None, status: int = 200) -> Response:
    services = request.services
    merchant = merchants.get(services.merchants, request.key.merchant)
    return page(
        request.http,
        "settings.html",
        status=status,
        section="/settings",
        setting=_setting(merchant, request.form),
        merchant_logo=merchant.logo is not None,
        tolerated=_units(merchant, merchant.tolerance),
        unit=_units(merchant, 1),
        providers=_providers(merchant, request.form),
        asks_of=_asks,
        offered=", ".join(each.name for each in services.providers),
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
    """Save all settings in the form, or none. Settings that are not in the form do not change.

    The logo is written last, in a separate write. So the logo is checked before the first write.
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
    """Return the customers' page with the settings in the query string.

    The code of functions/pay renders the page, with a sample purchase. The form on the page does
    nothing, and the page has no script. functions/pay is imported only here: previews are rare.
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
    """Return the settings in a form, under the names that flows/merchant/settings.py uses."""
    typed = dict(form)
    if {"usual", "accent_color"} & set(form):
        typed["accent_color"] = _color_of(form)
    rows = _rows(form)
    if rows:
        kept = [row for number, row in rows.items() if f"provider_{number}_remove" not in form]
        typed["providers"] = "\n".join(" | ".join(row) for row in kept if any(row))
    return typed


def _rows(form: dict[str, str]) -> dict[int, list[str]]:
    """Return the fields of each provider in a form, by provider. Line breaks become blanks."""
    return {
        number: [" ".join(form.get(f"provider_{number}_{name}", "").split()) for name in _FIELDS]
        for number in range(1, PROVIDERS_MAX + 2)
        if f"provider_{number}_name" in form
    }


def _color_of(form: dict[str, str]) -> str:
    """Return the accent color of a form, or "" for the default."""
    return "" if "usual" in form else form.get("accent_color", "")


def _setting(merchant: Merchant, form: dict[str, str]) -> dict[str, Any]:
    """Return the settings, as stored or as typed. `usual` is true if the color is the default."""
    footer = merchant.footer or Footer()
    setting = {
        "name": merchant.name,
        "accent_color": merchant.accent_color,
        "locale": "",
        "return_hosts": "\n".join(merchant.return_hosts),
        "tolerance": str(merchant.tolerance),
        "withdrawal_days": str(merchant.withdrawal_days),
        "contact": merchant.contact or "",
        "website": merchant.website or "",
        **{name: text or "" for name, text in asdict(footer).items()},
        **_typed(form),
    }
    color, locale = setting["accent_color"], setting["locale"] or merchant.locale or ""
    return setting | {
        "color": color or USUAL_COLOR,
        "usual": not color,
        "locale": language_of(locale) or "en",
    }


def _providers(merchant: Merchant, form: dict[str, str]) -> list[tuple[Any, str]]:
    """Return the providers, marked "stored" or "typed", and a "new" one if more are allowed."""
    rows = [dict(zip(_FIELDS, row, strict=True)) for row in _rows(form).values()]
    shown: list[tuple[Any, str]] = [(row, "typed") for row in rows if any(row.values())]
    if not rows:
        shown = [(each, "stored") for each in merchant.providers]
    return [*shown, (dict.fromkeys(_FIELDS, ""), "new")][:PROVIDERS_MAX]


def _asks(provider: Provider) -> str:
    """Return the text about what customers type at this provider, with an example."""
    words = " and ".join(each.label or "name" for each in provider.fields)
    return f"{words}, such as {provider.example}" if provider.example else words


def _units(merchant: Merchant, value: int) -> str:
    """Return an amount in units of the merchant's wallet as a text for people."""
    return readable(Amount(value, merchant.asset_code, merchant.asset_scale))


def _sample(services: DashboardServices, merchant: Merchant) -> Session:
    """Return an open session for two items, for the preview. It is never stored."""
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
