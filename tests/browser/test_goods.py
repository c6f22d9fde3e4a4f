"""A link that sends goods, from a phone with autofill to the parcel, until its customer is erased.

Customers in three countries, a member of the shop who has only the dashboard, the operator's
command, and every row of every table.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any, Final
from urllib.parse import quote

import httpx2
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from checkout.adapters.dynamo.codec import inflated
from checkout.adapters.dynamo.index_keys import search_key
from checkout.adapters.dynamo.records import session_from
from checkout.adapters.dynamo.sessions import with_cart
from checkout.domain.session.record import Session
from sandbox import cloud
from sandbox.place import Place
from sandbox.rehearsal.developer import with_authenticator
from tests.browser.steps import home, invited, joined, search, sign_in
from tests.support.processes import call, local_world, own_key
from tests.support.sources import REPOSITORY

pytestmark = pytest.mark.browser

ITEM: Final = "Beans in a parcel"
MEMBER: Final = "Ada Packer"
SESSIONS: Final = "checkout-checkout_sessions"
EVENTS: Final = "checkout-webhook_events"
WHO_HAS_BOUGHT: Final = ("customer_details", "collected_information", "custom_fields")
DELIVERED_WITHIN: Final = 30  # seconds


@dataclass(frozen=True)
class Buyer:
    """A customer and what their browser fills in, by the autofill names of the fields.

    The link's page first has the form of `first`, the country of the browser's language, or the
    first one to which the shop ships. The form of another country follows the choice.
    """

    language: str
    first: str
    card: dict[str, str]
    bad_code: str
    example: str
    answer: str
    wallet: str
    state: str | None
    label: list[str]

    @property
    def country(self) -> str:
        return self.card["shipping country"]

    def typed(self, place: Place) -> list[str]:
        """Return all texts that they gave, but the two letters of a state or country.

        Chance writes four letters or digits into random ids and sealed texts.
        """
        texts = [*self.card.values(), self.answer, self.bad_code, wallet(place, self.wallet)]
        found = [each for each in texts if len(each) > 2]
        assert all(len(each) > 4 or not each.isascii() for each in found)
        return found


BUYERS: Final = {
    "DE": Buyer(
        language="de-DE",
        first="DE",
        card={
            "email": "joerg.mueller@post.example",
            "shipping country": "DE",
            "shipping name": "Jörg Müller",
            "shipping address-line1": "Lange Straße 12",
            "shipping postal-code": "10115",
            "shipping address-level2": "Berlin",
        },
        bad_code="1011-55",
        example="26133",
        answer="Alles Gute, Großmutter",
        wallet="alice",
        state=None,
        label=["Jörg Müller", "Lange Straße 12", "10115 BERLIN", "GERMANY"],
    ),
    "US": Buyer(
        language="es-MX",
        first="DE",
        card={
            "email": "ana.bel@mail.example",
            "shipping country": "US",
            "shipping name": "Ana Bel",
            "shipping address-line1": "1 Main St",
            "shipping address-line2": "Apt 4",
            "shipping address-level2": "Springfield",
            "shipping address-level1": "IL",
            "shipping postal-code": "62701-1234",
        },
        bad_code="62701-12",
        example="95014",
        answer="Happy birthday, Bo",
        wallet="carol",
        state="Illinois",
        label=["Ana Bel", "1 Main St", "Apt 4", "SPRINGFIELD, IL 62701-1234", "UNITED STATES"],
    ),
    "JP": Buyer(
        language="en-US",
        first="US",
        card={
            "email": "hanako@mail.example",
            "shipping country": "JP",
            "shipping postal-code": "100-0001",
            "shipping address-level1": "東京都",
            "shipping address-line1": "千代田区千代田1-1",
            "shipping name": "山田 花子",
        },
        bad_code="100-01",
        example="154-0023",
        answer="お誕生日おめでとう",
        wallet="jpy",
        state="Tokyo",
        label=["〒100-0001", "東京都", "千代田区千代田1-1", "山田 花子", "JAPAN"],
    ),
}

# Fills in as a browser's autofill does: by the names alone, in a list by value or by text, which it
# leaves if it has neither, and with the events of typing.
AUTOFILL: Final = """card => {
    for (const [name, text] of Object.entries(card)) {
        const field = document.querySelector(`[autocomplete="${name}"]`);
        const fits = each => each.value === text || each.text === text;
        const wanted = field?.options ? [...field.options].find(fits)?.value : text;
        if (!field || wanted === undefined) continue;
        field.value = wanted;
        for (const told of ["input", "change"])
            field.dispatchEvent(new Event(told, {bubbles: true}));
    }
}"""
FILLED: Final = """all => Object.fromEntries(
    all.filter(each => each.value).map(each => [each.autocomplete, each.value]))"""


class Echo(BaseHTTPRequestHandler):
    """A webhook receiver whose answer, which the delivery log keeps, repeats who has bought."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        sold = json.loads(body)["data"]["object"]
        said = {each: sold[each] for each in WHO_HAS_BOUGHT}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def brief_wallets() -> Iterator[None]:
    """The wallets make nobody wait for long after an approval: other tests are about that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SANDBOX_WAIT", "1")  # second
        yield


@pytest.fixture(scope="module")
def place(brief_wallets: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A shop that is told of its sales in Stripe's form, in which events name the customer."""
    server = HTTPServer(("127.0.0.1", 0), Echo)
    Thread(target=server.serve_forever, daemon=True).start()
    with local_world(tmp_path_factory.mktemp("goods")) as place:
        made = httpx2.post(
            f"{place.checkout}/v1/webhook_endpoints",
            data={
                "url": f"http://localhost:{server.server_port}/",
                "enabled_events[]": "checkout.session.completed",
            },
            headers={"Authorization": f"Bearer {own_key(place)}"},
            trust_env=False,
        )
        assert made.status_code == 200, made.text
        yield place
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def owner(browser: Browser, place: Place) -> Iterator[Page]:
    page = browser.new_context().new_page()
    sign_in(page, place)
    with_authenticator(page)
    joined(page, invited(page, place, "Olga", "owner"))
    yield page
    page.context.close()


