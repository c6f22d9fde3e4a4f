from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from checkout.domain.session import Session, Status
from sandbox.wallets.provider import Rules
from tests.hosted_pages import Answer, Customer, customer
from tests.product import CEDAR, World


@dataclass(frozen=True)
class Returning:
    """A customer who has approved; `url` is where the wallet sends them."""

    session: Session
    url: str

    @property
    def query(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.url).query).items()}


def approved(visitor: Customer, wallet: str = f"{CEDAR}/alice") -> Returning:
    session = visitor.submitted(wallet)
    return Returning(session, visitor.world.network.approve(str(session.interact_url)))


def callback(visitor: Customer, session: Session, query: str, **options: object) -> Answer:
    return visitor.open(session, f"/grant/callback{query}", **options)


def test_an_approval_pays_and_leads_to_the_confirmation(visitor: Customer) -> None:
    before = visitor.world.received()
    back = approved(visitor)
    answer = visitor.back_from(back.url)
    assert answer.location == f"/pay/{back.session.id}/success"
    assert answer.body == ""
    assert visitor.world.session(back.session.id).status is Status.COMPLETED
    assert visitor.world.received() - before == 2000


def test_a_callback_that_comes_again_shows_the_result_and_pays_nothing(visitor: Customer) -> None:
    before = visitor.world.received()
    back = approved(visitor)
    visitor.back_from(back.url)
    asked = len(visitor.world.transport.sent)
    for _ in range(3):
        assert visitor.back_from(back.url).location == f"/pay/{back.session.id}/success"
    assert len(visitor.world.transport.sent) == asked
    assert visitor.world.received() - before == 2000


def test_a_payment_that_is_not_there_yet_leads_to_a_page_that_waits(visitor: Customer) -> None:
    back = approved(visitor, f"{CEDAR}/late")
    answer = visitor.back_from(back.url)
    assert answer.location == f"/pay/{back.session.id}/success"
    assert "Confirming your payment" in visitor.get(answer.location).page.main


BAD = {
    "nothing": "",
    "no hash": "?interact_ref={ref}",
    "no reference": "?hash={hash}",
    "empty hash": "?interact_ref={ref}&hash=",
    "empty reference": "?interact_ref=&hash={hash}",
    "empty result": "?result=",
    "forged hash": "?interact_ref={ref}&hash=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "another reference": "?interact_ref=00000000-0000-0000-0000-000000000000&hash={hash}",
    "hash twice": "?interact_ref={ref}&hash={hash}&hash={hash}",
    "reference twice": "?interact_ref={ref}&interact_ref={ref}&hash={hash}",
    "result twice": "?result=grant_rejected&result=grant_rejected",
    "overlong hash": "?interact_ref={ref}&hash={hash}" + "A" * 8000,
    "overlong reference": "?interact_ref={ref}" + "a" * 8000 + "&hash={hash}",
    "line break": "?interact_ref={ref}%0a&hash={hash}",
    "nul": "?interact_ref={ref}%00&hash={hash}",
    "control character in the hash": "?interact_ref={ref}&hash={hash}%1b",
    "not utf-8": "?interact_ref={ref}%ff&hash={hash}",
    "other case": "?Interact_Ref={ref}&Hash={hash}",
    "not base64": "?interact_ref={ref}&hash=%F0%9F%92%B8",
}


@pytest.mark.parametrize("case", BAD)
def test_a_callback_that_does_not_verify_does_nothing_at_all(visitor: Customer, case: str) -> None:
    back = approved(visitor)
    visitor.world.clock.pass_time(10)
    query = BAD[case].format(
        ref=back.query["interact_ref"], hash=quote(back.query["hash"], safe="")
    )
    asked = len(visitor.world.transport.sent)
    answer = callback(visitor, back.session, query)
    assert answer.status == 400
    assert "This approval is not valid here" in answer.page.main
    assert answer.page.links == [f"../../{back.session.id}"]
    assert visitor.world.session(back.session.id) == back.session
    assert len(visitor.world.transport.sent) == asked
    assert back.query["interact_ref"] not in answer.body
    assert visitor.back_from(back.url).location.endswith("/success")  # the true one still pays


def test_a_foreign_sessions_callback_does_nothing(visitor: Customer) -> None:
    mine, foreign = approved(visitor), approved(visitor, f"{CEDAR}/carol")
    asked = len(visitor.world.transport.sent)
    answer = callback(visitor, mine.session, f"?{urlsplit(foreign.url).query}")
    assert answer.status == 400
    assert len(visitor.world.transport.sent) == asked
    for one in (mine, foreign):
        assert visitor.world.session(one.session.id) == one.session


