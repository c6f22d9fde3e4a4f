"""The kinds of wallet providers that customers come with, and those of the shop.

Each kind is a set of provider rules and of a wallet's behaviour in the sandbox; delays are drawn
per world. `prevents_nothing`: neither single-use quotes nor the grant's limits are enforced. Only
in storms is the shop's provider unlike Rafiki, or a provider's clock wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from open_payments.errors import OpenPaymentsError, OutcomeUnknown
from open_payments.transports import Request, Response
from sandbox.wallets.answers import gnap
from sandbox.wallets.behaviours import Behaviour
from sandbox.wallets.clients import no_fetch
from sandbox.wallets.network import Network
from sandbox.wallets.provider import CLOSINGS, Provider, Rules
from sandbox.wallets.state import Account

if TYPE_CHECKING:
    from tests.simulation.refunding import Refunding

CEDAR: Final = "https://localhost:4101"  # the customers' provider, EUR
HARBOR: Final = "https://localhost:4201"  # the shop's provider, USD
SHOP: Final = f"{HARBOR}/shop"
MARKET: Final = f"{HARBOR}/market"  # the shop's other wallet
OURS: Final = (SHOP, MARKET)
CUSTOMER: Final = f"{CEDAR}/customer"  # of the world's kind
UNCONVERTED: Final = f"{HARBOR}/una"  # of the kinds that keep units back; in the shop's currency
OTHER_WALLET: Final = f"{HARBOR}/bob"  # of the same person, at the shop's provider
SKEW_MAX: Final = 2_000  # milliseconds, of any clock either way
SKEW: Final = timedelta(milliseconds=2 * SKEW_MAX)  # between two clocks


@dataclass(frozen=True, slots=True)
class Kind:
    """`pays`: an approved payment arrives in full in the end, if nothing is closed before."""

    name: str
    rules: dict[str, Any] = field(default_factory=dict)
    behaviour: dict[str, Any] = field(default_factory=dict)
    prevents_nothing: bool = False
    delayed: bool = False  # up to 200 s between acceptance and sending
    in_flight: bool = False  # up to 30 s between sending and arrival
    far_apart: bool = False  # up to 2 000 s between two parts
    short_tokens: bool = False  # of 15 s to 5 minutes
    pays: bool = True


@dataclass(frozen=True, slots=True)
class Shop:
    """The rules of the shop's provider. `endless`: an incoming payment lives for a year."""

    name: str
    rules: dict[str, Any] = field(default_factory=dict)

    @property
    def endless(self) -> bool:
        return "incoming_life" in self.rules


_TEN_YEARS: Final = timedelta(days=3650)

