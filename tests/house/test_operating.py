"""docs/operating.md names what there is."""

from __future__ import annotations

import re

import webhook_sender.app
from checkout.adapters import instrumented
from operations.restore import TABLES
from sandbox.template import read, resources, template
from tests.support.sources import REPOSITORY, files

TEXT = (REPOSITORY / "docs" / "operating.md").read_text("utf-8")


def counted() -> set[str]:
    """Every metric that the code counts under a name of its own."""
    sources = [
        path.read_text("utf-8") for path in files(".py", "functions", "layers/common/checkout")
    ]
    literal = re.compile(r"telemetry\.(?:count|share)\(\s*\"(\w+)\"")
    names = {name for source in sources for name in literal.findall(source)}
    totals = (REPOSITORY / "functions/expirer/app.py").read_text("utf-8")
    names |= set(re.findall(r"\"([A-Z]\w+)\": counts\.", totals))
    return names | set(instrumented._COUNTED.values()) | set(webhook_sender.app._METRICS.values())


def test_every_metric_is_explained() -> None:
    names = counted()
    assert {"SessionsFailed", "ProviderLatency", "SessionsChecked", "SessionsCompleted"} <= names
    assert {name for name in names if f"`{name}`" not in TEXT} == set()


ALARMS = TEXT.partition("\n## Alarms\n")[2].partition("\n## Rotate")[0]


def test_every_alarm_has_a_page_with_commands_to_type() -> None:
    pages = re.split(r"^### ", ALARMS, flags=re.MULTILINE)
    for alarm in resources("AWS::CloudWatch::Alarm"):
        name = alarm.removesuffix("Alarm")
        [page] = [each for each in pages if re.search(rf"^`{name}`:", each, re.MULTILINE)]
        assert re.search(r"^ *```sh\n *(ask|aws|for) ", page, re.MULTILINE), name


OF_EACH_LINE = {"level", "message", "service"}
QUERY = re.compile(r"ask \"(\S+)\" '([^']+)'")


def test_the_queries_ask_groups_messages_and_fields_that_exist() -> None:
    groups = {
        str(each["LogGroupName"]["Fn::Sub"]).replace("${AWS::StackName}", "$STACK")
        for each in resources("AWS::Logs::LogGroup").values()
    }
    sources = "".join(
        path.read_text("utf-8") for path in files(".py", "functions", "layers/common/checkout")
    )
    yaml = (REPOSITORY / "template.yaml").read_text("utf-8")
    queries = QUERY.findall(ALARMS)
    assert len(queries) >= 13
    for group, query in queries:
        assert group.replace("$function", "api") in groups, group
        for message in re.findall(r"message (?:=|like) \"([^\"]+)\"", query):
            assert message in sources, message
        for fields in re.findall(r"\bby ([\w., ]+)", query):
            for field in fields.split(", "):
                name = field.split(".")[0].split()[0]
                ours = f'"{name}"' in sources or f'"{name}":"$context' in yaml
                assert ours or name in OF_EACH_LINE, field


def test_every_table_is_restored_in_the_drill() -> None:
    tables = [each["TableName"] for each in resources("AWS::DynamoDB::Table").values()]
    assert {str(name).rsplit("-", 1)[-1].rstrip("'}") for name in tables} == set(TABLES)
    assert "make restore-drill" in TEXT


def test_the_limits_beside_the_tables_follow_from_the_tables() -> None:
    text = (REPOSITORY / "docs" / "scaling.md").read_text("utf-8")

    def full(what: str) -> float:
        [value] = re.findall(rf"^\| {re.escape(what)} \| ([\d.]+) \|", text, re.MULTILINE)
        return float(value)

    edge = read(REPOSITORY / "operations" / "edge.yaml")
    parameters = template()["Parameters"] | edge["Parameters"]

    def limit(name: str) -> float:
        return float(str(parameters[name]["Default"]).split(",")[0])

    assert round(full("executions of Lambda") * 10 / 1000, 1) == full("a new account")
    assert round(full("webhook sender") * 0.25 / 10, 1) == full("endpoints that all hang")
    carts_beside_a_checkout, looks = 7 / 3, 11  # at 30 % conversion; each in sight for a minute
    statuses = limit("StatusThrottle") / (carts_beside_a_checkout * looks + 12)
    found = full("status requests of open pages, throttle")
    assert 0.9 * statuses < found <= statuses  # beside these, some give a wallet and leave
    reads = 11  # of our keys and of the client's document
    assert int(limit("EdgeApiRequests") / 300 / reads) == full(
        "an edge: one wallet provider's servers"
    )
    server, customers = "an edge: one merchant's server", "an edge: customers behind one address"
    assert int(limit("EdgeApiRequests") / 300 / 4.44) == full(server)
    assert int(limit("EdgeRequests") / 300 / 18 * 10) / 10 == full(customers)
