"""Pictures are told by their bytes, whatever they are called."""

from __future__ import annotations

import pytest

from checkout.domain.ground.pictures import picture_size, picture_type
from tests.support.cases import PICTURES, PNG_END, jpeg, png_head, webp


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


# The heads of a WebP of 2001 × 1500 pixels, in its three forms.
LOSSY = b"VP8 \x00\x01\x00\x00\x10\x00\x00\x9d\x01\x2a\xd1\x07\xdc\x05"
LOSSLESS = b"VP8L\x00\x01\x00\x00\x2f\xd0\xc7\x76\x01\x07\x10\x11\x11\x88"
EXTENDED = b"VP8X\x0a\x00\x00\x00\x10\x00\x00\x00\xd0\x07\x00\xdb\x05\x00"


@pytest.mark.parametrize(
    "data",
    [
        *(png_head(2001, 1500), jpeg(2001, 1500), jpeg(2001, 1500, b"\xff\xff\xfe\x00\x03x")),
        *(webp(LOSSY), webp(LOSSLESS), webp(EXTENDED)),
    ],
)
def test_the_size_is_in_the_head(data: bytes) -> None:
    assert picture_size(data) == (2001, 1500)


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"<svg ", png_head(0, 2), png_head(2, 2)[:14], jpeg(2, 0), jpeg(2, 2)[:14]),
        *(webp(b""), webp(b"VP9 " + LOSSY[4:]), webp(LOSSY.replace(b"\x9d", b"x"))),
        # Decoders pass over what is no segment, and find the large frame in it.
        jpeg(2, 2, b"\xff\x01\x00\x0f" + jpeg(30_000, 30_000)[8:21]),
        jpeg(2, 2, b"\xff\xd0\x00\x0f" + jpeg(30_000, 30_000)[8:21]),
        jpeg(2, 2, b"x"),
    ],
)
def test_a_head_without_a_size_has_none(data: bytes) -> None:
    assert picture_size(data) is None
