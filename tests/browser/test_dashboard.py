"""A merchant finds a payment in a real browser: among 10 000 sessions, with and without script, by
keyboard, and judged by axe-core.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from checkout.adapters.dynamo.records import cart_item, search_items, session_from, session_item
from checkout.adapters.dynamo.sessions import with_cart
from checkout.domain.payment.in_flight import Attention
from checkout.domain.session.record import Status
from sandbox import cloud
from sandbox.place import Place
from tests.browser.judge import Judge
from tests.browser.steps import focus, home, search, sign_in
from tests.support.merchant_api import a_body, an_item
from tests.support.processes import call, local_world, own_key

SESSIONS = 10_000
BULK = 2_500  # of them, by a wallet of their own
BULK_WALLET = "https://wallet.example/bulk"
PARTLY_PAID = "cs_" + "p" * 22

pytestmark = [pytest.mark.browser, pytest.mark.first]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One purchase of Alice's, between 10 000 other sessions."""
    with local_world(tmp_path_factory.mktemp("state"), bought=True) as place:
        _fill(place)
        yield place


def _fill(place: Place) -> None:
    """Canceled sessions a second apart, half of them older than Alice's."""
    world = place.environment_file.read_text()
    [access_key] = re.findall("AWS_ACCESS_KEY_ID='(.+)'", world)
    endpoint = f"http://127.0.0.1:{place.emulator_port}"
    client: Any = cloud.client("dynamodb", endpoint, access_key)
    (alices,) = call(place, limit=1).json()["data"]
    key = {"id": {"S": alices["id"]}}
    table = "checkout-checkout_sessions"
    stored = client.get_item(TableName=table, Key=key)["Item"]
    alice = session_from(with_cart(client, table, stored))
    at = alice.created_at
    assert alice.customer is not None
    bulk = replace(alice.customer, id=BULK_WALLET)
    template = replace(alice, customer=None, completed_at=None, quote=None)
    made = [
        replace(
            template,
            id=f"cs_{number:022d}",
            status=Status.CANCELED,
            created_at=at + timedelta(seconds=number - SESSIONS // 2, milliseconds=1),
            customer=bulk if number % (SESSIONS // BULK) == 0 else None,
        )
        for number in range(SESSIONS)
    ]
    made.append(
        replace(
            template,
            id=PARTLY_PAID,
            status=Status.PROCESSING,
            attention=Attention.PARTIAL_PAYMENT,
            received=700,
            created_at=at - timedelta(days=1),
        )
    )
    puts: list[dict[str, Any]] = []
    # The ids of her request and at the wallets find Alice's session.
    ids = ("request_id", "incoming_payment", "outgoing_payment")
    without_ids: Any = {**dict.fromkeys(ids), "payment_attempts": ()}
    for session in made:
        item, cart = session_item(session), cart_item(session)
        uncounted = ("uncounted_shard", "uncounted_at")
        item = {name: value for name, value in item.items() if name not in uncounted}
        found_by = search_items(replace(session, **without_ids)) if session.customer else []
        puts += [{"PutRequest": {"Item": each}} for each in (item, cart, *found_by) if each]
    for first in range(0, len(puts), 25):
        client.batch_write_item(RequestItems={table: puts[first : first + 25]})


def exported(content: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content, newline="")))


def test_a_payment_among_ten_thousand_is_found_read_and_exported(page: Page, place: Place) -> None:
    sign_in(page, place)
    search(page, place.customer_wallet)
    links = page.locator("tbody a")
    expect(links).to_have_count(1)
    links.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Paid")
    page.get_by_text("Attempt 1: paid").click()
    steps = page.locator("section:has(#timeline) li strong").all_inner_texts()
    assert steps == [
        "Created by your server",
        "The customer entered a wallet address",
        "An incoming payment was created in your wallet",
        "The customer's wallet quoted its price",
        "Ready: the customer saw the price and could approve it",
        "The customer came back from their wallet with an approval",
        "The payment was sent to the customer's wallet",
        "The customer's wallet accepted the payment",
        "Paid",
    ]
    session_id = page.url.rsplit("/", 1)[1]
    page.go_back()
    page.get_by_role("link", name="Export these").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Transactions (CSV)").click()
    rows = exported(Path(download.value.path()).read_bytes().decode())
    assert [row["id"] for row in rows] == [session_id]


