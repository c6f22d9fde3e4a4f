"""A function sees every parameter as samconfig.toml has it, deployed as `make deploy` does it.

A stack with the parameters of template.yaml, of which each may be any text, and one function that
has them all. SAM CLI deploys it into the emulator as `operations.deploy` calls it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from operations import deploy
from operations.stages import Account, stage
from sandbox import cloud
from sandbox.template import template
from tests.artifacts.samples import SAMPLES

pytestmark = pytest.mark.artifacts

NAMES = list(template()["Parameters"])
DEFAULTS = {name: str(each["Default"]) for name, each in template()["Parameters"].items()}
STACK = "parameters"
SHOWS = "import os\ndef handler(event, context):\n    return dict(os.environ)\n"
ROLE = "arn:aws:iam::000000000000:role/shows"


def stack() -> dict[str, Any]:
    """Return the template of a stack whose function has each parameter as a variable."""
    parameters = {name: {"Type": "String", "Default": DEFAULTS[name]} for name in NAMES}
    function = {
        "Runtime": "python3.13",
        "Handler": "index.handler",
        "Role": ROLE,
        "Code": {"ZipFile": SHOWS},
        "Environment": {"Variables": {f"SEEN_{name}": {"Ref": name} for name in NAMES}},
    }
    shows = {"Type": "AWS::Lambda::Function", "Properties": function}
    output = {"Function": {"Value": {"Ref": "Shows"}}}
    return {"Parameters": parameters, "Resources": {"Shows": shows}, "Outputs": output}


@pytest.fixture
def operator(emulator: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Have the operator's commands find the emulator, and nothing else; return its endpoint."""
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_ENDPOINT_URL", emulator)
    monkeypatch.setenv("AWS_REGION", cloud.REGION)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SAM_CLI_POLL_DELAY", "1")  # seconds
    return emulator


def written(folder: Path, values: dict[str, str]) -> Path:
    """Write a samconfig.toml with these parameters."""
    config = folder / "samconfig.toml"
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
    config.write_text(
        f'version = 0.1\n[x.global.parameters]\nstack_name = "{STACK}"\n'
        "[x.deploy.parameters]\nconfirm_changeset = false\n"
        "fail_on_empty_changeset = false\n"
        "[x.deploy.parameters.parameter_overrides]\n" + "\n".join(lines) + "\n",
        "utf-8",
    )
    return config


def seen(endpoint: str) -> dict[str, str]:
    """Return what the deployed function sees of each parameter."""
    functions = cloud.client("lambda", endpoint, key="test")
    formation = cloud.client("cloudformation", endpoint, key="test")
    [described] = formation.describe_stacks(StackName=STACK)["Stacks"]
    [output] = described["Outputs"]
    answer = functions.invoke(FunctionName=output["OutputValue"], Payload=b"{}")
    variables = json.loads(answer["Payload"].read())
    return {name: variables[f"SEEN_{name}"] for name in NAMES}


def test_a_function_sees_each_sample_of_each_parameter_as_it_is_written(
    operator: str, tmp_path: Path
) -> None:
    account, given = Account(), tmp_path / "template.yaml"
    given.write_text(yaml.safe_dump(stack(), sort_keys=False), "utf-8")
    arrived = 0
    for turn in range(len(SAMPLES)):
        # Each parameter has another sample in each deployment.
        values = {name: SAMPLES[(turn + place) % len(SAMPLES)] for place, name in enumerate(NAMES)}
        chosen = stage("x", written(tmp_path, values))
        assert chosen.parameters == values
        deploy.sam(account, chosen, "-t", str(given))
        # An empty Revision is derived from all others.
        wanted = values | {"Revision": values["Revision"] or deploy.revision(chosen)}
        assert seen(operator) == wanted
        arrived += len(wanted)
    assert arrived == len(NAMES) * len(SAMPLES) >= 39 * 17
    print(f"{len(NAMES)} parameters with {len(SAMPLES)} samples each: {arrived} as written")
    chosen = stage("x", written(tmp_path, {"WalletProviders": "one | two"}))
    deploy.sam(account, chosen, "-t", str(given))
    # A line that was removed restores the default.
    kept = {"WalletProviders": "one | two", "Revision": deploy.revision(chosen)}
    assert seen(operator) == DEFAULTS | kept
