"""What a merchant sets: how the customers' pages look, and to which hosts customers may be sent
back.

Refuses a logo that is no small picture, and whatever else the pages could not show. The hosts are
written to the merchant and to all active keys at once, so that creating a session reads its key
alone.
"""

from __future__ import annotations

import re
from typing import Any, Final

from checkout.domain.audit import Action
from checkout.domain.errors import ParameterInvalid
from checkout.domain.grammar import return_host
from checkout.domain.languages import LANGUAGES
from checkout.domain.merchant import NAME_MAX, ApiKey, Logo, Merchant
from checkout.domain.pictures import picture_type
from checkout.flows import audit, merchants
from checkout.ports.services import DashboardServices

LOGO_MAX: Final = 16 * 1024  # bytes; it lies in the merchant's record
HOSTS_MAX: Final = 50  # they lie in each key's record
_COLOR: Final = re.compile(r"#[0-9a-f]{6}")
# What the audit log calls them.
_CALLED: Final = {
    "name": "display name",
    "accent_color": "accent colour",
    "locale": "language",
    "logo": "logo",
}


def look(
    services: DashboardServices, who: ApiKey, *, name: str, accent_color: str, locale: str
) -> None:
    """`accent_color` may be empty: the pages' own. Raises ParameterInvalid, Conflict."""
    looks: dict[str, Any] = {
        "name": _name(name),
        "accent_color": _color(accent_color),
        "locale": _locale(locale),
    }
    if looks["name"] is None:
        raise ParameterInvalid(
            f"The name must be 1 to {NAME_MAX} printable characters.", param="name"
        )
    if looks["accent_color"] is None and accent_color:
        raise ParameterInvalid(
            "The colour must be written like #0b5cad, with six digits.", param="accent_color"
        )
    if looks["locale"] is None:
        raise ParameterInvalid("The pages do not speak this language.", param="locale")
    _set(services, who, looks)


def imagined(merchant: Merchant, *, name: str, accent_color: str | None, locale: str) -> Merchant:
    """The merchant as they would look; what cannot be shown stays as it is. `accent_color` None:
    nothing was typed. Writes nothing.
    """
    color = merchant.accent_color if accent_color is None else _color(accent_color)
    return merchant.changed(
        name=_name(name) or merchant.name,
        accent_color=merchant.accent_color if color is None and accent_color else color,
        locale=_locale(locale) or merchant.locale,
    )


def put_logo(services: DashboardServices, who: ApiKey, data: bytes) -> None:
    """Raises ParameterInvalid, Conflict."""
    if len(data) > LOGO_MAX:
        raise ParameterInvalid(
            f"The logo has {len(data)} bytes; it may have {LOGO_MAX}.", param="logo"
        )
    media_type = picture_type(data)
    if media_type is None:
        raise ParameterInvalid("The logo must be a whole PNG, JPEG or WebP picture.", param="logo")
    _set(services, who, {"logo": Logo(media_type, data)})


def remove_logo(services: DashboardServices, who: ApiKey) -> None:
    """Raises Conflict."""
    _set(services, who, {"logo": None})


def limit_return_hosts(services: DashboardServices, who: ApiKey, typed: str) -> None:
    """From the next session on, customers are sent back to these hosts alone; none typed: to any.
    Written even where nothing changes, which mends a key that was made at the same moment.

    Raises ParameterInvalid, Conflict.
    """
    hosts = tuple(dict.fromkeys(_host(line) for line in typed.split()))
    if len(hosts) > HOSTS_MAX:
        raise ParameterInvalid(f"There may be {HOSTS_MAX} return hosts.", param="return_hosts")
    now = services.clock.now()
    known = {key.hash: key for key in (*services.api_keys.of(who.merchant), who)}
    active = [key for key in known.values() if key.active_at(now)]
    merchants.change(
        services.merchants,
        who.merchant,
        lambda merchant: merchant.changed(return_hosts=hosts),
        lambda merchant: services.api_keys.settle(merchant, active),
    )
    audit.note(services, who, Action.SETTINGS_CHANGED, f"return hosts: {', '.join(hosts) or 'any'}")


def keys_behind(services: DashboardServices, merchant: Merchant) -> bool:
    """Whether an active key has other return hosts: it was made in the moment of their change. What
    the index says is asked of the record itself, since the index lags.
    """
    now = services.clock.now()
    for listed in services.api_keys.of(merchant.id):
        if listed.active_at(now) and listed.return_hosts != merchant.return_hosts:
            key = services.api_keys.find(listed.hash)
            if key is not None and key.return_hosts != merchant.return_hosts:
                return True
    return False


def _set(services: DashboardServices, who: ApiKey, fields: dict[str, Any]) -> None:
    said: list[str] = []

    def changed(merchant: Merchant) -> Merchant:
        said[:] = [_CALLED[name] for name in fields if getattr(merchant, name) != fields[name]]
        return merchant.changed(**fields) if said else merchant

    merchants.change(services.merchants, who.merchant, changed)
    if said:
        audit.note(services, who, Action.SETTINGS_CHANGED, ", ".join(said))


def _name(typed: str) -> str | None:
    name = typed.strip()
    return name if 1 <= len(name) <= NAME_MAX and name.isprintable() else None


def _color(typed: str) -> str | None:
    color = typed.strip().lower()
    return color if _COLOR.fullmatch(color) else None


def _locale(typed: str) -> str | None:
    return typed if typed in LANGUAGES else None


def _host(typed: str) -> str:
    host = return_host(typed)
    if host is None:
        raise ParameterInvalid(
            f"“{typed[:100]}” is no host name. Write it like shop.example, without https:// and "
            "without a path.",
            param="return_hosts",
        )
    return host
