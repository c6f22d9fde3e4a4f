"""`python -m tests.simulation`: many worlds on two processes, one world with its trace, or the
seeded bugs.
"""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(_ROOT / "layers" / "common"), str(_ROOT / "functions"), str(_ROOT)]

from tests.simulation.command import main  # noqa: E402 - needs the path above

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
