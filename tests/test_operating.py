"""docs/operating.md names what there is."""

from __future__ import annotations

import re
from pathlib import Path

import webhook_sender.app
from checkout.adapters import instrumented
from operations.restore import TABLES
from sandbox.template import resources

REPOSITORY = Path(__file__).parent.parent
TEXT = (REPOSITORY / "docs" / "operating.md").read_text("utf-8")


def counted() -> set[str]:
    """Every metric that the code counts under a name of its own."""
    sources = [
        path.read_text("utf-8")
        for folder in ("functions", "layers/common/checkout")
        for path in (REPOSITORY / folder).rglob("*.py")
    ]
    literal = re.compile(r"telemetry\.count\(\s*\"(\w+)\"")
    names = {name for source in sources for name in literal.findall(source)}
    totals = (REPOSITORY / "functions/expirer/app.py").read_text("utf-8")
    names |= set(re.findall(r"\"([A-Z]\w+)\": counts\.", totals))
    return names | set(instrumented._COUNTED.values()) | set(webhook_sender.app._METRICS.values())


def test_every_metric_is_explained() -> None:
    names = counted()
    assert {"SessionsFailed", "ProviderLatency", "SessionsChecked", "SessionsCompleted"} <= names
    assert {name for name in names if f"`{name}`" not in TEXT} == set()


def test_every_alarm_has_its_line_in_the_runbook() -> None:
    for name in resources("AWS::CloudWatch::Alarm"):
        assert f"`{name.removesuffix('Alarm')}`" in TEXT


def test_every_table_is_restored_in_the_drill() -> None:
    tables = [each["TableName"] for each in resources("AWS::DynamoDB::Table").values()]
    assert {str(name).rsplit("-", 1)[-1].rstrip("'}") for name in tables} == set(TABLES)
    assert "make restore-drill" in TEXT
