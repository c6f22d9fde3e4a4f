"""Test how Stripe's objects say what was asked and what the customer has given."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from checkout.domain.ground.addresses import Address
from checkout.domain.session.collect import Collect, Detail, Place
from checkout.domain.session.customer_details import NONE_GIVEN, CustomerDetails
from checkout.domain.session.record import Session, Status
from checkout.domain.stripe.objects import (
    charge,
    checkout_session,
    event_json,
    filled,
    payment_intent,
)
from checkout.domain.webhooks.event_types import PAYMENT_SUCCEEDED
from tests.support.basics import NOW, a_session
from tests.support.samples import EVERYTHING, GIVEN

URL: Final = "https://pay.example"
BERLIN: Final = {
    "city": "Berlin",
    "country": "DE",
    "line1": "Am Weg 1",
    "line2": "2. Stock",
    "postal_code": "10115",
    "state": None,
}
SPRINGFIELD: Final = {
    "city": "Springfield",
    "country": "US",
    "line1": "1 Main St",
    "line2": None,
    "postal_code": "62701",
    "state": "IL",
}
SHIPPING: Final = {
    "address": BERLIN,
    "carrier": None,
    "name": "Eva Beispiel",
    "phone": "+49 30 1234567",
    "tracking_number": None,
}
BILLING_DETAILS: Final = {
    "address": SPRINGFIELD,
    "email": "ana@example.com",
    "name": "Ana Muster",
    "phone": "+49 30 1234567",
    "tax_id": None,
}


def asking(collect: Collect = EVERYTHING, **changes: Any) -> Session:
    return a_session(collect_json=collect.to_json(), **changes)


def sold(**changes: Any) -> Session:
    return asking(status=Status.COMPLETED, completed_at=NOW, **changes)


def shown(session: Session, details: CustomerDetails = NONE_GIVEN) -> dict[str, Any]:
    return checkout_session(session, base_url=URL, now=NOW, details=details)


def requiring(*asked: Detail | Place) -> Collect:
    return Collect(frozenset(asked), frozenset(asked))


def test_a_session_says_what_is_asked() -> None:
    session = shown(asking())
    assert session["billing_address_collection"] == "required"
    assert session["shipping_address_collection"] == {"allowed_countries": ["DE", "AT"]}
    assert session["phone_number_collection"] == {"enabled": True}
    assert session["name_collection"] == {"individual": {"enabled": True, "optional": False}}
    assert session["custom_fields"] == [
        {
            "key": "size",
            "label": {"custom": "Size", "type": "custom"},
            "optional": False,
            "type": "dropdown",
            "dropdown": {
                "default_value": None,
                "options": [{"label": "Small", "value": "s"}, {"label": "Large", "value": "l"}],
                "value": None,
            },
        },
        {
            "key": "text1",
            "label": {"custom": "Engraving", "type": "custom"},
            "optional": True,
            "type": "text",
            "text": {
                "default_value": None,
                "maximum_length": 3,
                "minimum_length": 2,
                "value": None,
            },
        },
        {
            "key": "member",
            "label": {"custom": "Your number", "type": "custom"},
            "optional": False,
            "type": "numeric",
            "numeric": {
                "default_value": None,
                "maximum_length": None,
                "minimum_length": None,
                "value": None,
            },
        },
    ]
    assert session["customer_details"] is None
    assert session["collected_information"] is None


def test_a_session_that_asks_nothing_says_so() -> None:
    session = shown(a_session())
    assert session["billing_address_collection"] is None
    assert session["shipping_address_collection"] is None
    assert session["phone_number_collection"] == {"enabled": False}
    assert "name_collection" not in session
    assert session["custom_fields"] == []
    assert session["customer_details"] is None
    assert session["collected_information"] is None
    echo = json.dumps({"billing_address_collection": "auto"})
    assert shown(a_session(echo_json=echo))["billing_address_collection"] == "auto"


def test_what_may_be_left_out_is_shown_as_far_as_stripe_knows_that() -> None:
    session = shown(asking(Collect(frozenset({*Detail, *Place}))))
    assert session["billing_address_collection"] == "auto"
    assert session["name_collection"] == {"individual": {"enabled": True, "optional": True}}
    assert session["phone_number_collection"] == {"enabled": True}
    everywhere = session["shipping_address_collection"]["allowed_countries"]
    assert len(everywhere) > 200
    assert {"DE", "JP", "US"} <= set(everywhere)


def test_a_session_shows_what_was_given() -> None:
    session = shown(sold(), GIVEN)
    assert session["customer_details"] == {
        "address": SPRINGFIELD,
        "business_name": None,
        "email": "ana@example.com",
        "individual_name": "Ana Muster",
        "name": "Ana Muster",
        "phone": "+49 30 1234567",
        "tax_exempt": "none",
        "tax_ids": [],
    }
    assert session["collected_information"] == {
        "business_name": None,
        "individual_name": "Ana Muster",
        "shipping_details": {"address": BERLIN, "name": "Eva Beispiel"},
    }
    size, engraving, member = session["custom_fields"]
    assert size["dropdown"]["value"] == "l"
    assert engraving["text"]["value"] is None
    assert member["numeric"]["value"] == "0042"
    assert session["customer_email"] is None
    assert session["shipping_details"] == SHIPPING, "as clients of before 2025 read it"


def test_what_was_given_is_shown_while_the_session_is_open() -> None:
    asked = asking(requiring(Detail.EMAIL))
    session = shown(asked, CustomerDetails(email="ana@example.com"))
    assert session["status"] == "open"
    assert session["customer_details"]["email"] == "ana@example.com"
    assert session["collected_information"] is None


def test_the_mail_address_of_the_shop_is_that_of_a_customer_who_gave_none() -> None:
    echo = json.dumps({"customer_email": "shop@example.com"})
    session = shown(sold(echo_json=echo), CustomerDetails(phone="12345"))
    assert session["customer_details"]["email"] == session["customer_email"] == "shop@example.com"
    assert session["customer_details"]["phone"] == "12345"
    assert session["customer_details"]["address"] is None
    details = charge(sold(echo_json=echo), base_url=URL)["billing_details"]
    assert details == {
        "address": None, "email": "shop@example.com", "name": None, "phone": None, "tax_id": None,
    }  # fmt: skip


def test_the_name_of_the_parcel_is_the_customers_if_there_is_no_bill() -> None:
    to_eva = CustomerDetails(name="Eva Beispiel", shipping=GIVEN.shipping)
    session = shown(asking(requiring(Place.SHIPPING)), to_eva)
    assert session["customer_details"]["name"] == "Eva Beispiel"
    assert session["customer_details"]["individual_name"] is None
    assert session["customer_details"]["address"] is None
    assert session["collected_information"] == {
        "business_name": None,
        "individual_name": None,
        "shipping_details": {"address": BERLIN, "name": "Eva Beispiel"},
    }


def test_a_name_that_was_asked_alone_is_collected() -> None:
    session = shown(asking(requiring(Detail.NAME)), CustomerDetails(name="Ana"))
    assert session["customer_details"]["individual_name"] == "Ana"
    assert session["collected_information"] == {
        "business_name": None,
        "individual_name": "Ana",
        "shipping_details": None,
    }


def test_the_answers_of_a_payment_link_are_shown_although_its_session_asks_nothing() -> None:
    session = shown(a_session(), GIVEN)
    size, member = session["custom_fields"]
    assert size == {
        "key": "size",
        "label": {"custom": "Size", "type": "custom"},
        "optional": False,
        "type": "dropdown",
        "dropdown": {
            "default_value": None,
            "options": [{"label": "Large", "value": "l"}],
            "value": "l",
        },
    }
    assert (member["key"], member["type"], member["numeric"]["value"]) == (
        "member", "numeric", "0042",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line2", "district", "shown_as"),
    [
        ("Apto 4", "Centro", "Apto 4, Centro"),
        (None, "Centro", "Centro"),
        ("Apto 4", None, "Apto 4"),
    ],
)
def test_a_district_is_in_the_second_line(
    line2: str | None, district: str | None, shown_as: str
) -> None:
    place = Address("BR", "Zé", "Rua 1", line2, district, "Recife", "PE", "50000-000")
    payment = payment_intent(sold(), base_url=URL, now=NOW, details=CustomerDetails(shipping=place))
    assert payment["shipping"]["address"] == {
        "city": "Recife",
        "country": "BR",
        "line1": "Rua 1",
        "line2": shown_as,
        "postal_code": "50000-000",
        "state": "PE",
    }


def test_a_payment_and_its_charge_say_where_the_parcel_and_the_bill_go() -> None:
    payment = payment_intent(sold(), base_url=URL, now=NOW, details=GIVEN)
    alone = charge(sold(), base_url=URL, details=GIVEN)
    assert payment["shipping"] == SHIPPING
    assert alone["shipping"] == SHIPPING
    assert alone["billing_details"] == BILLING_DETAILS


def test_a_payment_without_a_parcel_has_no_shipping() -> None:
    details = CustomerDetails(email="ana@example.com")
    assert payment_intent(sold(), base_url=URL, now=NOW, details=details)["shipping"] is None
    assert charge(sold(), base_url=URL, details=details)["shipping"] is None


def test_events_show_the_details_that_they_are_given() -> None:
    def told(event_type: str, details: CustomerDetails = NONE_GIVEN) -> dict[str, Any]:
        named = {"event_id": "evt_1", "event_type": event_type}
        text = event_json(sold(), **named, base_url=URL, at=NOW)
        if details != NONE_GIVEN:
            text = filled(text, sold(), details, base_url=URL, at=NOW)
        found: dict[str, Any] = json.loads(text)["data"]["object"]
        return found

    completed = told("checkout.session.completed", details=GIVEN)
    assert completed["customer_details"]["address"] == SPRINGFIELD
    assert told(PAYMENT_SUCCEEDED, details=GIVEN)["shipping"] == SHIPPING
    assert told("checkout.session.completed")["collected_information"] is None
    assert told(PAYMENT_SUCCEEDED)["shipping"] is None
