from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkout.domain.ground.errors import (
    Conflict,
    ParameterInvalid,
    ResourceMissing,
    Unavailable,
    WebhookUnexpectedState,
)
from checkout.domain.merchant.record import Merchant
from checkout.domain.webhooks.event_types import CANCELED, COMPLETED, EXPIRED, PING
from checkout.domain.webhooks.record import (
    Delivery,
    EventStatus,
    GivenUp,
    WebhookEvent,
    given_up,
    leased,
    noted_late,
    secret_place,
)
from checkout.flows.webhooks import endpoints
from checkout.flows.webhooks.deliver import MessageResult
from checkout.flows.webhooks.endpoints import Configured, Resent
from checkout.ports import Receipt
from tests.support.basics import NOW, between
from tests.support.flows import PREFIX, World, raising
from tests.support.protected import OVERLAP_MAX
from tests.support.samples import an_event

URL = "https://shop.example/hooks"
HOUR = timedelta(hours=1)
MS = timedelta(milliseconds=1)
UNKNOWN = "mer_unknown"


def configure(world: World, url: str = URL, *events: str) -> Configured:
    return endpoints.configure(world.endpoints, world.merchant.id, url=url, events=events)


def roll(world: World, overlap: timedelta = HOUR) -> Configured:
    return endpoints.roll_secret(world.endpoints, world.merchant.id, overlap=overlap)


def secrets(world: World) -> list[str]:
    """Those in use now, in the clear."""
    place = secret_place(world.merchant.id)
    return [
        world.endpoints.vault.open(secret.sealed, place=place)
        for secret in world.endpoint().signing(world.clock.now())
    ]


# --- configure ---


def test_the_first_address_comes_with_a_secret_of_32_random_bytes(world: World) -> None:
    done = configure(world)
    assert done.secret is not None
    assert done.secret.startswith("whsec_")
    assert len(base64.b64decode(done.secret.removeprefix("whsec_"), validate=True)) == 32
    assert secrets(world) == [done.secret]
    assert (world.endpoint().url, world.endpoint().events) == (URL, ())
    assert done.merchant == world.stored()


def test_a_further_address_is_enabled_keeps_the_secrets_and_shows_none(world: World) -> None:
    old = configure(world).secret
    new = roll(world).secret
    world.endpoints.merchants.replace(world.stored().disabled(NOW))
    assert configure(world, "https://new.example/hooks", CANCELED).secret is None
    assert secrets(world) == [new, old]
    found = world.endpoint()
    assert (found.url, found.events) == ("https://new.example/hooks", (CANCELED,))
    assert found.disabled_at is None


def test_an_address_after_a_removed_one_comes_with_another_secret(world: World) -> None:
    first = configure(world)
    assert endpoints.remove(world.endpoints, world.merchant.id).endpoint is None
    assert world.stored().endpoint is None
    second = configure(world)
    assert second.secret is not None
    assert second.secret != first.secret
    assert secrets(world) == [second.secret]


def test_optional_events_are_kept_once_each_in_one_order(world: World) -> None:
    configure(world, URL, CANCELED, EXPIRED, CANCELED)
    assert world.endpoint().events == (EXPIRED, CANCELED)


@pytest.mark.parametrize("event", [COMPLETED, PING, "", "*", "checkout.session"])
def test_an_event_that_is_not_optional_is_refused_by_name(world: World, event: str) -> None:
    with pytest.raises(ParameterInvalid) as caught:
        configure(world, URL, EXPIRED, event)
    assert caught.value.param == "events"
    assert event in str(caught.value)
    assert world.stored().endpoint is None


def test_any_port_is_taken_in_development_alone(world: World) -> None:
    world.endpoints = replace(world.endpoints, allow_loopback=True)
    configure(world, "https://localhost:4101/hooks")
    assert world.endpoint().url == "https://localhost:4101/hooks"


