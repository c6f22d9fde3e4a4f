"""A merchant runs their keys, webhooks and settings in a real browser, with script and without."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from sandbox.place import Place
from sandbox.server import Answer, AsgiServer, Incoming
from sandbox.wallets import certificates
from tests.browser.judge import Judge
from tests.browser.steps import DOT, focus, home, sign_in
from tests.support.merchant_api import a_body
from tests.support.processes import call, local_world

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with local_world(tmp_path_factory.mktemp("state"), bought=True) as place:
        yield place


@dataclass
class Receiver:
    """The merchant's server: what it got, and what it answers."""

    url: str
    status: int = 200
    got: list[Incoming] = field(default_factory=list)

    def got_of(self, event_id: str) -> list[Incoming]:
        """Events of another test may come again meanwhile."""
        return [each for each in self.got if dict(each.headers)["checkout-event-id"] == event_id]

    def answer(self, request: Incoming) -> Answer:
        self.got.append(request)
        close = [("content-type", "text/plain"), ("connection", "close")]
        return Answer(self.status, close, f"status {self.status} <b>from the shop</b>".encode())


@pytest.fixture
def receiver(place: Place) -> Iterator[Receiver]:
    found = Receiver(f"https://localhost:{place.listener_port}/hooks")
    tls = certificates.ensure(place.wallets_folder, datetime.now(UTC))
    server = AsgiServer(place.listener_port, found.answer, body_max=100_000, tls=tls)
    server.start()
    yield found
    server.close()


def created(place: Place, key: str | None = None, **body: Any) -> httpx2.Response:
    return call(place, body=a_body(**body), key=key)


def shown_once(page: Page) -> str:
    return page.locator("#secret").inner_text()


def visit(page: Page, name: str) -> None:
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def ask(page: Page, name: str, ending: str) -> None:
    page.locator(f"[aria-label^='{name} '][aria-label$='{ending}']").click()


def test_a_key_is_created_rolled_and_revoked_and_ends_at_once(
    page: Page, browser: Browser, place: Place
) -> None:
    sign_in(page, place)
    visit(page, "API keys")
    page.get_by_label("Name").fill("Web <shop>")
    page.get_by_role("button", name="Create a key").click()
    first = shown_once(page)
    assert created(place, first).status_code == 201
    other = browser.new_context().new_page()
    other.goto(home(place))
    other.get_by_label("API key").fill(first)
    other.get_by_role("button", name="Sign in", exact=True).click()
    expect(other.get_by_role("heading", level=1)).to_have_text("Overview")

    ask(page, "Roll", first[-4:])
    page.get_by_role("button", name=f"Replace …{first[-4:]}").click()
    second = shown_once(page)
    expect(page.get_by_role("row").filter(has_text=first[-4:])).to_contain_text("works until")
    assert {created(place, key).status_code for key in (first, second)} == {201}

    ask(page, "Revoke", first[-4:])
    page.get_by_role("button", name=f"Revoke …{first[-4:]}").click()
    expect(page.get_by_role("row").filter(has_text=first[-4:])).to_contain_text("Revoked")
    assert [created(place, key).status_code for key in (first, second)] == [401, 201]
    other.reload()
    expect(other.get_by_role("heading", level=1)).to_have_text("Sign in to your dashboard")
    other.context.close()
    assert first not in page.content()
    assert second not in page.content()


def webhook_set(page: Page, receiver: Receiver) -> str:
    """The secret of an address that is new."""
    visit(page, "Webhooks")
    if page.get_by_text("Remove the URL…").count():
        page.get_by_text("Remove the URL…").click()
        page.get_by_role("button", name="Remove URL").click()
    page.get_by_label("URL on your server").fill(receiver.url)
    page.get_by_label("A session expired").check()
    page.get_by_role("button", name="Save").click()
    return shown_once(page)


def shows(page: Page, text: str, count: int = 1) -> None:
    """After some looks; each is a request, as without script."""
    for _ in range(100):
        if page.get_by_text(text, exact=True).count() >= count:
            return
        page.wait_for_timeout(200)
        page.reload()
    raise AssertionError(f"{text} is not there {count} times: {page.inner_text('main')}")


