"""Where a customer may be sent (`success_url`, `cancel_url`: decisions.md "Session object and
amounts"), and where webhooks may go (decisions.md "Webhooks").

Refuses everything that two programs could read differently. Nothing is repaired: the address goes
into a page exactly as it was checked.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from checkout.domain.errors import UrlInvalid

URL_MAX: Final = 2048  # characters, after substitution
PLACEHOLDER: Final = re.compile(r"(?:\{|%7[Bb])CHECKOUT_SESSION_ID(?:\}|%7[Dd])")

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
# RFC 3986 characters of path, query and fragment, and the brackets that browsers allow there too;
# what is not ASCII must be printable, so that no control or direction mark hides in it.
_REST: Final = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2}|[^\x00-\x7f])*")
_LABEL: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?")
_IPV6: Final = re.compile(r"\[[0-9A-Fa-f:.]{2,45}\]")
_PORT: Final = re.compile(r"[0-9]{1,5}")


def redirect_url(
    template: str,
    *,
    session_id: str,
    base_is_http: bool,
    param: str,
    hosts: Collection[str] = (),
) -> str:
    """`template` with each `{CHECKOUT_SESSION_ID}` (also percent-encoded) replaced by `session_id`.

    `base_is_http`: BASE_URL itself is http, so addresses of this machine may be http too. `hosts`:
    the return hosts that the merchant has limited itself to. Raises UrlInvalid, naming `param`.
    """
    # The placeholder is a letter-and-digit word once replaced: in a host it would pass as a name.
    authority = template.partition("//")[2]
    if PLACEHOLDER.search(template.partition(":")[0]) or PLACEHOLDER.search(
        re.split(r"[/?#\\]", authority, maxsplit=1)[0]
    ):
        raise UrlInvalid(
            "{CHECKOUT_SESSION_ID} may stand only in the path, query or fragment.", param=param
        )
    url = PLACEHOLDER.sub(session_id, template)
    problem = _problem(url, base_is_http=base_is_http)
    if not problem and hosts and _host(url) not in hosts:
        problem = "The URL's host is none of the return hosts that are set in the dashboard."
    if problem:
        raise UrlInvalid(problem, param=param)
    return url


def return_host(typed: str) -> str | None:
    """A host name as `redirect_url` compares it, or None for what is none."""
    host = typed.strip().lower().removesuffix(".")
    return None if _authority_problem(host, None) else host


def webhook_url(url: str, *, allow_loopback: bool, param: str) -> str:
    """Where a merchant's events may be sent, given as it will be used; returns its host name.

    https on the usual port, so that it cannot be pointed at another service; with `allow_loopback`,
    for development, any port. Where the name leads is judged when it is resolved. Raises
    UrlInvalid, naming `param`.
    """
    problem = _problem(url, base_is_http=False)
    if not problem and "#" in url:
        problem = "The URL must not contain a fragment (#…)."
    if not problem and not url.startswith("https://"):
        problem = "The URL must start with https:// in lower case."
    if problem:
        raise UrlInvalid(problem, param=param)
    host, port = _host_and_port(urlsplit(url).netloc)
    if port not in (None, "443") and not allow_loopback:
        raise UrlInvalid("The URL must be of port 443: leave the port out.", param=param)
    if not url.isascii():
        raise UrlInvalid("The URL must be written in ASCII (percent-encoded).", param=param)
    return host.strip("[]")


def _problem(url: str, *, base_is_http: bool) -> str | None:
    """What is wrong with `url`, or None."""
    if len(url) > URL_MAX:
        return f"The URL must be at most {URL_MAX} characters long, the session id included."
    if "\\" in url or not url.isprintable() or " " in url:
        return "The URL must not contain spaces, control characters or backslashes."
    try:
        parts = urlsplit(url)
    except ValueError:
        return "The URL is malformed."
    if not url[len(parts.scheme) :].startswith("://") or not parts.netloc:
        return "The URL must be absolute, like https://shop.example/thanks."
    if "@" in parts.netloc:
        return "The URL must not contain a user name or password."
    host, port = _host_and_port(parts.netloc)
    if not (parts.scheme == "https" or (parts.scheme == "http" and base_is_http)):
        return "The URL must start with https://."
    if parts.scheme == "http" and host.lower() not in _LOOPBACK:
        return "A URL with http:// must be of this machine (localhost); use https://."
    return _authority_problem(host, port) or _rest_problem(url[len(parts.scheme) + 3 :])


def _host(url: str) -> str | None:
    return return_host(_host_and_port(urlsplit(url).netloc)[0])


def _host_and_port(netloc: str) -> tuple[str, str | None]:
    """The text before and after the colon of the port; the port is None without a colon."""
    end = netloc.rfind("]") + 1
    host, colon, port = netloc[end:].partition(":")
    return netloc[:end] + host, port if colon else None


def _authority_problem(host: str, port: str | None) -> str | None:
    if not host.isascii():
        return "The URL's host name must be written in ASCII (xn--…)."
    known = _IPV6.fullmatch(host) if host.startswith("[") else _HOST.fullmatch(host)
    if not known or len(host) > 253:
        return "The URL's host name is malformed."
    if port is not None and not (_PORT.fullmatch(port) and 0 < int(port) < 65536):
        return "The URL's port is malformed."
    return None


def _rest_problem(rest: str) -> str | None:
    if not _REST.fullmatch(rest):
        return "The URL contains characters that must be percent-encoded."
    return None
