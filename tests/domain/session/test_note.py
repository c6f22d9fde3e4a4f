"""Test notes: tags as they are typed, and the case that was dealt with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checkout.domain.payment.in_flight import Attention
from checkout.domain.refund.record import RefundRef
from checkout.domain.session.note import case_of, needs_somebody, tags_of
from checkout.domain.session.record import Status
from tests.support.basics import a_session
from tests.support.samples import a_note


@pytest.mark.parametrize(
    ("typed", "tags"),
    [
        ("", ()),
        (" , ,", ()),
        ("vip", ("vip",)),
        ("vip, refund  asked ,vip\nlate", ("vip", "refund asked", "late")),
    ],
)
def test_tags_are_what_stands_between_commas_each_once(typed: str, tags: tuple[str, ...]) -> None:
    assert tags_of(typed) == tags


def test_a_case_that_was_dealt_with_needs_nobody_until_it_changes() -> None:
    late = a_session(Status.EXPIRED, attention=Attention.LATE_PAYMENT, received=700)
    more = a_session(Status.EXPIRED, attention=Attention.LATE_PAYMENT, received=900)
    over = a_session(Status.COMPLETED, received=2002)
    assert case_of(a_session()) is None
    assert not needs_somebody(a_session(), None)
    assert needs_somebody(late, None)
    assert needs_somebody(over, None)
    assert needs_somebody(late, a_note())
    done = a_note(dealt_with=case_of(late))
    assert not needs_somebody(late, done)
    assert needs_somebody(more, done)
    assert needs_somebody(over, done)


def test_a_mark_does_not_replace_the_decision_about_a_part() -> None:
    part = {"attention": Attention.PARTIAL_PAYMENT, "received": 700}
    waits = a_session(Status.PROCESSING, **part)
    assert needs_somebody(waits, a_note(dealt_with=case_of(waits)))
    over = a_session(Status.EXPIRED, **part)
    assert not needs_somebody(over, a_note(dealt_with=case_of(over)))


@pytest.mark.parametrize(
    ("fields", "held", "needs"),
    [
        (
            {"status": Status.EXPIRED, "attention": Attention.LATE_PAYMENT, "received": 700},
            699,
            True,
        ),
        (
            {"status": Status.EXPIRED, "attention": Attention.LATE_PAYMENT, "received": 700},
            700,
            False,
        ),
        (
            {"status": Status.EXPIRED, "attention": Attention.PARTIAL_PAYMENT, "received": 7},
            7,
            False,
        ),
        ({"status": Status.COMPLETED, "received": 2100}, 99, True),
        ({"status": Status.COMPLETED, "received": 2100}, 100, False),
        (
            {"status": Status.PROCESSING, "attention": Attention.PARTIAL_PAYMENT, "received": 7},
            7,
            True,
        ),
        ({"status": Status.EXPIRED, "attention": Attention.UNDECIDED, "received": 0}, 0, True),
    ],
)
def test_what_refunds_have_sent_back_or_hold_needs_nobody(
    fields: dict[str, Any], held: int, needs: bool
) -> None:
    session = a_session(refunds=(RefundRef("re_1", held),), **fields)
    assert needs_somebody(session, None) is needs
    assert needs_somebody(replace(session, refunds=None), None)  # after it failed, again


def test_a_note_does_not_show_its_text_in_a_log() -> None:
    assert "Phoned" not in repr(a_note())
