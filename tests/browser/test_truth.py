"""An open page that nobody touches, read each second beside the wallets' own books.

It must never say what is not true at that second, and say what is known of the session within 3 s,
with and without script. With script, a page that nobody has touched for 20 s learns of another
window's payment and of a cancellation within 10 s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect

from checkout.domain.session.record import Session
from checkout.flows.session import close
from tests.browser.recording import (
    CANCELED,
    DECLINED,
    NAME,
    NO_MONEY,
    NOT_CHARGED,
    PAID,
    PART,
    SELDOM,
    SOON,
    UNTOUCHED,
    WAITING,
    Recording,
)
from tests.browser.served import Served, new_context
from tests.browser.steps import begin, leave

pytestmark = pytest.mark.browser


@pytest.fixture(params=["with script", "without script"])
def record(
    request: pytest.FixtureRequest, browser: Browser, pages: Served
) -> Iterator[Callable[..., Recording]]:
    script = request.param == "with script"
    context = new_context(browser, script=script, wide=False)
    page = context.new_page()

    def begun(wallet: str, session: Session | None = None, rest: str = "") -> Recording:
        if script:
            page.clock.install()
        if session is None:
            return Recording(page, pages, begin(page, pages, wallet), script=script)
        page.goto(rest or pages.address(session))
        return Recording(page, pages, session, script=script)

    yield begun
    context.close()


Begun = Callable[..., Recording]  # the wallet, or a session and the address of its page


def approved(recording: Recording) -> Recording:
    leave(recording.page)
    recording.pages.approve(recording.page)
    return recording


def test_no_funds_are_told_of_within_fifty_seconds_and_never_as_something_else(
    record: Begun,
) -> None:
    recording = approved(record("no-funds"))
    recording.run(50, until=lambda now: NO_MONEY in now.text)
    recording.judge()
    assert NO_MONEY in recording.seconds[-1].text
    assert recording.seconds[-1].received == 0


def test_a_payment_that_fails_is_told_as_one(record: Begun) -> None:
    recording = approved(record("fails"))
    recording.run(50, until=lambda now: NO_MONEY in now.text)
    recording.judge()
    assert NO_MONEY in recording.seconds[-1].text


def test_a_part_is_told_with_its_amount(record: Begun) -> None:
    recording = approved(record("partial"))
    recording.run(40)
    recording.judge()
    assert recording.seconds[-1].title == PART
    assert "10.00" in recording.seconds[-1].text


@pytest.mark.smoke
def test_a_part_and_then_the_rest_is_told_at_each_step(record: Begun) -> None:
    recording = approved(record("never-credits"))
    world = recording.pages.world
    for value in (700, 500, 800):
        recording.run(11)  # a page that asks at growing intervals would be late
        world.pay_from_outside(world.session(recording.id), value)
    recording.run(40, until=lambda now: now.title == PAID)
    recording.judge()
    titles = list(dict.fromkeys(each.title for each in recording.seconds))
    assert titles == [WAITING, PART, PAID]


def test_a_hung_payment_waits_and_says_so(record: Begun) -> None:
    recording = approved(record("never-credits"))
    recording.run(60)
    recording.judge()
    assert {each.title for each in recording.seconds} == {WAITING}


def test_a_declined_payment_is_told_as_declined(record: Begun) -> None:
    recording = record("alice")
    leave(recording.page)
    recording.pages.decline(recording.page)
    recording.run(20)
    recording.judge()
    assert all(DECLINED in each.text for each in recording.seconds[: 1 if recording.script else 0])
    assert recording.seconds[-1].received == 0


def test_a_cancellation_by_the_merchant_reaches_the_open_page(record: Begun) -> None:
    recording = record("alice")
    recording.run(5)
    world = recording.pages.world
    close.cancel(world.services, world.key(), recording.id)
    recording.run(SOON + 2, until=lambda now: now.title == CANCELED)
    recording.judge()
    assert recording.seconds[-1].title == CANCELED
    if not recording.script:
        recording.page.frame_locator("iframe").get_by_role("link").click()
        recording.page.get_by_role("heading", name=CANCELED).wait_for()
    assert NOT_CHARGED in recording.page.get_by_role("main").inner_text()


def test_a_cancellation_reaches_a_page_that_nobody_has_touched_within_ten_seconds(
    record: Begun,
) -> None:
    recording = record("alice")
    recording.run(2 * UNTOUCHED)
    world = recording.pages.world
    close.cancel(world.services, world.key(), recording.id)
    recording.run(SELDOM + 2, until=lambda now: now.title == CANCELED)
    recording.judge(within=SELDOM if recording.script else SOON)
    assert recording.seconds[-1].title == CANCELED


@pytest.mark.parametrize("record", ["with script"], indirect=True)
@pytest.mark.parametrize(("pays", "polls"), [(False, 11), (True, 20)])
def test_a_page_that_nobody_touches_polls_less_often_unless_money_is_under_way(
    record: Begun, pays: bool, polls: int
) -> None:
    recording = record("never-credits")
    if pays:
        approved(recording)
    asked = polled(recording)
    recording.run(60)
    assert len(asked) in (polls - 1, polls, polls + 1)


def untouched(pages: Served, stage: str) -> tuple[Session, str]:
    """Return a session whose page asks the customer for something, and that page's address."""
    world = pages.world
    if stage == "details":
        return world.create(collect_json=NAME), ""
    session = world.create()
    if stage == "form":
        return session, ""
    given = world.submit(session)
    assert given.interact_url is not None
    return session, world.network.approve(given.interact_url)  # in another browser: it asks


