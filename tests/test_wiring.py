"""Each function loads what it needs and no more, and has its settings where they are used.

Every loaded module costs time at every cold start. Each fact is one of a process of its own:
fresh.py.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from enum import Enum
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from checkout import wiring
from checkout.domain.merchant.people import SignUp
from checkout.ports import CompletionPolicy
from checkout.settings import Settings
from tests.support.sources import nodes

pytestmark = [pytest.mark.first, pytest.mark.untraced]

ROOT = Path(__file__).parents[1]
PATHS = {"PYTHONPATH": f"{ROOT / 'layers/common'}:{ROOT / 'functions'}:{ROOT}"}
LAMBDA = PATHS | {
    "AWS_LAMBDA_FUNCTION_NAME": "built",
    "DATABASE_URL": "dynamodb:///test",
    "BASE_URL": "https://pay.example",
    "ENCRYPTION_KEY": "11" * 32,
    "EVENTS_QUEUE_URL": "https://sqs.example/events",
    "RETENTION_DAYS": "31",
    "CLIENT_LIMIT": "18",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
}
LIMIT_OF_WINDOW = 18 // 6  # works in ten seconds
BUILDERS = {
    "api.app": "api_services",
    "dashboard.app": "dashboard_services",
    "pay.app": "pay_services",
    "webhook_sender.app": "webhook_sender",
    "expirer.app": "pay_services",
    "expirer.cleanup": "pay_services",
}
SENDS_RECEIPTS = "pay.app"
SPEAK_TO_WALLETS = ["dashboard.app", "pay.app", "expirer.app", "expirer.cleanup"]
WATCHED = {"httpcore", "httpx", "jinja2", "cryptography", "fastapi", "segno", "babel"}
WEB = {"fastapi", "jinja2", "starlette", "mangum", "pydantic"}
WALLETS = {"open_payments.protocol", "open_payments.transports.public"}
SOME_STORES = {f"checkout.adapters.dynamo.{each}" for each in ("daily_totals", "notes", "people")}
STRIPE = {"api.v1", "api.v1.app", "checkout.domain.stripe.objects"}  # at the first request to /v1
PASSKEYS = {"webauthn", "OpenSSL", "cbor2"}  # at the first use of a passkey


@cache
def facts(module: str, *, in_lambda: bool = True) -> dict[str, Any]:
    """Return what `module` was seen to do in a process of its own; without any settings elsewhere.

    One function sends receipts by e-mail.
    """
    receipts = {"RECEIPT_SENDER": "receipts@pay.example"} if module == SENDS_RECEIPTS else {}
    command = [
        sys.executable,
        "-W",
        "error",
        str(ROOT / "tests/support/fresh.py"),
        module,
        BUILDERS.get(module, ""),
    ]
    environment = LAMBDA | receipts if in_lambda else PATHS
    printed = subprocess.check_output(command, env=environment, text=True)
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])  # in Lambda, telemetry comes first
    return found


@pytest.mark.parametrize(
    ("module", "loaded", "unwanted"),
    [
        ("api.app", {"fastapi"}, WALLETS | STRIPE | SOME_STORES),
        ("api.v1.app", {"fastapi"}, WALLETS),
        ("dashboard.app", {"fastapi", "jinja2", "cryptography"}, WALLETS | {"api"}),
        ("pay.app", {"fastapi", "jinja2", "babel", "cryptography", "httpcore", "httpx"}, set()),
        ("webhook_sender.app", {"cryptography", "httpcore", "httpx"}, WEB),
        ("expirer.app", {"cryptography", "httpcore", "httpx"}, WEB),
        ("expirer.cleanup", {"cryptography", "httpcore", "httpx"}, WEB),
    ],
)
def test_in_lambda_a_function_loads_what_it_uses(
    module: str, loaded: set[str], unwanted: set[str]
) -> None:
    found = set(facts(module)["loaded"])
    assert module in found
    assert found & WATCHED == loaded
    assert not found & (unwanted | PASSKEYS)


def test_elsewhere_no_service_is_made_and_nothing_else_is_left_otherwise() -> None:
    """There are no settings here to make services from."""
    found = facts("api.app", in_lambda=False)
    assert found["collects_while_loading"]
    assert "urllib3.contrib.pyopenssl" not in found["loaded_first"]


@pytest.mark.parametrize("module", BUILDERS)
def test_in_lambda_services_are_built_at_import_and_nothing_is_sent_or_drawn_at_random(
    module: str,
) -> None:
    """Environments may start from a snapshot of the memory after the import (SnapStart).

    All stores share their connections, but for the client of courtesies and health.
    """
    found = facts(module)
    assert found["built"] == 1
    assert found["clients"] == ["dynamodb", "dynamodb"]


@pytest.mark.parametrize("module", BUILDERS)
def test_in_lambda_the_garbage_collector_is_off_while_loading_and_leaves_what_stays_alone(
    module: str,
) -> None:
    found = facts(module)
    assert (found["collects_while_loading"], found["collects"]) == (False, True)
    assert (found["frozen"] > 100_000, found["collects_after"]) == (True, 20_000)


@pytest.mark.parametrize("module", BUILDERS)
def test_in_production_nothing_of_the_own_machine_is_reached(module: str) -> None:
    """Nor asked for: every name leads there, and each function tries one."""
    found = facts(module)
    assert found["loopback"] is False
    assert found["reached"] == []
    if module != "api.app":  # it asks nobody
        assert "address refused" in found["refused"]
    assert found.get("saves_loopback", False) is False


@pytest.mark.parametrize("module", BUILDERS)
def test_every_part_has_the_retention_and_the_limit_that_are_set_and_reaches_no_own_machine(
    module: str,
) -> None:
    """In whatever object such a value lies: one that has its default instead is a mistake."""
    found = facts(module)["settings"]
    assert set(found["retention"]) == {31}
    assert set(found["allow_loopback"]) == {False}
    assert set(found["a_window"]) <= {LIMIT_OF_WINDOW}
    if module in SPEAK_TO_WALLETS:
        assert found["a_window"]


@pytest.mark.parametrize("module", SPEAK_TO_WALLETS)
def test_one_client_is_limited(module: str) -> None:
    assert facts(module)["limited"] is True


def test_the_mail_service_is_made_with_the_first_receipt_if_there_is_a_sender() -> None:
    assert facts(SENDS_RECEIPTS)["mail_is_made_once"]
    assert "mail_is_made_once" not in facts("expirer.app")


# A value of each setting that no other has, what becomes of it, and the places where it belongs.
BAGS = ("Services", "DashboardServices", "PayServices")
IN_DYNAMO = {
    node.name
    for _, node in nodes("layers/common/checkout/adapters/dynamo")
    if isinstance(node, ast.ClassDef) and node.name.startswith("Dynamo")
}
STORES = IN_DYNAMO - {"DynamoSessions"} | {"CachedMerchants", "InstrumentedSessions"}
BELONGS: dict[str, tuple[str, Any, set[str]]] = {
    "DATABASE_URL": (
        "dynamodb:///data",
        "data-merchants",
        {f"{each}._merchants" for each in STORES},
    ),
    "BASE_URL": (
        "https://pay.example",
        "https://pay.example",
        {*(f"{each}.base_url" for each in BAGS), "WebAuthnPasskeys._origin"},
    ),
    "ENCRYPTION_KEY_SECRET": ("secret", "secret", {"key_from_secrets_manager.secret_id"}),
    "DETAILS_KMS_KEY": ("key", "key", {"KmsDetailsKeys._key_id"}),
    "COMPLETION_POLICY": (
        "instructed",
        CompletionPolicy.INSTRUCTED,
        {"PayServices.completion_policy"},
    ),
    "EVENTS_QUEUE_URL": ("events", "events", {"SqsEventQueue._queue_url"}),
    "TASKS_QUEUE_URL": ("tasks", "tasks", {"SqsTaskQueue._queue_url"}),
    "WALLET_PROVIDERS": (
        "Own | https://a.example/{name} | https://a.example",
        "Own",
        {"Provider.name"},
    ),
    "TEST_WALLETS": (
        "https://test.example/test-wallets",
        "https://test.example/test-wallets",
        {*(f"{each}.test_wallets" for each in BAGS), "StageTransport._test_wallets"},
    ),
    "SIGN_UP": ("invitation", SignUp.INVITATION, {"DashboardServices.sign_up"}),
    "RECEIPT_SENDER": ("a@pay.example", "a@pay.example", {"SesMail._sender"}),
    "CLIENT_LIMIT": ("60006", 10_001, {"Allowances._a_window"}),  # works in ten seconds
    "EDGE_SECRET": ("edge", "edge", {f"{each}.edge_secret" for each in BAGS[1:]}),
    "RETENTION_DAYS": (
        "12345",
        timedelta(days=12_345),
        {
            f"{each}._retention"
            for each in (
                "DynamoAudit",
                "DynamoNotes",
                "DynamoPeople",
                "DynamoWithdrawals",
                "InstrumentedSessions",
            )
        },
    ),
}
# In place of the secret, or of a developer's machine only.
NOT_IN_LAMBDA = {"ENCRYPTION_KEY", "ALLOW_LOOPBACK_WALLETS", "EXTRA_CA_FILE"}


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Return everything that the functions and the command line use, by these settings."""
    for name, (text, _, _) in BELONGS.items():
        monkeypatch.setenv(name, text)
    for name in ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, LAMBDA[name])
    caches = [each.cache_clear for each in vars(wiring).values() if hasattr(each, "cache_clear")]
    for clear in caches:
        clear()
    bags = [getattr(wiring, name)() for name in {*BUILDERS.values(), "client_services"}]
    yield [*bags, wiring.records()]
    for clear in caches:
        clear()


