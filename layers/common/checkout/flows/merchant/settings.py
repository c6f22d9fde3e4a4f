"""A merchant's settings: the look of the customers' pages, and the allowed return hosts.

A logo must be a small picture. The hosts are written to the merchant and to all active keys in one
transaction, so that creating a session reads only its key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from checkout.domain import providers
from checkout.domain.audit import Action
from checkout.domain.errors import ParameterInvalid
from checkout.domain.grammar import contact_of, return_host
from checkout.domain.languages import LANGUAGES
from checkout.domain.merchant import NAME_MAX, TOLERANCE_MAX, ApiKey, Logo, Merchant
from checkout.domain.parts import PARTS
from checkout.domain.people import Actor
from checkout.domain.pictures import picture_type
from checkout.flows import audit, merchants
from checkout.flows.merchant import api_keys
from checkout.ports.services import DashboardServices

LOGO_MAX: Final = 16 * 1024  # bytes; it is stored in the merchant's record
HOSTS_MAX: Final = 50  # they are copied to each key's record
_COLOR: Final = re.compile(r"#[0-9a-f]{6}")
_UNITS: Final = re.compile(r"[0-9]{1,10}")
# Their names in the audit log.
_CALLED: Final = {
    "name": "display name",
    "accent_color": "accent color",
    "locale": "language",
    "logo": "logo",
    "tolerance": "tolerance",
    "contact": "contact",
    "website": "website",
    "providers": "wallet providers",
}


def look(
    services: DashboardServices, key: Actor, *, name: str, accent_color: str, locale: str
) -> None:
    """Set the look of the pages. An empty `accent_color` means the default.

    Raise ParameterInvalid, Conflict.
    """
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
            "The color must be written like #0b5cad, with six digits.", param="accent_color"
        )
    if looks["locale"] is None:
        raise ParameterInvalid("The pages do not support this language.", param="locale")
    _set(services, key, looks)


def imagined(merchant: Merchant, *, name: str, accent_color: str | None, locale: str) -> Merchant:
    """Return the merchant for a preview, without writing it.

    Invalid values are ignored. An `accent_color` of None means that none was typed.
    """
    color = merchant.accent_color if accent_color is None else _color(accent_color)
    return merchant.changed(
        name=_name(name) or merchant.name,
        accent_color=merchant.accent_color if color is None and accent_color else color,
        locale=_locale(locale) or merchant.locale,
    )


def put_logo(services: DashboardServices, key: Actor, data: bytes) -> None:
    """Set the logo. Raise ParameterInvalid, Conflict."""
    if len(data) > LOGO_MAX:
        raise ParameterInvalid(
            f"The logo has {len(data)} bytes; at most {LOGO_MAX} are allowed.", param="logo"
        )
    media_type = picture_type(data)
    if media_type is None:
        raise ParameterInvalid(
            "The logo must be a complete PNG, JPEG or WebP picture.", param="logo"
        )
    _set(services, key, {"logo": Logo(media_type, data)})


def remove_logo(services: DashboardServices, key: Actor) -> None:
    """Remove the logo. Raise Conflict."""
    _set(services, key, {"logo": None})


def introduce(services: DashboardServices, key: Actor, *, contact: str, website: str) -> None:
    """Set the contact for customers and the shop's own host. An empty text removes it.

    Raise ParameterInvalid, Conflict.
    """
    fields = {"contact": contact_of(contact), "website": return_host(website)}
    if contact.strip() and fields["contact"] is None:
        raise ParameterInvalid(
            "The contact must be an e-mail address or a page that begins with https://.",
            param="contact",
        )
    if website.strip() and fields["website"] is None:
        raise ParameterInvalid(
            "The website must be a host name like shop.example, without https:// and path.",
            param="website",
        )
    _set(services, key, fields)


def offer(services: DashboardServices, key: Actor, typed: str) -> None:
    """Set the providers that the merchant's page offers; without any, it offers the operator's.

    Raise ParameterInvalid, Conflict.
    """
    try:
        found = providers.parse(typed)
    except ValueError as error:
        raise ParameterInvalid(str(error), param="providers") from None
    _set(services, key, {"providers": found})


def tolerate(services: DashboardServices, key: Actor, typed: str) -> None:
    """Set the number of the wallet's units that may be missing from a payment decided from now on.

    Raise ParameterInvalid, Conflict.
    """
    units = int(typed) if _UNITS.fullmatch(typed.strip()) else -1
    if not 0 <= units <= TOLERANCE_MAX:
        raise ParameterInvalid(
            f"The tolerance must be a whole number from 0 to {TOLERANCE_MAX}.", param="tolerance"
        )
    _set(services, key, {"tolerance": units})


def limit_return_hosts(services: DashboardServices, key: Actor, typed: str) -> None:
    """Allow only these return hosts in new sessions.

    Without any, all are allowed. They are written even if nothing changes, which repairs a key that
    was created at the same time. Raise ParameterInvalid, Conflict.
    """
    hosts = tuple(dict.fromkeys(_host(line) for line in typed.split()))
    if len(hosts) > HOSTS_MAX:
        raise ParameterInvalid(f"At most {HOSTS_MAX} return hosts.", param="return_hosts")
    api_keys.change_copied(services, key.merchant, lambda _: {"return_hosts": hosts}, actor=key)
    audit.note(services, key, Action.SETTINGS_CHANGED, f"return hosts: {', '.join(hosts) or 'any'}")


def spread(services: DashboardServices, merchant_id: str, shards: int) -> Merchant:
    """Spread the merchant's lists over this number of shards from the next session on.

    It is written even if nothing changes, like the return hosts. Raise ParameterInvalid,
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
    """Return whether an active key that was created during the last change lacks it.

    The index lags, so its answer is verified with the key's own record. `keys` are the merchant's,
    if they were read before.
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
        said[:] = [_CALLED[name] for name in fields if getattr(merchant, name) != fields[name]]
        return merchant.changed(**fields) if said else merchant

    merchants.change(services.merchants, key.merchant, changed)
    if said:
        audit.note(services, key, Action.SETTINGS_CHANGED, ", ".join(said))


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
            f"“{typed[:100]}” is not a host name. Write it like shop.example, without https:// and "
            "without a path.",
            param="return_hosts",
        )
    return host
