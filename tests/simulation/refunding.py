"""The refunds of a world: what its shop's wallet is like, and the clerks who pay customers back.

A clerk waits until a session has ended with money, and refunds it: in whole or in parts, at times
two clerks at once. Each refund is approved in the shop's wallet, or declined, or left. Every draw
is apart from those of the sales, which are what they were until somebody refunds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from checkout.domain.refund.record import AmountMode, Refund, RefundStatus
from checkout.domain.session.record import Session
from checkout.flows.idempotency import Posted, answer
from checkout.flows.refund import alternative_wallet, approve, budget, hold, reconcile, request
from checkout.flows.refund.request import NewRefund
from checkout.flows.session import metadata
from checkout.ports import StaleRecord
from checkout.services import PayServices
from sandbox.wallets.interaction import NoInteraction, NoRedirect
from tests.simulation.boundaries import moment
from tests.simulation.faults import CALM
from tests.simulation.providers import CUSTOMER, OTHER_WALLET

if TYPE_CHECKING:
    from tests.simulation.sim_world import SimWorld

REFUNDING: Final = 0.75  # of the worlds
LABELED: Final = 0.1  # of the sessions of its storms
LABELED_REFUNDS: Final = 0.2  # of the sessions that are refunded
NOTED: Final = 0.1  # of the sessions of its storms
NOTED_OF_LATE: Final = 0.5  # of those of storms in which money comes late
LATE_MONEY: Final = 0.1  # of the storms that refund
CLAIMED: Final = 0.3  # of the refunds of its storms: by a link
COMES_BACK: Final = 20  # how often a browser does as a page that waits has told it
BY_HAND: Final = 0.2  # of the looks at a refund that waits for the budget: it is approved
MINUTE: Final = 60_000  # milliseconds
AGES: Final = 10**9
LATEST: Final = timedelta(minutes=6)  # that an effect comes after all faults
TRIES_AT_LAST: Final = 3  # of a clerk to have a refund paid, once nothing fails any more

# How the shop's wallet pays. It is the witness: it may be slow, but it does not lie.
PAYERS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    *[("shop pays", {})] * 5,
    ("shop pays late", {"delivers_after": timedelta(seconds=200)}),
    ("shop's money in flight", {"in_flight": timedelta(seconds=29.9)}),
    ("shop's money held", {"delivers_after": timedelta(minutes=6), "ends_with_quote": True}),
    ("shop pays half", {"delivered": Fraction(1, 2)}),
    (
        "shop stops midway",
        {"parts": 2, "parts_apart": timedelta(seconds=40), "receiver_away_after": 1},
    ),
    ("shop's receiver away", {"receiver_away_after": 0}),
    ("shop without money", {}),
    (
        "shop's quotes without expiry",
        {"tells_quote_expiry": False, "quote_life": timedelta(days=3650)},
    ),
    ("shop 4xx, pays", {"refuses_accepted": True, "delivers_after": timedelta(seconds=20)}),
    ("shop pays, never answers", {"dies_after_create": True}),
    ("shop dearer", {"dearer": Fraction(11, 10), "quote_life": timedelta(seconds=20)}),
    ("shop pays in two parts", {"parts": 2, "parts_apart": timedelta(seconds=90)}),
)


@dataclass(frozen=True, slots=True)
class Refunding:
    """How a world refunds. `payer` is how the shop's wallet pays, `rules` are its provider's.

    `lies`: customers' wallets show for ever that nothing has arrived. `gone`: their addresses end
    with the last sale. `frozen`: the shop's wallet says that less of a payment was sent than was.
    `budget`: minor units a month; 0: none is approved. `months`: some pass at the end.
    """

    payer: str
    behaviour: dict[str, Any]
    rules: dict[str, Any] = field(default_factory=dict)
    lies: bool = False
    gone: bool = False
    frozen: bool = False
    budget: int = 0
    months: bool = False

    @property
    def broke(self) -> bool:
        return self.payer == "shop without money"


def drawn(seed: int, profile: str, only: str | None = None) -> Refunding | None:
    """Return how the world of this seed refunds, or None if it does not.

    In storms, `only` is how the shop pays.
    """
    rng = random.Random(f"{seed} refunding")
    if rng.random() >= REFUNDING and only is None:
        return None
    if profile != "storm":
        return Refunding(*PAYERS[0], budget=(0, 20_000)[rng.randrange(2)])
    payer, behaviour = PAYERS[rng.randrange(len(PAYERS))]
    if only is not None:
        payer, behaviour = only, dict(PAYERS)[only]
    if "quote_life" not in behaviour and payer != "shop's money held":
        life = timedelta(seconds=(20, 60, 300, 300)[rng.randrange(4)])
        behaviour = {**behaviour, "quote_life": life}
    rules: dict[str, Any] = {}
    if rng.random() < 0.4:
        rules["token_life"] = timedelta(seconds=(15, 60, 300)[rng.randrange(3)])
    if rng.random() < 0.2:
        rules["own_payment_ids"] = True
    if rng.random() < 0.3:
        rules["limits_enforced"] = False
    if rng.random() < 0.2:
        rules["busy"] = 0.3
    lies, gone = rng.random() < 0.3, rng.random() < 0.06
    frozen = not lies and rng.random() < 0.5  # one of the two must tell
    limit = (0, 0, 0, 3_000, 10_000, 100_000)[rng.randrange(6)]
    months = limit > 0 and rng.random() < 0.04
    if months and rng.random() < 0.5:
        rules["token_kept"] = timedelta(days=1)
    return Refunding(
        payer,
        behaviour,
        rules,
        lies=lies,
        gone=gone,
        frozen=frozen,
        budget=limit,
        months=months,
    )


class Clerk:
    """One who refunds a session."""

    def __init__(self, world: SimWorld, session_id: str, name: str, *, again: bool = False) -> None:
        self.world = world
        self.session_id = session_id
        self.name = name
        self.rng = world.apart(name.rstrip("'"))
        self.again = again  # the second of two at once, who does the same
        self.done = False

    def run(self) -> None:
        if self._money_came():
            if not self.again:
                Labeler(self.world, self.session_id).begin_refunds()
            self._refund()
            self._see_to_the_late()
        self.done = True

    def _money_came(self) -> bool:
        """Wait for the session's end. Return whether it has received anything."""
        pause = 5_000
        while True:
            self.world.scheduler.sleep(pause)
            pause = min(pause + 5_000, 5 * MINUTE)
            session = self.world.checker.sessions[self.session_id]
            if session.terminal and session.check_at is None:
                return bool(session.amount_received)
            if session.incoming_payment is None and self.world.is_over(session):
                return False

    def _refund(self) -> None:
        world, rng = self.world, self.rng
        if world.profile == "storm" and not self.again and rng.random() < 0.15:
            return  # a shop that does not
        if world.profile == "storm" and not self.again and rng.random() < 0.25:
            world.begin_refunds(self.session_id, f"{self.name}'", again=True)
        received = world.checker.sessions[self.session_id].amount_received or 0
        for number, amount in enumerate(self._plan(received)):
            self._request(number, amount)
            if rng.random() < 0.5:
                world.scheduler.sleep(rng.randrange(20 * MINUTE if rng.random() < 0.1 else 5_000))
        self._see_to_all()

    def _see_to_all(self) -> None:
        """Have each refund of the session paid that nobody else cares for."""
        world, rng = self.world, self.rng
        answered = world.ask_surely("refunds", self._all)
        mine = [
            world.scheduler.spawn(f"approver {each.id[-4:]}", Approver(world, each.id, rng).run)
            for each in answered or ()
            if world.checker.refunds.taken(each.id)
        ]
        for each in mine:
            world.scheduler.wait(each, at_most=AGES)

    def refund_part(self, amount: int) -> None:
        """Refund this much, and wait until it has ended."""
        self._request(0, amount)
        self._see_to_all()

    def leave(self, amount: int) -> None:
        """Ask for a refund of this much that nobody approves: it ends after 30 days."""
        self._request(0, amount, by_budget=False)
        for each in self.world.ask_surely("refunds", self._all):
            self.world.checker.refunds.taken(each.id)  # nobody sees to it

    def _see_to_the_late(self) -> None:
        """Once nothing is on its way any more, see to what came after its request was given up."""
        world = self.world
        while world.calm_since is None or moment(world.scheduler.now) < world.calm_since + LATEST:
            world.scheduler.sleep(MINUTE)
        if world.checker.refunds.forgotten(self.session_id):
            self._see_to_all()

    def _plan(self, received: int) -> list[int | None]:
        """Return the amounts of the refunds to ask for; None is all that is left."""
        drawn = self.rng.random()
        if drawn < 0.5 or received < 4:
            return [None]
        if drawn < 0.6:
            return [received + 1, received]
        first = self.rng.randrange(1, received)
        second = self.rng.randrange(1, received)  # together perhaps more than is left
        return [first, second, None] if drawn < 0.8 else [first, None]

    def _all(self, services: PayServices) -> tuple[Refund, ...]:
        return request.of_session(services, self.world.key, self.session_id)

    def _request(self, number: int, amount: int | None, *, by_budget: bool = True) -> None:
        """Ask for a refund, again and again under one key, until there is an answer."""
        world, rng = self.world, self.rng
        at_cost = rng.random() < 0.2
        wallet = None
        made = set()
        for _ in range(6):
            asked = NewRefund(
                session=self.session_id,
                amount=amount,
                mode=AmountMode.AT_COST if at_cost else None,
                wallet=wallet,
                by_budget=rng.random() < 0.8 and by_budget and not world.beside.named,
            )
            got = world.request("refund", self._posted(f"{self.name} {number}", asked))
            if got.value is not None:
                made.add(got.value.body)
                if rng.random() < 0.8:
                    break
            elif got.error is not None and got.error.code == "parameter_missing":
                wallet = OTHER_WALLET  # the one who paid is not known
            elif got.error is not None and rng.random() < 0.7:
                break
            world.scheduler.sleep(rng.randrange(200, 5_000))
        if len(made) > 1:
            world.checker.fail("one_refund_per_key", f"{len(made)} answers")
        world.checker.refunds.asked += 1

    def _posted(self, key: str, asked: NewRefund) -> Callable[[PayServices], Any]:
        posted: Posted[Refund] = Posted(
            merchant="mer_1", key=key, fingerprint="same", render=lambda each: each.id, status=201
        )
        key_ = self.world.key
        return lambda s: answer(s, posted, lambda reserve: request.create(s, key_, asked, reserve))


