"""Grants with a limit, also for each period: what is refused, and what comes back."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from sandbox.wallets.intervals import period
from sandbox.wallets.state import decode, encode
from tests.support.wallet_client import ALICE, CEDAR, SHOP, World

HOURLY = "R/2026-11-20T12:00:00Z/PT1H"
NOTHING = {"spentDebitAmount": None, "spentReceiveAmount": None}
SPENT = "/outgoing-payment-grant"


def euro(value: int) -> dict[str, Any]:
    return {"value": str(value), "assetCode": "EUR", "assetScale": 2}


def usd(value: int) -> dict[str, Any]:
    return {"value": str(value), "assetCode": "USD", "assetScale": 2}


def budget(world: World, limits: dict[str, Any]) -> str:
    """Return the token of a grant of Alice's with these limits."""
    return str(world.approved(ALICE, limits)["access_token"]["value"])


def pay(world: World, token: str, debit: int, receiver: str | None = None) -> tuple[int, Any]:
    """Pay `debit` cents to an incoming payment of the shop that takes any amount."""
    url = receiver or world.open_payment(SHOP)["id"]
    status, quote = world.quote(ALICE, url, debitAmount=euro(debit))
    assert status == 201, quote
    return world.pay_quote(ALICE, quote, token)


def spent(world: World, token: str) -> tuple[int, Any]:
    return world.call("GET", world.wallet(ALICE)["resourceServer"] + SPENT, token=token)


def spent_debit(world: World, token: str) -> str:
    status, answer = spent(world, token)
    assert status == 200
    return str(answer["spentDebitAmount"]["value"])


def test_a_debit_limit_holds_for_all_payments_of_a_period_together(world: World) -> None:
    token = budget(world, {"debitAmount": euro(1000), "interval": HOURLY})
    assert spent(world, token) == (200, NOTHING)
    answers = [pay(world, token, debit) for debit in (400, 400, 400, 200, 150)]
    assert [status for status, _ in answers] == [201, 201, 403, 201, 403]
    before = [each["grantSpentDebitAmount"]["value"] for status, each in answers if status == 201]
    assert before == ["0", "400", "800"]  # the sum before this payment
    assert answers[2][1] == {"error": {"code": "403", "description": "unauthorized"}}
    assert spent_debit(world, token) == "1000"


def test_a_limit_of_what_arrives_lets_the_debit_float(world: World) -> None:
    token = budget(world, {"receiveAmount": usd(1000), "interval": HOURLY})
    found = []
    for receive in (600, 600, 400, 50):
        _, quote = world.quote(ALICE, world.incoming_payment(SHOP, receive)["id"])
        found.append(world.pay_quote(ALICE, quote, token)[0])
    assert found == [201, 403, 201, 403]
    status, answer = spent(world, token)
    assert (status, answer["spentReceiveAmount"]) == (200, usd(1000))


def test_a_new_period_begins_with_nothing_and_the_rest_of_the_old_is_lost(world: World) -> None:
    token = budget(world, {"debitAmount": euro(1000), "interval": "R/2026-11-20T12:00:00Z/PT20S"})
    assert pay(world, token, 400)[0] == 201
    world.clock.pass_(14.999)  # the 5 s of the wait before: 19.999 in all
    assert spent_debit(world, token) == "400"
    world.clock.pass_(0.001)
    assert spent_debit(world, token) == "0"
    assert pay(world, token, 1001)[0] == 403
    assert pay(world, token, 1000)[0] == 201


def test_before_the_start_and_after_the_last_period_nothing_can_be_paid(world: World) -> None:
    later = budget(world, {"debitAmount": euro(1000), "interval": "R/2026-11-20T12:01:00Z/PT1H"})
    once = budget(world, {"debitAmount": euro(1000), "interval": "R0/2026-11-20T12:00:00Z/PT30S"})
    assert pay(world, later, 100)[0] == 403
    assert spent(world, later) == (200, NOTHING)
    assert pay(world, once, 100)[0] == 201
    world.clock.pass_(60)
    assert pay(world, later, 100)[0] == 201
    assert pay(world, once, 100)[0] == 403
    assert spent(world, once) == (200, NOTHING)


@pytest.mark.parametrize("interval", [..., ""])
def test_without_an_interval_the_limit_is_for_the_grants_whole_life(
    world: World, interval: Any
) -> None:
    limits = {"debitAmount": euro(600)} | ({} if interval is ... else {"interval": interval})
    granted = world.approved(ALICE, limits)["access_token"]
    assert pay(world, granted["value"], 400)[0] == 201
    world.clock.pass_(40 * 86400 / 2)
    _, fresh = world.call("POST", granted["manage"], token=granted["value"])
    token = fresh["access_token"]["value"]
    assert pay(world, token, 400)[0] == 403
    assert pay(world, token, 200)[0] == 201


