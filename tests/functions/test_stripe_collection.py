"""Sessions of /v1 that ask for details: what the page asks for each of Stripe's parameters."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from stripe.params.checkout import _session_create_params

from checkout.domain.session.collect import Collect, Detail, Place, Question, QuestionKind
from tests.support.stripe_api import SESSIONS, StripeApi, a_purchase, refused

SIZE = {
    "key": "size",
    "label": {"type": "custom", "custom": "Size"},
    "type": "dropdown",
    "dropdown": {"options": [{"label": "Small", "value": "s"}, {"label": "Large", "value": "l"}]},
}
MONOGRAM = {
    "key": "monogram",
    "label": {"type": "custom", "custom": "Monogram"},
    "type": "text",
    "optional": True,
    "text": {"minimum_length": 2, "maximum_length": 3},
}
MEMBER = {
    "key": "member",
    "label": {"type": "custom", "custom": "Your number"},
    "type": "numeric",
}


@pytest.fixture(scope="module")
def api() -> StripeApi:
    return StripeApi()


def asked(api: StripeApi, **parameters: Any) -> Collect:
    """Return what the page of a session with these parameters asks."""
    answer = api.form(SESSIONS, a_purchase(**parameters))
    assert answer.status == 200, answer
    return api.stored(answer.json["id"]).collect


def only(*asked: Detail | Place, **more: Any) -> Collect:
    """Ask for these, each required."""
    return Collect(frozenset(asked), frozenset(asked), **more)


ABROAD = {"allowed_countries": ["DE", "at", "DE"]}
QUESTIONS = (
    Question("size", "Size", QuestionKind.DROPDOWN, True, (("s", "Small"), ("l", "Large"))),
    Question("monogram", "Monogram", QuestionKind.TEXT, False, (), 2, 3),
    Question("member", "Your number", QuestionKind.NUMERIC),
)
NAMELESS = Collect(frozenset({Detail.EMAIL, Detail.NAME}), frozenset({Detail.EMAIL}))


def individual(**asked: bool) -> dict[str, Any]:
    return {"name_collection": {"individual": asked}}


@pytest.mark.parametrize(
    ("parameters", "page"),
    [
        ({"billing_address_collection": "required"}, only(Detail.EMAIL, Place.BILLING)),
        (
            {"shipping_address_collection": ABROAD},
            only(Detail.EMAIL, Place.SHIPPING, ships_to=("DE", "AT")),
        ),
        ({"phone_number_collection": {"enabled": True}}, only(Detail.EMAIL, Detail.PHONE)),
        (individual(enabled=True), only(Detail.EMAIL, Detail.NAME)),
        (individual(enabled=True, optional=False), only(Detail.EMAIL, Detail.NAME)),
        (individual(enabled=True, optional=True), NAMELESS),
        ({"custom_fields": [SIZE, MONOGRAM, MEMBER]}, only(Detail.EMAIL, questions=QUESTIONS)),
    ],
)
def test_the_page_asks_what_the_shop_asks_stripe_for_and_the_mail_address(
    api: StripeApi, parameters: dict[str, Any], page: Collect
) -> None:
    assert asked(api, **parameters) == page


def test_the_mail_address_is_not_asked_if_the_shop_knows_it(api: StripeApi) -> None:
    phone = {"phone_number_collection": {"enabled": True}}
    assert asked(api, **phone, customer_email="ada@shop.example") == only(Detail.PHONE)


def test_everything_can_be_asked_at_once_and_as_json(api: StripeApi) -> None:
    purchase = a_purchase(
        billing_address_collection="required",
        shipping_address_collection={"allowed_countries": ["US"]},
        phone_number_collection={"enabled": True},
        **individual(enabled=True),
        custom_fields=[MEMBER],
    )
    answer = api.post(SESSIONS, purchase)
    everything = only(*Detail, *Place, ships_to=("US",), questions=QUESTIONS[2:])
    assert api.stored(answer.json["id"]).collect == everything


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"customer_email": "ada@shop.example"},
        {"billing_address_collection": "auto"},
        {"phone_number_collection": {"enabled": False}},
        {"name_collection": {"individual": {"enabled": False}, "business": {"enabled": False}}},
        individual(enabled=False, optional=True),
    ],
)
def test_no_page_is_added_if_nothing_is_asked(api: StripeApi, parameters: dict[str, Any]) -> None:
    answer = api.form(SESSIONS, a_purchase(**parameters))
    assert api.stored(answer.json["id"]).collect_json is None
    assert answer.json["billing_address_collection"] == parameters.get("billing_address_collection")
    assert answer.json["phone_number_collection"] == {"enabled": False}
    assert answer.json["shipping_address_collection"] is None
    assert answer.json["custom_fields"] == []
    assert "name_collection" not in answer.json


def test_an_answer_that_stripe_would_fill_in_is_said_to_be_ignored(api: StripeApi) -> None:
    size = SIZE | {"dropdown": SIZE["dropdown"] | {"default_value": "l"}}  # type: ignore[operator]
    answer = api.form(SESSIONS, a_purchase(custom_fields=[size]))
    assert answer.headers["ignored-parameters"] == "custom_fields[0][dropdown][default_value]"
    dropdown = SIZE["dropdown"] | {"default_value": None, "value": None}  # type: ignore[operator]
    assert answer.json["custom_fields"] == [SIZE | {"optional": False, "dropdown": dropdown}]


def test_asking_changes_neither_the_price_nor_where_the_money_goes(api: StripeApi) -> None:
    plain = api.stored(api.form(SESSIONS, a_purchase()).json["id"])
    details = a_purchase(
        shipping_address_collection={"allowed_countries": ["CH"]},
        billing_address_collection="required",
        custom_fields=[SIZE, MEMBER],
    )
    asking = api.stored(api.form(SESSIONS, details).json["id"])
    assert asking.collect
    for name in ("merchant", "amount_total", "currency", "receive", "line_items", "expires_at"):
        assert getattr(asking, name) == getattr(plain, name)


@pytest.mark.parametrize("value", ["ZZ", "Germany", "D", " "])
def test_a_country_without_addresses_is_refused(api: StripeApi, value: str) -> None:
    countries = {"allowed_countries": ["DE", value]}
    answer = api.form(SESSIONS, a_purchase(shipping_address_collection=countries))
    param = "shipping_address_collection[allowed_countries][1]"
    assert refused(answer) == ("parameter_invalid", param)
    assert "Use two letters" in answer.json["error"]["message"]


def changed(field: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A field with changes, without those that become None."""
    found = field | changes
    return {name: value for name, value in found.items() if value is not None}


