"""The merchant's webhook endpoint under /v1, which the dashboard's function serves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
import stripe
from stripe.params import _webhook_endpoint_create_params

from api.v1.endpoints import STRIPE_EVENTS
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.record import Merchant
from checkout.domain.webhooks.event_types import CANCELED, EVENTS, EXPIRED, OPTIONAL
from checkout.domain.webhooks.record import Endpoint, Format
from checkout.flows.webhooks import endpoints
from tests.support.basics import NOW
from tests.support.merchant_api import Answer
from tests.support.stripe_api import ENDPOINTS, StripeApi

URL = "https://shop.example/hooks"
WANTED = {"url": URL, "enabled_events": ["checkout.session.completed", "checkout.session.expired"]}
ALWAYS = ["checkout.session.completed", "checkout.session.late_payment"]


def stripes_own_types() -> set[str]:
    """Return the types that Stripe's own library has for `enabled_events`."""
    params = _webhook_endpoint_create_params.WebhookEndpointCreateParams
    [one_of] = get_args(params.__annotations__["enabled_events"])
    return set(get_args(one_of)) - {"*"}


def merchant(api: StripeApi) -> Merchant:
    found = api.services.merchants.get("mer_1")
    assert found is not None
    return found


def stored(api: StripeApi) -> Endpoint:
    """Return the first endpoint."""
    found = merchant(api).endpoint
    assert found is not None
    return found


def wanted(endpoint: Endpoint) -> set[str]:
    return {each for each in EVENTS if endpoint.wants(each)}


def asked(api: StripeApi, form: str, *types: str) -> Answer:
    """Ask for an endpoint of these types in this form."""
    sent = {"url": URL, "enabled_events": list(types), "format": form}
    return api.manage("POST", ENDPOINTS, sent)


def created(api: StripeApi, **more: Any) -> dict[str, Any]:
    answer = api.manage("POST", ENDPOINTS, WANTED | more)
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.json
    return found


def test_an_endpoint_is_created_read_changed_and_deleted(api: StripeApi) -> None:
    assert api.manage("GET", ENDPOINTS).json["data"] == []
    made = created(api, description="Till", metadata={"a": "1"})
    secret = made.pop("secret")
    assert secret.startswith("whsec_")
    assert made == {
        "id": made["id"],
        "object": "webhook_endpoint",
        "api_version": "2026-10-28.endive",
        "application": None,
        "created": int(NOW.timestamp()),
        "description": "Till",
        "enabled_events": WANTED["enabled_events"],
        "livemode": True,
        "metadata": {"a": "1"},
        "open_payments": {"format": "stripe"},
        "status": "enabled",
        "url": URL,
    }
    path = f"{ENDPOINTS}/{made['id']}"
    assert api.manage("GET", path).json == made
    assert api.manage("GET", ENDPOINTS).json["data"] == [made]
    assert (stored(api).format, stored(api).events) == (Format.STRIPE, (EXPIRED, CANCELED))
    changed = api.manage(
        "POST", path, {"enabled_events": ["*"], "disabled": True, "format": "native"}
    ).json
    assert (changed["status"], changed["url"]) == ("disabled", URL)
    assert changed["open_payments"] == {"format": "native"}
    assert changed["enabled_events"] == ["*"]
    assert "secret" not in changed
    assert stored(api).events == OPTIONAL
    assert changed["description"] == "Till"
    unset = api.manage("POST", path, {"description": ""}).json
    assert unset == changed | {"description": None}, "and its metadata is as it was"
    enabled = api.manage("POST", path, {"disabled": False, "url": "https://shop.example/new"}).json
    assert (enabled["status"], enabled["url"]) == ("enabled", "https://shop.example/new")
    gone = {"id": made["id"], "object": "webhook_endpoint", "deleted": True}
    assert api.manage("DELETE", path).json == gone
    assert merchant(api).endpoint is None
    assert api.manage("GET", path).status == 404
    entries = api.managing.audit.page("mer_1", limit=9, after=None).records
    assert [each.action for each in entries].count(Action.WEBHOOK_SET) == 4
    removed = [each.target for each in entries if each.action is Action.WEBHOOK_REMOVED]
    assert removed == ["https://shop.example/new"]


# The set-up requests of two platforms, of the newest and of before, as their sources send them. For
# one, whose source was not at hand, the line above it says where it comes from.
SUBSCRIPTIONS = ["customer.subscription.created", "customer.subscription.updated",
                 "customer.subscription.deleted"]  # fmt: skip
SESSION_TYPES = ["checkout.session.completed", "checkout.session.async_payment_succeeded",
                 "checkout.session.async_payment_failed"]  # fmt: skip
