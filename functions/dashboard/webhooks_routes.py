"""The paths of the webhooks: /dashboard/webhooks."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request, Response

from checkout.domain.audit import Action
from checkout.flows import audit
from checkout.flows.webhooks import delivery_log, endpoints, signature_check
from dashboard.checker import checker
from dashboard.dependencies import Form, Injected, Visited, Who, visit
from dashboard.keys import overlap_of
from dashboard.pages import refused_with, see
from dashboard.webhooks import event_page, events_of, since_of, webhooks, webhooks_again

router = APIRouter(prefix="/dashboard/webhooks", dependencies=[Depends(visit)])


@router.get("")
async def log(services: Injected, request: Request, who: Who) -> Response:
    return webhooks(services, request, who)


@router.post("")
async def configure(services: Injected, request: Request, who: Who, form: Form) -> Response:
    refused_with(request, webhooks_again, services, request, who, form)
    url, events = form.get("url", "").strip(), events_of(form)
    done = endpoints.configure(services, who.merchant, url=url, events=events)
    audit.note(services, who.key, Action.WEBHOOK_SET, url.partition("?")[0])
    return webhooks(services, request, who, secret=done.secret)


@router.post("/remove")
async def remove(services: Injected, visited: Visited, who: Who, _: Form) -> Response:
    endpoints.remove(services, who.merchant)
    audit.note(services, who.key, Action.WEBHOOK_REMOVED)
    return see(visited, "/webhooks")


@router.post("/enable")
async def enable(
    services: Injected, visited: Visited, request: Request, who: Who, form: Form
) -> Response:
    refused_with(request, webhooks_again, services, request, who, form)
    endpoints.enable(services, who.merchant)
    audit.note(services, who.key, Action.WEBHOOK_ENABLED)
    return see(visited, "/webhooks")


@router.post("/roll")
async def roll(services: Injected, request: Request, who: Who, form: Form) -> Response:
    refused_with(request, webhooks_again, services, request, who, form)
    overlap = overlap_of(form)
    done = endpoints.roll_secret(services, who.merchant, overlap=overlap)
    audit.note(services, who.key, Action.WEBHOOK_SECRET_ROLLED)
    return webhooks(services, request, who, secret=done.secret)


@router.post("/test")
async def test_event(
    services: Injected, visited: Visited, request: Request, who: Who, form: Form
) -> Response:
    refused_with(request, webhooks_again, services, request, who, form)
    event = endpoints.ping(services, who.merchant)
    audit.note(services, who.key, Action.TEST_EVENT_SENT, event.id)
    return see(visited, f"/webhooks/{event.id}")


@router.post("/resend-failed")
async def resend_failed(services: Injected, request: Request, who: Who, form: Form) -> Response:
    refused_with(request, webhooks_again, services, request, who, form)
    since, after = since_of(form), form.get("after") or None
    done = delivery_log.resend_failed(services, who.merchant, since=since, after=after)
    audit.note(services, who.key, Action.EVENTS_RESENT, f"{done.count}, since {since.date()}")
    return webhooks(services, request, who, typed=form, resent=done)


@router.get("/check")
async def check_form(request: Request, _: Who) -> Response:
    return checker(request, {})


@router.post("/check")
async def check(services: Injected, request: Request, who: Who, form: Form) -> Response:
    refused_with(request, checker, request, form)
    headers, body = form.get("headers", ""), form.get("body", "")
    checked = signature_check.explain(services, who.merchant, headers=headers, body=body)
    return checker(request, form, checked=checked)


@router.get("/{event_id}")
async def event(services: Injected, request: Request, who: Who, event_id: str) -> Response:
    return event_page(services, request, who, event_id)


@router.post("/{event_id}/resend")
async def resend(
    services: Injected, visited: Visited, request: Request, who: Who, event_id: str, _: Form
) -> Response:
    refused_with(request, event_page, services, request, who, event_id)
    again = endpoints.resend(services, who.merchant, event_id)
    audit.note(services, who.key, Action.EVENT_RESENT, again.id)
    return see(visited, f"/webhooks/{again.id}")
