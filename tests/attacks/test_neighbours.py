"""One client, one wallet or one wrong key is nobody else's trouble.

Clients are limited by their address; a slow wallet holds a process for a bounded time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from fastapi.routing import APIRoute
from starlette.requests import Request as WebRequest

import pay.app
from checkout.adapters.queue import SqsTaskQueue
from checkout.client_address import client_of
from checkout.domain.ground.limits import POLL, REQUEST, RETURN, SUBMISSION
from checkout.domain.payment.in_flight import Problem
from checkout.domain.session.record import Session, Status
from checkout.flows.payment.cleanup import TryLater, clean_up
from checkout.flows.session import close
from expirer.cleanup import queued
from open_payments.errors import OutcomeUnknown
from open_payments.transports import Request, Response
from pay import links, routes, till
from tests.support import asgi, services
from tests.support.basics import HandClock
from tests.support.dashboard_pages import Browser
from tests.support.dashboard_pages import dashboard as a_dashboard
from tests.support.deployment import Sqs, sqs_event
from tests.support.doors import Doors
from tests.support.flows import CEDAR, PREFIX, CountingTransport, World, on
from tests.support.hosted_pages import Answer, Customer, customer
from tests.support.merchant_api import gateway_event
from tests.support.protected import KNOWN_FOR

HERE, THERE = "203.0.113.7", "198.51.100.9"
EDGE, SECRET = "192.0.2.44", "s3cret-of-the-edge"
A_MINUTE, A_WINDOW = 18, 3


@contextmanager
def limited(a_minute: int = A_MINUTE, *, edge_secret: str = "") -> Iterator[World]:
    """Yield a world whose clients have limits, behind the pages of one process."""
    world = World()
    world.services = replace(world.services, edge_secret=edge_secret)
    another_process(world, a_minute)
    world.pay(world.create())  # it knows this wallet provider
    with customer(world):
        pay.app.app.dependency_overrides[pay.dependencies.services] = lambda: world.services
        yield world


def another_process(world: World, a_minute: int = A_MINUTE) -> None:
    """Have a process without memory serve from here on."""
    limits = services.limits(world.core.clock, world.dynamo, PREFIX, a_minute)
    world.services = replace(world.services, limits=limits)


def at(world: World, address: str, **headers: str) -> Customer:
    """Return a browser at a network address."""
    client = asgi.Client(
        pay.app.app, base_url="https://pay.example", address=address, headers=headers
    )
    return Customer(world, client)


def submit(browser: Customer) -> Answer:
    body = {"wallet_address": f"{CEDAR}/alice"}
    return browser.submit_json(browser.world.create(), body)


def use_up(browser: Customer) -> None:
    """Submit as often as a client may at once."""
    for _ in range(SUBMISSION.burst + A_WINDOW):
        assert submit(browser).status == 200


# --- the limit by merchant


LISTS_A_WINDOW = 50
LISTS = (("api", "/api/checkout/sessions"), ("v1", "/v1/checkout/sessions"), ("v1", "/v1/events"))


def another_api(doors: Doors) -> None:
    """Have a process without memory serve the API from here on."""
    core = doors.world.core
    limits = services.limits(core.clock, doors.world.dynamo, PREFIX, A_MINUTE)
    doors.world.core = replace(core, limits=limits)


def lists(doors: Doors, function: str, path: str, key: str) -> Answer:
    headers = {"Host": "pay.example", "Authorization": f"Bearer {key}"}
    return doors.send(function, gateway_event("GET", path, "", headers, None))


@pytest.mark.parametrize(("function", "path"), LISTS)
def test_a_merchant_with_many_lists_is_refused_and_no_other(function: str, path: str) -> None:
    """The first of each process is not counted."""
    doors = Doors()
    another_api(doors)
    got = [lists(doors, function, path, doors.key).status for _ in range(LISTS_A_WINDOW + 2)]
    assert got == [200] * (LISTS_A_WINDOW + 1) + [429]
    refused = lists(doors, function, path, doors.key)
    assert 0 < int(refused.headers["retry-after"]) <= 10
    assert "merchant" in refused.json["error"]["message"]
    assert lists(doors, function, path, doors.other_key).status == 200
    assert doors.create().status is Status.OPEN, "only lists are refused"
    another_api(doors)
    got = [lists(doors, function, path, doors.key).status for _ in range(2)]
    assert got == [200, 429]
    doors.world.clock.pass_time(10)
    assert lists(doors, function, path, doors.key).status == 200


# --- the limits by client


def test_a_client_with_many_submissions_is_refused_and_nothing_is_done() -> None:
    with limited() as world:
        here = at(world, HERE)
        use_up(here)
        session = world.create()
        world.forget()
        answer = here.submit_json(session, {"wallet_address": f"{CEDAR}/alice"})
        assert answer.status == 429
        assert answer.code == "rate_limited"
        assert answer.json["error"]["type"] == "rate_limit_error"
        assert 0 < int(answer.headers["retry-after"]) <= 10
        assert world.transport.sent == []
        assert world.session(session.id) == session
        page = here.form(session)
        assert (page.status, page.headers["retry-after"]) == (429, answer.headers["retry-after"])
        assert "Too many attempts" in page.page.main
        world.clock.pass_time(10)
        assert submit(here).status == 200


def test_another_client_pays_meanwhile() -> None:
    with limited() as world:
        world.clock.pass_time(KNOWN_FOR.total_seconds())  # each of them is counted
        answers = [submit(at(world, HERE)).status for _ in range(A_WINDOW + 1)]
        assert answers == [200] * A_WINDOW + [429]
        there = at(world, THERE)
        session = there.submitted()
        back = there.back_from(world.network.approve(str(session.interact_url)))
        assert back.location == f"/pay/{session.id}/success"
        assert world.session(session.id).status is Status.COMPLETED


def test_another_process_refuses_as_well() -> None:
    with limited() as world:
        use_up(at(world, HERE))
        another_process(world)
        assert submit(at(world, HERE)).status == 429
        assert submit(at(world, THERE)).status == 200


def test_a_provider_that_is_not_known_or_not_any_more_is_counted_from_the_first_time() -> None:
    with limited() as world:
        world.clock.pass_time(KNOWN_FOR.total_seconds())
        for number in range(A_WINDOW):
            assert submit(at(world, HERE)).status == 200
            assert [row["count"]["N"] for row in counters(world)] == [str(number + 1)]
        assert submit(at(world, HERE)).status == 429


def test_a_client_gains_nothing_from_a_provider_that_it_made_known_itself() -> None:
    assert min(SUBMISSION.every, RETURN.every) > KNOWN_FOR
    with limited() as world:
        another_process(world)
        here = at(world, HERE)
        session = here.submitted()
        back = here.back_from(world.network.approve(str(session.interact_url)))
        assert back.location == f"/pay/{session.id}/success"
        world.clock.pass_time(10)
        answers = [submit(here).status for _ in range(A_WINDOW + 1)]
        assert answers == [200] * A_WINDOW + [429]


def test_an_ordinary_purchase_at_a_known_provider_costs_no_counter() -> None:
    with limited() as world:
        here = at(world, HERE)
        session = world.create()
        world.forget()
        assert here.form(session).status == 303
        assert world.aws_calls() == ["get_item", *["update_item"] * 4, "batch_write_item"]
        back = world.network.approve(str(world.session(session.id).interact_url))
        world.clock.pass_time(5)
        assert here.back_at_once(back).location == f"/pay/{session.id}/success"
        assert counters(world) == []


def test_a_flood_of_submissions_costs_one_write_a_window() -> None:
    with limited() as world:
        here = at(world, HERE)
        use_up(here)
        many = [world.create() for _ in range(20)]
        world.forget()
        for session in many:
            body = {"wallet_address": f"{CEDAR}/alice"}
            assert here.submit_json(session, body).status == 429
        assert world.dynamo.calls["update_item"] == 1


def test_neither_counter_nor_row_names_an_address() -> None:
    with limited() as world:
        use_up(at(world, HERE))
        rows = counters(world)
        assert rows
        assert HERE not in str(rows)
        assert all("ttl" in row for row in rows)


def counters(world: World) -> list[dict[str, Any]]:
    rows = world.dynamo.rows(f"{PREFIX}-idempotency_keys")
    return [row for row in rows if row["key"]["S"].startswith("attempts#")]


def approved(world: World, count: int) -> list[tuple[Session, str]]:
    """Return sessions whose customers have just approved, and where their wallets lead back."""
    found = []
    for _ in range(count):
        session = world.submit(world.create())
        found.append((session, world.network.approve(str(session.interact_url))))
    world.clock.pass_time(5)
    return found


def test_a_return_that_is_refused_is_not_lost() -> None:
    with limited() as world:
        *others, (session, back) = approved(world, RETURN.burst + A_WINDOW + 1)
        here = at(world, HERE)
        for other, link in others:
            assert here.ask("POST", path_of(link)).location == f"/pay/{other.id}/success"
        world.forget()
        answer = here.ask("POST", path_of(back))
        assert answer.status == 429
        assert world.transport.sent == []
        assert world.session(session.id) == session
        wait = int(answer.headers["retry-after"])
        assert 0 < wait <= 10
        world.clock.pass_time(wait)
        done = here.ask("POST", path_of(back))
        assert done.location == f"/pay/{session.id}/success"
        assert world.session(session.id).status is Status.COMPLETED


def test_the_page_of_a_refused_return_comes_again_by_itself() -> None:
    with limited() as world:
        here = at(world, HERE)
        session = here.submitted()
        back = world.network.approve(str(session.interact_url))
        world.clock.pass_time(5)
        for other, link in approved(world, RETURN.burst + A_WINDOW):
            assert here.ask("POST", path_of(link)).location == f"/pay/{other.id}/success"
        answer = here.back_at_once(back)
        assert answer.status == 429
        assert answer.headers["refresh"] == answer.headers["retry-after"]
        assert "Too many requests" in answer.page.main
        assert here.back_from(back).location == f"/pay/{session.id}/success"


def path_of(url: str) -> str:
    return url.partition("//localhost:4000")[2]


def test_pages_of_payments_in_doubt_leave_the_checks_to_the_sweep_beyond_the_limit() -> None:
    with limited() as world:
        doubtful = [world.in_doubt() for _ in range(A_WINDOW + 2)]
        world.clock.pass_time(30)
        world.forget()
        here = at(world, HERE)
        statuses = [here.open(session, "/status").json["status"] for session in doubtful]
        assert statuses == ["completed"] * A_WINDOW + ["awaiting_approval"] * 2
        assert at(world, THERE).open(doubtful[-1], "/status").json["status"] == "completed"
        world.sweep()
        assert {world.session(each.id).status for each in doubtful} == {Status.COMPLETED}


def test_a_flood_of_requests_is_refused_before_anything_is_read() -> None:
    with limited() as world:
        session = world.create()
        here = at(world, HERE)
        for _ in range(REQUEST.burst):
            assert here.open(session).status == 200
        for _ in range(POLL.burst):
            assert here.open(session, "/status").status == 200
        world.forget()
        told = here.open(session, "/status")
        assert (told.status, told.code) == (429, "rate_limited")
        page = here.open(session)
        assert page.status == 429
        assert page.headers["refresh"] == page.headers["retry-after"] == "1"
        assert world.aws_calls() == []
        assert at(world, THERE).open(session).status == 200
        world.clock.pass_time(1)
        assert here.open(session).status == 200


def every_request() -> list[tuple[str, str]]:
    """Return each route of the pages as a method and a path, but for HEAD, which does nothing."""
    found = [
        (method, route.path.format(session_id=f"cs_{'1' * 22}", link_id=f"plink_{'1' * 22}"))
        for router in (routes.router, links.router, till.router)
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in (route.methods or set()) - {"HEAD"}
    ]
    assert len(found) > 10
    return found


@pytest.mark.parametrize(("method", "path"), every_request())
def test_every_route_counts_its_client_before_anything_is_read(method: str, path: str) -> None:
    with limited() as world:
        here = at(world, HERE)
        for _ in range(REQUEST.burst):
            assert here.ask(method, path).status != 429
        world.forget()
        assert here.ask(method, path).status == 429
        assert world.aws_calls() == []
        assert at(world, THERE).ask(method, path).status != 429


def test_without_a_limit_nobody_is_refused() -> None:
    with limited(0) as world:
        here = at(world, HERE)
        session = world.create()
        assert {here.open(session, "/status").status for _ in range(300)} == {200}


# --- who the client is


def from_edge(viewer: str, *, said: str = "", secret: str = SECRET) -> dict[str, str]:
    """Return the headers of a request that an edge has sent on, and API Gateway after it."""
    chain = ", ".join(filter(None, (said, viewer, EDGE)))
    return {"x-forwarded-for": chain, "edge-secret": secret}


def test_an_address_of_the_edge_that_stands_twice_is_the_clients() -> None:
    """The gateway adds the edge's own address once."""
    assert found({"edge-secret": SECRET, "x-forwarded-for": f"{THERE}, {EDGE}, {EDGE}"}) == EDGE


