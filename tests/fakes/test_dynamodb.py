"""Test that the fake refuses what DynamoDB refuses, and what it does not know.

tests/adapters/test_dynamo.py compares it with two other DynamoDBs.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.fakes.dynamodb import InMemoryDynamoDb, Lag
from tests.fakes.expressions import Expressions, Item, parse_condition, parse_update

TABLE: dict[str, Any] = {
    "TableName": "t",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [
        {"AttributeName": "id", "AttributeType": "S"},
        {"AttributeName": "owner", "AttributeType": "S"},
        {"AttributeName": "at", "AttributeType": "N"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_owner",
            "KeySchema": [
                {"AttributeName": "owner", "KeyType": "HASH"},
                {"AttributeName": "at", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
}


@pytest.fixture
def client() -> InMemoryDynamoDb:
    client = InMemoryDynamoDb([TABLE])
    for number in (2, 10, 9, 1):
        client.put_item(TableName="t", Item=row(number))
    client.put_item(TableName="t", Item={"id": {"S": "sparse"}, "owner": {"S": "me"}})
    client.calls.clear()
    return client


def row(number: int, **more: Any) -> Item:
    return {
        "id": {"S": f"r{number}"},
        "owner": {"S": "me"},
        "at": {"N": str(number)},
        "map": {"M": {"n": {"N": "5"}}},
        **more,
    }


def ask(client: InMemoryDynamoDb, condition: str, *values: int, **more: Any) -> dict[str, Any]:
    """Query the index for what is mine."""
    return client.query(
        TableName="t",
        IndexName="by_owner",
        KeyConditionExpression="#o = :o" + condition,
        ExpressionAttributeNames={"#o": "owner", **({"#at": "at"} if condition else {})},
        ExpressionAttributeValues={
            ":o": {"S": "me"},
            **{f":v{index}": {"N": str(value)} for index, value in enumerate(values)},
        },
        **more,
    )


def ids(answer: dict[str, Any]) -> list[str]:
    return [item["id"]["S"] for item in answer["Items"]]


def used(expression: str, aliases: dict[str, Any]) -> dict[str, Any]:
    """The aliases that the expression contains."""
    found = set(re.findall(r"[#:]\w+", expression))
    return {alias: aliases[alias] for alias in found & set(aliases)}


def refusal(call: Any) -> str:
    with pytest.raises(ClientError) as refused:
        call()
    return str(refused.value.response["Error"]["Code"])


@pytest.mark.parametrize(
    ("condition", "values", "expected"),
    [
        ("", [], ["r1", "r2", "r9", "r10"]),  # numbers by size, and none without the range key
        (" AND #at < :v0", [9], ["r1", "r2"]),
        (" AND #at <= :v0", [9], ["r1", "r2", "r9"]),
        (" AND #at BETWEEN :v0 AND :v1", [2, 9], ["r2", "r9"]),
        (" AND #at BETWEEN :v0 AND :v1", [3, 8], []),
    ],
)
def test_a_key_condition_cuts_the_index(
    client: InMemoryDynamoDb, condition: str, values: list[int], expected: list[str]
) -> None:
    assert ids(ask(client, condition, *values)) == expected
    last = ask(client, condition, *values, ScanIndexForward=False, Limit=2)
    assert ids(last) == expected[:-3:-1]


def test_a_full_page_has_a_last_key_even_when_nothing_follows(client: InMemoryDynamoDb) -> None:
    start = ask(client, "", Limit=4)["LastEvaluatedKey"]
    assert start == {"id": {"S": "r10"}, "owner": {"S": "me"}, "at": {"N": "10"}}
    assert ask(client, "", Limit=4, ExclusiveStartKey=start)["Items"] == []
    assert "LastEvaluatedKey" not in ask(client, "", Limit=5)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("#at = :nine", True),
        ("#at = :text", False),
        ("#at < :text", False),
        ("#none = :nine", False),
        ("#map.#n < :nine", True),
        ("attribute_exists(#map.#n)", True),
        ("attribute_exists(#map.#none)", False),
        ("attribute_not_exists(#at.#n)", True),
        ("#at = :text OR #at = :nine AND #at = :text", False),
        ("#at = :nine OR #at = :nine AND #at = :text", True),
        ("#at BETWEEN :nine AND :nine AND #at = :nine", True),
    ],
)
def test_a_condition_means_what_dynamodb_means(condition: str, holds: bool) -> None:
    names = {"#at": "at", "#none": "none", "#map": "map", "#n": "n"}
    values = {":nine": {"N": "9.0"}, ":text": {"S": "9"}}
    node = parse_condition(condition)
    expressions = Expressions(used(condition, names), used(condition, values), node)
    assert expressions.holds(node, row(9)) == holds


def test_an_update_reads_the_item_as_it_was() -> None:
    update = parse_update("SET #a = #b, #b = #a, #c = #a + :one REMOVE #d")
    names = {f"#{name}": name for name in "abcd"}
    item: Item = {"a": {"N": "1"}, "b": {"N": "2"}, "d": {"S": "x"}}
    updated = Expressions(names, {":one": {"N": "1"}}, update).updated(update, item)
    assert updated == {"a": {"N": "2"}, "b": {"N": "1"}, "c": {"N": "2"}}


@pytest.mark.parametrize(
    ("condition", "names", "values"),
    [
        ("attribute_exists(id)", {}, {}),
        ("attribute_exists(#id", {"#id": "id"}, {}),
        ("attribute_exists(#id) AND", {"#id": "id"}, {}),
        ("attribute_exists(#id) XOR attribute_exists(#id)", {"#id": "id"}, {}),
        ("attribute_type(#id, :x)", {"#id": "id"}, {":x": {"S": "S"}}),
        ("#id == :x", {"#id": "id"}, {":x": {"S": "S"}}),
        ("#id ~ :x", {"#id": "id"}, {":x": {"S": "S"}}),
        ("#id <> :x", {"#id": "id"}, {":x": {"S": "S"}}),
        ("NOT #id = :x", {"#id": "id"}, {":x": {"S": "S"}}),
        ("#id = :y", {"#id": "id"}, {":x": {"S": "S"}}),
        ("#id = :x", {"#id": "id", "#unused": "at"}, {":x": {"S": "S"}}),
        ("#id = :x", {"#id": "id"}, {":x": {"S": "S"}, ":unused": {"S": "S"}}),
        ("#id BETWEEN :x AND :y", {"#id": "id"}, {":x": {"S": "b"}, ":y": {"S": "a"}}),
    ],
)
def test_a_condition_that_dynamodb_or_this_fake_does_not_know_is_refused(
    client: InMemoryDynamoDb, condition: str, names: dict[str, str], values: Item
) -> None:
    def put() -> None:
        client.put_item(
            TableName="t",
            Item=row(1),
            ConditionExpression=condition,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values,
        )

    assert refusal(put) == "ValidationException"


@pytest.mark.parametrize(
    "update",
    ["", "SET", "SET #at", "ADD #at :x", "SET #at = :x, #at = :x", "SET #id = :x",
     "SET #at = #none", "SET #map.#n = :x", "SET #at = #at + :x", "REMOVE #owner REMOVE #at"],
)  # fmt: skip
def test_an_update_that_dynamodb_or_this_fake_does_not_know_is_refused(
    client: InMemoryDynamoDb, update: str
) -> None:
    names = {"#at": "at", "#id": "id", "#none": "none", "#map": "map", "#n": "n", "#owner": "owner"}

    def write() -> None:
        client.update_item(
            TableName="t",
            Key={"id": {"S": "r1"}},
            UpdateExpression=update,
            ExpressionAttributeNames=used(update, names),
            ExpressionAttributeValues=used(update, {":x": {"S": "x"}}),
        )

    assert refusal(write) == "ValidationException"
    assert client.get_item(TableName="t", Key={"id": {"S": "r1"}})["Item"] == row(1)


@pytest.mark.parametrize(
    "item",
    [
        {"owner": {"S": "me"}},
        {"id": {"N": "1"}},
        {"id": {"S": ""}},
        row(1, at={"S": "1"}),
        row(1, owner={"S": ""}),
        row(1, text={"S": "x" * 400 * 1024}),
    ],
    ids=["no key", "key type", "empty key", "index key type", "empty index key", "too big"],
)
def test_an_item_that_does_not_fit_its_table_is_refused(
    client: InMemoryDynamoDb, item: Item
) -> None:
    assert refusal(lambda: client.put_item(TableName="t", Item=item)) == "ValidationException"
    puts = [{"Put": {"TableName": "t", "Item": item}}]
    assert refusal(lambda: client.transact_write_items(TransactItems=puts)) == "ValidationException"


def test_unknown_tables_arguments_and_operations_are_refused(client: InMemoryDynamoDb) -> None:
    key = {"id": {"S": "r1"}}
    missing = refusal(lambda: client.get_item(TableName="u", Key=key))
    assert missing == "ResourceNotFoundException"
    with pytest.raises(TypeError):
        client.get_item(TableName="t", Key=key, ProjectionExpression="id")
    with pytest.raises(NotImplementedError):
        client.update_item(TableName="t", Key=key, ReturnValues="UPDATED_OLD")
    with pytest.raises(AttributeError):
        client.delete_item(TableName="t")  # type: ignore[attr-defined]


def put_if_absent(number: int) -> dict[str, Any]:
    return {
        "Put": {
            "TableName": "t",
            "Item": row(number),
            "ConditionExpression": "attribute_not_exists(#id)",
            "ExpressionAttributeNames": {"#id": "id"},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
    }


def test_a_transaction_is_written_whole_or_not_at_all(client: InMemoryDynamoDb) -> None:
    before = client.rows("t")
    with pytest.raises(ClientError) as canceled:
        client.transact_write_items(TransactItems=[put_if_absent(3), put_if_absent(1)])
    response: Any = canceled.value.response
    assert response["Error"]["Code"] == "TransactionCanceledException"
    first, second = response["CancellationReasons"]
    assert first == {"Code": "None"}
    assert (second["Code"], second["Item"]) == ("ConditionalCheckFailed", row(1))
    assert client.rows("t") == before


def test_a_token_makes_a_repetition_harmless_and_refuses_another_request(
    client: InMemoryDynamoDb,
) -> None:
    write: dict[str, Any] = {"TransactItems": [put_if_absent(3)], "ClientRequestToken": "token"}
    client.transact_write_items(**write)
    client.transact_write_items(**write)
    other = {**write, "TransactItems": [put_if_absent(4)]}
    code = refusal(lambda: client.transact_write_items(**other))
    assert code == "IdempotentParameterMismatchException"


def test_one_item_is_not_written_twice_in_a_transaction(client: InMemoryDynamoDb) -> None:
    twice = [put_if_absent(3), put_if_absent(3)]
    code = refusal(lambda: client.transact_write_items(TransactItems=twice))
    assert code == "ValidationException"


def test_a_batch_read_has_limits_and_no_order(client: InMemoryDynamoDb) -> None:
    keys = [{"id": {"S": f"r{number}"}} for number in (1, 2, 404)]
    answer = client.batch_get_item(RequestItems={"t": {"Keys": keys, "ConsistentRead": True}})
    assert answer["Responses"] == {"t": [row(2), row(1)]}
    assert answer["UnprocessedKeys"] == {}
    many = [{"id": {"S": str(number)}} for number in range(101)]
    for refused in (many, keys[:1] * 2):
        request = {"t": {"Keys": refused}}
        assert refusal(lambda r=request: client.batch_get_item(RequestItems=r))


def test_nobody_holds_what_is_stored(client: InMemoryDynamoDb) -> None:
    mine = row(1)
    client.put_item(TableName="t", Item=mine)
    mine["map"]["M"]["n"]["N"] = "6"
    stored = client.get_item(TableName="t", Key={"id": {"S": "r1"}})["Item"]
    assert stored == row(1)
    stored["map"]["M"].clear()
    assert client.rows("t")[3] == row(1)


class Lagging:
    """A table whose inconsistent reads are as old as `age`, at most 3."""

    def __init__(self) -> None:
        self.time, self.age = 10, 0
        self.db = InMemoryDynamoDb([TABLE], Lag(lambda: self.time, 3, lambda: self.age))

    def write(self, number: int, at: int, owner: str = "me") -> None:
        item = row(number) | {"at": {"N": str(at)}, "owner": {"S": owner}}
        self.db.put_item(TableName="t", Item=item)

    def get(self, **more: Any) -> str | None:
        item = self.db.get_item(TableName="t", Key={"id": {"S": "r1"}}, **more).get("Item")
        return item and item["at"]["N"]

    def index(self) -> list[tuple[str, str]]:
        items = ask(self.db, " AND #at <= :v0", 100)["Items"]
        return [(item["id"]["S"], item["at"]["N"]) for item in items]


def test_an_inconsistent_read_may_be_old() -> None:
    lagging = Lagging()
    for time, value in ((10, 1), (11, 2), (13, 3)):
        lagging.time = time
        lagging.write(1, value)
    seen = {}
    for age in range(4):
        lagging.age = age
        seen[age] = lagging.get()
        assert lagging.get(ConsistentRead=True) == "3"
    assert seen == {0: "3", 1: "2", 2: "2", 3: "1"}
    keys = {"Keys": [{"id": {"S": "r1"}}]}
    (batched,) = lagging.db.batch_get_item(RequestItems={"t": keys})["Responses"]["t"]
    (scanned,) = lagging.db.scan(TableName="t")["Items"]
    assert batched["at"] == scanned["at"] == {"N": "1"}
    lagging.time = 14
    assert lagging.get() == "2"
    lagging.write(2, 1)
    assert lagging.get() == "2"


def test_an_item_may_not_be_there_yet() -> None:
    lagging = Lagging()
    lagging.write(1, 1)
    lagging.age = 1
    assert lagging.get() is None
    assert lagging.db.scan(TableName="t")["Items"] == []
    keys = {"Keys": [{"id": {"S": "r1"}}]}
    for consistent, found in ((False, 0), (True, 1)):
        asked = {"t": keys | {"ConsistentRead": consistent}}
        assert len(lagging.db.batch_get_item(RequestItems=asked)["Responses"]["t"]) == found


def test_an_index_lags_behind_its_table() -> None:
    lagging = Lagging()
    for number in (1, 2, 3):
        lagging.write(number, number)
    lagging.time, lagging.age = 12, 1
    lagging.write(1, 9)
    lagging.write(2, 2, owner="other")
    lagging.write(4, 4)
    assert lagging.index() == [("r1", "1"), ("r2", "2"), ("r3", "3")]
    first = ask(lagging.db, " AND #at <= :v0", 100, Limit=1)
    last = first["LastEvaluatedKey"]
    assert last["at"] == {"N": "1"}
    more = ask(lagging.db, " AND #at <= :v0", 100, ExclusiveStartKey=last)["Items"]
    assert [item["id"]["S"] for item in more] == ["r2", "r3"]
    lagging.age = 0
    assert lagging.index() == [("r3", "3"), ("r4", "4"), ("r1", "9")]
    assert lagging.db.stale_reads == 3