class Noter(Clerk):
    """One who notes that a customer was paid back elsewhere, beside the clerks, in a few worlds.

    At times the note was a mistake, and is taken back.
    """

    def __init__(self, world: SimWorld, session_id: str) -> None:
        super().__init__(world, session_id, f"notes of {session_id}")

    @property
    def comes(self) -> bool:
        often = NOTED_OF_LATE if self.world.late_money else NOTED
        return self.world.profile == "storm" and self.rng.random() < often

    def run(self) -> None:
        if self._money_came():
            received = self.world.checker.sessions[self.session_id].amount_received or 0
            for number in range(1 + self.rng.randrange(3)):
                amount = None if self.rng.random() < 0.3 else self.rng.randrange(1, received + 2)
                self._note(number, amount)
        self.done = True

    def _note(self, number: int, amount: int | None) -> None:
        world, rng = self.world, self.rng
        asked = NewRefund(session=self.session_id, amount=amount, elsewhere="in cash")
        posted, noted = self._posted(f"{self.name} {number}", asked), None
        world.checker.refunds.asked += 1
        for _ in range(1 + rng.randrange(3)):  # under one key, so that it is one note
            noted = world.request("note", posted).value or noted
            world.scheduler.sleep(rng.randrange(20_000))
        if noted is not None and rng.random() < 0.4:
            takes_back = partial(self._take_back, refund_id=noted.body)
            for _ in range(1 + rng.randrange(2)):
                after = rng.randrange(2_000)
                world.scheduler.spawn("takes back", takes_back, after=after)

    def _take_back(self, *, refund_id: str) -> None:
        key = self.world.key
        self.world.request("take back", lambda s: request.cancel(s, key, refund_id))


