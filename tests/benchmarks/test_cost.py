"""The metering behind the costs on the operator's page, and the page's numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cost
from benchmarks.meter import OVERHEAD, SECONDS_A_MONTH, Metered, Usage, keeping, stored
from benchmarks.prices import METRIC
from checkout import telemetry
from sandbox.cloud import table_definitions
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.support.basics import NOW
from tests.support.deployment import Deployment
from tests.support.flows import PREFIX

REPOSITORY = Path(__file__).parent.parent.parent
PAGES = (REPOSITORY / "README.md", REPOSITORY / "docs" / "operating.md")
TABLE = f"{PREFIX}-checkout_sessions"


def item(size: int = 10, **keys: Any) -> dict[str, Any]:
    return {"id": {"S": "cs_1"}, "text": {"S": "x" * size}, **keys}


@pytest.fixture
def meter() -> Metered:
    tables = table_definitions(PREFIX)
    return Metered(InMemoryDynamoDb(tables), tables)


@pytest.mark.parametrize(("size", "units"), [(10, 1), (900, 1), (1100, 2), (5000, 5)])
def test_a_write_is_a_unit_a_kilobyte_begun_and_twice_that_in_a_transaction(
    meter: Metered, size: int, units: int
) -> None:
    meter.put_item(TableName=TABLE, Item=item(size))
    assert meter.usage == Usage(calls=1, writes=units)
    changed = {"Put": {"TableName": TABLE, "Item": item(size, more={"S": "y"})}}
    meter.transact_write_items(TransactItems=[changed])
    assert meter.usage == Usage(calls=2, writes=3 * units)


def test_an_index_entry_that_comes_moves_or_goes_costs_one_two_and_one(meter: Metered) -> None:
    places = [("1", "5"), ("1", "5"), ("2", "5"), None]
    costs = []
    for number, place in enumerate(places):
        keys = {"due_shard": {"S": place[0]}, "due_at": {"N": place[1]}} if place else {}
        before = meter.usage.index_writes
        meter.put_item(TableName=TABLE, Item=item(10 + number, **keys))
        costs.append(meter.usage.index_writes - before)
    assert costs == [1, 0, 2, 1]


def test_reads_are_by_four_kilobytes_and_half_of_that_from_an_index(meter: Metered) -> None:
    meter.put_item(TableName=TABLE, Item=item(5000))
    for key in ("cs_1", "cs_2"):
        meter.get_item(TableName=TABLE, Key={"id": {"S": key}}, ConsistentRead=True)
    assert meter.usage.reads == 2 + 1  # what is not there costs as well
    meter.query(
        TableName=TABLE,
        IndexName="due",
        KeyConditionExpression="#due_shard = :shard",
        ExpressionAttributeNames={"#due_shard": "due_shard"},
        ExpressionAttributeValues={":shard": {"S": "1"}},
    )
    assert meter.usage.reads == 3.5


def test_an_item_is_kept_with_its_entries_until_its_time_to_live_and_copied_without_them(
    meter: Metered,
) -> None:
    before = stored(meter.client, meter.tables)
    month = {"N": str(int(NOW.timestamp() + SECONDS_A_MONTH))}
    place = {"search_key": {"S": "k" * 10}, "created_key": {"S": "c" * 10}}
    for row in (item(700, ttl=month, **place), {"id": {"S": "day#1"}, "text": {"S": "for ever"}}):
        meter.put_item(TableName=TABLE, Item=row)
    usage = keeping(before, stored(meter.client, meter.tables), meter.tables, since=NOW)
    own = usage.recoverable * 1000 - OVERHEAD
    assert 700 < own < 830  # names and the place included
    entry = (usage.kept - usage.recoverable) * 1000 - OVERHEAD
    assert 45 < entry < 60  # its two keys and the item's, with their names
    dollars = cost.parts(usage)
    assert dollars["DynamoDB storage, GB-months"] == pytest.approx(usage.kept * 0.25)
    assert dollars["recovery copies, GB-months"] == pytest.approx(usage.recoverable * 0.20)


@pytest.mark.parametrize(
    ("pace", "seconds", "times"),
    [(2, 1, 0), (2, 5, 2), (3, 2, 0), (3, 20, 6), (3, 21, 7), (3, 60, 11)],
)
def test_a_page_in_sight_is_polled_as_its_script_does(pace: int, seconds: int, times: int) -> None:
    assert cost.polls(f'<main data-pace="{pace}">', seconds) == times
    assert cost.polls("<main>", seconds) == 0


def test_the_poll_of_the_benchmark_is_the_script_s() -> None:
    script = (REPOSITORY / "functions/pay/templates/page.js").read_text("utf-8")
    closely = f"CLOSELY = {cost.CLOSELY}, CLOSELY_FOR = {cost.CLOSELY_FOR}, OFTEN = {cost.OFTEN}, "
    assert closely in script
    assert "paying || Date.now() - since < CLOSELY_FOR * 1000 ? CLOSELY : OFTEN;" in script
    assert "wait = Math.min(wait * (crowded ? 3 : 1.5), most);" in script


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_say_what_the_benchmark_prints(
    page: Path,
    told: Callable[[], list[dict[str, Any]]],
) -> None:
    """Compare to within half a cent and half a dollar."""
    text = " ".join(page.read_text("utf-8").split())
    [cents] = re.findall(r"cost about (\d+) US cents", text)
    [of_thirty] = re.findall(r"(\d+) if 30 of 100 do", text)
    [dollars] = re.findall(r"about (\d+) US dollars a month at rest", text)
    [busy] = re.findall(r"about (\d+) with traffic", text)
    total = cost.a_million(sum(cost.measured().values(), Usage()))
    away = cost.a_million(sum(cost.measured_left().values(), Usage()))
    assert total / 10 == pytest.approx(float(cents), abs=0.5)
    assert (total + away * 7 / 3) / 10 == pytest.approx(float(of_thirty), abs=0.5)
    listed = sum(price for price, _ in cost.idle().values())
    assert listed == pytest.approx(float(dollars), abs=0.5)
    # Those of a purchase, and beside them what sometimes fails, waits or is looked after.
    [sent] = re.findall(r"about (\d+) metrics", PAGES[1].read_text("utf-8"))
    assert listed + METRIC * int(sent) == pytest.approx(float(busy), abs=0.5)
    told()
    assert 10 <= len(metrics_of_a_purchase(told)) <= int(sent)


def metrics_of_a_purchase(told: Callable[[], list[dict[str, Any]]]) -> set[tuple[str, ...]]:
    """Return the metrics that a purchase and a round of the sweep send, with their dimensions."""
    telemetry.start("pay")
    deployed = Deployment()
    deployed.wants_webhooks()
    session = deployed.created()
    approved = deployed.approve(deployed.submit(session).json["interact_url"])
    deployed.come_back(session, approved)
    deployed.world.clock.pass_time(120)
    deployed.sweep()
    deployed.send_webhooks()
    return {
        (metric["Name"], *sent["Dimensions"][0])
        for line in told()
        for sent in line.get("_aws", {}).get("CloudWatchMetrics", ())
        for metric in sent["Metrics"]
    }


def test_a_month_at_rest_is_below_three_dollars_with_what_an_account_has_free() -> None:
    lines = cost.idle()
    assert {name: lines[name][1] for name in ("KMS key", "secret")} == {
        "KMS key": 1.00,
        "secret": 0.40,
    }
    assert sum(charged for _, charged in lines.values()) < 3


def test_write_units_stay_within_what_the_decision_says() -> None:
    """The bounds of docs/decisions/0003. An address of a real wallet is about as long as here."""
    for cart, bound in ((cost.SMALLEST, 41), (cost.LARGER, 52)):
        steps = cost.measured(cart)
        assert cost.units(sum(steps.values(), Usage())) <= bound
        left = sum(cost.measured_left(cart).values(), Usage())
        assert cost.units(left) < bound / 2
