"""The merchant API as Lambda runs it: API Gateway v2 events into the real handler, over an
in-memory DynamoDB.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, cast
from urllib.parse import urlencode

from api import http, routes
from api.app import app, handler
from checkout.adapters.details_keys import KmsDetailsKeys
from checkout.adapters.dynamo import CachedMerchants
from checkout.adapters.vault import AesVault
from checkout.domain.ground.ids import api_key_hash, new_api_key, new_key_id, new_session_id
from checkout.domain.merchant.people import Scope
from checkout.domain.merchant.record import ApiKey
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.record import Session
from checkout.flows.session import details
from checkout.services import Services
from sandbox.cloud import table_definitions
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.fakes.kms import KEY_ID as KMS_KEY
from tests.fakes.kms import HandKms
from tests.support import services
from tests.support.basics import NOW, HandClock, a_session, seeded
from tests.support.documented import check
from tests.support.flows import NotedHints, NotedTasks, derived
from tests.support.samples import a_key, a_merchant

PREFIX = "test"
SESSIONS = "/api/checkout/sessions"


class Shown(dict[str, Any]):
    """An object of an answer."""

    def __init__(self, found: dict[str, Any], answer: Answer) -> None:
        super().__init__(found)
        self._answer = answer

    def __missing__(self, name: str) -> Any:
        raise KeyError(f"no {name} in {self._answer.status} {self._answer.body[:500]}")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def json(self) -> Any:
        """The body. A missing field fails with the text of the answer."""
        found = json.loads(self.body)
        return Shown(found, answer=self) if isinstance(found, dict) else found

    @property
    def code(self) -> str:
        found: str = self.json["error"]["code"]
        return found

    @property
    def location(self) -> str:
        assert self.status == 303, (self.status, self.body)
        return self.headers["location"]


class MerchantApi:
    """Two merchants, `mer_1` (USD, scale 2) and `mer_2`, and their keys.

    Each answer is held against the OpenAPI documents.
    """

    def __init__(self, *, base_url: str = "https://pay.example") -> None:
        self.clock = HandClock()
        self.dynamo = cast(Any, InMemoryDynamoDb(table_definitions(PREFIX), now=self.clock.now))
        self.kms = HandKms()
        self.vault = AesVault(lambda: "11" * 32, seeded(7), derive=derived)
        self.services = services.core(
            self.dynamo,
            PREFIX,
            clock=self.clock,
            random_bytes=seeded(5),
            queue=NotedHints(),
            tasks=NotedTasks(),
            base_url=base_url,
            details_keys=KmsDetailsKeys(lambda: self.kms, KMS_KEY, self.vault.inner),
        )
        self.documents = replace(
            self.services, merchants=CachedMerchants(self.dynamo, PREFIX, self.clock)
        )
        self.secret, self.key = self.join("mer_1")
        self.other_secret, self.other_key = self.join("mer_2")
        self.dynamo.calls.clear()

    def join(
        self, merchant_id: str, *, asset_code: str = "USD", asset_scale: int = 2
    ) -> tuple[str, ApiKey]:
        """Store a merchant with one key, last used just now."""
        secret = new_api_key(self.services.random_bytes)
        asset = {"asset_code": asset_code, "asset_scale": asset_scale}
        key = a_key(
            id=new_key_id(self.services.random_bytes),
            hash=api_key_hash(secret),
            merchant=merchant_id,
            name="first",
            last_four=secret[-4:],
            last_used_at=NOW,
            **asset,
        )
        wallet = f"https://wallet.example/{merchant_id}"
        merchant = a_merchant(
            id=merchant_id,
            name="Shop",
            wallet_address=wallet,
            private_key="sealed",
            **asset,
            **details.new_keys(self.vault, self.services.details_keys, seeded(9), merchant_id),
        )
        assert self.services.merchants.add(merchant, key) is None
        return secret, key

    @cached_property
    def refunder(self) -> str:
        """A key of `mer_1` that may refund, too."""
        secret = new_api_key(self.services.random_bytes)
        key = replace(
            self.key,
            id=new_key_id(self.services.random_bytes),
            hash=api_key_hash(secret),
            scopes=(*self.key.scopes, Scope.REFUND),
        )
        services.put_key(self.dynamo, PREFIX, key)
        return secret

    def store(self, **changes: Any) -> Session:
        """Store a session of `mer_1` unchanged."""
        changes = {"id": new_session_id(self.services.random_bytes)} | changes
        session = a_session(**changes)
        assert self.services.sessions.create(session, None) is None
        return session

    def store_with(self, given: CustomerDetails, **changes: Any) -> Session:
        """A session of `mer_1` whose customer has given these details, as its page stores them."""
        session_id = new_session_id(self.services.random_bytes)
        merchant = self.services.merchants.get("mer_1")
        assert merchant is not None
        sealed = details.seal(self.vault, merchant, session_id, given)
        return self.store(
            id=session_id,
            customer_details=sealed.details,
            customer_further=sealed.further,
            **changes,
        )

    def stored(self, session_id: str) -> Session:
        found = self.services.sessions.get(session_id)
        assert found is not None
        return found

    def rows(self, table: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.dynamo.rows(f"{PREFIX}-{table}")
        return found

    def get(self, path: str, query: Mapping[str, Any] | None = None, **options: Any) -> Answer:
        return self.send("GET", path, query=urlencode(query or {}), **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        return self.send("POST", path, raw=raw, **options)

    def send(
        self,
        method: str,
        path: str,
        *,
        query: str = "",
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        key: str | None = "",
    ) -> Answer:
        """`key` is the bearer token: the first merchant's unless given, None for no header."""
        sent = {"Host": "pay.example", "Content-Type": "application/json"}
        if key is not None:
            sent["Authorization"] = f"Bearer {key or self.secret}"
        sent |= headers or {}
        with self.installed():
            answer = handler(gateway_event(method, path, query, sent, raw), None)
        assert not answer["isBase64Encoded"]
        told = Answer(answer["statusCode"], answer["headers"], answer["body"])
        check(method, path, told)
        return told

    @contextmanager
    def installed(self) -> Iterator[None]:
        async def given() -> Services:
            return self.services

        async def documents() -> Services:
            return self.documents

        async def started_at() -> datetime:
            return NOW

        app.dependency_overrides |= {
            http.services: given,
            http.started_at: started_at,
            routes.client_services: documents,
        }
        try:
            yield
        finally:
            app.dependency_overrides.clear()