def test_a_callback_of_an_earlier_try_does_nothing(visitor: Customer) -> None:
    first = approved(visitor)
    visitor.form(first.session, f"{CEDAR}/carol")
    second = visitor.world.session(first.session.id)
    assert visitor.back_from(first.url).status == 400
    assert visitor.world.session(first.session.id) == second


def test_other_parameters_are_left_alone(visitor: Customer) -> None:
    back = approved(visitor)
    assert visitor.back_from(f"{back.url}&iss=x&iss=y&result=grant_rejected").location.endswith(
        "/success"
    )


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("grant_rejected", "You declined the payment"),
        ("invalid_interaction", "This approval is no longer valid"),
        ("grant_invalid", "without approving the payment"),
        ("<script>alert(1)</script>", "without approving the payment"),
        ("{0.__class__}", "without approving the payment"),
    ],
)
def test_an_unsigned_result_is_told_and_changes_nothing(
    visitor: Customer, result: str, said: str
) -> None:
    session = visitor.world.submit(visitor.world.create())
    asked = len(visitor.world.transport.sent)
    query = f"?result={quote(result, safe='')}&message=%3Cb%3E"
    answer = callback(visitor, session, query)
    assert answer.status == 200
    page = answer.page
    assert said in page.main
    assert "You have not been charged." in page.main
    over = result in ("grant_rejected", "invalid_interaction")
    assert (session.interact_url in page.links) is not over
    assert session.customer is not None
    hidden = page.one("input", type="hidden", name="wallet_address")
    assert hidden.attributes["value"] == session.customer.id
    assert page.one("input", id="wallet_address")
    assert visitor.world.session(session.id) == session
    assert len(visitor.world.transport.sent) == asked


def test_a_decline_of_an_open_session_is_told_on_its_page(visitor: Customer) -> None:
    session = visitor.world.create()
    page = callback(visitor, session, "?result=grant_rejected").page
    assert "You declined the payment" in page.main
    assert page.one("input", name="wallet_address")


def test_an_unsigned_result_for_a_paid_session_shows_that_it_is_paid(visitor: Customer) -> None:
    session = visitor.world.pay(visitor.world.create())
    answer = callback(visitor, session, "?result=grant_rejected")
    assert answer.location == f"/pay/{session.id}/success"


IDLE = [
    ("HEAD", {}, 200),
    ("GET", {"sec-purpose": "prefetch"}, 204),
    ("GET", {"sec-purpose": "prefetch;prerender"}, 204),
    ("GET", {"purpose": "prefetch"}, 204),
    ("GET", {"x-moz": "prefetch"}, 204),
    ("GET", {"x-purpose": "preview"}, 204),
]


@pytest.mark.parametrize(("method", "headers", "status"), IDLE)
def test_head_and_what_is_fetched_ahead_of_time_do_nothing(
    visitor: Customer, method: str, headers: dict[str, str], status: int
) -> None:
    back = approved(visitor)
    calls = len(visitor.world.dynamo.calls)
    asked = len(visitor.world.transport.sent)
    parts = urlsplit(back.url)
    for path in (
        f"{parts.path}?{parts.query}",
        f"/pay/{back.session.id}",
        f"/pay/{back.session.id}/status",
        f"/pay/{back.session.id}/success",
    ):
        answer = visitor.ask(method, path, headers=headers)
        assert (answer.status, answer.body) == (status, "")
        assert answer.headers["cache-control"] == "no-store"
    assert len(visitor.world.dynamo.calls) == calls
    assert len(visitor.world.transport.sent) == asked
    assert visitor.world.session(back.session.id) == back.session


def test_a_wallet_that_wants_time_is_given_it_by_the_browser() -> None:
    with customer(World(rules=Rules(wait=20))) as visitor:
        back = approved(visitor)
        answer = visitor.back_at_once(back.url)
        assert answer.status == 200
        assert answer.headers["refresh"] == "20"
        assert "Your wallet needs a moment" in answer.page.main
        assert answer.page.links == [""]  # the same address again, written nowhere
        assert visitor.world.session(back.session.id) == back.session
        visitor.world.clock.pass_time(20)
        assert visitor.back_from(back.url).location.endswith("/success")
        assert visitor.world.received() == 2000
