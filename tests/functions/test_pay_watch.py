"""The line of a page without script, and the course of a payment on its page."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from checkout.domain.ground.limits import POLL
from checkout.domain.session.record import Session, Status
from checkout.flows.session import close
from checkout.ports import CompletionPolicy
from tests.support import services
from tests.support.flows import CEDAR, PREFIX, World
from tests.support.hosted_pages import Answer, Customer, Page, customer

FRAME = re.compile(r'<noscript><iframe class="watch" src="([^"]+)"')


def line_of(visitor: Customer, session: Session) -> str:
    """Return the address of the line in the session's page, below the session's own."""
    [found] = FRAME.findall(visitor.open(session).body)
    address: str = found
    return address.replace("&amp;", "&").partition(f"/pay/{session.id}")[2]


def said(answer: Answer) -> str:
    assert answer.status == 200
    return " ".join("".join(Page(answer.body).one("body").text).split())


def test_a_line_says_nothing_new_until_something_is_and_comes_again_each_time(
    visitor: Customer,
) -> None:
    session = visitor.world.submit(visitor.world.create())
    line = line_of(visitor, session)
    before = visitor.open(session, line)
    assert said(before) == "This page is up to date."
    close.cancel(visitor.world.services, visitor.world.key(), session.id)
    after = visitor.open(session, line)
    assert said(after) == "This checkout was canceled Show"
    [link] = Page(after.body).all("a")
    assert (link.attributes["href"], link.attributes["target"]) == (f"/pay/{session.id}", "_top")
    for answer in (before, after):
        [refresh] = Page(answer.body).all("meta", **{"http-equiv": "refresh"})
        assert refresh.attributes["content"] == "3"


def test_a_line_says_what_another_device_has_paid_and_leads_to_its_confirmation(
    visitor: Customer,
) -> None:
    session = visitor.world.submit(visitor.world.create())
    line = line_of(visitor, session)
    visitor.world.finish(session, visitor.world.approve(session))
    told = visitor.open(session, line)
    assert said(told).startswith("Paid. Thank you!")
    assert Page(told.body).links == [f"/pay/{session.id}/success"]


def test_only_our_own_pages_frame_the_line_and_nothing_in_it_acts(visitor: Customer) -> None:
    session = visitor.world.create()
    for path, framed in (("", "'none'"), (line_of(visitor, session), "'self'")):
        policy = visitor.open(session, path).headers["content-security-policy"]
        assert f"frame-ancestors {framed};" in policy
    assert "script-src" not in policy
    assert "form-action 'none'" in policy
    assert "default-src 'none'" in policy


def test_what_a_page_saw_is_not_repeated(visitor: Customer) -> None:
    session = visitor.world.create()
    answer = visitor.open(session, "/watch?saw=%3Cscript%3Eevil(1)%3C/script%3E")
    assert "evil" not in answer.body
    assert said(answer).startswith("This checkout has changed.")


def test_pages_that_ask_too_often_leave_the_forms_what_they_need() -> None:
    world = World()
    limits = services.limits(world.core.clock, world.dynamo, PREFIX, 30)
    world.services = replace(world.services, limits=limits)
    with customer(world) as visitor:
        session = world.create()
        line = line_of(visitor, session)
        answers = [visitor.open(session, "/status").status for _ in range(POLL.burst + 1)]
        assert answers == [200] * POLL.burst + [429]
        crowded = visitor.open(session, line)
        assert crowded.status == 429
        assert "".join(Page(crowded.body).one("body").text).strip() == ""
        assert "frame-ancestors 'self'" in crowded.headers["content-security-policy"]
        [refresh] = Page(crowded.body).all("meta", **{"http-equiv": "refresh"})
        assert int(refresh.attributes["content"]) >= 1
        assert visitor.open(session).status == 200


@pytest.mark.parametrize("stage", ["waiting", "confirmed", "ended"])
def test_pages_that_reload_by_themselves_or_are_over_have_no_line(
    visitor: Customer, stage: str
) -> None:
    world = visitor.world
    session = world.create()
    if stage == "ended":
        session = close.cancel(world.services, world.key(), session.id)
    else:
        wallet = "never-credits" if stage == "waiting" else "alice"
        session = world.pay(session, f"{CEDAR}/{wallet}")
    assert FRAME.findall(visitor.open(session, "/success").body) == []


def course(visitor: Customer, session: Session) -> list[str]:
    page = visitor.open(session, "/success").page
    inside = [range(one.begin, one.end or 0) for one in page.all("ol", **{"class": "course"})]
    steps = [one for one in page.all("li") if any(one.begin in each for each in inside)]
    return [" ".join("".join(one.text).split()) for one in steps]


def test_a_page_that_waits_lists_what_has_happened_and_what_comes(visitor: Customer) -> None:
    world = visitor.world
    session = world.pay(world.create(), f"{CEDAR}/never-credits")
    assert session.status is Status.PROCESSING
    assert course(visitor, session) == [
        "You approved €18.54 at localhost 12:00:05 UTC",
        "localhost has accepted the payment 12:00:05 UTC",
        "On its way to Shop",
        "Paid",
    ]


def test_a_page_that_makes_certain_lists_that_too(visitor: Customer) -> None:
    world = visitor.world
    session = world.pay(world.create(), f"{CEDAR}/no-funds")
    assert session.closing_at is not None
    assert course(visitor, session) == [
        "You approved €18.54 at localhost 12:00:05 UTC",
        "Making certain that no money arrives late",
        "Pay again, with this wallet or another",
    ]


def test_money_of_a_stranger_has_no_course_of_the_customer(visitor: Customer) -> None:
    world = visitor.world
    session = world.submit(world.create())
    world.pay_from_outside(session, 700)
    world.clock.pass_time(timedelta(minutes=2).total_seconds())
    assert course(visitor, session) == []


def test_a_second_try_lists_its_own_times() -> None:
    with customer(World(policy=CompletionPolicy.RECEIVED)) as visitor:
        world = visitor.world
        first = world.settle(world.pay(world.create(), f"{CEDAR}/no-funds"))
        assert first.status is Status.OPEN
        second = world.pay(first, f"{CEDAR}/never-credits")
        approved, accepted, *_ = course(visitor, second)
        assert "12:00:05" not in approved
        assert "12:00:05" not in accepted
        assert len(course(visitor, second)) == 4
