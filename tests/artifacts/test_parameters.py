"""SAM CLI reads every parameter exactly as samconfig.toml has it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from operations.deploy import for_sam
from operations.stages import ROOT, stage
from sandbox.template import template
from tests.artifacts.samples import SAMPLES

pytestmark = pytest.mark.artifacts
SAM_PYTHON = ROOT / ".venv-sam" / "bin" / "python"
READER = Path(__file__).with_name("parameters.py")


def read_by_sam(folder: Path, written: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return what SAM CLI reads from the parameters files of these values."""
    files = []
    for number, values in enumerate(written):
        files.append(folder / f"{number}.yaml")
        files[-1].write_text(for_sam(values), "ascii")
    command = [str(SAM_PYTHON), str(READER), *(f"file://{file}" for file in files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found


def test_each_sample_of_each_parameter_arrives_as_it_is(tmp_path: Path) -> None:
    names = list(template()["Parameters"])
    written = [dict.fromkeys(names, sample) for sample in SAMPLES]
    assert read_by_sam(tmp_path, written) == written
    assert len(names) * len(SAMPLES) >= 35 * 17


def test_what_samconfig_says_is_what_sam_reads(tmp_path: Path) -> None:
    config = tmp_path / "samconfig.toml"
    for number, sample in enumerate(SAMPLES):
        config.write_text(
            '[x.global.parameters]\nstack_name = "shop"\n'
            "[x.deploy.parameters.parameter_overrides]\n"
            f"WalletProviders = {json.dumps(sample, ensure_ascii=False)}\n",
            "utf-8",
        )
        folder = tmp_path / str(number)
        folder.mkdir()
        [read] = read_by_sam(folder, [stage("x", config).parameters])
        defaults = {name: str(each["Default"]) for name, each in template()["Parameters"].items()}
        assert read == {**defaults, "WalletProviders": sample}
