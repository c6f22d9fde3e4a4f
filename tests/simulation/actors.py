"""The actors of a world: customers with their tabs, merchants, givers, a forger, somebody who pays
from outside, the clean-up's queue, and the schedule.

They do what people do: hesitate, decline, close tabs, press twice, come back. They know only the
product's answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from checkout.adapters.dynamo import index_keys
from checkout.domain.ground.errors import ParameterInvalid
from checkout.domain.links import OpenAmount, PaymentLink
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention
from checkout.domain.session.collect import Collect, Detail
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.new import NewSession
from checkout.domain.session.record import LineItem, Session, Status
from checkout.flows import merchants
from checkout.flows.links import purchase
from checkout.flows.payment import cleanup, sealed
from checkout.flows.schedule import expiries, sweep
from checkout.flows.session import approve, close, details, lookup, prepare, reconcile
from checkout.flows.session.create import create_session
from checkout.ports import Cleanup, StaleRecord
from checkout.services import PayServices
from sandbox.wallets.interaction import NoInteraction, NoRedirect
from tests.simulation.boundaries import Process, moment
from tests.simulation.faults import CALM, Around, Wider
from tests.simulation.providers import CUSTOMER, OTHER_WALLET, SKEW_MAX, UNCONVERTED
from tests.simulation.refunding import COMES_BACK, Labeler
from tests.support.protected import CLOCK_IS_FINAL_AFTER

if TYPE_CHECKING:
    from tests.simulation.sim_world import Answer, SimWorld

MUST: Final = Collect(asked=frozenset({Detail.EMAIL}), required=frozenset({Detail.EMAIL}))
SWEEP_TIME: Final = timedelta(seconds=50)
MINUTE: Final = 60_000  # milliseconds
COUNTED_WITHIN: Final = CLOCK_IS_FINAL_AFTER + expiries.GATHERED  # of its end
TURNS_MAX: Final = 8  # how often a customer tries to pay one purchase
LOOKS_MAX: Final = 40  # how often an open page asks
TASK_VISIBILITY: Final = 360_000  # milliseconds; template.yaml's
TASK_RECEIVES_MAX: Final = 3
EARLY: Final = 0.25  # of the storms: money comes while its session waits for its customer
ASKS: Final = 0.2  # of the storms: sessions ask for details before the wallet
CROSSED: Final = 0.05  # of the storms: others write while a callback is frozen
STUMBLE: Final = 0.1  # of the storms: wallets cannot take an approval for a while
CHOSEN: Final = 0.5  # of the storms at a payment link: customers choose the amount
TILL: Final = 0.4  # of these: a clerk asks for the amount at the link's till
OPEN_AMOUNT: Final = OpenAmount(10, 20_000, (500, 2_000))
# Each of these in every storm: how some seeded bugs are hunted.
EARLY_MONEY: Final = "money comes before the approval"
LATE_MONEY: Final = "money comes after the end"
CROSSED_CLAIMS: Final = "others write while a callback is frozen"
ASKED_DETAILS: Final = "sessions ask for details"
STUMBLING_WALLETS: Final = "wallets stumble at the approval"
CHOSEN_AMOUNTS: Final = "customers choose the amount"
AT_TILL: Final = "a clerk asks for the amount at a till"
IN_ALL_STORMS: Final = (
    *(EARLY_MONEY, LATE_MONEY, CROSSED_CLAIMS, ASKED_DETAILS),
    *(STUMBLING_WALLETS, CHOSEN_AMOUNTS, AT_TILL),
)


def populate(world: SimWorld) -> None:
    """Merchants come with their orders and bring customers; the schedule ticks for all."""
    world.orders = 1 if world.profile != "storm" else (1, 1, 2, 3)[world.rng.randrange(4)]
    for number in range(world.orders):
        merchant = Merchant(world, number)
        world.scheduler.spawn(f"merchant {number}", merchant.run)
    if world.profile == "storm" and world.rng.random() < 0.1:
        world.scheduler.spawn("stranger", Stranger(world).run)
    if world.profile == "storm" and world.apart("closer").random() < 0.1:
        world.scheduler.spawn("closer", Closer(world).run)
    if world.late_money:
        world.scheduler.spawn("latecomer", Latecomer(world).run)
    if world.early_money:
        world.scheduler.spawn("early payer", EarlyPayer(world).run)
    world.scheduler.spawn("schedule", lambda: tick(world))
    if world.owner is not None:
        world.scheduler.spawn("owner", world.owner.run)


class Merchant:
    def __init__(self, world: SimWorld, number: int) -> None:
        self.world = world
        self.number = number

    def run(self) -> None:
        world, rng = self.world, self.world.rng
        session_id = self._begin(world.link)
        if session_id is None:
            return
        world.sessions.append(session_id)
        if world.refunding is not None:
            world.begin_refunds(session_id, f"clerk {self.number}")
        if world.profile == "storm" and world.seed % 8 == 3:
            world.counts["abandoned"] += 1
            return  # nobody ever opens it
        world.scheduler.spawn(f"customer {self.number}", Customer(world, session_id).run)
        if world.profile != "storm" or rng.random() < 0.1:
            world.scheduler.spawn(f"shop {self.number}", lambda: self._follow(session_id))
        if world.profile != "storm":
            return
        if rng.random() < 0.2:
            page = Customer(world, session_id)
            world.scheduler.spawn(f"tab {self.number}", page.run, after=rng.randrange(MINUTE))
        if rng.random() < 0.5:
            world.scheduler.spawn(f"desk {self.number}", lambda: self._decide(session_id))
        if rng.random() < 0.15:
            world.scheduler.spawn(f"watcher {self.number}", Watcher(world, session_id).run)
        if rng.random() < 0.35:
            self._change_mind(session_id)

    def _begin(self, link: PaymentLink | None) -> str | None:
        if link is None:
            return self._order()
        if link.open_amount is not None:
            gives = Till if self.world.tills else Giver
            return gives(self.world, link, self.number).buy()
        return self._buy(link)

    def _decide(self, session_id: str) -> None:
        """Look into the dashboard now and then; accept a partial payment, or give it up."""
        world, rng = self.world, self.world.rng
        decision = close.accept_as_paid if rng.random() < 0.5 else close.give_up
        for _ in range(20):
            world.scheduler.sleep(rng.randrange(10 * MINUTE))
            session = world.checker.sessions[session_id]
            if session.terminal:
                return
            if session.partly_paid:
                world.request("decide", lambda s: decision(s, world.key, session_id))

    def _order(self) -> str | None:
        """Create the session, again and again under one idempotency key, until there is an
        answer.
        """
        world, rng = self.world, self.world.rng
        seconds = 1800 if world.profile != "storm" else (300, 600, 1800, 3600)[rng.randrange(4)]
        # A cart with such a text lies in an item of its own.
        told = rng.randbytes(100).hex() if rng.random() < 0.3 else None
        new = NewSession(
            line_items=(self._item(told),),
            success_url="https://shop.example/thanks",
            cancel_url="https://shop.example/basket",
            expires_in_seconds=seconds,
            collect_json=MUST.to_json() if world.asks else None,
        )
        bodies = set()
        for _ in range(6):
            answer = world.request(
                "create",
                lambda services: create_session(services, world.key, new, f"order-{self.number}"),
            )
            if answer.value is not None:
                bodies.add(answer.value.body)
                if rng.random() < 0.9:
                    break
            world.scheduler.sleep(rng.randrange(500, 5_000))
        if len(bodies) > 1:
            world.checker.fail("one_session_per_idempotency_key", f"{len(bodies)} answers")
        for body in sorted(bodies):
            session_id = str(json.loads(body)["id"])
            if len(bodies) == 1 and session_id not in world.checker.sessions:
                world.checker.fail("an_answer_has_its_session", session_id)
            return session_id
        return None

    def _item(self, told: str | None) -> LineItem:
        price = self._price(self.world.rng.randrange(100, 10_000))
        return LineItem(self.world.currency, "Tea", told, price, 1)

    def _price(self, drawn: int) -> int:
        """Return the price that was drawn, or in some storms a small one, mostly below 15."""
        small = self.world.profile == "storm" and self.world.apart("small").random() < 0.15
        return 5 + drawn % (10 if drawn % 2 else 95) if small else drawn

    def _buy(self, link: PaymentLink) -> str | None:
        """Send the form of a payment link, again and again, until there is an answer."""
        world, rng = self.world, self.world.rng
        begun = set()
        several = link.quantity_max > 1  # the last release knows none
        wanted: Any = {"quantity": 1 + self.number % 2} if several else {}
        for _ in range(6):
            answer = world.request(
                "buy",
                lambda s: purchase.begin(
                    s,
                    purchase.load_link(s, link.id),
                    f"{self.number:022d}",
                    "nobody",
                    **wanted,
                ),
            )
            if answer.value is not None:
                begun.add(answer.value.session_id)
                if rng.random() < 0.9:
                    break
            world.scheduler.sleep(rng.randrange(500, 5_000))
        if len(begun) > 1:
            world.checker.fail("one_session_per_visit", f"{len(begun)} sessions")
        return next(iter(sorted(begun)), None)

    def _change_mind(self, session_id: str) -> None:
        """End the session at some time, or just when the customer is at the wallet."""
        world, rng = self.world, self.world.rng
        ending = close.cancel if rng.random() < 0.5 else close.expire
        tries, longest = 3, (10_000, MINUTE, 10 * MINUTE)[rng.randrange(3)]
        if rng.random() < 0.5:
            self._follow(session_id, until=Status.AWAITING_APPROVAL)
            tries, longest = 20, (100, 1_000, 3_000)[rng.randrange(3)]
            world.scheduler.sleep(rng.randrange(12_000))
        for _ in range(tries):
            world.scheduler.sleep(rng.randrange(longest))
            answer = world.request("end", lambda services: ending(services, world.key, session_id))
            if answer.value is not None:
                return

    def _follow(self, session_id: str, until: Status | None = None) -> None:
        """Ask for the session again and again, for about a minute and a half."""
        world, rng = self.world, self.world.rng
        reader = Reader(world)
        for _ in range(60):
            answer = reader.ask("get", lambda s: lookup.get(s, world.key, session_id))
            session: Session | None = answer.value
            if session is not None and (session.terminal or session.status is until):
                return
            world.scheduler.sleep(rng.randrange(100, 3_000))


class Giver:
    """One who chooses the amount at a payment link: mistypes it, sends it again, takes another.

    The draws are apart from those of the world.
    """

    def __init__(self, world: SimWorld, link: PaymentLink, number: int) -> None:
        self.world = world
        self.link = link
        self.visit = f"{number:022d}"
        self.at_till = False
        self.rng = world.apart(f"giver {number}")

    def buy(self) -> str | None:
        """Send the form until there is an answer; at times, go back and send another amount."""
        world, rng = self.world, self.rng
        if rng.random() < 0.5:
            self._mistype()
        amount = self._drawn()
        begun: set[str] = set()
        for _ in range(6):
            session_id = self._send(self._typed(amount), amount)
            if session_id is not None:
                begun.add(session_id)
                if rng.random() < 0.7:
                    break
            world.scheduler.sleep(rng.randrange(500, 5_000))
        if len(begun) > 1:
            world.checker.fail("one_session_per_visit", f"{len(begun)} sessions")
        first = next(iter(sorted(begun)), None)
        if first is None or rng.random() < 0.5:
            return first
        # Another amount is another purchase. It is sent once: each time, it would be one more.
        world.orders += 1
        other = self._drawn()
        return self._send(self._typed(other), other) or first

    def _drawn(self) -> int:
        bounds, rng = OPEN_AMOUNT, self.rng
        edges = (bounds.smallest, bounds.largest, *bounds.suggestions)
        return (*edges, *(rng.randrange(bounds.smallest, bounds.largest) for _ in edges))[
            rng.randrange(2 * len(edges))
        ]

    def _typed(self, amount: int) -> dict[str, str]:
        """Return a form with this amount: a suggestion, or as people type it."""
        if amount in OPEN_AMOUNT.suggestions and self.rng.random() < 0.5:
            return {"suggestion": str(amount), "amount": ""}
        if self.world.currency == "jpy":
            return {"amount": str(amount)}
        whole, cents = f"{amount // 100}", f"{amount % 100:02d}"
        typed = (f"{whole}.{cents}", f"{whole},{cents}", f"{whole}.{cents}".rstrip("0").rstrip("."))
        return {"amount": typed[self.rng.randrange(3)]}

    def _mistype(self) -> None:
        """Send what the link does not allow: nothing is sold."""
        factor = 1 if self.world.currency == "jpy" else 100
        below, above = OPEN_AMOUNT.smallest - 1, OPEN_AMOUNT.largest + 1
        forms = (
            {"amount": f"{below // factor}.{below % factor:02d}" if factor > 1 else str(below)},
            {"amount": f"{above // factor}.{above % factor:02d}" if factor > 1 else str(above)},
            {"amount": "1,250"},
            {"amount": ""},
            {"suggestion": "700", "amount": ""},
        )
        wrong = forms[self.rng.randrange(len(forms))]
        if self._send(wrong, None) is not None:
            self.world.checker.fail("sold_at_a_chosen_amount", f"sold for {wrong}")

    def _send(self, typed: dict[str, str], amount: int | None) -> str | None:
        """Send the form as the page's route does; return the session to which it leads."""
        world = self.world

        def begin(services: PayServices) -> purchase.Begun:
            link = purchase.load_link(services, self.link.id)
            chosen = link.chosen(typed, merchants.get(services.merchants, link.merchant))
            if chosen is None:
                raise ParameterInvalid("the page is shown again", param="amount")
            return purchase.begin(
                services, link, self.visit, "nobody", amount=chosen, at_till=self.at_till
            )

        world.checker.sends(amount)
        answer = world.request("buy", begin)
        if answer.value is None:
            return None
        session_id: str = answer.value.session_id
        world.checker.chosen(session_id, amount)
        return session_id


