"""Schema: compare the tables of template.yaml with those of the last release.

A deployed table can change only within limits: its key and the keys of its indexes stay the same,
and one update can add or remove only one index. `python -m operations.schema` prints the changes
that an upgrade from the last release cannot make. At a release, `make released-tables` stores the
tables of template.yaml in released-tables.json (docs/releasing.md).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from checkout.version import VERSION
from sandbox.template import resources

RELEASED: Final = Path(__file__).with_name("released-tables.json")

Tables = dict[str, dict[str, Any]]


def tables() -> Tables:
    """Return the tables of template.yaml by logical id: name, key, types, indexes, time to live."""
    return {name: _described(each) for name, each in resources("AWS::DynamoDB::Table").items()}


def released() -> Tables:
    """Return the tables of the last release."""
    found: Tables = json.loads(RELEASED.read_text("utf-8"))["tables"]
    return found


def problems(before: Tables, after: Tables) -> Iterator[str]:
    """Yield the changes that one upgrade cannot make, or can make only by replacing a table."""
    for name in sorted(before.keys() - after.keys()):
        yield f"{name}: removed; the deployed table and its data would be left behind"
    for name in sorted(before.keys() & after.keys()):
        yield from _of_table(name, before[name], after[name])


def _of_table(name: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    for part in ("name", "key"):
        if before[part] != after[part]:
            yield f"{name}: the {part} changes, which replaces the table with an empty one"
    for attribute in sorted(before["types"].keys() & after["types"].keys()):
        if before["types"][attribute] != after["types"][attribute]:
            yield f"{name}: the type of {attribute} changes"
    old, new = before["indexes"], after["indexes"]
    for index in sorted(old.keys() & new.keys()):
        if old[index] != new[index]:
            yield f"{name}: the index {index} changes; add one with another name, then remove it"
    if len(old.keys() ^ new.keys()) > 1:
        changed = ", ".join(sorted(old.keys() ^ new.keys()))
        yield f"{name}: more than one index is added or removed ({changed}); release one at a time"
    if before["ttl"] is not None and before["ttl"] != after["ttl"]:
        yield f"{name}: the time to live changes; records do not expire for an hour"


def _described(table: dict[str, Any]) -> dict[str, Any]:
    types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
    return {
        "name": table["TableName"]["Fn::Sub"],
        "key": _key(table),
        "types": types,
        "indexes": {
            each["IndexName"]: {"key": _key(each), "projection": each["Projection"]}
            for each in table.get("GlobalSecondaryIndexes", [])
        },
        "ttl": table.get("TimeToLiveSpecification", {}).get("AttributeName"),
    }


def _key(keyed: dict[str, Any]) -> list[str]:
    return [part["AttributeName"] for part in keyed["KeySchema"]]


def main(arguments: list[str]) -> int:
    """Print the problems, or write the snapshot; return 1 if there are problems."""
    if arguments == ["--write"]:
        snapshot = {"version": VERSION, "tables": tables()}
        RELEASED.write_text(json.dumps(snapshot, indent=2) + "\n", "utf-8")
        return 0
    found = list(problems(released(), tables()))
    print(*found, sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