class Labeler:
    """One who writes into a session's metadata at any time, in a few worlds.

    And into that of its refunds, before and after they have ended.
    """

    def __init__(self, world: SimWorld, session_id: str) -> None:
        self.world = world
        self.session_id = session_id
        self.rng = world.apart(f"labels of {session_id}")

    def begin(self) -> None:
        if self.world.profile == "storm" and self.rng.random() < LABELED:
            self.world.scheduler.spawn("labeler", self.run)

    def run(self) -> None:
        for number in range(8):
            self.world.scheduler.sleep(self.rng.randrange(20_000))
            self.world.request("label", partial(self._label, number=number))

    def write_once(self) -> None:
        self.world.request("label", partial(self._label, number=9))

    def begin_refunds(self) -> None:
        world = self.world
        if world.claims and world.changing is None and self.rng.random() < LABELED_REFUNDS:
            world.scheduler.spawn("labeler of refunds", self._label_refunds)

    def _label_refunds(self) -> None:
        for number in range(6):
            self.world.scheduler.sleep(self.rng.randrange(3 * MINUTE))
            for each in self.world.checker.refunds.of(self.session_id):
                label = partial(self._label_refund, refund_id=each, number=number)
                self.world.request("label refund", label)

    def _label_refund(self, services: PayServices, *, refund_id: str, number: int) -> Refund:
        def merged(known: Mapping[str, Any]) -> Mapping[str, Any]:
            return {**known, "label": str(number)}

        return request.update_metadata(services, self.world.key, refund_id, merged)

    def _label(self, services: PayServices, *, number: int) -> Session:
        def merged(known: Mapping[str, Any]) -> Mapping[str, Any]:
            return {**known, "label": str(number)}

        return metadata.update(services, self.world.key, self.session_id, merged)


