"""DynamoDB implementations of `ports`, one file per store. `wiring.py` makes the client."""

from checkout.adapters.dynamo.answers import read_as_sent
from checkout.adapters.dynamo.api_keys import DynamoApiKeys
from checkout.adapters.dynamo.audit import DynamoAudit
from checkout.adapters.dynamo.challenges import DynamoChallenges
from checkout.adapters.dynamo.client import (
    Client,
    DatabaseUrl,
    DynamoDatabase,
    parse_database_url,
)
from checkout.adapters.dynamo.counters import DynamoCounters
from checkout.adapters.dynamo.events import DynamoEvents
from checkout.adapters.dynamo.everything import DynamoRecords
from checkout.adapters.dynamo.links import DynamoLinks
from checkout.adapters.dynamo.merchants import DynamoMerchants
from checkout.adapters.dynamo.people import DynamoPeople
from checkout.adapters.dynamo.sessions import DynamoSessions
from checkout.adapters.dynamo.sign_ins import DynamoSignIns
from checkout.adapters.dynamo.tallies import DynamoTallies

__all__ = [
    "Client",
    "DatabaseUrl",
    "DynamoApiKeys",
    "DynamoAudit",
    "DynamoChallenges",
    "DynamoCounters",
    "DynamoDatabase",
    "DynamoEvents",
    "DynamoLinks",
    "DynamoMerchants",
    "DynamoPeople",
    "DynamoRecords",
    "DynamoSessions",
    "DynamoSignIns",
    "DynamoTallies",
    "parse_database_url",
    "read_as_sent",
]
