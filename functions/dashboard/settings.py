"""The page of the settings: how the customers' pages look, and where customers may be sent back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastapi import Request, Response

from checkout.domain.errors import ResourceMissing
from checkout.domain.languages import language_of
from checkout.domain.merchant import NAME_MAX, Merchant
from checkout.flows import merchants
from checkout.flows.merchant import settings as flow
from checkout.flows.merchant.settings import HOSTS_MAX, LOGO_MAX
from checkout.flows.merchant.sign_in import SignedIn
from checkout.ports.services import DashboardServices
from dashboard.dependencies import Visit
from dashboard.pages import page
from dashboard.preview import preview
from dashboard.texts import LANGUAGE

USUAL_COLOR: Final = "#0b5cad"  # the customers' page.css has it


@dataclass(frozen=True, slots=True)
class Setting:
    """As stored, or as typed. `usual`: the pages' own colour."""

    name: str
    color: str
    usual: bool
    locale: str
    hosts: str
    logo: bool


def settings(
    services: DashboardServices,
    request: Request,
    who: SignedIn,
    typed: dict[str, str] | None = None,
    *,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    """`typed` is a form that was refused."""
    merchant = merchants.get(services.merchants, who.merchant)
    return page(
        request,
        "settings.html",
        status=status,
        section="/settings",
        setting=_setting(merchant, typed or {}),
        saved="saved" in request.query_params and alert is None,
        behind=flow.keys_behind(services, merchant),
        alert=alert,
        languages=LANGUAGE.items(),
        name_max=NAME_MAX,
        hosts_max=HOSTS_MAX,
        logo_kib=LOGO_MAX // 1024,
    )


def color_of(form: dict[str, str]) -> str:
    """The accent colour of a form, or nothing for the pages' own."""
    return "" if "usual" in form else form.get("accent_color", "")


def previewed(
    services: DashboardServices, request: Request, visit: Visit, who: SignedIn
) -> Response:
    """With what the address says in place of what is stored."""
    query = dict(request.query_params)
    wanted = flow.imagined(
        merchants.get(services.merchants, who.merchant),
        name=query.get("name", ""),
        accent_color=color_of(query) if {"usual", "accent_color"} & set(query) else None,
        locale=query.get("locale", ""),
    )
    return preview(services, request, visit, wanted)


def logo(services: DashboardServices, who: SignedIn) -> Response:
    """Raises ResourceMissing."""
    merchant = merchants.get(services.merchants, who.merchant)
    if merchant.logo is None:
        raise ResourceMissing("There is no logo.")
    return Response(merchant.logo.data, media_type=merchant.logo.media_type)


def _setting(merchant: Merchant, typed: dict[str, str]) -> Setting:
    looks = "name" in typed
    color = color_of(typed) if looks else merchant.accent_color
    return Setting(
        name=typed["name"] if looks else merchant.name,
        color=color or USUAL_COLOR,
        usual=not color,
        locale=language_of((typed if looks else {}).get("locale") or merchant.locale or "") or "en",
        hosts=typed.get("return_hosts", "\n".join(merchant.return_hosts)),
        logo=merchant.logo is not None,
    )
