"""A stranger's text costs no more than its length: nothing that reads it works with its square.

Each public field of each route gets texts of growing length until they are refused for it, of
alphabets that patterns are slow for, or that grow when they are normalized. Steps and bytes are
counted, not time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from fastapi.routing import APIRoute

import api.v1.app  # noqa: F401  (all modules of the product are to be loaded)
import dashboard.app
import expirer.app  # noqa: F401
import webhook_sender.app  # noqa: F401
from checkout.domain.links import OpenAmount
from checkout.domain.merchant.people import SignUp
from dashboard import people, sign_in
from pay import alternative_wallet, links, routes, till, withdrawals
from tests.attacks.steps import (
    PRODUCT,
    Matcher,
    Meter,
    TooManySteps,
    bytes_of,
    counted,
    metered,
    patterns_of,
)
from tests.support.attack_counts import Attack
from tests.support.doors import Doors, Visitor
from tests.support.flows import CEDAR
from tests.support.protected import OPEN

pytestmark = pytest.mark.untraced

# The budget of a request with a text of n characters: a base, and an amount for each character.
STEPS, STEPS_EACH = 60_000, 150
BYTES, BYTES_EACH = 1_500_000, 100
# Shorter texts are within the base. The longest that may be read has 2048 characters; of one that
# grows when it is normalized, a third of that.
LENGTHS = (512, 1024, 2048)
SHORT, LONG = 4096, 16_384  # what headers and paths may carry; in bodies
LONGEST = 131_072  # a gateway lets 256 KB through

# A text of about n characters, by what is bad about it.
ALPHABETS: dict[str, Callable[[int], str]] = {
    "letters": lambda n: "a" * n,
    "digits": lambda n: "4" * n,
    "blanks": lambda n: "a" + " " * n + "a",
    "dots": lambda n: "." * n,
    "labels": lambda n: "a." * (n // 2),
    "slashes": lambda n: "$a" + "/." * (n // 2),
    "at signs": lambda n: "a@" * (n // 2) + "a.",
    "e-mail": lambda n: "a" * (n // 3) + "@" + "a." * (n // 3) + "/",
    "e-mail that grows": lambda n: "㎯" * (n // 3) + "@a" + "…" * (n // 3) + "/",
    "ligatures": lambda n: "https://" + "ﷺ" * n,
    "combining": lambda n: "https://a" + "\u0301\u0316" * (n // 2),
    "idna": lambda n: "https://" + "ü" * n + ".example/a",
    "idna labels": lambda n: "https://" + "ﬃü." * (n // 3) + "example/a",
    "words": lambda n: "abandon " * (n // 8),
    "names": lambda n: "{name}" * (n // 6),
    "schemes": lambda n: "https://" * (n // 8),
    "quotes": lambda n: "\"'" * (n // 2),
    "escapes": lambda n: "%41" * (n // 3),
    "punctuation": lambda n: "=;,&" * (n // 4),
    "brackets": lambda n: "[" * n,
}
FEW = ("letters", "dots", "punctuation", "brackets")
FORM_OF_ADDRESSES = "https://wallet.example/{name}"


@dataclass
class Place:
    """Something of everything that a stranger can ask for."""

    doors: Doors

    def __post_init__(self) -> None:
        world = self.doors.world
        world.endpoints = replace(world.endpoints, sign_up=SignUp.OPEN)
        self.open = self.doors.create().id
        self.visitor = Visitor()
        self.approved, self.back = self.doors.approved(self.visitor)
        self.paid = world.pay(self.doors.create(), f"{CEDAR}/alice").id
        shop = world.stored()
        world.services.merchants.replace(shop.changed(withdrawal_days=14))
        self.till = world.link(open_amount=OpenAmount(100, 5_000, ()), unit_amount=100).id
        self.browser = Visitor()
        self.doors.dashboard("GET", "/sign-in", visitor=self.browser)

    def wallet(self, text: str, **others: str) -> None:
        self.doors.pay("POST", f"/{self.open}/wallet", {"wallet_address": text} | others)

    def wallet_json(self, text: str) -> None:
        sent = {"content-type": "application/json", "accept": "application/json"}
        body = json.dumps({"wallet_address": text}, ensure_ascii=False).encode()
        self.doors.pay("POST", f"/{self.open}/wallet", body, headers=sent)

    def at_provider(self, text: str) -> None:
        self.wallet(text, provider=FORM_OF_ADDRESSES)

    def provider(self, text: str) -> None:
        self.wallet("alice", provider=text)

    def many_names(self, text: str) -> None:
        half = len(text) // 2
        self.wallet("a" * half, provider="https://wallet.example/" + "{name}" * (half // 6))

    def post(self, path: str, name: str, text: str, **others: str) -> None:
        self.doors.pay("POST", path, {name: text} | others)

    def get(self, path: str, name: str, text: str) -> None:
        self.doors.pay("GET", path, query=urlencode({name: text}))

    def header(self, name: str, text: str) -> None:
        plain = "".join(each if " " <= each <= "~" else "%" for each in text)
        self.doors.pay("GET", f"/{self.open}", headers={name: plain})

    def cookie(self, text: str) -> None:
        name = next(iter(self.visitor.cookies))
        plain = "".join(each if "!" <= each <= "~" else "%" for each in text)
        path, _, query = self.back.removeprefix("https://pay.example/pay").partition("?")
        self.doors.pay("GET", path, query=query, visitor=Visitor({name: plain}))

    def path(self, before: str, after: str, text: str) -> None:
        self.doors.pay("GET", f"{before}{quote(text, safe='')}{after}")

    def buy(self, method: str, path: str, text: str) -> None:
        fields = {"visit": text} if method == "POST" else None
        self.doors.browse("pay", method, f"/buy/{path or quote(text, safe='')}", fields)

    def at_till(self, method: str, path: str) -> None:
        fields = {"till": "1"} if method == "POST" else None
        self.doors.browse("pay", method, f"/buy/{self.till}/till/{path}", fields)

    def enter(self, path: str, name: str, text: str, **others: str) -> None:
        fields = {name: text, "form_token": self.browser.form_token} | others
        self.doors.dashboard("POST", path, fields, visitor=self.browser)

    def enter_get(self, path: str, text: str) -> None:
        self.doors.dashboard("GET", path.replace("TOKEN", quote(text, safe="")))

    def enter_query(self, text: str) -> None:
        self.doors.dashboard("GET", "/sign-in", query=urlencode({"next": text}))

    def sign_up(self, text: str) -> None:
        self.doors.dashboard("GET", "/sign-up", query=urlencode({"any": text}))

    def claim(self, token: str, text: str = "") -> None:
        fields = {"wallet_address": text} if text else None
        path = f"/{self.open}/claim/{quote(token, safe='')}"
        self.doors.pay("POST" if fields else "GET", path, fields)

    def withdraw(self, name: str, text: str) -> None:
        said = {"name": "Eva", "email": "eva@customer.example", name: text}
        self.doors.pay("POST", f"/{self.paid}/withdrawal", said)

    def key(self, scheme: str, text: str) -> None:
        plain = "".join(each if " " <= each <= "~" else "%" for each in text)
        self.doors.call("GET", "", key=None, headers={"Authorization": f"{scheme} {plain}"})


Send = Callable[[Place, str], None]
WALLET: dict[str, Send] = {
    "wallet_address, form": Place.wallet,
    "wallet_address, JSON": Place.wallet_json,
    "wallet_address, a name at a provider": Place.at_provider,
    "provider": Place.provider,
    "provider and wallet_address": Place.many_names,
}


def each(send: Callable[[Place, str, str], None], *names: str) -> dict[str, Send]:
    """Return how to send each of these by its name."""

    def of(name: str) -> Send:
        return lambda place, text: send(place, name, text)

    return {name: of(name) for name in names}


def _of(method: str, path: str, *names: str, **others: str) -> dict[str, Send]:
    """Return how to send each of these parameters to a page under /pay."""

    def send(place: Place, name: str, text: str) -> None:
        session = place.approved.id if "callback" in path else place.open
        if method == "POST":
            place.post(f"/{session}{path}", name, text, **others)
        else:
            place.get(f"/{session}{path}", name, text)

    return each(send, *names)


def _entering(path: str, *names: str, **others: str) -> dict[str, Send]:
    """Return how to send each of these fields of a form of the dashboard."""
    return each(lambda place, name, text: place.enter(path, name, text, **others), *names)


# By the route, as the application has it: each has the fields that a stranger sends there.
FIELDS: dict[tuple[str, str], dict[str, Send]] = {
    ("GET", "/pay/{session_id}"): {
        **_of("GET", "", "was", "device", "any"),
        "session_id": lambda place, text: place.path("/", "", text),
        **each(Place.header, "accept-language", "content-type", "x-forwarded-for", "edge-secret"),
        **each(Place.header, "accept", "origin", "sec-fetch-site", "sec-purpose"),
    },
    ("POST", "/pay/{session_id}/wallet"): {
        **WALLET,
        **_of("POST", "/wallet", "was", "any", wallet_address="alice"),
    },
    ("POST", "/pay/{session_id}/receipt"): _of("POST", "/receipt", "email", "any"),
    ("GET", "/pay/{session_id}/status"): {
        "session_id": lambda place, text: place.path("/", "/status", text)
    },
    ("GET", "/pay/{session_id}/grant/callback"): {
        **_of("GET", "/grant/callback", "hash", "interact_ref", "result"),
        "hash and interact_ref": lambda place, text: place.get(
            f"/{place.approved.id}/grant/callback", "interact_ref", f"{text}&hash={text}"
        ),
        "cookie": Place.cookie,
    },
    ("POST", "/pay/{session_id}/grant/callback"): _of("POST", "/grant/callback", "any"),
    ("GET", "/pay/{session_id}/watch"): _of("GET", "/watch", "saw"),
    ("GET", "/pay/{session_id}/success"): _of("GET", "/success", "mailed"),
    ("GET", "/pay/{session_id}/qr"): _of("GET", "/qr", "any"),
    ("GET", "/pay/{session_id}/logo"): _of("GET", "/logo", "v"),
    ("GET", "/pay/{session_id}/claim/{token}"): {"token": Place.claim},
    ("POST", "/pay/{session_id}/claim/{token}"): {
        "token": lambda place, text: place.claim(text, "alice"),
        "wallet_address": lambda place, text: place.claim("x", text),
    },
    ("GET", "/pay/{session_id}/withdrawal"): {
        "session_id": lambda place, text: place.path("/", "/withdrawal", text)
    },
    ("POST", "/pay/{session_id}/withdrawal"): each(
        Place.withdraw, "name", "email", "confirmed", "any"
    ),
    ("GET", "/buy/{link_id}"): {"link_id": lambda place, text: place.buy("GET", "", text)},
    ("POST", "/buy/{link_id}"): {"link_id": lambda place, text: place.buy("POST", "", text)},
    ("GET", "/buy/{link_id}/logo"): {
        "link_id": lambda place, text: place.buy("GET", f"{quote(text, safe='')}/logo", text)
    },
    ("GET", "/buy/{link_id}/till"): {
        "link_id": lambda place, text: place.buy("GET", f"{quote(text, safe='')}/till", text)
    },
    ("GET", "/buy/{link_id}/till/{session_id}"): {
        "session_id": lambda place, text: place.at_till("GET", quote(text, safe=""))
    },
    ("POST", "/buy/{link_id}/till/{session_id}/cancel"): {
        "session_id": lambda place, text: place.at_till("POST", f"{quote(text, safe='')}/cancel")
    },
    ("GET", "/dashboard/sign-in"): {"next": Place.enter_query},
    ("POST", "/dashboard/sign-in"): {
        **_entering("/sign-in", "api_key"),
        **_entering("/sign-in", "next", api_key="x"),
    },
    ("POST", "/dashboard/sign-in/options"): _entering("/sign-in/options", "any"),
    ("POST", "/dashboard/sign-in/passkey"): _entering("/sign-in/passkey", "credential", "next"),
    ("GET", "/dashboard/invitation/{token}"): {
        "token": lambda place, text: place.enter_get("/invitation/TOKEN", text)
    },
    ("POST", "/dashboard/invitation/{token}"): _entering("/invitation/x", "credential"),
    ("POST", "/dashboard/invitation/{token}/options"): _entering("/invitation/x/options", "any"),
    ("GET", "/dashboard/sign-up"): {"any": Place.sign_up},
    ("GET", "/dashboard/sign-up/{token}"): {
        "token": lambda place, text: place.enter_get("/sign-up/TOKEN", text)
    },
    ("POST", "/dashboard/sign-up"): {
        **_entering("/sign-up", "wallet_address"),
        **_entering("/sign-up", "invitation", wallet_address="x"),
    },
    ("POST", "/dashboard/sign-up/options"): _entering("/sign-up/options", "name", "invitation"),
    ("POST", "/dashboard/sign-up/passkey"): _entering(
        "/sign-up/passkey", "credential", "wallet_address", "name", "invitation"
    ),
    ("GET", "/api/checkout/sessions"): each(Place.key, "Bearer", "Basic"),
}
CASES = [(route, field) for route, fields in FIELDS.items() for field in fields]
IDS = [f"{method} {path} {field}" for (method, path), field in CASES]


@pytest.fixture(scope="module")
def place() -> Place:
    found = Place(Doors())
    for fields in FIELDS.values():  # work that is done once a process does not count for a text
        for send in fields.values():
            send(found, "a")
    return found


def test_every_public_route_is_here() -> None:
    open_to_all = {(method, f"/dashboard{path}") for method, path in OPEN}
    of_pages = {
        (method, route.path)
        for each in (routes, alternative_wallet, withdrawals, links, till)
        for route in each.router.routes
        if isinstance(route, APIRoute)
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert of_pages | open_to_all == FIELDS.keys() - {("GET", "/api/checkout/sessions")}
    assert {each.prefix for each in (sign_in.router, sign_in.router, people.invitations)} == {
        "",
        "/invitation/{token}",
    }
    assert dashboard.app.app


def texts(route: tuple[str, str], field: str) -> Iterator[tuple[str, int, str]]:
    """Yield the alphabet, the length and the text of each that this field gets."""
    in_body = route[0] == "POST" and "_id" not in field
    lengths: tuple[int, ...]
    if field == "wallet_address, form":
        alphabets, lengths = [*ALPHABETS], (*LENGTHS, LONG)
    elif field in WALLET:  # they lead to the same reader
        alphabets, lengths = [*ALPHABETS][::3], (LENGTHS[-1], LONG)
    else:
        alphabets, lengths = [*FEW], (LONG if in_body else SHORT,)
    for alphabet in alphabets:
        for length in lengths:
            yield alphabet, length, ALPHABETS[alphabet](length)


@pytest.mark.parametrize(("route", "field"), CASES, ids=IDS)
def test_a_text_costs_no_more_than_its_length(
    place: Place, attack: Attack, route: tuple[str, str], field: str
) -> None:
    def attempt(case: tuple[str, int, str]) -> None:
        _, length, text = case
        cost(FIELDS[route][field], place, text, length)

    attack.each({f"{case[0]} x {case[1]}": case for case in texts(route, field)}, attempt)


def cost(send: Send, place: Place, text: str, length: int) -> None:
    """Send a text of this length. Raise TooManySteps."""
    meter = Meter(most=STEPS + STEPS_EACH * length)
    with counted(meter), metered(meter):
        send(place, text)
    meter.step(0)


@pytest.mark.parametrize("field", WALLET)
def test_no_text_is_multiplied_by_another(place: Place, attack: Attack, field: str) -> None:
    def attempt(length: int) -> None:
        weigh(WALLET[field], place, length)

    attack.each({str(length): length for length in (LENGTHS[-1], LONG, LONGEST)}, attempt)


def weigh(send: Send, place: Place, length: int) -> None:
    """Send a text that names a place for another, again and again; refuse many bytes for it."""
    used = bytes_of(lambda: send(place, ALPHABETS["names"](length)))
    assert used < BYTES + BYTES_EACH * length, used


# --- the patterns by themselves, so that the next one is met before a route uses it

PATTERNS = {
    f"{module.__name__}.{name}": (module, name, pattern)
    for module, name, pattern in patterns_of(*PRODUCT)
    if re.search(rf"(?m)^{name}\b.* = ", Path(str(module.__file__)).read_text("utf-8"))
}
EACH = 40  # steps for a character; of a square there are as many as characters


def samples(pattern: str) -> list[str]:
    """Return characters and pairs of them that a pattern may be slow for, long ones of each."""
    alone = [*dict.fromkeys(re.sub(r"\\.|[\[\](){}|^*+?]", "", pattern) + "a1. \t@/=,:-_é")]
    pairs = [first + second for first in alone[:5] for second in alone[:5]]
    return [*alone, *pairs]


@pytest.mark.parametrize("name", PATTERNS)
def test_no_pattern_works_with_the_square(name: str) -> None:
    module, attribute, pattern = PATTERNS[name]
    source = Path(str(module.__file__)).read_text("utf-8")
    searches = re.search(rf"\b{attribute}\.(search|sub|split|findall|finditer)\(", source)
    for sample in samples(pattern.pattern):
        text = sample * (150 // len(sample)) + "\0"
        meter = Meter(most=EACH * len(text) + 2_000)
        matcher = Matcher(pattern, meter)
        matcher.end(text, 0, whole=True)
        if searches:
            matcher.each(text)


# --- that the counting counts


@pytest.mark.parametrize(
    ("pattern", "text", "too_many"),
    [
        (r"[^\s@]*[^\s@<]+@.", "a" * 300, True),
        (r"(a|a.)*b", "a" * 30, True),
        (r"\s+$", " " * 300 + "a", True),
        (r"a+@[^\s@]+", "@" * 300, False),
        (r"(?:[a-z]{3,8}[\s,]+){11,23}[a-z]{3,8}", "abandon " * 30, False),
    ],
)
def test_a_square_is_counted(pattern: str, text: str, too_many: bool) -> None:
    matcher = Matcher(re.compile(pattern), Meter(most=60 * len(text)))
    expected: AbstractContextManager[object] = nullcontext()
    if too_many:
        expected = pytest.raises(TooManySteps)
    with expected:
        matcher.each(text)


@pytest.mark.parametrize(
    "pattern",
    [
        r"a|b+c?",
        r"(?i)[k-z]+?\d",
        r"(?m)^x.*$",
        r"(?=..\Z)[^a]+",
        r"(?<![ab])c{2,3}",
        r"(ab)*?c",
        r"\bc\B.",
    ],
)
def test_the_counter_matches_as_the_library_does(pattern: str) -> None:
    compiled = re.compile(pattern)
    for letters in product("abckx1\n", repeat=3):
        text = "".join(letters)
        for name in ("fullmatch", "match", "search"):
            found = getattr(compiled, name)(text)
            matcher = Matcher(compiled, Meter())
            if name == "search":
                ours = matcher.search(text)
            else:
                end = matcher.end(text, 0, whole=name == "fullmatch")
                ours = None if end is None else (0, end)
            assert ours == (found.span() if found else None), (name, text)
