"""The operator's commands, as they are typed, on a DynamoDB in process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checkout import cli, wiring
from checkout.adapters.dynamo import DynamoApiKeys, DynamoMerchants
from checkout.adapters.runtime import system_random
from checkout.adapters.vault import AesVault
from checkout.domain.merchant.record import details_key_place, private_key_place
from checkout.flows.merchant import settings
from sandbox.cloud import table_definitions
from sandbox.wallets.state import Account
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.support.flows import HARBOR, World, client_id
from tests.support.keys import KEY_ID, new_key_pair
from tests.support.samples import a_key, a_merchant

OLD, NEW, FOREIGN = "11" * 32, "22" * 32, "33" * 32


class Environment:
    """The settings of the command line, and the tables that they name. Calls are new processes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.dynamo = InMemoryDynamoDb(table_definitions("cli"))
        self._set = monkeypatch.setenv
        self._made = wiring._dynamodb
        monkeypatch.setattr(wiring, "_dynamodb", self._client)

    def _client(self, config: Any) -> InMemoryDynamoDb:
        self._made(config)  # it fails without a region
        return self.dynamo

    def __call__(self, **values: str) -> None:
        for name, value in values.items():
            self._set(name, value)
        made = (wiring.api_services, wiring.pay_services, wiring.dashboard_services)
        for each in (self._made, wiring.settings, wiring._store, *made):
            each.cache_clear()

    def add_merchant(self, name: str, *, key: str) -> None:
        vault = AesVault(lambda: key, system_random)
        sealed = vault.seal("secret", place=private_key_place(name))
        merchant = a_merchant(id=name, wallet_address=f"https://w.example/{name}")
        details_key = vault.seal("key", place=details_key_place(name))
        merchant = replace(merchant, private_key=sealed, details_key=details_key, endpoint=None)
        DynamoMerchants(self.dynamo, "cli").add(merchant, a_key(hash=name, merchant=name))


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[Environment]:
    fresh = Environment(monkeypatch)
    fresh(
        AWS_DEFAULT_REGION="us-east-1",
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test",
        DATABASE_URL="dynamodb:///cli",
        BASE_URL="https://pay.example",
        ENCRYPTION_KEY=OLD,
    )
    yield fresh
    fresh()


