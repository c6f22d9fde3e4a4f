"""A key or a secret is in exactly one response of its life, and in no log line or record."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from checkout import telemetry
from checkout.adapters.dynamo import DynamoApiKeys
from checkout.domain.ground.errors import Unavailable
from tests.support.dashboard_pages import Browser, Dashboard
from tests.support.dashboard_routes import FORMS, RIVAL, TABLES, filled, paths
from tests.support.merchant_api import PREFIX, SESSIONS

pytestmark = pytest.mark.untraced

Told = Callable[[], list[dict[str, Any]]]
HOOKS = {"url": "https://shop.example/hooks"}


def key_id(shop: Dashboard, plain: str) -> str:
    return next(key.id for key in shop.services.api_keys.of("mer_1") if key.last_four == plain[-4:])


def looked_around(browser: Browser) -> None:
    """Every page, with what it leads to, and every form filled in wrongly."""
    for path in paths("GET"):
        if "{" not in path:
            page = browser.get(path)
            links = page.page.links if page.status == 200 and "<main" in page.body else []
            for link in links:
                if link.startswith("/dashboard/webhooks/evt_"):
                    browser.get(link.removeprefix("/dashboard"))
    for path, fields in FORMS.items():
        if path != "/sign-out":
            wrong = {name: value.replace(RIVAL, "x") for name, value in fields.items()}
            browser.post(filled(path, "x"), {name: "\0" + wrong[name] for name in wrong})


class Failing(DynamoApiKeys):
    """A store that does not answer, and whose error has all that it was given."""

    def add(self, *given: object) -> bool:
        raise Unavailable("The data store is not answering.") from RuntimeError(str(given))


def test_each_is_in_exactly_one_response_and_nowhere_else(
    shop: Dashboard, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "SAMPLE", 1)  # every request's debug lines
    telemetry.start("dashboard")
    browser = shop.signed_in()
    created = browser.post("/keys", {"name": "Web shop"}).secret
    rolled = browser.post(f"/keys/{key_id(shop, created)}/roll", {"overlap": "86400"}).secret
    first = browser.post("/webhooks", HOOKS).secret
    assert not browser.post("/webhooks", HOOKS).page.all("code", id="secret")
    second = browser.post("/webhooks/roll", {"overlap": "86400"}).secret
    browser.post("/webhooks/test")
    looked_around(browser)
    others = [shop.signed_in(key) for key in (created, rolled)]
    for other in others:
        looked_around(other)
    used = [shop.get(SESSIONS, key=key) for key in (created, rolled, created + "x")]
    browser.post(f"/keys/{key_id(shop, created)}/revoke")
    refused = shop.browser()
    refused.get("/sign-in")
    refused.post("/sign-in", {"api_key": created})
    looked_around(others[0])
    browser.post("/webhooks/remove")
    looked_around(browser)
    shop.services = replace(shop.services, api_keys=Failing(shop.dynamo, PREFIX))
    assert browser.post("/keys", {"name": "Web shop"}).status == 503

    answers = [each for one in (browser, refused, *others) for each in one.answers]
    said = [f"{dict(answer.headers)} {answer.body}" for answer in answers]
    said += [f"{dict(answer.headers)} {answer.body}" for answer in used]
    lines_told = json.dumps(told())
    stored = str([shop.rows(table) for table in TABLES])
    assert len(said) > 100
    assert "unavailable" in lines_told
    for secret in (created, rolled, first, second):
        assert sum(secret in each for each in said) == 1
        assert secret.removeprefix("whsec_").removeprefix("sk_") not in lines_told + stored
    assert not any(shop.secret in each for each in (*said, lines_told, stored))
