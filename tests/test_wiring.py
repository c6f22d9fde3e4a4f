"""Each function loads what it needs and no more: what is loaded is paid for at every cold start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WATCHED = {"httpcore", "httpx", "jinja2", "cryptography", "fastapi", "segno", "babel"}
ENVIRONMENT = {
    "PYTHONPATH": f"{ROOT / 'layers/common'}:{ROOT / 'functions'}",
    "DATABASE_URL": "dynamodb:///test",
    "BASE_URL": "https://pay.example",
    "ENCRYPTION_KEY": "11" * 32,
    "EVENTS_QUEUE_URL": "https://sqs.example/events",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
}


def printed(script: str) -> str:
    """Return what the script prints in a process of its own."""
    command = [sys.executable, "-W", "error", "-c", script]
    return subprocess.check_output(command, env=ENVIRONMENT, text=True)


@pytest.mark.parametrize(
    ("builder", "loaded"),
    [
        ("api_services", set()),
        ("dashboard_services", {"cryptography"}),
        ("webhook_sender", {"cryptography", "httpcore"}),
    ],
)
def test_a_builder_loads_nothing_that_its_function_does_not_use(
    builder: str, loaded: set[str]
) -> None:
    modules = printed(
        f"import sys; from checkout import wiring; wiring.{builder}()\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    assert set(modules.split()) & WATCHED == loaded


def test_all_stores_of_a_process_share_their_connections_but_for_health() -> None:
    script = (
        "import boto3; made = []; make = boto3.client\n"
        "boto3.client = lambda name, **options: made.append(name) or make(name, **options)\n"
        "from checkout import wiring; wiring.dashboard_services(); print(made.count('dynamodb'))"
    )
    assert printed(script) == "2\n"


def test_the_mail_service_is_loaded_with_the_first_receipt_if_there_is_a_sender() -> None:
    script = (
        "import boto3, os; made = []; make = boto3.client\n"
        "boto3.client = lambda name, **options: made.append(name) or make(name, **options)\n"
        "{}"
        "from checkout import wiring; mail = wiring.pay_services().mail\n"
        "print(mail is not None, made.count('sesv2'), mail and mail._client() is mail._client())\n"
    )
    sender = "os.environ['RECEIPT_SENDER'] = 'receipts@pay.example'\n"
    assert printed(script.format(sender)) == "True 0 True\n"
    assert printed(script.format("")) == "False 0 None\n"


@pytest.mark.parametrize(
    ("module", "builder"),
    [
        ("api.app", "api_services"),
        ("dashboard.app", "dashboard_services"),
        ("pay.app", "pay_services"),
        ("webhook_sender.app", "webhook_sender"),
        ("expirer.app", "pay_services"),
        ("expirer.cleanup", "pay_services"),
    ],
)
def test_in_lambda_services_are_built_at_import_and_nothing_is_sent_or_drawn_at_random(
    module: str, builder: str
) -> None:
    """Environments may start from a snapshot of the memory after the import (SnapStart).

    Elsewhere nothing is built at import: test_loading.py.
    """
    script = (
        "import os, socket\n"
        "def refuse(*arguments): raise AssertionError('nothing may be sent, or drawn at random')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from checkout.adapters import clock; clock.system_random = refuse\n"
        "os.environ['AWS_LAMBDA_FUNCTION_NAME'] = 'built'\n"
        f"import {module}\n"
        f"from checkout import wiring; print(wiring.{builder}.cache_info().currsize)"
    )
    assert printed(script) == "1\n"


def test_in_lambda_the_garbage_collector_leaves_what_stays_alone() -> None:
    script = (
        "import os, gc; os.environ['AWS_LAMBDA_FUNCTION_NAME'] = 'built'\n"
        "import api; off = not gc.isenabled()\n"
        "import api.app; print(off, gc.isenabled())\n"
        "print(gc.get_freeze_count() > 100_000, gc.get_threshold()[0])"
    )
    assert printed(script) == "True True\nTrue 20000\n"


@pytest.mark.parametrize(
    "module", ["pay", "dashboard", "webhook_sender", "expirer", "expirer.cleanup"]
)
def test_each_function_is_loaded_without_the_garbage_collector_and_runs_with_it(
    module: str,
) -> None:
    app = module if "." in module else f"{module}.app"
    script = (
        "import os, gc; os.environ['AWS_LAMBDA_FUNCTION_NAME'] = 'built'\n"
        f"import {module.partition('.')[0]}; off = not gc.isenabled()\n"
        f"import {app}; print(off, gc.isenabled())"
    )
    assert printed(script) == "True True\n"


def test_elsewhere_the_garbage_collector_is_left_as_it_is() -> None:
    assert printed("import gc, checkout, api; print(gc.isenabled())") == "True\n"