CUSTOMERS = ["customer.updated", "customer.deleted"]
OF_CASHIER = "https://shop.example/stripe/webhook"
OF_MOODLE = "https://moodle.example/payment/gateway/stripe/webhook.php"
SET_UPS: dict[str, dict[str, Any]] = {
    # laravel/cashier-stripe: `handle` of src/Console/WebhookCommand.php, commit 12b32dd. Its
    # version is `STRIPE_VERSION` of src/Cashier.php, commit 5eddb87 (Cashier 12.15).
    "cashier": {
        "enabled_events": [
            *SUBSCRIPTIONS, *CUSTOMERS,
            "invoice.payment_action_required", "invoice.payment_succeeded",
        ],
        "url": OF_CASHIER,
        "api_version": "2020-03-02",
    },
    # Later ones take the types from their configuration. These are from an application's cached
    # configuration and a port of Cashier to TypeScript: Cashier's own file was not at hand.
    "cashier, configured": {
        "enabled_events": [
            *SUBSCRIPTIONS, *CUSTOMERS, "payment_method.automatically_updated",
            "invoice.payment_action_required", "invoice.payment_succeeded",
        ],
        "url": OF_CASHIER,
        "api_version": "2023-10-16",
    },
    # alexmorrisnz/moodle-paygw_stripe 2026081800: `create_webhook` of
    # classes/local/service/webhook_service.php, commit ea2c283. The version is `$apiversion` of
    # classes/stripe_helper.php, commit 06d4cab.
    "moodle": {
        "url": OF_MOODLE,
        "enabled_events": [
            *SESSION_TYPES, "customer.subscription.deleted", "customer.subscription.updated",
        ],
        "api_version": "2026-07-29.dahlia",
    },
}  # fmt: skip


@pytest.mark.parametrize("platform", SET_UPS)
def test_a_platform_that_sets_itself_up_gets_what_it_asked_for(
    api: StripeApi, platform: str
) -> None:
    sent = SET_UPS[platform]
    made = api.manage("POST", ENDPOINTS, sent)
    assert made.status == 200
    assert made.json["enabled_events"] == sent["enabled_events"]
    assert made.json["api_version"] == sent.get("api_version", "2026-10-28.endive")
    never = sum(each != "checkout.session.completed" for each in sent["enabled_events"])
    assert len(made.headers["ignored-parameters"].split(", ")) == never
    path = f"{ENDPOINTS}/{made.json['id']}"
    # Cashier with `--disabled`; Moodle before each payment.
    assert api.manage("POST", path, {"disabled": True}).json["status"] == "disabled"
    assert api.manage("GET", path).json["enabled_events"] == sent["enabled_events"]
    assert api.manage("POST", path, {"metadata": {"a": "1", "b": "2"}}).json["metadata"]["a"] == "1"
    merged = api.manage("POST", path, {"metadata": {"a": "", "c": "3"}}).json["metadata"]
    assert merged == {"b": "2", "c": "3"}
    assert api.manage("DELETE", path).json["deleted"] is True


def test_the_request_by_which_stripe_ruby_deletes_an_endpoint(api: StripeApi) -> None:
    """As `WebhookEndpoint#delete` sends it: the gem itself is run where it can be had.

    stripe/stripe-ruby: lib/stripe/resources/webhook_endpoint.rb, commit 01bada6, and
    `request_headers` of lib/stripe/api_requestor.rb, commit 0375fa3. Before, it takes the path's
    id from the object, by Kernel#format, which no field of the object may hide.
    """
    made = created(api)
    assert set(made) & {"format", "method", "send", "keys", "values", "each", "delete"} == set()
    headers = {
        "User-Agent": "Stripe/v1 RubyBindings/19.5.0",
        "Idempotency-Key": "6f1c8a34-9c9c-4f4e-8f0b-0f5a5f2a7d11",
        "Stripe-Version": "2026-10-28.endive",
        "X-Stripe-Client-User-Agent": '{"bindings_version":"19.5.0","lang":"ruby"}',
    }
    path = f"{ENDPOINTS}/{made['id']}"
    gone = api.manage("DELETE", path, headers=headers)
    assert (gone.status, gone.json["deleted"]) == (200, True)
    assert api.manage("DELETE", path, headers=headers).status == 404


def test_eight_endpoints_are_the_most_and_each_is_read_changed_and_deleted_by_its_id(
    api: StripeApi,
) -> None:
    made = [created(api, url=f"{URL}/{number}") for number in range(8)]
    assert len({each["secret"] for each in made}) == 8
    more = api.manage("POST", ENDPOINTS, WANTED)
    assert (more.status, more.code) == (400, "webhook_unexpected_state")
    assert "8" in more.json["error"]["message"]
    ids = [each["id"] for each in made]
    shown = api.manage("GET", ENDPOINTS, {"limit": "3"}).json
    assert [each["id"] for each in shown["data"]] == ids[:-4:-1]
    assert shown["has_more"]
    path = f"{ENDPOINTS}/{ids[3]}"
    assert api.manage("POST", path, {"disabled": True}).json["status"] == "disabled"
    assert api.manage("GET", path).json["url"] == f"{URL}/3"
    others = [api.manage("GET", f"{ENDPOINTS}/{each}").json["status"] for each in ids[:3]]
    assert set(others) == {"enabled"}
    assert api.manage("DELETE", f"{ENDPOINTS}/{ids[0]}").status == 200
    left = api.manage("GET", ENDPOINTS).json["data"]
    assert [each["id"] for each in left] == ids[:0:-1]
    assert merchant(api).endpoint is None, "the first one is gone, and no other takes its place"
    assert created(api)["id"] not in ids