def test_a_failed_delivery_is_seen_and_sent_again(
    page: Page, place: Place, receiver: Receiver
) -> None:
    receiver.status = 500
    sign_in(page, place)
    webhook_set(page, receiver)
    page.get_by_role("button", name="Send a test event").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Event: Test event")
    shows(page, "Response 500", 3)
    page.get_by_text("Response body").first.click()
    expect(page.get_by_text("status 500 <b>from the shop</b>").first).to_be_visible()
    receiver.status = 200
    page.get_by_role("button", name="Send now").click()
    shows(page, "Delivered")
    expect(page.get_by_text("Response 200")).to_have_count(1)
    attempts = receiver.got_of(page.url.rpartition("/")[2])
    assert len(attempts) == 4
    assert len({request.body for request in attempts}) == 1

    receiver.status = 410
    visit(page, "Webhooks")
    page.get_by_role("button", name="Send a test event").click()
    shows(page, "Failed")
    visit(page, "Webhooks")
    expect(page.get_by_text("Nothing is sent at the moment.")).to_be_visible()
    page.get_by_role("button", name="Start sending again").click()
    receiver.status = 200
    page.get_by_label("Show").select_option("Failed")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tbody tr").first).to_contain_text("Response 410")
    page.get_by_role("button", name="Send all failed again").click()
    expect(page.get_by_role("status")).to_contain_text("again to https://")
    page.get_by_role("button", name=re.compile("Send (it|them) again")).click()
    expect(page.get_by_role("status")).to_contain_text("will be sent again.")
    page.locator("tbody a").first.click()
    shows(page, "Delivered")


def test_the_looks_are_set_and_previewed(page: Page, place: Place) -> None:
    sign_in(page, place)
    visit(page, "Settings")
    preview = page.frame_locator("#preview")
    page.get_by_label("Display name").fill("Café Ñandú")
    page.get_by_label("Language").select_option("Español")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("Saved")
    expect(preview.locator("body")).to_contain_text("Café Ñandú")
    picture = {"name": "logo.png", "mimeType": "image/png", "buffer": DOT}
    page.get_by_label("Logo", exact=True).set_input_files(picture)  # type: ignore[arg-type]
    page.get_by_role("button", name="Save", exact=True).click()
    logo = page.get_by_alt_text("Your logo")
    expect(logo).to_have_js_property("naturalWidth", 1)
    expect(preview.locator("header img")).to_have_js_property("naturalWidth", 1)
    page.get_by_label("Show no logo any more").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_alt_text("Your logo")).to_have_count(0)


def test_the_preview_follows_what_is_typed_and_nothing_is_saved(
    browser: Browser, place: Place
) -> None:
    page = browser.new_context().new_page()
    sign_in(page, place)
    visit(page, "Settings")
    before = page.get_by_label("Display name").input_value()
    preview = page.frame_locator("#preview")
    page.get_by_label("Display name").fill("Not yet")
    expect(preview.locator("body")).to_contain_text("Not yet")
    page.get_by_label("Accent color").fill("#8a1c1c")
    expect(page.get_by_label("Use the default blue")).not_to_be_checked()
    expect(preview.get_by_role("button").first).to_have_css("background-color", "rgb(138, 28, 28)")
    page.get_by_label("Language").select_option("العربية")
    expect(preview.locator("html")).to_have_attribute("dir", "rtl")
    large = {"name": "large.png", "mimeType": "image/png", "buffer": DOT + b"0" * 20_000}
    picture = page.get_by_label("Logo", exact=True)
    picture.set_input_files({**large, "buffer": b"0" * 20_000})  # type: ignore[arg-type]
    page.get_by_role("button", name="Save", exact=True).click()
    assert "smaller than 16 KiB" in picture.evaluate("field => field.validationMessage")
    picture.set_input_files(large)  # type: ignore[arg-type]
    small = "field => field.checkValidity() && field.files[0].size < 1000"
    page.wait_for_function(small, arg=picture.element_handle())
    expect(page.locator("#unsaved")).to_contain_text("Logo")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.reload()
    expect(page.get_by_label("Display name")).to_have_value(before)
    page.context.close()