@pytest.mark.parametrize("interval", ["P1M", "monthly", f"{HOURLY}/extra", "R/P1M", "R/x/P1M"])
def test_a_malformed_interval_is_granted_and_each_payment_fails(
    world: World, interval: str
) -> None:
    token = budget(world, {"debitAmount": euro(1000), "interval": interval})
    assert pay(world, token, 100) == (500, "Internal Server Error")
    assert spent(world, token) == (200, NOTHING)


@pytest.mark.parametrize("limit", [usd(1000), {**euro(9_999_999), "assetScale": 4}])
def test_a_limit_in_a_foreign_asset_is_granted_and_each_payment_is_refused(
    world: World, limit: dict[str, Any]
) -> None:
    token = budget(world, {"debitAmount": limit, "interval": HOURLY})
    status, answer = pay(world, token, 100)
    assert (status, answer["error"]["description"]) == (403, "unauthorized")


def test_a_limit_with_a_receiver_pays_it_again_and_again_and_nobody_else(world: World) -> None:
    jar = world.open_payment(SHOP)
    token = budget(world, {"debitAmount": euro(1000), "receiver": jar["id"]})
    assert pay(world, token, 400, jar["id"])[0] == 201
    assert pay(world, token, 400, jar["id"])[0] == 201
    assert pay(world, token, 100)[0] == 403


def test_a_wallet_address_is_no_receiver(world: World) -> None:
    item = {
        "type": "outgoing-payment",
        "actions": ["create"],
        "identifier": ALICE,
        "limits": {"receiver": SHOP, "debitAmount": euro(1)},
    }
    body = {
        "access_token": {"access": [item]},
        "interact": {"start": ["redirect"]},
        "client": SHOP,
    }
    assert world.call("POST", world.wallet(ALICE)["authServer"], body)[0] == 400


# The answer.


def behave(world: World, behaviour: str) -> None:
    world.network.state.accounts[ALICE].behaviour = behaviour


def close(world: World, incoming: dict[str, Any]) -> None:
    url = f"{incoming['id']}/complete"
    assert world.call("POST", url, token=incoming["token"])[0] == 200


def test_a_receiver_that_is_closed_before_the_sending_burns_the_allowance(world: World) -> None:
    token = budget(world, {"debitAmount": euro(1000), "interval": HOURLY})
    behave(world, "late")
    jar = world.open_payment(SHOP)
    _, made = pay(world, token, 600, jar["id"])
    close(world, jar)
    world.clock.pass_(20)
    _, ended = world.call("GET", made["id"], token=token)
    assert (ended["failed"], ended["sentAmount"]) == (False, euro(0))
    assert spent_debit(world, token) == "600"
    behave(world, "normal")
    assert pay(world, token, 600)[0] == 403
    assert pay(world, token, 300)[0] == 201


def test_a_payment_that_fails_after_its_quotes_end_gives_all_back(world: World) -> None:
    token = budget(world, {"debitAmount": euro(1000), "interval": HOURLY})
    behave(world, "held")
    jar = world.open_payment(SHOP)
    _, made = pay(world, token, 600, jar["id"])
    world.clock.pass_(301)
    close(world, jar)
    assert spent_debit(world, token) == "600"  # until the wallet tries to send
    world.clock.pass_(59)
    _, ended = world.call("GET", made["id"], token=token)
    assert (ended["failed"], ended["sentAmount"]) == (True, euro(0))
    assert spent_debit(world, token) == "0"
    assert world.balance(ALICE) == 10_000_00
    behave(world, "normal")
    assert pay(world, token, 600)[0] == 201


def test_a_payment_that_fails_after_a_part_gives_all_back(world: World) -> None:
    token = budget(world, {"debitAmount": euro(1000), "interval": HOURLY})
    behave(world, "partial")
    _, made = pay(world, token, 600)
    _, ended = world.call("GET", made["id"], token=token)
    assert (ended["failed"], ended["sentAmount"]) == (True, euro(297))  # half of 6.00 less the fee
    assert spent_debit(world, token) == "0"


def test_a_late_failure_of_an_older_period_restarts_the_present_one(world: World) -> None:
    token = budget(world, {"debitAmount": euro(1000), "interval": "R/2026-11-20T12:00:00Z/PT5M"})
    behave(world, "held")
    assert pay(world, token, 400)[0] == 201  # A, in the first period
    behave(world, "normal")
    world.clock.pass_(300)
    assert pay(world, token, 700)[0] == 201  # B, in the second
    assert pay(world, token, 400)[0] == 403
    assert spent_debit(world, token) == "700"
    behave(world, "held")
    world.clock.pass_(60)
    assert spent_debit(world, token) == "0"  # A has failed
    behave(world, "normal")
    assert pay(world, token, 800)[0] == 201  # C
    assert pay(world, token, 150)[0] == 201  # D: 16.50 of 10.00 in one period
    assert pay(world, token, 200)[0] == 403
    assert spent_debit(world, token) == "950"


