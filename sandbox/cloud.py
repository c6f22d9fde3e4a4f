"""Emulator: AWS on this machine, with the tables, queues and secret of template.yaml.

The emulator is part of the local world (checkout, wallets and shop on one machine), and runs in a
virtual environment of its own. It has no encryption at rest. It enforces permissions only in the
rehearsal (rehearsal/). It saves its data only when SIGTERM stops it, so this module never kills it.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from sandbox.template import resources, stack_name

REGION: Final = "us-east-1"
_TABLES: Final = "AWS::DynamoDB::Table"
_TABLE_PROPERTIES: Final = (
    "BillingMode",
    "AttributeDefinitions",
    "KeySchema",
    "GlobalSecondaryIndexes",
)
_READY_WITHIN: Final = 60.0  # seconds
_STOPPED_WITHIN: Final = 60.0


class CloudError(Exception):
    """The emulator cannot be started or used; the message contains the next step."""


@dataclass(frozen=True, slots=True)
class Stack:
    """Addresses and names of the created resources, for the functions' environment."""

    database_url: str
    events_queue_url: str
    tasks_queue_url: str
    encryption_key_secret: str
    details_kms_key: str


def table_definitions(prefix: str) -> list[dict[str, Any]]:
    """Return the create_table arguments of each table in the template, named `prefix-<table>`."""
    return [
        {
            "TableName": stack_name(table["TableName"], prefix),
            **{name: table[name] for name in _TABLE_PROPERTIES if name in table},
        }
        for table in resources(_TABLES).values()
    ]


def client(service: str, endpoint: str, key: str = "local") -> Any:
    """Return a boto3 client of the emulator. `key` matters only if the emulator enforces roles."""
    import boto3
    from botocore.config import Config

    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=key,
        aws_secret_access_key=key,
        config=Config(retries={"mode": "standard", "total_max_attempts": 3}),
    )


def create_stack(endpoint: str, prefix: str, key: str = "local") -> Stack:
    """Create the stack's resources that are missing, and return their addresses and names.

    Raises CloudError if a table exists with another schema.
    """
    create_tables(endpoint, prefix, key)
    return Stack(
        database_url=f"dynamodb+{endpoint}/{prefix}",
        events_queue_url=_queue(client("sqs", endpoint, key), prefix, "Events"),
        tasks_queue_url=_queue(client("sqs", endpoint, key), prefix, "Tasks"),
        encryption_key_secret=_secret(client("secretsmanager", endpoint, key), prefix),
        details_kms_key=_kms_key(client("kms", endpoint, key), prefix),
    )


def create_tables(endpoint: str, prefix: str, key: str = "local") -> None:
    """Create the missing tables. Raises CloudError if a table exists with another schema."""
    dynamodb = client("dynamodb", endpoint, key)
    existing = set()
    for page in dynamodb.get_paginator("list_tables").paginate():
        existing.update(page["TableNames"])
    for wanted, table in zip(table_definitions(prefix), resources(_TABLES).values(), strict=True):
        name = wanted["TableName"]
        if name in existing:
            _require_same_shape(dynamodb.describe_table(TableName=name)["Table"], wanted)
            continue
        dynamodb.create_table(**wanted)
        if "TimeToLiveSpecification" in table:
            dynamodb.update_time_to_live(
                TableName=name, TimeToLiveSpecification=table["TimeToLiveSpecification"]
            )


@contextmanager
def running_emulator(
    port: int,
    state: Path | None = None,
    more: Mapping[str, str] | None = None,
    *,
    key: str | None = None,
) -> Iterator[str]:
    """Run the emulator on loopback and yield its endpoint URL.

    `state` is the folder with the emulator's data; without it the emulator starts empty. If a dead
    process has left an emulator running with this folder, that emulator is stopped first. `more` is
    added to the environment of the emulator and its functions. With `key`, the emulator accepts
    only requests with this access key, and none from a browser (guarded_emulator.py). Raises
    CloudError.
    """
    with tempfile.TemporaryDirectory(prefix="checkout-emulator-") as scratch:
        if state is not None:
            state.mkdir(parents=True, exist_ok=True, mode=0o700)
        home = state or Path(scratch)
        with _claimed(home / "emulator.pid") as claim:
            _require_whole(home)
            require_free(port, "the AWS emulator")
            log = home / "emulator.log"
            with log.open("wb") as output:
                process = subprocess.Popen(
                    _command(guarded=key is not None),
                    env={
                        **_environment(port, state, scratch),
                        **({"EMULATOR_KEY": key} if key is not None else {}),
                        **(more or {}),
                    },
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    # Ctrl-C must not reach the emulator, because it must be stopped last.
                    start_new_session=True,
                    pass_fds=[claim.fileno()],  # the emulator keeps the lock while it runs
                )
            claim.write(str(process.pid))
        endpoint = f"http://127.0.0.1:{port}"
        try:
            _wait_until_ready(endpoint, process, log)
            yield endpoint
        finally:
            _stop(process)


