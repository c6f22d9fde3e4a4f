"""Translate template.yaml, for test_translated.py; runs in SAM's environment.

Reads the template's parameters and the artifacts' keys in S3 from standard input, as JSON, and
writes the template.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

TEMPLATE = Path(__file__).parents[2] / "template.yaml"


class NoPolicies:
    """Managed policies, which the template does not use."""

    def load(self) -> dict[str, str]:
        return {}


def main() -> None:
    asked = json.load(sys.stdin)
    source, keys = yaml_parse(TEMPLATE.read_text("utf-8")), asked["keys"]
    source["Globals"]["Function"]["CodeUri"] = f"s3://artifacts/{keys['functions']}"
    for layer in ("CommonLayer", "PayLayer"):
        source["Resources"][layer]["Properties"]["ContentUri"] = f"s3://artifacts/{keys[layer]}"
    json.dump(transform(source, asked["parameters"], NoPolicies()), sys.stdout)


main()
