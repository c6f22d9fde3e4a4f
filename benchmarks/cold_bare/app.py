"""A function that creates a session, written as FastAPI's, Mangum's and Powertools' guides show.

It runs with our common layer (benchmarks/cold.py) and imports no module of ours.
"""

import hashlib
import os
import uuid
from typing import Annotated, Any

import boto3
from aws_lambda_powertools import Logger, Metrics
from fastapi import FastAPI, Header
from mangum import Mangum
from pydantic import BaseModel, Field

app = FastAPI()
logger, metrics = Logger(service="bare"), Metrics(namespace="Bare", service="bare")
dynamodb = boto3.client("dynamodb")
TABLES = os.environ["TABLES"]


class Product(BaseModel):
    name: str = Field(min_length=1, max_length=200)
    description: str = Field("", max_length=1000)


class Price(BaseModel):
    currency: str = Field(pattern="^[A-Za-z]{3}$")
    product_data: Product
    unit_amount: int = Field(ge=0)


class Line(BaseModel):
    price_data: Price
    quantity: int = Field(1, ge=1)


class Create(BaseModel):
    mode: str
    line_items: list[Line] = Field(min_length=1, max_length=100)
    success_url: str = Field(max_length=2048)
    cancel_url: str = Field(max_length=2048)
    metadata: dict[str, str | int | float | bool | None] = {}


class Session(Create):
    """A session as it is shown."""

    id: str


@app.post("/api/checkout/sessions", status_code=201)
async def create(body: Create, authorization: Annotated[str, Header()]) -> Session:
    key = hashlib.sha256(authorization.removeprefix("Bearer ").encode()).hexdigest()
    dynamodb.get_item(TableName=f"{TABLES}-api_keys", Key={"hash": {"S": key}}, ConsistentRead=True)
    session = Session(id=f"cs_{uuid.uuid4().hex}", **body.model_dump())
    dynamodb.put_item(
        TableName=f"{TABLES}-checkout_sessions",
        Item={"id": {"S": session.id}, "session": {"S": session.model_dump_json()}},
        ConditionExpression="attribute_not_exists(#id)",
        ExpressionAttributeNames={"#id": "id"},
    )
    logger.info("created", extra={"session": session.id})
    metrics.add_metric(name="Created", unit="Count", value=1)
    return session


mangum = Mangum(app, lifespan="off")


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> Any:
    return mangum(event, context)
