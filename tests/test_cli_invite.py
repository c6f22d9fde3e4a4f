"""`checkout invite`, over a world in memory."""

from __future__ import annotations

import re

import pytest

from checkout import cli
from tests.support.authenticator import Authenticator
from tests.support.dashboard_pages import BASE, Dashboard, dashboard


def run(shop: Dashboard, *arguments: str) -> int:
    return cli.main(["invite", *arguments], lambda: shop.services)


def test_the_first_owner_gets_a_link_which_works(capsys: pytest.CaptureFixture[str]) -> None:
    with dashboard() as shop:
        assert run(shop, "--merchant", "mer_1", "--name", "Ada") == 0
        said = capsys.readouterr().out
        assert "member    Ada (owner)" in said
        link = re.search(rf"^link      ({BASE}/dashboard/invitation/\w{{43}})$", said, re.M)
        assert link is not None, said
        browser = shop.browser()
        assert browser.join(link[1], Authenticator(BASE)).location == "/dashboard/overview"
        assert "Ada" in browser.get("/people").page.main


def test_a_support_member_is_not_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    with dashboard() as shop:
        merchant = ("--wallet-address", shop.merchant().wallet_address)
        assert run(shop, *merchant, "--name", "Ada", "--role", "support") == 1
        assert "first member must be an owner" in capsys.readouterr().err
        assert run(shop, "--merchant", "mer_x", "--name", "Ada") == 1
        assert "No such merchant." in capsys.readouterr().err
