"""Test the rehearsal's walk through the dashboard, over the real pages and over one that fails."""

from __future__ import annotations

import pytest

from dashboard.app import app
from sandbox.rehearsal import dashboard
from sandbox.rehearsal.stack import RehearsalFailed
from tests.support import asgi
from tests.support.dashboard_pages import BASE, Dashboard
from tests.support.dashboard_pages import dashboard as a_shop


class Watched:
    """A client that notes which pages were opened, and lets one of them fail."""

    def __init__(self, shop: Dashboard, fails: str = "") -> None:
        self.client = asgi.Client(app, base_url=BASE, follow_redirects=True)
        self.key = shop.secret
        self.paths: list[str] = []
        self._fails = fails

    def get(self, url: str) -> object:
        path = url.removeprefix(BASE)
        self.paths.append(path)
        return self.client.get("/nowhere" if path == self._fails else url)

    def walk(self) -> int:
        return dashboard.look_around(BASE, self.key, self.get, self.client.post)


def test_each_page_that_a_page_leads_to_is_opened_once() -> None:
    with a_shop() as shop:
        session = shop.store().id
        watched = Watched(shop)
        found = watched.walk()
    assert found > 25
    assert f"/dashboard/transactions/{session}" in watched.paths
    for room in ("overview", "statement", "links", "webhooks", "keys", "people", "audit"):
        assert f"/dashboard/{room}" in watched.paths
    assert any(path.endswith("/poster") for path in watched.paths)
    assert any(path.endswith("/qr") for path in watched.paths)
    assert len([path for path in watched.paths if path == "/dashboard/settings"]) == 1


def test_a_page_that_fails_fails_the_rehearsal_by_its_name() -> None:
    with a_shop() as shop, pytest.raises(RehearsalFailed, match="/dashboard/audit of the dash"):
        Watched(shop, fails="/dashboard/audit").walk()


def test_a_wrong_key_is_told_as_such() -> None:
    with a_shop() as shop:
        watched = Watched(shop)
        watched.key = "sk_wrong"
        with pytest.raises(RehearsalFailed, match="sign-in"):
            watched.walk()