def found(headers: dict[str, str], *, source: str = EDGE, edge_secret: str = SECRET) -> str:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    scope = {"type": "http", "headers": raw, "client": (source, 1)}
    return client_of(WebRequest(scope), edge_secret)


@pytest.mark.parametrize(
    "headers",
    [
        {"x-forwarded-for": HERE},
        from_edge(HERE, secret=""),
        from_edge(HERE, secret="wrong"),
        from_edge(HERE, secret=SECRET[:-1]),
        from_edge(HERE, secret=f"{SECRET},"),
        from_edge(HERE, secret=f"{SECRET}, {SECRET}"),
        from_edge(HERE, secret="é"),
        {"x-forwarded-for": "", "edge-secret": SECRET},
        {"edge-secret": SECRET},
        from_edge("not an address"),
        from_edge("1.2.3.4:5678"),
        {"forwarded": f"for={HERE}", "x-real-ip": HERE, "edge-secret": SECRET},
    ],
)
def test_a_header_is_not_believed_without_the_edges_proof(headers: dict[str, str]) -> None:
    assert found(headers) == EDGE


@pytest.mark.parametrize("edge_secret", ["", ",", "other", f"{SECRET} "])
@pytest.mark.parametrize("secret", ["", ",", SECRET])
def test_no_edge_is_proven_by_a_secret_that_is_not_set(edge_secret: str, secret: str) -> None:
    assert found(from_edge(HERE, secret=secret), edge_secret=edge_secret) == EDGE