def require_free(port: int, user: str) -> None:
    """Raise CloudError if something listens on this local port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise CloudError(
                f"Port {port}, for {user}, is taken. Stop the program that uses it, or set "
                "SANDBOX_PORT to the first of other ports."
            ) from None


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _command(*, guarded: bool) -> list[str]:
    program = _program()
    if not guarded:
        return [str(program)]
    return [str(program.parent / "python"), str(Path(__file__).parent / "guarded_emulator.py")]


def _program() -> Path:
    default = Path(__file__).parent.parent / ".venv-cloud"
    program = Path(os.environ.get("SANDBOX_CLOUD_ENV", default)) / "bin" / "ministack"
    if not program.exists():
        raise CloudError(f"The AWS emulator is not installed ({program}). Run `make setup`.")
    return program


def _environment(port: int, state: Path | None, scratch: str) -> dict[str, str]:
    kept = {} if state is None else {"PERSIST_STATE": "1", "STATE_DIR": str(state.resolve())}
    return {
        "PATH": os.environ.get("PATH", ""),
        "HOME": scratch,
        "TMPDIR": scratch,
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_ENABLED": "0",  # it would listen on all interfaces
        "LOG_LEVEL": "WARNING",
        "S3_DATA_DIR": f"{scratch}/s3",
        **kept,
    }


def _wait_until_ready(endpoint: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _READY_WITHIN
    # The emulator is on loopback, so the proxy of the environment is not used.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with suppress(OSError, urllib.error.URLError):
            opener.open(f"{endpoint}/_ministack/health", timeout=1).close()
            return
        time.sleep(0.05)
    last = log.read_text("utf-8", "replace")[-1000:].strip()
    raise CloudError(f"The AWS emulator did not start. The end of its log:\n{last}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOPPED_WITHIN)
    except subprocess.TimeoutExpired:
        raise CloudError(
            f"The AWS emulator (process {process.pid}) is still saving its data; it was left alone."
        ) from None
    with suppress(ProcessLookupError, PermissionError):  # its remaining workers
        os.killpg(process.pid, signal.SIGTERM)


@contextmanager
def _claimed(pid_file: Path) -> Iterator[IO[str]]:
    """Stop an emulator that still holds the lock of the pid file. Then lock and empty the file.

    Such an emulator was started by a process that has died. It saves its data when it is stopped.
    """
    with pid_file.open("a+", encoding="utf-8") as file:
        if not _locked(file):
            file.seek(0)
            pid = file.read()
            # The errors occur if the pid is not written yet, or the emulator has just stopped.
            with suppress(ValueError, ProcessLookupError):
                # Signal only once: a second signal would interrupt saving.
                os.kill(int(pid), signal.SIGTERM)
            deadline = time.monotonic() + _STOPPED_WITHIN
            while not _locked(file):
                if time.monotonic() > deadline:
                    raise CloudError(
                        f"The previous AWS emulator (process {pid}) does not stop. Stop it by hand."
                    )
                time.sleep(0.05)
        file.truncate(0)
        yield file


def _locked(file: IO[Any]) -> bool:
    """Lock the file unless another process holds it; return whether it worked.

    The lock is held until no process has the file open.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _require_whole(state: Path) -> None:
    """Raise CloudError if a data file is damaged. The emulator would overwrite it as empty."""
    for file in state.glob("*.json"):
        try:
            json.loads(file.read_bytes())
        except (OSError, ValueError):
            raise CloudError(
                f"The emulator's data is damaged ({file}). Remove that folder to start with empty "
                "tables."
            ) from None


def _require_same_shape(table: dict[str, Any], wanted: dict[str, Any]) -> None:
    if _shape(table) != _shape(wanted):
        raise CloudError(
            f"The table {wanted['TableName']} does not match template.yaml. "
            "Remove the local world's data (the folder .sandbox) to start with empty tables."
        )


def _shape(table: dict[str, Any]) -> Any:
    keys = [(key["AttributeName"], key["KeyType"]) for key in table["KeySchema"]]
    types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
    indexes = {
        index["IndexName"]: (
            [(key["AttributeName"], key["KeyType"]) for key in index["KeySchema"]],
            index["Projection"]["ProjectionType"],
        )
        for index in table.get("GlobalSecondaryIndexes", [])
    }
    return keys, types, indexes


def _queue(sqs: Any, prefix: str, kind: str) -> str:
    """Create the template's queue of that kind and its dead-letter queue; return the queue's URL.

    Creating an identical queue again changes nothing.
    """
    described = resources("AWS::SQS::Queue")[f"{kind}Queue"]
    name = f"{prefix}-{kind.lower()}"
    dead = sqs.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]
    redrive = (
        f'{{"deadLetterTargetArn":"{arn["QueueArn"]}",'
        f'"maxReceiveCount":"{described["RedrivePolicy"]["maxReceiveCount"]}"}}'
    )
    attributes = {
        "VisibilityTimeout": str(described["VisibilityTimeout"]),
        "RedrivePolicy": redrive,
    }
    url: str = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return url


def _secret(secrets: Any, prefix: str) -> str:
    """Return the secret's name. Create the secret if it is missing, with a random value."""
    described = resources("AWS::SecretsManager::Secret")["EncryptionKey"]
    name = f"{prefix}/encryption-key"
    try:
        secrets.describe_secret(SecretId=name)
    except secrets.exceptions.ResourceNotFoundException:
        value = secrets.get_random_password(**described["GenerateSecretString"])
        secrets.create_secret(Name=name, SecretString=value["RandomPassword"])
    return name


def _kms_key(kms: Any, prefix: str) -> str:
    """Return the ARN of the stack's key. Create the key and its alias if they are missing."""
    alias = f"alias/{prefix}"
    try:
        found = kms.describe_key(KeyId=alias)
    except kms.exceptions.NotFoundException:
        found = kms.create_key()
        kms.create_alias(AliasName=alias, TargetKeyId=found["KeyMetadata"]["KeyId"])
    arn: str = found["KeyMetadata"]["Arn"]
    return arn