def choosing(*options: dict[str, str]) -> dict[str, Any]:
    return changed(SIZE, dropdown={"options": list(options)} if options else None)


A = {"label": "A", "value": "a"}
MANY = [{"label": "A", "value": f"a{each}"} for each in range(201)]


def labelled(text: str) -> dict[str, Any]:
    return changed(MEMBER, label={"type": "custom", "custom": text})


def bounded(kind: str, **bounds: int) -> dict[str, Any]:
    return changed(MONOGRAM if kind == "text" else MEMBER, **{kind: bounds})


MISSING, INVALID, INTEGER = "parameter_missing", "parameter_invalid", "parameter_invalid_integer"


@pytest.mark.parametrize(
    ("field", "code", "param"),
    [
        (changed(MEMBER, key=None), MISSING, "[key]"),
        (changed(MEMBER, key="a-b"), INVALID, "[key]"),
        (changed(MEMBER, key="ä"), INVALID, "[key]"),
        (changed(MEMBER, key="a" * 201), INVALID, "[key]"),
        (changed(MEMBER, type=None), MISSING, "[type]"),
        (changed(MEMBER, type="date"), INVALID, "[type]"),
        (changed(MEMBER, label={"custom": "A"}), MISSING, "[label][type]"),
        (changed(MEMBER, label={"type": "custom"}), MISSING, "[label][custom]"),
        (labelled(" "), INVALID, "[label][custom]"),
        (labelled("a" * 101), INVALID, "[label][custom]"),
        (labelled("a\u202eb"), INVALID, "[label][custom]"),
        (changed(MEMBER, optional="maybe"), INVALID, "[optional]"),
        (changed(MEMBER, text={"minimum_length": 1}), INVALID, "[text]"),
        (choosing(), MISSING, "[dropdown][options]"),
        (choosing({"label": "A"}), MISSING, "[dropdown][options][0][value]"),
        (choosing({"value": "a"}), MISSING, "[dropdown][options][0][label]"),
        (choosing(A, A), INVALID, "[dropdown][options][1][value]"),
        (choosing(A, A | {"value": "b b"}), INVALID, "[dropdown][options][1][value]"),
        (choosing(A | {"label": "A" * 101}), INVALID, "[dropdown][options][0][label]"),
        (choosing(*MANY), INVALID, "[dropdown][options]"),
        (bounded("numeric", minimum_length=-1), INTEGER, "[numeric][minimum_length]"),
        (bounded("numeric", maximum_length=0), INTEGER, "[numeric][maximum_length]"),
        (bounded("text", maximum_length=256), INTEGER, "[text][maximum_length]"),
        (bounded("text", minimum_length=3, maximum_length=2), INVALID, "[text][minimum_length]"),
    ],
)
def test_a_custom_field_that_cannot_be_asked_is_refused_by_name(
    api: StripeApi, field: dict[str, Any], code: str, param: str
) -> None:
    answer = api.form(SESSIONS, a_purchase(custom_fields=[SIZE | {"key": "first"}, field]))
    assert refused(answer) == (code, f"custom_fields[1]{param}")


