"""Each page nests as HTML: each branch of its template by itself, and the page in many stages.

`Page` refuses a document that does not nest, but only a test that looks at a page has it read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from jinja2 import Environment, nodes

from checkout.domain.merchant.people import SignUp
from checkout.domain.payment.in_flight import Problem
from checkout.flows.refund import alternative_wallet
from dashboard import rendering
from pay import render
from tests.support.dashboard_pages import Browser, Dashboard
from tests.support.dashboard_routes import FORMS, RIVAL, paths, with_something_of_everything
from tests.support.flows import CEDAR
from tests.support.gifts import gift
from tests.support.hosted_pages import STAGES, Answer, Customer, Page, another
from tests.support.refund_books import ask, fund
from tests.support.samples import EVERYTHING
from tests.support.shop_records import HOOKS, flag, paid, refund_of, stored

ENVIRONMENTS = {"dashboard": rendering._TEMPLATES, "pay": render._TEMPLATES}
TEMPLATES = [
    (app, name) for app, each in ENVIRONMENTS.items() for name in each.list_templates(["html"])
]
# Branches that open an element, or close it: the same condition, or a loop, stands around the rest.
HALVES = {"fields.html": 2, "parts.html": 2, "overview.html": 3, "transaction.html": 4}


def branches(body: list[nodes.Node]) -> Iterator[str]:
    """Yield the HTML of this part of a template without its branches, and of each of these."""
    html = ""
    for node in body:
        if isinstance(node, nodes.Output):
            html += "".join(getattr(each, "data", "x") for each in node.nodes)
        for part in (node, *getattr(node, "elif_", ())):
            for name in ("body", "else_"):
                yield from branches(getattr(part, name, []))
    yield html


def nests(html: str) -> bool:
    try:
        return bool(Page(html))
    except AssertionError:
        return False


@pytest.mark.parametrize(("app", "name"), TEMPLATES)
def test_each_branch_of_a_template_nests(app: str, name: str) -> None:
    environment = ENVIRONMENTS[app]
    assert environment.loader is not None
    source = environment.loader.get_source(environment, name)[0]
    bad = [html for html in branches(environment.parse(source).body) if not nests(html)]
    assert len(bad) == HALVES.get(name, 0), bad


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the names of the templates that are rendered, also those within others."""
    names: set[str] = set()

    def noted(environment: Environment) -> None:
        get = environment.get_template

        def get_template(name: Any, *rest: Any, **more: Any) -> Any:
            names.add(str(name))
            return get(name, *rest, **more)

        monkeypatch.setattr(environment, "get_template", get_template)

    for each in ENVIRONMENTS.values():
        noted(each)
    return names


def read(*answers: Answer) -> None:
    for answer in answers:
        if answer.headers.get("content-type", "").startswith("text/html"):
            assert answer.page.elements, answer


def unrendered(app: str, rendered: set[str]) -> set[str]:
    return {name for each, name in TEMPLATES if each == app} - rendered


def test_each_page_of_the_dashboard_nests(shop: Dashboard, rendered: set[str]) -> None:
    shop.services = replace(shop.services, sign_up=SignUp.OPEN)
    stranger, first = shop.browser(), shop.signed_in()
    read(*(stranger.get(path) for path in ("/sign-in", "/sign-up", "/nothing")))
    ids, owner = with_something_of_everything(shop), shop.member()
    read(
        stranger.get(
            first.post("/people", {"name": "A", "role": "owner"}).secret.partition("/dashboard")[2]
        )
    )
    sessions = [shop.store(status=status, **fields) for status, fields in STAGES.values()]
    sessions += [flag(shop), paid(shop, received=2300)]
    sold = paid(shop)
    refund_of(shop, sold, 300)
    events = [stored(shop, subject=sold.id).id for _ in range(30)]
    for path in paths("GET"):
        read(owner.get(path.format(**ids)))
    for session in [*sessions, sold]:
        read(
            owner.get(f"/transactions/{session.id}"),
            owner.get(f"/transactions/{session.id}/packing"),
        )
    for query in ("?q=tea", "?status=completed", "?status=open&min=x", "/overview?period=quarter"):
        read(owner.get(query))
    read(owner.get(f"/webhooks/{events[0]}"), owner.post("/webhooks", {"url": HOOKS}))
    answered(owner, ids)
    # It needs a wallet that wants time: test_dashboard_refunds.py reads it.
    assert unrendered("dashboard", rendered) == {"refund_wait.html"}


def answered(browser: Browser, ids: dict[str, str]) -> None:
    """Send each form filled in badly and well, and read what is said."""
    for path, fields in FORMS.items():
        if path not in ("/sign-out", "/people/{member_id}/revoke"):
            well = {name: value.replace(RIVAL, "x") for name, value in fields.items()}
            for typed in (dict.fromkeys(fields, "\0"), well):
                read(browser.post(path.format(**ids), typed))


def test_each_page_of_a_customer_nests(buyer: Customer, rendered: set[str]) -> None:
    looks: list[dict[str, Any]] = [{}, {"locale": "ar"}, {"collect_json": EVERYTHING.to_json()}]
    world, now = buyer.world, buyer.world.clock.now()
    buyer.give(withdrawal_days=14, contact="help@shop.example")
    for stage in STAGES:
        for changes in looks:
            session = buyer.put_in(stage, **changes)
            for rest in ("", "/success", "/details", "/watch", "/wallet"):
                read(buyer.open(session, rest))
    for problem in Problem:
        read(buyer.open(buyer.put_in("open", problem=problem)))
    read(buyer.get("/"))
    for left in (None, 3, 0):
        read(buyer.get(f"/buy/{world.link(left=left).id}"))
    counter = gift(buyer).id
    read(buyer.get(f"/buy/{counter}/till"))
    for stage in STAGES:
        session = buyer.put_in(stage, metadata_json=f'{{"payment_link": "{counter}"}}')
        read(buyer.get(f"/buy/{counter}/till/{session.id}"))
    bought = buyer.put_in("completed", completed_at=now)
    read(buyer.open(bought, "/withdrawal"), buyer.form(bought))
    for browser in (buyer, another(buyer)):
        url = world.network.approve(str(buyer.submitted().interact_url))
        read(browser.back_at_once(url))
    fund(world)
    refund = ask(world, world.pay(world.create(2000), f"{CEDAR}/alice"))
    read(
        buyer.get(
            urlsplit(alternative_wallet.offer(world.services, world.key(), refund.id).link).path
        )
    )
    # The two letters, and the page that only the dashboard shows.
    assert unrendered("pay", rendered) == {"letter.html", "notice.html", "preview.html"}
