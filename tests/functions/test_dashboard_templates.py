"""All templates of the dashboard keep to these rules, also one that is added later."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

import dashboard
from checkout.domain.merchant.record import Merchant, ServiceKey
from checkout.domain.payment.mandate import Mandate
from checkout.domain.refund.record import Refund
from checkout.domain.session.record import Session

FOLDER = Path(dashboard.__file__).parent / "templates"
TEMPLATES = sorted(FOLDER.glob("*.html"))
# Templates get records, which hold these: sealed or hashed secrets, and addresses of approvals.
SECRETS = {"grant", "token", "handle", "interact_url", "private_key", "details_key"}
SECRETS |= {"details_key_kms", "hash", "sealed", "customer_mark", "customer_marks"}
SHOWN = {"claim", "elsewhere"}  # texts of a refund that its shop may read
# A time is named by its last part: created_at, counted_to, old_until.
TIME = re.compile(r"\{\{ [a-z_.]*(?:_at|counted_to|looked_to|_until|_since|\.at) ")

pytestmark = pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)


def test_each_time_is_an_element_so_that_the_script_can_show_it_in_the_readers_zone(
    template: Path,
) -> None:
    html = template.read_text()
    assert "<time" not in html  # rendering.py writes it, as time(…) and when(…)
    assert not TIME.findall(html)


def test_no_time_is_called_utc_where_the_script_cannot_change_it(template: Path) -> None:
    html = template.read_text()
    told = html.replace('<p class="hint" id="zone">Times are UTC.</p>', "")
    assert "imes are UTC" not in told
    for macro in re.findall(r"\{\{ (?:when|time)\([^)]*\) \}\}[\s,(]*(\w*)", html):
        assert macro != "UTC"


def test_no_template_names_a_secret_of_a_record(template: Path) -> None:
    hidden = {
        each.name
        for record in (Session, Refund, Mandate, Merchant, ServiceKey)
        for each in fields(record)
        if not each.repr
    }
    assert hidden <= SECRETS | SHOWN
    named = set(re.findall(r"\.(\w+)", template.read_text()))
    assert not named & SECRETS
