"""The version of the product, in `/api/health`, the User-Agent and the package (pyproject.toml reads
it from here).
"""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