def test_a_long_export_is_one_file_with_progress(browser: Browser, place: Place) -> None:
    page = browser.new_context().new_page()
    sign_in(page, place)
    search(page, BULK_WALLET)
    page.get_by_role("link", name="Export these").click()
    said: list[str] = []
    page.expose_function("heard", lambda words: said.append(words))
    page.evaluate(
        """() => new MutationObserver(() => heard(
            document.querySelector('[role=status]').textContent
        )).observe(document.querySelector('[role=status]'), {childList: true})"""
    )
    with page.expect_download(timeout=120_000) as download:
        page.get_by_role("button", name="Download transactions").click()
    rows = exported(Path(download.value.path()).read_bytes().decode())
    assert len(rows) == len({row["id"] for row in rows}) == BULK
    expect(page.get_by_role("status")).to_have_text(f"{BULK} transactions downloaded.")
    # The last part is told together with the end, which an observer may not see apart.
    assert [text for text in said if "so far" in text][:2] == [
        f"{count} transactions so far…" for count in (1000, 2000)
    ]
    every = SESSIONS // BULK
    assert [row["id"] for row in rows] == [
        f"cs_{number:022d}" for number in reversed(range(0, SESSIONS, every))
    ]


def test_the_keyboard_alone_signs_in_searches_and_opens(browser: Browser, place: Place) -> None:
    page = browser.new_context().new_page()
    page.goto(home(place))
    focus(page, "#api_key")
    page.keyboard.type(own_key(place))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    focus(page, ".periods a[href$=week]")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("period=week"))
    focus(page, ".bar nav a[href$='/dashboard']")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/dashboard$"))
    focus(page, "#q")
    page.keyboard.type(place.customer_wallet)
    page.keyboard.press("Enter")
    expect(page.locator("tbody a")).to_have_count(1)
    focus(page, "tbody a")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/transactions/cs_"))


def open_session(place: Place) -> str:
    """Create one just now, with a name that must not be run."""
    item = an_item(name="<script>document.title='evil'</script>", unit_amount=100, quantity=1)
    return str(call(place, body=a_body(line_items=[item])).json()["id"])


def test_a_session_is_canceled_by_hand_while_its_customer_looks_at_it(
    page: Page, browser: Browser, place: Place
) -> None:
    session_id = open_session(place)
    customer = browser.new_context().new_page()
    customer.goto(f"{place.checkout}/pay/{session_id}")
    expect(customer.get_by_role("heading", level=1)).to_contain_text("Pay")
    sign_in(page, place)
    search(page, session_id)
    page.locator("tbody a").click()
    expect(page.get_by_role("main")).to_contain_text("<script>document.title='evil'</script>")
    page.get_by_text("End this session…").click()
    page.get_by_role("button", name="Cancel session").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Canceled")
    customer.bring_to_front()
    ended = customer.get_by_role("heading", level=1)
    expect(ended).to_have_text("This checkout was canceled")
    customer.context.close()
    page.get_by_role("link", name="Audit log").click()
    expect(page.get_by_role("row").nth(1)).to_contain_text("Canceled a session")


def test_signing_out_ends_it(page: Page, place: Place) -> None:
    sign_in(page, place)
    page.get_by_role("button", name="Sign out").click()
    page.goto(home(place))
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in to your dashboard")


def test_no_page_breaks_a_rule_of_accessibility_or_is_wider_than_the_screen(
    browser: Browser, place: Place, axe: str
) -> None:
    judge = Judge(browser, axe)
    page = judge.page
    page.goto(home(place))
    judge("sign-in")
    page.get_by_label("API key").fill("sk_live_" + "0" * 43)
    page.get_by_role("button", name="Sign in", exact=True).click()
    judge("sign-in-refused")
    sign_in(page, place)
    judge("transactions")
    search(page, place.customer_wallet)
    judge("found")
    page.locator("tbody a").first.press("Enter")  # the filters are unfolded over it
    judge("session")
    page.goto(f"{home(place)}/transactions/{PARTLY_PAID}")
    expect(page.get_by_text("Only part of the money has arrived: 7.00 USD")).to_be_visible()
    judge("attention")
    page.goto(f"{home(place)}/transactions/{open_session(place)}")
    judge("open")
    for path in (
        "/overview",
        "/overview?period=month",
        "/statement",
        "/audit",
        "/export",
        "/?min=x",
    ):
        page.goto(home(place) + path.replace("/?", "?"))
        judge(path.strip("/?").replace("=", "-").replace("?", "-"))
    for path in ("/nothing", "/transactions/cs_0"):
        page.goto(home(place) + path)
        judge("missing")
    judge.done()