def values(part: Any, name: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Yield each value in all of our objects that are reached from this one, with its place."""
    if isinstance(part, str | int | timedelta | Enum):
        yield name, part
        return
    if id(part) in seen or isinstance(part, Settings):
        return
    seen.add(id(part))
    within: list[tuple[str, Any]] = []
    if isinstance(part, list | tuple):
        within = [(name, each) for each in part]
    elif isinstance(part, partial):
        within = [(name, each) for each in (part.func, *part.args)]
    elif isinstance(part, FunctionType):
        maker = part.__qualname__.partition(".")[0]
        cells = zip(part.__code__.co_freevars, part.__closure__ or (), strict=True)
        within = [(f"{maker}.{each}", cell.cell_contents) for each, cell in cells]
    elif type(part).__module__.startswith("checkout.") and not isinstance(part, type):
        slots = [each for kind in type(part).__mro__ for each in getattr(kind, "__slots__", ())]
        names = [*slots, *getattr(part, "__dict__", ())]
        within = [(f"{type(part).__name__}.{each}", getattr(part, each, None)) for each in names]
    for place, value in within:
        yield from values(value, place, seen)


def test_each_setting_is_in_its_own_places_and_in_no_others(built: list[Any]) -> None:
    """So that of any two, each in the place of the other is noticed."""
    assert {*BELONGS, *NOT_IN_LAMBDA} == {each.name.upper() for each in fields(Settings)}
    found = defaultdict(set)
    for place, value in values(built, "", set()):
        found[value].add(place)
    places = {name: found[value] for name, (_, value, _) in BELONGS.items()}
    assert places == {name: wanted for name, (_, _, wanted) in BELONGS.items()}
