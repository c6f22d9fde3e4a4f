"""Every route and form of the dashboard, and records for them to show and change."""

from __future__ import annotations

import re

from fastapi.routing import APIRoute

from dashboard.app import ROUTERS
from sandbox.cloud import table_definitions
from tests.support.basics import a_link, a_refund
from tests.support.cases import PICTURES
from tests.support.dashboard_pages import Dashboard, linked, members, upload
from tests.support.merchant_api import PREFIX
from tests.support.services import store_refund

TABLES = [table["TableName"].removeprefix(f"{PREFIX}-") for table in table_definitions(PREFIX)]
# Every form and its fields; RIVAL is replaced by the attacked value.
RIVAL = "<rival>"
FORMS: dict[str, dict[str, str]] = {
    "/transactions/{session_id}/expire": {"id": RIVAL},
    "/transactions/{session_id}/cancel": {"id": RIVAL},
    "/transactions/{session_id}/accept_as_paid": {"id": RIVAL},
    "/transactions/{session_id}/give_up": {"id": RIVAL},
    "/transactions/{session_id}/refund": {"amount": "1", "id": RIVAL},
    "/transactions/{session_id}/paid_elsewhere": {"amount": "1", "how": "cash", "id": RIVAL},
    "/refunds/{refund_id}/prepare": {"id": RIVAL},
    "/refunds/{refund_id}/budget": {"id": RIVAL},
    "/refunds/{refund_id}/cancel": {"id": RIVAL},
    "/refunds/{refund_id}/claim": {"id": RIVAL},
    "/budget": {"amount": "1", "merchant": RIVAL},
    "/budget/end": {"merchant": RIVAL},
    "/transactions/{session_id}/note": {"text": "mine", "tags": "", "read": "0", "id": RIVAL},
    "/transactions/{session_id}/dealt-with": {"done": "yes", "id": RIVAL},
    "/transactions/{session_id}/withdrawal": {"done": "yes", "id": RIVAL},
    "/keys": {"name": "mine", "merchant": RIVAL, "id": RIVAL},
    "/keys/{key_id}/roll": {"overlap": "0", "id": RIVAL},
    "/keys/{key_id}/revoke": {"id": RIVAL},
    "/people": {"name": "Mine", "role": "owner", "merchant": RIVAL},
    "/people/key-sign-in": {"allowed": "yes", "merchant": RIVAL},
    "/people/invitations/{invitation_id}/withdraw": {"id": RIVAL},
    "/people/{member_id}/role": {"role": "owner", "id": RIVAL},
    "/people/{member_id}/refunds": {"once": "1", "day": "1", "id": RIVAL},
    "/people/{member_id}/revoke": {"id": RIVAL},
    "/sign-in/options": {"credential": RIVAL},
    "/sign-in/passkey": {"credential": RIVAL, "next": RIVAL},
    "/sign-up": {"wallet_address": RIVAL, "invitation": RIVAL},
    "/sign-up/options": {"name": RIVAL, "invitation": RIVAL},
    "/sign-up/passkey": {"wallet_address": RIVAL, "credential": RIVAL, "invitation": RIVAL},
    "/wallet/confirm": {"merchant": RIVAL},
    "/invitation/{token}": {"credential": RIVAL},
    "/invitation/{token}/options": {"credential": RIVAL},
    "/webhooks": {"url": "https://mine.example/hooks", "merchant": RIVAL},
    "/webhooks/remove": {"merchant": RIVAL},
    "/webhooks/enable": {"merchant": RIVAL},
    "/webhooks/roll": {"overlap": "0", "merchant": RIVAL},
    "/webhooks/test": {"merchant": RIVAL},
    "/webhooks/resend-failed": {"since": "2020-01-01", "after": RIVAL},
    "/webhooks/{event_id}/resend": {"id": RIVAL},
    "/settings": {
        "name": "Mine",
        "locale": "en",
        "tolerance": "7",
        "withdrawal_days": "7",
        "contact": "me@mine.example",
        "website": "",
        "provider_1_name": "",
        "return_hosts": "mine.example",
        "merchant": RIVAL,
    },
    "/notices": {"email": "me@mine.example", "topic-wallet": "on", "member": RIVAL},
    "/notices/stop": {"member": RIVAL},
    "/notices/confirm/{token}": {"member": RIVAL},
    "/links": {"name": "Mine", "amount": "1", "merchant": RIVAL, "id": RIVAL},
    "/links/{link_id}/stop": {"id": RIVAL},
    "/links/{link_id}/start": {"id": RIVAL},
    "/links/{link_id}/stock": {"left": "7", "read": "3", "id": RIVAL},
    "/sign-in": {"api_key": RIVAL, "next": RIVAL},
    "/sign-out": {"key": RIVAL},
}


def routes() -> set[tuple[str, str]]:
    """Return the method and the path under /dashboard of every route."""
    return {
        (method, route.path)
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }


def paths(method: str) -> list[str]:
    return sorted(path for each, path in routes() if each == method)


def filled(path: str, value: str = "x") -> str:
    return re.sub(r"\{\w+\}", value, path.replace("{file}", "items"))


def with_something_of_everything(shop: Dashboard) -> dict[str, str]:
    """The ids of a merchant's records, so that each path shows or would change something."""
    owner = shop.member(name="Olga")
    owner.post("/webhooks", {"url": "https://shop.example/hooks"})
    event = owner.post("/webhooks/test").location.rpartition("/")[2]
    linked(owner, "Waiting", "support")
    upload(owner, PICTURES["image/jpeg"])
    [waiting] = [e for e in shop.services.people.invitations_of("mer_1") if e.ended_at is None]
    link = a_link()
    shop.services.links.add(link)
    refund = a_refund()
    store_refund(shop.dynamo, PREFIX, refund)
    return {
        "link_id": link.id,
        "session_id": shop.store().id,
        "refund_id": refund.id,
        "event_id": event,
        "key_id": shop.key.id,
        "member_id": members(shop)["Olga"].id,
        "invitation_id": waiting.id,
        "file": "items",
        "token": "x",
    }
