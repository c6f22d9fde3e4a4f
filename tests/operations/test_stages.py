"""The account's region, and the stages that samconfig.toml describes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from operations import deploy, preflight, remove, stages, versions
from operations.stages import Account, Refused
from tests.operations.accounts import REGION, FakeAccount, in_state


@pytest.mark.parametrize("name", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_either_variable_names_the_region(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for each in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(each, raising=False)
    for each in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(each, "test")
    monkeypatch.setenv(name, REGION)
    account = Account()
    assert account.region == REGION
    assert account.client("sts").meta.region_name == REGION


def test_without_a_region_there_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for each in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    for command in (preflight.main, deploy.main, remove.main, versions.main):
        assert command(["default"]) == 1
        said = capsys.readouterr().err
        assert said == "No AWS region: set AWS_REGION, for example to eu-central-1.\n"


def test_a_stage_has_its_choices_and_the_templates_defaults(tmp_path: Path) -> None:
    assert stages.stage("default").parameters["SenderConcurrency"] == "5"
    dev = stages.stage("dev")
    assert (dev.stack, dev.protected) == ("checkout-dev", False)
    guided = tmp_path / "samconfig.toml"  # as `sam deploy --guided` writes it
    guided.write_text(
        '[x.global.parameters]\nstack_name = "shop"\n[x.deploy.parameters]\n'
        'parameter_overrides = "Arch=\\"x86_64\\" BaseUrl=\\"\\""\n'
    )
    chosen = stages.stage("x", guided)
    assert (chosen.stack, chosen.chosen) == ("shop", {"Arch": "x86_64", "BaseUrl": ""})


def test_an_unknown_stage_or_parameter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no stage 'production'"):
        stages.stage("production")
    config = tmp_path / "samconfig.toml"
    config.write_text(
        '[x.global.parameters]\nstack_name = "shop"\n'
        '[x.deploy.parameters]\nparameter_overrides = ["Archh=arm64"]\n'
    )
    with pytest.raises(Refused, match="no parameter 'Archh'"):
        stages.stage("x", config)


def test_values_are_read_as_they_are_written_from_a_line_a_list_and_a_table(tmp_path: Path) -> None:
    config = tmp_path / "samconfig.toml"
    values = {"WalletProviders": 'Cedar "Bank" | a\\b', "BaseUrl": "", "Dashboard": "false"}
    line = "WalletProviders='Cedar \"Bank\" | a\\b' BaseUrl= Dashboard=false"
    listed = ['WalletProviders=Cedar "Bank" | a\\b', "BaseUrl=", "Dashboard=false"]
    table = "{ WalletProviders = 'Cedar \"Bank\" | a\\b', BaseUrl = '', Dashboard = false }"
    for written in (f"'''{line}'''", json.dumps(listed), table):
        config.write_text(
            '[x.global.parameters]\nstack_name = "shop"\n'
            f"[x.deploy.parameters]\nparameter_overrides = {written}\n"
        )
        assert stages.stage("x", config).chosen == values


def test_a_stack_whose_first_change_set_was_not_made_is_none() -> None:
    assert FakeAccount(describe_stacks=in_state("REVIEW_IN_PROGRESS")).stack("checkout") is None
    assert FakeAccount(describe_stacks=in_state("CREATE_COMPLETE")).stack("checkout") is not None
