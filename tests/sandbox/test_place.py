"""Environment variables of a local world."""

from __future__ import annotations

import pytest

from sandbox.place import default_place


def test_the_wallets_wait_as_long_as_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SANDBOX_WAIT", raising=False)
    assert default_place().wait == 5
    for text, seconds in (("1", 1), ("60", 60)):
        monkeypatch.setenv("SANDBOX_WAIT", text)
        assert default_place().wait == seconds


@pytest.mark.parametrize("text", ["", "0", "61", "-1", "1.5", "soon"])
def test_another_wait_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("SANDBOX_WAIT", text)
    with pytest.raises(ValueError, match="SANDBOX_WAIT must be 1 to 60 seconds"):
        default_place()