def test_a_repeated_creation_gets_the_secret_again_and_stores_none_in_the_clear(
    api: StripeApi,
) -> None:
    header = {"Idempotency-Key": "setup-1"}
    first = api.manage("POST", ENDPOINTS, WANTED, header)
    again = api.manage("POST", ENDPOINTS, WANTED, header)
    assert (again.status, again.body) == (200, first.body)
    assert again.headers["idempotent-replayed"] == "true"
    assert first.json["secret"] not in str(api.rows("idempotency_keys"))
    path = f"{ENDPOINTS}/{first.json['id']}"
    other = api.manage("POST", path, {"description": "x"}, header)
    assert other.code == "idempotency_key_reused"
    fresh = {"Idempotency-Key": "change-1"}
    changed = api.manage("POST", path, {"disabled": True}, fresh)
    api.manage("DELETE", path)
    assert api.manage("POST", path, {"disabled": True}, fresh).body == changed.body


@pytest.mark.parametrize(
    ("values", "code", "param"),
    [
        ({"enabled_events": ["*"]}, "parameter_missing", "url"),
        ({"url": URL}, "parameter_missing", "enabled_events"),
        (WANTED | {"url": "http://shop.example"}, "url_invalid", "url"),
        (WANTED | {"url": "https://inside.example"}, "url_invalid", "url"),
        (WANTED | {"enabled_events": ["x"]}, "parameter_invalid", "enabled_events[0]"),
        (WANTED | {"connect": True}, "parameter_invalid", "connect"),
        (WANTED | {"api_version": "newest"}, "parameter_invalid", "api_version"),
        (WANTED | {"description": "x" * 501}, "parameter_invalid", "description"),
        (WANTED | {"disabled": True}, "parameter_unknown", "disabled"),
    ],
)
def test_what_cannot_be_set_is_refused(
    api: StripeApi, values: dict[str, Any], code: str, param: str
) -> None:
    refused = api.manage("POST", ENDPOINTS, values)
    assert (refused.status, refused.code) == (400, code)
    assert refused.json["error"]["param"] == param
    assert merchant(api).endpoint is None


@pytest.mark.parametrize("form", ["stripe", "native"])
def test_each_type_of_stripes_can_be_asked_for_and_is_given_back(api: StripeApi, form: str) -> None:
    types = sorted(stripes_own_types())
    assert len(types) > 250
    for start in range(0, len(types), 100):
        some = types[start : start + 100]
        assert created(api, enabled_events=some, format=form)["enabled_events"] == some


def test_a_type_that_never_happens_is_named_as_ignored(api: StripeApi) -> None:
    types = ["invoice.paid", "checkout.session.completed", "checkout.session.async_payment_failed"]
    answer = api.manage("POST", ENDPOINTS, WANTED | {"enabled_events": types})
    assert answer.headers["ignored-parameters"] == "enabled_events[0], enabled_events[2]"


def test_the_list_of_types_is_stripes() -> None:
    assert stripes_own_types() == STRIPE_EVENTS


def test_no_field_of_ours_hides_a_method_of_a_library(api: StripeApi) -> None:
    """Ruby makes a method of each field: `format` hid its own, and nothing could be deleted."""
    ours = set(created(api)) - {"secret"} - set(stripe.WebhookEndpoint.__annotations__)
    assert ours == {"open_payments"}


def test_the_dashboards_choice_replaces_what_was_asked_for_by_api(api: StripeApi) -> None:
    created(api, enabled_events=["charge.refunded"])
    endpoints.configure(api.managing, "mer_1", url=URL, events=(EXPIRED,))
    assert stored(api).asked is None
    assert stored(api).wants("checkout.session.completed")


def test_a_change_of_what_is_not_there_is_refused(api: StripeApi) -> None:
    for method in ("GET", "POST", "DELETE"):
        answer = api.manage(method, f"{ENDPOINTS}/we_x")
        assert (answer.status, answer.code) == (404, "resource_missing")
    path = f"{ENDPOINTS}/{created(api)['id']}"
    assert api.manage("POST", path, {"disabled": "maybe"}).json["error"]["param"] == "disabled"
    assert api.manage("POST", path, {"url": "https://inside.example"}).code == "url_invalid"


