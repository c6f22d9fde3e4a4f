"""AWS's list prices in us-east-1, November 2026, without taxes and support.

And what an account has free each month.
"""

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
    "traffic out, GB": 0.09,
}
# US dollars per month; a deployment at rest sends no metrics of its own
FIXED: Final = {
    "KMS key": 1.00,
    "secret": 0.40,
    "alarms (8)": 0.80,
    "dashboard": 3.00,
    "polling two empty queues": 0.53,  # 5 pollers each, 3 times a minute
}

# What an account has free each month, for as long as it exists, in millions or GB. The free million
# of SQS requests goes to the polling.
FREE: Final = {
    "Lambda invocations": 1.0,
    "Lambda GB-seconds, arm64": 0.4,
    "log and metric lines, GB": 5.0,
    "traffic out, GB": 100.0,
}
# The same, of FIXED, in US dollars: ten alarms, three dashboards, a million SQS requests
FREE_FIXED: Final = {
    "alarms (8)": 0.80,
    "dashboard": 3.00,
    "polling two empty queues": 0.40,
}
