from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from checkout.domain.session.record import Session, Status
from sandbox.wallets.provider import Rules
from tests.support.flows import CEDAR, World
from tests.support.hosted_pages import Answer, Customer, customer

pytestmark = pytest.mark.untraced


class Returning(NamedTuple):
    """A customer who has approved; `url` is where the wallet sends them."""

    session: Session
    url: str


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
    assert "Waiting for the money" in visitor.get(answer.location).page.main


def test_a_callback_that_does_not_verify_has_a_page_that_leads_back(visitor: Customer) -> None:
    """Nothing else happens: attacks/test_callbacks.py."""
    back = approved(visitor)
    [reference] = parse_qs(urlsplit(back.url).query)["interact_ref"]
    answer = callback(visitor, back.session, f"?interact_ref={reference}")
    assert answer.status == 400
    assert "This approval is not valid here" in answer.page.main
    assert answer.page.links == [f"../../{back.session.id}"]
    assert reference not in answer.body


def test_other_parameters_are_left_alone(visitor: Customer) -> None:
    back = approved(visitor)
    assert visitor.back_from(f"{back.url}&iss=x&iss=y&result=grant_rejected").location.endswith(
        "/success"
    )


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("grant_rejected", "you declined the payment"),
        ("invalid_interaction", "This approval is no longer valid"),
        ("grant_invalid", "We have not heard from your wallet"),
        ("<script>alert(1)</script>", "We have not heard from your wallet"),
        ("{0.__class__}", "We have not heard from your wallet"),
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
    assert "you declined the payment" in page.main
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
        assert "Questions? Contact Shop" in answer.page.main, "it is a page of the shop's"
        assert answer.page.one("p", **{"class": "total"})
        (again,) = [one for one in answer.page.all("a") if one.attributes.get("class") == "button"]
        assert again.attributes["href"] == "", "the same address again, written nowhere"
        assert visitor.world.session(back.session.id) == back.session
        visitor.world.clock.pass_time(20)
        assert visitor.back_from(back.url).location.endswith("/success")
        assert visitor.world.received() == 2000
