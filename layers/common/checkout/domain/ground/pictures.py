"""Recognize pictures by their bytes alone.

Only three types are accepted: all browsers show them, and they cannot contain a script. A file is
refused if it is cut short or continues after the end of the picture.
"""

from __future__ import annotations

from typing import Final

# The longest side, in pixels. A browser decompresses the whole picture, and 50 kB of one color can
# become a gigabyte.
SIDE_MAX: Final = 2000
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PNG_END: Final = b"\x00\x00\x00\x00IEND\xaeB`\x82"


def picture_type(data: bytes) -> str | None:
    """Return the media type, or None if `data` is not an accepted picture."""
    if data.startswith(_PNG) and data.endswith(_PNG_END):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff") and data.endswith(b"\xff\xd9"):
        return "image/jpeg"
    length = int.from_bytes(data[4:8], "little") + 8
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) == length:
        return "image/webp"
    return None


def picture_size(data: bytes) -> tuple[int, int] | None:
    """Return the width and height in pixels from the picture's header; None if they are missing.

    Sources: PNG 11.2.1, JPEG (ITU-T T.81) B.1 and B.2, RFC 9649 section 2 and RFC 6386 section 9.1.
    """
    if data[:16] == _PNG + b"\x00\x00\x00\rIHDR":
        width, height = int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    elif data[:2] == b"\xff\xd8":
        width, height = _jpeg_size(data)
    else:
        width, height = _webp_size(data)
    return (width, height) if width and height else None


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Return the size in the first frame header; (0, 0) if none comes before the picture's data."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
            continue
        # No length follows these markers. If this function read a length here, it would find
        # another header than picture decoders do.
        if marker < 0xC0 or 0xD0 <= marker <= 0xDA:
            break
        if marker < 0xD0 and marker not in (0xC4, 0xC8, 0xCC):  # tables, and a reserved code
            return int.from_bytes(data[at + 7 : at + 9]), int.from_bytes(data[at + 5 : at + 7])
        at += 2 + int.from_bytes(data[at + 2 : at + 4])
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    chunk, head = data[12:16], data[20:30]
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP" or len(head) < 10:
        return 0, 0
    if chunk == b"VP8X":
        return 1 + int.from_bytes(head[4:7], "little"), 1 + int.from_bytes(head[7:10], "little")
    if chunk == b"VP8L" and head[0] == 0x2F:
        bits = int.from_bytes(head[1:5], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if chunk == b"VP8 " and head[3:6] == b"\x9d\x01\x2a":
        sides = int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")
        return sides[0] & 0x3FFF, sides[1] & 0x3FFF
    return 0, 0
