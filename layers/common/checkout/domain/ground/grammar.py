"""The grammars of ids, of positions in lists and of the merchant's URLs, each written once.

The merchant's URLs are `success_url` and `cancel_url`, to which a customer is sent, and the URLs of
item pictures and of webhooks. A text that two programs could read differently is refused. Nothing
is corrected, so a URL is used exactly as it was checked. URLs of wallet providers follow the
protocol's grammar in open_payments/urls.py. The function `split` of that module parses all URLs.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import unquote

from checkout.domain.ground.errors import UrlInvalid
from open_payments.urls import (
    NAME_MAX,
    Parts,
    host_and_port,
    is_address,
    is_infrastructure,
    is_loopback,
    is_name,
    is_sent,
    split,
)

ID_DIGITS: Final = 22  # base62: 62^22 > 2^130
KEY_DIGITS: Final = 43  # 62^43 > 2^256
# A stage is one deployment. On a test stage no money is real, and API keys and session ids have
# TEST before their digits. On other stages, keys have LIVE, and session ids have no mark.
TEST: Final = "test_"
LIVE: Final = "live_"
# The path below which test stages have their wallets. All other stages refuse URLs below this path.
TEST_WALLETS: Final = "/test-wallets"
_DOT_SEGMENT: Final = re.compile(r"/\.{1,2}(?:/|$)")
BASE62: Final = rf"[0-9A-Za-z]{{{ID_DIGITS}}}"


def id_pattern(*prefixes: str) -> str:
    """Return the regular expression of ids with one of `prefixes`, such as `cs` or `evt`."""
    return rf"(?:{'|'.join(prefixes)})_{BASE62}" if prefixes[1:] else rf"{prefixes[0]}_{BASE62}"


SESSION_ID: Final = re.compile(rf"cs_(?:{TEST})?{BASE62}")
REFUND_ID: Final = re.compile(id_pattern("re"))
EVENT_ID: Final = re.compile(id_pattern("evt"))
# The id of an event, or of its copy for one of the merchant's further endpoints.
DELIVERY_ID: Final = re.compile(rf"{EVENT_ID.pattern}(?:~{id_pattern('we')})?")
LINK_ID: Final = re.compile(id_pattern("plink"))
NONCE: Final = re.compile(BASE62)
MEMBER_ID: Final = re.compile(rf"mbr_{BASE62}")
API_KEY: Final = re.compile(rf"sk_(?:{TEST}|{LIVE})[0-9A-Za-z]{{{KEY_DIGITS}}}")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_POSITION_MAX: Final = 10**13 - 1  # thirteen digits of milliseconds: until the year 2286

URL_MAX: Final = 2048  # characters, after substitution
PICTURE_URL_MAX: Final = 500
PLACEHOLDER: Final = re.compile(r"(?:\{|%7[Bb])CHECKOUT_SESSION_ID(?:\}|%7[Dd])")

EMAIL_MAX: Final = 254  # RFC 5321, section 4.5.3.1.3
# The dot-atom of RFC 5322, section 3.2.3. A dot-atom contains no quotes and no line ends, which
# mail programs could misread.
_ATOM: Final = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_EMAIL_NAME: Final = re.compile(rf"(?=.{{1,64}}\Z){_ATOM}(?:\.{_ATOM})*")
# Characters that need no escaping in mailto:
_MAILTO_NAME: Final = re.compile(r"[A-Za-z0-9._+-]{1,64}")
# The characters that RFC 3986 allows in path, query and fragment, and the brackets that browsers
# also allow there. Other characters must be printable, so that a URL contains no hidden control or
# direction mark.
_REST: Final = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2}|[^\x00-\x7f])*")
# Unlike in the protocol's grammar, an underscore and a trailing dot are allowed, because merchants'
# host names have them.
_LABEL: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?|\[[0-9A-Fa-f:.]{{2,45}}\]")
_PORT: Final = re.compile(r"[0-9]{1,5}")
# Some programs decode a URL before they put it into a header, where a line end would begin a new
# header.
_LINE_END: Final = re.compile(r"%0[0AaDd]")


def position(at: datetime, record_id: str = "") -> str:
    """Return the position of a record in a list that is sorted by time, then by id.

    The `next_key` of a page of results (`ports.Page`) is such a position. A position without an id
    comes before the positions of all records of the same millisecond. A time after the year 2286
    gets the latest possible position.
    """
    digits = f"{min((at - _EPOCH) // timedelta(milliseconds=1), _POSITION_MAX):013d}"
    return f"{digits}#{record_id}" if record_id else digits


def position_pattern(ids: str) -> re.Pattern[str]:
    """Return a pattern that matches the positions of records whose ids match `ids`."""
    return re.compile(rf"[0-9]{{13}}#{ids}")


class TestUrl(str):
    """The service's own address on a test stage. On any other stage the address is a plain str.

    Functions that make public objects get this address. Its type shows whether the money in these
    objects is real.
    """

    __slots__ = ()
    __test__ = False  # not a test class, although pytest would collect it by its name


def is_http(base_url: str) -> bool:
    """Return whether the service's own address is http, which is allowed in development only."""
    return split(base_url).scheme == "http"


