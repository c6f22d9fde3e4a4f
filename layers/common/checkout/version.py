"""The version of the product, as `/api/health` and the User-Agent tell it; pyproject.toml says the
same.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
