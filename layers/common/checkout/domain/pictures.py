"""Recognize pictures by their bytes alone.

Accepts only three types that all browsers show and that cannot contain a script. Refuses files that
are cut short or continue after their end.
"""

from __future__ import annotations

from typing import Final

_PNG_END: Final = b"\x00\x00\x00\x00IEND\xaeB`\x82"


def picture_type(data: bytes) -> str | None:
    """Return the media type, or None."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data.endswith(_PNG_END):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff") and data.endswith(b"\xff\xd9"):
        return "image/jpeg"
    length = int.from_bytes(data[4:8], "little") + 8
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) == length:
        return "image/webp"
    return None
