"""Compare answers that are read without botocore's parser with what the parser makes of them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError

from checkout.adapters.dynamo import read_as_sent

ITEM = {
    "id": {"S": "cs_1"},
    "version": {"N": "3"},
    "cart": {"B": "AP/+"},
    "B": {"S": "an attribute of this name"},
    "line_items": {"L": [{"M": {"price": {"N": "1"}, "B": {"B": "eA=="}}}, {"B": "eQ=="}]},
    "empty": {"M": {}},
    "flag": {"BOOL": False},
    "none": {"NULL": True},
}
ASKED: dict[str, dict[str, Any]] = {
    "get_item": {"TableName": "t", "Key": {"id": {"S": "cs_1"}}},
    "query": {"TableName": "t"},
    "batch_get_item": {"RequestItems": {"B": {"Keys": [{"id": {"S": "cs_1"}}]}}},
    "update_item": {"TableName": "t", "Key": {"id": {"S": "cs_1"}}, "ReturnValues": "ALL_NEW"},
    "put_item": {"TableName": "t", "Item": {"id": {"S": "cs_1"}}},
}
ANSWERS: dict[str, Any] = {
    "get_item": {"Item": ITEM},
    "query": {"Items": [ITEM, ITEM], "Count": 2, "LastEvaluatedKey": {"id": ITEM["id"]}},
    "batch_get_item": {"Responses": {"B": [ITEM]}, "UnprocessedKeys": {}},
    "update_item": {"Attributes": ITEM},
    "put_item": {},
}


class Body(io.BytesIO):
    """A body as urllib3 hands it over."""

    def stream(self) -> Iterator[bytes]:
        yield self.getvalue()


def client(status: int, body: bytes) -> Any:
    """Return a client whose every call is answered with `body`."""
    made = boto3.client(
        "dynamodb", region_name="us-east-1", aws_access_key_id="k", aws_secret_access_key="s"
    )
    headers = {"x-amzn-RequestId": "r1"}

    def answered(request: Any, **_: Any) -> AWSResponse:
        return AWSResponse(request.url, status, headers, Body(body))

    made.meta.events.register("before-send.dynamodb", answered)
    return made


@pytest.mark.parametrize("operation", ANSWERS)
def test_an_answer_is_what_the_parser_makes_of_it(operation: str) -> None:
    parsed, read = (client(200, json.dumps(ANSWERS[operation]).encode()) for _ in range(2))
    read_as_sent(read)
    expected = getattr(parsed, operation)(**ASKED[operation])
    assert getattr(read, operation)(**ASKED[operation]) == expected


def test_an_answer_without_a_body_is_empty() -> None:
    read = client(200, b"")
    read_as_sent(read)
    assert "Item" not in read.get_item(**ASKED["get_item"])


def test_bytes_are_decoded_wherever_they_are() -> None:
    read = client(200, json.dumps({"Item": ITEM}).encode())
    read_as_sent(read)
    item = read.get_item(**ASKED["get_item"])["Item"]
    assert item["cart"] == {"B": b"\x00\xff\xfe"}
    assert item["line_items"]["L"][0]["M"]["B"] == {"B": b"x"}
    assert item["B"] == ITEM["B"]


def test_a_refusal_is_botocores() -> None:
    refused = {
        "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
        "message": "The conditional request failed",
        "Item": ITEM,
    }
    found = []
    for reads_as_sent in (False, True):
        asked = client(400, json.dumps(refused).encode())
        if reads_as_sent:
            read_as_sent(asked)
        with pytest.raises(ClientError) as raised:
            asked.put_item(**ASKED["put_item"])
        found.append(raised.value.response)
    assert found[0] == found[1]
    assert found[1]["Item"]["cart"] == {"B": b"\x00\xff\xfe"}
