"""U+0000 is refused in each text of both APIs, by name.

Shops store what they get back, and PostgreSQL takes no such text.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from api.requests import Form
from api.v1.forms import from_form, from_json, parsed
from checkout.domain.ground.errors import ParameterInvalid
from tests.support import stripe_api as v1
from tests.support.basics import SESSION_ID
from tests.support.merchant_api import SESSIONS, Answer, a_body, an_item
from tests.support.stripe_api import StripeApi

REFUNDS = "/api/checkout/refunds"


def assert_named(answer: Answer, param: str) -> None:
    assert (answer.status, answer.code) == (400, "parameter_invalid"), answer
    assert answer.json["error"]["param"] == param
    assert "U+0000" in answer.json["error"]["message"]


def asking(**question: str | list[str]) -> dict[str, Any]:
    return a_body(collect={"questions": [{"label": "Size", "kind": "dropdown"} | question]})


PRODUCT = "line_items[0].price_data.product_data.name"


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (SESSIONS, a_body(client_reference_id="a\0"), "client_reference_id"),
        (SESSIONS, a_body(line_items=[an_item(name="\0Tea")]), PRODUCT),
        (SESSIONS, a_body(metadata={"a": "b\0"}), "metadata"),
        (SESSIONS, a_body(metadata={"a\0": "b"}), "metadata"),
        (SESSIONS, a_body(collect={"ships_to": ["DE", "\0"]}), "collect.ships_to[1]"),
        (SESSIONS, asking(label="\0"), "collect.questions[0].label"),
        (SESSIONS, asking(options=["S", "L\0"]), "collect.questions[0].options[1]"),
        (REFUNDS, {"session": SESSION_ID, "paid_elsewhere": "\0"}, "paid_elsewhere"),
        (REFUNDS, {"session": SESSION_ID, "metadata": {"a\0": "b"}}, "metadata"),
    ],
)
def test_in_the_native_api(api: StripeApi, path: str, body: dict[str, Any], param: str) -> None:
    assert_named(api.post(path, body, key=api.refunder), param)


def test_each_text_of_the_native_api_is_of_a_kind_above() -> None:
    """All forms check the values of their fields; texts inside of a field need more."""
    forms = [each for each in BaseModel.__subclasses__() if each.__module__.startswith("api.")]
    assert forms == [Form]
    inside = re.compile(r"(list|dict)\[(typing\.Annotated\[)?str")
    assert {
        name
        for form in Form.__subclasses__()
        for name, field in form.model_fields.items()
        if inside.search(str(field.annotation))
    } == {"metadata", "ships_to", "options"}


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (v1.SESSIONS, {"customer_email": "\0"}, "customer_email"),
        (v1.SESSIONS, {"metadata": {"a\0": "b"}}, "metadata[a\0]"),
        (v1.SESSIONS, {"line_items": [{"metadata": {"a": "\0"}}]}, "line_items[0][metadata][a]"),
        (f"{v1.SESSIONS}/{SESSION_ID}", {"metadata": {"a": "\0"}}, "metadata[a]"),
        (f"{v1.SESSIONS}/{SESSION_ID}/expire", {"expand": ["\0"]}, "expand[0]"),
        (v1.REFUNDS, {"reason": "\0"}, "reason"),
        (f"{v1.REFUNDS}/{SESSION_ID}", {"metadata": {"\0": "b"}}, "metadata[\0]"),
        (f"{v1.REFUNDS}/{SESSION_ID}/cancel", {"expand": ["\0"]}, "expand[0]"),
        (v1.ENDPOINTS, {"description": "\0"}, "description"),
        (f"{v1.ENDPOINTS}/{SESSION_ID}", {"enabled_events": ["\0"]}, "enabled_events[0]"),
    ],
)
def test_under_v1(api: StripeApi, path: str, body: dict[str, Any], param: str) -> None:
    if path.startswith(v1.ENDPOINTS):
        assert_named(api.manage("POST", path, body), param)
    else:
        assert_named(api.form(path, body, key=api.refunder), param)
        assert_named(api.post(path, body, key=api.refunder), param)


_NAME = st.text(st.characters(codec="utf-8", exclude_characters="[]"), min_size=1, max_size=5)


@given(_NAME, st.lists(st.just(0) | _NAME, max_size=8), st.data())
def test_under_v1_at_any_depth(first: str, inside: list[Any], data: st.DataObject) -> None:
    """A 0 is the first of a list."""
    found = [first, *inside, "x"]
    place = data.draw(st.sampled_from([each for each, name in enumerate(found) if name != 0]))
    found[place] += "\0"
    *names, value = found
    param = names[0] + "".join(f"[{each}]" for each in names[1:])
    nested = value
    for name in names[::-1]:
        nested = [nested] if name == 0 else {name: nested}
    for leaves in (from_json(nested), from_form(urlencode({param: value}))):
        with pytest.raises(ParameterInvalid, match=r"U\+0000") as refused:
            parsed(leaves, ())
        assert refused.value.param == param
