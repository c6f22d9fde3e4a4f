"""What a customer has given - name, e-mail address, postal address, answers - is shown to the shop,
and to the browser that paid; and after an erasure to nobody.

A canary comes in by every door, and is looked for on every page of every stage as a stranger opens
it, in every e-mail to others, event, export and row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pkgutil import iter_modules
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from fastapi.routing import APIRoute

import pay
from checkout import cli, telemetry
from checkout.adapters.dynamo.erasure import DynamoRecords
from checkout.adapters.instrumented import InstrumentedSessions, InstrumentedTransport
from checkout.adapters.outbound.wallets import SignedWallets
from checkout.domain.ground.ids import session_ref
from checkout.domain.session.collect import Collect, Detail, Place, Question, QuestionKind
from checkout.domain.session.record import Session
from checkout.domain.webhooks.record import Format
from checkout.flows.payment import sealed
from checkout.flows.payment.sealed import Proof
from tests.attacks.ledger import forms
from tests.support.attack_counts import Attack
from tests.support.doors import FORM, TABLES, Doors, Visitor
from tests.support.flows import CEDAR, PREFIX, World
from tests.support.hosted_pages import Answer
from tests.support.merchant_api import a_body, gateway_event
from tests.support.outbox import Outbox
from tests.support.rows import row_text
from tests.support.sources import files
from tests.support.stripe_api import SESSIONS, a_purchase, pairs

pytestmark = pytest.mark.untraced

Told = Callable[[], list[dict[str, Any]]]
ALICE = f"{CEDAR}/alice"
NAME, EMAIL = "Canary Featherstone", "canary@featherstone.example"
STREET, ANSWER = "Featherstone Lane 4711", "wrapped in yellow paper"
CANARY = (NAME, EMAIL, STREET, ANSWER, "featherstone")
STRANGER = "stranger@elsewhere.example"
TYPED = {
    "email": EMAIL,
    "shipping_form": "DE",
    "shipping_country": "DE",
    "shipping_name": NAME,
    "shipping_line1": STREET,
    "shipping_postal_code": "10115",
    "shipping_city": "Berlin",
    "answer_question1": ANSWER,
}
ASKED = Collect(
    asked=frozenset({Detail.EMAIL, Place.SHIPPING}),
    required=frozenset({Detail.EMAIL, Place.SHIPPING}),
    ships_to=("DE", "US"),
    questions=(Question("question1", "Wish", QuestionKind.TEXT),),
)
OURS = {"sec-fetch-site": "same-origin"}


def leaks(texts: list[str]) -> set[str]:
    """Return the parts of the canary that are in these texts, in any form."""
    whole = "\n".join(texts)
    plain = whole.casefold()
    return {
        each
        for each in CANARY
        if each.casefold() in plain or any(form in whole for form in forms(each))
    }


@dataclass(frozen=True)
class Door:
    """A way in: `begin` makes a session, `after` comes when it is paid.

    `seals` is the module and the function of flows/session/details.py that seals what comes in;
    None if nothing is stored, or if the shop has it stored in the clear (`in_rows`).
    """

    begin: Callable[[Life, Visitor], Session]
    after: Callable[[Life], object] = lambda life: None
    seals: tuple[str, str] | None = None
    in_rows: bool = False
    seen: tuple[str, ...] = ()  # by the customer, on the page after the payment


class Life:
    """A purchase in which the canary comes in by one door, and what others see of it."""

    def __init__(self, door: str) -> None:
        self.door, self.outbox, self.world = DOORS[door], Outbox(), World()
        self.world.services = replace(self.world.services, mail=self.outbox)
        self.doors = Doors(self.world)
        merchants = self.world.services.merchants
        merchants.replace(self.world.stored().changed(withdrawal_days=14))
        self.world.listen()
        self.link = self.world.link(collect_json=ASKED.to_json())
        self.customer = Visitor()
        self.pages: dict[str, list[str]] = {}
        self._orders = 0

    def log(self) -> None:
        """Log each call of the stores and the wallets, as it is done where it is deployed."""
        world = self.world
        sessions = InstrumentedSessions(
            world.dynamo,
            PREFIX,
            sleep=world.clock.sleep,
            random_bytes=world.core.random_bytes,
        )
        transport = InstrumentedTransport(world.transport, world.clock.now)
        wallets = SignedWallets(transport, world.vault, world.clock, allow_loopback=True)
        world.core = replace(world.core, sessions=sessions)
        world.services = replace(world.services, sessions=sessions, wallets=wallets)
        world.endpoints = replace(world.endpoints, sessions=sessions)

    # --- what the customer does

    def live(self) -> None:
        self.session = self.door.begin(self, self.customer)
        self.look("open")
        back = self.submitted(self.customer)
        self.look("priced")
        assert self.doors.follow(back, self.customer).location.endswith("/success")
        self.look("paid")
        self.door.after(self)
        self.look("afterwards")
        self.world.deliver_hinted()

    def submitted(self, browser: Visitor) -> str:
        """Give a wallet and approve there; return the address of the way back."""
        assert self.doors.submit(self.session, visitor=browser).status == 303
        self.session = self.world.session(self.session.id)
        return self.world.network.approve(str(self.session.interact_url))

    def form(self, rest: str, fields: dict[str, str], visitor: Visitor | None = None) -> Answer:
        path = f"/{self.session.id}{rest}"
        answer = self.doors.pay("POST", path, fields, visitor=visitor, headers=OURS)
        assert answer.status == 303, answer.body
        return answer

    def order(self) -> dict[str, str]:
        self._orders += 1
        return {"Idempotency-Key": f"order-{self._orders}"}

    # --- what others do

    def strangers(self) -> None:
        """Have a stranger do all that the address of a paid session lets them do."""
        self.form("/receipt", {"email": STRANGER})
        if self.world.services.withdrawals.get(self.session.id) is None:
            said = {"name": "Somebody Else", "email": STRANGER, "confirmed": "1"}
            self.form("/withdrawal", said)
        self.look("withdrawn")

    def canceled(self) -> None:
        """Have the shop cancel a second session."""
        paid, self.session = self.session, self.door.begin(self, Visitor())
        assert self.doors.call("POST", f"/{self.session.id}/cancel").status == 200
        self.look("canceled")
        self.session = paid

    def look(self, stage: str) -> None:
        """Open every page in a browser that has never been here."""
        seen = self.pages[f"pages, {stage}"] = []
        for path in openable():
            where = path.format(session_id=self.session.id, link_id=self.link.id, token="x" * 22)
            for query in ("", "mailed=1", "result=grant_rejected", "interact_ref=x&hash=y"):
                answer = self.doors.browse("pay", "GET", where, None, query)
                seen.append(f"{answer.headers}\n{answer.body}")

    # --- where it could be

    def places(self) -> dict[str, list[str]]:
        """Return the texts that have to be without the canary, by their place."""
        owner, other = self.doors.signed_in(), self.doors.signed_in(self.doors.other_key)
        reads = ("items", "attempts", "accounting")
        letters = [each for each in self.outbox.letters if each.to != EMAIL]
        places = {
            **self.pages,
            "mail to others": [f"{each.subject}\n{each.text}\n{each.html}" for each in letters],
            "events": [body.decode() for _, _, body in self.world.receivers.got],
            "exports without customers": self.files(owner, reads),
            "exports of another shop": self.files(other, ("transactions", *reads)),
            "pages of another shop": [
                self.doors.dashboard("GET", path, visitor=other).body
                for path in ("", f"/transactions/{self.session.id}")
            ],
        }
        return places if self.door.in_rows else {**places, "rows": self.rows()}

    def files(self, visitor: Visitor, names: tuple[str, ...]) -> list[str]:
        found = (
            self.doors.dashboard("GET", f"/export/{name}.csv", visitor=visitor) for name in names
        )
        return [each.body for each in found if each.status == 200]

    def rows(self) -> list[str]:
        return [row_text(row) for name in TABLES for row in self.world.dynamo.rows(name)]

    def shown(self) -> list[str]:
        """Return all that shows it rightly, to the customer and the shop, and all rows."""
        owner, whole = self.doors.signed_in(), f"/{self.session.id}"
        asked = {"Host": "pay.example", "Authorization": f"Bearer {self.doors.key}"}
        event = gateway_event("GET", f"{SESSIONS}{whole}", "", asked, None)
        answers = [
            *(
                self.doors.pay("GET", f"{whole}{rest}", visitor=self.customer)
                for rest in ("/success", "/withdrawal")
            ),
            *(
                self.doors.dashboard("GET", path, visitor=owner)
                for path in ("", f"/transactions{whole}", f"/transactions{whole}/packing")
            ),
            self.doors.call("GET", whole),
            self.doors.send("v1", event),
        ]
        return [
            *(each.body for each in answers),
            *self.files(owner, ("transactions",)),
            *self.rows(),
        ]

    def erase(self, *whom: str) -> int:
        return cli.main(
            ["erase", *whom],
            lambda: replace(self.world.endpoints, allow_loopback=True),
            lambda: DynamoRecords(self.world.dynamo, PREFIX),
        )


def openable() -> list[str]:
    """Return the path of every customers' page that GET opens."""
    modules = (import_module(f"pay.{each.name}") for each in iter_modules(pay.__path__))
    routers = (module.router for module in modules if hasattr(module, "router"))
    routes = (route for router in routers for route in router.routes)
    return sorted(
        {
            each.path
            for each in routes
            if isinstance(each, APIRoute) and "GET" in (each.methods or ())
        }
    )