KINDS: Final = (
    Kind("like Rafiki"),
    Kind("delayed up to 200 s", delayed=True),
    Kind("in flight up to 30 s", delayed=True, in_flight=True),
    Kind("quotes not single-use", {"single_use_quotes": False}),
    Kind("no lists", {"lists": False}),
    Kind("own payment ids", {"own_payment_ids": True}),
    Kind("own payment ids, no lists", {"own_payment_ids": True, "lists": False}, delayed=True),
    Kind(
        "limits not enforced, dearer",
        {"limits_enforced": False},
        {"dearer": Fraction(11, 10)},
    ),
    Kind(
        "nothing enforced",
        {"single_use_quotes": False, "limits_enforced": False},
        prevents_nothing=True,
        delayed=True,
    ),
    Kind(
        "quotes without expiry",
        behaviour={"quote_life": _TEN_YEARS, "tells_quote_expiry": False},
    ),
    Kind("quotes never expire", behaviour={"keeps_quotes": True}, delayed=True, in_flight=True),
    Kind("201 and nothing", behaviour={"phantom": True}, pays=False),
    Kind("accepts, never sends", behaviour={"delivered": Fraction(0)}, pays=False),
    Kind(
        "says failed, pays",
        behaviour={"claims_failure_early": True},
        delayed=True,
        in_flight=True,
    ),
    Kind("4xx, pays", behaviour={"refuses_accepted": True}, delayed=True),
    Kind(
        "4xx, pays, no lists",
        {"own_payment_ids": True, "lists": False},
        {"refuses_accepted": True},
        delayed=True,
    ),
    Kind("pays in two parts", behaviour={"parts": 2}, delayed=True, in_flight=True),
    Kind("pays half", behaviour={"delivered": Fraction(1, 2)}, delayed=True, pays=False),
    Kind("no money", pays=False),
    Kind("one unit less", behaviour={"short_by": 1}, delayed=True),
    Kind("a few units less", behaviour={"short_by": 3}, delayed=True, pays=False),
    Kind("two parts far apart", behaviour={"parts": 2}, delayed=True, far_apart=True),
    Kind("paid from outside", behaviour={"paid_from_outside": True}),
    Kind(
        "nothing arrives, never closes",
        behaviour={"delivered": Fraction(0), "keeps_open": True},
        pays=False,
    ),
    Kind("sends as it is closed", behaviour={"sends_when_closed": True}),
    Kind(
        "4xx, pays, hides",
        behaviour={"refuses_accepted": True, "hides_payments": True},
        delayed=True,
    ),
    Kind(
        "pays others too",
        {"own_payment_ids": True},
        {"pays_others": 21},  # more than a page
        delayed=True,
    ),
    Kind(
        "accepts, pays only others",
        {"own_payment_ids": True},
        {"pays_others": 2, "phantom": True},
        pays=False,
    ),
    Kind("tokens expire", short_tokens=True, delayed=True),
    Kind("tokens expire, none rotated", {"rotates": False}, short_tokens=True, delayed=True),
    Kind("loses tokens", {"loses_tokens": 0.3}, delayed=True),
    Kind("loses tokens, none rotated", {"loses_tokens": 0.3, "rotates": False}, delayed=True),
)
LIKE_RAFIKI_TOO: Final = 8  # additional shares of the first kind

_ENDLESS: Final = {"incoming_life": timedelta(days=365)}

SHOPS: Final = (
    Shop("like Rafiki"),
    *(
        Shop(f"complete: {name}", {"closing": closing})
        for name, closing in CLOSINGS.items()
        if name != "200"
    ),
    Shop("ignores expiresAt", _ENDLESS),
    Shop("ignores expiresAt, complete: 403", {"closing": CLOSINGS["403"], **_ENDLESS}),
)