def gateway_event(
    method: str, path: str, query: str, headers: Mapping[str, str], raw: bytes | None
) -> dict[str, Any]:
    """Return an event of API Gateway's HTTP API (payload format 2.0), its body in base64."""
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": dict(headers),
        "requestContext": {
            "http": {"method": method, "path": path, "sourceIp": "192.0.2.1"},
            "stage": "$default",
        },
        "isBase64Encoded": raw is not None,
    }
    if raw is not None:
        event["body"] = base64.b64encode(raw).decode()
    return event


def a_body(**changes: Any) -> dict[str, Any]:
    """A creation that succeeds: 20.00 USD. A change to None removes the field."""
    body = {
        "mode": "payment",
        "line_items": [an_item()],
        "success_url": "https://shop.example/thanks?s={CHECKOUT_SESSION_ID}",
        "cancel_url": "https://shop.example/basket",
    } | changes
    return {name: value for name, value in body.items() if value is not None}


def an_item(**changes: Any) -> dict[str, Any]:
    """A line item; product and price fields are put where they belong."""
    product = {"name": changes.pop("name", "Tea")}
    product |= {name: changes.pop(name) for name in ("description", "image") if name in changes}
    price = {
        "currency": changes.pop("currency", "usd"),
        "product_data": product,
        "unit_amount": changes.pop("unit_amount", 1000),
    }
    return {"price_data": price, "quantity": 2} | changes