def redirect_url(
    template: str,
    *,
    session_id: str,
    base_is_http: bool,
    param: str,
    hosts: Collection[str] = (),
) -> str:
    """Return `template` with each `{CHECKOUT_SESSION_ID}` (also percent-encoded) replaced.

    `base_is_http` means that BASE_URL itself is http, so URLs on this machine can use http, too.
    `hosts` are the merchant's return hosts; if there are none, every host is allowed. Raises
    UrlInvalid, which names `param`.
    """
    # Look for a placeholder in the host before replacing it, because the session's id could pass as
    # part of a host.
    if PLACEHOLDER.search(split(template).authority or ""):
        raise UrlInvalid(
            "{CHECKOUT_SESSION_ID} is allowed only in the path, query or fragment.", param=param
        )
    url = PLACEHOLDER.sub(session_id, template)
    problem = _problem(url, base_is_http=base_is_http)
    if not problem and hosts and return_host(_host_and_port(url)[0]) not in hosts:
        problem = "The URL's host is not one of the return hosts that are set in the dashboard."
    if problem:
        raise UrlInvalid(problem, param=param)
    return url


def return_host(typed: str) -> str | None:
    """Return a host name in the form in which `redirect_url` compares it; None for other texts."""
    host = typed.strip().lower().removesuffix(".")
    return None if _authority_problem(host, None) else host


def contact_of(typed: str) -> str | None:
    """Return an e-mail address or https URL that pages can show; None for other texts."""
    text = typed.strip()
    if split(text).scheme == "https":
        return page_of(text)
    email = email_of(text)
    return email if email and _MAILTO_NAME.fullmatch(email.rpartition("@")[0]) else None


def page_of(typed: str) -> str | None:
    """Return an https URL to which our pages can link; None for other texts."""
    text = typed.strip()
    return None if _problem(text, base_is_http=False) else text


def email_of(typed: str) -> str | None:
    """Return an e-mail address in the ASCII form for mail services; None for other texts.

    A host in another script is written as xn--…, as in wallet addresses.
    """
    text = typed.strip()
    if len(text) > EMAIL_MAX:
        return None
    name, _, host = text.rpartition("@")
    if not host.isascii():
        import idna  # loaded only for such a host

        try:
            host = idna.encode(host, uts46=True).decode()
        except idna.IDNAError:
            return None
    fits = _EMAIL_NAME.fullmatch(name) and "." in host and is_name(host)
    text = f"{name}@{host}"
    return text if fits and len(text) <= EMAIL_MAX else None


def mailbox(address: str) -> str:
    """Return an e-mail address without the suffix after `+`, which most mail services ignore."""
    name, _, host = address.lower().rpartition("@")
    return f"{name.partition('+')[0]}@{host}"


def picture_url(url: str, *, base_is_http: bool, param: str) -> str:
    """Check and return the URL of an item's picture, which must use https and a host name.

    The origin of the URL becomes part of the page's content security policy, so the URL must be in
    ASCII (urls.target_uri). `base_is_http` has the same meaning as in `redirect_url`. Raises
    UrlInvalid, which names `param`.
    """
    problem = _problem(url, base_is_http=base_is_http) or _picture_problem(url, base_is_http)
    if problem:
        raise UrlInvalid(problem, param=param)
    return url


