"""Hostile wallets: every member of every answer of the customer's provider is changed, and every
answer is replaced by another status or by bytes that are none.

Against all its answers, a session completes only with its money, at most one payment is sent, no
other record changes, and no token goes to another server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, Final, cast

import pytest

from checkout.domain.session.record import Session, Status
from open_payments.errors import OutcomeUnknown
from open_payments.transports import Request, Response
from tests.attacks.hostile import hostile
from tests.support.attack_counts import Attack
from tests.support.doors import Doors, Visitor
from tests.support.flows import CEDAR, HARBOR, World
from tests.support.merchant_api import a_body
from tests.support.partitions import few_partitions
from tests.support.sample import sample

CUSTOMERS: Final = ("https://localhost:4101", "https://localhost:4102")  # Cedar Bank's servers
PAGES: Final = "http://localhost:4100/interact/"
KNOWN: Final = (*CUSTOMERS, "https://localhost:4201", "https://localhost:4202")
EVIL: Final = "https://evil.example/x"
GONE: Final = object()  # the member is left out
VALUES: Final[dict[str, Any]] = {
    "missing": GONE,
    "null": None,
    "empty": "",
    "zero": 0,
    "minus one": -1,
    "a fraction": 0.5,
    "true": True,
    "false": False,
    "a list": [],
    "an object": {},
    "a word": "x",
    "one": "1",
    "less than nothing": "-1",
    "beyond 64 bits": str(2**64),
    "digits of Arabic": "٣",
    "markup": "<script>alert(1)</script>",
    "a line break": "x\r\nSet-Cookie: a=b",
    "half a surrogate": "\ud800",
    "another server": EVIL,
    "no TLS": "http://localhost:4101/x",
    "inside": "https://169.254.169.254/latest",
    "long": "x" * 70_000,
    "long ago": "1970-01-01T00:00:00Z",
    "much later": "9999-12-31T23:59:59Z",
}
BODIES: Final[dict[str, bytes]] = {
    "nothing": b"",
    "null": b"null",
    "a list": b"[]",
    "an empty object": b"{}",
    "a page": b"<html><body>Welcome</body></html>",
    "no UTF-8": b'{"id":"\xff"}',
    "NaN": b'{"id": NaN}',
    "cut short": b'{"id": "https://localhost:4101/x", "debitAmount": {"val',
    "nested": b'{"id":' * 5_000 + b"1" + b"}" * 5_000,
    "another's error": b'{"error":{"code":"invalid_client","description":"<b>x"}}',
    "a megabyte": b'{"id":"' + b"x" * 1_000_000 + b'"}',
}
STATUSES: Final = [200, 201, 202, 204, 206, 301, 302, 307, 400, 401, 402, 403, 404, 405, 409, 410,
                   418, 422, 429, 451, 500, 502, 503, 504, 100, 999]  # fmt: skip
Change = Callable[[Request, Response], Response]


class Mallory:
    """The network, with the `step`-th answer of the customer's provider changed, from then on only.

    `told` has the answers as they were given by the honest provider. `named` are the servers that
    a changed wallet document names as the wallet's own, where they are on that server of Mallory's.
    """

    named: tuple[str, ...] = ()

    def __init__(self, network: Any, step: int, change: Change) -> None:
        self.network, self.step, self.change = network, step, change
        self.reported: list[Response] = []
        self.sent: list[Request] = []

    def handle(self, request: Request) -> Response:
        self.sent.append(request)
        if not request.url.startswith(KNOWN):
            return Response(200, {}, b"{}")
        response: Response = self.network.handle(request)
        if request.url.startswith(CUSTOMERS):
            self.reported.append(response)
            if len(self.reported) - 1 == self.step:
                changed = self.change(request, response)
                self.named = servers_of(changed)
                return changed
        return response

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)


def servers_of(response: Response) -> tuple[str, ...]:
    """Return the servers of Mallory's that a wallet document names."""
    try:
        document = json.loads(response.body)
        named = (document["authServer"], document["resourceServer"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return ()
    return tuple(each for each in named if each == EVIL)


def members(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the path of every member of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, item in items:
        yield (*path, name)
        if isinstance(item, dict | list):
            yield from members(item, (*path, name))


def with_member(path: tuple[Any, ...], value: Any) -> Change:
    def change(request: Request, response: Response) -> Response:
        whole = json.loads(response.body or b"{}")
        inner = whole
        try:
            for name in path[:-1]:
                inner = inner[name]
            if value is GONE:
                del inner[path[-1]]
            else:
                inner[path[-1]] = value
        except LookupError:  # a kept token made it another answer than that of `honest`
            return response
        return replace(response, body=json.dumps(whole).encode())

    return change


def with_body(body: bytes) -> Change:
    return lambda request, response: replace(response, body=body)


def with_status(status: int, body: bytes | None = None) -> Change:
    def change(request: Request, response: Response) -> Response:
        headers = {**response.headers, "location": EVIL, "retry-after": "99999999"}
        return Response(status, headers, response.body if body is None else body)

    return change


def lost(request: Request, response: Response) -> Response:
    raise OutcomeUnknown("the connection was cut")


@cache
def honest() -> tuple[Response, ...]:
    """Return what the customer's provider answers in a purchase, in order."""
    doors = Doors()
    mallory = purchase(doors, -1, with_body(b""))
    assert mallory.reported[-1].status in (200, 201, 204)
    return tuple(mallory.reported)


def purchase(doors: Doors, step: int, change: Change) -> Mallory:
    """Go through a purchase in which one answer is changed, to its end or until a day is over, and
    check what came of it.
    """
    world, browser = doors.world, Visitor()
    network = world.transport.network
    bystander, session = an_other(doors), doors.create()
    mallory = Mallory(network, step, change)
    world.transport.network = cast(Any, mallory)
    world.transport.sent.clear()
    try:
        answer = doors.submit(session, f"{CEDAR}/alice", browser)
        assert answer.status in (303, 424), answer.status
        approve(doors, session, browser)
        for _ in range(2):
            doors.pay("GET", f"/{session.id}/status", visitor=browser)
            world.sweep()
        world.clock.pass_time(3600)
        world.sweep()
    finally:
        world.transport.network = network
    ended = world.session(session.id)
    money = world.incoming(ended).received.value if ended.incoming_payment else 0
    assert ended.status is not Status.COMPLETED or money >= 2000, (ended.status, money)
    assert money <= 2000
    assert world.transport.count("POST", "/outgoing-payments") <= 1
    assert as_given(world.session(bystander.id)) == as_given(bystander)
    tokens = {token_of(request) for request in mallory.sent if request.url.startswith(KNOWN)}
    for request in mallory.sent:
        if request.url.startswith(KNOWN):
            continue
        names = {name.lower() for name in request.headers}
        if request.url.startswith(mallory.named):  # a wallet says which servers are its own
            assert token_of(request) is None or token_of(request) not in tokens
        else:
            assert not {"authorization", "signature"} & names
    return mallory


def as_given(session: Session) -> Session:
    """Return the session without its place in the index `due`, which the sweep changes once."""
    return replace(session, look_at=None, version=0, writer="", updated_at=session.created_at)


def token_of(request: Request) -> str | None:
    """Return the access token of a request to a resource server."""
    return {name.lower(): value for name, value in request.headers.items()}.get("authorization")


def an_other(doors: Doors) -> Session:
    """Return the session of a customer with an honest wallet, of this world."""
    found = doors.call("GET", key=doors.other_key).json["data"]
    if not found:
        found = [doors.call("POST", "", a_body(), key=doors.other_key).json]
        doors.submit(doors.world.session(found[0]["id"]), f"{HARBOR}/bob")
    return doors.world.session(found[0]["id"])


def approve(doors: Doors, session: Session, browser: Visitor) -> None:
    """The customer approves where the page leads them, if that is at their wallet."""
    found = doors.world.session(session.id)
    page = doors.pay("GET", f"/{session.id}", visitor=browser)
    assert "<script>alert" not in page.body
    for link in page.page.links:
        assert not link.startswith(("javascript:", "data:", "http://localhost:4101"))
    if found.interact_url is None or not found.interact_url.startswith(PAGES):
        return
    back = doors.world.network.approve(found.interact_url)
    assert doors.follow(back, browser).status in (200, 303, 400)


def cases() -> dict[str, tuple[int, Change]]:
    """Return every change of every answer of an honest purchase."""
    found: dict[str, tuple[int, Change]] = {}
    for step, answer in enumerate(honest()):
        what = f"answer {step}"
        for status in STATUSES:
            found[f"{what} with status {status}"] = (step, with_status(status))
            found[f"{what} with status {status} and nothing"] = (step, with_status(status, b""))
        found[f"{what} lost"] = (step, lost)
        for name, body in BODIES.items():
            found[f"{what} of {name}"] = (step, with_body(body))
        if answer.body.startswith(b"{"):
            for path in members(json.loads(answer.body)):
                for name, value in VALUES.items():
                    place = ".".join(map(str, path))
                    found[f"{what}, {place}: {name}"] = (step, with_member(path, value))
    return found


def try_each(attack: Attack, every: int, first: int = 0) -> None:
    """Try every `every`-th case, twenty in one world: what a wallet leaves behind meets others."""
    doors: list[Doors] = []

    def attempt(case: tuple[int, Change]) -> None:
        if attack.counts["cases"] % 20 == 1:
            doors[:] = [Doors()]
            doors[0].on_status = attack.answered
        purchase(doors[0], *case)

    chosen = dict(list(cases().items())[first::every])
    with few_partitions():
        attack.each(chosen, attempt)


def test_no_purchase_completes_without_its_money(attack: Attack) -> None:
    """A sample, of another member and another value each; all are in the test below."""
    try_each(attack, 61)


@pytest.mark.endurance
@pytest.mark.parametrize("part", sample(range(4), of=4))
def test_no_purchase_completes_without_its_money_whatever_is_changed(
    attack: Attack, part: int
) -> None:
    try_each(attack, 4, part)


def test_a_wallet_that_quotes_a_price_of_nothing_is_asked_for_no_more_than_that(
    world: World,
) -> None:
    strangers = hostile(world)
    strangers.changes = [("/quotes", lambda quote: quote.get("debitAmount", {}).update(value="0"))]
    session = world.create()
    world.submit(session)
    asked = [json.loads(request.body or b"{}") for request in strangers.to(CUSTOMERS[1])]
    limits = [
        access["limits"]["debitAmount"]
        for body in asked
        for access in body.get("access_token", {}).get("access", ())
        if access["type"] == "outgoing-payment"
    ]
    assert limits == [{"value": "0", "assetCode": "EUR", "assetScale": 2}]


# --- payments that were only claimed


class Liar:
    """The network, whose customer's provider makes no payment and says that it made one."""

    def __init__(self, network: Any, changes: dict[str, Any], status: int) -> None:
        self.network, self.changes, self.status = network, changes, status
        self.quote: dict[str, Any] = {}

    def handle(self, request: Request) -> Response:
        if "/outgoing-payments" in request.url:
            return self.claim(request)
        response: Response = self.network.handle(request)
        if request.url.endswith("/quotes"):
            self.quote = json.loads(response.body)
        return response

    def claim(self, request: Request) -> Response:
        copied = ("walletAddress", "receiver", "receiveAmount", "debitAmount", "createdAt")
        claimed = {name: self.quote[name] for name in copied} | {
            "id": self.quote["id"].replace("/quotes/", "/outgoing-payments/"),
            "quoteId": self.quote["id"],
            "sentAmount": self.quote["debitAmount"],
            "failed": False,
        }
        claimed |= self.changes
        answer: Any = claimed
        if request.method == "GET" and "?" in request.url:
            answer = {"pagination": {"hasNextPage": False}, "result": [claimed]}
        status = self.status if request.method == "POST" else 200
        return Response(status, {}, json.dumps(answer).encode())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)


MUCH: Final = {"value": "99999999", "assetCode": "EUR", "assetScale": 2}
CLAIMS: Final[dict[str, dict[str, Any]]] = {
    "paid": {},
    "paid more": {"sentAmount": MUCH, "debitAmount": MUCH},
    "nothing sent yet": {"sentAmount": MUCH | {"value": "0"}},
    "failed": {"failed": True},
    "received": {"receivedAmount": {"value": "2000", "assetCode": "USD", "assetScale": 2}},
    "completed": {"completed": True, "state": "COMPLETED", "status": "completed"},
    "to another receiver": {"receiver": EVIL},
    "of another quote": {"quoteId": EVIL},
    "another payment": {"id": f"{CUSTOMERS[0]}/outgoing-payments/1"},
}


@pytest.mark.parametrize("status", [201, 400])
def test_a_payment_that_was_only_claimed_completes_nothing(attack: Attack, status: int) -> None:
    def attempt(changes: dict[str, Any]) -> None:
        doors, browser = Doors(), Visitor()
        doors.on_status = attack.answered
        world, session = doors.world, doors.create()
        doors.world.listen()
        network = world.transport.network
        world.transport.network = cast(Any, Liar(network, changes, status))
        assert doors.submit(session, visitor=browser).status == 303
        approve(doors, session, browser)
        for seconds in (60, 3600, 86_400, 3600):
            world.clock.pass_time(seconds)
            doors.pay("GET", f"/{session.id}/status", visitor=browser)
            world.sweep()
        found = world.session(session.id)
        assert found.status is not Status.COMPLETED
        assert world.received() == 0
        assert world.transport.count("POST", "/outgoing-payments") <= 1
        assert "checkout.session.completed" not in {event["type"] for event in world.events()}

    attack.each(CLAIMS, attempt)