# --- the doors


def nothing_given(life: Life, browser: Visitor) -> Session:
    return life.doors.create()


def details_form(life: Life, browser: Visitor) -> Session:
    asks = {"email": "required", "shipping": "required", "ships_to": ["DE", "US"]}
    questions = [{"label": "Wish", "kind": "text"}]
    session = life.doors.create(collect={**asks, "questions": questions})
    path = f"/{session.id}/details"
    assert life.doors.pay("POST", path, TYPED, visitor=browser, headers=OURS).status == 303
    return life.world.session(session.id)


def payment_link(life: Life, browser: Visitor) -> Session:
    path = f"/buy/{life.link.id}"
    page = life.doors.browse("pay", "GET", path, None, visitor=browser).page
    fields = {**TYPED, "visit": page.one("input", name="visit").attributes["value"]}
    answer = life.doors.browse("pay", "POST", path, fields, visitor=browser, headers=OURS)
    return life.world.session(answer.location.rpartition("/")[2])


def known_email(life: Life, browser: Visitor) -> Session:
    made = life.doors.call("POST", "", a_body(customer_email=EMAIL), headers=life.order())
    return life.world.session(made.json["id"])


def known_email_of_v1(life: Life, browser: Visitor) -> Session:
    sent = {"Host": "pay.example", "Authorization": f"Bearer {life.doors.key}"}
    sent |= {"Content-Type": FORM, **life.order()}
    raw = urlencode(list(pairs(a_purchase(customer_email=EMAIL)))).encode()
    made = life.doors.send("v1", gateway_event("POST", SESSIONS, "", sent, raw))
    return life.world.session(made.json["id"])