def test_a_proven_edge_names_the_client_whatever_the_client_said_before() -> None:
    assert found(from_edge(HERE)) == HERE
    assert found(from_edge(HERE, said=f"{THERE}, {EDGE}")) == HERE
    assert found({"x-forwarded-for": HERE, "edge-secret": SECRET}) == HERE
    both = f"new-{SECRET},{SECRET}"
    assert found(from_edge(HERE), edge_secret=both) == HERE
    assert found(from_edge(HERE, secret=f"new-{SECRET}"), edge_secret=both) == HERE


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("203.0.113.7", "203.0.113.7"),
    ],
)
def test_an_ipv6_client_is_its_network(address: str, client: str) -> None:
    assert found({}, source=address) == client
    assert found(from_edge(address)) == client


def test_a_client_behind_a_proven_edge_is_limited_by_itself() -> None:
    with limited(edge_secret=SECRET) as world:
        use_up(at(world, EDGE, **from_edge(HERE)))
        assert submit(at(world, EDGE, **from_edge(HERE, said=THERE))).status == 429
        assert submit(at(world, EDGE, **from_edge(THERE))).status == 200


def test_a_client_that_invents_addresses_is_limited_as_what_it_is() -> None:
    with limited(edge_secret=SECRET) as world:
        for number in range(SUBMISSION.burst + A_WINDOW):
            invented = {"x-forwarded-for": f"203.0.113.{number}, {HERE}"}
            assert submit(at(world, HERE, **invented)).status == 200
        assert submit(at(world, HERE, **{"x-forwarded-for": f"{THERE}, {HERE}"})).status == 429


