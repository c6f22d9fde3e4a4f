"""A merchant's settings: the look of the pages that customers see, and the shop's rules.

All settings are changed together, in one write. The same transaction copies the allowed return
hosts to all active API keys, so that a request that creates a session has to read only its key.
A logo is a separate setting, and must be a small picture.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from checkout.domain.ground import providers
from checkout.domain.ground.errors import ParameterInvalid
from checkout.domain.ground.grammar import contact_of, page_of, return_host
from checkout.domain.ground.languages import LANGUAGES
from checkout.domain.ground.names import is_name, is_plain_name
from checkout.domain.ground.parts import PARTS
from checkout.domain.ground.pictures import SIDE_MAX, picture_size, picture_type
from checkout.domain.ground.providers import Provider
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.people import Actor
from checkout.domain.merchant.record import (
    COMPANY_MAX,
    NAME_MAX,
    TOLERANCE_MAX,
    ApiKey,
    Footer,
    Logo,
    Merchant,
)
from checkout.domain.session.withdrawal import DAYS_MAX
from checkout.flows import audit, merchants
from checkout.flows.merchant import api_keys
from checkout.flows.session import details
from checkout.services import DashboardServices

LOGO_MAX: Final = 16 * 1024  # bytes; the logo is stored in the merchant's record
HOSTS_MAX: Final = 50  # they are copied to each key's record
_COLOR: Final = re.compile(r"#[0-9a-f]{6}")
_WHOLE: Final = re.compile(r"[0-9]{1,10}")
# The pages that the footer links to, and their names in the dashboard's sentences.
RULES: Final = {"terms": "the terms", "refunds": "the refunds", "privacy": "the privacy page"}
# The names of the settings in the audit log.
_CALLED: Final = {
    "name": "display name",
    "accent_color": "accent color",
    "locale": "language",
    "logo": "logo",
    "tolerance": "tolerance",
    "contact": "contact",
    "website": "website",
    "footer": "footer",
    "providers": "wallet providers",
    "withdrawal_days": "withdrawal",
}


def change(services: DashboardServices, key: Actor, typed: Mapping[str, str]) -> None:
    """Change all typed settings, or none after an error. Absent settings do not change.

    An empty text removes a value; an empty color means the default color. The return hosts (to
    which customers may be sent back) are written, even unchanged, if an active API key lacks them.
    This happens if the key was created while they were changed. Raise ParameterInvalid, Conflict.
    """
    merchant = merchants.get(services.merchants, key.merchant)
    fields: dict[str, Any] = {
        name: read(typed[name]) for name, read in _READ.items() if name in typed
    }
    if typed.keys() & {"company", *RULES}:
        fields["footer"] = _footer(merchant.footer or Footer(), typed)
    if fields.get("withdrawal_days"):
        details.wrap_key(services, key.merchant)
    hosts = fields.pop("return_hosts", None)
    if hosts is None or (hosts == merchant.return_hosts and not keys_behind(services, merchant)):
        _set(services, key, fields)
        return
    said = [*_said(merchant, fields), f"return hosts: {', '.join(hosts) or 'any'}"]
    fields["return_hosts"] = hosts
    api_keys.change_copied(services, key.merchant, lambda _: fields, actor=key)
    audit.note(services, key, Action.SETTINGS_CHANGED, ", ".join(said))


def imagined(merchant: Merchant, *, name: str, accent_color: str | None, locale: str) -> Merchant:
    """Return the merchant with these settings for a preview, without writing it.

    Invalid values and an `accent_color` of None are ignored.
    """
    color = merchant.accent_color if accent_color is None else _color(accent_color)
    return merchant.changed(
        name=_name(name) or merchant.name,
        accent_color=merchant.accent_color if color is None and accent_color else color,
        locale=_locale(locale) or merchant.locale,
    )


def put_logo(services: DashboardServices, key: Actor, data: bytes) -> None:
    """Set the logo. Raise ParameterInvalid, Conflict."""
    _set(services, key, {"logo": logo_of(data)})


def logo_of(data: bytes) -> Logo:
    """Return the picture as a logo. Raise ParameterInvalid."""
    if len(data) > LOGO_MAX:
        raise ParameterInvalid(
            f"The logo has {len(data)} bytes; at most {LOGO_MAX} are allowed.", param="logo"
        )
    media_type, size = picture_type(data), picture_size(data)
    if media_type is None or size is None:
        raise ParameterInvalid(
            "The logo must be a complete PNG, JPEG or WebP picture.", param="logo"
        )
    if max(size) > SIDE_MAX:
        raise ParameterInvalid(
            f"The logo has {size[0]} × {size[1]} pixels; at most {SIDE_MAX} a side are allowed.",
            param="logo",
        )
    return Logo(media_type, data)


def remove_logo(services: DashboardServices, key: Actor) -> None:
    """Remove the logo. Raise Conflict."""
    _set(services, key, {"logo": None})


def spread(services: DashboardServices, merchant_id: str, shards: int) -> Merchant:
    """From the next session on, split the merchant's lists into this number of shards.

    More shards accept more new records a second (domain/ground/parts.py). The number is written to
    all API keys even if it does not change, because a key may lack it. Raise ParameterInvalid,
    ResourceMissing, Conflict.
    """
    if shards not in PARTS:
        raise ParameterInvalid(f"The shards must be one of {PARTS}.", param="shards")

    def more(merchant: Merchant) -> dict[str, Any]:
        if shards < merchant.parts:
            raise ParameterInvalid(
                f"The merchant has {merchant.parts} shards. The number cannot be lowered, because "
                "all of them hold sessions.",
                param="shards",
            )
        return {"parts": shards}

    return api_keys.change_copied(services, merchant_id, more)


def keys_behind(
    services: DashboardServices, merchant: Merchant, keys: Sequence[ApiKey] | None = None
) -> bool:
    """Return whether an active API key lacks the newest change of the fields copied to the keys.

    A key that was created during the change can lack it. The index of keys can be out of date. So
    if a key seems to lack the change in the index, the key's own record is read. `keys` are the
    merchant's keys if the caller has already read them.
    """
    now = services.clock.now()
    for listed in services.api_keys.of(merchant.id) if keys is None else keys:
        if listed.active_at(now) and _copied(listed) != _copied(merchant):
            key = services.api_keys.find(listed.hash)
            if key is not None and _copied(key) != _copied(merchant):
                return True
    return False


def _copied(record: ApiKey | Merchant) -> tuple[object, ...]:
    return record.return_hosts, record.parts, record.key_sign_in_off_at, record.suspended


def _set(services: DashboardServices, key: Actor, fields: dict[str, Any]) -> None:
    said: list[str] = []

    def changed(merchant: Merchant) -> Merchant:
        said[:] = _said(merchant, fields)
        return merchant.changed(**fields) if said else merchant

    merchants.change(services.merchants, key.merchant, changed)
    if said:
        audit.note(services, key, Action.SETTINGS_CHANGED, ", ".join(said))


def _said(merchant: Merchant, fields: Mapping[str, Any]) -> list[str]:
    """Return the names of the changed fields, for the audit log."""
    return [_CALLED[name] for name in fields if getattr(merchant, name) != fields[name]]


def _footer(before: Footer, typed: Mapping[str, str]) -> Footer | None:
    seller = " ".join(typed.get("company", before.company or "").split())
    if seller and not is_name(seller, COMPANY_MAX):
        raise ParameterInvalid(
            f"The seller must be at most {COMPANY_MAX} printable characters.", param="company"
        )
    found: dict[str, str | None] = {}
    for name, called in RULES.items():
        text = typed.get(name, getattr(before, name) or "")
        found[name] = page_of(text)
        if found[name] is None and text.strip():
            raise ParameterInvalid(
                f"The address of {called} must be a page that begins with https://.", param=name
            )
    return Footer(company=seller or None, **found) if seller or any(found.values()) else None


def _name(typed: str) -> str | None:
    name = typed.strip()
    return name if is_plain_name(name, NAME_MAX) else None


def _color(typed: str) -> str | None:
    color = typed.strip().lower()
    return color if _COLOR.fullmatch(color) else None


def _locale(typed: str) -> str | None:
    return typed if typed in LANGUAGES else None


def _typed_color(typed: str) -> str | None:
    color = _color(typed)
    if color is None and typed:
        raise ParameterInvalid(
            "The color must be written like #0b5cad, with six digits.", param="accent_color"
        )
    return color


def _read_as(
    read: Callable[[str], str | None], param: str, text: str, *, required: bool = False
) -> Callable[[str], str | None]:
    """Return a function like `read` that raises ParameterInvalid with `text` instead of None.

    If the value is not `required`, an empty typed text removes the value.
    """

    def value(typed: str) -> str | None:
        found = read(typed)
        if found is None and (required or typed.strip()):
            raise ParameterInvalid(text, param=param)
        return found

    return value


def _providers(typed: str) -> tuple[Provider, ...]:
    try:
        return providers.parse(typed)
    except ValueError as error:
        raise ParameterInvalid(str(error), param="providers") from None


def _tolerance(typed: str) -> int:
    """Return how many of the wallet's smallest units may be missing from a payment from now on."""
    return _whole(typed, TOLERANCE_MAX, "The tolerance", param="tolerance")


