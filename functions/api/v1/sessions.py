"""Translate the parameters of sessions into the input of the flows, and sessions into responses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from api.requests import (
    METADATA_KEY_MAX,
    METADATA_KEYS_MAX,
    UNIX_SECONDS_MAX,
    CreateSession,
    ListSessions,
    time_sentence,
)
from api.v1.collection import collect
from api.v1.expansions import CHARGE, PREFIXES, SESSION, expandable, expanded, maker
from api.v1.forms import Parsed
from checkout.domain.ground.errors import (
    CurrencyMismatch,
    ParameterInvalid,
    ParameterInvalidInteger,
    ParameterMissing,
    ResourceMissing,
    UrlInvalid,
)
from checkout.domain.ground.grammar import EMAIL_MAX, email_of, is_http, picture_url
from checkout.domain.ground.languages import language_of
from checkout.domain.merchant.record import ApiKey
from checkout.domain.session.customer_details import NONE_GIVEN, CustomerDetails
from checkout.domain.session.new import NewSession
from checkout.domain.session.record import (
    METADATA_VALUE_MAX,
    SUBTITLE_MAX,
    TITLE_MAX,
    LineItem,
    Session,
    Status,
)
from checkout.domain.stripe.objects import (
    STATUS,
    checkout_session,
    from_stripe,
    line_items,
    session_of,
)
from checkout.flows import limits
from checkout.flows.session import lists, lookup
from checkout.flows.session.lists import ListQuery
from checkout.services import Services
from checkout.web import PARAM_MAX, validated
from open_payments.urls import split

Object = dict[str, Any]

EXPIRES_FROM: Final = timedelta(minutes=5)
EXPIRES_TO: Final = timedelta(hours=24)
TEXT_MAX: Final = 1000
NAME_MAX: Final = 5000  # of a product, as in Stripe; pages show the first part (LineItem.title)
DESCRIPTION_MAX: Final = 40_000
# How many parts of the index a request for a filtered list reads, and the larger number that it
# reads while no entry has matched. Returning an empty page would be a problem, because clients with
# automatic paging stop there.
ROUNDS: Final = 20
ROUNDS_IF_EMPTY: Final = 100

_WHOLE: Final = re.compile(r"([0-9]{1,15})(?:\.0{1,12})?")
_STATUSES: Final[Mapping[str, tuple[Status, ...]]] = {"": ()} | {
    shown: tuple(each for each in Status if STATUS.get(each, "open") == shown)
    for shown in ("open", "complete", "expired")
}


def new_session(services: Services, given: Parsed) -> NewSession:
    """Return the new session for these parameters. Raises the errors of the native API."""
    values = given.values
    expandable(given, SESSION)
    pictured = partial(_picture, base_is_http=is_http(services.base_url))
    given_items = values.get("line_items", [])
    items = [_item(number, item, pictured) for number, item in enumerate(given_items)]
    body: dict[str, Any] = {
        name: values[name]
        for name in ("mode", "success_url", "cancel_url", "metadata", "client_reference_id")
        if name in values
    }
    if "line_items" in values:
        body["line_items"] = items
    bounded_metadata(values.get("metadata", {}), "metadata")  # errors then name the key as sent
    if "cancel_url" not in body and "success_url" in body:
        body["cancel_url"] = _front_page(body["success_url"])
    if language_of(values.get("locale", "")) is not None:
        body["locale"] = values["locale"]
    new = validated(CreateSession, body).new_session()
    new = replace(new, line_items=tuple(map(_with_whole_texts, new.line_items, given_items)))
    currency = values.get("currency", "").lower()
    if currency and currency != new.line_items[0].currency:
        raise CurrencyMismatch("This is not the currency of the line items.", param="currency")
    asked = collect(values)
    return replace(
        new,
        expires_at=_expires_at(values.get("expires_at"), services.clock.now()),
        echo_json=json.dumps(_echo(values), separators=(",", ":"), ensure_ascii=False),
        collect_json=asked.to_json() if asked else None,
    )


def shown(
    services: Services,
    session: Session,
    given: Parsed,
    now: datetime,
    *,
    within: str = "",
    details: CustomerDetails = NONE_GIVEN,
) -> Any:
    """Return the session at `now` with the objects that `expand` names.

    In a list, each name in `expand` begins with `within`. Responses that are stored for repeated
    requests contain no `details` of the customer.
    """
    base_url = services.base_url
    found = checkout_session(session, base_url=base_url, now=now, details=details)
    if given.expands(f"{within}line_items"):
        product = given.expands(f"{within}line_items.data.price.product")
        found["line_items"] = {
            "object": "list",
            "data": line_items(session, base_url=base_url, expand_product=product),
            "has_more": False,
            "url": f"/v1/checkout/sessions/{session.id}/line_items",
        }
    return expanded(found, SESSION, given, maker(services, session, details), within)


def session_page(
    services: Services, key: ApiKey, given: Parsed, kind: str
) -> tuple[Sequence[Session], bool, str | None]:
    """Return the sessions for a page of sessions, of payments that were made, or of charges.

    The second value is whether the request has `ending_before`. The third is the id after which the
    list continues, or None at the end of the list. With the parameter `payment_intent`, the page
    has only the session of that payment. Raises ParameterInvalid…, RateLimited, and ResourceMissing
    for an unknown id in `starting_after` or `ending_before`.
    """
    limits.admit_list(services, key.merchant)
    query = _list_query(services, key, given, kind)
    if "payment_intent" in given.values:
        return _of_payment(services, key, given.values["payment_intent"], query), query.upward, None
    found = lists.list_page(services, key, query)
    after = None
    if found.next_cursor is not None:
        after = lists.session_at(key, found.next_cursor).replace("cs_", PREFIXES[kind], 1)
    return found.sessions, query.upward, after


def _list_query(services: Services, key: ApiKey, given: Parsed, kind: str) -> ListQuery:
    """Return the flow's query for a page of objects of this `kind`.

    `created` filters charges by the time of their payment, and other objects by the creation of
    their session.
    """
    values = given.values
    limit, (low, high), charges = limit_of(values), between(values), kind == CHARGE
    query = ListQuery(
        limit=limit,
        created_from=None if charges else low,
        created_before=None if charges else high,
        paid_from=low if charges else None,
        paid_before=high if charges else None,
        statuses=_STATUSES[values.get("status", "")] if kind == SESSION else (Status.COMPLETED,),
        rounds=ROUNDS,
        rounds_if_empty=ROUNDS_IF_EMPTY,
    )
    name, anchor = anchored(values)
    if name is None:
        return query
    try:
        session = lookup.get(services, key, session_of(anchor, PREFIXES[kind]) or "")
    except ResourceMissing:
        raise ResourceMissing(f"No such {kind}: '{anchor[:100]}'", param=name) from None
    cursor = lists.cursor_behind(key, session)
    return replace(query, cursor=cursor, upward=name == "ending_before")


def anchored(values: dict[str, Any]) -> tuple[str | None, str]:
    """Return the parameter `starting_after` or `ending_before`, if given: its name and value."""
    names = [name for name in ("starting_after", "ending_before") if name in values]
    if len(names) == 2:
        raise ParameterInvalid("Give only one of the two.", param="ending_before")
    return (names[0], values[names[0]]) if names else (None, "")


def between(values: dict[str, Any]) -> tuple[datetime | None, datetime | None]:
    """Return the bounds of `created`: the first is inclusive, the second is exclusive."""
    given = values.get("created", {})
    bounds = given if isinstance(given, dict) else {"gte": given, "lte": given}
    for name, seconds in bounds.items():
        if not 0 <= seconds <= UNIX_SECONDS_MAX:
            param = "created" if bounds is not given else f"created[{name}]"
            raise ParameterInvalidInteger(time_sentence(seconds), param=param)
    lowest = [bounds[name] + more for name, more in (("gte", 0), ("gt", 1)) if name in bounds]
    highest = [bounds[name] + more for name, more in (("lt", 0), ("lte", 1)) if name in bounds]
    return (
        datetime.fromtimestamp(max(lowest), UTC) if lowest else None,
        datetime.fromtimestamp(min(highest), UTC) if highest else None,
    )


def limit_of(values: dict[str, Any]) -> int:
    """Return the maximum number of objects on a page. Raises ParameterInvalidInteger."""
    return validated(ListSessions, {"limit": str(values.get("limit", 10))}).limit


def page(items: Sequence[Object], values: dict[str, Any]) -> tuple[list[Object], bool]:
    """Return a page of the complete list, and whether more objects follow.

    With `ending_before`, those that follow are the earlier ones in the list. Raises
    ParameterInvalidInteger, ResourceMissing.
    """
    limit, ids = limit_of(values), [each["id"] for each in items]
    name, anchor = anchored(values)
    if name is not None and anchor not in ids:
        raise ResourceMissing(f"No such object: '{anchor[:100]}'", param=name)
    if name == "ending_before":
        before = list(items[: ids.index(anchor)])
        return before[-limit:], len(before) > limit
    rest = list(items[ids.index(anchor) + 1 :] if name else items)
    return rest[:limit], len(rest) > limit


def _of_payment(
    services: Services, key: ApiKey, payment: str, asked: ListQuery
) -> tuple[Session, ...]:
    """Return the session of the requested payment if the payment was made, otherwise none."""
    try:
        session = lookup.get(services, key, session_of(payment, "pi_") or "")
    except ResourceMissing:
        return ()
    wanted = asked.holds(session, services.clock.now())
    return (session,) if wanted and session.status is Status.COMPLETED else ()


def _item(
    number: int, given: dict[str, Any], pictured: Callable[[list[str]], str | None]
) -> dict[str, Any]:
    """Convert a line item to the form of the native API, with the minor units of ISO 4217."""
    where = f"line_items[{number}]"
    if "quantity" not in given:
        raise ParameterMissing("This parameter is required.", param=f"{where}[quantity]")
    price = dict(given.get("price_data", {}))
    product = dict(price.pop("product_data", {}))
    product.pop("metadata", None)
    data = f"{where}[price_data][product_data]"
    for name, longest, shown in (
        ("name", NAME_MAX, TITLE_MAX),
        ("description", DESCRIPTION_MAX, SUBTITLE_MAX),
    ):
        if name in product:
            product[name] = bounded(product[name], longest, f"{data}[{name}]").strip()[:shown]
    if picture := pictured(product.pop("images", [])):
        product["image"] = picture
    decimal = price.pop("unit_amount_decimal", None)
    if decimal is not None:
        place = f"{where}[price_data][unit_amount_decimal]"
        whole = _WHOLE.fullmatch(decimal)
        if whole is None or "unit_amount" in price:
            raise ParameterInvalid(
                "Send a whole number here, and leave out unit_amount.", param=place
            )
        price["unit_amount"] = int(whole[1])
    if "unit_amount" in price and "currency" in price:
        price["unit_amount"] = from_stripe(
            price["unit_amount"],
            price["currency"].lower(),
            param=f"{where}[price_data][unit_amount]",
        )
    return {"price_data": price | {"product_data": product}, "quantity": given["quantity"]}


def _with_whole_texts(item: LineItem, given: dict[str, Any]) -> LineItem:
    """Return the item with its texts as sent. Only the pages show shortened texts."""
    product = given["price_data"]["product_data"]
    description = product.get("description")
    return replace(item, name=product["name"].strip(), description=description)


def _picture(images: list[str], *, base_is_http: bool) -> str | None:
    """Return the first image that the page can show. Images that it cannot show are ignored."""
    for url in images:
        with suppress(UrlInvalid):
            return picture_url(url, base_is_http=base_is_http, param="images")
    return None


def _front_page(success_url: str) -> str:
    parts = split(success_url)
    return f"{parts.scheme}://{parts.authority}/"


def _expires_at(seconds: int | None, now: datetime) -> datetime | None:
    if seconds is None:
        return None
    if 0 <= seconds <= UNIX_SECONDS_MAX:
        at = datetime.fromtimestamp(seconds, UTC)
        if now + EXPIRES_FROM <= at <= now + EXPIRES_TO:
            return at
    elif seconds > UNIX_SECONDS_MAX:
        raise ParameterInvalidInteger(time_sentence(seconds), param="expires_at")
    raise ParameterInvalidInteger(
        "This must be 5 minutes to 24 hours from now, in Unix seconds.", param="expires_at"
    )


def _echo(values: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that responses repeat unchanged."""
    echo: dict[str, Any] = {}
    for name, longest in (("customer_email", EMAIL_MAX), ("submit_type", 40), ("locale", 40)):
        if name in values:
            echo[name] = bounded(values[name], longest, name)
    if "customer_email" in echo and email_of(echo["customer_email"]) is None:
        raise ParameterInvalid("This is not an e-mail address.", param="customer_email")
    if values.get("billing_address_collection") == "auto":
        echo["billing_address_collection"] = "auto"
    if "cancel_url" not in values:
        echo["no_cancel_url"] = True
    if "payment_intent_data" in values:
        data = echo["payment_intent_data"] = values["payment_intent_data"]
        bounded(data.get("description", ""), TEXT_MAX, "payment_intent_data[description]")
        bounded_metadata(data.get("metadata", {}), "payment_intent_data[metadata]")
    extras = [_extra(number, item) for number, item in enumerate(values["line_items"])]
    if any(extras):
        echo["line_items"] = extras
    return echo