def test_re_encrypt_tells_its_progress_and_in_the_end_that_the_old_key_can_go(
    environment: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        environment.add_merchant(f"mer_{number}", key=OLD)
    environment(ENCRYPTION_KEY=f"{NEW},{OLD}")
    assert cli.main(["re-encrypt"]) == 0
    first = capsys.readouterr().out
    assert "3 merchants checked, 3 encrypted again" in first
    assert "Run the command again in ten minutes" in first
    assert cli.main(["re-encrypt"]) == 0
    second = capsys.readouterr().out
    assert "3 merchants checked, 0 encrypted again" in second
    assert "All merchants' secrets are encrypted with the first key" in second
    environment(ENCRYPTION_KEY=NEW)
    assert cli.main(["re-encrypt"]) == 0
    assert "0 encrypted again" in capsys.readouterr().out


def test_re_encrypt_fails_and_names_the_merchant_that_neither_key_opens(
    environment: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.add_merchant("mer_good", key=OLD)
    environment.add_merchant("mer_lost", key=FOREIGN)
    environment(ENCRYPTION_KEY=f"{NEW},{OLD}")
    assert cli.main(["re-encrypt"]) == 1
    told = capsys.readouterr()
    assert told.err == "mer_lost: neither key can decrypt its secrets, so they are unchanged.\n"
    assert "2 merchants checked, 1 encrypted again" in told.out


def test_shards_are_set_by_command_and_never_fall(
    environment: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.add_merchant("mer_1", key=OLD)
    wallet = "https://w.example/mer_1"
    assert cli.main(["shards", "--merchant", "mer_1", "--count", "8"]) == 0
    assert "shards    8" in capsys.readouterr().out
    assert cli.main(["shards", "--wallet-address", wallet, "--count", "4"]) == 1
    assert "cannot be lowered" in capsys.readouterr().err
    key = DynamoApiKeys(environment.dynamo, "cli").find("mer_1")
    assert key is not None
    assert key.parts == 8


def test_a_key_that_was_made_meanwhile_is_told(
    environment: Environment,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment.add_merchant("mer_1", key=OLD)
    monkeypatch.setattr(settings, "keys_behind", lambda services, merchant: True)
    assert cli.main(["shards", "--merchant", "mer_1", "--count", "2"]) == 1
    assert "run the command again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("key", "said"),
    [("hunter2", "ENCRYPTION_KEY must be 64 hexadecimal"), ("", "ENCRYPTION_KEY_SECRET must be")],
)
def test_a_command_without_a_usable_key_says_which_setting_is_wrong(
    environment: Environment, capsys: pytest.CaptureFixture[str], key: str, said: str
) -> None:
    environment.add_merchant("mer_1", key=OLD)
    environment(ENCRYPTION_KEY=key)
    assert cli.main(["re-encrypt"]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["re-encrypt"],
        ["setup", "--name", "Shop", "--wallet-address", "https://w.example/s", "--new-api-key"],
        ["webhook", "--merchant", "mer_1"],
    ],
)
def test_without_a_region_the_operator_reads_what_is_missing(
    environment: Environment,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    environment(AWS_CONFIG_FILE="/nowhere")
    assert cli.main(command) == 1
    said = capsys.readouterr().err
    assert said == "No AWS region: set AWS_REGION, for example to eu-central-1.\n"


def test_the_region_may_be_named_by_either_variable(
    environment: Environment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    environment(AWS_CONFIG_FILE="/nowhere", AWS_REGION="us-east-1")
    assert cli.main(["re-encrypt"]) == 0
    assert capsys.readouterr().err == ""


def test_a_merchant_is_set_up_given_another_api_key_and_another_private_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World()
    monkeypatch.setattr(wiring, "pay_services", lambda: world.services)
    wallet, file = f"{HARBOR}/bob", tmp_path / "private.key"
    common = ["setup", "--name", "Bob's", "--wallet-address", wallet]
    assert cli.main([*common, "--key-id", KEY_ID, "--private-key", str(file)]) == 1
    assert "cannot be read" in capsys.readouterr().err
    pem, jwk = new_key_pair(KEY_ID)
    world.network.register_key(wallet, jwk)
    file.write_text(pem)
    pair = ["--key-id", KEY_ID, "--private-key", str(file)]
    assert cli.main([*common, "--key-id", KEY_ID]) == 1
    assert "Give both --key-id and --private-key" in capsys.readouterr().err
    assert cli.main([*common, *pair]) == 0
    made = capsys.readouterr().out
    assert f"wallet    {wallet} (USD)" in made
    assert "API key   sk_" in made
    assert "/dashboard" in made
    merchant = made.split()[1]
    assert f'  checkout invite --merchant {merchant} --name "Ada Lovelace"\n' in made
    assert cli.main([*common, "--by-make"]) == 1
    refused = capsys.readouterr().err
    assert "Make another API key at http://localhost:4000/dashboard/keys." in refused
    assert "--" not in refused, "make takes no flags"
    assert cli.main([*common, "--key-id", "a-key", "--by-make"]) == 1
    assert "Give both KEY_ID= and PRIVATE_KEY=, or neither." in capsys.readouterr().err
    assert cli.main(["setup", "--wallet-address", "", "--name", "", "--by-make"]) == 1
    assert "make merchant WALLET=https://" in capsys.readouterr().err
    assert cli.main([*common, "--new-api-key", "--by-make"]) == 0
    made = capsys.readouterr().out
    assert "API key   sk_" in made
    assert f'  make invite MERCHANT={merchant} NAME="Ada Lovelace"\n' in made
    monkeypatch.setattr("sys.argv", [".venv/bin/checkout"])
    assert cli.main([*common, "--new-api-key"]) == 0
    assert "  .venv/bin/checkout invite --merchant" in capsys.readouterr().out
    assert cli.main([*common, *pair, "--replace-key"]) == 0
    replaced = capsys.readouterr().out
    assert "API keys are unchanged" in replaced
    assert "client" not in replaced


def test_a_merchant_needs_no_key_file_and_may_be_paid_into_another_wallet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World()
    monkeypatch.setattr(wiring, "pay_services", lambda: world.services)
    common = ["setup", "--name", "Bob's", "--wallet-address", f"{HARBOR}/bob"]
    assert cli.main([*common, "--key-id", "", "--private-key", ""]) == 0  # as `make merchant` does
    made = capsys.readouterr().out
    merchant = made.split()[1]
    assert f"client    http://localhost:4000/clients/{client_id(merchant)} (" in made
    assert "API key   sk_" in made
    world.network.add_account(Account(f"{HARBOR}/new-shop", "New shop", "USD", 2, 0))
    assert cli.main([*common, "--new-wallet", f"{HARBOR}/new-shop"]) == 0
    moved = capsys.readouterr().out
    assert f"merchant  {merchant}\nwallet    {HARBOR}/new-shop (USD)\n" in moved
    assert "Payments that have already begun continue unchanged" in moved
