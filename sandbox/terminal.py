"""Print texts of others without their control characters, which a terminal would execute."""

from __future__ import annotations

from typing import TextIO


def say(*words: object, to: TextIO | None = None) -> None:
    """Print a text as one line, at once; by default to standard output."""
    print(plain(" ".join(map(str, words))), file=to, flush=True)


def plain(text: str) -> str:
    """Return a text with escapes in place of unprintable characters. Line ends stay."""
    return "".join(
        each if each.isprintable() or each == "\n" else ascii(each)[1:-1] for each in text
    )
