from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandbox import cloud

TABLES = ("merchants", "api_keys", "checkout_sessions", "idempotency_keys", "webhook_events")
REPOSITORY = Path(__file__).parent.parent.parent


def test_the_tables_are_the_templates() -> None:
    names = [table["TableName"] for table in cloud.table_definitions("here")]
    assert names == [f"here-{table}" for table in TABLES]


@pytest.mark.cloud
def test_what_the_template_describes_is_made_once(emulator: str) -> None:
    def secret(stack: cloud.Stack) -> str:
        client = cloud.client("secretsmanager", emulator)
        value: str = client.get_secret_value(SecretId=stack.encryption_key_secret)["SecretString"]
        return value

    first = cloud.create_stack(emulator, "once")
    key = secret(first)
    again = cloud.create_stack(emulator, "once")
    assert first == again
    assert secret(again) == key
    assert len(key) == 64
    assert int(key, 16) > 0
    assert first.database_url == f"dynamodb+{emulator}/once"


@pytest.mark.cloud
def test_rows_age_out_where_the_template_says_so(emulator: str) -> None:
    cloud.create_tables(emulator, "aging")
    dynamodb = cloud.client("dynamodb", emulator)

    def ages(table: str) -> bool:
        found = dynamodb.describe_time_to_live(TableName=f"aging-{table}")
        status: str = found["TimeToLiveDescription"]["TimeToLiveStatus"]
        return status == "ENABLED"

    assert [name for name in TABLES if ages(name)] == list(TABLES[1:])


@pytest.mark.cloud
def test_each_queue_gives_up_to_its_dead_letters(emulator: str) -> None:
    stack = cloud.create_stack(emulator, "queue")
    sqs = cloud.client("sqs", emulator)
    for url, seconds, dead in (
        (stack.events_queue_url, "180", "queue-events-dead"),
        (stack.tasks_queue_url, "360", "queue-tasks-dead"),
    ):
        found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        assert found["VisibilityTimeout"] == seconds
        assert dead in found["RedrivePolicy"]


@pytest.mark.cloud
def test_a_table_of_another_shape_is_refused_with_what_to_do(emulator: str) -> None:
    definition = next(
        table for table in cloud.table_definitions("old") if table["TableName"] == "old-api_keys"
    )
    without_index = {key: value for key, value in definition.items() if "Index" not in key}
    without_index["AttributeDefinitions"] = [{"AttributeName": "hash", "AttributeType": "S"}]
    cloud.client("dynamodb", emulator).create_table(**without_index)
    with pytest.raises(cloud.CloudError, match=r"old-api_keys .* \.sandbox"):
        cloud.create_tables(emulator, "old")


@pytest.mark.cloud
def test_data_is_there_after_a_restart(tmp_path: Path) -> None:
    port = cloud.free_port()
    item = {"id": {"S": "mer_1"}}
    with cloud.running_emulator(port, tmp_path) as endpoint:
        cloud.create_tables(endpoint, "kept")
        cloud.client("dynamodb", endpoint).put_item(TableName="kept-merchants", Item=item)
    with cloud.running_emulator(port, tmp_path) as endpoint:
        found = cloud.client("dynamodb", endpoint).get_item(TableName="kept-merchants", Key=item)
    assert found["Item"] == item
    assert tmp_path.joinpath("dynamodb.json").exists()


@pytest.mark.cloud
def test_an_emulator_left_behind_is_stopped_and_its_data_kept(tmp_path: Path) -> None:
    port = cloud.free_port()
    script = (
        "import sys, time; from pathlib import Path; from sandbox import cloud\n"
        f"with cloud.running_emulator({port}, Path({str(tmp_path)!r})) as endpoint:\n"
        "    cloud.create_tables(endpoint, 'kept'); print('ready', flush=True); time.sleep(60)\n"
    )
    world = subprocess.Popen(
        [sys.executable, "-c", script], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    assert world.stdout is not None
    assert world.stdout.readline() == "ready\n"
    world.send_signal(signal.SIGKILL)
    world.communicate()
    with cloud.running_emulator(port, tmp_path) as endpoint:
        tables = cloud.client("dynamodb", endpoint).list_tables()["TableNames"]
    assert "kept-merchants" in tables


def test_damaged_data_is_refused_before_it_is_overwritten(tmp_path: Path) -> None:
    damaged = tmp_path / "dynamodb.json"
    damaged.write_text('{"half')
    with (
        pytest.raises(cloud.CloudError, match="damaged"),
        cloud.running_emulator(1, tmp_path),
    ):
        pass
    assert damaged.read_text() == '{"half'


def test_a_pid_that_now_belongs_to_somebody_else_is_left_alone(tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        (tmp_path / "emulator.pid").write_text(str(other.pid))
        (tmp_path / "dynamodb.json").write_text("damaged")  # so that nothing is started
        with pytest.raises(cloud.CloudError), cloud.running_emulator(1, tmp_path):
            pass
        time.sleep(0.05)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.cloud
def test_a_taken_port_is_named_with_the_variable_to_set(emulator: str) -> None:
    port = int(emulator.rpartition(":")[2])
    with (
        pytest.raises(cloud.CloudError, match=rf"{port}.*SANDBOX_PORT"),
        cloud.running_emulator(port),
    ):
        pass


@pytest.mark.cloud
def test_a_missing_emulator_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SANDBOX_CLOUD_ENV", str(tmp_path))
    with (
        pytest.raises(cloud.CloudError, match="make setup"),
        cloud.running_emulator(cloud.free_port()),
    ):
        pass