def test_what_a_grant_has_spent_outlives_the_process(world: World) -> None:
    token = budget(world, {"debitAmount": euro(1000), "interval": HOURLY})
    assert pay(world, token, 400)[0] == 201
    world.network.state = decode(encode(world.network.state))
    assert spent_debit(world, token) == "400"
    assert pay(world, token, 700)[0] == 403


def test_a_state_that_was_saved_before_allowances_is_read(world: World) -> None:
    payment = world.pay(f"{CEDAR}/no-funds", SHOP, 2000)
    saved = encode(world.network.state)
    for grant in saved["grants"].values():
        del grant["spent"]
    for outgoing in saved["outgoing"].values():
        del outgoing["since"]
    world.network.state = decode(saved)
    world.clock.pass_(1)
    assert payment.sent()["failed"] is True  # of which nothing is given back
    server = world.wallet(f"{CEDAR}/no-funds")["resourceServer"]
    assert world.call("GET", server + SPENT, token=payment.token) == (200, NOTHING)


# Periods, as Rafiki counts them.


def starts(interval: str, first: str, last: str) -> list[str]:
    """Return the starts of the periods from `first` to `last`, asked for each 12 hours."""
    at = datetime.fromisoformat(first)
    found: list[str] = []
    while at <= datetime.fromisoformat(last):
        inside = period(interval, at)
        start = inside[0].isoformat() if inside else "-"
        if not found or found[-1] != start:
            found.append(start)
        at += timedelta(hours=12)
    return [each[:10] for each in found]


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (
            "R/2027-01-31T00:00:00Z/P1M",
            ["-", "2027-01-31", "2027-02-28", "2027-03-28", "2027-04-28", "2027-05-28"],
        ),
        (
            "R/2027-01-28T00:00:00Z/P1M",
            ["-", "2027-01-28", "2027-02-28", "2027-03-28", "2027-04-28", "2027-05-28"],
        ),
        (  # counted in UTC, where it is the 31st of January, 19:00
            "R/2027-02-01T00:00:00+05:00/P1M",
            ["-", "2027-01-31", "2027-02-28", "2027-03-28", "2027-04-28", "2027-05-28"],
        ),
        (
            "R/2027-03-01T00:00:00Z/P30D",
            ["-", "2027-03-01", "2027-03-31", "2027-04-30", "2027-05-30"],
        ),
        ("R0/2027-03-01T00:00:00Z/P1M", ["-", "2027-03-01", "-"]),
        ("R1/2027-03-01T00:00:00Z/P1M", ["-", "2027-03-01", "2027-04-01", "-"]),
        ("R-1/2027-04-01T00:00:00Z/P1M", ["-", "2027-04-01", "2027-05-01"]),
        ("2027-03-01T00:00:00Z/2027-03-08T00:00:00Z", ["-", "2027-03-01", "-"]),
        ("R/P1M/2027-04-10T00:00:00Z", ["-", "2027-03-10", "2027-04-10", "2027-05-10"]),
    ],
)
def test_each_period_begins_where_the_one_before_ended(interval: str, expected: list[str]) -> None:
    assert starts(interval, "2027-01-01T00:00:00+00:00", "2027-05-31T00:00:00+00:00") == expected


def test_three_repetitions_are_four_periods_and_a_leap_day_is_lost_for_good() -> None:
    found = starts(
        "R3/2028-01-01T00:00:00Z/P1W", "2028-01-01T00:00:00+00:00", "2028-02-10T00:00:00+00:00"
    )
    assert found == ["2028-01-01", "2028-01-08", "2028-01-15", "2028-01-22", "-"]
    years = starts(
        "R/2028-02-29T00:00:00Z/P1Y", "2028-02-29T00:00:00+00:00", "2032-03-10T00:00:00+00:00"
    )
    assert years == ["2028-02-29", "2029-02-28", "2030-02-28", "2031-02-28", "2032-02-28"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "R",
        "P1M",
        "R/P1M",
        "R/2027-01-01T00:00:00Z/P",
        "R/2027-01-01T00:00:00Z/P0D",
        "R/2027-01-01T00:00:00Z/P1MT",
        "2027-01-02T00:00:00Z/2027-01-01T00:00:00Z",
        "Rx/a/b",
    ],
)
def test_what_is_no_interval_has_no_periods(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        period(text, datetime.fromisoformat("2027-06-01T00:00:00+00:00"))
