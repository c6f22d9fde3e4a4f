"""Every door of the product: events into the handlers of its functions, over one set of tables and
wallets, as the service is deployed, so that "nothing else happened" can be asked of all of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import api.app
import api.http
import api.routes
import api.v1.app
import api.v1.http
import dashboard.app
import dashboard.dependencies
import pay.app
import pay.dependencies
from checkout.adapters.dynamo.expiring_tokens import REFUSED_ROW
from checkout.domain.ground.ids import api_key_hash, new_api_key, new_key_id
from checkout.domain.merchant.people import Scope
from checkout.domain.merchant.record import Merchant
from checkout.domain.session.record import Session
from checkout.services import DashboardServices
from sandbox.cloud import table_definitions
from sandbox.wallets.state import Account
from tests.support.basics import NOW
from tests.support.flows import CEDAR, HARBOR, PREFIX, World
from tests.support.hosted_pages import Answer
from tests.support.merchant_api import SESSIONS, a_body, gateway_event
from tests.support.services import put_key

BASE: Final = "https://pay.example"
FORM: Final = "application/x-www-form-urlencoded"
TABLES: Final = [table["TableName"] for table in table_definitions(PREFIX)]
_APPS: Final[dict[str, tuple[Any, Any]]] = {
    "api": (api.app, api.http.services),
    "v1": (api.v1.app, api.http.services),
    "pay": (pay.app, pay.dependencies.services),
    "dashboard": (dashboard.app, dashboard.dependencies.services),
}


@dataclass
class Visitor:
    """A browser: its cookies, and the token of the form that it was shown last."""

    cookies: dict[str, str] = field(default_factory=dict)
    form_token: str = ""


class Doors:
    """`merchant` is Harbor Coffee with `key`; `other` another one with `other_key`."""

    def __init__(self, world: World | None = None) -> None:
        self.world = world or World()
        self.world.core = replace(self.world.core, base_url=BASE)
        self.world.services = replace(self.world.services, base_url=BASE)
        self.world.endpoints = replace(self.world.endpoints, base_url=BASE)
        self.key, self.merchant = self.world.api_key, self.world.merchant
        self.other_key, self.other = self.join("mallory")
        self.heard: Callable[[str, dict[str, Any], dict[str, Any]], object] = lambda *_: None
        self.on_status: Callable[[int], object] = lambda status: None
        self._visits = 0
        for key in (self.key, self.other_key):  # its use is recorded, once
            assert self.call("GET", key=key).status == 200

    def join(self, name: str) -> tuple[str, Merchant]:
        """Set up a merchant with a USD wallet of this name; return its key too."""
        wallet = f"{HARBOR}/{name}"
        self.world.network.add_account(Account(wallet, name.title(), "USD", 2, 0))
        done = self.world.join(wallet)
        assert done.api_key is not None
        return done.api_key, done.merchant

    # --- asking

    def send(self, function: str, event: dict[str, Any]) -> Answer:
        """Send an event to the function's handler, from an address of its own. Fail for a 5xx."""
        self._visits += 1
        source = f"198.51.{self._visits // 250 % 250}.{self._visits % 250 + 1}"
        event["requestContext"]["http"]["sourceIp"] = source
        module, dependency = _APPS[function]
        core = self.world.core
        given = {"api": core, "v1": core, "pay": self.world.services}
        services = given.get(function, self.world.endpoints)

        async def injected() -> Any:
            return services

        outer = dict(module.app.dependency_overrides)
        module.app.dependency_overrides |= {
            dependency: injected,
            api.routes.client_services: injected,
            api.http.started_at: self._started_at,
            api.v1.http.managing: self._managing,
        }
        path = event["requestContext"]["http"]["path"]
        served_by = dashboard.app if path.startswith("/v1/webhook_endpoints") else module
        try:
            answer = served_by.handler(event, None)
        finally:
            module.app.dependency_overrides = outer
        self.heard(function, event, answer)
        self.on_status(answer["statusCode"])
        assert answer["statusCode"] < 500, answer["statusCode"]
        headers = {**answer["headers"], "set-cookie": "\n".join(answer.get("cookies", []))}
        assert headers["request-id"].startswith("req_")
        return Answer(answer["statusCode"], headers, str(answer.get("body") or ""))

    def call(
        self,
        method: str,
        path: str = "",
        body: Any = None,
        *,
        query: str = "",
        key: str | None = "",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask the merchant API; `path` is under the sessions, unless it begins with /api.

        A body that is not bytes is sent as JSON. `key`: the merchant's unless given, None for none.
        """
        raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = {"Host": "pay.example", "Content-Type": "application/json"}
        if key is not None:
            sent["Authorization"] = f"Bearer {key or self.key}"
        full = path if path.startswith("/api") else SESSIONS + path
        return self.send("api", gateway_event(method, full, query, sent | dict(headers or {}), raw))

    def v1(self, method: str, path: str, body: Any = None, *, key: str) -> Answer:
        """Ask the API under /v1; a body is sent as JSON."""
        raw = None if body is None else json.dumps(body).encode()
        sent = {"Host": "pay.example", "Content-Type": "application/json"}
        sent["Authorization"] = f"Bearer {key}"
        return self.send("v1", gateway_event(method, f"/v1{path}", "", sent, raw))

    def key_with(self, *scopes: Scope, **fields: Any) -> str:
        """Return a new key of the merchant that has these scopes, used just now."""
        world = self.world
        secret = new_api_key(world.core.random_bytes)
        made: dict[str, Any] = {
            "id": new_key_id(world.core.random_bytes),
            "hash": api_key_hash(secret),
            "last_used_at": world.clock.now(),
        }
        put_key(world.dynamo, PREFIX, replace(world.key(), scopes=scopes, **made, **fields))
        return secret

    def create(self, **changes: Any) -> Session:
        answer = self.call("POST", "", a_body(**changes))
        assert answer.status == 201, answer.body
        return self.world.session(answer.json["id"])

    def pay(
        self,
        method: str,
        path: str,
        fields: Mapping[str, str] | bytes | None = None,
        *,
        query: str = "",
        visitor: Visitor | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask for a page under /pay as a browser; fields are sent as a form."""
        return self.browse("pay", method, f"/pay{path}", fields, query, visitor, headers or {})

    def dashboard(
        self,
        method: str,
        path: str = "",
        fields: Mapping[str, str] | bytes | None = None,
        *,
        query: str = "",
        visitor: Visitor | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask for a page under /dashboard as a browser; a form is from our own origin."""
        own = {"Origin": BASE} if method == "POST" else {}
        full = f"/dashboard{path}"
        return self.browse(
            "dashboard", method, full, fields, query, visitor, own | dict(headers or {})
        )

    def follow(
        self,
        url: str,
        visitor: Visitor | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Open an address of the hosted page after a wallet's redirect, and wait as the page
        requires."""
        parts = urlsplit(url)
        path = parts.path.removeprefix("/pay")
        answer = self.pay("GET", path, query=parts.query, visitor=visitor, headers=headers)
        if answer.status == 200 and (refresh := answer.headers.get("refresh")):
            self.world.clock.pass_time(int(refresh))
            answer = self.pay("GET", path, query=parts.query, visitor=visitor, headers=headers)
        return answer

    def browse(
        self,
        function: str,
        method: str,
        path: str,
        fields: Mapping[str, str] | bytes | None,
        query: str = "",
        visitor: Visitor | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask a function for a page as a browser with these cookies."""
        visitor = visitor or Visitor()
        raw = fields if isinstance(fields, bytes | None) else urlencode(fields).encode()
        sent = {"Host": "pay.example", "Accept": "text/html,*/*;q=0.8"}
        if raw is not None:
            sent["Content-Type"] = FORM
        event = gateway_event(method, path, query, sent | dict(headers or {}), raw)
        event["cookies"] = [f"{name}={value}" for name, value in visitor.cookies.items()]
        answer = self.send(function, event)
        for cookie in filter(None, answer.headers["set-cookie"].split("\n")):
            name, _, value = cookie.partition(";")[0].partition("=")
            visitor.cookies[name] = value.strip('"')
        if function == "dashboard" and answer.headers["content-type"].startswith("text/html"):
            visitor.form_token = answer.form_token or visitor.form_token
        return answer

    # --- customers and merchants

    def submit(
        self, session: Session, wallet: str = f"{CEDAR}/alice", visitor: Visitor | None = None
    ) -> Answer:
        fields = {"wallet_address": wallet}
        return self.pay("POST", f"/{session.id}/wallet", fields, visitor=visitor)

    def approved(self, visitor: Visitor | None = None) -> tuple[Session, str]:
        """Return a new session that its customer has approved, and the address of the wallet's
        redirect."""
        session = self.create()
        assert self.submit(session, visitor=visitor).status == 303
        session = self.world.session(session.id)
        return session, self.world.network.approve(str(session.interact_url))

    def signed_in(self, key: str = "") -> Visitor:
        """Return a browser that has signed in to the dashboard with the key."""
        visitor = Visitor()
        self.dashboard("GET", "/sign-in", visitor=visitor)
        fields = {"api_key": key or self.key, "form_token": visitor.form_token}
        assert (
            self.dashboard("POST", "/sign-in", fields, visitor=visitor).location
            == "/dashboard/overview"
        )
        self.dashboard("GET", visitor=visitor)
        return visitor

    async def _managing(self) -> DashboardServices:
        return self.world.endpoints

    async def _started_at(self) -> datetime:
        return NOW

    # --- what has happened

    def state(self) -> dict[str, Any]:
        """Return all that an attack could change or cause: rows, requests, messages, money.

        Left out are counters of attempts, and a merchant's own log of refused requests, which is
        bounded and read only by its page.
        """
        rows = {name: self.world.dynamo.rows(name) for name in TABLES}
        counters = f"{PREFIX}-idempotency_keys"
        rows[counters] = [row for row in rows[counters] if "count" not in row and not logged(row)]
        return rows | {
            "asked": list(self.world.transport.sent),
            "queued": list(self.world.queue.messages),
            "tasks": list(self.world.tasks.left),
            "delivered": list(self.world.receivers.got),
            "money": {each: account.balance for each, account in self._accounts().items()},
        }

    @contextmanager
    def nothing_happens(self) -> Iterator[None]:
        before = self.state()
        yield
        after = self.state()
        assert after == before, [name for name in before if before[name] != after[name]]

    def _accounts(self) -> dict[str, Account]:
        accounts: dict[str, Account] = self.world.network.state.accounts
        return accounts


def logged(row: dict[str, Any]) -> bool:
    """Whether the row is the log of a key's refused requests."""
    return str(row["key"]["S"]).startswith(REFUSED_ROW)
