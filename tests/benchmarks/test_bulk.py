"""A bulk is read as the same sessions are when they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.bulk import Bulk, grow
from benchmarks.growth import Grown
from checkout.adapters.dynamo.records import rows_of, session_item
from sandbox.cloud import table_definitions
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.support.flows import PREFIX

TABLE = f"{PREFIX}-checkout_sessions"
COUNT = 300
INDEXES = ("by_merchant", "by_search", "due", "uncounted")


@pytest.fixture(scope="module")
def bulk() -> Bulk:
    return Grown(COUNT).bulk


@pytest.fixture
def grown(bulk: Bulk) -> InMemoryDynamoDb:
    client = InMemoryDynamoDb(table_definitions(PREFIX))
    grow(client, TABLE, bulk)
    return client


@pytest.fixture(scope="module")
def stored(bulk: Bulk) -> InMemoryDynamoDb:
    client = InMemoryDynamoDb(table_definitions(PREFIX))
    for row in rows(bulk):
        client.put_item(TableName=TABLE, Item=row)
    return client


def rows(bulk: Bulk) -> Iterator[dict[str, Any]]:
    for number in range(COUNT):
        session = bulk.session(number)
        yield from (session_item(session), *rows_of(session))


def read(client: InMemoryDynamoDb, key: str) -> Any:
    return client.get_item(TableName=TABLE, Key={"id": {"S": key}}).get("Item")


@pytest.mark.parametrize("name", INDEXES)
def test_each_partition_has_the_entries_of_the_stored_sessions(
    grown: InMemoryDynamoDb, stored: InMemoryDynamoDb, name: str
) -> None:
    found, expected = (each._tables[TABLE].indexes[name].entries for each in (grown, stored))
    assert found.keys() == expected.keys()
    for partition, entries in expected.items():
        assert list(found[partition]) == list(entries), partition


def test_each_item_is_found_by_its_key(grown: InMemoryDynamoDb, bulk: Bulk) -> None:
    ids = set()
    for row in rows(bulk):
        key = row["id"]["S"]
        assert key not in ids
        assert read(grown, key) == row
        ids.add(key)
    for key in (f"cs_{COUNT:022d}", "cs_81UgDxcpQ4WhgaYW2nRary", "search#1", "day#x"):
        assert read(grown, key) is None


def test_stored_items_lie_among_those_of_the_bulk(
    grown: InMemoryDynamoDb, stored: InMemoryDynamoDb, bulk: Bulk
) -> None:
    """Also once they have moved or gone; every operation of the fake does what it did."""
    copy = InMemoryDynamoDb(table_definitions(PREFIX))
    for row in stored.rows(TABLE):
        copy.put_item(TableName=TABLE, Item=row)
    merchant = bulk.session(0).merchant
    for client in (grown, copy):
        for number in (0, 150, 151, 299, 150, 7):
            created = {"S": session_item(bulk.session(number))["created_key"]["S"] + "x"}
            item = {"id": {"S": f"own-{number % 4}"}, "merchant": {"S": merchant}}
            client.put_item(TableName=TABLE, Item=item | {"created_key": created})
        gone = {"Delete": {"TableName": TABLE, "Key": {"id": {"S": "own-0"}}}}
        client.transact_write_items(TransactItems=[gone])
    question = {
        "TableName": TABLE,
        "IndexName": "by_merchant",
        "KeyConditionExpression": "#merchant = :merchant",
        "ExpressionAttributeNames": {"#merchant": "merchant"},
        "ExpressionAttributeValues": {":merchant": {"S": merchant}},
        "Limit": 40,
    }
    for forward in (True, False):
        start: dict[str, Any] = {}
        seen = 0
        while True:
            asked = {**question, "ScanIndexForward": forward, **start}
            answer = grown.query(**asked)
            assert answer == copy.query(**asked)
            seen += answer["Count"]
            if "LastEvaluatedKey" not in answer:
                break
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
        assert seen == COUNT + 2
    assert len(grown.rows(TABLE)) == 2


def test_a_session_of_the_bulk_is_not_written(grown: InMemoryDynamoDb, bulk: Bulk) -> None:
    session = bulk.session(0)  # completed: it has rows in no index
    for row in (session_item(session), *rows_of(session)):
        gone = {"Delete": {"TableName": TABLE, "Key": {"id": row["id"]}}}
        with pytest.raises(NotImplementedError):
            grown.put_item(TableName=TABLE, Item=row)
        with pytest.raises(NotImplementedError):
            grown.transact_write_items(TransactItems=[gone])