@pytest.fixture(scope="module")
def link(owner: Page, place: Place) -> str:
    """The address of a link that asks for name, e-mail, shipping address and a greeting."""
    owner.goto(f"{home(place)}/links")
    owner.get_by_label("Item").fill(ITEM)
    owner.get_by_label("Price").fill("20.00")
    for asked in ("E-mail", "Name", "Shipping address"):
        owner.get_by_label(asked, exact=True).select_option("required")
    owner.get_by_label("Countries to which you ship").fill("DE, US, JP")
    owner.get_by_text("Your own questions").click()
    owner.get_by_label("What you ask").first.fill("A greeting")
    owner.get_by_role("button", name="Create the link").click()
    return owner.locator("#secret").inner_text()


@pytest.fixture(scope="module")
def packer(browser: Browser, place: Place, owner: Page) -> Iterator[Page]:
    """The dashboard of a member who has no key and no right to change anything."""
    page = browser.new_context().new_page()
    with_authenticator(page)
    joined(page, invited(owner, place, MEMBER, "support"))
    yield page
    page.context.close()


@pytest.fixture
def phone(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The phone of the buyer whom the test is about."""
    context = browser.new_context(
        viewport={"width": 375, "height": 667},
        has_touch=True,
        is_mobile=True,
        locale=BUYERS[request.node.callspec.params["code"]].language,
    )
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("code", BUYERS)
def test_goods_are_bought_by_autofill_packed_from_the_dashboard_and_their_customer_is_erased(
    phone: Page, packer: Page, place: Place, link: str, code: str
) -> None:
    buyer = BUYERS[code]
    phone.goto(link)
    session_id = fill_in_and_buy(phone, buyer)
    number = pay(phone, place, buyer)
    pack(packer, place, buyer, session_id, number)
    answer_callers(packer, place, buyer, session_id, number)

    event = event_of(place, session_id)
    assert event["data"]["object"]["customer_details"]["email"] == buyer.card["email"]
    assert shown_by_the_api(place, session_id)["customer_details"] is not None
    before, known = tables(place), buyer.typed(place)
    log = before.pop(EVENTS)
    assert found_in(log, known) == [each for each in known if each != buyer.bad_code]
    assert found_in(whole(before), known) == [wallet(place, buyer.wallet)]
    sealed = sealed_of(stored(place, session_id))
    assert all(each in whole(before) for each in (ITEM, number, *sealed))

    erase(place, buyer)
    after = whole(tables(place))
    assert number in after, "the sale is still in the books"
    assert found_in(after, known) == []
    assert [each for each in sealed if each in after] == []
    left = stored(place, session_id)
    assert (left.customer_details, left.customer_further, left.customer_mark) == (None,) * 3
    assert found_in(json.dumps(event_of(place, session_id)), known) == []
    assert shown_by_the_api(place, session_id)["customer_details"] is None
    nothing_is_shown(packer, place, buyer, session_id, number)
    phone.reload()
    expect(phone.locator("#order-number")).to_have_text(number)
    assert found_in(phone.content(), known) == []


def fill_in_and_buy(phone: Page, buyer: Buyer) -> str:
    """Fill in the form as a browser does, turned to the buyer's country and once wrongly.

    Returns the id of the session that has begun.
    """
    wrong = {**buyer.card, "shipping postal-code": buyer.bad_code}
    expect(phone.locator("#shipping_country")).to_have_value(buyer.first)
    fits_on_the_phone(phone)
    phone.evaluate(AUTOFILL, wrong)
    phone.locator("[name^=answer_]").fill(buyer.answer)
    if buyer.first != buyer.country:
        before = filled(phone)
        expect(phone.locator("[name=shipping_form]")).to_have_value(buyer.country)
        assert phone.locator("[aria-invalid]").count() == 0, "nothing is judged yet"
        assert filled(phone) == before
        phone.evaluate(AUTOFILL, wrong)
    assert filled(phone) == {**wrong, "off": buyer.answer}
    assert list(filled(phone)) == [*wrong, "off"], "in the order of their country"
    states = phone.locator("#shipping_state")
    if buyer.state is None:
        expect(states).to_have_count(0)
    else:
        expect(states.locator("option:checked")).to_have_text(buyer.state)

    buy(phone)
    code = phone.locator("[autocomplete='shipping postal-code']")
    expect(code).to_be_focused()
    expect(code).to_have_attribute("aria-invalid", "true")
    expect(code).to_have_accessible_description(re.compile(buyer.example))
    expect(phone.locator("[aria-invalid]")).to_have_count(1)
    assert filled(phone) == {**wrong, "off": buyer.answer}
    fits_on_the_phone(phone)
    code.fill(buyer.card["shipping postal-code"])
    buy(phone)
    expect(phone).to_have_url(re.compile(r"/pay/cs_[0-9A-Za-z]{22}$"))
    assert found_in(phone.content(), [buyer.card["email"], buyer.answer]) == []
    return phone.url.rpartition("/")[2]


def buy(phone: Page) -> None:
    phone.locator("main form .button").tap()


def filled(phone: Page) -> dict[str, str]:
    """Return the texts of the form, by autofill names; the answer's is "off"."""
    found: dict[str, str] = phone.locator("main [autocomplete]").evaluate_all(FILLED)
    return found


def fits_on_the_phone(phone: Page) -> None:
    assert phone.evaluate("document.documentElement.scrollWidth") == 375


def pay(phone: Page, place: Place, buyer: Buyer) -> str:
    """Give the wallet, approve and read the receipt; return its order number."""
    phone.locator("#typed summary").first.tap()
    phone.locator("#wallet_address").fill(wallet(place, buyer.wallet))
    phone.locator("#wallet_address").press("Enter")
    phone.locator("#leave").tap()
    phone.get_by_role("button", name="Approve").tap()
    expect(phone).to_have_url(re.compile("/success$"))
    expect(phone.locator(".receipt .address")).to_have_text("\n".join(buyer.label))
    fits_on_the_phone(phone)
    return phone.locator("#order-number").inner_text()


def pack(packer: Page, place: Place, buyer: Buyer, session_id: str, number: str) -> None:
    """Find the sale by the e-mail address, and print what to send and where."""
    found = sales(packer, place, buyer.card["email"])
    expect(found).to_have_count(1)
    found.click()
    expect(packer).to_have_url(re.compile(f"/{session_id}$"))
    customer = packer.get_by_role("region", name="Customer")
    for text in (buyer.card["shipping name"], buyer.card["email"], buyer.answer):
        expect(customer).to_contain_text(text)
    expect(customer.locator(".address")).to_have_text("\n".join(buyer.label))
    packer.get_by_role("link", name="Packing slip").click()
    packer.evaluate("window.print = () => { window.printed = true; }")
    packer.get_by_role("button", name="Print").click()
    assert packer.evaluate("window.printed")
    packer.emulate_media(media="print")
    expect(packer.get_by_role("heading", level=1)).to_have_text(f"Order {number}")
    address = packer.locator(".address")
    expect(address).to_have_text("\n".join(buyer.label))
    assert address.inner_text().splitlines() == buyer.label, "a line for each"
    expect(packer.get_by_role("row", name=ITEM)).to_contain_text("1")
    expect(packer.locator("dd")).to_have_text(buyer.answer)
    expect(packer.get_by_role("navigation")).to_be_hidden()
    expect(packer.get_by_role("button", name="Print")).to_be_hidden()
    assert "20.00" not in packer.locator(".sheet").inner_text(), "a parcel names no price"
    packer.emulate_media(media="screen")


def answer_callers(packer: Page, place: Place, buyer: Buyer, session_id: str, number: str) -> None:
    """Find the sale by whatever a caller says about it, in three clicks from the overview."""
    code = buyer.card["shipping postal-code"]
    for said in (buyer.card["shipping name"], "20.00", code, number, f"#{number}\u200b"):
        packer.goto(f"{home(place)}/overview")
        packer.get_by_role("link", name="Transactions").click()
        search(packer, said)
        packer.locator("tbody a[href*='/transactions/cs_']").first.click()
        expect(packer).to_have_url(re.compile(f"/{session_id}$"))


def nothing_is_shown(
    packer: Page, place: Place, buyer: Buyer, session_id: str, number: str
) -> None:
    """Look at every page of the sale in the dashboard."""
    known = buyer.typed(place)
    expect(sales(packer, place, buyer.card["email"])).to_have_count(0)
    expect(packer.get_by_role("main")).to_contain_text("Nothing found.")
    expect(sales(packer, place, number)).to_have_count(1)
    event_id = event_of(place, session_id)["id"]
    for path in (
        "",
        f"/transactions/{session_id}",
        f"/transactions/{session_id}/packing",
        "/webhooks",
        f"/webhooks/{event_id}",
        "/audit",
    ):
        shown = packer.request.get(home(place) + path).text()
        assert MEMBER in shown, f"{path} is not shown to the member"
        assert found_in(shown, known) == [], path
    export = packer.request.get(f"{home(place)}/export/transactions.csv")
    assert session_id in export.text()
    assert found_in(export.text(), known) == []
    packer.goto(f"{home(place)}/transactions/{session_id}")
    expect(packer.get_by_role("region", name="Customer")).to_have_count(0)
    expect(packer.get_by_role("link", name="Packing slip")).to_have_count(0)
    expect(packer.get_by_role("main")).to_contain_text("erased on request")


def sales(packer: Page, place: Place, text: str) -> Locator:
    """Search in the dashboard, and return the links of what it has found."""
    packer.goto(home(place))
    search(packer, text)
    expect(packer).to_have_url(re.compile(f"q={re.escape(quote(text))}&"))
    return packer.locator("tbody a[href*='/transactions/cs_']")


def wallet(place: Place, name: str) -> str:
    return place.customer_wallet.replace("/alice", f"/{name}")


def environment(place: Place) -> dict[str, str]:
    """Return the settings that the operator of the local world works with."""
    lines = place.environment_file.read_text("utf-8").splitlines()
    return dict(shlex.split(line)[1].split("=", 1) for line in lines)


def erase(place: Place, buyer: Buyer) -> None:
    """Do as docs/operating.md says, "Erase a customer"."""
    command = ["-m", "checkout.cli", "erase", "--wallet-address", wallet(place, buyer.wallet)]
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, **environment(place), "PYTHONPATH": str(REPOSITORY / "layers/common")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "Nothing of this customer is left in the tables." in done.stdout
    assert found_in(done.stdout + done.stderr, buyer.typed(place)) == []


def shown_by_the_api(place: Place, session_id: str) -> dict[str, Any]:
    found: dict[str, Any] = call(place, f"/{session_id}").json()
    return found


def event_of(place: Place, session_id: str) -> dict[str, Any]:
    """Return the event of the session's end as `/v1` lists it, once it is delivered."""
    until = time.monotonic() + DELIVERED_WITHIN
    while time.monotonic() < until:
        listed = httpx2.get(
            f"{place.checkout}/v1/events",
            headers={"Authorization": f"Bearer {own_key(place)}"},
            trust_env=False,
        ).json()
        for each in listed["data"]:
            if each["data"]["object"]["id"] == session_id and not each["pending_webhooks"]:
                found: dict[str, Any] = each
                return found
        time.sleep(0.2)
    raise AssertionError(f"no delivered event: {listed}")


def dynamodb(place: Place) -> Any:
    key = environment(place)["AWS_ACCESS_KEY_ID"]
    return cloud.client("dynamodb", f"http://127.0.0.1:{place.emulator_port}", key)


def tables(place: Place) -> dict[str, str]:
    """Return every attribute of every row of every table, with what is compressed unpacked."""
    client = dynamodb(place)
    scan = client.get_paginator("scan")
    return {
        name: "\n".join(
            json.dumps(row, ensure_ascii=False, default=readable)
            for page in scan.paginate(TableName=name, ConsistentRead=True)
            for row in page["Items"]
        )
        for name in client.list_tables()["TableNames"]
    }


def whole(found: dict[str, str]) -> str:
    return "\n".join(found.values())


def readable(stored: bytes) -> str:
    """Return a binary attribute as text: unpacked, or as it is, such as the key of a passkey."""
    try:
        return inflated({"B": stored})
    except (KeyError, ValueError):
        return stored.decode("utf-8", "replace")


def stored(place: Place, session_id: str) -> Session:
    client = dynamodb(place)
    item = client.get_item(TableName=SESSIONS, Key={"id": {"S": session_id}})["Item"]
    return session_from(with_cart(client, SESSIONS, item))


def sealed_of(session: Session) -> list[str]:
    """Return the sealed details, and what the search finds the e-mail address by."""
    assert session.customer_details is not None
    assert session.customer_further is not None
    assert session.customer_mark is not None
    marks = [session.customer_mark, *(session.customer_marks or ())]
    rows = [search_key(session.merchant, each) for each in marks]
    return [session.customer_details, session.customer_further, *marks, *rows]


def found_in(content: str, texts: list[str]) -> list[str]:
    """Return the texts that are in the content, as they are or escaped.

    A number is not found within a longer one, such as a time.
    """
    folded = content.casefold()
    return [
        each
        for each in texts
        if any(
            re.search(rf"(?<![0-9]){re.escape(form.casefold())}(?![0-9])", folded)
            for form in (
                each,
                json.dumps(each)[1:-1],
                quote(each, safe=""),
                b64encode(each.encode()).decode().rstrip("="),
            )
        )
    ]
