"""`python docs/tables.py`: rewrites the tables of README.md that are made from the code.

Each stands between `<!-- NAME -->` and `<!-- /NAME -->`; `tests/test_readme.py` holds them fresh.
"""

from __future__ import annotations

import re
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Final

from checkout.domain.transitions import TRANSITIONS
from checkout.settings import Settings

README: Final = Path(__file__).parent.parent / "README.md"


def states() -> str:
    """Every arrow of the session's table that changes the status."""
    rows = [
        f"| {source} | {event.replace('_', ' ')} | {row.when.text} | {row.to} |"
        for (source, event), row in TRANSITIONS.items()
        if row.to is not source
    ]
    return "\n".join(["| from | event | when | to |", "|---|---|---|---|", *rows])


def diagram() -> str:
    """The same as a picture, for readers of rendered Markdown."""
    arrows = sorted({(s, row.to) for (s, _), row in TRANSITIONS.items() if row.to is not s})
    lines = [f"    {source} --> {target}" for source, target in arrows]
    return "\n".join(["```mermaid", "stateDiagram-v2", "    [*] --> open", *lines, "```"])


def settings() -> str:
    """Every setting, required or with its default."""
    rows = []
    for setting in fields(Settings):
        default = "required" if setting.default is MISSING else f"`{setting.default}`"
        default = "" if default == "``" else default
        rows.append(f"| `{setting.name.upper()}` | {setting.metadata['text']} | {default} |")
    return "\n".join(["| setting | meaning | default |", "|---|---|---|", *rows])


TABLES: Final = {"states": states, "diagram": diagram, "settings": settings}


def refreshed(text: str) -> str:
    """`text` with every marked table made anew. Raises ValueError where a mark is missing."""
    for name, make in TABLES.items():
        marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        table = make()
        text, found = marked.subn(lambda m, t=table: f"{m[1]}{t}\n{m[2]}", text)  # type: ignore[misc]
        if found != 1:
            raise ValueError(f"README.md must have one place for the table {name}")
    return text


if __name__ == "__main__":
    README.write_text(refreshed(README.read_text("utf-8")), "utf-8")
    sys.exit(0)