def _extra(number: int, item: dict[str, Any]) -> dict[str, Any]:
    product = item["price_data"]["product_data"]
    found = {
        "images": product.get("images"),
        "product_metadata": product.get("metadata"),
        "metadata": item.get("metadata"),
    }
    where = f"line_items[{number}]"
    data = f"{where}[price_data][product_data]"
    bounded_metadata(found["product_metadata"] or {}, f"{data}[metadata]")
    bounded_metadata(found["metadata"] or {}, f"{where}[metadata]")
    images = found["images"] or []
    if len(images) > 8:
        raise ParameterInvalid("A product has at most 8 images.", param=f"{data}[images]")
    return {name: value for name, value in found.items() if value}


def bounded(value: str, longest: int, param: str) -> str:
    """Return the text. Raises ParameterInvalid if it is too long."""
    if len(value) > longest:
        raise ParameterInvalid(f"This has at most {longest} characters.", param=param)
    return value


def merged_metadata(given: Parsed, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata after an update: given keys are set, keys with an empty value removed.

    Raises ParameterInvalid if a text is too long or there are too many keys.
    """
    kept = {} if ("metadata",) in given.unset else before
    changed = bounded_metadata(given.values.get("metadata", {}), "metadata")
    gone = {path[-1] for path in given.unset if len(path) == 2}
    merged = {name: value for name, value in kept.items() if name not in gone} | changed
    if len(merged) > METADATA_KEYS_MAX:
        raise ParameterInvalid(
            f"Metadata holds at most {METADATA_KEYS_MAX} keys.", param="metadata"
        )
    return merged


def bounded_metadata(value: dict[str, str], param: str) -> dict[str, str]:
    """Return the metadata if it is within the native API's bounds. Raises ParameterInvalid."""
    if len(value) > METADATA_KEYS_MAX:
        raise ParameterInvalid(f"Metadata holds at most {METADATA_KEYS_MAX} keys.", param=param)
    for name, each in value.items():
        if not 1 <= len(name) <= METADATA_KEY_MAX:
            raise ParameterInvalid(
                f"A metadata key has 1 to {METADATA_KEY_MAX} characters.",
                param=f"{param}[{name}]"[:PARAM_MAX],
            )
        bounded(each, METADATA_VALUE_MAX, f"{param}[{name}]")
    return value
