"""Test that one damaged record hides no other in any list of records."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from checkout.adapters.dynamo.refunds import DynamoRefunds, put_refund
from checkout.domain.ground.ids import session_ref
from checkout.domain.ground.parts import Lists
from checkout.domain.session.retention import RETENTION
from tests.support.basics import NOW, a_link, a_refund, seeded
from tests.support.samples import a_key, a_member, a_merchant, an_event, an_invitation
from tests.support.stores import Store


def _keys(store: Store) -> None:
    assert store.merchants.add(a_merchant(), a_key(hash="1" * 64)) is None
    assert store.api_keys.add(a_key(hash="2" * 64), a_merchant())


def _people(store: Store) -> None:
    for number in ("1", "2"):
        opened = an_invitation(id=f"inv_{number}", hash=number * 64)
        store.people.invite(opened)
        member = a_member(id=f"mbr_{number}")
        assert store.people.join(member, an_invitation(hash=opened.hash, ended_at=NOW))


def _invitations(store: Store) -> None:
    for number in ("1", "2"):
        store.people.invite(an_invitation(id=f"inv_{number}", hash=number * 64))


def _events(store: Store) -> None:
    for number in ("1", "2"):
        store.events.add(an_event(id=f"evt_{number}"))


def _links(store: Store) -> None:
    for number in ("1", "2"):
        store.links.add(a_link(id=f"plink_{number * 22}"))


def _refunds(store: Store) -> None:
    for number in ("1", "2"):
        refund = a_refund(id=f"re_{number * 22}")
        table = f"{store.prefix}-checkout_sessions"
        store.client.put_item(**put_refund(table, refund, RETENTION))


def _refund_store(store: Store) -> DynamoRefunds:
    return DynamoRefunds(
        store.client, store.prefix, sleep=lambda seconds: None, random_bytes=seeded()
    )


# How each list is filled with two records, the damaged one's table and key, and how it is read.
LISTS: dict[str, tuple[Callable[[Store], None], str, dict[str, str], Callable[[Store], Any]]] = {
    "keys": (_keys, "api_keys", {"hash": "1" * 64}, lambda store: store.api_keys.of("mer_1")),
    "members": (
        _people,
        "api_keys",
        {"hash": "member#mbr_1"},
        lambda store: store.people.members_of("mer_1"),
    ),
    "invitations": (
        _invitations,
        "api_keys",
        {"hash": f"invitation#{'1' * 64}"},
        lambda store: store.people.invitations_of("mer_1"),
    ),
    "events": (
        _events,
        "webhook_events",
        {"id": "evt_1"},
        lambda store: store.events.page(Lists("mer_1"), limit=9).records,
    ),
    "links": (
        _links,
        "checkout_sessions",
        {"id": f"plink_{'1' * 22}"},
        lambda store: store.links.page("mer_1", limit=9, after=None).records,
    ),
    "refunds": (
        _refunds,
        "checkout_sessions",
        {"id": f"re_{'1' * 22}"},
        lambda store: _refund_store(store).page(Lists("mer_1"), limit=9, after=None).records,
    ),
    "refunds of a session": (
        _refunds,
        "checkout_sessions",
        {"id": f"re_{'1' * 22}"},
        lambda store: _refund_store(store).of((f"re_{'1' * 22}", f"re_{'2' * 22}")),
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_shows_what_is_beside_a_damaged_record(
    store: Store, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    fill, table, key, read = LISTS[name]
    fill(store)
    assert len(read(store)) == 2
    store.client.update_item(
        TableName=f"{store.prefix}-{table}",
        Key={part: {"S": value} for part, value in key.items()},
        UpdateExpression="SET #version = :nonsense, #created_at = :nonsense",
        ExpressionAttributeNames={"#version": "version", "#created_at": "created_at"},
        ExpressionAttributeValues={":nonsense": {"S": "soon"}},
    )
    with caplog.at_level(logging.WARNING):
        assert len(read(store)) == 1
    (told,) = caplog.records
    assert told.__dict__["session"] == session_ref(*key.values())
    assert not any(value in caplog.text for value in key.values())


def test_a_page_of_merchants_names_the_damaged_ones(store: Store) -> None:
    # A rotation of the encryption key must not end while a secret is under the old one.
    for number in ("1", "2"):
        wallet = f"https://wallet.example/{number}"
        merchant = a_merchant(id=f"mer_{number}", wallet_address=wallet)
        assert store.merchants.add(merchant, a_key(hash=number * 64)) is None
    store.client.update_item(
        TableName=f"{store.prefix}-merchants",
        Key={"id": {"S": "mer_1"}},
        UpdateExpression="REMOVE #private_key",
        ExpressionAttributeNames={"#private_key": "private_key"},
    )
    page = store.merchants.page(limit=9)
    assert [each.id for each in page.records] == ["mer_2"]
    assert page.unreadable == ("mer_1",)