# --- wrong keys


def sign_in_from(browser: Browser, address: str, key: str) -> int:
    browser.client.move_to(address)
    return browser.post("/sign-in", {"api_key": key}).status


@pytest.mark.endurance
@pytest.mark.parametrize("addresses", [1, 100])
def test_a_thousand_wrong_keys_do_not_keep_the_right_one_out(addresses: int) -> None:
    with a_dashboard() as shop:
        stranger, merchant, other = (shop.browser() for _ in range(3))
        for browser in (stranger, merchant, other):
            browser.get("/sign-in")
        shop.calls()
        refused = set()
        for number in range(1000):
            wrong = f"sk_live_{number:043d}"
            address = f"10.0.{number % addresses}.1"
            refused.add(sign_in_from(stranger, address, wrong))
        assert refused <= {401, 429}
        assert set(shop.calls()) == {"get_item"}  # a wrong key costs a read, and no write
        assert sign_in_from(merchant, "10.0.0.1", shop.secret) == 303
        assert sign_in_from(other, "192.0.2.1", shop.other_secret) == 303


# --- slow wallets


class Hanging(CountingTransport):
    """Servers that answer nothing, or only after `seconds`, from the call on with `part` in it."""

    clock: HandClock
    part = ""
    seconds = 1e9

    def send(self, request: Request, *, timeout: float) -> Response:
        if self.part not in request.url:
            return super().send(request, timeout=timeout)
        if self.seconds >= timeout:
            self.clock.sleep(timeout)
            raise OutcomeUnknown("no answer in time")
        self.clock.sleep(self.seconds)
        return super().send(request, timeout=timeout)