def webhook_url(url: str, *, allow_loopback: bool, param: str) -> str:
    """Check a URL for a merchant's events, in its final form, and return its host name.

    The URL must use https on the usual port, so that requests cannot reach another service on the
    host. `allow_loopback`, for development, allows any port, and http on this machine. The host's
    IP addresses are checked later, when its name is resolved. Raises UrlInvalid, which names
    `param`.
    """
    problem = _problem(url, base_is_http=allow_loopback) or _webhook_problem(url, allow_loopback)
    if problem:
        raise UrlInvalid(problem, param=param)
    return _host_and_port(url)[0].strip("[]")


def link_host(url: str, *, base_is_http: bool) -> str | None:
    """Return the host of `url` if a browser may follow it, otherwise None.

    Https is allowed; `base_is_http` also allows http on this machine. This function is less strict
    than `redirect_url`, because a wallet provider's page can have any printable characters in its
    path and query.
    """
    return None if _link_problem(split(url), url, base_is_http) else _host_and_port(url)[0]


def _picture_problem(url: str, base_is_http: bool) -> str | None:
    if len(url) > PICTURE_URL_MAX:
        return f"The URL must be at most {PICTURE_URL_MAX} characters long."
    host = _host_and_port(url)[0]
    if is_loopback(host):
        return None if base_is_http else "The URL's host must be public, not this machine."
    if is_address(host):
        return "The URL's host must be a name, not an IP address."
    return None if is_sent(url) else "The URL must be in ASCII, without “#” and dot segments."


def _webhook_problem(url: str, allow_loopback: bool) -> str | None:
    if "#" in url:
        return "The URL must not contain a fragment (#…)."
    if not url.startswith(("https://", "http://")):
        return "The URL must start with https:// in lower case."
    if _host_and_port(url)[1] not in (None, "443") and not allow_loopback:
        return "The URL must use port 443: leave the port out."
    if not url.isascii():
        return "The URL must be written in ASCII (percent-encoded)."
    return None


def _problem(url: str, *, base_is_http: bool) -> str | None:
    """Return a sentence about the error in `url`, or None if there is no error."""
    if len(url) > URL_MAX:
        return f"The URL must be at most {URL_MAX} characters long, the session id included."
    parts = split(url)
    problem = _link_problem(parts, url, base_is_http)
    if not problem and not _REST.fullmatch(parts.path + parts.query + parts.fragment):
        return "The URL contains characters that must be percent-encoded."
    if not problem and _LINE_END.search(url):
        return "The URL must not contain a line end (%0A, %0D) or a null (%00)."
    return problem


def _link_problem(parts: Parts, url: str, base_is_http: bool) -> str | None:
    if "\\" in url or not url.isprintable() or " " in url:
        return "The URL must not contain spaces, control characters or backslashes."
    if not parts.scheme or not parts.authority:
        return "The URL must be absolute, like https://shop.example/thanks."
    if "@" in parts.authority:
        return "The URL must not contain a user name or password."
    host, port = host_and_port(parts.authority)
    if parts.scheme not in ("https", "http") or (parts.scheme == "http" and not base_is_http):
        return "The URL must start with https://."
    if parts.scheme == "http" and not is_loopback(host):
        return "http:// is allowed for this machine only (localhost); use https://."
    return _authority_problem(host, port)


def _authority_problem(host: str, port: str | None) -> str | None:
    if not host.isascii():
        return "The URL's host name must be written in ASCII (xn--…)."
    if len(host) > NAME_MAX or not _HOST.fullmatch(host):
        return "The URL's host name is malformed."
    if is_infrastructure(host):
        return "The URL's host belongs to a cloud's infrastructure."
    if port is not None and not (_PORT.fullmatch(port) and 0 < int(port) < 65536):
        return "The URL's port is malformed."
    return None


def _host_and_port(url: str) -> tuple[str, str | None]:
    return host_and_port(split(url).authority or "")


def of_stage(url: str, test_wallets: str) -> bool:
    """Return whether a stage (a deployment) may request `url` from a wallet's server.

    `test_wallets` is the address below which a test stage has its own wallets, and "" on other
    stages. A test stage accepts only its own wallets; other stages accept no wallet of a test
    stage. The path is decoded before the check, because a wallet's server may also decode it.
    """
    path = f"{unquote(split(url).path)}/"
    if not test_wallets:
        return f"{TEST_WALLETS}/" not in path.lower()
    return url.startswith(f"{test_wallets}/") and not _DOT_SEGMENT.search(path)