def _withdrawal_days(typed: str) -> int:
    """Return for how many days after the payment customers can withdraw; 0 means not at all."""
    return _whole(typed, DAYS_MAX, "The days", param="withdrawal_days")


def _whole(typed: str, most: int, named: str, *, param: str) -> int:
    number = int(typed) if _WHOLE.fullmatch(typed.strip()) else -1
    if not 0 <= number <= most:
        raise ParameterInvalid(f"{named} must be a whole number from 0 to {most}.", param=param)
    return number


def _return_hosts(typed: str) -> tuple[str, ...]:
    """Return the hosts to which new sessions may send customers back; empty means all hosts."""
    hosts = tuple(dict.fromkeys(_host(line) for line in typed.split()))
    if len(hosts) > HOSTS_MAX:
        raise ParameterInvalid(f"At most {HOSTS_MAX} return hosts.", param="return_hosts")
    return hosts


def _host(typed: str) -> str:
    host = return_host(typed)
    if host is None:
        raise ParameterInvalid(
            f"“{typed[:100]}” is not a host name. Write it like shop.example, without https:// and "
            "without a path.",
            param="return_hosts",
        )
    return host


_READ: Final[dict[str, Callable[[str], Any]]] = {
    "name": _read_as(
        _name,
        "name",
        f"The name must be 1 to {NAME_MAX} letters, digits and signs, without a web or e-mail "
        "address.",
        required=True,
    ),
    "accent_color": _typed_color,
    "locale": _read_as(_locale, "locale", "The pages do not support this language.", required=True),
    "contact": _read_as(
        contact_of,
        "contact",
        "The contact must be an e-mail address or a page that begins with https://.",
    ),
    "website": _read_as(
        return_host,
        "website",
        "The website must be a host name like shop.example, without https:// and path.",
    ),
    "providers": _providers,
    "tolerance": _tolerance,
    "withdrawal_days": _withdrawal_days,
    "return_hosts": _return_hosts,
}
