"""The native shops of examples/, which need no package, against the local world."""

from __future__ import annotations

import sys
from typing import Final

import pytest

from sandbox.place import Place
from tests.interop.shops import EXAMPLES, sells

pytestmark = [pytest.mark.interop, pytest.mark.enable_socket]
LINES_MAX: Final = 95
SIGNATURE: Final = "Checkout-Signature"


def test_the_python_shop_sells(place: Place) -> None:
    folder = EXAMPLES / "native-python"
    assert len((folder / "shop.py").read_text("utf-8").splitlines()) < LINES_MAX
    sells(place, [sys.executable, "-I", "shop.py"], folder, SIGNATURE)


def test_the_node_shop_sells(place: Place, node: str) -> None:
    folder = EXAMPLES / "native-node"
    assert len((folder / "shop.mjs").read_text("utf-8").splitlines()) < LINES_MAX
    sells(place, [node, "shop.mjs"], folder, SIGNATURE)