def test_without_the_key_nothing_is_set(world: World) -> None:
    down = raising(Unavailable("The key service is not answering."))
    world.endpoints = replace(world.endpoints, vault=between(world.vault, "seal", down))
    with pytest.raises(Unavailable):
        configure(world)
    assert world.stored().endpoint is None


# --- remove, enable, roll ---


def test_enabling_changes_nothing_else(world: World) -> None:
    configure(world, URL, EXPIRED)
    before = world.endpoint()
    world.endpoints.merchants.replace(world.stored().disabled(NOW))
    endpoints.enable(world.endpoints, world.merchant.id)
    assert world.endpoint() == before


def test_without_an_overlap_the_old_secret_is_not_even_kept(world: World) -> None:
    configure(world)
    new = roll(world, timedelta(0)).secret
    assert secrets(world) == [new]
    assert len(world.endpoint().secrets) == 1


def test_no_more_than_two_secrets_sign_however_often_they_are_rolled(world: World) -> None:
    configure(world)
    rolled = [roll(world, OVERLAP_MAX).secret for _ in range(4)]
    assert secrets(world) == [rolled[-1], rolled[-2]]


@pytest.mark.parametrize("overlap", [-MS, OVERLAP_MAX + MS, timedelta.max, timedelta.min])
def test_an_overlap_out_of_bounds_is_refused_and_nothing_rolled(
    world: World, overlap: timedelta
) -> None:
    configure(world)
    before = world.stored()
    with pytest.raises(ParameterInvalid) as caught:
        roll(world, overlap)
    assert caught.value.param == "overlap"
    assert world.stored() == before


def test_rolling_keeps_the_address_its_events_and_that_it_is_disabled(world: World) -> None:
    configure(world, URL, EXPIRED)
    world.endpoints.merchants.replace(world.stored().disabled(NOW))
    roll(world)
    found = world.endpoint()
    assert (found.url, found.events, found.disabled_at) == (URL, (EXPIRED,), NOW)


# --- secrets are shown once ---


