"""The export: exactly what was searched for, as the API has it, in parts that Lambda can answer."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta

import pytest

from checkout.domain.session.record import LineItem, Status
from checkout.flows.reports import PART_MAX
from tests.support.basics import NOW, words
from tests.support.dashboard_pages import Browser, Dashboard, dashboard_of, of_api, parts, rows
from tests.support.flows import World
from tests.support.shop_records import paid


@pytest.mark.parametrize("status", ["", "completed", "open"])
def test_the_filtered_set_is_the_apis_row_by_row(shop: Dashboard, status: str) -> None:
    browser = shop.signed_in()
    for number in range(230):
        at = NOW + timedelta(milliseconds=number)
        metadata = json.dumps({"order": f"A-{number}", "gift": True})
        if number % 3:
            shop.store(created_at=at, metadata_json=metadata, amount_total=number + 1)
        else:
            paid(shop, created_at=at, amount_total=number + 1)
    query = {"status": status} if status else {}
    expected = of_api(shop, **query)
    exported = rows(browser, f"/export/transactions.csv?status={status}")
    assert len(exported) == len(expected) > 70
    for row, session in zip(exported, expected, strict=True):
        names = ("id", "status", "created_at", "expires_at", "currency")
        assert [row[name] for name in names] == [session[name] for name in names]
        for name in ("completed_at", "customer_wallet", "incoming_payment", "outgoing_payment"):
            assert (row[name] or None) == session[name]
        total = session["amount_total"]
        assert row["amount_total"] == str(total)
        assert row["amount_total_decimal"] == f"{total // 100}.{total % 100:02d}"
        assert json.loads(row["metadata"]) == session["metadata"]
        assert row["received_decimal"] == ("20.00" if session["completed_at"] else "")
        received = session["amount_received"]
        assert row["amount_received"] == ("" if received is None else str(received))
        added = words("""
        amount_received client_reference_id last_payment_error order_number
        customer_email customer_name customer_phone
        shipping_name shipping_line1 shipping_line2 shipping_district shipping_city
        shipping_state shipping_postal_code shipping_country
        billing_name billing_line1 billing_line2 billing_district billing_city
        billing_state billing_postal_code billing_country answers
        refunded_decimal refund_cost_decimal
        """)
        assert list(row)[-26:] == added, "columns are added at the end"


def test_a_long_export_comes_in_parts_that_neither_skip_nor_repeat(shop: Dashboard) -> None:
    browser = shop.signed_in()
    made = [shop.store().id for _ in range(PART_MAX + 30)]
    answers = parts(browser, "/export/transactions.csv")
    assert [answer.headers["export-count"] for answer in answers] == [str(PART_MAX), "30"]
    exported = rows(browser, "/export/transactions.csv")
    assert sorted(row["id"] for row in exported) == sorted(made)
    # A part in which nothing matches is not the end.
    old = paid(shop, created_at=NOW - timedelta(days=1), amount_total=2001)
    for path in ("/export/transactions.csv", "/export/accounting.csv"):
        found = rows(browser, f"{path}?min=20.01")
        assert [row.get("id", row.get("session")) for row in found] == [old.id]


def test_a_part_ends_early_where_an_answer_would_be_too_large(shop: Dashboard) -> None:
    browser = shop.signed_in()
    large = tuple(LineItem("usd", "☕" * 200, "\x01" * 200, 1, 1) for _ in range(100))
    for _ in range(25):
        shop.store(line_items=large)
    answers = parts(browser, "/export/items.csv")
    assert len(answers) > 1
    assert len(rows(browser, "/export/items.csv")) == 2500


def test_each_line_item_has_a_row(shop: Dashboard, browser: Browser) -> None:
    items = (
        LineItem("usd", 'Tea, "green"\n1 kg', None, 1250, 3),
        LineItem("usd", "Cup", "x", 5, 1),
    )
    session = shop.store(line_items=items, status=Status.CANCELED)
    first, second = rows(browser, f"/export/items.csv?q={session.id}")
    assert first == {
        "session": session.id,
        "session_status": "canceled",
        "session_created_at": "2026-03-01T12:00:00.000Z",
        "line": "1",
        "name": 'Tea, "green"\n1 kg',
        "description": "",
        "currency": "usd",
        "unit_amount": "1250",
        "unit_amount_decimal": "12.50",
        "quantity": "3",
        "total": "3750",
        "total_decimal": "37.50",
    }
    assert (second["line"], second["name"], second["total_decimal"]) == ("2", "Cup", "0.05")


def test_the_price_of_an_attempt_is_a_number_too() -> None:
    world = World()
    world.pay(world.create(2000))
    with dashboard_of(world) as browser:
        [row] = rows(browser, "/export/attempts.csv")
    assert row["customer_debit"] == "18.54 EUR"
    assert list(row)[-2:] == ["customer_debit_decimal", "customer_debit_currency"]
    assert (row["customer_debit_decimal"], row["customer_debit_currency"]) == ("18.54", "eur")


@pytest.mark.parametrize(
    "evil",
    [
        *("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"),
        *("＝1", "＋1", "－1", "＠A1", "\u200b=1", "\ufeff+1", " =1", "\u00a0@A1", "﹣1", "⁺1"),
    ],
)
def test_a_formula_comes_out_as_text(shop: Dashboard, browser: Browser, evil: str) -> None:
    shop.store(line_items=(LineItem("usd", evil, evil, 1, 1),))
    (row,) = rows(browser, "/export/items.csv")
    assert row["name"] == row["description"] == f"'{evil}"


def test_the_page_leads_through_the_parts_without_script(shop: Dashboard, browser: Browser) -> None:
    for number in range(PART_MAX + 30):
        shop.store(created_at=NOW + timedelta(milliseconds=number))
    page = browser.get("/export?status=open").page
    assert f"{PART_MAX} transactions matching your search" in page.main
    assert "there are more" in page.main
    (following,) = [link for link in page.links if "export?" in link and "cursor" in link]
    last = browser.get(following.removeprefix("/dashboard")).page
    assert "30 transactions" in last.main
    (file,) = [link for link in last.links if "transactions.csv" in link]
    answer = browser.get(file.removeprefix("/dashboard"))
    assert len(list(csv.DictReader(io.StringIO(answer.body, newline="")))) == 30


def test_an_export_is_noted_in_the_audit_log_once(shop: Dashboard, browser: Browser) -> None:
    for _ in range(PART_MAX + 1):
        shop.store()
    parts(browser, "/export/transactions.csv")
    assert browser.get("/audit").page.main.count("Exported transactions transactions.csv") == 1


def test_what_cannot_be_exported_is_an_error(browser: Browser) -> None:
    for path in ("/export?min=x", "/export/items.csv?from=x", "/export/items.csv?cursor=x"):
        assert browser.get(path).status == 400
    assert browser.get("/export/secrets.csv").status in (400, 404)
    assert browser.get("/export/..%2fx.csv").status in (400, 404)
