"""The examples of packages/open-payments as modules."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

PACKAGE: Final = Path(__file__).parents[2] / "packages" / "open-payments"


def example(name: str) -> ModuleType:
    spec = spec_from_file_location(f"example_{name}", PACKAGE / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