class Stumbles:
    """Servers that cannot take an approval for up to four minutes after they were asked first.

    They fail, or do not answer, or cannot read our keys.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._until: dict[str, tuple[int, int]] = {}  # by continuation: milliseconds, how

    def answer(self, request: Request, now: int) -> Response | OpenPaymentsError | None:
        """Return what is answered in place of the server; None if it takes the request."""
        if request.method != "POST" or "/continue/" not in request.url:
            return None
        drawn = self._rng.randrange(240_000), self._rng.randrange(3)
        until, how = self._until.setdefault(request.url, (now + drawn[0], drawn[1]))
        if now >= until:
            return None
        keys = gnap(400, "invalid_client", "could not determine client").response
        return (Response(502, {}, b"Bad Gateway"), keys, OutcomeUnknown("no answer"))[how]


def network(
    kind: Kind,
    shop: Shop,
    rng: random.Random,
    now: Callable[[], datetime],
    jwk: dict[str, str],
    *,
    skewed: bool,
    asset: tuple[str, int] = ("USD", 2),
    theirs: tuple[str, int] = ("EUR", 2),
    refunding: Refunding | None = None,
    misses: Mapping[str, int] | None = None,
    fetch: Callable[[str], bytes] = no_fetch,
) -> Network:
    """The two providers, the customer's wallets and the shop's with its registered key.

    The customer's wallet is in the asset `theirs`. `misses` is how the shop's wallet misses what it
    has quoted. `fetch` gets the documents of clients that are no wallets.
    """
    behaviour = Behaviour(kind.name, **kind.behaviour, **_delays(kind, rng))
    tokens: dict[str, Any] = {}
    if kind.short_tokens:
        tokens["token_life"] = timedelta(seconds=_token_life(rng))
    skews = [skew(rng) if skewed else 0 for _ in range(2)]
    pays = {**(misses or {}), **refunding.behaviour} if refunding else {}
    rules = refunding.rules if refunding else {}
    made = Network(
        now,
        rng.randbytes,
        providers=(
            _provider("cedar", 4101, Rules(**kind.rules, **tokens), skews[0]),
            _provider("harbor", 4201, Rules(**shop.rules, **rules), skews[1]),
        ),
        fetch=fetch,
        behaviours={
            "normal": Behaviour("Pays."),
            "kind": behaviour,
            "shop": Behaviour("Refunds.", **pays),
        },
    )
    money = 0 if kind.name == "no money" else 1_000_000
    made.add_account(Account(CUSTOMER, "Customer", *theirs, money * 10 ** theirs[1], "kind"))
    made.add_account(Account(OTHER_WALLET, "Bob", *asset, 1_000_000 * 10 ** asset[1]))
    if kind.behaviour.get("short_by"):
        plenty = 1_000_000 * 10 ** asset[1]
        made.add_account(Account(UNCONVERTED, "Una", *asset, plenty, "kind"))
    made.add_account(Account(SHOP, "Shop", *asset, money_of(refunding, asset), "shop"))
    made.add_account(Account(MARKET, "Market", *asset, money_of(refunding, asset), "shop"))
    for wallet in OURS:
        made.register_key(wallet, jwk)
    return made


def money_of(refunding: Refunding | None, asset: tuple[str, int]) -> int:
    """Return what the shop's wallet has at the beginning: refunds may cost more than they made."""
    return 0 if refunding is None or refunding.broke else 1_000_000 * 10 ** asset[1]


def _delays(kind: Kind, rng: random.Random) -> dict[str, Any]:
    delays: dict[str, Any] = {}
    if kind.delayed:
        longest = (1_000, 30_000, 200_000)[rng.randrange(3)]
        delays["delivers_after"] = timedelta(milliseconds=rng.randrange(1, longest))
    if kind.in_flight:
        delays["in_flight"] = timedelta(milliseconds=rng.randrange(1, 30_000))
    if kind.behaviour.get("sends_when_closed"):
        delays["in_flight"] = timedelta(seconds=29.9)
        if rng.random() < 0.3:
            delays["in_flight"] = timedelta(milliseconds=rng.randrange(1, 30_000))
    if kind.behaviour.get("parts", 1) > 1:
        longest = 2_000_000 if kind.far_apart else 200_000
        delays["parts_apart"] = timedelta(milliseconds=rng.randrange(1, longest))
    if "quote_life" not in kind.behaviour:
        life = (20, 60, 300, 300)[rng.randrange(4)]
        delays["quote_life"] = timedelta(seconds=life)
    return delays


def skew(rng: random.Random) -> int:
    """Milliseconds that a clock is ahead by, half of the time as many as can be."""
    return (-SKEW_MAX, SKEW_MAX, *(rng.randrange(-SKEW_MAX, SKEW_MAX + 1),) * 2)[rng.randrange(4)]


def _token_life(rng: random.Random) -> int:
    return (15, 60, 300)[rng.randrange(3)]


def _provider(name: str, port: int, rules: Rules, ahead: int) -> Provider:
    return Provider(
        name=name,
        title=name.capitalize(),
        origin=f"https://localhost:{port}",
        auth_origin=f"https://localhost:{port + 1}",
        tenant="438fa74a-fa7d-4317-9ced-dde32ece1787",
        rules=rules,
        skew=timedelta(milliseconds=ahead),
    )
