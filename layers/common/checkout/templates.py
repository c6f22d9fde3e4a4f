"""Jinja environments of the functions with pages.

Compiling a page's templates takes 50 ms of CPU. So the build compiles deployed templates
(sandbox/artifacts.py). In other places, each process compiles the templates that it uses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from jinja2 import BaseLoader, Environment, FileSystemLoader, ModuleLoader, StrictUndefined

COMPILED: Final = "compiled"  # the subfolder with the compiled templates


def templates(folder: Path) -> Environment:
    """Return the Jinja environment of `folder`: it escapes text, and refuses undefined names."""
    compiled = folder / COMPILED
    return _environment(ModuleLoader(compiled) if compiled.is_dir() else FileSystemLoader(folder))


def compile_all(folder: Path) -> None:
    """Write all templates of `folder` as Python modules. Raise Jinja's errors for invalid ones."""
    environment = _environment(FileSystemLoader(folder))
    environment.compile_templates(folder / COMPILED, zip=None, ignore_errors=False)


def _environment(loader: BaseLoader) -> Environment:
    return Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,  # a deployed template does not change
    )