def test_the_dashboards_endpoint_is_the_same_and_keeps_its_id(api: StripeApi) -> None:
    done = endpoints.configure(api.managing, "mer_1", url=URL, events=())
    shown = api.manage("GET", ENDPOINTS).json["data"]
    assert [(each["open_payments"]["format"], each["enabled_events"]) for each in shown] == [
        ("native", ALWAYS)
    ]
    changed = endpoints.configure(
        api.managing, "mer_1", url=URL, events=(EXPIRED,), more={"format": Format.STRIPE}
    )
    assert changed.secret is None
    assert done.merchant.endpoint is not None
    assert stored(api).id == done.merchant.endpoint.id == shown[0]["id"]


def test_an_event_of_a_later_release_that_an_endpoint_asked_for_is_shown_and_kept(
    api: StripeApi,
) -> None:
    endpoints.configure(api.managing, "mer_1", url=URL, events=(EXPIRED,))
    later = replace(stored(api), events=(EXPIRED, "checkout.session.refunded"))
    api.services.merchants.replace(merchant(api).changed(endpoint=later))
    [shown] = api.manage("GET", ENDPOINTS).json["data"]
    assert shown["enabled_events"] == [*ALWAYS, EXPIRED, "checkout.session.refunded"]
    moved = api.manage("POST", f"{ENDPOINTS}/{shown['id']}", {"url": f"{URL}/2"})
    assert moved.json["enabled_events"] == shown["enabled_events"]


def test_the_pages_are_still_served_beside_it(api: StripeApi) -> None:
    assert api.manage("GET", "/v1/checkout").status == 404
    answer = api.manage("GET", "/v1/webhook_endpoints", headers={"Authorization": "Bearer x"})
    assert (answer.status, answer.code) == (401, "api_key_invalid")


@pytest.mark.parametrize("name", ["checkout.session.canceled", "checkout.session.payment_failed"])
def test_a_native_endpoint_asks_for_types_by_their_native_names(api: StripeApi, name: str) -> None:
    made = asked(api, "native", name)
    assert made.json["enabled_events"] == [name]
    assert "ignored-parameters" not in made.headers
    assert wanted(stored(api)) == {name}


def test_types_that_only_stripes_form_has_are_ignored_for_a_native_endpoint(api: StripeApi) -> None:
    types = ["payment_intent.succeeded", "checkout.session.expired"]
    made = asked(api, "native", *types)
    assert made.headers["ignored-parameters"] == "enabled_events[0]"
    path = f"{ENDPOINTS}/{made.json['id']}"
    changed = api.manage("POST", path, {"enabled_events": types[:1]})  # it is still a native one
    assert changed.headers["ignored-parameters"] == "enabled_events[0]"
    changed = api.manage("POST", path, {"enabled_events": types[:1], "format": "stripe"})
    assert "ignored-parameters" not in changed.headers


def test_a_native_endpoint_from_before_gets_what_stripes_names_meant(api: StripeApi) -> None:
    created(api, enabled_events=["checkout.session.expired"])  # in Stripe's form: both ends
    assert wanted(replace(stored(api), format=Format.NATIVE)) == {EXPIRED, CANCELED}


def test_an_endpoint_keeps_its_events_when_its_form_changes(api: StripeApi) -> None:
    created(api, enabled_events=[CANCELED], format="native")
    [shown] = api.manage("GET", ENDPOINTS).json["data"]
    api.manage("POST", f"{ENDPOINTS}/{shown['id']}", {"format": "stripe"})
    assert wanted(stored(api)) == {CANCELED}


def test_a_native_endpoint_of_the_dashboard_is_shown_with_native_names(api: StripeApi) -> None:
    endpoints.configure(api.managing, "mer_1", url=URL, events=(CANCELED,))
    [shown] = api.manage("GET", ENDPOINTS).json["data"]
    assert shown["enabled_events"] == [*ALWAYS, CANCELED]


@pytest.mark.parametrize(
    ("form", "name", "cure"),
    [
        ("stripe", "checkout.session.complete", "no such type. Did you mean `checkout.session.com"),
        ("native", "checkout.session.cancelled", "Did you mean `checkout.session.canceled`?"),
        ("stripe", "checkout.session.canceled", "this type is called `checkout.session.expired`."),
        ("native", "ping", "you send it yourself"),
        ("stripe", "zzz", "There is no such type. In the format `stripe`, these are sent: c"),
    ],
)
def test_a_type_that_is_none_is_answered_with_the_name_that_was_meant(
    api: StripeApi, form: str, name: str, cure: str
) -> None:
    error = asked(api, form, name).json["error"]
    assert (error["code"], error["param"]) == ("parameter_invalid", "enabled_events[0]")
    assert cure in error["message"]