def test_a_provider_is_added_and_what_is_not_saved_is_named_and_undone(
    browser: Browser, place: Place
) -> None:
    page = browser.new_context().new_page()
    sign_in(page, place)
    visit(page, "Settings")
    unsaved, undo = page.locator("#unsaved"), page.get_by_role("button", name="Undo")
    expect(undo).to_be_hidden()
    page.get_by_label("Terms").fill("https://shop.example/terms")
    expect(unsaved).to_have_text("1 change is not saved: Terms")
    page.get_by_text("Add a provider").click()
    page.get_by_label("Name of the provider").fill("Cedar")
    expect(unsaved).to_have_text("2 changes are not saved: Terms, a new provider")
    undo.click()
    expect(unsaved).to_have_text("")
    expect(page.get_by_label("Terms")).to_have_value("")
    page.get_by_label("Name of the provider").fill("Cedar")
    page.get_by_label("Form of its wallet addresses").fill("https://cedar.example/{Number: 12}")
    page.get_by_label("Page on which customers get a wallet").fill("https://cedar.example/join")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Saved")
    expect(page.get_by_text("asks for: Number, such as 12")).to_be_visible()
    shown = page.frame_locator("#preview").get_by_text("Cedar", exact=True)
    expect(shown.first).to_be_visible()
    page.get_by_text("asks for: Number").click()
    page.get_by_label("Do not offer Cedar any more").check()
    expect(unsaved).to_have_text("1 change is not saved: Cedar")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("asks for: Number")).to_have_count(0)
    page.context.close()


def test_the_keyboard_alone_rolls_a_key_and_passes_by_the_preview(
    browser: Browser, place: Place
) -> None:
    page = browser.new_context().new_page()
    sign_in(page, place)
    page.goto(f"{home(place)}/keys")
    focus(page, "#name")
    page.keyboard.type("By hand")
    page.keyboard.press("Enter")
    made = shown_once(page)
    focus(page, f"button[aria-label='Roll By hand …{made[-4:]}']")
    page.keyboard.press("Enter")
    focus(page, "dialog[open] button")
    page.keyboard.press("Enter")
    expect(page.get_by_role("row").filter(has_text=made[-4:])).to_contain_text("works until")
    page.goto(f"{home(place)}/settings")
    focus(page, "#save button:not([hidden])")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Open the preview as a page")).to_be_focused()
    page.context.close()


def test_no_page_breaks_a_rule_of_accessibility_or_is_wider_than_the_screen(
    browser: Browser, place: Place, axe: str, receiver: Receiver
) -> None:
    judge = Judge(browser, axe)
    page = judge.page
    sign_in(page, place)
    visit(page, "API keys")
    page.get_by_label("Name").fill("Web shop")
    page.get_by_role("button", name="Create a key").click()
    shown_once(page)
    judge("keys-made")
    page.goto(f"{home(place)}/keys")
    judge("keys")
    page.get_by_label("Name").fill(" ")
    page.get_by_role("button", name="Create a key").click()
    judge("keys-refused")
    receiver.status = 410
    webhook_set(page, receiver)
    judge("webhooks-made")
    page.get_by_label("URL on your server").fill("https://shop.example/#x")
    page.get_by_role("button", name="Save").click()
    judge("webhooks-refused")
    visit(page, "Webhooks")
    page.get_by_role("button", name="Send a test event").click()
    shows(page, "Failed")
    judge("event")
    visit(page, "Webhooks")
    judge("webhooks-disabled")
    page.get_by_role("button", name="Start sending again").click()
    visit(page, "Settings")
    judge("settings")
    page.get_by_text("Rarely changed").press("Enter")
    page.get_by_label("Websites to which customers may return").fill("https://shop.example/")
    judge("settings-changed")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("Add a provider").click()
    judge("settings-refused")
    page.goto(f"{home(place)}/settings/preview")
    judge("preview")
    page.goto(f"{home(place)}/settings?saved=1")
    judge("settings-saved")
    visit(page, "Audit log")
    judge("audit-long")
    judge.done()
