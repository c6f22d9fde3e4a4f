"""People sign in with passkeys in a real browser, whose authenticator is Chromium's virtual one."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from sandbox.place import Place
from sandbox.rehearsal.developer import with_authenticator
from tests.browser.judge import Judge
from tests.browser.steps import home, invited, joined, sign_in

pytestmark = pytest.mark.browser


@pytest.mark.smoke
def test_a_person_joins_signs_out_signs_in_with_their_passkey_and_is_revoked(
    browser: Browser, place: Place
) -> None:
    owner = browser.new_context().new_page()
    sign_in(owner, place)
    with_authenticator(owner)
    joined(owner, invited(owner, place, "Olga", "owner"))
    link = invited(owner, place, "Ada", "support")

    page = browser.new_context().new_page()
    with_authenticator(page)
    page.goto(link)
    expect(page.get_by_role("heading", level=1)).to_have_text("You are invited to Harbor Coffee")
    joined(page, link)
    expect(page.get_by_role("banner")).to_contain_text("Ada")
    page.goto(f"{home(place)}/keys")
    expect(page.get_by_role("button", name="Create a key")).to_have_count(0)
    page.get_by_role("button", name="Sign out").click()
    page.goto(f"{home(place)}/audit")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Audit log")
    expect(page.get_by_role("row").nth(1)).to_contain_text("Ada (mbr_")
    page.goto(link)
    expect(page.get_by_role("main")).to_contain_text("was used or withdrawn")

    owner.goto(f"{home(place)}/people")
    owner.locator("button[aria-label='Revoke Ada']").click()
    owner.get_by_role("dialog").get_by_role("button", name="Revoke Ada").click()
    expect(owner.get_by_role("listitem").filter(has_text="Ada")).to_contain_text("Revoked")
    page.goto(f"{home(place)}/audit")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in to your dashboard")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("alert")).to_have_text("This passkey is not valid here.")
    owner.context.close()
    page.context.close()


def test_a_device_without_the_passkey_is_told_so_and_may_try_again(
    browser: Browser, place: Place
) -> None:
    page = browser.new_context().new_page()
    with_authenticator(page)
    page.goto(home(place))
    button = page.get_by_role("button", name="Sign in with a passkey")
    button.click()
    expect(page.locator("#passkey-says")).to_have_text(
        "It was canceled, or took too long. Try again."
    )
    expect(button).to_be_enabled()
    page.context.close()


def test_without_script_a_link_says_what_it_needs_and_a_key_signs_in(
    browser: Browser, place: Place
) -> None:
    owner = browser.new_context(java_script_enabled=False).new_page()
    sign_in(owner, place)
    owner.goto(invited(owner, place, "Eve", "owner"))
    expect(owner.get_by_text("Your browser cannot create a passkey here")).to_be_visible()
    expect(owner.get_by_role("button", name="Create a passkey")).to_have_count(0)
    owner.context.close()


def test_no_page_breaks_a_rule_of_accessibility_or_is_wider_than_the_screen(
    browser: Browser, place: Place, axe: str
) -> None:
    judge = Judge(browser, axe)
    page = judge.page
    with_authenticator(page)
    page.goto(f"{home(place)}/sign-in")
    judge("sign-in")
    sign_in(page, place)
    page.goto(f"{home(place)}/people")
    judge("people")
    page.goto(f"{home(place)}/keys")
    judge("keys")
    link = invited(page, place, "Ñandú " + "x" * 50, "owner")
    judge("people-invited")
    page.goto(link)
    judge("invitation")
    joined(page, link)
    page.goto(f"{home(place)}/people")
    judge("people-joined")
    page.get_by_label("Name", exact=True).fill(" ")
    page.get_by_role("button", name="Create a link").click()
    judge("people-refused")
    page.goto(link)
    judge("invitation-used")
    judge.done()