def test_the_bounds_of_a_custom_field_are_taken_at_their_limits(api: StripeApi) -> None:
    field = changed(
        MONOGRAM,
        key="k" * 200,
        label={"type": "custom", "custom": "l" * 100},
        text={"minimum_length": 0, "maximum_length": 255},
    )
    many = choosing(*({"label": "L" * 100, "value": f"{each:0100}"} for each in range(200)))
    [text, choice] = asked(api, custom_fields=[field, many]).questions
    assert (text.key, text.label, text.least, text.most) == ("k" * 200, "l" * 100, 0, 255)
    assert choice.options[199] == ("0" * 97 + "199", "L" * 100)


@pytest.mark.parametrize(
    "said",
    [
        "Custom text for the label, displayed to the customer. Up to 100 characters.",
        "The label for the option, displayed to the customer. Up to 100 characters.",
        "Must be unique to this option, alphanumeric, and up to 100 characters.",
        "Must be unique to this field, alphanumeric, and up to 200 characters.",
        "Up to 200 options allowed.",
    ],
)
def test_the_limits_are_those_that_stripes_library_names(said: str) -> None:
    assert said in inspect.getsource(_session_create_params)


def test_two_custom_fields_have_two_keys_and_a_fourth_is_refused(api: StripeApi) -> None:
    twice = api.form(SESSIONS, a_purchase(custom_fields=[SIZE, MEMBER, MEMBER]))
    assert refused(twice) == ("parameter_invalid", "custom_fields[2][key]")
    fields = [MEMBER | {"key": f"k{number}"} for number in range(4)]
    fourth = api.form(SESSIONS, a_purchase(custom_fields=fields))
    assert refused(fourth) == ("parameter_invalid", "custom_fields")


def test_a_name_is_asked_or_not(api: StripeApi) -> None:
    answer = api.form(SESSIONS, a_purchase(**individual(optional=True)))
    assert refused(answer) == ("parameter_missing", "name_collection[individual][enabled]")


@pytest.mark.parametrize(
    ("parameters", "param"),
    [
        ({"name_collection": {"business": {"enabled": True}}}, "[business][enabled]"),
        ({"shipping_options": [{"shipping_rate": "shr_1"}]}, "[0][shipping_rate]"),
        ({"permissions": {"update_shipping_details": "server_only"}}, "[update_shipping_details]"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    api: StripeApi, parameters: dict[str, Any], param: str
) -> None:
    answer = api.form(SESSIONS, a_purchase(**parameters))
    assert refused(answer) == (INVALID, f"{next(iter(parameters))}{param}")


def test_a_repeat_with_another_question_is_another_request(api: StripeApi) -> None:
    header = {"Idempotency-Key": "asks"}
    first = api.form(SESSIONS, a_purchase(custom_fields=[SIZE]), headers=header)
    same = api.form(SESSIONS, a_purchase(custom_fields=[SIZE]), headers=header)
    assert same.body == first.body
    other = api.form(SESSIONS, a_purchase(custom_fields=[MEMBER]), headers=header)
    assert other.json["error"]["code"] == "idempotency_key_reused"
