"""The payments and charges of /v1, as Stripe's client libraries read them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import stripe

from checkout.domain.session.record import Session, Status
from tests.support.basics import NOW
from tests.support.samples import PAID
from tests.support.stripe_api import (
    CHARGES,
    PAYMENTS,
    SESSIONS,
    StripeApi,
    ask,
    ids,
    payment,
    refused,
    several,
)

UNIX = int(NOW.timestamp())


def charge(session: Session) -> str:
    return session.id.replace("cs_", "ch_")


def retrieved(api: StripeApi, session: Session, **query: Any) -> Any:
    answer = api.ask(f"{PAYMENTS}/{payment(session)}", query)
    assert answer.status == 200
    return answer.json


def test_a_payment_that_was_made_names_its_charge(api: StripeApi) -> None:
    session = api.store(**PAID)
    found = retrieved(api, session)
    assert (found["status"], found["amount"], found["amount_received"]) == ("succeeded", 2000, 2000)
    assert (found["latest_charge"], found["canceled_at"]) == (charge(session), None)
    assert found["open_payments"] == {"session": session.id, "problem": None}


def test_its_charge_tells_what_was_refunded(api: StripeApi) -> None:
    session = api.store(**PAID)
    for amount, whole in ((500, False), (1500, True)):
        ask(api, session, amount=amount)
        found = retrieved(api, session, expand=["latest_charge"])["latest_charge"]
        assert found == api.ask(f"{CHARGES}/{charge(session)}").json
        assert (found["amount"], found["refunded"]) == (2000, whole)
    assert found["amount_refunded"] == 2000
    in_session = api.ask(
        f"{SESSIONS}/{session.id}", {"expand": ["payment_intent", "payment_intent.latest_charge"]}
    )
    assert in_session.json["payment_intent"]["latest_charge"] == found


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        (Status.OPEN, "requires_payment_method"),
        (Status.PREPARING, "requires_payment_method"),
        (Status.AWAITING_APPROVAL, "requires_action"),
        (Status.PROCESSING, "processing"),
        (Status.EXPIRED, "canceled"),
        (Status.CANCELED, "canceled"),
    ],
)
def test_a_payment_that_was_not_made_says_how_it_stands(
    api: StripeApi, status: Status, shown: str
) -> None:
    session = api.store(status=status, lease_until=NOW + timedelta(minutes=1))
    found = retrieved(api, session)
    assert (found["status"], found["amount_received"]) == (shown, 0)
    assert (found["latest_charge"], found["canceled_at"] is not None) == (None, shown == "canceled")
    assert refused(api.ask(f"{CHARGES}/{charge(session)}"), 404)[0] == "resource_missing"
    assert api.ask(PAYMENTS).json["data"] == api.ask(CHARGES).json["data"] == []
    assert api.ask(CHARGES, {"payment_intent": payment(session)}).json["data"] == []


def test_a_session_that_ran_out_has_a_payment_that_was_canceled_then(api: StripeApi) -> None:
    session = api.store()
    api.clock.pass_time(30 * 3600)
    found = retrieved(api, session)
    assert found["canceled_at"] == int(session.expires_at.timestamp())


@pytest.mark.parametrize(("path", "kind"), [(PAYMENTS, "pi_"), (CHARGES, "ch_")])
def test_they_are_listed_in_pages_as_they_are_read_one_by_one(
    api: StripeApi, path: str, kind: str
) -> None:
    made = [each.replace("cs_", kind) for each in several(api, 3, **PAID)]
    several(api, 3)  # open ones
    first = api.ask(path, {"limit": 2})
    assert (ids(first), first.json["has_more"], first.json["url"]) == (made[:2], True, path)
    assert first.json["data"] == [api.ask(f"{path}/{each}").json for each in made[:2]]
    rest = api.ask(path, {"starting_after": made[1]})
    assert (ids(rest), rest.json["has_more"]) == (made[2:], False)
    assert ids(api.ask(path, {"ending_before": made[1]})) == made[:1]


def test_the_charge_of_a_payment_is_listed_with_the_payment_if_it_is_expanded(
    api: StripeApi,
) -> None:
    session, _ = api.store(**PAID), api.store(**PAID)
    name = "data.payment_intent"
    for expand, whole in (([name], False), ([f"{name}.latest_charge"], True)):
        asked = {"payment_intent": payment(session), "expand": expand}
        (found,) = api.ask(CHARGES, asked).json["data"]
        assert (found["id"], found["payment_intent"]["id"]) == (charge(session), payment(session))
        of_payment = found["payment_intent"]["latest_charge"]
        assert (of_payment["id"] if whole else of_payment) == charge(session)


def test_charges_are_listed_by_the_time_at_which_they_were_made(api: StripeApi) -> None:
    """What `created` of a charge says; the sessions are a day older, or made in another order."""
    made = []
    for number, late in enumerate((0, 86_000, 10, 0)):
        at = api.clock.now() + timedelta(seconds=number)
        lasted = {"completed_at": at + timedelta(seconds=late)}
        made.append(charge(api.store(**PAID, created_at=at, **lasted)))
    times = [api.ask(f"{CHARGES}/{each}").json["created"] - UNIX for each in made]
    assert times == [0, 86_001, 12, 3]
    for asked, found in (
        ({"gte": 0}, [3, 2, 1, 0]),
        ({"gt": 0}, [3, 2, 1]),
        ({"gte": 12}, [2, 1]),
        ({"gt": 12}, [1]),
        ({"lte": 12}, [3, 2, 0]),
        ({"lt": 12}, [3, 0]),
        ({"gte": 3, "lt": 13}, [3, 2]),
        ({"gte": 86_002}, []),
    ):
        created = {name: UNIX + bound for name, bound in asked.items()}
        wanted = [made[each] for each in found]
        assert ids(api.ask(CHARGES, {"created": created})) == wanted, asked
        for anchor, each in enumerate(wanted):
            one: dict[str, Any] = {"created": created, "limit": 1, "starting_after": each}
            page = api.ask(CHARGES, one)
            assert ids(page) == wanted[anchor + 1 : anchor + 2]
            assert page.json["has_more"] is (len(wanted) > anchor + 2)
            before = api.ask(CHARGES, {"created": created, "ending_before": each})
            assert ids(before) == wanted[:anchor]
    assert ids(api.ask(CHARGES, {"created": UNIX + 12})) == [made[2]]
    of_one: dict[str, Any] = {"payment_intent": made[2].replace("ch_", "pi_")}
    assert ids(api.ask(CHARGES, of_one | {"created": {"gte": UNIX + 12}})) == [made[2]]
    assert ids(api.ask(CHARGES, of_one | {"created": {"gte": UNIX + 13}})) == []
    for begun, many in ((UNIX + 2, 1), (UNIX + 3, 0)):
        assert len(ids(api.ask(SESSIONS, of_one | {"created": {"gte": begun}}))) == many


@pytest.mark.parametrize("wrong", ["x", "pi_x", "cs_" + "1" * 22, "ch_" + "1" * 22])
def test_an_id_of_another_kind_is_not_found(api: StripeApi, wrong: str) -> None:
    assert refused(api.ask(f"{PAYMENTS}/{wrong}"), 404)[0] == "resource_missing"
    assert refused(api.ask(f"{CHARGES}/{wrong}"), 404)[0] == "resource_missing"
    for path in (PAYMENTS, CHARGES):
        answer = api.ask(path, {"starting_after": wrong})
        assert refused(answer, 404) == ("resource_missing", "starting_after")
    assert api.ask(CHARGES, {"payment_intent": wrong}).json["data"] == []


def test_another_merchants_payment_is_not_found(api: StripeApi) -> None:
    session = api.store(**PAID, merchant="mer_2")
    assert refused(api.ask(f"{PAYMENTS}/{payment(session)}"), 404)[0] == "resource_missing"
    assert refused(api.ask(f"{CHARGES}/{charge(session)}"), 404)[0] == "resource_missing"
    assert api.ask(CHARGES).json["data"] == []
    assert api.ask(CHARGES, {"payment_intent": payment(session)}).json["data"] == []
    answer = api.ask(CHARGES, {"starting_after": charge(session)})
    assert refused(answer, 404) == ("resource_missing", "starting_after")


def test_what_stripe_expands_may_be_expanded_and_nothing_else(api: StripeApi) -> None:
    session = api.store(**PAID)
    one, other = f"{PAYMENTS}/{payment(session)}", f"{CHARGES}/{charge(session)}"
    for path, name in (
        (one, "amount"),
        (other, "amount"),
        (PAYMENTS, "customer"),
        (CHARGES, "payment_intent"),
    ):
        answer = api.ask(path, {"expand": [name]})
        assert refused(answer) == ("parameter_invalid", "expand[0]")
    deep = api.ask(one, {"expand": ["latest_charge.failure_balance_transaction"]}).json
    assert deep["latest_charge"]["failure_balance_transaction"] is None
    whole = api.ask(other, {"expand": ["payment_intent.latest_charge"]}).json["payment_intent"]
    assert (whole["id"], whole["latest_charge"]["id"]) == (payment(session), charge(session))
    listed = api.ask(PAYMENTS, {"expand": ["data.customer", "data.latest_charge"]}).json["data"]
    assert listed[0]["latest_charge"]["id"] == charge(session)


@pytest.mark.parametrize("kind", [stripe.PaymentIntent, stripe.Charge])
def test_each_field_that_stripes_library_always_reads_is_there(api: StripeApi, kind: Any) -> None:
    session = api.store(**PAID)
    path = PAYMENTS if kind is stripe.PaymentIntent else CHARGES
    named = payment(session) if kind is stripe.PaymentIntent else charge(session)
    found = api.ask(f"{path}/{named}").json
    rarely = {"application", "level3", "authorization_code", "refunds", "transfer"}
    rarely |= {"amount_details", "hooks", "payment_details", "presentment_details", "radar_options"}
    assert set(kind.__annotations__) - set(found) - rarely == {"OBJECT_NAME"}
