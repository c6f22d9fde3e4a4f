"""Rehearsal of a deployment: a release like version 0.1.0, and a test stage's upgrade from it.

In version 0.1.0, an edge (CloudFront) and the simulated wallets of a test stage were parts of the
stage's own stack.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from operations.deploy import WALLETS
from sandbox.rehearsal import stack
from sandbox.template import read

_ADDED: Final = Path(__file__).with_name("earlier.yaml")
_SECRET: Final = {
    "Fn::If": [
        "HasEdge",
        {"Fn::Sub": "{{resolve:secretsmanager:${EdgeSecret}:SecretString}}"},
        {"Ref": "EdgeProof"},
    ]
}


def release(packaged: Path) -> Path:
    """Write the packaged template in the form of version 0.1.0, and return the new file."""
    whole = yaml.safe_load(packaged.read_text("utf-8"))
    for section, added in read(_ADDED).items():
        whole[section] |= added
    found = whole["Resources"]
    found["TestWalletsFunction"]["Properties"]["Code"] = str(WALLETS.parent / "TestWalletsFunction")
    for variables in _variables(found):
        if "EDGE_SECRET" in variables:
            variables["EDGE_SECRET"] = _SECRET
    for name in ("Domain", "DomainMapping"):
        found[name]["Condition"] = "HasApiDomain"
    found["HttpApi"]["Properties"]["DisableExecuteApiEndpoint"] = {
        "Fn::If": ["HasApiDomain", True, False]
    }
    target, _ = whole["Outputs"]["DomainTarget"], whole["Outputs"].pop("DomainTargetZone")
    edges = {"Fn::GetAtt": ["Distribution", "DomainName"]}
    target["Value"] = {"Fn::If": ["HasEdge", edges, target["Value"]]}
    earlier = packaged.with_name("earlier.yaml")
    earlier.write_text(yaml.safe_dump(whole, sort_keys=False), "utf-8")
    return earlier


def _variables(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    properties = [each["Properties"] for each in found.values()]
    return [each["Environment"]["Variables"] for each in properties if "Environment" in each]


def upgrade_test_stage(operator: stack.Operator, stage: str, packaged: Path) -> int:
    """Upgrade a test stage, which moves the record of its wallets to another table.

    Return the record's size in bytes. Raises RehearsalFailed if the record has changed afterwards.
    """
    chosen, tables = operator.stage(stage), stack.client("dynamodb", operator.endpoint)
    before = tables.scan(TableName=f"{chosen.stack}-test_wallets")["Items"]
    operator.deploy(stage, packaged)
    if tables.scan(TableName=chosen.wallets)["Items"] != before:
        raise stack.RehearsalFailed("the upgrade lost the test wallets")
    return len(before[0]["data"]["B"])