def withdraws(life: Life) -> None:
    said = {"name": NAME, "email": EMAIL, "confirmed": "1"}
    life.form("/withdrawal", said, life.customer)


def asks_for_the_receipt(life: Life) -> None:
    life.form("/receipt", {"email": EMAIL}, life.customer)


GIVEN = (NAME, STREET, EMAIL)
DOORS = {
    "details form": Door(details_form, seals=("details", "seal"), seen=GIVEN),
    "payment link": Door(payment_link, seals=("purchase", "seal"), seen=GIVEN),
    "customer_email": Door(known_email, seals=("create", "seal_by_api"), seen=(EMAIL,)),
    # Stripe's clients get it back in each answer, so it is stored as the shop gave it.
    "customer_email of /v1": Door(known_email_of_v1, in_rows=True),
    "withdrawal": Door(nothing_given, withdraws, seals=("withdrawals", "seal_said")),
    "receipt": Door(nothing_given, asks_for_the_receipt),
}


def test_every_door_by_which_details_come_in_is_here() -> None:
    sealing = re.compile(r"(?:\b(?:customer_)?details\.|= )(seal|seal_by_api|seal_said)\(")
    found = {
        (path.stem, name)
        for folder in ("functions", "layers")
        for path in files(".py", folder)
        for name in sealing.findall(path.read_text("utf-8"))
    }
    assert found == {door.seals for door in DOORS.values() if door.seals}


