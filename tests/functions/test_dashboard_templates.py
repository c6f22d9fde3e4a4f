"""All templates of the dashboard keep to these rules, also one that is added later."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dashboard

FOLDER = Path(dashboard.__file__).parent / "templates"
TEMPLATES = sorted(FOLDER.glob("*.html"))
# A moment of checkout.pages.Moment is named by its last part: created_at, counted_to, old_until.
MOMENT = re.compile(r"\{\{ ([a-z_.]*(?:at|to|until|first|last|since))\.text \}\}")

pytestmark = pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)


def test_each_moment_is_a_time_so_that_the_script_can_show_it_in_the_readers_zone(
    template: Path,
) -> None:
    html = template.read_text()
    for found in MOMENT.finditer(html):
        begin = f'<time datetime="{{{{ {found[1]}.iso }}}}">'
        assert html[: found.start()].endswith(begin), found[0]


def test_no_time_is_called_utc_where_the_script_cannot_change_it(template: Path) -> None:
    html = template.read_text()
    assert not re.search(r"</time>[\s,(]*UTC", html)
    told = html.replace('<p class="hint" id="zone">Times are UTC.</p>', "")
    assert "imes are UTC" not in told
    for macro in re.findall(r"\{\{ when\([^)]*\) \}\}[\s,(]*(\w*)", html):
        assert macro != "UTC"
