"""An upgrade from the last release changes tables only as DynamoDB can."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from operations import schema

Change = Callable[[dict[str, Any]], None]


def test_the_last_release_can_be_upgraded_to_this_one() -> None:
    found = list(schema.problems(schema.released(), schema.tables()))
    assert found == [], "see docs/howto/change-a-table.md"


def changed(change: Change) -> list[str]:
    """Return the problems of changing the sessions' table so."""
    after = copy.deepcopy(schema.tables())
    change(after["CheckoutSessionsTable"])
    return list(schema.problems(schema.tables(), after))


def add(*names: str) -> Change:
    def change(table: dict[str, Any]) -> None:
        for name in names:
            table["indexes"][name] = {"key": ["id"], "projection": {"ProjectionType": "ALL"}}

    return change


def replace(part: str, value: Any) -> Change:
    def change(table: dict[str, Any]) -> None:
        table[part] = value

    return change


def of_index(part: str, value: Any) -> Change:
    def change(table: dict[str, Any]) -> None:
        table["indexes"]["by_merchant"][part] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (add("one", "two"), "more than one index"),
        (lambda table: (table["indexes"].pop("due"), add("one")(table))[0], "more than one index"),
        (of_index("projection", {"ProjectionType": "ALL"}), "index by_merchant changes"),
        (of_index("key", ["merchant"]), "index by_merchant changes"),
        (replace("key", ["id", "merchant"]), "the key changes"),
        (replace("name", "${AWS::StackName}-sessions"), "the name changes"),
        (lambda table: table["types"].update(id="N"), "the type of id changes"),
        (replace("ttl", None), "time to live"),
    ],
)
def test_what_one_upgrade_cannot_do_is_named(change: Change, words: str) -> None:
    [problem] = changed(change)
    assert problem.startswith("CheckoutSessionsTable: ")
    assert words in problem


@pytest.mark.parametrize("change", [add("one"), lambda table: table["indexes"].pop("due")])
def test_one_index_more_or_less_is_possible(change: Change) -> None:
    assert changed(change) == []


def test_a_table_may_be_added_and_not_removed() -> None:
    now = schema.tables()
    fewer = {name: each for name, each in now.items() if name != "MerchantsTable"}
    assert list(schema.problems(fewer, now)) == []
    [problem] = schema.problems(now, fewer)
    assert problem.startswith("MerchantsTable: removed")


def test_the_command_writes_the_snapshot_and_tells_problems(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(schema, "RELEASED", tmp_path / "released.json")
    assert schema.main(["--write"]) == 0
    assert schema.released() == schema.tables()
    assert schema.main([]) == 0
    monkeypatch.setattr(schema, "tables", dict)
    assert schema.main([]) == 1
    assert "removed" in capsys.readouterr().out