@pytest.mark.parametrize("stage", ["form", "details", "asked"])
def test_every_page_that_asks_for_something_learns_of_a_cancellation(
    record: Begun, pages: Served, stage: str
) -> None:
    session, address = untouched(pages, stage)
    recording = record("", session, address)
    assert recording.page.get_by_role("main").get_by_role("button").count()
    recording.run(4)
    close.cancel(pages.world.services, pages.world.key(), session.id)
    recording.run(SOON + 2, until=lambda now: now.title == CANCELED)
    recording.judge()
    assert recording.seconds[-1].title == CANCELED


@pytest.mark.parametrize("record", ["without script"], indirect=True)
def test_without_script_what_was_typed_stays_when_something_is_told(
    record: Begun, pages: Served
) -> None:
    recording = record("", pages.world.create())
    recording.page.locator("#wallet_address").fill("https://cedar.example/al")
    close.cancel(pages.world.services, pages.world.key(), recording.id)
    recording.run(4)
    assert recording.seconds[-1].title == CANCELED
    assert recording.page.locator("#wallet_address").input_value() == "https://cedar.example/al"


def test_without_script_the_line_renews_itself(browser: Browser, pages: Served) -> None:
    """No clock is held here: the browser itself does what the line asks for."""
    context = new_context(browser, script=False, wide=False)
    page = context.new_page()
    session = pages.world.create()
    page.goto(pages.address(session))
    line = page.frame_locator("iframe").locator("body")
    expect(line).to_have_text("This page is up to date.")
    close.cancel(pages.world.services, pages.world.key(), session.id)
    expect(line).to_contain_text(CANCELED, timeout=30_000)
    context.close()


@pytest.mark.parametrize("record", ["with script"], indirect=True)
def test_with_script_there_is_no_line(record: Begun) -> None:
    recording = record("alice")  # the form's answer has taken the place of the page
    recording.run(4)
    assert len(recording.page.frames) == 1


def test_a_part_that_comes_after_minutes_is_told_as_soon(record: Begun) -> None:
    recording = approved(record("never-credits"))
    world = recording.pages.world
    recording.run(200)
    world.pay_from_outside(world.session(recording.id), 700)
    recording.run(60, until=lambda now: now.title == PART)
    recording.judge()
    assert recording.seconds[-1].title == PART


@pytest.mark.parametrize("record", ["with script"], indirect=True)
@pytest.mark.parametrize("sign", ["pointer", "key", "focus", "scroll"])
def test_a_hand_at_the_page_learns_of_a_cancellation_at_once(record: Begun, sign: str) -> None:
    recording = record("alice")
    recording.run(2 * UNTOUCHED)
    world, page = recording.pages.world, recording.page
    close.cancel(world.services, world.key(), recording.id)
    if sign == "pointer":
        page.locator("h1").click()
    elif sign == "key":
        page.keyboard.press("Shift")
    elif sign == "focus":
        page.evaluate("dispatchEvent(new FocusEvent('focus'))")
    else:
        page.set_viewport_size({"width": 375, "height": 300})
        page.evaluate("scrollTo(0, 100)")
    page.get_by_role("heading", name=CANCELED).wait_for(timeout=3_000)
    recording.run(1)
    recording.judge(within=SELDOM)


def polled(recording: Recording) -> list[str]:
    """Return the ends of the URLs that the page requests from now on, filled as it runs.

    From now on only `run_for` moves the page's clock, so a busy machine does not count as time.
    """
    page = recording.page
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 1)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    return asked


@pytest.mark.parametrize("record", ["with script"], indirect=True)
def test_hands_at_the_page_ask_once_in_three_seconds(record: Begun) -> None:
    recording = record("alice")
    asked = polled(recording)
    for _ in range(10):
        recording.run(1)
        for _ in range(5):
            recording.page.keyboard.press("Shift")
    assert asked == ["status"] * 3


def test_a_payment_on_another_device_reaches_the_open_page(record: Begun) -> None:
    recording = record("alice")
    recording.run(5)
    world = recording.pages.world
    session = world.session(recording.id)
    world.finish(session, world.approve(session))
    recording.run(SOON + 2, until=lambda now: now.title == PAID)
    recording.judge()
    assert recording.seconds[-1].title == PAID
