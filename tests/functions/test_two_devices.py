"""A desktop and a phone at one checkout, in every order of their steps within ten minutes.

Each order is played to its end in a world of its own. After every step the books of the wallets say
whether what the page tells is true, and that no more than one payment was made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import product
from urllib.parse import urlsplit

import pytest

from checkout.domain.session.record import Session, Status
from checkout.flows.payment import sealed
from checkout.flows.payment.sealed import Proof
from sandbox.wallets import interaction
from tests.support.flows import CEDAR, World
from tests.support.hosted_pages import (
    PHONE,
    Answer,
    Customer,
    another,
    customer,
    orders,
    send_form_at_once,
)
from tests.support.partitions import few_partitions
from tests.support.sample import sample

pytestmark = pytest.mark.untraced

WITHIN = 600.0  # seconds
DESKTOP = ("renew", "other wallet", "reload", "pay")
OWN_PHONE = ("open", "go", "approve")


@dataclass
class Device:
    """A browser, the page that it shows, and the approval that it went to its wallet for."""

    browser: Customer
    page: str = ""
    went: str | None = None
    handed: bool = False


@dataclass
class Story:
    """One order of steps, and what was approved in it."""

    world: World
    session_id: str
    desktop: Device
    phone: Device
    pause: float
    used: list[str] = field(default_factory=list)

    @property
    def session(self) -> Session:
        return self.world.session(self.session_id)

    def act(self, device: Device, step: str) -> None:
        if step == "scan":
            self.scan(device)
        elif step in ("open", "reload"):
            self.see(device, device.browser.open(self.session))
        elif step in ("renew", "other wallet"):
            self.submit(device, "carol" if step == "other wallet" else "alice")
        elif step in ("go", "pay"):
            # The link that the page shows, which may be older than the session.
            found = re.search(r'href="(http://localhost:4100/interact/[^"]+)"', device.page)
            device.went = found[1].replace("&amp;", "&") if found else None
        if step in ("approve", "pay") and device.went is not None:
            self.approve(device, device.went)
        self.world.clock.pass_time(self.pause)

    def scan(self, device: Device) -> None:
        """Open what the desktop's QR code holds: it hands over the approval that it began."""
        grant = sealed.pending_grant(self.world.services.vault, self.session)
        rest = f"?device={grant.proof(self.session_id, Proof.DEVICE)}" if grant else ""
        device.handed = grant is not None
        typed = {"sec-fetch-site": "none"}
        self.see(device, device.browser.open(self.session, rest, headers=typed))

    def submit(self, device: Device, wallet: str) -> None:
        before = self.session
        self.see(device, device.browser.form(self.session, f"{CEDAR}/{wallet}"))
        if self.session.grant != before.grant:
            self.desktop.handed = self.phone.handed = False
            device.handed = True

    def approve(self, device: Device, url: str) -> None:
        """Approve at the wallet and come back, and say yes if asked."""
        current = url == self.session.interact_url
        try:
            back = self.world.network.approve(url)
        except (interaction.NoRedirect, interaction.NoInteraction):
            return
        answer = device.browser.back_from(back)
        asked = "begun in another browser" in answer.body
        if asked:
            assert not device.handed, "who began it, or was handed it, is not asked"
            self.true(device, answer)
            answer = send_form_at_once(device.browser, back)
        self.see(device, answer)
        if current and "interact_ref=" in back:
            assert self.session.status is Status.COMPLETED, "the approval given is used"
            self.used.append(url)

    def see(self, device: Device, answer: Answer) -> None:
        """Follow redirects as a browser does, and hold the page against the books."""
        for _ in range(3):
            if answer.status == 303:
                parts = urlsplit(answer.headers["location"])
                query = f"?{parts.query}" if parts.query else ""
                answer = device.browser.get(parts.path + query)
        assert answer.status in (200, 400, 409), answer.status
        device.page = answer.body
        self.true(device, answer)

    def true(self, device: Device, answer: Answer) -> None:
        """Fail if the page says what is not so, or two payments were made."""
        said, session, now = answer.page.main, self.session, self.world.clock.now()
        made = [each for each in self.world.network.state.outgoing.values() if not each.failed]
        assert len(made) <= 1, "never two payments"
        assert self.world.received() in (0, 2000)
        truths = {
            "You have not been charged.": not made,
            "The shop has not received a payment.": not self.world.received(),
            "Paid. Thank you!": self.world.received() == 2000,
            "Sending your payment": bool(made),
            "Waiting for the money": bool(made),
            "This price has expired": expired(session, now),
            "you declined": False,
            "The price went up": False,
            "This checkout has expired": False,
            "Your wallet provider": False,
            "We could not": False,
            "The payment failed": False,
            "does not belong to this checkout": False,
            "This approval is not valid here": device.went != session.interact_url,
        }
        for sentence, true in truths.items():
            assert sentence not in said or true, f"“{sentence}” is false"
        if session.status is Status.COMPLETED and answer.status == 200:
            assert "Paid. Thank you!" in said
        if "Approve at" in said:
            assert session.status is Status.AWAITING_APPROVAL
            assert f'href="{session.interact_url}"' in answer.body.replace("&amp;", "&")


def expired(session: Session, now: object) -> bool:
    ends = session.quote.expires_at if session.quote else None
    return ends is not None and ends <= now  # type: ignore[operator]


def play(order: list[tuple[str, str]]) -> Story:
    with few_partitions(), customer(World()) as browser:
        world = browser.world
        session = world.create()
        devices = {"desktop": Device(browser), "phone": Device(another(browser))}
        pause = WITHIN / (len(order) + 2)
        story = Story(world, session.id, devices["desktop"], devices["phone"], pause)
        story.act(story.desktop, "open")
        story.act(story.desktop, "renew")
        for name, step in order:
            story.act(devices[name], step)
        for device in devices.values():
            story.act(device, "reload")
        assert len(story.used) <= 1
        assert (world.received() == 2000) == bool(story.used)
    return story


@pytest.mark.parametrize("phone", [PHONE, OWN_PHONE], ids=["scanned", "another browser"])
@pytest.mark.parametrize("desktop", DESKTOP)
def test_every_order_of_one_step_and_a_phone(desktop: str, phone: tuple[str, ...]) -> None:
    stories = [play(order) for order in orders((desktop,), phone)]
    assert len(stories) == 4
    assert any(story.used for story in stories)


@pytest.mark.endurance
@pytest.mark.parametrize("phone", [PHONE, OWN_PHONE], ids=["scanned", "another browser"])
@pytest.mark.parametrize("desktop", sample(product(DESKTOP, repeat=2), of=3), ids=" then ".join)
def test_every_order_of_two_steps_and_a_phone(
    desktop: tuple[str, ...], phone: tuple[str, ...]
) -> None:
    stories = [play(order) for order in orders(desktop, phone)]
    assert len(stories) == 10
    assert any(story.used for story in stories)
