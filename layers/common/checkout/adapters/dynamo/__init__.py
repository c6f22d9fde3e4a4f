"""The stores in DynamoDB. `wiring.py` makes the client.

This package exports the stores that every function needs. The other stores are imported from their
own files, so that a function loads only the stores that it uses.
"""

from checkout.adapters.dynamo.client import (
    Client,
    DatabaseUrl,
    DynamoDatabase,
    PacedStore,
    parse_database_url,
)
from checkout.adapters.dynamo.codec import read_as_sent
from checkout.adapters.dynamo.events import DynamoEvents
from checkout.adapters.dynamo.expiring_tokens import (
    DynamoChallenges,
    DynamoCounters,
    DynamoFailedRequests,
    DynamoSignIns,
)
from checkout.adapters.dynamo.links import DynamoLinks
from checkout.adapters.dynamo.merchants import CachedMerchants, DynamoApiKeys, DynamoMerchants
from checkout.adapters.dynamo.refunds import DynamoMandates, DynamoRefunds
from checkout.adapters.dynamo.sessions import DynamoSessions

__all__ = [
    "CachedMerchants",
    "Client",
    "DatabaseUrl",
    "DynamoApiKeys",
    "DynamoChallenges",
    "DynamoCounters",
    "DynamoDatabase",
    "DynamoEvents",
    "DynamoFailedRequests",
    "DynamoLinks",
    "DynamoMandates",
    "DynamoMerchants",
    "DynamoRefunds",
    "DynamoSessions",
    "DynamoSignIns",
    "PacedStore",
    "parse_database_url",
    "read_as_sent",
]