def test_a_secret_is_in_the_answer_that_made_it_and_nowhere_else(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        made = [configure(world), roll(world)]
        later = [configure(world), Configured(world.stored(), world.endpoint())]
    for done in made:
        assert done.secret is not None
        bare = done.secret.removeprefix("whsec_")
        rows = repr(world.dynamo.rows(f"{PREFIX}-merchants"))
        assert bare not in caplog.text + repr(made) + repr(later) + rows
    assert [done.secret for done in later] == [None, None]
    assert made[0].secret != made[1].secret


# --- what there must be ---

Call = Callable[[World, str], object]
CALLS: dict[str, Call] = {
    "configure": lambda w, m: endpoints.configure(w.endpoints, m, url=URL, events=()),
    "remove": lambda w, m: endpoints.remove(w.endpoints, m),
    "enable": lambda w, m: endpoints.enable(w.endpoints, m),
    "roll_secret": lambda w, m: endpoints.roll_secret(w.endpoints, m, overlap=HOUR),
    "ping": lambda w, m: endpoints.ping(w.endpoints, m),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_unknown_merchant_is_missing(world: World, name: str) -> None:
    with pytest.raises(ResourceMissing):
        CALLS[name](world, UNKNOWN)
    assert world.endpoints.merchants.get(UNKNOWN) is None


@pytest.mark.parametrize("name", ["enable", "roll_secret", "ping"])
def test_without_an_endpoint_there_is_nothing_to_do_that_with(world: World, name: str) -> None:
    with pytest.raises(WebhookUnexpectedState, match="No webhook endpoint"):
        CALLS[name](world, world.merchant.id)
    assert world.stored().version == 1
    assert world.events() == []


# --- races ---


def contended(world: World, races: int, change: Callable[[Merchant], Merchant]) -> None:
    """Somebody else's `change` comes before each of the next `races` writes of the merchant."""
    merchants = world.endpoints.merchants

    def meanwhile() -> None:
        merchants.replace(change(world.stored()))

    racing = between(merchants, "replace", meanwhile, times=races)
    world.endpoints = replace(world.endpoints, merchants=racing)


@pytest.mark.parametrize("name", ["configure", "remove", "enable", "roll_secret"])
def test_a_loser_decides_anew_and_keeps_what_the_winner_changed(world: World, name: str) -> None:
    configure(world)
    contended(world, 4, lambda merchant: merchant.changed(name=merchant.name + "!"))
    CALLS[name](world, world.merchant.id)
    assert world.stored().name == "Shop!!!!"
    assert world.stored().version == 7


@pytest.mark.parametrize("name", ["configure", "remove", "enable", "roll_secret"])
def test_who_always_loses_says_busy_and_changes_nothing(world: World, name: str) -> None:
    configure(world)
    before = world.endpoint()
    contended(world, 5, lambda merchant: merchant.changed(name=merchant.name + "!"))
    with pytest.raises(Conflict):
        CALLS[name](world, world.merchant.id)
    assert world.endpoint() == before


def test_of_two_first_addresses_one_makes_the_secret_and_only_that_one_is_shown(
    world: World,
) -> None:
    shown: list[str | None] = []

    def meanwhile(merchant: Merchant) -> Merchant:
        shown.append(configure(other, "https://other.example/").secret)
        return world.stored().changed()

    other = World()
    other.endpoints, other.merchant = world.endpoints, world.merchant
    contended(world, 1, meanwhile)
    shown.append(configure(world).secret)
    assert [secret is None for secret in shown] == [False, True]
    assert secrets(world) == shown[:1]
    assert world.endpoint().url == URL


def test_an_endpoint_that_is_removed_meanwhile_is_not_rolled_or_enabled(world: World) -> None:
    configure(world)
    contended(world, 1, lambda merchant: merchant.changed(endpoint=None))
    with pytest.raises(WebhookUnexpectedState):
        roll(world)
    assert world.stored().endpoint is None


# --- ping ---


def test_a_test_event_says_that_it_is_one_and_is_delivered_like_any(world: World) -> None:
    configure(world)
    event = endpoints.ping(world.endpoints, world.merchant.id)
    assert (event.type, event.session) == (PING, None)
    assert world.queue.messages == [event.id]
    assert world.event(event.id) == event
    assert world.deliver_hinted() == [MessageResult.DELIVERED]
    [(url, headers, body)] = world.receivers.got
    assert (url, headers["Checkout-Event-Type"]) == (URL, PING)
    said = json.loads(body)
    assert (said["id"], said["status"], said["metadata"]) == (event.id, PING, {"test": True})


# --- sending again ---


def exhausted(world: World, event_id: str = "evt_1", **changes: Any) -> WebhookEvent:
    event = an_event(id=event_id, merchant=world.merchant.id, **changes)
    event = given_up(event, GivenUp.ATTEMPTS, now=event.created_at)
    world.services.events.add(event)
    return event


def resend(world: World, event_id: str = "evt_1") -> WebhookEvent:
    return endpoints.resend(world.endpoints, world.merchant.id, event_id)


def test_a_given_up_event_is_sent_again_with_the_same_bytes(world: World) -> None:
    configure(world)
    before = exhausted(world)
    world.clock.pass_time(3600)
    again = resend(world)
    assert (again.status, again.attempts, again.next_at) == (EventStatus.PENDING, 0, NOW + HOUR)
    assert world.event("evt_1") == again
    assert world.deliver_hinted() == [MessageResult.DELIVERED]
    assert world.receivers.got[0][2] == before.body.encode()


def test_a_delivered_event_is_sent_again_too_with_its_own_id(world: World) -> None:
    configure(world)
    event = endpoints.ping(world.endpoints, world.merchant.id)
    world.deliver_hinted()
    resend(world, event.id)
    world.deliver_hinted()
    assert [headers["webhook-id"] for _, headers, _ in world.receivers.got] == [event.id] * 2
    assert len(world.event(event.id).deliveries) == 2


def test_an_event_that_waits_for_its_next_attempt_is_sent_again_at_once(world: World) -> None:
    configure(world)
    world.receivers.answers = [Receipt(status=500)]
    event = endpoints.ping(world.endpoints, world.merchant.id)
    assert world.deliver_hinted() == [MessageResult.FAILED]
    world.queue.messages.clear()
    again = resend(world, event.id)
    assert (again.attempts, again.next_at, len(again.deliveries)) == (0, world.clock.now(), 1)
    with pytest.raises(WebhookUnexpectedState, match="still"):
        resend(world, event.id)
    assert world.queue.messages == [event.id]


def test_an_event_whose_attempt_is_being_made_is_not_sent_again(world: World) -> None:
    configure(world)
    event = endpoints.ping(world.endpoints, world.merchant.id)
    world.services.events.save(leased(event, world.clock.now(), writer="w"))
    with pytest.raises(WebhookUnexpectedState, match="still"):
        resend(world, event.id)


def before_saving(world: World, meanwhile: Callable[[], object], *, times: int = 1) -> None:
    events = between(world.endpoints.events, "save", meanwhile, times=times)
    world.endpoints = replace(world.endpoints, events=events)


@pytest.mark.parametrize("milliseconds", [0, 1])
def test_two_who_send_it_again_at_once_begin_one_round(world: World, milliseconds: int) -> None:
    configure(world)
    exhausted(world)
    other = world.endpoints

    def meanwhile() -> None:
        world.clock.pass_time(-milliseconds / 1000)
        endpoints.resend(other, world.merchant.id, "evt_1")
        world.clock.pass_time(milliseconds / 1000)

    before_saving(world, meanwhile)
    assert resend(world).status is EventStatus.PENDING
    assert world.event("evt_1").version == 3
    world.deliver_hinted()
    assert len(world.receivers.got) == 1


def test_a_late_note_meanwhile_does_not_keep_it_from_being_sent_again(world: World) -> None:
    configure(world)
    event = exhausted(world, deliveries=(Delivery(NOW),))
    note = noted_late(event, Delivery(NOW, 31_000, 500), now=NOW)
    before_saving(world, lambda: world.services.events.save(note))
    again = resend(world)
    assert (again.status, again.attempts) == (EventStatus.PENDING, 0)
    assert again.deliveries[0].status == 500
    assert world.queue.messages == ["evt_1"]


def test_an_event_that_never_rests_is_busy(world: World) -> None:
    configure(world)
    exhausted(world)

    def moved() -> None:
        event = world.event("evt_1")
        world.services.events.save(replace(event, version=event.version + 1))

    before_saving(world, moved, times=5)
    with pytest.raises(Conflict):
        resend(world)
    assert world.queue.messages == []


def test_all_failed_since_a_time_are_sent_again_and_nothing_else(world: World) -> None:
    configure(world)
    for number in range(4):
        exhausted(world, f"evt_{number}", created_at=NOW + number * MS)
    world.services.events.add(
        replace(an_event(id="evt_theirs", created_at=NOW + HOUR), status=EventStatus.EXHAUSTED)
    )
    delivered = endpoints.ping(world.endpoints, world.merchant.id)
    world.deliver_hinted()
    pending = an_event(id="evt_pending", merchant=world.merchant.id, created_at=NOW + HOUR)
    world.services.events.add(pending)
    done = endpoints.resend_failed(world.endpoints, world.merchant.id, since=NOW + 2 * MS)
    assert done == Resent(2, None)
    assert sorted(world.queue.messages) == ["evt_2", "evt_3"]
    assert world.event("evt_1").status is EventStatus.EXHAUSTED
    assert world.event("evt_theirs").status is EventStatus.EXHAUSTED
    assert world.event("evt_pending") == pending
    assert world.event(delivered.id).status is EventStatus.DELIVERED


def test_nothing_failed_is_no_error(world: World) -> None:
    assert endpoints.resend_failed(world.endpoints, UNKNOWN, since=NOW) == Resent(0, None)
