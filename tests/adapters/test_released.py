"""Two releases over the same tables: today's code and the last release's, each with the other's.

During an upgrade both serve for ten minutes, and after an undo the last one is alone with what
today's has written (docs/howto/change-a-record.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from checkout.adapters.dynamo.codec import deflated, inflated
from tests import released
from tests.released import kinds

# Values of enumerations that the last release cannot read, as `Kind.value`. Today's code reads them
# and must not write them before the next release.
READ_FIRST: frozenset[str] = frozenset()
# The members that the last release loses when it writes such a record. It was decided for each
# of them that this does no harm for the time of an upgrade, or the changelog says what does.
# A payment link whose customers choose the amount is sold by the last release at `unit_amount`, the
# first suggestion, and keeps its bounds, because that release writes no link again.
# A session whose cart the last release writes again is no longer found by its customer's name. That
# release writes a cart again when details or metadata change, and when it erases a customer.
LOST: dict[str, set[str]] = {
    "session": {"cart.customer_marks"},
    "link": {"open_amount"},
}

Stored = dict[str, list[dict[str, Any]]]


@cache
def last_records() -> Stored:
    found: Stored = json.loads(released.RECORDS.read_text("utf-8"))
    return found


def clear(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item without compression, whose bytes may differ."""
    return {name: _clear(value) for name, value in kinds.unpacked(item).items()}


def _clear(value: dict[str, Any]) -> Any:
    if not isinstance(value.get("B"), bytes):
        return value
    text = inflated(value)
    return json.loads(text) if text.startswith("{") else text


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield the places of `before` that are missing or different in `after`."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            here = f"{path}.{name}" if path else name
            if name not in after:
                yield here
            else:
                yield from differences(value, after[name], here)
    elif before != after:
        yield path


@pytest.mark.parametrize("kind", sorted(last_records()))
def test_todays_code_reads_the_last_releases_records_and_loses_nothing(kind: str) -> None:
    stored = last_records()[kind]
    for before, after in zip(stored, kinds.read({kind: stored})[kind], strict=True):
        assert "failed" not in after, after
        assert list(differences(clear(before["item"]), clear(after["item"]))) == []


@cache
def todays_records_in_the_last_release() -> tuple[Stored, Stored]:
    today = kinds.written(READ_FIRST)
    return today, released.last_release_reads(today)


@pytest.mark.parametrize("kind", sorted(kinds.KINDS))
def test_the_last_releases_own_code_reads_todays_records(kind: str) -> None:
    today, there = todays_records_in_the_last_release()
    if kind not in last_records():
        assert kind not in there  # it does not look for it
        return
    lost = set()
    for before, after in zip(today[kind], there[kind], strict=True):
        assert "failed" not in after, after
        lost |= set(differences(clear(before["item"]), clear(after["item"])))
    assert lost == LOST.get(kind, set())


def test_a_value_that_the_last_release_does_not_know_is_noticed() -> None:
    [good, *_] = kinds.written(READ_FIRST)["link"]
    session = kinds.written(READ_FIRST)["session"][0]
    unknown = {**session, "item": {**session["item"], "status": {"S": "unheard_of"}}}
    there = released.last_release_reads({"link": [good], "session": [unknown]})
    assert "failed" not in there["link"][0]
    assert "unheard_of" in there["session"][0]["failed"]


def test_what_is_read_first_is_still_unknown_to_the_last_release() -> None:
    """A line that is no longer needed would let a value be written that nobody has tested."""
    written = {name: kinds.written(READ_FIRST - {name}) for name in READ_FIRST}
    kept = {kind: [each for one in written.values() for each in one[kind]] for kind in kinds.KINDS}
    there = {kind: iter(read) for kind, read in released.last_release_reads(kept).items()}
    for name, one in written.items():
        read = [next(each) for kind, each in there.items() for _ in one[kind]]
        assert any("failed" in each for each in read), name


def test_the_samples_have_each_value_of_each_enumeration() -> None:
    for kind in kinds.KINDS.values():
        texts = json.dumps([kinds.plain(each) for each in kinds.samples(kind.made_of)])
        for enumeration in kinds.enumerations(kind.made_of):
            for each in enumeration:
                assert f'"{each.value}"' in texts, each


def test_the_samples_of_the_last_release_are_those_that_its_reader_reads() -> None:
    there = released.last_release_reads(last_records())
    assert {name: [each["item"] for each in found] for name, found in there.items()} == {
        name: [each["item"] for each in found] for name, found in last_records().items()
    }


def test_the_archive_holds_the_product_and_its_wiring() -> None:
    files = released.product()
    assert {"checkout/version.py", "checkout/flows/limits.py", released.WIRING} <= set(files)
    assert all(path.is_file() for path in files.values())


def test_members_of_a_payment_that_a_later_release_has_stored_are_written_again() -> None:
    kind = kinds.KINDS["session"]
    session = kinds.make(kind.made_of, 0, frozenset())
    plain = replace(session, later_json=None)
    newer = kind.encode(plain)
    members = json.loads(inflated(newer["payment"]))
    newer["payment"] = deflated(json.dumps({**members, "bond": {"id": 7}, "seal": None}))
    read = kind.decode(newer)
    assert read == replace(plain, later_json='{"bond":{"id":7},"seal":null}')
    changed = replace(read, problem=None)
    again = json.loads(inflated(kind.encode(changed)["payment"]))
    assert (again["bond"], again["seal"]) == ({"id": 7}, None)
    assert "problem" not in again
    assert "later_json" not in again
    # A member of today's is today's, whatever was kept under its name.
    odd = replace(plain, later_json='{"updated_at":1}')
    assert kind.decode(kind.encode(odd)) == plain


def test_a_cart_of_a_later_release_is_read() -> None:
    """It is written once, and again only by an erasure, so that nothing unknown is kept of it."""
    kind = kinds.KINDS["session"]
    session = kinds.make(kind.made_of, 0, frozenset())
    item = kind.encode(session)
    members = json.loads(inflated(item["cart"]))
    item["cart"] = deflated(json.dumps({**members, "of_tomorrow": 1}))
    assert kind.decode(item) == session