class Approver:
    """One who has a refund paid: approves it in the shop's wallet, or gives it up."""

    def __init__(self, world: SimWorld, refund_id: str, rng: random.Random) -> None:
        self.world = world
        self.refund_id = refund_id
        self.rng = rng
        self.hand = world.apart(f"by hand {rng.getstate()[1][:2]}")
        self.tries_at_last = 0

    def run(self) -> None:
        world, rng = self.world, self.rng
        Claimer(world, self.refund_id).begin()
        while not self._stored.terminal:
            world.scheduler.sleep(rng.randrange(500, MINUTE))
            refund = self._stored
            if refund.terminal:
                break
            waits = refund.status is RefundStatus.NEEDS_APPROVAL
            given_up = waits and self.tries_at_last > TRIES_AT_LAST
            if given_up or rng.random() < 0.05:  # perhaps too late
                world.request("cancel", lambda s: request.cancel(s, world.key, self.refund_id))
            elif refund.approval_waits and self._by_budget(refund):
                self.tries_at_last += self._calm
                hasty = world.apart(f"hasty {self.refund_id}").random() < 0.1
                if refund.quote is None and not hasty:  # the button is beside a price
                    world.request("ask", lambda s: approve.prepare(s, world.key, self.refund_id))
                world.request("choose", lambda s: budget.choose(s, world.key, self.refund_id))
            elif refund.approval_waits or (waits and self._by_hand()):
                self.tries_at_last += self._calm
                self._approve()
            elif rng.random() < 0.3:
                world.request("look", self._look)
            else:
                world.scheduler.sleep(rng.randrange(MINUTE))

    @property
    def _stored(self) -> Refund:
        return self.world.checker.refunds.records[self.refund_id]

    @property
    def _calm(self) -> bool:
        return self.world.faults.rates is CALM

    def _by_hand(self) -> bool:
        """Return whether the clerk approves what waits for the budget."""
        return self.world.claims and self.hand.random() < BY_HAND

    def _by_budget(self, refund: Refund) -> bool:
        """Return whether the clerk has the budget pay it."""
        mandate = self.world.checker.budgets.mandate
        usable = mandate is not None and mandate.active
        waits = refund.status is RefundStatus.NEEDS_APPROVAL
        return usable and waits and self.rng.random() < 0.5

    def _look(self, services: PayServices) -> Any:
        try:
            return reconcile.step(services, request.get(services, self.world.key, self.refund_id))
        except StaleRecord as stale:
            return stale.current

    def _approve(self) -> None:
        world = self.world
        asked = world.request("ask", lambda s: approve.prepare(s, world.key, self.refund_id))
        if asked.value is None or asked.value.interact_url is None:
            return
        back = self._at_the_wallet(asked.value.interact_url)
        query = parse_qs(urlsplit(back or "").query)
        if "interact_ref" in query:
            self._come_back(query["interact_ref"][0], query["hash"][0])

    def _at_the_wallet(self, interact_url: str) -> str | None:
        """Approve, decline, dawdle or leave; the URL that the wallet sends the browser to."""
        world, rng = self.world, self.rng
        drawn = 1.0 if self._calm or world.profile != "storm" else rng.random()
        if drawn < 0.08:
            return None
        world.scheduler.sleep(rng.randrange(500, 11 * MINUTE if drawn < 0.16 else 15_000))
        decide = world.network.decline if 0.16 <= drawn < 0.25 else world.network.approve
        try:
            back = decide(interact_url)
        except (NoRedirect, NoInteraction):
            return None
        world.note(f"at the shop's wallet: {decide.__name__}")
        return back

    def _come_back(self, reference: str, presented: str) -> None:
        world, rng = self.world, self.rng
        world.scheduler.sleep(rng.randrange(50, 2_000))
        if rng.random() < 0.1:
            forged = self._answer(reference, presented[::-1]).value
            if forged is not None and forged.record.grant is not None:
                world.checker.fail("unverified_is_refused", "a forged callback was accepted")
        if rng.random() < 0.2:  # a second click, a reload
            world.scheduler.spawn(
                "again",
                lambda: void(self._answer(reference, presented)),
                after=(0, 50, 5_000, MINUTE)[rng.randrange(4)],
            )
        for _ in range(COMES_BACK):
            got = self._answer(reference, presented)
            if got.value is None or not got.value.wait_seconds:
                break
            world.scheduler.sleep(got.value.wait_seconds * 1000)

    def _answer(self, reference: str, presented: str) -> Any:
        world = self.world
        return world.request(
            "come back",
            lambda s: approve.finish(
                s, world.key, self.refund_id, interact_ref=reference, presented_hash=presented
            ),
        )


