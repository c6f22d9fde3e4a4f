"""Compare the combined coverage of branches with the limits. `make coverage` runs it."""

from __future__ import annotations

import io
import sys
from typing import Final

from coverage import Coverage

CORE: Final = "layers/common/checkout/"
# Percent of lines and branches, by folder.
LIMITS: Final = {
    f"{CORE}domain/*": 100.0,
    f"{CORE}open_payments/*": 100.0,
    f"{CORE}flows/*": 100.0,
    f"{CORE}adapters/*": 95.0,
    f"{CORE}ports/*": 95.0,
    f"{CORE}*.py": 95.0,
    "functions/api/*": 95.0,
    "functions/dashboard/*": 95.0,
    "functions/expirer/*": 95.0,
    "functions/pay/*": 95.0,
    "functions/webhook_sender/*": 95.0,
}


def main() -> int:
    """Print each folder's figure, and the missing lines of those below their limit."""
    data = Coverage()
    data.load()
    below = 0
    for folder, limit in LIMITS.items():
        report = io.StringIO()
        found = data.report(include=[folder], file=report)
        print(f"{folder:<40} {found:6.2f} % of {limit:.0f} %")
        if found < limit:
            below += 1
            print(report.getvalue())
    return int(below > 0)


if __name__ == "__main__":
    sys.exit(main())