def hanging(world: World, part: str = "", seconds: float = 1e9) -> None:
    transport = Hanging(world.network)
    transport.clock, transport.part, transport.seconds = world.clock, part, seconds
    world.services.wallets._transport = transport


@pytest.mark.parametrize(
    ("part", "seconds", "at_most"),
    [
        ("/alice", 1e9, 3.5),  # the wallet address document
        ("/quotes", 1e9, 12),
        ("", 3.4, 12),  # each as slow as it may be
        ("", 2.0, 12),
        ("", 1e9, 12),
    ],
)
def test_a_submission_ends_in_time_whatever_the_wallet_does(
    part: str, seconds: float, at_most: float
) -> None:
    world = World()
    session = world.create()
    hanging(world, part, seconds)
    begun = world.clock.now()
    with customer(world) as browser:
        assert browser.form(session).status in (303, 424)
    assert (world.clock.now() - begun).total_seconds() <= at_most
    after = world.session(session.id)
    assert after.status in (Status.OPEN, Status.AWAITING_APPROVAL)
    assert after.lease_until is None


def test_a_page_waits_for_a_hanging_wallet_for_a_bounded_time() -> None:
    world = World()
    session = world.in_doubt()
    world.clock.pass_time(30)
    hanging(world)
    begun = world.clock.now()
    with customer(world) as browser:
        assert browser.open(session, "/status").json["status"] == "awaiting_approval"
    assert (world.clock.now() - begun).total_seconds() <= 8


def test_copies_of_a_callback_hold_no_process_while_the_wallet_wants_time() -> None:
    with customer() as browser:
        session = browser.submitted()
        back = browser.world.network.approve(str(session.interact_url))
        begun = browser.world.clock.now()
        for _ in range(48):
            answer = browser.back_at_once(back)
            assert (answer.status, answer.headers.get("refresh")) == (200, "5")
        assert browser.world.clock.now() == begun
        assert browser.world.session(session.id) == session
        assert browser.back_from(back).location == f"/pay/{session.id}/success"


def test_a_wallet_that_failed_says_so_and_opens_the_session() -> None:
    world = World()
    session = world.create()
    hanging(world, "/quotes")
    with customer(world) as browser:
        assert browser.form(session).status == 424
    assert world.session(session.id).problem is Problem.WALLET_UNAVAILABLE


# --- clean-up


@pytest.mark.parametrize("patience", [20])
def test_a_wallet_that_hangs_delays_no_other_clean_up_of_its_batch(patience: float) -> None:
    """All five are under way at once: the barrier opens for all of them, or for none."""
    world, sqs = World(), Sqs()
    world.services = replace(world.services, tasks=SqsTaskQueue(lambda: sqs, "q"))
    for _ in range(5):
        session = world.submit(world.create())
        close.cancel(world.services, world.key(), session.id)
    together = threading.Barrier(5, timeout=patience)
    world.transport.before = on("DELETE", "/continue/", together.wait)
    done = queued(lambda: world.services)(sqs_event(*sqs.bodies), None)
    assert done == {"batchItemFailures": []}
    assert not together.broken


def test_a_clean_up_leaves_a_hanging_wallet_after_three_seconds() -> None:
    world = World()
    session = world.submit(world.create())
    close.cancel(world.services, world.key(), session.id)
    [task] = world.tasks.left
    hanging(world)
    begun = world.clock.now()
    with pytest.raises(TryLater):
        clean_up(world.services, task)
    assert (world.clock.now() - begun).total_seconds() <= 3
