"""Pictures are told by their bytes, whatever they are called."""

from __future__ import annotations

import pytest

from checkout.domain.pictures import picture_type
from tests.support.cases import PICTURES, PNG_END


@pytest.mark.parametrize("kind", PICTURES)
def test_a_whole_picture_is_known_by_its_bytes(kind: str) -> None:
    assert picture_type(PICTURES[kind]) == kind


@pytest.mark.parametrize("kind", PICTURES)
def test_a_picture_that_is_cut_short_or_goes_on_is_none(kind: str) -> None:
    assert picture_type(PICTURES[kind][:-1]) is None
    assert picture_type(PICTURES[kind] + b"<script>") is None
    assert picture_type(b" " + PICTURES[kind]) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GIF89a",
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        b"<!doctype html>",
        b"RIFF\x0a\x00\x00\x00WAVEpixels",
        PNG_END,
    ],
)
def test_other_kinds_are_none(data: bytes) -> None:
    assert picture_type(data) is None
