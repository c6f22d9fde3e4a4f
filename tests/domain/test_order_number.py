"""The order number: one rule for search, dashboard, export and the customer's pages."""

from __future__ import annotations

from typing import Final

import pytest

from checkout.domain.order_number import named_order_number, order_number
from checkout.domain.session import Status
from tests.support.basics import a_session

# The reference and the metadata of a session; its number; whether something says that it is one.
CASES: Final = [
    ("R-7", "{}", "R-7", True),
    ("R-7", '{"order":"42"}', "R-7", True),
    (" R-7 ", '{"order":"42"}', "R-7", True),
    ("  ", '{"order":"42"}', "42", True),
    (None, '{"order":"42","x":"y"}', "42", True),
    (None, '{"note":"vip","order":"42"}', "42", True),
    (None, '{"paid":true,"order":"42"}', "42", True),
    (None, '{"order_id":42}', "42", True),
    (None, '{"Order-Number":" A-7 "}', "A-7", True),
    (None, '{"order":"1","order_number":"2"}', "2", True),
    (None, '{"order":true,"invoice":7}', "7", True),
    (None, '{"note":"vip"}', "vip", False),
    (None, '{"gift":true,"note":"vip"}', "vip", False),
    (None, '{"order":null,"weight":1.5}', "1.5", False),
    (None, '{"order":"  "}', None, False),
    (None, '{"gift":true,"order":null}', None, False),
    (None, "{}", None, False),
]


@pytest.mark.parametrize(("reference", "metadata", "number", "named"), CASES)
def test_the_number_is_what_is_named_so_or_the_first_text_or_number(
    reference: str | None, metadata: str, number: str | None, named: bool
) -> None:
    session = a_session(Status.OPEN, client_reference_id=reference, metadata_json=metadata)
    assert order_number(session) == number
    assert named_order_number(session) == (number if named else None)
