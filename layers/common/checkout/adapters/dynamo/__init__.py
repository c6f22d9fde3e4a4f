"""The stores in DynamoDB, one file per store. `wiring.py` makes the client."""

from checkout.adapters.dynamo.client import (
    Client,
    DatabaseUrl,
    DynamoDatabase,
    PacedStore,
    parse_database_url,
)
from checkout.adapters.dynamo.codec import read_as_sent
from checkout.adapters.dynamo.daily_totals import DynamoDailyTotals
from checkout.adapters.dynamo.erasure import DynamoRecords
from checkout.adapters.dynamo.events import DynamoEvents
from checkout.adapters.dynamo.expiring_tokens import (
    DynamoChallenges,
    DynamoCounters,
    DynamoFailedRequests,
    DynamoSignIns,
)
from checkout.adapters.dynamo.links import DynamoLinks
from checkout.adapters.dynamo.merchants import CachedMerchants, DynamoApiKeys, DynamoMerchants
from checkout.adapters.dynamo.notes import DynamoNotes, DynamoWithdrawals
from checkout.adapters.dynamo.people import DynamoAudit, DynamoPeople, DynamoSubscribers
from checkout.adapters.dynamo.refunds import DynamoMandates, DynamoRefunds
from checkout.adapters.dynamo.sessions import DynamoSessions

__all__ = [
    "CachedMerchants",
    "Client",
    "DatabaseUrl",
    "DynamoApiKeys",
    "DynamoAudit",
    "DynamoChallenges",
    "DynamoCounters",
    "DynamoDailyTotals",
    "DynamoDatabase",
    "DynamoEvents",
    "DynamoFailedRequests",
    "DynamoLinks",
    "DynamoMandates",
    "DynamoMerchants",
    "DynamoNotes",
    "DynamoPeople",
    "DynamoRecords",
    "DynamoRefunds",
    "DynamoSessions",
    "DynamoSignIns",
    "DynamoSubscribers",
    "DynamoWithdrawals",
    "PacedStore",
    "parse_database_url",
    "read_as_sent",
]
