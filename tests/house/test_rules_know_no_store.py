"""The rules name no index, shard or unit: how records are stored is the adapter's matter."""

from __future__ import annotations

import re

import pytest

from tests.support.sources import files

RULES = [
    each for each in files(".py", "layers/common/checkout/domain") if each.name != "__init__.py"
]
# Units of a currency and lines of code are no matter of a store.
OF_A_STORE = re.compile(
    r"dynamo|\bind(?:ex|ices|exes)\b|shard|\blanes?\b|\bttl\b|\bGSI\b|partition key"
    r"|\b(?:read|write|capacity) units?\b|\bcosts? \w+ units?\b|\bsort keys?\b",
    re.IGNORECASE,
)


def test_no_rule_names_what_a_store_is_made_of() -> None:
    assert len(RULES) > 25
    named = {str(path): OF_A_STORE.findall(path.read_text()) for path in RULES}
    assert {name: found for name, found in named.items() if found} == {}


@pytest.mark.parametrize(
    "line",
    [
        "its place in the index `due`",
        "shard: int = 0",
        "due_shards(urgent=True)",
        "DynamoDB's 400 KB",
        "the first lane",
        "to move it costs two units",
        "a thousand write units a second",
        "ttl = 1",
    ],
)
def test_the_words_of_a_store_are_seen(line: str) -> None:
    assert OF_A_STORE.search(line)


@pytest.mark.parametrize("line", ["in minor units", "unit_amount: int", "ISO 4217's smallest unit"])
def test_the_units_of_a_currency_are_not_meant(line: str) -> None:
    assert not OF_A_STORE.search(line)