class Holder:
    """The operator, who holds all refunds now and then, as after a restore."""

    def __init__(self, world: SimWorld) -> None:
        self.world = world
        self.rng = world.apart("holder")

    def run(self) -> None:
        for _ in range(40):
            self.world.scheduler.sleep(self.rng.randrange(MINUTE))
            for refund_id in list(self.world.checker.refunds.records):
                self.world.request("hold", partial(self._hold, refund_id=refund_id))

    def _hold(self, services: PayServices, *, refund_id: str) -> None:
        with suppress(StaleRecord):  # it is being approved
            hold.hold(services, request.get(services, self.world.key, refund_id))


class Claimer:
    """A customer who is asked to name another wallet, by links that the shop sends."""

    def __init__(self, world: SimWorld, refund_id: str) -> None:
        self.world = world
        self.refund_id = refund_id
        self.rng = world.apart(f"claims of {world.checker.refunds.asked}")

    def begin(self) -> None:
        storm = self.world.profile == "storm"
        often = 1.0 if self.world.beside.named else CLAIMED
        if self.world.claims and storm and self.rng.random() < often:
            self.world.scheduler.spawn("claimer", self.run)

    def run(self) -> None:
        """Follow up to three links, at times by two tabs at once, at times one that is over."""
        world, rng = self.world, self.rng
        links: list[str] = []
        for _ in range(1 + rng.randrange(3)):
            world.scheduler.sleep(rng.randrange(20_000))
            made = world.request(
                "offer", lambda s: alternative_wallet.offer(s, world.key, self.refund_id)
            )
            if made.value is not None:
                links.append(made.value.link)
            if not links:
                continue
            link = links[-1] if rng.random() < 0.8 else links[0]
            for _ in range(1 + rng.randrange(2)):
                wallet = (OTHER_WALLET, OTHER_WALLET, CUSTOMER)[rng.randrange(3)]
                take = partial(self._take, link=link, wallet=wallet)
                after = rng.randrange(10_000)
                world.scheduler.spawn("claims", partial(self._follow, take), after=after)

    def _follow(self, take: Callable[[PayServices], Refund]) -> None:
        self.world.request("claim", take)

    def _take(self, services: PayServices, *, link: str, wallet: str) -> Refund:
        session_id, _, token = link.rsplit("/pay/", 1)[1].split("/")
        return alternative_wallet.take(services, session_id, token, wallet, client=None)


def void(_: object) -> None:
    """For callers that do not wait for the result."""