class Till(Giver):
    """A clerk at a counter: begins a sale, watches its screen, cancels some, and begins again.

    So does somebody who has the address of a sale, and did not begin it: the till refuses.
    """

    def __init__(self, world: SimWorld, link: PaymentLink, number: int) -> None:
        super().__init__(world, link, number)
        self.at_till = True
        self.number = number

    def buy(self) -> str | None:
        """Sell up to three times; return the last sale, whose customer the merchant brings."""
        world, rng = self.world, self.rng
        last = None
        for sale in range(1 + rng.randrange(3)):
            if last is not None:
                world.orders += 1
                world.sessions.append(last)
                world.scheduler.spawn(f"buyer {self.number}.{sale}", Customer(world, last).run)
                self._stand(last, LOOKS_MAX)
            self.visit = f"{self.number:02d}{sale:020d}"
            amount = self._drawn()
            for _ in range(6):
                begun = self._send(self._typed(amount), amount)
                if begun is not None:
                    break
                world.scheduler.sleep(rng.randrange(500, 5_000))
            last = begun or last
        if last is not None:
            watching = partial(self._stand, last, 4 * LOOKS_MAX)
            world.scheduler.spawn(f"till {self.number}", watching)
        return last

    def _stand(self, session_id: str, looks: int) -> None:
        """Watch the screen of a sale until it has ended, and in some sales cancel before."""
        world, rng = self.world, self.rng
        cancels = rng.randrange(looks // 2) if rng.random() < 0.5 else looks
        for look in range(looks):
            world.scheduler.sleep(rng.randrange(1_000, 5_000))
            answer = world.request("screen", lambda s: reconcile.view(s, session_id))
            if answer.value is not None and world.checker.screen(answer.value):
                return
            if look == 1 and rng.random() < 0.3:
                other = self._cancel(session_id, "9" * 22)
                if not other.lost and other.error is None:
                    world.checker.fail("only_its_till_cancels_a_sale", session_id)
            if look == cancels:
                self._cancel(session_id, self.visit)

    def _cancel(self, session_id: str, visit: str) -> Answer:
        return self.world.request("end", lambda s: purchase.cancel(s, self.link, visit, session_id))


class Reader:
    """One who asks about a session time and again, and never learns of its past."""

    def __init__(self, world: SimWorld) -> None:
        self.world = world
        self._version = 0

    def ask(self, name: str, act: Callable[[PayServices], Any]) -> Answer:
        """Make a request whose answer holds the session."""
        known = self._version
        answer = self.world.request(name, act)
        session = getattr(answer.value, "record", answer.value)
        if isinstance(session, Session):
            if session.version < known:
                told = f"version {session.version} after {known}"
                self.world.checker.fail("nobody_is_shown_the_past", told)
            self._version = max(self._version, session.version)
        return answer


class Watcher:
    """A page that looks just when a check of the wallets comes due on anybody's clock.

    It does not always wait for the session's own schedule, on which no proof may rest.
    """

    def __init__(self, world: SimWorld, session_id: str) -> None:
        self.world = world
        self.session_id = session_id

    def run(self) -> None:
        world, scheduler = self.world, self.world.scheduler
        for _ in range(300):
            session = world.checker.sessions[self.session_id]
            if index_keys.due_at(session) is None and session.terminal:
                return
            near = moment(scheduler.now + 2 * SKEW_MAX)
            fenced = session.closing_at is not None or session.closed_at is not None
            if not fenced or session.check_at is None or session.check_at > near:
                scheduler.sleep(1_000)
                continue
            look = reconcile.advance_pending if world.rng.random() < 0.5 else self._too_early
            world.request("look", partial(look, session_id=self.session_id))
            scheduler.sleep(world.rng.randrange(50, 400))

    @staticmethod
    def _too_early(services: PayServices, session_id: str) -> Session:
        session = reconcile.view(services, session_id)
        if not session.payment_in_flight and not session.terminal:
            return session
        try:
            return reconcile.step(services, session)
        except StaleRecord as stale:
            current: Session = stale.current
            return current


class Customer(Reader):
    """One person with one tab on the checkout page of one session."""

    def __init__(self, world: SimWorld, session_id: str) -> None:
        super().__init__(world)
        self.session_id = session_id
        self.willing = world.profile != "storm"
        self.wallet = self._first_wallet()
        self.proof = ""  # of the browser's cookie
        self.approvals = 0
        self.done = False

    def run(self) -> None:
        if self.willing:
            self.world.counts[f"{self.world.profile} willing"] += 1
        session: Session | None = None
        for turn in range(TURNS_MAX):
            self._pause(200, 20_000)
            if self.world.asks:
                self._say()
            session = self._pay() or self._look()
            session = self._watch(session)
            if session is None or session.terminal or self._gives_up(turn):
                break
            if turn and self.world.rng.random() < 0.5:
                self.wallet = OTHER_WALLET
        self.done = True
        if self.willing:
            self._report(session)

    def _first_wallet(self) -> str:
        world = self.world
        short = not self.willing and world.kind.behaviour.get("short_by")
        return UNCONVERTED if short and world.apart("unconverted").random() < 0.4 else CUSTOMER

    def _report(self, session: Session | None) -> None:
        """Report the end of a customer who was willing all along."""
        world = self.world
        paid = session is not None and session.status is Status.COMPLETED
        world.counts[f"{world.profile} completed"] += paid
        world.counts[f"{world.profile} at once"] += paid and self.approvals == 1
        if world.profile == "calm" and not (paid and self.approvals == 1):
            world.checker.fail("calm_customers_pay_at_once", f"{self.approvals} approvals")

    def _say(self) -> None:
        """Give the details, and now and then none, or others than before. The draws are apart."""
        world = self.world
        rng = world.apart(f"details {self.session_id} {world.scheduler.now}")
        said = CustomerDetails(email=f"ana{rng.randrange(3)}@customer.example")
        if rng.random() < 0.8:
            self.ask("details", lambda s: details.give(s, lookup.load(s, self.session_id), said))

    def _pay(self) -> Session | None:
        """From the wallet address to what the callback shows; None where it went astray."""
        answer = self.ask(
            "submit",
            lambda services: prepare.submit_wallet(services, self.session_id, self.wallet),
        )
        session = answer.value or (self._look() if answer.lost else None)
        if session is None or session.interact_url is None:
            return session if answer.error is None else None
        grant = sealed.pending_grant(self.world.vault, session)
        self.proof = grant.proof(session.id, sealed.Proof.BROWSER) if grant else ""
        back = self._at_the_wallet(session.interact_url, session.expires_at)
        return self._come_back(back) if back is not None else None

    def _at_the_wallet(self, interact_url: str, ends_at: datetime) -> str | None:
        """Approve, decline, dawdle or leave; the URL that the wallet sends the browser to."""
        rng, network = self.world.rng, self.world.network
        drawn = 1.0 if self.willing else rng.random()
        if drawn < 0.08:
            return None  # closes the tab
        self._pause(500, 15_000)
        if drawn < 0.2:
            self._pause(10_000, 11 * MINUTE)  # past the quote's life, perhaps the interaction's
        if 0.27 <= drawn < 0.32:
            self._pause_until_just_before(ends_at)
        decide = network.decline if 0.2 <= drawn < 0.27 else network.approve
        try:
            back = decide(interact_url)
        except (NoRedirect, NoInteraction):
            return None
        self.world.note(f"at the wallet: {decide.__name__}")
        self.approvals += "interact_ref" in back
        return back

    def _come_back(self, url: str) -> Session | None:
        rng = self.world.rng
        query = parse_qs(urlsplit(url).query)
        if "interact_ref" not in query:
            return self._not_approved(query.get("result", ["grant_rejected"])[0])
        reference, presented = query["interact_ref"][0], query["hash"][0]
        self._pause(50, 2_000)
        if not self.willing and rng.random() < 0.1:
            self._forge(reference, presented)
        if not self.willing and rng.random() < 0.2:  # a second click, a reload, a prefetch
            self.world.scheduler.spawn(
                "again", lambda: void(self._callback(reference, presented)), after=self._soon()
            )
        return self._callback(reference, presented)

    def _not_approved(self, result: str) -> Session | None:
        """Come back without an approval, as the wallet's redirect says and nobody has signed."""
        self._pause(50, 2_000)
        answer = self.ask("report", partial(self._reported, result=result))
        session: Session | None = answer.value
        return session

    def _reported(self, services: PayServices, *, result: str) -> Session:
        session = reconcile.advance_pending(services, self.session_id)
        return approve.note_reported(services, session, result, browser=self.proof)

    def _callback(self, reference: str, presented: str) -> Session | None:
        for _ in range(COMES_BACK):
            answer = self._answer(reference, presented)
            if answer.value is None:
                return None
            if not answer.value.wait_seconds:
                session: Session = answer.value.record
                return session
            self.world.scheduler.sleep(answer.value.wait_seconds * 1000)
        return None

    def _answer(self, reference: str, presented: str) -> Answer:
        return self.ask(
            "callback",
            lambda services: approve.finish(
                services, self.session_id, interact_ref=reference, presented_hash=presented
            ),
        )

    def _forge(self, reference: str, presented: str) -> None:
        """Send a stranger's callback: nothing may come of it."""
        for wrong in ((reference[::-1], presented), (reference, presented[::-1])):
            answer = self._answer(*wrong)
            awaits = answer.value is not None and answer.value.record.phase is None
            if awaits and answer.value.record.status is Status.AWAITING_APPROVAL:
                self.world.checker.fail("unverified_is_refused", "a forged callback was accepted")

    def _watch(self, session: Session | None) -> Session | None:
        """The open page asks until the payment is out of doubt, or the tab is closed."""
        looks = LOOKS_MAX if self.willing else self.world.rng.randrange(LOOKS_MAX)
        for look in range(looks):
            if session is not None and not session.payment_in_flight and session.phase is None:
                return session
            self.world.scheduler.sleep(2_000 if look < 15 else 20_000)
            session = self._look() or session
        return session

    def _look(self) -> Session | None:
        answer = self.ask(
            "look", lambda services: reconcile.advance_pending(services, self.session_id)
        )
        session: Session | None = answer.value
        if session is not None and session.status is Status.COMPLETED:
            self._told_paid(session)
        return session

    def _told_paid(self, session: Session) -> None:
        stored = self.world.checker.sessions[session.id]
        if stored.status is not Status.COMPLETED:
            self.world.checker.fail("told_paid_when_paid", stored.status)

    def _gives_up(self, turn: int) -> bool:
        return not self.willing and self.world.rng.random() < 0.05 * turn

    def _pause_until_just_before(self, time: datetime) -> None:
        """Wait for the last seconds of a session, unless they are too far away."""
        left = (time - moment(self.world.scheduler.now)) // timedelta(milliseconds=1)
        wait = left - self.world.rng.randrange(8_000)
        if 0 < wait < 9 * MINUTE:  # an interaction lives for ten
            self.world.scheduler.sleep(wait)

    def _pause(self, shortest: int, longest: int) -> None:
        self.world.scheduler.sleep(self.world.rng.randrange(shortest, longest))

    def _soon(self) -> int:
        return (0, 50, 5_000, MINUTE)[self.world.rng.randrange(4)] + self.world.rng.randrange(50)


class Stranger:
    """One who knows the incoming payment of a session, and pays it past the checkout.

    In full, in part, or more than was asked for, with two payments that were quoted before either
    arrived; before or after the end of the session.
    """

    def __init__(self, world: SimWorld) -> None:
        self.world = world
        self.rng = world.rng

    def run(self) -> None:
        scheduler, rng = self.world.scheduler, self.rng
        scheduler.sleep(rng.randrange((MINUTE, 5 * MINUTE, 30 * MINUTE)[rng.randrange(3)]))
        how = (Around.OUTSIDE_FULL, Around.OUTSIDE_PART, Around.OUTSIDE_MORE)[rng.randrange(3)]
        late = rng.random() < 0.5  # waits for an end
        for _ in range(60):
            for session in list(self.world.checker.sessions.values()):
                if session.terminal == late and self._pay(session, how):
                    return
            scheduler.sleep(rng.randrange(MINUTE))

    def _pay(self, session: Session, how: Around) -> bool:
        """Pay the session's incoming payment; False if it has none that takes money."""
        world, asked = self.world, session.receive.value
        if session.incoming_payment is None:
            return False
        part = self.rng.randrange(1, asked)
        values = {Around.OUTSIDE_PART: [part], Around.OUTSIDE_MORE: [part, asked]}.get(how, [asked])
        world.network.advance()
        for value in values:
            if not world.network.pay_from_outside(session.incoming_payment.id, value):
                return False
            world.note(f"pays {value} of {asked} from outside: {session.status}")
        world.faults.happened(how)
        if session.terminal:
            world.faults.happened(Around.OUTSIDE_LATE)
        world.checker.money()
        return True


class Latecomer(Stranger):
    """One who pays each session that was canceled or has expired, soon after its end.

    So that there is late money to refund. The draws are apart from those of the world.
    """

    def __init__(self, world: SimWorld) -> None:
        super().__init__(world)
        self.rng = world.apart("latecomer's payments")

    def run(self) -> None:
        """Look every few seconds, for about half an hour."""
        hows = (Around.OUTSIDE_FULL, Around.OUTSIDE_PART, Around.OUTSIDE_MORE)
        paid: set[str] = set()
        for _ in range(200):
            for session in list(self.world.checker.sessions.values()):
                late = session.status in (Status.CANCELED, Status.EXPIRED)
                if late and session.id not in paid:
                    paid.add(session.id)
                    self._pay(session, hows[self.rng.randrange(3)])
            self.world.scheduler.sleep(self.rng.randrange(1_000, 20_000))


class EarlyPayer(Stranger):
    """One who pays a session that waits: open again after a try, or at the customer's wallet.

    Somebody else's page of it stays open, and sees the money a minute after the last change. The
    draws are apart from those of the world.
    """

    def __init__(self, world: SimWorld) -> None:
        super().__init__(world)
        self.rng = world.apart("early payer's payments")

    def run(self) -> None:
        """Look every second, for about half an hour, for a session that has waited long enough."""
        rng, scheduler = self.rng, self.world.scheduler
        hows = (Around.OUTSIDE_FULL, Around.OUTSIDE_PART, Around.OUTSIDE_MORE)
        how = hows[rng.randrange(3)]
        status = (Status.OPEN, Status.AWAITING_APPROVAL)[rng.randrange(2)]
        waited = timedelta(seconds=(0, 16, 50, 50)[rng.randrange(4)])  # few customers take 16 s
        for _ in range(1_800):
            now = moment(scheduler.now)
            for session in list(self.world.checker.sessions.values()):
                waits = session.status is status and session.phase is None
                long_enough = waits and now >= session.updated_at + waited
                if long_enough and now < session.expires_at and self._pay(session, how):
                    self._watch(session.id)
                    return
            scheduler.sleep(rng.randrange(200, 1_800))

    def _watch(self, session_id: str) -> None:
        page = Reader(self.world)
        look = partial(reconcile.advance_pending, session_id=session_id)
        for _ in range(12):
            page.ask("look", look)
            self.world.scheduler.sleep(self.rng.randrange(5_000, 20_000))


class Closer:
    """One who knows the incoming payment of a session, and completes it at the shop's provider.

    Anybody may, at some providers: at any time, or just before the customer comes back to pay.
    """

    def __init__(self, world: SimWorld) -> None:
        self.world = world
        self.rng = world.apart("closer's time")

    def run(self) -> None:
        scheduler, state = self.world.scheduler, self.world.network.state
        hurried = self.rng.random() < 0.7
        scheduler.sleep(0 if hurried else self.rng.randrange(5 * MINUTE))
        for _ in range(600):
            for session in list(self.world.checker.sessions.values()):
                ref = session.incoming_payment
                approved = session.phase is not None or not hurried
                if session.terminal or ref is None or not approved:
                    continue
                incoming = state.incoming[ref.id.rsplit("/", 1)[-1]]
                if not incoming.completed:
                    self.world.network.advance()
                    self.world.network.close(incoming)
                    self.world.note(f"closes it from outside: {session.status}")
                    self.world.faults.happened(Around.OUTSIDE_CLOSED)
                    self.world.checker.money()
                    return
            scheduler.sleep(self.rng.randrange(50, 1_500))


class Crosser:
    """One whose write comes between a callback's read and its claim, as the callback is frozen.

    Another tab gives the wallet again, or the shop's server changes the metadata. The draws are
    apart from those of the world.
    """

    def __init__(self, world: SimWorld) -> None:
        self.world = world
        self.rng = world.apart("crosser")
        self._frozen: set[str] = set()

    def before(self, process: Process, operation: str, request: dict[str, Any]) -> None:
        """Freeze the process before the first write of its callback, and write."""
        world, by = self.world, self.world.scheduler.actor
        if operation != "update_item" or by in self._frozen or world.faults.rates is CALM:
            return
        session = world.checker.sessions.get(request["Key"]["id"]["S"])
        waits = session is not None and session.status is Status.AWAITING_APPROVAL
        if session is None or not waits or session.phase or not by.startswith("callback"):
            return
        self._frozen.add(by)
        tab, labels = Customer(world, session.id), Labeler(world, session.id)
        gives_again = self.rng.random() < 0.5
        crosses = (lambda: void(tab._pay())) if gives_again else labels.write_once
        world.scheduler.spawn("crosser", crosses)
        world.note(f"{process.name} is frozen before its claim")
        world.faults.happened(Wider.CROSSED)
        process.pass_turn(self.rng.randrange(4_500, 20_000))


class Tasks:
    """`ports.TaskQueue`, on a queue that loses messages at times, and its consumer."""

    def __init__(self, world: SimWorld) -> None:
        self.world = world

    def clean_up(self, task: Cleanup) -> None:
        world = self.world
        if world.rng.random() < world.weather.lost_hint:
            world.faults.happened(Around.TASK_LOST)
            return
        after = world.rng.randrange(20, (500, 10_000)[world.rng.randrange(2)])
        if world.swarm.twice and world.wide.random() < world.swarm.twice:
            world.faults.happened(Wider.TWICE)
            world.scheduler.spawn("tasks", lambda: self._receive(task), after=after)
        world.scheduler.spawn("tasks", lambda: self._receive(task), after=after)

    def _receive(self, task: Cleanup) -> None:
        for receive in range(TASK_RECEIVES_MAX):
            if receive:
                self.world.scheduler.sleep(TASK_VISIBILITY)
                self.world.faults.happened(Around.TASK_AGAIN)
            answer = self.world.request("clean up", lambda services: cleaned_up(services, task))
            if answer.value:
                return


def cleaned_up(services: PayServices, task: Cleanup) -> bool:
    try:
        cleanup.clean_up(services, task)
    except cleanup.TryLater:
        return False
    return True


def last_customer(world: SimWorld, session_id: str) -> None:
    """Nothing fails any more; one with a good wallet comes to a session not paid yet."""
    customer = Customer(world, session_id)
    customer.willing, customer.wallet = True, OTHER_WALLET
    for _ in range(TURNS_MAX):
        session = customer._watch(customer._look())
        if session is None or session.terminal:
            break
        if session.status in (Status.OPEN, Status.AWAITING_APPROVAL):
            if session.lacks_details:
                customer._say()
            customer._watch(customer._pay())
        world.scheduler.sleep(MINUTE)
    stored = world.checker.sessions[session_id]
    world.counts["last customers"] += 1
    ended = {entry.event for entry in stored.history}
    over = stored.status in (Status.COMPLETED, Status.CANCELED) or (
        ended & {Event.EXPIRE_REQUESTED, Event.GIVEN_UP}
    )
    excused = over or stored.attention is Attention.PARTIAL_PAYMENT
    if not excused:  # one operand, so that each last customer is counted (probes.py)
        world.checker.fail("can_be_paid_in_the_end", f"{stored.status} {stored.problem}")


def tick(world: SimWorld) -> None:
    """EventBridge Scheduler: once a minute, delivered twice at times, and now and then not at
    all. A tick with nothing due is not worth a line.
    """
    while True:
        world.scheduler.sleep(world.pace - world.scheduler.now % world.pace)
        events = world.deliveries.due(moment(world.scheduler.now + MINUTE))
        if not (events or due(world) or of_the_clock(world)):
            continue
        world.scheduler.spawn("sweeper", lambda: round_of_sweep(world))
        if world.profile == "storm" and world.rng.random() < 0.1:
            again = world.rng.randrange(1_000)
            world.scheduler.spawn("sweeper", lambda: round_of_sweep(world), after=again)


def tick_always(world: SimWorld) -> None:
    """Have each minute's round begin, whether anything is due or not, for the first hours."""

    def ticks() -> None:
        for _ in range(240):
            world.scheduler.sleep(MINUTE - world.scheduler.now % MINUTE + 1)
            if not (due(world) or of_the_clock(world)):
                world.scheduler.spawn("sweeper", lambda: round_of_sweep(world))

    world.scheduler.spawn("schedule of all", ticks)


def time_to_live(world: SimWorld) -> None:
    """DynamoDB deletes rows some time after the end of their time to live."""
    while True:
        world.scheduler.sleep(5 * MINUTE)
        delete(world, moment(world.scheduler.now), chance=0.7)


def delete(world: SimWorld, now: datetime, *, chance: float) -> None:
    """Delete rows whose time to live is over, each with this chance."""
    seconds = now.timestamp()
    for name in world.tables._tables:
        for row in world.tables.rows(name):
            if int(row.get("ttl", {"N": "99999999999"})["N"]) > seconds:
                continue
            if world.wide.random() < chance:
                table = world.tables._tables[name]
                table.remove(table.key(row))
                world.faults.happened(Wider.DELETED)
                world.checker.deleted(row, now)


def due(world: SimWorld) -> list[str]:
    """The sessions and refunds that the due index would give."""
    now = moment(world.scheduler.now)
    return [
        session.id
        for session in world.checker.sessions.values()
        if (at := index_keys.due_at(session)) is not None and at <= now
    ] + [*world.checker.refunds.due(now), *world.checker.budgets.due(now)]


def of_the_clock(world: SimWorld) -> list[str]:
    """The sessions that have ended, and that may still have to be told of or counted."""
    now = moment(world.scheduler.now)
    since = now - COUNTED_WITHIN - timedelta(minutes=3)
    return [
        session.id
        for session in world.checker.sessions.values()
        if (over := session.over_at) is not None and over <= now
        if since < over or (world.wants_expiries and not session.terminal)
    ]


def round_of_sweep(world: SimWorld) -> None:
    """Do the scheduled function's work of one tick."""
    calm = world.faults.rates is CALM  # from its first call on
    answer = world.request("sweep", swept)
    if answer.value is not None and answer.value.failed and calm:
        world.checker.fail("sweeps_deal_with_all", f"{answer.value.failed} sessions failed")


def swept(services: PayServices) -> sweep.Counts:
    """Do what functions/expirer does."""
    until = services.clock.now() + SWEEP_TIME
    counts = sweep.run(services, until=until)
    counts.failed += expiries.run(services, until=until).failed
    return counts


def void(_: Answer | Session | None) -> None:
    """For callers that do not wait for the result."""
