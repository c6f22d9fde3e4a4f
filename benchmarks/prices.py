"""AWS's list prices in us-east-1, November 2026, without taxes and support; free amounts."""

from __future__ import annotations

from typing import Final

# US dollars per million, unless the name gives another unit.
PRICES: Final = {
    "HTTP API requests": 1.00,
    "Lambda invocations": 0.20,
    "Lambda GB-seconds, arm64": 13.3334,
    "DynamoDB write units": 0.625,
    "DynamoDB read units": 0.125,
    "SQS requests": 0.40,
    "log and metric lines, GB": 0.50,
    "access log, GB": 0.50,
    "traffic out, GB": 0.09,
    "DynamoDB storage, GB-months": 0.25,
    "recovery copies, GB-months": 0.20,
}
# US dollars per month; a deployment at rest sends no metrics of its own
FIXED: Final = {
    "KMS key": 1.00,
    "secret": 0.40,
    "alarms (19)": 1.90,
    "dashboard": 3.00,
    "polling two empty queues": 0.53,  # 5 pollers each, 3 times a minute
}

METRIC: Final = 0.30  # US dollars a month for a metric that is sent in every hour

# An account's free amounts each month, without an end, in millions or GB. The polling uses up the
# free million of SQS requests, and the log lines the free GB of logs.
FREE: Final = {
    "Lambda invocations": 1.0,
    "Lambda GB-seconds, arm64": 0.4,
    "log and metric lines, GB": 5.0,
    "traffic out, GB": 100.0,
    "DynamoDB storage, GB-months": 25.0,
}
# US dollars for a million requests with an edge
EDGE: Final = {"CloudFront requests": 1.00, "requests through the web ACL": 0.60}
# The same for FIXED, in US dollars: ten of the alarms, three dashboards, a million SQS requests
FREE_FIXED: Final = {
    "alarms (19)": 1.00,
    "dashboard": 3.00,
    "polling two empty queues": 0.40,
}
