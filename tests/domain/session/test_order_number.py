"""The order number: one rule for search, dashboard, export and the customer's pages."""

from __future__ import annotations

import pytest

from checkout.domain.session.record import Status, named_order_number, order_number
from tests.support.basics import a_session
from tests.support.cases import ORDER_NUMBERS


@pytest.mark.parametrize(("reference", "metadata", "number", "named"), ORDER_NUMBERS)
def test_the_number_is_what_is_named_so_or_the_first_text_or_number(
    reference: str | None, metadata: str, number: str | None, named: bool
) -> None:
    session = a_session(Status.OPEN, client_reference_id=reference, metadata_json=metadata)
    assert order_number(session) == number
    assert named_order_number(session) == (number if named else None)