@pytest.mark.parametrize("door", DOORS)
def test_what_a_customer_gave_is_shown_to_nobody_else(attack: Attack, door: str) -> None:
    life = Life(door)
    life.live()
    life.strangers()
    life.canceled()

    def attempt(texts: list[str]) -> None:
        assert texts
        assert leaks(texts) == set()

    attack.each(life.places(), attempt)


@pytest.mark.parametrize("door", DOORS)
def test_no_log_line_has_what_a_customer_gave(
    monkeypatch: pytest.MonkeyPatch, told: Told, door: str
) -> None:
    monkeypatch.setattr(telemetry, "SAMPLE", 1)  # every request's debug lines
    telemetry.start("pay")
    life = Life(door)
    life.log()
    life.live()
    life.strangers()
    lines = [json.dumps(line) for line in told()]
    assert lines
    assert leaks(lines) == set()


# --- the browsers that may see it


def seen_by(life: Life, browser: Visitor) -> set[str]:
    """Return what this browser is shown after the payment, and on the form of a withdrawal."""
    pages = (f"/{life.session.id}{rest}" for rest in ("/success", "/withdrawal"))
    return leaks([life.doors.pay("GET", each, visitor=browser).body for each in pages])


@pytest.mark.parametrize("door", [name for name, door in DOORS.items() if door.seen])
def test_the_browser_that_paid_is_shown_what_its_customer_gave(door: str) -> None:
    life = Life(door)
    life.live()
    assert seen_by(life, life.customer) >= set(life.door.seen)
    page = life.doors.pay("GET", f"/{life.session.id}/success").page
    assert "c…@f…" in page.main
    assert ("C. …" in page.main) == (NAME in life.door.seen)
    assert "For 30 days they are shown in the browser in which you paid." in page.main
    assert page.one("input", id="email").attributes["value"] == ""
    form = life.doors.pay("GET", f"/{life.session.id}/withdrawal").page
    assert [form.one("input", id=each).attributes["value"] for each in ("name", "email")] == [
        "",
        "",
    ]
    assert "Your details are hidden here." in form.main


def test_a_withdrawal_is_shown_to_the_browser_that_filed_it_and_masked_to_others() -> None:
    life = Life("withdrawal")
    life.live()
    filed = {name: value for name, value in life.customer.cookies.items() if "filed" in name}
    path = f"/{life.session.id}/withdrawal"
    assert leaks([life.doors.pay("GET", path, visitor=Visitor(filed)).body]) >= {NAME, EMAIL}
    other = life.doors.pay("GET", path).page.main
    assert "C. …" in other
    assert "c…@f…" in other
    assert "Your details are hidden here." in other


def scans_and_pays(life: Life) -> Visitor:
    back = life.submitted(life.customer)
    grant = sealed.pending_grant(life.world.services.vault, life.session)
    assert grant is not None
    query, phone = f"device={grant.proof(life.session.id, Proof.DEVICE)}", Visitor()
    path, typed = f"/{life.session.id}", {"sec-fetch-site": "none"}
    life.doors.pay("GET", path, query=query, visitor=phone, headers=typed)
    assert life.doors.follow(back, phone).location.endswith("/success")
    return phone


def began_and_had_a_phone_pay(life: Life) -> Visitor:
    scans_and_pays(life)
    return life.customer


def confirms_elsewhere(life: Life) -> Visitor:
    back, elsewhere = urlsplit(life.submitted(life.customer)), Visitor()
    life.world.clock.pass_time(5)
    path, query = back.path.removeprefix("/pay"), back.query
    answer = life.doors.pay("POST", path, query=query, visitor=elsewhere, headers=OURS)
    assert answer.location.endswith("/success")
    return elsewhere


def began_an_earlier_attempt(life: Life) -> Visitor:
    stranger = Visitor()
    life.submitted(stranger)
    assert life.doors.follow(life.submitted(life.customer), life.customer).status == 303
    return stranger


def began_what_somebody_paid_from_outside(life: Life) -> Visitor:
    life.doors.submit(life.session, visitor=life.customer)
    life.session = life.world.session(life.session.id)
    life.world.pay_from_outside(life.session, life.session.receive.value)
    life.doors.submit(life.session, visitor=life.customer)  # the next look at the money
    return life.customer


