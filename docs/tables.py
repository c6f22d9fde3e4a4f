"""`python docs/tables.py`: rewrites the tables of README.md and docs/deploying.md that are made
from the code and template.yaml.
Each stands between `<!-- NAME -->` and `<!-- /NAME -->`; `tests/test_readme.py` holds them fresh.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Final

from checkout.domain.transitions import TRANSITIONS
from checkout.settings import Settings
from checkout.web import STATUS

ROOT: Final = Path(__file__).parent.parent
README: Final = ROOT / "README.md"
TARGET: Final = re.compile(r"^([a-z-]+):.*## (.*)$", re.MULTILINE)
DEPLOYING: Final = ROOT / "docs" / "deploying.md"

if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from sandbox.template import resources, template  # noqa: E402 - found by the line above


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


def errors() -> str:
    """Every code with its status and type, those of what was not foreseen included."""
    codes: dict[tuple[int, str], list[str]] = {}
    for error, place in STATUS.items():
        codes.setdefault(place, []).append(f"`{error.code}`")
    codes[500, "api_error"] = ["`internal_error`"]
    rows = [
        f"| {status} | {type_} | {', '.join(found)} |"
        for (status, type_), found in sorted(codes.items())
    ]
    return "\n".join(["| status | type | code |", "|---|---|---|", *rows])


def targets() -> str:
    """What `make` lists."""
    text = (ROOT / "Makefile").read_text("utf-8")
    rows = [f"| `make {name}` | {what} |" for name, what in TARGET.findall(text)]
    return "\n".join(["| command | does |", "|---|---|", *rows])


def parameters() -> str:
    """The template's parameters."""
    rows = [
        f"| `{name}` | {each['Description']} | {f'`{default}`' if default else ''} |"
        for name, each in template()["Parameters"].items()
        for default in [each["Default"]]
    ]
    return "\n".join(["| parameter | meaning | default |", "|---|---|---|", *rows])


def alarms() -> str:
    """The template's alarms."""
    rows = [
        f"| `{name.removesuffix('Alarm')}` | {each['AlarmDescription']} |"
        for name, each in resources("AWS::CloudWatch::Alarm").items()
    ]
    return "\n".join(["| alarm | when |", "|---|---|", *rows])


TABLES: Final = {
    "states": states,
    "diagram": diagram,
    "errors": errors,
    "settings": settings,
    "targets": targets,
}
OF_DEPLOYING: Final = {"parameters": parameters, "alarms": alarms}


def refreshed(text: str, tables: Mapping[str, Callable[[], str]] = TABLES) -> str:
    """`text` with every marked table made anew. Raises ValueError where a mark is missing."""
    for name, make in tables.items():
        marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        table = make()
        text, found = marked.subn(lambda m, t=table: f"{m[1]}{t}\n{m[2]}", text)  # type: ignore[misc]
        if found != 1:
            raise ValueError(f"there must be one place for the table {name}")
    return text


if __name__ == "__main__":
    README.write_text(refreshed(README.read_text("utf-8")), "utf-8")
    DEPLOYING.write_text(refreshed(DEPLOYING.read_text("utf-8"), OF_DEPLOYING), "utf-8")
    sys.exit(0)
