"""An open page, read each second beside the wallets' own books."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Error, Page, Request

from checkout.domain.session.record import Session, Status
from checkout.flows.session import reconcile
from tests.browser.served import Served

PRICE = 2000  # in units of the shop's wallet
SOON, SELDOM, UNTOUCHED = 3, 10, 20  # seconds
NAME = '{"asked":["name"],"required":["name"]}'
PAID, PART = "Paid. Thank you!", "Only part of the money has arrived"
WAITING, NOT_ARRIVED = "Waiting for the money", "The payment has not arrived"
CANCELED = "This checkout was canceled"
NO_MONEY, NOT_CHARGED = "The shop has received no money", "You have not been charged."
DECLINED = "you declined the payment"


@dataclass(frozen=True)
class Second:
    """The page and the truth at one second: `received` and `can_arrive` are the wallets' own."""

    at: int
    title: str
    text: str
    asks_for_a_wallet: bool
    session: Session
    received: int
    can_arrive: bool

    def known(self) -> str:
        """Return what the page has to say for what is stored."""
        session = self.session
        if session.status is Status.COMPLETED:
            return PAID
        if session.status is Status.CANCELED:
            return CANCELED
        if session.status is not Status.PROCESSING:
            return ""
        if session.received:
            return PART
        return NOT_ARRIVED if session.closing_at or session.closed_at else WAITING

    def false(self) -> list[str]:
        """Return what the page says that is not so."""
        said = []
        if self.title == PAID and self.received < PRICE:
            said.append(f"paid, with {self.received}")
        if self.title == PART and not self.received:
            said.append("a part, with nothing")
        if self.received or self.can_arrive:
            said += [words for words in (NO_MONEY, NOT_CHARGED) if words in self.text]
        if self.asks_for_a_wallet and self.can_arrive:
            said.append("pay again, while money can arrive")
        return said


class Recording:
    """Both clocks go on second by second, and each second is noted."""

    def __init__(self, page: Page, pages: Served, session: Session, *, script: bool) -> None:
        self.page, self.pages, self.id, self.script = page, pages, session.id, script
        self.seconds: list[Second] = []
        self._incoming: set[str] = set()  # what the session has asked the customer to pay
        self._under_way: set[Request] = set()
        page.on("request", lambda request: self._under_way.add(request))
        for ended in ("requestfinished", "requestfailed"):
            page.on(ended, lambda request: self._under_way.discard(request))

    def run(self, seconds: int, *, until: Callable[[Second], bool] = lambda now: False) -> None:
        for _ in range(seconds):
            self.pages.world.clock.pass_time(1)
            reconcile.advance_pending(self.pages.world.services, self.id)  # as the shop's reads do
            if self.script:
                self.page.clock.run_for(1_000)
                self._wait_for_answers()
            elif len(self.seconds) % 3 == 0:
                self._refresh()
            self.seconds.append(self._look())
            if until(self.seconds[-1]):
                return

    def _refresh(self) -> None:
        """Do what the page has its browser do every 3 s: reload it, or a frame in it."""
        if self.page.locator("meta[http-equiv=refresh]").count():
            self.pages.reopen(self.page, self.pages.world.session(self.id))
        for frame in self.page.frames[1:]:
            assert frame.locator("meta[http-equiv=refresh][content='3']").count() == 1
            frame.goto(frame.url)

    def _wait_for_answers(self) -> None:
        """Let the page have its answers within this second: on a busy machine they take longer."""
        for _ in range(2):  # an answer may make it ask again
            for _ in range(500):
                if not self._under_way:
                    break
                self.page.wait_for_timeout(10)
            self.page.wait_for_timeout(10)

    def _look(self) -> Second:
        before = self._truth()
        while True:
            text, title, form = self._shown()
            after = self._truth()
            if after == before:
                return Second(len(self.seconds), title, text, form, *after)
            before = after

    def _truth(self) -> tuple[Session, int, bool]:
        world = self.pages.world
        world.network.advance()
        session, state = world.session(self.id), world.network.state
        if session.incoming_payment is not None:
            self._incoming.add(session.incoming_payment.id)
        received, can_arrive = 0, False
        for each in self._incoming:
            incoming = world.network.incoming_payment(each)
            assert incoming is not None
            received += incoming.received.value
            sent = [payment for payment in state.outgoing.values() if payment.receiver == each]
            arriving = any(one.settles_at is not None and not one.failed for one in sent)
            can_arrive |= arriving and incoming.is_payable(world.clock.now())
        return session, received, can_arrive

    def _shown(self) -> tuple[str, str, bool]:
        for _ in range(20):
            try:
                main = self.page.get_by_role("main")
                title = self.page.get_by_role("heading", level=1).first.inner_text()
                text = main.inner_text()
                for news in (frame.locator("strong") for frame in self.page.frames[1:]):
                    if news.count():  # in place of the title, which it makes void
                        title = news.inner_text()
                        text = f"{title}\n{text}"
                return text, title, self.page.locator("#wallet_address").is_visible()
            except Error:  # the page was replaced meanwhile
                self.page.wait_for_timeout(50)
        raise AssertionError("there is no page")

    def judge(self, within: int = SOON) -> None:
        """Require that nothing false was said, and that what became known was said in time."""
        assert [(each.at, each.false()) for each in self.seconds if each.false()] == []
        late, since = [], 0
        for before, now in zip(self.seconds, self.seconds[1:], strict=False):
            since = now.at if now.known() != before.known() else since
            wanted = now.known()
            if wanted and now.title != wanted and now.at - since > within:
                late.append((now.at, now.title, wanted))
        assert late == []
