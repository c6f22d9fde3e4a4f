"""The version of the product, for `/api/health`, the User-Agent and pyproject.toml."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
