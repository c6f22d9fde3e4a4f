"""Print texts from others without their control characters, which a terminal would execute."""

from __future__ import annotations

from typing import TextIO


def say(*words: object, to: TextIO | None = None) -> None:
    """Print `words` as one line and flush it, to standard output or `to`."""
    print(plain(" ".join(map(str, words))), file=to, flush=True)


def plain(text: str) -> str:
    """Return a text with unprintable characters replaced by escapes. Line ends are kept."""
    return "".join(
        each if each.isprintable() or each == "\n" else ascii(each)[1:-1] for each in text
    )