def repeats_the_return(life: Life) -> Visitor:
    back, stranger = urlsplit(life.submitted(life.customer)), Visitor()
    life.doors.follow(back.geturl(), life.customer)
    path = back.path.removeprefix("/pay")
    for query in (back.query, "interact_ref=x&hash=y"):
        life.doors.pay("GET", path, query=query, visitor=stranger)
        life.doors.pay("POST", path, query=query, visitor=stranger, headers=OURS)
    return stranger


def has_the_cookie_of_another_purchase(life: Life) -> Visitor:
    """The name of the cookie is this session's, its value that of another one."""
    mine, other = life.session, Visitor()
    life.session = life.door.begin(life, other)
    life.doors.follow(life.submitted(other), other)
    [value] = (value for name, value in other.cookies.items() if "paid" in name)
    life.session = mine
    life.doors.follow(life.submitted(life.customer), life.customer)
    return Visitor({f"__Secure-paid-{session_ref(life.session.id)}": value})


def has_the_cookie_of_the_approval(life: Life) -> Visitor:
    life.doors.follow(life.submitted(life.customer), life.customer)
    [value] = (value for name, value in life.customer.cookies.items() if "__Host-pay" in name)
    return Visitor({f"__Secure-paid-{session_ref(life.session.id)}": value})


SEEING = (scans_and_pays, began_and_had_a_phone_pay, confirms_elsewhere)
BLIND = (
    began_an_earlier_attempt,
    began_what_somebody_paid_from_outside,
    repeats_the_return,
    has_the_cookie_of_another_purchase,
    has_the_cookie_of_the_approval,
)


@pytest.mark.parametrize("who", [*SEEING, *BLIND], ids=lambda who: who.__name__)
def test_a_browser_sees_the_details_only_if_the_attempt_that_paid_was_its_own(
    who: Callable[[Life], Visitor],
) -> None:
    life = Life("details form")
    life.session = life.door.begin(life, life.customer)
    browser = who(life)
    assert life.world.session(life.session.id).status == "completed"
    assert bool(seen_by(life, browser)) == (who in SEEING)


def test_the_cookie_is_sent_to_this_session_alone_for_thirty_days() -> None:
    life = Life("details form")
    life.session = life.door.begin(life, life.customer)
    answer = life.doors.submit(life.session, visitor=life.customer)
    [cookie] = (each for each in answer.headers["set-cookie"].split("\n") if "paid" in each)
    name, *rest = cookie.split("; ")
    assert re.fullmatch(rf"__Secure-paid-{session_ref(life.session.id)}=[0-9a-f]{{32}}", name)
    assert {each.lower() for each in rest} == {
        "httponly",
        "secure",
        "samesite=lax",
        "max-age=2592000",
        f"path=/pay/{life.session.id}".lower(),
    }


def test_a_session_without_anything_to_show_sets_no_further_cookie() -> None:
    doors = Doors()
    answer = doors.submit(doors.create())
    assert answer.headers["set-cookie"].count("\n") == 0
    assert "paid" not in answer.headers["set-cookie"]


# --- erased


def handles(life: Life) -> Iterator[tuple[str, str]]:
    """Yield the arguments of `checkout erase` that name the customer."""
    yield "--email", EMAIL
    yield "--wallet-address", ALICE
    yield "--session", life.session.id


HANDLES = ("e-mail", "wallet", "session")


@pytest.mark.parametrize(
    "door", [name for name, door in DOORS.items() if door.seals or door.in_rows]
)
def test_an_erasure_leaves_nothing_of_what_came_in(attack: Attack, door: str) -> None:
    def attempt(handle: str) -> None:
        life = Life(door)
        world = life.world
        endpoint = replace(world.endpoint(), format=Format.STRIPE, asked=("*",))
        world.services.merchants.replace(world.stored().changed(endpoint=endpoint))
        life.live()
        assert leaks(life.shown())
        whom = dict(zip(HANDLES, handles(life), strict=True))[handle]
        assert life.erase(*whom) == 0
        assert leaks(life.shown()) == set()
        session = world.session(life.session.id)
        filed = world.services.withdrawals.get(session.id)
        sealed_texts = (session.customer_details, session.customer_further, session.customer_mark)
        assert (*sealed_texts, filed and filed.said) == (None, None, None, None)
        assert session.customer_marks is None
        before = life.rows()
        assert life.erase(*whom) == 0
        assert life.rows() == before, "a second run changes nothing"

    attack.each(HANDLES, attempt)
